//! The layout of the page for C: made from the constants of the crate page, and understood by C as by Rust.

use crate::c;
use crate::common::{Directory, publication, writer};
use ffclock_page::layout::{self, header, history, slot, state, tag, vote};
use ffclock_units::{MachineMark, ServerIdentity, Span};
use std::path::Path;

const HEADER_WORDS: [(&str, usize); 12] = [
    ("magic", header::MAGIC),
    ("version", header::VERSION),
    ("size", header::SIZE),
    ("boot_high", header::BOOT_HIGH),
    ("boot_low", header::BOOT_LOW),
    ("check", header::CHECK),
    ("tag", header::TAG),
    ("latest", header::LATEST),
    ("machine", header::MACHINE),
    ("machine_watched", header::MACHINE_WATCHED),
    ("generation", header::GENERATION),
    ("generation_check", header::GENERATION_CHECK),
];

const SLOT_WORDS: [(&str, usize); layout::SLOT_WORDS] = [
    ("sequence", slot::SEQUENCE),
    ("state", slot::STATE),
    ("counter", slot::COUNTER),
    ("window", slot::WINDOW),
    ("utc_seconds", slot::UTC_SECONDS),
    ("fraction", slot::FRACTION),
    ("period", slot::PERIOD),
    ("bound", slot::BOUND),
    ("bound_per_tick", slot::BOUND_PER_TICK),
    ("uncertainty", slot::UNCERTAINTY),
    ("uncertainty_per_tick", slot::UNCERTAINTY_PER_TICK),
    ("tag", slot::TAG),
    ("check_absolute", slot::CHECK_ABSOLUTE),
    ("epoch_begin", slot::EPOCH_BEGIN),
    ("valid_until", slot::VALID_UNTIL),
    ("difference_period", slot::DIFFERENCE_PERIOD),
    ("difference_bound", slot::DIFFERENCE_BOUND),
    ("check_difference", slot::CHECK_DIFFERENCE),
    ("leap_at", slot::LEAP_AT),
    ("leap_offsets", slot::LEAP_OFFSETS),
    ("bound_growth", slot::BOUND_GROWTH),
    ("uncertainty_growth", slot::UNCERTAINTY_GROWTH),
    ("server", slot::SERVER),
    ("check_all", slot::CHECK_ALL),
    ("bound_strict", slot::BOUND_STRICT),
    ("bound_strict_per_tick", slot::BOUND_STRICT_PER_TICK),
    ("bound_strict_growth", slot::BOUND_STRICT_GROWTH),
    ("vote", slot::VOTE),
    ("check_strict", slot::CHECK_STRICT),
    ("difference_uncertainty", slot::DIFFERENCE_UNCERTAINTY),
    ("difference_short", slot::SHORT),
    ("check_more", slot::CHECK_MORE),
];

const HISTORY_HEADER_WORDS: [(&str, usize); 9] = [
    ("magic", history::header::MAGIC),
    ("version", history::header::VERSION),
    ("size", history::header::SIZE),
    ("boot_high", history::header::BOOT_HIGH),
    ("boot_low", history::header::BOOT_LOW),
    ("check", history::header::CHECK),
    ("origin", history::header::ORIGIN),
    ("fine_per_tick", history::header::FINE_PER_TICK),
    ("coarse_per_tick", history::header::COARSE_PER_TICK),
];

/// The words up to the reserved ones.
const ENTRY_WORDS: [(&str, usize); 13] = [
    ("sequence", history::entry::SEQUENCE),
    ("state", history::entry::STATE),
    ("begin", history::entry::BEGIN),
    ("ticks", history::entry::TICKS),
    ("tai_seconds", history::entry::TAI_SECONDS),
    ("fraction", history::entry::FRACTION),
    ("period", history::entry::PERIOD),
    ("bound", history::entry::BOUND),
    ("bound_per_tick", history::entry::BOUND_PER_TICK),
    ("uncertainty", history::entry::UNCERTAINTY),
    ("uncertainty_per_tick", history::entry::UNCERTAINTY_PER_TICK),
    ("leap_at", history::entry::LEAP_AT),
    ("noise", history::entry::NOISE),
];
const ENTRY_CHECK: (&str, usize) = ("check", history::entry::CHECK);

fn number(name: &str, value: usize) -> (String, String) {
    (name.to_owned(), value.to_string())
}

fn long(name: &str, value: u64) -> (String, String) {
    (name.to_owned(), format!("UINT64_C({value:#x})"))
}

fn places(prefix: &str, words: &[(&str, usize)]) -> Vec<(String, String)> {
    words.iter().map(|(name, place)| number(&format!("{prefix}_{}", name.to_uppercase()), *place)).collect()
}

fn history_constants() -> Vec<(String, String)> {
    let mut all = vec![
        number("BYTES", history::HISTORY_BYTES),
        number("VERSION", history::VERSION as usize),
        long("MAGIC", history::MAGIC),
        ("UNKNOWN".to_owned(), format!("UINT32_C({:#x})", history::UNKNOWN)),
        number("ENTRIES", history::ENTRIES),
        number("ENTRY_WORDS", history::ENTRY_WORDS),
        number("FINE_ENTRIES", history::FINE_ENTRIES),
        number("COARSE_ENTRIES", history::COARSE_ENTRIES),
        number("FINE_SPAN_MS", history::FINE_SPAN_MS as usize),
        number("COARSE_SPAN_MS", history::COARSE_SPAN_MS as usize),
    ];
    all.extend(places("HEADER", &HISTORY_HEADER_WORDS));
    all.extend(places("ENTRY", &ENTRY_WORDS));
    all.extend(places("ENTRY", &[ENTRY_CHECK]));
    let fields = [
        ("STATE_PERIOD_SHIFT", history::state::PERIOD_SHIFT),
        ("STATE_STATUS", history::state::STATUS),
        ("STATE_BOUND_SCALE", history::state::BOUND_SCALE),
        ("STATE_UNCERTAINTY_SCALE", history::state::UNCERTAINTY_SCALE),
        ("STATE_OFFSET_BEFORE", history::state::OFFSET_BEFORE),
        ("STATE_OFFSET_AFTER", history::state::OFFSET_AFTER),
    ];
    all.extend(fields.map(|(name, bit)| number(name, bit as usize)));
    all
}

fn constants() -> Vec<(String, String)> {
    let mut all = vec![
        number("BYTES", layout::PAGE_BYTES),
        number("VERSION", layout::VERSION as usize),
        long("MAGIC", layout::MAGIC),
        long("MISSING", layout::MISSING),
        long("UNKNOWN", layout::UNKNOWN),
        long("UNKNOWN_NOISE", layout::UNKNOWN_NOISE),
        long("CHECK_SEED", layout::CHECK_SEED),
        number("SLOTS", layout::SLOTS),
        number("STRIDE", layout::STRIDE),
        number("SLOT_WORDS", layout::SLOT_WORDS),
    ];
    all.extend(places("HEADER", &HEADER_WORDS));
    all.extend(places("SLOT", &SLOT_WORDS));
    let fields = [
        ("STATE_PERIOD_SHIFT", state::PERIOD_SHIFT),
        ("STATE_DIFFERENCE_SHIFT", state::DIFFERENCE_SHIFT),
        ("STATE_STATUS", state::STATUS),
        ("STATE_TAI_OFFSET", state::TAI_OFFSET),
        ("TAG_COUNTER_ID", tag::COUNTER_ID),
        ("TAG_EPOCH", tag::EPOCH),
        ("VOTE_DECIDERS", vote::DECIDERS),
        ("VOTE_TOLERATED", vote::TOLERATED),
        ("VOTE_BELIEVED", vote::BELIEVED),
        ("VOTE_NOISE", vote::NOISE),
    ];
    all.extend(fields.map(|(name, bit)| number(name, bit as usize)));
    all
}

fn written_header() -> String {
    let mut text = String::from(
        "/* The page of ffclockd and the history beside it, for programs that read them without libffclock. docs/page.md\n \
         * gives the meanings.\n *\n \
         * Made from clock/page/src/layout.rs by clock/client/tests/client/page_header.rs; do not edit.\n *\n \
         * Places are counted in words of 64 bits, those of a slot and of an entry from its beginning; fields by their\n \
         * lowest bit. */\n\
         #ifndef FFCLOCK_PAGE_H\n#define FFCLOCK_PAGE_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n",
    );
    let defined = |prefix: &str, constants: Vec<(String, String)>| {
        constants.into_iter().map(|(name, value)| format!("#define {prefix}_{name} {value}\n")).collect::<String>()
    };
    text += &defined("FFCLOCK_PAGE", constants());
    text += "\n";
    text += &defined("FFCLOCK_HISTORY", history_constants());
    text += &structure("ffclock_page_slot", &SLOT_WORDS, "");
    let slots = "    uint64_t reserved[FFCLOCK_PAGE_SLOTS - 12];\n    union {\n        struct ffclock_page_slot slot;\n        \
                 uint64_t words[FFCLOCK_PAGE_STRIDE];\n    } slots[2];\n";
    text += &structure("ffclock_page", &HEADER_WORDS, slots);
    text += &structure("ffclock_history_entry", &ENTRY_WORDS, "    uint64_t reserved[2];\n    uint64_t check;\n");
    let rings = "    uint64_t reserved[FFCLOCK_HISTORY_ENTRIES - 9];\n    \
                 struct ffclock_history_entry fine[FFCLOCK_HISTORY_FINE_ENTRIES];\n    \
                 struct ffclock_history_entry coarse[FFCLOCK_HISTORY_COARSE_ENTRIES];\n";
    text += &structure("ffclock_history", &HISTORY_HEADER_WORDS, rings);
    text += "\n#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n";
    text += &assertions("ffclock_page", "FFCLOCK_PAGE_HEADER", &HEADER_WORDS);
    text += "_Static_assert(offsetof(struct ffclock_page, slots) == 8 * FFCLOCK_PAGE_SLOTS, \"slots\");\n";
    text += &assertions("ffclock_page_slot", "FFCLOCK_PAGE_SLOT", &SLOT_WORDS);
    text += "_Static_assert(sizeof(struct ffclock_page_slot) == 8 * FFCLOCK_PAGE_SLOT_WORDS, \"size of a slot\");\n";
    text += &assertions("ffclock_history", "FFCLOCK_HISTORY_HEADER", &HISTORY_HEADER_WORDS);
    text += "_Static_assert(offsetof(struct ffclock_history, fine) == 8 * FFCLOCK_HISTORY_ENTRIES, \"fine\");\n";
    text += &assertions("ffclock_history_entry", "FFCLOCK_HISTORY_ENTRY", &ENTRY_WORDS);
    text += &assertions("ffclock_history_entry", "FFCLOCK_HISTORY_ENTRY", &[ENTRY_CHECK]);
    text += "_Static_assert(sizeof(struct ffclock_history_entry) == 8 * FFCLOCK_HISTORY_ENTRY_WORDS, \"an entry\");\n";
    text += "_Static_assert(sizeof(struct ffclock_history) == FFCLOCK_HISTORY_BYTES, \"size of a history\");\n";
    text + "#endif\n\n#endif\n"
}

fn structure(name: &str, members: &[(&str, usize)], rest: &str) -> String {
    let members: String = members.iter().map(|(member, _)| format!("    uint64_t {member};\n")).collect();
    format!("\nstruct {name} {{\n{members}{rest}}};\n")
}

fn assertions(name: &str, prefix: &str, members: &[(&str, usize)]) -> String {
    let assertion = |(member, _): &(&str, usize)| {
        let constant = format!("{prefix}_{}", member.to_uppercase());
        format!("_Static_assert(offsetof(struct {name}, {member}) == 8 * {constant}, \"{member}\");\n")
    };
    members.iter().map(assertion).collect()
}

#[test]
fn the_header_is_up_to_date() {
    c::compare_or_bless("include/ffclock_page.h", &written_header());
}

#[test]
fn no_word_of_a_slot_is_forgotten() {
    let mut places = SLOT_WORDS.map(|(_, place)| place);
    places.sort_unstable();
    assert!(places.into_iter().eq(0..layout::SLOT_WORDS));
}

/// Structures in C have no gaps: their members stand in the order of the words.
#[test]
fn the_words_of_headers_and_entries_stand_in_order() {
    for words in [&HEADER_WORDS[..], &HISTORY_HEADER_WORDS, &ENTRY_WORDS] {
        assert!(words.iter().map(|(_, place)| *place).eq(0..words.len()), "{words:?}");
    }
}

#[test]
fn a_c_program_reads_what_rust_wrote() {
    let directory = Directory::new();
    let (page, program) = (directory.join("page"), directory.join("page_reader"));
    let mut published = publication();
    published.server = Some(ServerIdentity { stratum: 2, reference_id: 0xabcd });
    let mut writer = writer(&page);
    writer.show_machine(Some(MachineMark { disruption: 7, generation: Some(9) }));
    writer.publish(&published);
    c::compile(&Path::new(c::CRATE).join("tests/c/page_reader.c"), &program, &[]);
    let output = c::run(&program, &page);
    assert_eq!(output.status.code(), Some(0));
    let estimate = published.estimate;
    let expected = format!(
        "counter {}\nutc_seconds 1800000000\nfraction 0\nperiod {}\nshift {}\nstatus 4\ntai_offset 37\n\
         counter_id {}\nepoch 1\nepoch_begin {}\nvalid_until {}\ndifference_bound {}\nserver 20000abcd\n\
         bound_strict {}\ndeciders 1\nnoise {}\nmachine 7\ngeneration 9\n",
        estimate.counter.raw(),
        estimate.period.mantissa(),
        estimate.period.shift(),
        ffclock_page::CounterId::CPU.code(),
        published.epoch_begin.raw(),
        published.valid_until.raw(),
        estimate.difference_bound.units(),
        units_up(estimate.bound.as_span()),
        units_up(estimate.noise.as_span()),
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

/// An error figure as a page has it.
fn units_up(error: Span) -> u128 {
    (error.units() as u128).div_ceil(1 << 32) + 1
}

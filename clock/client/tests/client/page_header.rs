//! The layout of the page for C: made from the constants of the crate page, and understood by C as by Rust.

use crate::c;
use crate::common::{Directory, publication, writer};
use ffclock_page::layout::{self, header, slot, state, tag, vote};
use ffclock_units::{ServerIdentity, Span};
use std::path::Path;

const HEADER_WORDS: [(&str, usize); 8] = [
    ("magic", header::MAGIC),
    ("version", header::VERSION),
    ("size", header::SIZE),
    ("boot_high", header::BOOT_HIGH),
    ("boot_low", header::BOOT_LOW),
    ("check", header::CHECK),
    ("tag", header::TAG),
    ("latest", header::LATEST),
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

fn constants() -> Vec<(String, String)> {
    let number = |name: &str, value: usize| (name.to_owned(), value.to_string());
    let long = |name: &str, value: u64| (name.to_owned(), format!("UINT64_C({value:#x})"));
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
    all.extend(HEADER_WORDS.map(|(name, place)| number(&format!("HEADER_{}", name.to_uppercase()), place)));
    all.extend(SLOT_WORDS.map(|(name, place)| number(&format!("SLOT_{}", name.to_uppercase()), place)));
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
        "/* The page of ffclockd for programs that read it without libffclock. docs/page.md gives the meanings.\n *\n \
         * Made from clock/page/src/layout.rs by clock/client/tests/page_header.rs; do not edit.\n *\n \
         * Places are counted in words of 64 bits, those of a slot from its beginning; fields by their lowest bit. */\n\
         #ifndef FFCLOCK_PAGE_H\n#define FFCLOCK_PAGE_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n",
    );
    text.extend(constants().into_iter().map(|(name, value)| format!("#define FFCLOCK_PAGE_{name} {value}\n")));
    text += &structure("ffclock_page_slot", &SLOT_WORDS, "");
    let slots = "    uint64_t reserved[FFCLOCK_PAGE_SLOTS - 8];\n    union {\n        struct ffclock_page_slot slot;\n        \
                 uint64_t words[FFCLOCK_PAGE_STRIDE];\n    } slots[2];\n";
    text += &structure("ffclock_page", &HEADER_WORDS, slots);
    text += "\n#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n";
    text += &assertions("ffclock_page", "HEADER", &HEADER_WORDS);
    text += "_Static_assert(offsetof(struct ffclock_page, slots) == 8 * FFCLOCK_PAGE_SLOTS, \"slots\");\n";
    text += &assertions("ffclock_page_slot", "SLOT", &SLOT_WORDS);
    text += "_Static_assert(sizeof(struct ffclock_page_slot) == 8 * FFCLOCK_PAGE_SLOT_WORDS, \"size of a slot\");\n";
    text + "#endif\n\n#endif\n"
}

fn structure(name: &str, members: &[(&str, usize)], rest: &str) -> String {
    let members: String = members.iter().map(|(member, _)| format!("    uint64_t {member};\n")).collect();
    format!("\nstruct {name} {{\n{members}{rest}}};\n")
}

fn assertions(name: &str, prefix: &str, members: &[(&str, usize)]) -> String {
    let assertion = |(member, _): &(&str, usize)| {
        let constant = format!("FFCLOCK_PAGE_{prefix}_{}", member.to_uppercase());
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

#[test]
fn a_c_program_reads_what_rust_wrote() {
    let directory = Directory::new();
    let (page, program) = (directory.join("page"), directory.join("page_reader"));
    let mut published = publication();
    published.server = Some(ServerIdentity { stratum: 2, reference_id: 0xabcd });
    let mut writer = writer(&page);
    writer.publish(&published);
    c::compile(&Path::new(c::CRATE).join("tests/c/page_reader.c"), &program, &[]);
    let output = c::run(&program, &page);
    assert_eq!(output.status.code(), Some(0));
    let estimate = published.estimate;
    let expected = format!(
        "counter {}\nutc_seconds 1800000000\nfraction 0\nperiod {}\nshift {}\nstatus 4\ntai_offset 37\n\
         counter_id {}\nepoch 1\nepoch_begin {}\nvalid_until {}\ndifference_bound {}\nserver 20000abcd\n\
         bound_strict {}\ndeciders 1\nnoise {}\n",
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

/* The page of ffclockd and the history beside it, for programs that read them without libffclock. docs/page.md
 * gives the meanings.
 *
 * Made from clock/page/src/layout.rs by clock/client/tests/client/page_header.rs; do not edit.
 *
 * Places are counted in words of 64 bits, those of a slot and of an entry from its beginning; fields by their
 * lowest bit. */
#ifndef FFCLOCK_PAGE_H
#define FFCLOCK_PAGE_H

#include <stddef.h>
#include <stdint.h>

#define FFCLOCK_PAGE_BYTES 4096
#define FFCLOCK_PAGE_VERSION 1
#define FFCLOCK_PAGE_MAGIC UINT64_C(0x6b636f6c636666)
#define FFCLOCK_PAGE_MISSING UINT64_C(0xffffffffffffffff)
#define FFCLOCK_PAGE_UNKNOWN UINT64_C(0xffffffffffffffff)
#define FFCLOCK_PAGE_UNKNOWN_NOISE UINT64_C(0xffffffffff)
#define FFCLOCK_PAGE_CHECK_SEED UINT64_C(0x6666636c6f636b31)
#define FFCLOCK_PAGE_SLOTS 32
#define FFCLOCK_PAGE_STRIDE 32
#define FFCLOCK_PAGE_SLOT_WORDS 32
#define FFCLOCK_PAGE_HEADER_MAGIC 0
#define FFCLOCK_PAGE_HEADER_VERSION 1
#define FFCLOCK_PAGE_HEADER_SIZE 2
#define FFCLOCK_PAGE_HEADER_BOOT_HIGH 3
#define FFCLOCK_PAGE_HEADER_BOOT_LOW 4
#define FFCLOCK_PAGE_HEADER_CHECK 5
#define FFCLOCK_PAGE_HEADER_TAG 6
#define FFCLOCK_PAGE_HEADER_LATEST 7
#define FFCLOCK_PAGE_HEADER_MACHINE 8
#define FFCLOCK_PAGE_HEADER_MACHINE_WATCHED 9
#define FFCLOCK_PAGE_HEADER_GENERATION 10
#define FFCLOCK_PAGE_HEADER_GENERATION_CHECK 11
#define FFCLOCK_PAGE_SLOT_SEQUENCE 0
#define FFCLOCK_PAGE_SLOT_STATE 1
#define FFCLOCK_PAGE_SLOT_COUNTER 2
#define FFCLOCK_PAGE_SLOT_WINDOW 3
#define FFCLOCK_PAGE_SLOT_UTC_SECONDS 4
#define FFCLOCK_PAGE_SLOT_FRACTION 5
#define FFCLOCK_PAGE_SLOT_PERIOD 6
#define FFCLOCK_PAGE_SLOT_BOUND 7
#define FFCLOCK_PAGE_SLOT_BOUND_PER_TICK 8
#define FFCLOCK_PAGE_SLOT_UNCERTAINTY 9
#define FFCLOCK_PAGE_SLOT_UNCERTAINTY_PER_TICK 10
#define FFCLOCK_PAGE_SLOT_TAG 11
#define FFCLOCK_PAGE_SLOT_CHECK_ABSOLUTE 12
#define FFCLOCK_PAGE_SLOT_EPOCH_BEGIN 13
#define FFCLOCK_PAGE_SLOT_VALID_UNTIL 14
#define FFCLOCK_PAGE_SLOT_DIFFERENCE_PERIOD 15
#define FFCLOCK_PAGE_SLOT_DIFFERENCE_BOUND 16
#define FFCLOCK_PAGE_SLOT_CHECK_DIFFERENCE 17
#define FFCLOCK_PAGE_SLOT_LEAP_AT 18
#define FFCLOCK_PAGE_SLOT_LEAP_OFFSETS 19
#define FFCLOCK_PAGE_SLOT_BOUND_GROWTH 20
#define FFCLOCK_PAGE_SLOT_UNCERTAINTY_GROWTH 21
#define FFCLOCK_PAGE_SLOT_SERVER 22
#define FFCLOCK_PAGE_SLOT_CHECK_ALL 23
#define FFCLOCK_PAGE_SLOT_BOUND_STRICT 24
#define FFCLOCK_PAGE_SLOT_BOUND_STRICT_PER_TICK 25
#define FFCLOCK_PAGE_SLOT_BOUND_STRICT_GROWTH 26
#define FFCLOCK_PAGE_SLOT_VOTE 27
#define FFCLOCK_PAGE_SLOT_CHECK_STRICT 28
#define FFCLOCK_PAGE_SLOT_DIFFERENCE_UNCERTAINTY 29
#define FFCLOCK_PAGE_SLOT_DIFFERENCE_SHORT 30
#define FFCLOCK_PAGE_SLOT_CHECK_MORE 31
#define FFCLOCK_PAGE_STATE_PERIOD_SHIFT 0
#define FFCLOCK_PAGE_STATE_DIFFERENCE_SHIFT 8
#define FFCLOCK_PAGE_STATE_STATUS 16
#define FFCLOCK_PAGE_STATE_TAI_OFFSET 32
#define FFCLOCK_PAGE_TAG_COUNTER_ID 0
#define FFCLOCK_PAGE_TAG_EPOCH 8
#define FFCLOCK_PAGE_VOTE_DECIDERS 0
#define FFCLOCK_PAGE_VOTE_TOLERATED 8
#define FFCLOCK_PAGE_VOTE_BELIEVED 16
#define FFCLOCK_PAGE_VOTE_NOISE 24

#define FFCLOCK_HISTORY_BYTES 790528
#define FFCLOCK_HISTORY_VERSION 1
#define FFCLOCK_HISTORY_MAGIC UINT64_C(0x74736968636666)
#define FFCLOCK_HISTORY_UNKNOWN UINT32_C(0xffffffff)
#define FFCLOCK_HISTORY_ENTRIES 512
#define FFCLOCK_HISTORY_ENTRY_WORDS 16
#define FFCLOCK_HISTORY_FINE_ENTRIES 4096
#define FFCLOCK_HISTORY_COARSE_ENTRIES 2048
#define FFCLOCK_HISTORY_FINE_SPAN_MS 900
#define FFCLOCK_HISTORY_COARSE_SPAN_MS 45000
#define FFCLOCK_HISTORY_HEADER_MAGIC 0
#define FFCLOCK_HISTORY_HEADER_VERSION 1
#define FFCLOCK_HISTORY_HEADER_SIZE 2
#define FFCLOCK_HISTORY_HEADER_BOOT_HIGH 3
#define FFCLOCK_HISTORY_HEADER_BOOT_LOW 4
#define FFCLOCK_HISTORY_HEADER_CHECK 5
#define FFCLOCK_HISTORY_HEADER_ORIGIN 6
#define FFCLOCK_HISTORY_HEADER_FINE_PER_TICK 7
#define FFCLOCK_HISTORY_HEADER_COARSE_PER_TICK 8
#define FFCLOCK_HISTORY_ENTRY_SEQUENCE 0
#define FFCLOCK_HISTORY_ENTRY_STATE 1
#define FFCLOCK_HISTORY_ENTRY_BEGIN 2
#define FFCLOCK_HISTORY_ENTRY_TICKS 3
#define FFCLOCK_HISTORY_ENTRY_TAI_SECONDS 4
#define FFCLOCK_HISTORY_ENTRY_FRACTION 5
#define FFCLOCK_HISTORY_ENTRY_PERIOD 6
#define FFCLOCK_HISTORY_ENTRY_BOUND 7
#define FFCLOCK_HISTORY_ENTRY_BOUND_PER_TICK 8
#define FFCLOCK_HISTORY_ENTRY_UNCERTAINTY 9
#define FFCLOCK_HISTORY_ENTRY_UNCERTAINTY_PER_TICK 10
#define FFCLOCK_HISTORY_ENTRY_LEAP_AT 11
#define FFCLOCK_HISTORY_ENTRY_NOISE 12
#define FFCLOCK_HISTORY_ENTRY_CHECK 15
#define FFCLOCK_HISTORY_STATE_PERIOD_SHIFT 0
#define FFCLOCK_HISTORY_STATE_STATUS 8
#define FFCLOCK_HISTORY_STATE_BOUND_SCALE 16
#define FFCLOCK_HISTORY_STATE_UNCERTAINTY_SCALE 24
#define FFCLOCK_HISTORY_STATE_OFFSET_BEFORE 32
#define FFCLOCK_HISTORY_STATE_OFFSET_AFTER 48

struct ffclock_page_slot {
    uint64_t sequence;
    uint64_t state;
    uint64_t counter;
    uint64_t window;
    uint64_t utc_seconds;
    uint64_t fraction;
    uint64_t period;
    uint64_t bound;
    uint64_t bound_per_tick;
    uint64_t uncertainty;
    uint64_t uncertainty_per_tick;
    uint64_t tag;
    uint64_t check_absolute;
    uint64_t epoch_begin;
    uint64_t valid_until;
    uint64_t difference_period;
    uint64_t difference_bound;
    uint64_t check_difference;
    uint64_t leap_at;
    uint64_t leap_offsets;
    uint64_t bound_growth;
    uint64_t uncertainty_growth;
    uint64_t server;
    uint64_t check_all;
    uint64_t bound_strict;
    uint64_t bound_strict_per_tick;
    uint64_t bound_strict_growth;
    uint64_t vote;
    uint64_t check_strict;
    uint64_t difference_uncertainty;
    uint64_t difference_short;
    uint64_t check_more;
};

struct ffclock_page {
    uint64_t magic;
    uint64_t version;
    uint64_t size;
    uint64_t boot_high;
    uint64_t boot_low;
    uint64_t check;
    uint64_t tag;
    uint64_t latest;
    uint64_t machine;
    uint64_t machine_watched;
    uint64_t generation;
    uint64_t generation_check;
    uint64_t reserved[FFCLOCK_PAGE_SLOTS - 12];
    union {
        struct ffclock_page_slot slot;
        uint64_t words[FFCLOCK_PAGE_STRIDE];
    } slots[2];
};

struct ffclock_history_entry {
    uint64_t sequence;
    uint64_t state;
    uint64_t begin;
    uint64_t ticks;
    uint64_t tai_seconds;
    uint64_t fraction;
    uint64_t period;
    uint64_t bound;
    uint64_t bound_per_tick;
    uint64_t uncertainty;
    uint64_t uncertainty_per_tick;
    uint64_t leap_at;
    uint64_t noise;
    uint64_t reserved[2];
    uint64_t check;
};

struct ffclock_history {
    uint64_t magic;
    uint64_t version;
    uint64_t size;
    uint64_t boot_high;
    uint64_t boot_low;
    uint64_t check;
    uint64_t origin;
    uint64_t fine_per_tick;
    uint64_t coarse_per_tick;
    uint64_t reserved[FFCLOCK_HISTORY_ENTRIES - 9];
    struct ffclock_history_entry fine[FFCLOCK_HISTORY_FINE_ENTRIES];
    struct ffclock_history_entry coarse[FFCLOCK_HISTORY_COARSE_ENTRIES];
};

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(offsetof(struct ffclock_page, magic) == 8 * FFCLOCK_PAGE_HEADER_MAGIC, "magic");
_Static_assert(offsetof(struct ffclock_page, version) == 8 * FFCLOCK_PAGE_HEADER_VERSION, "version");
_Static_assert(offsetof(struct ffclock_page, size) == 8 * FFCLOCK_PAGE_HEADER_SIZE, "size");
_Static_assert(offsetof(struct ffclock_page, boot_high) == 8 * FFCLOCK_PAGE_HEADER_BOOT_HIGH, "boot_high");
_Static_assert(offsetof(struct ffclock_page, boot_low) == 8 * FFCLOCK_PAGE_HEADER_BOOT_LOW, "boot_low");
_Static_assert(offsetof(struct ffclock_page, check) == 8 * FFCLOCK_PAGE_HEADER_CHECK, "check");
_Static_assert(offsetof(struct ffclock_page, tag) == 8 * FFCLOCK_PAGE_HEADER_TAG, "tag");
_Static_assert(offsetof(struct ffclock_page, latest) == 8 * FFCLOCK_PAGE_HEADER_LATEST, "latest");
_Static_assert(offsetof(struct ffclock_page, machine) == 8 * FFCLOCK_PAGE_HEADER_MACHINE, "machine");
_Static_assert(offsetof(struct ffclock_page, machine_watched) == 8 * FFCLOCK_PAGE_HEADER_MACHINE_WATCHED, "machine_watched");
_Static_assert(offsetof(struct ffclock_page, generation) == 8 * FFCLOCK_PAGE_HEADER_GENERATION, "generation");
_Static_assert(offsetof(struct ffclock_page, generation_check) == 8 * FFCLOCK_PAGE_HEADER_GENERATION_CHECK, "generation_check");
_Static_assert(offsetof(struct ffclock_page, slots) == 8 * FFCLOCK_PAGE_SLOTS, "slots");
_Static_assert(offsetof(struct ffclock_page_slot, sequence) == 8 * FFCLOCK_PAGE_SLOT_SEQUENCE, "sequence");
_Static_assert(offsetof(struct ffclock_page_slot, state) == 8 * FFCLOCK_PAGE_SLOT_STATE, "state");
_Static_assert(offsetof(struct ffclock_page_slot, counter) == 8 * FFCLOCK_PAGE_SLOT_COUNTER, "counter");
_Static_assert(offsetof(struct ffclock_page_slot, window) == 8 * FFCLOCK_PAGE_SLOT_WINDOW, "window");
_Static_assert(offsetof(struct ffclock_page_slot, utc_seconds) == 8 * FFCLOCK_PAGE_SLOT_UTC_SECONDS, "utc_seconds");
_Static_assert(offsetof(struct ffclock_page_slot, fraction) == 8 * FFCLOCK_PAGE_SLOT_FRACTION, "fraction");
_Static_assert(offsetof(struct ffclock_page_slot, period) == 8 * FFCLOCK_PAGE_SLOT_PERIOD, "period");
_Static_assert(offsetof(struct ffclock_page_slot, bound) == 8 * FFCLOCK_PAGE_SLOT_BOUND, "bound");
_Static_assert(offsetof(struct ffclock_page_slot, bound_per_tick) == 8 * FFCLOCK_PAGE_SLOT_BOUND_PER_TICK, "bound_per_tick");
_Static_assert(offsetof(struct ffclock_page_slot, uncertainty) == 8 * FFCLOCK_PAGE_SLOT_UNCERTAINTY, "uncertainty");
_Static_assert(offsetof(struct ffclock_page_slot, uncertainty_per_tick) == 8 * FFCLOCK_PAGE_SLOT_UNCERTAINTY_PER_TICK, "uncertainty_per_tick");
_Static_assert(offsetof(struct ffclock_page_slot, tag) == 8 * FFCLOCK_PAGE_SLOT_TAG, "tag");
_Static_assert(offsetof(struct ffclock_page_slot, check_absolute) == 8 * FFCLOCK_PAGE_SLOT_CHECK_ABSOLUTE, "check_absolute");
_Static_assert(offsetof(struct ffclock_page_slot, epoch_begin) == 8 * FFCLOCK_PAGE_SLOT_EPOCH_BEGIN, "epoch_begin");
_Static_assert(offsetof(struct ffclock_page_slot, valid_until) == 8 * FFCLOCK_PAGE_SLOT_VALID_UNTIL, "valid_until");
_Static_assert(offsetof(struct ffclock_page_slot, difference_period) == 8 * FFCLOCK_PAGE_SLOT_DIFFERENCE_PERIOD, "difference_period");
_Static_assert(offsetof(struct ffclock_page_slot, difference_bound) == 8 * FFCLOCK_PAGE_SLOT_DIFFERENCE_BOUND, "difference_bound");
_Static_assert(offsetof(struct ffclock_page_slot, check_difference) == 8 * FFCLOCK_PAGE_SLOT_CHECK_DIFFERENCE, "check_difference");
_Static_assert(offsetof(struct ffclock_page_slot, leap_at) == 8 * FFCLOCK_PAGE_SLOT_LEAP_AT, "leap_at");
_Static_assert(offsetof(struct ffclock_page_slot, leap_offsets) == 8 * FFCLOCK_PAGE_SLOT_LEAP_OFFSETS, "leap_offsets");
_Static_assert(offsetof(struct ffclock_page_slot, bound_growth) == 8 * FFCLOCK_PAGE_SLOT_BOUND_GROWTH, "bound_growth");
_Static_assert(offsetof(struct ffclock_page_slot, uncertainty_growth) == 8 * FFCLOCK_PAGE_SLOT_UNCERTAINTY_GROWTH, "uncertainty_growth");
_Static_assert(offsetof(struct ffclock_page_slot, server) == 8 * FFCLOCK_PAGE_SLOT_SERVER, "server");
_Static_assert(offsetof(struct ffclock_page_slot, check_all) == 8 * FFCLOCK_PAGE_SLOT_CHECK_ALL, "check_all");
_Static_assert(offsetof(struct ffclock_page_slot, bound_strict) == 8 * FFCLOCK_PAGE_SLOT_BOUND_STRICT, "bound_strict");
_Static_assert(offsetof(struct ffclock_page_slot, bound_strict_per_tick) == 8 * FFCLOCK_PAGE_SLOT_BOUND_STRICT_PER_TICK, "bound_strict_per_tick");
_Static_assert(offsetof(struct ffclock_page_slot, bound_strict_growth) == 8 * FFCLOCK_PAGE_SLOT_BOUND_STRICT_GROWTH, "bound_strict_growth");
_Static_assert(offsetof(struct ffclock_page_slot, vote) == 8 * FFCLOCK_PAGE_SLOT_VOTE, "vote");
_Static_assert(offsetof(struct ffclock_page_slot, check_strict) == 8 * FFCLOCK_PAGE_SLOT_CHECK_STRICT, "check_strict");
_Static_assert(offsetof(struct ffclock_page_slot, difference_uncertainty) == 8 * FFCLOCK_PAGE_SLOT_DIFFERENCE_UNCERTAINTY, "difference_uncertainty");
_Static_assert(offsetof(struct ffclock_page_slot, difference_short) == 8 * FFCLOCK_PAGE_SLOT_DIFFERENCE_SHORT, "difference_short");
_Static_assert(offsetof(struct ffclock_page_slot, check_more) == 8 * FFCLOCK_PAGE_SLOT_CHECK_MORE, "check_more");
_Static_assert(sizeof(struct ffclock_page_slot) == 8 * FFCLOCK_PAGE_SLOT_WORDS, "size of a slot");
_Static_assert(offsetof(struct ffclock_history, magic) == 8 * FFCLOCK_HISTORY_HEADER_MAGIC, "magic");
_Static_assert(offsetof(struct ffclock_history, version) == 8 * FFCLOCK_HISTORY_HEADER_VERSION, "version");
_Static_assert(offsetof(struct ffclock_history, size) == 8 * FFCLOCK_HISTORY_HEADER_SIZE, "size");
_Static_assert(offsetof(struct ffclock_history, boot_high) == 8 * FFCLOCK_HISTORY_HEADER_BOOT_HIGH, "boot_high");
_Static_assert(offsetof(struct ffclock_history, boot_low) == 8 * FFCLOCK_HISTORY_HEADER_BOOT_LOW, "boot_low");
_Static_assert(offsetof(struct ffclock_history, check) == 8 * FFCLOCK_HISTORY_HEADER_CHECK, "check");
_Static_assert(offsetof(struct ffclock_history, origin) == 8 * FFCLOCK_HISTORY_HEADER_ORIGIN, "origin");
_Static_assert(offsetof(struct ffclock_history, fine_per_tick) == 8 * FFCLOCK_HISTORY_HEADER_FINE_PER_TICK, "fine_per_tick");
_Static_assert(offsetof(struct ffclock_history, coarse_per_tick) == 8 * FFCLOCK_HISTORY_HEADER_COARSE_PER_TICK, "coarse_per_tick");
_Static_assert(offsetof(struct ffclock_history, fine) == 8 * FFCLOCK_HISTORY_ENTRIES, "fine");
_Static_assert(offsetof(struct ffclock_history_entry, sequence) == 8 * FFCLOCK_HISTORY_ENTRY_SEQUENCE, "sequence");
_Static_assert(offsetof(struct ffclock_history_entry, state) == 8 * FFCLOCK_HISTORY_ENTRY_STATE, "state");
_Static_assert(offsetof(struct ffclock_history_entry, begin) == 8 * FFCLOCK_HISTORY_ENTRY_BEGIN, "begin");
_Static_assert(offsetof(struct ffclock_history_entry, ticks) == 8 * FFCLOCK_HISTORY_ENTRY_TICKS, "ticks");
_Static_assert(offsetof(struct ffclock_history_entry, tai_seconds) == 8 * FFCLOCK_HISTORY_ENTRY_TAI_SECONDS, "tai_seconds");
_Static_assert(offsetof(struct ffclock_history_entry, fraction) == 8 * FFCLOCK_HISTORY_ENTRY_FRACTION, "fraction");
_Static_assert(offsetof(struct ffclock_history_entry, period) == 8 * FFCLOCK_HISTORY_ENTRY_PERIOD, "period");
_Static_assert(offsetof(struct ffclock_history_entry, bound) == 8 * FFCLOCK_HISTORY_ENTRY_BOUND, "bound");
_Static_assert(offsetof(struct ffclock_history_entry, bound_per_tick) == 8 * FFCLOCK_HISTORY_ENTRY_BOUND_PER_TICK, "bound_per_tick");
_Static_assert(offsetof(struct ffclock_history_entry, uncertainty) == 8 * FFCLOCK_HISTORY_ENTRY_UNCERTAINTY, "uncertainty");
_Static_assert(offsetof(struct ffclock_history_entry, uncertainty_per_tick) == 8 * FFCLOCK_HISTORY_ENTRY_UNCERTAINTY_PER_TICK, "uncertainty_per_tick");
_Static_assert(offsetof(struct ffclock_history_entry, leap_at) == 8 * FFCLOCK_HISTORY_ENTRY_LEAP_AT, "leap_at");
_Static_assert(offsetof(struct ffclock_history_entry, noise) == 8 * FFCLOCK_HISTORY_ENTRY_NOISE, "noise");
_Static_assert(offsetof(struct ffclock_history_entry, check) == 8 * FFCLOCK_HISTORY_ENTRY_CHECK, "check");
_Static_assert(sizeof(struct ffclock_history_entry) == 8 * FFCLOCK_HISTORY_ENTRY_WORDS, "an entry");
_Static_assert(sizeof(struct ffclock_history) == FFCLOCK_HISTORY_BYTES, "size of a history");
#endif

#endif

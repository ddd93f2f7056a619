//! Pages that are none, of other times, or damaged: refused with the right reason, and never a panic or a wrong
//! reading.
#![cfg(not(loom))]

mod common;

use common::{EPOCH, REFERENCE, publication};
use ffclock_page::layout::{PAGE_WORDS, SLOT_WORDS, SLOTS, STRIDE, header, slot};
use ffclock_page::{BootId, CounterId, PageError, PageMemory, ReadError, Reader, Verified, Writer, words};
use ffclock_units::{Counter, CounterEpoch, Ticks};
use proptest::prelude::*;

/// Where the slot of the first publication begins.
const FIRST: usize = SLOTS + STRIDE;

fn page() -> PageMemory {
    let page = PageMemory::new();
    Writer::open(&page, None).publish(&publication());
    page
}

fn set(page: &PageMemory, place: usize, value: u64) {
    words::store(page.as_ref(), place, value);
}

fn get(page: &PageMemory, place: usize) -> u64 {
    words::load(page.as_ref(), place)
}

#[test]
fn what_is_not_a_page_is_refused_with_the_reason() {
    let header = |place, value| {
        let page = page();
        set(&page, place, value);
        Reader::new(page.as_ref()).check_header(None)
    };
    assert_eq!(header(header::MAGIC, 0), Err(PageError::NotAPage));
    assert_eq!(header(header::VERSION, 2), Err(PageError::Version(2)));
    assert_eq!(header(header::SIZE, 8192), Err(PageError::Size(8192)));
    assert_eq!(header(header::BOOT_LOW, 5), Err(PageError::Corrupt));
    assert_eq!(Reader::new(PageMemory::new().as_ref()).check_header(None), Err(PageError::Empty));
    assert_eq!(Reader::new(page().as_ref()).check_header(None), Ok(()));
}

#[test]
fn a_page_of_another_boot_is_refused_and_a_writer_empties_it() {
    let (earlier, now) = (BootId::from_bits(1), BootId::from_bits(2));
    let page = PageMemory::new();
    let reader = Reader::new(page.as_ref());
    Writer::open(&page, earlier).publish(&publication());
    assert_eq!(reader.check_header(earlier), Ok(()));
    assert_eq!(reader.check_header(None), Ok(()));
    assert_eq!(reader.check_header(now), Err(PageError::OtherBoot));
    let mut writer = Writer::open(&page, now);
    assert_eq!(reader.check_header(now), Ok(()));
    assert_eq!(reader.snapshot(), Err(PageError::Empty));
    assert_eq!(reader.reading_at(REFERENCE, CounterId::Tsc), Err(ReadError::Page(PageError::Empty)));
    assert_eq!(reader.mark(), None);
    writer.publish(&publication());
    assert!(reader.snapshot().is_ok());
}

#[test]
fn a_restarted_writer_is_not_noticed() {
    let page = PageMemory::new();
    let reader = Reader::new(page.as_ref());
    let boot = BootId::from_bits(7);
    Writer::open(&page, boot).publish(&publication());
    let before = reader.snapshot();
    let mut writer = Writer::open(&page, boot);
    assert_eq!(reader.snapshot(), before);
    writer.publish(&publication());
    assert_eq!(reader.snapshot().map(|snapshot| snapshot.count()), Ok(2));
}

/// A writer killed after any of its stores: all of a slot's words are left as they may be.
#[test]
fn a_killed_writer_leaves_the_last_publication() {
    for stores in 0..=SLOT_WORDS {
        let page = page();
        let reader = Reader::new(page.as_ref());
        let before = reader.snapshot();
        set(&page, SLOTS, 3);
        (1..stores).for_each(|place| set(&page, SLOTS + place, 0xdead));
        assert_eq!(reader.snapshot(), before);
        let mut successor = Writer::open(&page, None);
        assert_eq!(reader.snapshot(), before);
        successor.publish(&publication());
        assert_eq!(reader.snapshot().map(|snapshot| snapshot.count()), Ok(2));
    }
}

#[test]
fn every_flipped_bit_of_a_slot_is_found() {
    for place in 0..SLOT_WORDS {
        for bit in 0..64 {
            let page = page();
            set(&page, FIRST + place, get(&page, FIRST + place) ^ (1 << bit));
            let error = Reader::new(page.as_ref()).snapshot().unwrap_err();
            let expected = if place == slot::SEQUENCE { PageError::Torn } else { PageError::Corrupt };
            assert_eq!(error, expected, "word {place} bit {bit}");
        }
    }
}

#[test]
fn a_reading_from_a_slot_with_a_flipped_bit_is_right_or_refused() {
    let counter = REFERENCE + Ticks::from_raw(99);
    let right = Reader::new(page().as_ref()).reading_of(counter, EPOCH);
    let lasted = Reader::new(page().as_ref()).elapsed_of([REFERENCE, counter], EPOCH);
    assert!(right.is_ok() && lasted.is_ok());
    for place in 0..SLOT_WORDS {
        for bit in 0..64 {
            let page = page();
            set(&page, FIRST + place, get(&page, FIRST + place) ^ (1 << bit));
            let reading = Reader::new(page.as_ref()).reading_of(counter, EPOCH);
            assert!(reading.is_err() || reading == right, "word {place} bit {bit}: {reading:?}");
            let interval = Reader::new(page.as_ref()).elapsed_of([REFERENCE, counter], EPOCH);
            assert!(interval.is_err() || interval == lasted, "word {place} bit {bit}: {interval:?}");
        }
    }
}

#[test]
fn a_flipped_bit_in_latest_is_an_error_until_the_next_publication() {
    for bit in 0..64 {
        let page = PageMemory::new();
        let mut writer = Writer::open(&page, None);
        writer.publish(&publication());
        set(&page, header::LATEST, get(&page, header::LATEST) ^ (1 << bit));
        assert!(Reader::new(page.as_ref()).snapshot().is_err(), "bit {bit}");
        writer.publish(&publication());
        assert!(Reader::new(page.as_ref()).snapshot().is_ok(), "bit {bit}");
    }
}

fn sum(sequence: u64, words: &[u64]) -> u64 {
    words.iter().fold(ffclock_page::layout::CHECK_SEED.wrapping_add(sequence), |sum, word| sum.wrapping_add(*word))
}

/// Everything that a reader can be asked.
fn ask_everything(page: &PageMemory, counter: Counter) {
    let reader = Reader::new(page.as_ref());
    let _ = reader.check_header(BootId::from_bits(1));
    let _ = reader.reading_at(counter, CounterId::Tsc);
    let epoch = reader.mark().map_or(CounterEpoch::from_raw(0), |mark| mark.epoch);
    let _ = (reader.reading_of(counter, epoch), reader.elapsed_of([counter, REFERENCE], epoch));
    let verified = Verified::none();
    let _ = (reader.verify(CounterId::Tsc, &verified), reader.plain_reading(&verified, || counter));
    let _ = reader.status_at(counter);
    if let Ok(snapshot) = reader.snapshot() {
        let _ = (snapshot.estimate(), snapshot.leap(), snapshot.server(), snapshot.tai_at(counter));
        let _ = (snapshot.reading_at(counter), snapshot.elapsed(counter, REFERENCE));
        let _ = (snapshot.vote(), snapshot.strict_reading_at(counter));
    }
}

proptest! {
    #[test]
    fn random_pages_never_panic(words in prop::collection::vec(any::<u64>(), PAGE_WORDS), counter in any::<u64>()) {
        let page = PageMemory::new();
        words.iter().enumerate().for_each(|(place, word)| set(&page, place, *word));
        ask_everything(&page, Counter::from_raw(counter));
        let mut writer = Writer::open(&page, None);
        writer.publish(&publication());
        prop_assert!(Reader::new(page.as_ref()).snapshot().is_ok());
    }

    /// The worst case: nonsense under a right sum.
    #[test]
    fn nonsense_that_adds_up_never_panics(
        mut words in prop::array::uniform29(prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just(1 << 63)]),
        state in prop::array::uniform4(0u8..70),
        counter in any::<u64>(),
    ) {
        let (sequence, offset) = (2, counter & 0xffff_ffff);
        words[slot::STATE] = u64::from(u32::from_le_bytes(state)) | offset << 32;
        words[slot::SEQUENCE] = sequence;
        words[slot::CHECK_ABSOLUTE] = sum(sequence, &words[1..slot::CHECK_ABSOLUTE]);
        let difference = [&words[1..2], &words[slot::TAG..=slot::TAG], &words[13..17]].concat();
        words[slot::CHECK_DIFFERENCE] = sum(sequence, &difference);
        words[slot::CHECK_ALL] = sum(sequence, &words[1..slot::CHECK_ALL]);
        words[slot::CHECK_STRICT] = sum(sequence, &words[slot::BOUND_STRICT..slot::CHECK_STRICT]);
        let page = page();
        words.iter().enumerate().for_each(|(place, word)| set(&page, FIRST + place, *word));
        ask_everything(&page, Counter::from_raw(counter));
    }
}

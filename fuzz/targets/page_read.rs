//! A page of any words, half of the time with sums that check: reading gives a reading or a reason, and the quick way to a reading
//! says the same as the careful one.
#![no_main]

use ffclock_page::layout::{self, PAGE_WORDS, header, slot};
use ffclock_page::words::{self, PageMemory};
use ffclock_page::{CounterId, Reader};
use ffclock_units::Counter;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fn check_sum(page: &[u64; PAGE_WORDS], begin: usize, check: usize) -> u64 {
    let covered = page[begin + 1..begin + check].iter();
    covered.fold(layout::CHECK_SEED.wrapping_add(page[begin]), |sum, word| sum.wrapping_add(*word))
}

fn page(input: &mut Unstructured<'_>) -> Result<[u64; PAGE_WORDS]> {
    let mut page = [0; PAGE_WORDS];
    for word in page.iter_mut().take(layout::SLOTS + 2 * layout::STRIDE) {
        *word = if input.ratio(1_u8, 3_u8)? { u64::from(input.arbitrary::<u8>()?) } else { input.arbitrary()? };
    }
    if input.arbitrary()? {
        let sequence = page[header::LATEST] & !1;
        let begin = layout::SLOTS + if sequence & 2 == 0 { 0 } else { layout::STRIDE };
        (page[header::LATEST], page[begin + slot::SEQUENCE]) = (sequence, sequence);
        page[begin + slot::PERIOD] |= 1 << 63;
        page[begin + slot::CHECK_HOT] = check_sum(&page, begin, slot::CHECK_HOT);
        page[begin + slot::CHECK_ALL] = check_sum(&page, begin, slot::CHECK_ALL);
    }
    Ok(page)
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Unstructured::new(bytes);
    let Ok(page) = page(&mut input) else { return };
    let memory = PageMemory::new();
    for (place, word) in page.iter().enumerate() {
        words::store(memory.as_ref(), place, *word);
    }
    let reader = Reader::new(memory.as_ref());
    let counter = Counter::from_raw(input.arbitrary().unwrap_or(0));
    let header = reader.check_header(None);
    let snapshot = reader.snapshot();
    let quick = reader.reading_at(counter, CounterId::Tsc);
    if let (Ok(snapshot), Ok(_)) = (&snapshot, header) {
        let careful = snapshot.reading_at(counter);
        if let (Ok(quick), Ok(careful)) = (&quick, &careful) {
            assert_eq!(quick, careful);
        }
        if let Ok(interval) = snapshot.elapsed(counter, Counter::from_raw(1)) {
            assert_eq!(snapshot.elapsed(Counter::from_raw(1), counter).map(|back| back.bound), Ok(interval.bound));
        }
    }
    assert!(snapshot.is_ok() || quick.is_err(), "a reading from a page that cannot be read");
});

//! Files of a page's size with anything in them: refused or read, but never a crash.

use crate::common::{Directory, publication, writer};
use ffclock::{Clock, OpenError, PageError, ReadError};
use proptest::prelude::*;
use std::path::Path;

fn use_everything(path: &Path) {
    if let Ok(clock) = Clock::open_at(path) {
        let (first, second) = (clock.stamp(), clock.stamp());
        let _ = (clock.now(), clock.now_unordered(), clock.at(first), clock.elapsed(first, second));
        let _ = (clock.status(), clock.snapshot());
    }
}

fn good_page(path: &Path) -> Vec<u8> {
    writer(path).publish(&publication());
    std::fs::read(path).expect("the page just made")
}

#[test]
fn a_publication_damaged_before_its_first_use_is_never_used() {
    let directory = Directory::new();
    let path = directory.join("page");
    let good = good_page(&path);
    let slot = 512..512 + 24 * 8;
    for bit in (slot.start * 8..slot.end * 8).step_by(7) {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bytes).unwrap();
        let reading = Clock::open_at(&path).unwrap().now();
        let refused = matches!(reading, Err(ReadError::Page(PageError::Corrupt | PageError::Torn)));
        assert!(refused, "bit {bit}: {reading:?}");
    }
}

#[test]
fn every_flipped_bit_of_the_header_is_refused_or_harmless() {
    let directory = Directory::new();
    let path = directory.join("page");
    let good = good_page(&path);
    let checked = 0..6 * 64;
    for bit in 0..8 * 64 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bytes).unwrap();
        let opened = Clock::open_at(&path);
        assert_eq!(matches!(opened, Err(OpenError::Page { .. })), checked.contains(&bit), "bit {bit}");
        use_everything(&path);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_files_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 4096)) {
        let directory = Directory::new();
        let path = directory.join("page");
        std::fs::write(&path, bytes).unwrap();
        use_everything(&path);
    }

    #[test]
    fn pages_with_random_flips_do_no_harm(flips in prop::collection::vec(0usize..4096 * 8, 1..20)) {
        let directory = Directory::new();
        let path = directory.join("page");
        let mut bytes = good_page(&path);
        flips.into_iter().for_each(|bit| bytes[bit / 8] ^= 1 << (bit % 8));
        std::fs::write(&path, &bytes).unwrap();
        use_everything(&path);
    }
}

//! The machine that the daemon runs in: restored, migrated or copied, or started again.

use super::*;
use std::os::unix::fs::FileExt;

/// The counter may be that of another host, whose rate differs by what counters differ: nothing narrower is believed
/// than at a first start. Here the generation counter alone changes, and turns over.
#[test]
fn after_a_disruption_the_rate_is_known_no_better_than_at_a_first_start() {
    let path = std::env::temp_dir().join(format!("ffclock-keeper-vmclock-{}", std::process::id()));
    let mut page = vec![0; 4096];
    page[..12].copy_from_slice(b"VCLK\x70\0\0\0\x01\0\xff\0");
    // The flag of the generation counter, which is at its highest value.
    page[25] = 1;
    page[104..112].fill(0xff);
    std::fs::write(&path, page).unwrap();
    let host = std::fs::File::options().write(true).open(&path).unwrap();
    let options = format!("counter = \"tsc\"\nvm_clock = \"{}\"", path.display());
    let restore = |_: &Case| host.write_all_at(&[0; 8], 104).unwrap();
    let said = format!("its marker was 0 of generation {} and is 0 of generation 0", u64::MAX);
    let kept = breaks_with(&options, "disruption", restore, &said).expect("the wander that was learned, if any");
    let whole = ffclock_estimator::ClassicConfig::default().nominal_error.as_ppm();
    assert!(kept.bound.as_ppm() >= 2.0 * whole, "no rate within the nominal range is excluded: {kept:?}");
    std::fs::remove_file(path).unwrap();
}

/// A stamp names its epoch, and one of an earlier boot may be of a later reading than any since: only the number shows
/// that it is not of this page.
#[test]
fn an_empty_page_begins_at_an_epoch_that_no_other_has_had() {
    let directory = Case::directory("first-epoch");
    std::fs::create_dir_all(&directory).unwrap();
    let first = || epoch_after(&SharedPage::create(&directory.join("page")).unwrap()).unwrap().raw();
    let firsts = [first(), first(), first()];
    assert!(firsts.iter().all(|epoch| (1..1 << 32).contains(epoch)), "it counts on in whole numbers: {firsts:?}");
    assert!(firsts[0] != firsts[1] && firsts[1] != firsts[2], "{firsts:?}");
    std::fs::remove_dir_all(directory).unwrap();
}

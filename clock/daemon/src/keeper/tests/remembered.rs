//! A rate that was remembered and is false.

use super::*;

/// What was published with it is false as well, so no old stamp is converted by it.
#[test]
fn lines_of_a_false_rate_are_not_kept() {
    let (mut case, _) = one_server("false-rate", "counter = \"tsc\"");
    case.run_until("a line", |status| used(status) >= 2);
    let stamp = case.keeper.host_counter.read();
    case.run_until("more lines", |status| used(status) >= 14);
    let (page, epoch) = (case.page(), case.keeper.host_counter.epoch);
    let bounds = |case: &Case| {
        let history = case.keeper.history.as_ref().unwrap().memory();
        let line = Reader::new(page.words());
        let kept = line.with_history(Some(history.words()));
        [line, kept].map(|reader| reader.reading_of(stamp, epoch).unwrap().bound.as_nanos_up())
    };
    let [by_line, kept] = bounds(&case);
    assert!(kept.abs_diff(by_line) > 1, "the lines of its time convert it: {kept} {by_line}");
    case.keeper.peers[0].note_false_memory();
    case.keeper.publish();
    let [by_line, kept] = bounds(&case);
    assert!(kept.abs_diff(by_line) <= 1, "the first true line converts it: {kept} {by_line}");
}

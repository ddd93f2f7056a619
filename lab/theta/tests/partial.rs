//! The results of an incomplete log: a gap of the log is no breach of the run.

mod common;

use common::Scratch;
use common::generator::{Generated, Random, Shape, generate};
use ffclock_theta::analysis::{Options, ThetaReport, analyse};
use ffclock_theta::log::{LogReader, LogWriter};
use ffclock_theta::record::Event;

/// A run of five correct processes over links that deliver.
fn whole_run() -> Generated {
    let mut random = Random(7);
    let shape = Shape {
        processes: 5,
        tolerated: 1,
        byzantine: 0,
        rounds: 200,
        duplication: 0,
        loss: 0,
        ..Shape::random(&mut random)
    };
    generate(shape, &mut random)
}

/// The report of a log that holds those of the events, and of which the reader says so.
fn report(generated: &Generated, holds: impl Fn(usize, &Event) -> bool, damage: &[String]) -> ThetaReport {
    let scratch = Scratch::new("partial");
    let mut writer = LogWriter::create(scratch.path(), &generated.run).expect("an empty directory");
    let events = generated.events.iter().enumerate().filter(|(number, event)| holds(*number, event));
    events.for_each(|(_, event)| writer.event(event).expect("the disk has room"));
    generated.clocks.iter().for_each(|&sample| writer.clock(sample));
    writer.finish().expect("the disk has room");
    let log = LogReader::open(scratch.path()).expect("just written");
    let tally = analyse(&log, Options::default(), &mut ()).expect("just written");
    ThetaReport::new(log.run(), &tally, damage)
}

#[test]
fn a_whole_log_is_judged() {
    let report = report(&whole_run(), |_, _| true, &[]);
    let conformance = &report.conformance;
    assert!(report.whole && conformance.kept && conformance.spread_bound.is_some(), "{conformance:?}");
    assert_eq!((conformance.breaches, conformance.not_judged, report.counts.forged), (0, 0, 0));
}

#[test]
fn what_a_process_without_a_log_sent_is_not_judged() {
    let report = report(&whole_run(), |_, event| event.process().index() != 2, &[]);
    let conformance = &report.conformance;
    assert!(
        !report.whole && report.remarks.iter().any(|remark| remark.starts_with("process 2 ")),
        "{:?}",
        report.remarks
    );
    assert!(conformance.kept && conformance.examples.is_empty(), "{conformance:?}");
    assert_eq!((conformance.breaches, report.counts.forged), (0, 0));
    // Every round of it was heard.
    assert!(conformance.not_judged >= 199, "{conformance:?}");
    // What it sent may have been longer under way than anything that is known.
    assert_eq!(conformance.spread_bound, None);
    assert!(conformance.switches > 700, "{conformance:?}");
}

#[test]
fn in_a_damaged_log_it_is_not_judged_whether_something_was_sent() {
    let generated = whole_run();
    let half = generated.events.len() / 2;
    let holds = |number: usize, event: &Event| number < half || event.process().index() != 2;
    let damaged = report(&generated, holds, &["stream x: part 1 is missing".to_owned()]);
    assert!(!damaged.whole && damaged.conformance.kept, "{:?}", damaged.conformance);
    assert!(damaged.conformance.not_judged > 50 && damaged.counts.forged == 0, "{:?}", damaged.conformance);
    // The same in a log that is marked as complete: then the message was perceived and never sent.
    let forged = report(&generated, holds, &[]);
    assert!(!forged.conformance.kept && forged.conformance.breaches > 50, "{:?}", forged.conformance);
    assert!(forged.conformance.examples[0].contains("from process 2, which never sent it"), "{:?}", forged.conformance);
    assert_eq!(forged.conformance.not_judged, 0);
    assert!(forged.counts.forged > 200, "{:?}", forged.counts);
}

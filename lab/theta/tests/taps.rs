//! Simulated runs whose messages are seen on their way: what was seen agrees with honest clocks, and names one that
//! contradicts it, although the messages alone do not show it.

mod common;

use common::Scratch;
use ffclock_theta::analysis::Clocks;
use ffclock_theta::certified::{CertifyError, CertifyOptions, TapCheck, TapPassage, certify, check_by_taps};
use ffclock_theta::log::{LogError, LogReader, WayInColumns};
use ffclock_theta::record::{Event, HostId, Round};
use ffclock_theta::simulate::{Simulation, Spec};
use ffclock_units::Rate;
use std::collections::BTreeMap;
use std::path::Path;

fn simulated(seed: u64) -> (Scratch, LogReader) {
    let scratch = Scratch::new("taps");
    let spec = Spec::parse("rounds = 200\n[clock]\nbound = \"20 us\"").expect("a scenario");
    let simulation = Simulation::new(&spec, Path::new("."), seed).expect("that makes sense");
    simulation.run_to_log(&scratch.path().join("run"), &mut |_| ()).expect("the disk has room");
    let log = LogReader::open(&scratch.path().join("run")).expect("just written");
    (scratch, log)
}

fn check(log: &LogReader, passages: &[TapPassage]) -> Result<TapCheck, CertifyError> {
    check_by_taps(log, passages, Rate::from_ppb(1000.0), &CertifyOptions::default())
}

/// Each message after a third and after two thirds of its way, by a clock that is right but for its origin.
fn passages(log: &LogReader) -> Vec<TapPassage> {
    let mut clocks = Clocks::new(log.run(), log.truth()).expect("of a simulation");
    let mut events = vec![];
    let keep = |event: &Event| {
        events.push((*event, clocks.time_ps(event.process().index(), event.at())));
        Ok::<_, LogError>(())
    };
    log.each_event(WayInColumns::Skip, |error| error, keep).expect("whole");
    let sent = |&(event, at): &(Event, i64)| match event {
        Event::Broadcast { process, round, .. } => Some(((round, process), at)),
        _ => None,
    };
    let sent: BTreeMap<_, _> = events.iter().filter_map(sent).collect();
    let host_of = |process: ffclock_theta::record::ProcessId| log.run().host_of[process.index()];
    let passage = |&(event, end): &(Event, i64)| {
        let Event::Perception { process: receiver, sender, round, .. } = event else { return vec![] };
        let begin = sent[&(round, sender)];
        let seen = |(host, part): (HostId, i64)| {
            let at_ns = ((begin + (end - begin) * part / 3) / 1000 + 1_000_000_000) as u64;
            TapPassage { host, sender, receiver, round, at_ns }
        };
        [(host_of(sender), 1), (host_of(receiver), 2)].map(seen).to_vec()
    };
    events.iter().flat_map(passage).collect()
}

/// What concerns host 2 from a round on, seen later by 150 us: its clock shows too little.
fn late(mut passages: Vec<TapPassage>, from: Round) -> Vec<TapPassage> {
    for passage in passages.iter_mut().filter(|passage| passage.host == HostId(2) && passage.round >= from) {
        passage.at_ns += 150_000;
    }
    passages
}

#[test]
fn taps_that_saw_nothing_of_the_log_prove_nothing() {
    let (_scratch, log) = simulated(1);
    let mut passages = passages(&log);
    passages.iter_mut().for_each(|passage| passage.round.0 += 1_000_000);
    for passages in [passages, vec![]] {
        assert!(matches!(check(&log, &passages), Err(CertifyError::NothingSeen)));
    }
}

#[test]
fn what_was_seen_agrees_with_honest_clocks_and_holds_the_truth() {
    for seed in 0..20 {
        let (_scratch, log) = simulated(seed);
        let check = check(&log, &passages(&log)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(check.messages > 1000 && (check.departures, check.arrivals) == (check.messages, check.messages));
        let by_truth = certify(&log.by_truth().expect("of a simulation"), &CertifyOptions::default());
        let truth = by_truth.expect("the truth does not lie").first.expect("there are switches");
        for certified in [&check.promised, &check.seen, &check.both] {
            let bounds = certified.first.expect("there are switches");
            let holds = bounds.low <= truth.high && truth.low <= bounds.high;
            assert!(holds, "seed {seed}: {truth:?} outside {bounds:?}");
        }
        let widths = [&check.promised, &check.seen, &check.both].map(|of| of.half_width_max_ps);
        // Without a promise, a clock is known as well as its nearest packets were seen.
        assert!(widths[2] <= widths[0].min(widths[1]) && widths[1] < 200_000_000, "seed {seed}: {widths:?}");
    }
}

#[test]
fn a_clock_that_contradicts_what_was_seen_is_named() {
    for seed in 0..20 {
        let (_scratch, log) = simulated(seed);
        certify(&log, &CertifyOptions::default()).expect("by the messages alone it is well");
        // All the time: its promise is broken. From the middle on: it contradicts itself.
        for from in [1, 100] {
            match check(&log, &late(passages(&log), Round(from))) {
                Err(CertifyError::Lied(lie)) => assert_eq!(lie.suspects, ["host2"], "seed {seed}, from {from}"),
                other => panic!("seed {seed}, from {from}: {other:?}"),
            }
        }
    }
}

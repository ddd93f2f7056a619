//! What a simulated world's own clocks showed, against what the replay of its trace shows at the same readings of the
//! counter: bit by bit.

use ffclock_estimator::{Algorithm, Configs};
use ffclock_replay::{Detail, ReplayPlan, ReplayTrack};
use ffclock_sim::{ReadingClaims, Run, Scenario, ShownReading, Sinks};
use ffclock_trace::{Recorder, TraceReader, TraceRow};
use ffclock_units::{Counter, LeapTable, Moment, Tai, TaiReading};
use std::cell::RefCell;

/// A clock at one reading.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shown {
    counter: Counter,
    time: Moment<Tai>,
    claims: ReadingClaims,
}

/// What a world lived through, in its order.
enum Lived {
    /// A row of the trace was written.
    Row,
    /// The clock was read.
    Read(Shown),
}

/// The trace of a run, and what its clock of this name showed meanwhile.
fn live(run: &Run, clock: &str) -> (Vec<u8>, Vec<Lived>) {
    let mut trace = Vec::new();
    let lived = RefCell::new(Vec::new());
    let header = run.trace_header();
    let begin = LeapTable::built_in().tai_from_utc(header.created.expect("a run says when its world began"));
    let mut recorder = Recorder::to_writer(&mut trace, &header).expect("a header that fits");
    let mut rows = |row: &TraceRow| {
        recorder.append(row).expect("written to memory");
        lived.borrow_mut().push(Lived::Row);
    };
    let mut samples = |sample: &ShownReading| {
        let claims = sample.claims.expect("a feed-forward clock claims its errors");
        let time = begin + sample.at + sample.error.as_span();
        lived.borrow_mut().push(Lived::Read(Shown { counter: sample.counter, time, claims }));
    };
    let cast = ffclock_sim::Cast { clocks: &[clock], learned: &ffclock_estimator::LearnedConfig::default() };
    run.execute_as(&cast, Sinks { rows: Some(&mut rows), samples: Some(&mut samples) });
    drop(recorder);
    (trace, lived.into_inner())
}

/// What the replay shows at a reading.
fn shown(track: &ReplayTrack, counter: Counter) -> Option<Shown> {
    let estimate = track.published()?;
    let TaiReading { time, uncertainty, noise, bound, .. } = estimate.at(counter);
    let claims =
        ReadingClaims { bound, strict: None, uncertainty, noise, difference_period: estimate.difference_period };
    Some(Shown { counter, time, claims })
}

/// Compares every reading; returns how many there were, and in how many epochs.
fn compare(name: &str, clock: &str) -> (usize, u64) {
    let scenario = Scenario::named(name).expect("built in");
    let (trace, lived) = live(&Run { name, scenario: &scenario, seed: 3 }, clock);
    let reader = TraceReader::from_reader(Box::new(std::io::Cursor::new(trace))).expect("a trace that reads");
    let plan = ReplayPlan {
        algorithm: clock.parse::<Algorithm>().expect("an algorithm"),
        configs: Configs::default(),
        server: None,
        nominal: None,
        from: None,
        detail: Detail::EveryExchange,
        in_retrospect: false,
        skips_bad_rows: false,
    };
    let mut track = ReplayTrack::new(
        plan.estimator(reader.header().nominal.expect("a simulated counter"), None),
        plan.from,
        plan.detail,
    );
    let mut rows = reader.map(|row| row.expect("a row that reads"));
    let mut readings = 0;
    for lived in lived {
        match lived {
            Lived::Row => _ = track.feed(&rows.next().expect("every row is in the trace")),
            Lived::Read(seen) => {
                assert_eq!(shown(&track, seen.counter), Some(seen), "{clock} in {name}");
                readings += 1;
            }
        }
    }
    assert!(rows.next().is_none());
    (readings, track.epochs())
}

#[test]
fn a_replay_shows_what_the_world_s_own_clocks_showed() {
    for (name, epochs) in [("suspend-resets", 2), ("leap-second", 1), ("loss-40", 1), ("start-100ppm", 1)] {
        for clock in ["classic", "learned"] {
            let (readings, seen) = compare(name, clock);
            assert!(readings > 500 && seen == epochs, "{clock} in {name}: {readings} readings, {seen} epochs");
        }
    }
}

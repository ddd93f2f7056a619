//! The story of a peak against the analysis, and against runs whose cause is known.

mod common;

use common::Scratch;
use common::generator::{Generated, Random, Shape, generate};
use ffclock_theta::analysis::{Options, analyse};
use ffclock_theta::log::{LogReader, LogWriter};
use ffclock_theta::record::{Event, Round, WayIn};
use ffclock_theta::why::{SlowPart, WhyError, why};
use ffclock_units::Counter;

fn written(generated: &Generated, scratch: &Scratch) -> LogReader {
    let place = scratch.path().join("log");
    let mut writer = LogWriter::create(&place, &generated.run).expect("a new directory");
    generated.events.iter().for_each(|event| writer.event(event).expect("room"));
    generated.clocks.iter().for_each(|sample| writer.clock(*sample));
    writer.finish().expect("room");
    LogReader::open(&place).expect("just written")
}

#[test]
fn the_story_is_that_of_omega() {
    let mut random = Random(31);
    let mut stories = 0;
    for _ in 0..100 {
        let shape = Shape { byzantine: 0, ..Shape::random(&mut random) };
        let scratch = Scratch::new("why");
        let log = written(&generate(shape, &mut random), &scratch);
        let tally = analyse(&log, Options::default(), &mut ()).expect("a log");
        let Some(omega) = tally.first.omega else {
            assert!(matches!(why(&log, None), Err(WhyError::Empty)));
            continue;
        };
        let story = why(&log, None).expect("a log");
        assert_eq!((story.ratio, story.at_ps, story.round), (omega.ratio.as_f64(), omega.at_ps, omega.round));
        if let Some(slow) = story.slow.filter(|_| story.ratio > 1.0) {
            let (over, under) = omega.ratio.parts();
            assert_eq!((slow.delay_ps() as u64, story.relevant_ps as u64), (over, under));
            let last = story.contributors.last().expect("a tau_r- has messages");
            assert_eq!(last.delay_ps(), story.relevant_ps);
            stories += 1;
        }
    }
    assert!(stories >= 50, "{stories} stories");
}

/// A run in which messages take about 100 ticks, but 900 more where something is slow, by round, sender and receiver.
fn slow_run(name: &str, is_slow: impl Fn(u64, u32, u32) -> bool) -> (Scratch, LogReader) {
    let shape = Shape {
        processes: 4,
        tolerated: 1,
        byzantine: 0,
        rounds: 100,
        delay_min: 100,
        delay_spread: 20,
        wait: 0,
        loss: 0,
        duplication: 0,
        disorder: 0,
    };
    let mut generated = generate(shape, &mut Random(8));
    generated.run.disorder_ps = 10_000_000;
    for event in &mut generated.events {
        if let Event::Perception { process, sender, round, at, way_in } = event
            && is_slow(round.0, sender.0, process.0)
        {
            *way_in = WayIn { kernel: Some(*at), received: None };
            *at = Counter::from_raw(at.raw().wrapping_add(900));
        }
    }
    let scratch = Scratch::new(name);
    let log = written(&generated, &scratch);
    (scratch, log)
}

#[test]
fn a_slow_sender_link_and_receiver_are_distinguished() {
    type IsSlow = fn(u64, u32, u32) -> bool;
    let cases: [(&str, IsSlow, SlowPart); 3] = [
        ("sender", |round, sender, _| round == 50 && sender == 2, SlowPart::Sender),
        // A receiver that stands still holds up the messages of many rounds.
        ("receiver", |round, _, receiver| (45..=60).contains(&round) && receiver == 2, SlowPart::Receiver),
        ("link", |round, sender, receiver| (round, sender, receiver) == (50, 2, 3), SlowPart::Alone),
    ];
    for (name, is_slow, expected) in cases {
        let (_scratch, log) = slow_run(name, is_slow);
        let story = why(&log, None).expect("a log");
        let slow = story.slow.expect("in transit");
        assert_eq!(story.slow_part, expected, "{name}: {story:?}");
        assert!(is_slow(slow.round.0, slow.sender.0, slow.receiver.0), "{name}: {slow:?}");
        let stage = story.longest_stage().expect("the kernel's stamp parts it");
        assert_eq!((stage.from, stage.to), ("receive stamp of the kernel", "perception"), "{name}: {story:?}");
    }
}

#[test]
fn a_round_can_be_chosen() {
    let (_scratch, log) = slow_run("chosen", |round, sender, receiver| (round, sender, receiver) == (50, 2, 3));
    let story = why(&log, Some(Round(20))).expect("a round");
    assert_eq!(story.round, Round(20));
    assert!(story.ratio < 2.0, "{story:?}");
    assert!(matches!(why(&log, Some(Round(1_000_000))), Err(WhyError::NoSuchRound(1_000_000))));
}

//! The story of a peak against the analysis, and against runs whose cause is known.

mod common;

use common::Scratch;
use common::generator::{Generated, Random, Shape, generate};
use ffclock_theta::analysis::{Options, SwitchStamping, TimeRange, analyse};
use ffclock_theta::log::{LogReader, LogWriter, WayInColumns};
use ffclock_theta::record::{Event, Round, WayIn};
use ffclock_theta::why::{OwnThread, SchedTrace, SlowPart, WhyError, WhyOptions, who_ran, why};
use ffclock_units::Counter;

fn written(generated: &Generated, scratch: &Scratch) -> LogReader {
    let place = scratch.path().join("log");
    let mut writer = LogWriter::create(&place, &generated.run).expect("a new directory");
    generated.events.iter().for_each(|event| writer.event(event).expect("room"));
    generated.clocks.iter().for_each(|sample| writer.clock(*sample));
    writer.finish().expect("room");
    LogReader::open(&place).expect("just written")
}

/// All of a run, and its middle half.
fn ranges(log: &LogReader) -> [TimeRange; 2] {
    let tally = analyse(log, Options::default(), &mut ()).expect("a log");
    let (first, last) = tally.span_ps.expect("it has events");
    let quarter = (last - first) / 4;
    [TimeRange::ALL, TimeRange { after_ps: first + quarter, until_ps: last - quarter }]
}

#[test]
fn the_story_is_that_of_omega() {
    let mut random = Random(31);
    for (number, least) in [(0, 50), (1, 25)] {
        for stamping in [SwitchStamping::AfterBroadcast, SwitchStamping::BeforeBroadcast] {
            let mut stories = 0;
            for _ in 0..100 {
                let shape = Shape { byzantine: 0, ..Shape::random(&mut random) };
                let scratch = Scratch::new("why");
                let log = written(&generate(shape, &mut random), &scratch);
                stories += usize::from(is_that_of_omega(&log, stamping, ranges(&log)[number]));
            }
            assert!(stories >= least, "{stories} stories, {stamping:?}, {number}");
        }
    }
}

/// Whether there is a ratio above 1 to explain.
fn is_that_of_omega(log: &LogReader, stamping: SwitchStamping, range: TimeRange) -> bool {
    let tally = analyse(log, Options { stamping, range, ..Options::default() }, &mut ()).expect("a log");
    let answer = why(log, &WhyOptions { stamping, range, round: None });
    let Some(omega) = tally.first.omega else {
        assert!(matches!(answer, Err(WhyError::Empty)));
        return false;
    };
    let story = answer.expect("a log");
    assert_eq!((story.ratio, story.at_ps, story.round), (omega.ratio.as_f64(), omega.at_ps, omega.round));
    let Some(slow) = story.slow.filter(|_| story.ratio > 1.0) else { return false };
    let (over, under) = omega.ratio.parts();
    assert_eq!((slow.delay_ps() as u64, story.relevant_ps as u64), (over, under));
    let last = story.contributors.last().expect("a tau_r- has messages");
    assert_eq!(last.delay_ps(), story.relevant_ps);
    true
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
        let story = why(&log, &WhyOptions::default()).expect("a log");
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
    let of = |round| WhyOptions { round: Some(Round(round)), ..WhyOptions::default() };
    let story = why(&log, &of(20)).expect("a round");
    assert_eq!(story.round, Round(20));
    assert!(story.ratio < 2.0, "{story:?}");
    assert!(matches!(why(&log, &of(1_000_000)), Err(WhyError::NoSuchRound(1_000_000))));
    let later = TimeRange { after_ps: story.at_ps, ..TimeRange::ALL };
    let left_out = why(&log, &WhyOptions { range: later, ..of(20) });
    assert!(matches!(left_out, Err(WhyError::NoSuchRound(20))), "{left_out:?}");
}

/// A trace in which a thread runs whenever `process` takes a stamp, on processor 1, and a load runs on processor 0.
fn trace(log: &LogReader, process: u32) -> SchedTrace {
    let mut stamps = vec![];
    let take = |event: &Event| {
        if event.process().0 == process {
            stamps.push(event.at().raw());
        }
        Ok(())
    };
    log.each_event(WayInColumns::Skip, |error| error, take).expect("a log");
    stamps.sort_unstable();
    stamps.dedup();
    let switch = |processor, at: u64, next: &str| {
        format!(
            " x-1 [{processor}] d..2. {at}: sched_switch: prev_comm=x prev_pid=1 ==> next_comm={next} next_pid=7 next_prio=120\n"
        )
    };
    let (first, last) = (stamps[0] - 10, stamps[stamps.len() - 1] + 10_000_000);
    let mut text = switch(0, first, "load") + &switch(1, first, "idle");
    for &at in &stamps {
        text += &switch(1, at, "own");
        text += &switch(1, at + 1, "idle");
    }
    text += &(switch(0, last, "load") + &switch(1, last, "idle"));
    SchedTrace::parse(&text).expect("switches")
}

/// A trace of another host than that of the slow process has another counter.
#[test]
fn who_ran_is_of_the_host_of_the_slow_process() {
    type IsSlow = fn(u64, u32, u32) -> bool;
    let cases: [(&str, IsSlow); 2] = [
        ("ran-sender", |round, sender, _| round == 50 && sender == 2),
        ("ran-receiver", |round, _, receiver| (45..=60).contains(&round) && receiver == 2),
    ];
    for (name, is_slow) in cases {
        let (_scratch, log) = slow_run(name, is_slow);
        let story = why(&log, &WhyOptions::default()).expect("a log");
        let ran = who_ran(&log, &story, &trace(&log, 2)).expect("it reaches over all").expect("a slow message");
        assert_eq!(ran.process.0, 2, "{name}");
        assert_eq!(ran.own, Some(OwnThread { thread: "own-7".to_owned(), processor: 1 }), "{name}");
        assert_eq!(ran.not_known, [], "{name}");
        let load = ran.ran.first().expect("processor 0");
        assert_eq!((load.processor, load.thread.as_str(), load.share), (0, "load-7", 1.0), "{name}");
    }
}

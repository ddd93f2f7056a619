//! What is written comes back; what is damaged is named.

mod common;

use common::Scratch;
use common::generator::Random;
use ffclock_theta::analysis::{AnalysisError, Options, analyse};
use ffclock_theta::log::{EventColumns, EventReader, EventWriter, LogReader, LogWriter, WayInColumns};
use ffclock_theta::record::{
    ClockSample, Event, FaultKind, HostId, LogOrigin, ProcessId, RecordedForm, Round, RunDescription, RunFault,
    RunHost, SwitchEvent, SwitchRule, WayIn,
};
use ffclock_units::{Counter, Period, Rate};
use std::collections::BTreeMap;
use std::fs;

fn run() -> RunDescription {
    let fault = RunFault {
        kind: FaultKind::TwoFaced,
        process: Some(ProcessId(3)),
        receiver: None,
        host: None,
        from_ps: None,
        until_ps: Some(7),
    };
    RunDescription {
        origin: LogOrigin::Simulated,
        form: RecordedForm::Repaired,
        processes: 4,
        tolerated: 1,
        delay_ps: 1_000_000_000,
        delay_min_ps: 0,
        disorder_ps: 0,
        hosts: (0..4).map(|host| RunHost { name: format!("h{host}"), counter: "simulated".to_owned() }).collect(),
        host_of: (0..4).map(HostId).collect(),
        faults: vec![fault],
        settings: BTreeMap::from([("seed".to_owned(), "1".to_owned())]),
        unrecorded: 0,
    }
}

fn event(number: u64) -> Event {
    let (process, round, at) =
        (ProcessId((number % 4) as u32), Round(number / 8), Counter::from_raw((u64::MAX - 7).wrapping_add(number)));
    let way_in = WayIn { kernel: number.is_multiple_of(3).then_some(at), received: None };
    let (from, to) = (Round(round.0), Round(round.0 + 1));
    match number % 5 {
        0 => Event::Broadcast { process, round, at },
        1 => Event::Transmission { process, receiver: ProcessId(2), round, at },
        2 => Event::Perception { process, sender: ProcessId(1), round, at, way_in },
        3 => Event::Switch(SwitchEvent { process, from, to, at, decided: at, rule: SwitchRule::Advance }),
        _ => Event::Switch(SwitchEvent {
            process,
            from,
            to,
            at,
            decided: Counter::from_raw(number),
            rule: SwitchRule::CatchUp,
        }),
    }
}

fn sample() -> ClockSample {
    ClockSample {
        host: HostId(2),
        counter: Counter::from_raw(u64::MAX),
        time_ps: -5,
        bound_ps: 1_000_000,
        period: Period::from_hertz(3e9).expect("a usual frequency"),
        drift_bound: Rate::from_ppm(0.1),
    }
}

fn written(scratch: &Scratch, events: u64) {
    let mut writer = LogWriter::create(scratch.path(), &run()).expect("an empty directory");
    for number in 0..events {
        writer.event(&event(number)).expect("the disk has room");
    }
    writer.clock(sample());
    writer.finish().expect("the disk has room");
}

fn read(log: &LogReader, with_way_in: WayInColumns) -> Vec<Event> {
    let mut events = Vec::new();
    for part in log.streams().iter().flat_map(|stream| &stream.parts) {
        let mut reader = EventReader::open(part, with_way_in).expect("just written");
        let mut batch = EventColumns::default();
        while reader.next_batch(&mut batch).expect("just written") {
            events.extend(reader.events(&batch).map(|event| event.expect("just written")));
        }
    }
    events
}

#[test]
fn a_log_comes_back_bit_by_bit() {
    let scratch = Scratch::new("round-trip");
    written(&scratch, 300_000);
    let log = LogReader::open(scratch.path()).expect("just written");
    assert_eq!(log.run(), &run());
    assert_eq!(log.clocks(), [sample()]);
    assert_eq!(log.truth(), []);
    assert!(log.damage().is_empty(), "{:?}", log.damage());
    assert_eq!(read(&log, WayInColumns::Read), (0..300_000).map(event).collect::<Vec<_>>());
    assert_eq!(log.run().correct(), [true, true, true, false]);
}

#[test]
fn stamps_on_the_way_in_are_left_out_on_request() {
    let scratch = Scratch::new("way-in");
    written(&scratch, 20);
    let log = LogReader::open(scratch.path()).expect("just written");
    let stamped = |event: &Event| matches!(event, Event::Perception { way_in, .. } if *way_in != WayIn::default());
    assert!(read(&log, WayInColumns::Read).iter().any(stamped));
    assert!(!read(&log, WayInColumns::Skip).iter().any(stamped));
}

#[test]
fn a_killed_writer_loses_its_last_part_only() {
    let scratch = Scratch::new("killed");
    written(&scratch, (1 << 20) + 5);
    let last = scratch.path().join("events-all-00001.parquet");
    let bytes = fs::read(&last).expect("the second part");
    fs::write(&last, &bytes[..bytes.len() - 3]).expect("cut");
    let log = LogReader::open(scratch.path()).expect("the first part is whole");
    assert_eq!(log.damage().len(), 1);
    assert!(log.damage()[0].contains("events-all-00001.parquet"), "{:?}", log.damage());
    assert_eq!(read(&log, WayInColumns::Skip).len(), 1 << 20);
}

#[test]
fn a_log_that_was_never_finished_says_so() {
    let scratch = Scratch::new("unfinished");
    let writer = LogWriter::create(scratch.path(), &run()).expect("an empty directory");
    drop(writer);
    let error = LogReader::open(scratch.path()).expect_err("no clocks");
    assert!(error.to_string().contains("clocks.parquet"), "{error}");
    assert!(LogWriter::create(scratch.path(), &run()).is_err(), "a log is never overwritten");
}

#[test]
fn a_run_that_contradicts_itself_is_refused() {
    let refused = |change: &dyn Fn(&mut RunDescription), word: &str| {
        let scratch = Scratch::new("contradiction");
        let mut run = run();
        change(&mut run);
        LogWriter::create(scratch.path(), &run).expect("an empty directory").finish().expect("the disk has room");
        let error = LogReader::open(scratch.path()).expect_err("refused").to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(&|run| run.tolerated = 2, "3f+1");
    refused(&|run| run.host_of = vec![], "host_of");
    refused(&|run| run.host_of[1] = HostId(9), "host 9");
    refused(&|run| run.faults[0].process = Some(ProcessId(4)), "process 4");
    refused(&|_| {}, "no readable event file");
}

#[test]
fn streams_have_plain_names() {
    let scratch = Scratch::new("names");
    assert!(EventWriter::create(scratch.path(), "../elsewhere").is_err());
    assert!(EventWriter::create(scratch.path(), "").is_err());
    assert!(EventWriter::create(scratch.path(), "rank_3").is_ok());
}

#[test]
fn damaged_files_give_errors_and_nothing_worse() {
    let scratch = Scratch::new("damage");
    written(&scratch, 3000);
    let file = scratch.path().join("events-all-00000.parquet");
    let good = fs::read(&file).expect("just written");
    let mut refused = 0;
    for seed in 0..1500 {
        let mut random = Random(seed);
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(8) {
            // Half of the damage goes to the last kilobyte, where the file says what it holds.
            let range = if random.one_in(2) { bytes.len() as u64 } else { 1024 };
            let place = bytes.len() - 1 - random.below(range) as usize;
            bytes[place] = random.next() as u8;
        }
        if random.one_in(10) {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        fs::write(&file, &bytes).expect("the disk has room");
        let outcome = LogReader::open(scratch.path()).map_err(AnalysisError::from);
        refused += u32::from(outcome.and_then(|log| analyse(&log, Options::default(), &mut ())).is_err());
    }
    assert!(refused > 100, "{refused}");
}

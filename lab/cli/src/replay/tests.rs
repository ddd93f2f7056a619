//! Whole replays of small synthetic traces whose figures can be reasoned out.

mod same_bits;

use super::*;
use clap::Parser;
use ffclock_units::{Counter, CounterEpoch, LeapTable, Moment};
use std::fmt::Write;

#[derive(Parser)]
struct Only {
    #[command(flatten)]
    args: Args,
}

fn args(line: &[&str]) -> Args {
    Only::try_parse_from(["replay", "-"].iter().chain(line)).unwrap().args
}

/// A counter of 1 GHz that runs 20 ppm fast; delays of a constant path with a little noise; a poll every 16 s.
struct World {
    forward_ns: u64,
    backward_ns: u64,
    rows: u64,
    truth_late_ns: u64,
}

const QUIET: World = World { forward_ns: 150_000, backward_ns: 150_000, rows: 600, truth_late_ns: 0 };

const HEADER: &str = "seq,Ta,Tb_ns,Te_ns,Tf,true_send_ns,true_recv_ns,epoch,server\n";

fn counter(nanos: u64) -> u64 {
    7_000_000_000 + nanos + nanos / 50_000
}

impl World {
    fn row(&self, number: u64) -> String {
        const UTC: u64 = 1_700_000_000_000_000_000;
        let noise = |factor: u64| number * factor % 17 * 500;
        let sent = number * 16_000_000_000;
        let server_in = sent + self.forward_ns + noise(7);
        let server_out = server_in + 10_000;
        let received = server_out + self.backward_ns + noise(11);
        format!(
            "{number},{},{},{},{},{},{},0,near\n",
            counter(sent),
            UTC + server_in,
            UTC + server_out,
            counter(received),
            UTC + sent,
            UTC + received + self.truth_late_ns
        )
    }

    fn trace(&self) -> String {
        (0..self.rows).fold(HEADER.to_owned(), |text, number| text + &self.row(number))
    }
}

fn replay(trace: &str, line: &[&str]) -> Result<Report, Failure> {
    let args = args(line);
    let reader = TraceReader::from_reader(Box::new(std::io::Cursor::new(trace.to_owned()))).unwrap();
    Replay::new(&args, reader, configs(&args)?)?.run(Instant::now()).map(|(report, _)| report)
}

#[test]
fn a_quiet_world_is_followed_and_accounted_for() {
    let report = replay(&QUIET.trace(), &[]).unwrap();
    assert_eq!((report.exchanges, report.lost, report.used, report.epochs), (600, 0, 600, 1));
    assert!((report.span_s.unwrap() - 599.0 * 16.0).abs() < 0.1);
    assert_eq!(report.nominal_source, NominalSource::Estimated);
    assert!((report.period_s.unwrap() / (1e-9 / (1.0 + 20e-6)) - 1.0).abs() < 1e-8);
    assert!(report.rate_error_ppm.unwrap().abs() < 0.01);
    assert!((report.floor_s.unwrap() - 300e-6).abs() < 5e-6, "{:?}", report.floor_s);
    let error = report.error.unwrap();
    assert!(error.median.abs() < 3e-6 && error.max_abs < 10e-6, "{error:?}");
    assert_eq!((report.containment, report.outside, report.containment_before), (Some(1.0), 0, Some(1.0)));
    assert_eq!(report.status, "synchronised");
}

#[test]
fn the_learned_algorithm_sees_what_round_trips_hide() {
    let [classic, learned] = ["classic", "learned"].map(|name| replay(&QUIET.trace(), &["--estimator", name]).unwrap());
    assert_eq!((learned.containment, learned.outside), (Some(1.0), 0));
    assert_eq!(learned.used, classic.used);
    let (classic, learned) = (classic.error.unwrap(), learned.error.unwrap());
    assert!(learned.rms <= 1.2 * classic.rms, "{learned:?} {classic:?}");
}

#[test]
fn options_of_either_algorithm_are_known() {
    assert!(configs(&args(&["--set", "cycles=false", "--set", "wander = 1 ppm"])).is_ok());
    assert!(configs(&args(&["--set", "tides=true"])).is_err());
}

/// The longer way out makes the server's stamps late for us, so the clock is ahead by half the asymmetry: error = +A/2.
#[test]
fn the_sign_of_the_error_is_clock_minus_truth() {
    let world = World { forward_ns: 250_000, backward_ns: 50_000, ..QUIET };
    let report = replay(&world.trace(), &[]).unwrap();
    for error in [report.error.unwrap(), report.error_before.unwrap()] {
        assert!((error.median - 100e-6).abs() < 5e-6, "{error:?}");
    }
}

#[test]
fn a_clock_outside_its_bound_is_counted() {
    let world = World { truth_late_ns: 1_000_000, ..QUIET };
    let report = replay(&world.trace(), &[]).unwrap();
    let error = report.error.unwrap();
    assert!((error.median + 1e-3).abs() < 1e-5, "{error:?}");
    assert_eq!((report.containment, report.outside), (Some(0.0), error.count));
}

#[test]
fn the_statistics_begin_where_told() {
    let counted = |line: &[&str]| replay(&QUIET.trace(), line).unwrap().error.map(|error| error.count);
    assert_eq!(counted(&["--from", "0"]), Some(600));
    assert_eq!(counted(&["--from", "1600 s"]), Some(500));
    assert_eq!(counted(&["--from", "10 d"]), None);
    let warm = counted(&[]).unwrap();
    assert!(warm > 300 && warm < 600, "{warm}");
}

#[test]
fn lost_exchanges_and_other_servers_are_counted_not_fed() {
    let mut trace = QUIET.trace();
    trace += "600,1,,,,,,0,near\n601,,,,,,,0,far\n";
    let report = replay(&trace, &[]).unwrap();
    assert_eq!((report.exchanges, report.lost, report.servers), (600, 1, 2));
    assert_eq!(report.server_name.as_deref(), Some("near"));
    let far = replay(&trace, &["--server", "far", "--counter-frequency", "1e9"]).unwrap();
    assert_eq!((far.exchanges, far.lost, far.server, far.status), (0, 1, 1, "unsynchronised"));
    assert_eq!((far.period_s, far.error), (None, None));
    let message = replay(&trace, &["--server", "moon"]).unwrap_err().message;
    assert!(message.contains("no server \"moon\"; it has near, far"), "{message}");
}

#[test]
fn a_new_epoch_begins_a_new_clock() {
    let mut trace = QUIET.trace();
    let later = QUIET.row(599).replace("599,", "600,").replace(",0,near", ",1,near");
    trace += &later.replace(&counter(599 * 16_000_000_000).to_string(), "1000");
    let report = replay(&trace, &["--from", "0"]).unwrap();
    assert_eq!(report.epochs, 2);
    let (after, before) = (report.error.unwrap().count, report.error_before.unwrap().count);
    assert!(before < after && before == 599, "{before} {after}");
}

#[test]
fn bad_rows_stop_the_replay_unless_told_otherwise() {
    let mut trace = QUIET.trace();
    trace += "700,12x,1,1,2,,,0,near\n";
    let stopped = replay(&trace, &[]).unwrap_err();
    assert_eq!((stopped.code, stopped.message.as_str()), (1, "-: line 602: Ta: not a decimal number: \"12x\""));
    let report = replay(&trace, &["--keep-going"]).unwrap();
    assert_eq!((report.bad_rows, report.exchanges), (1, 600));
    assert_eq!(report.notes, ["line 602: Ta: not a decimal number: \"12x\""]);
}

#[test]
fn options_of_the_algorithm_can_be_set() {
    assert!(replay(&QUIET.trace(), &["--set", "offset_window=300 s"]).is_ok());
    for (setting, expected) in
        [("offset_window", "must be OPTION=VALUE"), ("windows=3 s", "unknown option"), ("wander=1", "rate")]
    {
        let failure = replay(&QUIET.trace(), &["--set", setting]).unwrap_err();
        assert_eq!(failure.code, Failure::USAGE);
        assert!(failure.message.contains(expected), "{}", failure.message);
    }
}

#[test]
fn a_trace_that_tells_nothing_says_what_is_missing() {
    let one_row = format!("{HEADER}{}", QUIET.row(0));
    assert!(replay(&one_row, &[]).unwrap_err().message.contains("--counter-frequency"));
    assert!(replay(&one_row, &["--counter-frequency", "1e9"]).is_ok());
    assert!(replay(HEADER, &[]).unwrap_err().message.contains("no rows"));
}

/// With known delays of 150 us and less than 9 us of noise each way, everything in the list of exchanges can be reckoned by hand.
#[test]
fn the_exchanges_are_what_the_estimator_had_to_go_by() {
    let path = std::env::temp_dir().join(format!("ffclock-exchanges-{}.csv", std::process::id()));
    // The classic floor is a round trip that was seen; the learned one is an estimate of what nobody saw.
    replay(&QUIET.trace(), &["--exchanges", path.to_str().unwrap(), "--estimator", "classic"]).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let rows: Vec<Vec<f64>> =
        text.lines().skip(1).map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len(), 600);
    for row in rows.iter().skip(100) {
        let [_, _, round_trip, floor, offset, forward, backward, used] = row[..] else { panic!("{row:?}") };
        assert!((round_trip - forward - backward).abs() < 1e-8, "{row:?}");
        assert!((150e-6..158.1e-6).contains(&forward) && (150e-6..158.1e-6).contains(&backward), "{row:?}");
        assert!((299.9e-6..301e-6).contains(&floor) && offset.abs() < 10e-6, "{row:?}");
        assert_eq!(used, 1.0);
    }
}

/// Between two rows of the output the clock is utc_ns + (N - counter) * period_s; at the next reply it has the error that is told.
#[test]
fn the_output_is_the_clock_that_a_reader_would_have_seen() {
    let directory = std::env::temp_dir().join(format!("ffclock-replay-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("clock.csv");
    replay(&QUIET.trace(), &["--output", path.to_str().unwrap()]).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 600);
    let column = |name: &str| names.iter().position(|column| *column == name).unwrap();
    let whole = |row: &[&str], name: &str| row[column(name)].parse::<i128>().unwrap();
    let float = |row: &[&str], name: &str| row[column(name)].parse::<f64>().unwrap();
    for pair in rows.windows(2) {
        let [now, next] = [&pair[0], &pair[1]];
        let ticks = (whole(next, "counter") - whole(now, "counter")) as f64;
        let predicted = (whole(now, "utc_ns") - whole(next, "utc_ns")) as f64 * 1e-9 + ticks * float(now, "period_s");
        let told = float(next, "error_before_s") - float(next, "error_s");
        assert!((predicted - told).abs() < 3e-9, "{predicted} {told}");
        assert!(float(next, "error_s").abs() <= float(next, "bound_s"));
        assert!(float(next, "uncertainty_s") <= float(next, "bound_s") && float(next, "floor_s") > 0.0);
    }
    let verdicts = rows.iter().all(|row| row[column("verdict")] == "used" && row[column("status")] != "unsynchronised");
    assert!(verdicts);
}

#[test]
fn in_retrospect_the_clock_is_closer_and_says_so() {
    let directory = std::env::temp_dir().join(format!("ffclock-replay-smooth-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("clock.csv");
    let report = replay(&QUIET.trace(), &["--smooth", "--output", path.to_str().unwrap()]).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let (causal, smooth) = (report.error.unwrap(), report.smooth.as_ref().unwrap().error.unwrap());
    assert_eq!(causal.count, smooth.count);
    assert!(smooth.rms < 1.1 * causal.rms, "{smooth:?} {causal:?}");
    assert!(report.smooth.as_ref().unwrap().within_2u.unwrap() > 0.9, "{:?}", report.smooth);
    let header = text.lines().next().unwrap();
    assert!(header.ends_with(",error_before_s,smoothed_utc_ns,smoothed_uncertainty_s,smoothed_error_s"), "{header}");
    let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert!(widths.len() == 601 && widths.iter().all(|width| *width == widths[0]));
    let table = table::render(&report);
    assert!(table.contains("Retrospect") && table.contains("within twice the likely error"), "{table}");
}

#[test]
fn stamps_are_converted_in_retrospect() {
    let args = args(&["--smooth"]);
    let reader = TraceReader::from_reader(Box::new(std::io::Cursor::new(QUIET.trace()))).unwrap();
    let replay = Replay::new(&args, reader, Configs::default()).unwrap();
    let hindsight = replay.run(Instant::now()).unwrap().1.unwrap();
    let nanos = 300 * 16_000_000_000 + 5_000_000_000;
    let time = hindsight.at(Counter::from_raw(counter(nanos)), Some(CounterEpoch::from_raw(0))).unwrap();
    let truth = Moment::from_origin(Span::from_nanos(1_700_000_000_000_000_000 + i128::from(nanos)));
    let error = LeapTable::built_in().utc_from_tai(time.time) - truth;
    assert!(error.abs() < Span::from_micros(5), "{error}");
    assert_eq!(hindsight.at(Counter::from_raw(counter(nanos)), None), Some(time));
    assert_eq!(hindsight.at(Counter::from_raw(counter(nanos)), Some(CounterEpoch::from_raw(1))), None);
    assert_eq!(hindsight.at(Counter::from_raw(1), None), None);
}

#[test]
fn stamps_that_cannot_be_read_stop_the_replay_before_anything_is_overwritten() {
    let directory = std::env::temp_dir().join(format!("ffclock-replay-stamps-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let [trace, wrong, right, absent, output] =
        ["trace.csv", "wrong", "right", "absent", "clock.csv"].map(|name| directory.join(name));
    std::fs::write(&trace, QUIET.trace()).unwrap();
    std::fs::write(&wrong, "# stamps\n17@0\nfish\n").unwrap();
    std::fs::write(&output, "kept").unwrap();
    std::fs::write(&right, "17@0\n").unwrap();
    let outcome = |stamps: &Path, output: &Path| {
        let [file, stamps, output] = [&trace, stamps, output].map(|path| path.to_str().unwrap());
        let words = ["replay", file, "--smooth", "--stamps", stamps, "--output", output];
        run(&Global { page: None, json: true }, &Only::try_parse_from(words).unwrap().args).unwrap_err()
    };
    let failures = [outcome(&wrong, &output), outcome(&absent, &output), outcome(&right, &right)];
    let left = [&right, &output].map(|path| std::fs::read_to_string(path).unwrap());
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(failures[0].message.contains("wrong: line 3"), "{}", failures[0]);
    assert!(failures[1].message.contains("cannot read") && failures[1].message.contains("absent"), "{}", failures[1]);
    assert_eq!(failures[2].code, Failure::USAGE, "{}", failures[2]);
    assert_eq!(left, ["17@0\n", "kept"]);
}

#[test]
fn the_trace_itself_is_no_place_for_the_output() {
    let directory = std::env::temp_dir().join(format!("ffclock-replay-same-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("trace.csv");
    std::fs::write(&path, QUIET.trace()).unwrap();
    let name = path.to_str().unwrap();
    let args = Only::try_parse_from(["replay", name, "--output", name]).unwrap().args;
    let refused = Replay::new(&args, TraceReader::open(&path).unwrap(), Configs::default()).err().unwrap();
    let kept = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!((refused.code, kept), (Failure::USAGE, QUIET.trace()));
}

#[test]
fn the_report_reads_well_and_its_json_has_the_promised_fields() {
    let report = replay(&QUIET.trace(), &[]).unwrap();
    let table = table::render(&report);
    for part in [
        "600 with a reply, 600 used",
        "1000.020 MHz nominal by the first exchanges",
        "0 outside the bound (100.0000 % inside)",
    ] {
        assert!(table.contains(part), "{table}");
    }
    let json = serde_json::to_value(&report).unwrap();
    for field in [
        "exchanges",
        "used",
        "span_s",
        "period_s",
        "rate_error_ppm",
        "floor_s",
        "shifts_up",
        "shifts_down",
        "offset_s",
        "uncertainty_s",
        "bound_s",
        "containment",
        "outside",
        "exchanges_per_s",
    ] {
        assert!(json[field].is_number(), "{field}: {}", json[field]);
    }
    for field in ["median", "iqr", "p1", "p25", "p75", "p99", "max_abs", "rms"] {
        assert!(json["error"][field].is_number() && json["error_before"][field].is_number(), "{field}");
    }
}

#[test]
fn the_same_trace_gives_the_same_figures() {
    let figures = || {
        let mut json = serde_json::to_value(replay(&QUIET.trace(), &[]).unwrap()).unwrap();
        json["exchanges_per_s"] = 0.into();
        let mut text = String::new();
        write!(text, "{json}").unwrap();
        text
    };
    assert_eq!(figures(), figures());
}

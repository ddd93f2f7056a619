//! The command around a replay: its options, its files and its answers. The figures are tested with `ffclock_replay`.

#[path = "../../../replay/tests/worlds/world.rs"]
mod world;

use super::*;
use clap::Parser;
use std::fmt::Write;
use world::{HEADER, QUIET};

#[derive(Parser)]
struct Only {
    #[command(flatten)]
    args: Args,
}

fn args(line: &[&str]) -> Args {
    Only::try_parse_from(["replay", "-"].iter().chain(line)).unwrap().args
}

fn replay(trace: &str, line: &[&str]) -> Result<ReplayAnswer, Failure> {
    let args = args(line);
    let reader = TraceReader::from_reader(Box::new(std::io::Cursor::new(trace.to_owned()))).unwrap();
    super::replay(&args, configs(&args)?, reader).map(|(answer, _)| answer)
}

#[test]
fn options_of_either_algorithm_are_known() {
    assert!(configs(&args(&["--set", "cycles=false", "--set", "wander = 1 ppm"])).is_ok());
    assert!(configs(&args(&["--set", "tides=true"])).is_err());
}

#[test]
fn bad_rows_stop_the_replay_without_keep_going() {
    let mut trace = QUIET.trace();
    trace += "700,12x,1,1,2,,,0,near\n";
    let stopped = replay(&trace, &[]).unwrap_err();
    assert_eq!((stopped.code, stopped.message.as_str()), (1, "-: line 602: Ta: not a decimal number: \"12x\""));
    let answer = replay(&trace, &["--keep-going"]).unwrap();
    assert_eq!((answer.report.exchanges.bad_rows, answer.report.exchanges.exchanges), (1, 600));
    assert_eq!(answer.notes, ["line 602: Ta: not a decimal number: \"12x\""]);
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
fn a_trace_without_a_frequency_names_the_option_for_it() {
    let one_row = format!("{HEADER}{}", QUIET.row(0));
    assert!(replay(&one_row, &[]).unwrap_err().message.contains("--counter-frequency"));
    assert!(replay(&one_row, &["--counter-frequency", "1e9"]).is_ok());
    assert!(replay(HEADER, &[]).unwrap_err().message.contains("no rows"));
}

/// With known delays of 150 us and less than 9 us of noise each way, everything in the list of exchanges can be worked
/// out by hand.
#[test]
fn the_exchanges_are_the_evidence_of_the_estimator() {
    let path = std::env::temp_dir().join(format!("ffclock-exchanges-{}.csv", std::process::id()));
    // The classic floor is a round trip that was seen; the learned one is estimated.
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

/// Between two rows of the output the clock is utc_ns + (N - counter) * period_s; at the next reply it has the stated
/// error.
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
        let stated = float(next, "error_before_s") - float(next, "error_s");
        assert!((predicted - stated).abs() < 3e-9, "{predicted} {stated}");
        assert!(float(next, "error_s").abs() <= float(next, "bound_s"));
        assert!(
            float(next, "noise_s") <= float(next, "uncertainty_s")
                && float(next, "uncertainty_s") <= float(next, "bound_s")
                && float(next, "floor_s") > 0.0
        );
    }
    let verdicts = rows.iter().all(|row| row[column("verdict")] == "used" && row[column("status")] != "unsynchronised");
    assert!(verdicts);
}

#[test]
fn in_retrospect_the_clock_is_closer_and_says_so() {
    let directory = std::env::temp_dir().join(format!("ffclock-replay-smooth-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("clock.csv");
    let answer = replay(&QUIET.trace(), &["--smooth", "--output", path.to_str().unwrap()]).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let (report, retrospect) = (&answer.report, answer.report.smooth.as_ref().unwrap());
    let (causal, smooth) = (report.after.error.unwrap(), retrospect.error.unwrap());
    assert_eq!(causal.count, smooth.count);
    assert!(smooth.rms < 1.1 * causal.rms, "{smooth:?} {causal:?}");
    assert!(retrospect.within_2u.unwrap() > 0.9, "{retrospect:?}");
    let header = text.lines().next().unwrap();
    assert!(header.ends_with(",error_before_s,smoothed_utc_ns,smoothed_uncertainty_s,smoothed_error_s"), "{header}");
    let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert!(widths.len() == 601 && widths.iter().all(|width| *width == widths[0]));
    let table = table::render(&answer);
    assert!(table.contains("Retrospect") && table.contains("within twice the standard uncertainty"), "{table}");
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
        run(&GlobalOptions { page: None, json: true }, &Only::try_parse_from(words).unwrap().args).unwrap_err()
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
    let refused = super::replay(&args, Configs::default(), TraceReader::open(&path).unwrap()).err().unwrap();
    let kept = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!((refused.code, kept), (Failure::USAGE, QUIET.trace()));
}

#[test]
fn the_report_reads_well_and_its_json_has_the_promised_fields() {
    let answer = replay(&QUIET.trace(), &[]).unwrap();
    let table = table::render(&answer);
    for part in [
        "600 with a reply, 600 used",
        "1000.020 MHz nominal by the first exchanges",
        "0 outside the bound (100.0000 % inside)",
    ] {
        assert!(table.contains(part), "{table}");
    }
    let json = serde_json::to_value(&answer).unwrap();
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
        "noise_s",
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

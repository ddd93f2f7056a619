//! The subcommands that read the page: now, stamp, elapsed, wait.

use crate::common::{EPOCH, Place, UTC_SECOND, publication};
use ffclock_units::{Bound, Counter, GrowthRate, LeapStep, Moment, Period, Span, StandardUncertainty, Status};
use serde_json::Value;

const TAI_MINUS_UTC_NS: i64 = 37_000_000_000;

/// The pages of the tests show a time between the making of the page and a minute later.
#[track_caller]
fn assert_recent(utc_ns: &Value) {
    let second = utc_ns.as_i64().unwrap() / 1_000_000_000;
    assert!((UTC_SECOND..UTC_SECOND + 60).contains(&second), "{second}");
}

fn published(status: Status) -> Place {
    let place = Place::new();
    place.publish(status);
    place
}

#[test]
fn now_tells_time_bound_and_status() {
    let out = published(Status::Synchronised).run(&["now"]).well();
    assert!(out.starts_with("2026-11-21T09:30:"), "{out}");
    assert!(out.contains("Z  +- 812."), "{out}");
    assert!(out.contains("us  synchronised (standard uncertainty 14") && out.contains(", noise 9"), "{out}");
    let out = published(Status::WarmingUp).run(&["now", "--tai"]).well();
    assert!(out.starts_with("2026-11-21T09:30:3") && out.contains(" TAI  +- ") && out.contains("warming-up"), "{out}");
}

#[test]
fn now_in_json_has_everything_with_its_unit() {
    let answer = published(Status::Holdover).run(&["--json", "now"]).json();
    assert_recent(&answer["utc_ns"]);
    assert_eq!(answer["tai_ns"].as_i64().unwrap() - answer["utc_ns"].as_i64().unwrap(), TAI_MINUS_UTC_NS);
    assert!(answer["utc"].as_str().unwrap().starts_with("2026-11-21T09:30:"));
    assert!((812e-6..813e-6).contains(&answer["bound_s"].as_f64().unwrap()));
    assert_eq!(answer["bound_strict_s"], answer["bound_s"], "one server has one bound");
    assert!((14e-6..15e-6).contains(&answer["uncertainty_s"].as_f64().unwrap()));
    assert!((9e-6..10e-6).contains(&answer["noise_s"].as_f64().unwrap()));
    assert_eq!(answer["status"], "holdover");
}

#[test]
fn now_repeats_at_an_interval() {
    let out = published(Status::Synchronised).run(&["now", "--format", "unix", "--count", "3", "--interval", "20 ms"]);
    let times: Vec<f64> = out.well().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(times.len(), 3);
    assert!(times[2] - times[0] >= 0.039, "{times:?}");
}

#[test]
fn a_stamp_is_converted_later() {
    let place = published(Status::Synchronised);
    let stamp = place.run(&["stamp"]).well();
    let between = place.run(&["now", "--json"]).json();
    let earlier = place.run(&["now", "--json", "--at", stamp.trim()]).json();
    assert_recent(&earlier["utc_ns"]);
    assert!(earlier["utc_ns"].as_i64().unwrap() < between["utc_ns"].as_i64().unwrap());
    let again = place.run(&["now", "--json", "--at", stamp.trim()]).json();
    assert_eq!(again["utc_ns"], earlier["utc_ns"]);
}

#[test]
fn at_shows_each_stamp_as_now_does() {
    let place = published(Status::Synchronised);
    let (first, second) = (place.run(&["stamp"]).well(), place.run(&["stamp"]).well());
    let (first, second) = (first.trim(), second.trim());
    let out = place.run(&["at", first, second]).well();
    let expected = place.run(&["now", "--at", first]).well() + &place.run(&["now", "--at", second]).well();
    assert_eq!(out, expected);
    let json = place.run(&["at", "--json", first]).json();
    assert_eq!(json, place.run(&["now", "--json", "--at", first]).json());
    assert_eq!(place.run(&["at", "--format", "unix", "--tai", first]).well().split('.').count(), 2);
    assert!(place.run(&["at", "5@2"]).err.contains("epoch"));
}

#[test]
fn a_stamp_in_json_has_its_parts() {
    let stamp = published(Status::Synchronised).run(&["stamp", "--json"]).json();
    assert_eq!(stamp["epoch"], EPOCH);
    assert_eq!(stamp["stamp"], format!("{}@{EPOCH}", stamp["counter"]));
}

#[test]
fn a_stamp_of_another_epoch_is_refused() {
    let place = published(Status::Synchronised);
    let ended = place.run(&["now", "--at", "5@2"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("epoch"), "{ended:?}");
    let ended = place.run(&["elapsed", "5@3", "9@2"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("epoch"), "{ended:?}");
}

#[test]
fn a_stamp_that_is_refused_is_named_and_the_others_are_converted() {
    let place = published(Status::Synchronised);
    let good = place.run(&["stamp"]).well();
    let good = good.trim();
    let time = place.run(&["at", good]).well();
    let ended = place.run(&["at", good, "5@2", good]);
    assert_eq!((ended.code, ended.out), (1, format!("{time}{time}")));
    assert!(ended.err.starts_with("ffclock: 5@2: ") && ended.err.lines().count() == 1, "{}", ended.err);
    let ended = place.run(&["at", "--json", good, "5@2", good]);
    let lines: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((ended.code, lines.len(), &lines[0]), (1, 3, &lines[2]));
    assert_eq!(lines[1]["stamp"], "5@2");
    assert!(lines[1]["error"].as_str().unwrap().contains("epoch"));
}

/// A page that nothing has renewed within its date: the figures are shown, and the exit code says what they are worth.
#[test]
fn what_is_unsynchronised_ends_with_three_everywhere() {
    let place = Place::new();
    let mut expired = publication(Status::Synchronised);
    expired.valid_until = expired.estimate.counter;
    place.publish_by(&expired);
    let stamp = place.run(&["stamp"]);
    let stamp = stamp.out.trim();
    assert!(stamp.ends_with("@3"), "{stamp}");
    let report = place.file("report").to_str().unwrap().to_owned();
    for arguments in [
        &["now"][..],
        &["stamp"],
        &["at", stamp],
        &["at", stamp, stamp],
        &["elapsed", stamp, stamp],
        &["elapsed", "--output", &report, "--", "true"],
    ] {
        let ended = place.run(arguments);
        assert_eq!(ended.code, 3, "{arguments:?} {ended:?}");
        assert!(ended.err.contains("not synchronised"), "{ended:?}");
        assert!(arguments.contains(&"true") || !ended.out.is_empty(), "{arguments:?}");
    }
    assert_eq!(place.run(&["elapsed", "--output", &report, "--", "false"]).code, 1, "the command's own");
    assert!(std::fs::read_to_string(report).unwrap().contains("unsynchronised"));
}

/// A stamp of an epoch that has ended would be refused for ever.
#[test]
fn without_a_time_there_is_no_stamp() {
    let place = published(Status::Unsynchronised);
    let ended = place.run(&["stamp"]);
    assert_eq!((ended.code, ended.out.as_str()), (3, ""));
    place.publish_nothing();
    let ended = place.run(&["stamp"]);
    assert_eq!((ended.code, ended.out.as_str()), (3, ""));
    for begun in [0, 4096] {
        std::fs::write(place.page(), vec![0; begun]).unwrap();
        let ended = place.run(&["now"]);
        assert_eq!(ended.code, 3, "{ended:?}");
        assert!(ended.err.contains("no clock has been published here yet"), "{ended:?}");
    }
}

#[test]
fn what_is_not_known_is_null_in_json() {
    let place = Place::new();
    let mut unknown = publication(Status::Synchronised);
    unknown.estimate.bound = Bound::UNKNOWN;
    unknown.estimate.uncertainty = StandardUncertainty::UNKNOWN;
    unknown.estimate.noise = StandardUncertainty::UNKNOWN;
    unknown.estimate.difference_bound = GrowthRate::from_units(u64::MAX);
    unknown.estimate.difference_uncertainty = GrowthRate::from_units(u64::MAX);
    place.publish_by(&unknown);
    let stamp = place.run(&["stamp"]).well();
    let now = place.run(&["now", "--json"]).json();
    let elapsed = place.run(&["elapsed", "--json", stamp.trim(), stamp.trim()]).json();
    for name in ["bound_s", "bound_strict_s", "uncertainty_s", "noise_s"] {
        assert_eq!(now.get(name), Some(&Value::Null), "{name}: {now}");
    }
    for name in ["bound_s", "uncertainty_s"] {
        assert_eq!(elapsed.get(name), Some(&Value::Null), "{name}: {elapsed}");
    }
}

#[test]
fn elapsed_between_stamps_is_their_distance() {
    let place = published(Status::Synchronised);
    let stamp = place.run(&["stamp"]).well();
    let counter: u64 = stamp.split('@').next().unwrap().parse().unwrap();
    let (begin, end) = (stamp.trim(), format!("{}@{EPOCH}", counter + 2_500_000_000));
    let out = place.run(&["elapsed", begin, &end]).well();
    assert!(out.starts_with("2.500000000 s +- 75") && out.contains("(standard uncertainty 12."), "{out}");
    let back = place.run(&["elapsed", "--json", &end, begin]).json();
    assert!((back["elapsed_s"].as_f64().unwrap() + 2.5).abs() < 1e-9);
    assert!((75e-9..76e-9).contains(&back["bound_s"].as_f64().unwrap()));
    assert_eq!((&back["status"], &back["way"]), (&"synchronised".into(), &"difference".into()));
    assert!((12e-9..13e-9).contains(&back["uncertainty_s"].as_f64().unwrap()));
}

#[test]
fn elapsed_measures_a_command_and_passes_its_code_on() {
    let place = published(Status::Synchronised);
    let ended = place.run(&["elapsed", "--", "sh", "-c", "sleep 0.05; echo out; exit 7"]);
    assert_eq!((ended.code, ended.out.as_str()), (7, "out\n"));
    let seconds: f64 = ended.err.strip_prefix("elapsed ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((0.05..30.0).contains(&seconds), "{ended:?}");
    let report = place.file("report");
    let ended = place.run(&["elapsed", "--json", "--output", report.to_str().unwrap(), "--", "true"]);
    assert_eq!(ended.well(), "");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["exit_code"], 0);
    assert!(report["elapsed_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn elapsed_ends_as_a_shell_does() {
    let place = published(Status::Synchronised);
    assert_eq!(place.run(&["elapsed", "--", "/nowhere/command"]).code, 127);
    assert_eq!(place.run(&["elapsed", "--", "/dev/null"]).code, 126);
    assert_eq!(place.run(&["elapsed", "--", "sh", "-c", "kill -9 $$"]).code, 137);
}

#[test]
fn waiting_ends_at_once_when_the_clock_is_good() {
    let place = published(Status::Synchronised);
    assert!(place.run(&["wait"]).well().contains("synchronised"));
    let answer = place.run(&["wait", "--json", "--bound", "1 ms", "--timeout", "1 s"]).json();
    assert_eq!(answer["in_time"], true);
    assert!(answer["waited_s"].as_f64().unwrap() < 1.0);
    assert_recent(&answer["utc_ns"]);
}

#[test]
fn waiting_gives_up_with_code_three() {
    let place = published(Status::Holdover);
    let ended = place.run(&["wait", "--timeout", "100 ms"]);
    assert_eq!(ended.code, 3);
    assert!(ended.err.contains("holdover"), "{ended:?}");
    let ended = published(Status::Synchronised).run(&["wait", "--json", "--bound", "1 us", "--timeout", "0 s"]);
    assert_eq!((ended.code, &ended.json()["in_time"]), (3, &Value::Bool(false)));
    let ended = Place::new().run(&["wait", "--timeout", "0 s"]);
    assert_eq!(ended.code, 3);
    assert!(ended.err.contains("start ffclockd"), "{ended:?}");
}

#[test]
fn waiting_names_the_bound_that_was_not_reached() {
    let ended = published(Status::Synchronised).run(&["wait", "--bound", "1 us", "--timeout", "0 s"]);
    assert_eq!(ended.code, 3);
    assert!(
        ended.err.contains("the bound did not fall to 1 us after") && ended.err.contains("synchronised"),
        "{ended:?}"
    );
}

/// The header's tag is for those who take stamps; `now` was not asked about one.
#[test]
fn a_damaged_tag_is_not_blamed_on_a_stamp() {
    let place = published(Status::Synchronised);
    let mut page = std::fs::read(place.page()).unwrap();
    page[6 * 8] ^= 0xff;
    std::fs::write(place.page(), page).unwrap();
    let ended = place.run(&["now"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(!ended.err.contains("stamp") && ended.err.contains("damaged"), "{ended:?}");
}

#[test]
fn waiting_sees_a_daemon_that_starts_later() {
    let place = Place::new();
    let waiting = place.command(&["wait", "--timeout", "20 s"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(150));
    place.publish(Status::Synchronised);
    assert!(waiting.wait_with_output().unwrap().status.success());
}

#[test]
fn a_missing_page_is_explained() {
    for arguments in [&["now"][..], &["stamp"], &["elapsed", "--", "true"]] {
        let ended = Place::new().run(arguments);
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.err.contains("start ffclockd"), "{ended:?}");
    }
}

#[test]
fn a_damaged_page_is_an_error_not_a_time() {
    let place = published(Status::Synchronised);
    let mut bytes = std::fs::read(place.page()).unwrap();
    bytes.iter_mut().skip(64).for_each(|byte| *byte ^= 0x40);
    std::fs::write(place.page(), &bytes).unwrap();
    let ended = place.run(&["now"]);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{ended:?}");
    std::fs::write(place.page(), b"hello").unwrap();
    assert_eq!(place.run(&["now"]).code, 1);
}

/// A page that any program wrote, under sums that add up: whatever it says, no command ends by a panic.
#[test]
fn a_page_of_any_content_is_read_without_a_crash() {
    let place = Place::new();
    let socket = place.file("sock").to_str().unwrap().to_owned();
    let machine = place.file("vmclock").to_str().unwrap().to_owned();
    let (far, now) = (Span::from_units(i128::MIN), publication(Status::Synchronised));
    let mut pages = vec![now; 6];
    pages[0].estimate.time = Moment::from_origin(far);
    pages[1].estimate.time = Moment::from_origin(Span::MAX);
    pages[2].estimate.period = Period::from_parts(u64::MAX, 0).unwrap();
    pages[2].estimate.difference_period = Period::from_parts(1 << 63, 59).unwrap();
    pages[3].leap = LeapStep { before: i32::MIN, after: i32::MAX, at: i64::MIN };
    pages[4].leap = LeapStep { before: i32::MAX, after: i32::MIN, at: i64::MAX };
    (pages[5].valid_until, pages[5].epoch_begin) = (Counter::from_raw(u64::MAX), Counter::from_raw(1 << 63));
    for (number, page) in pages.iter().enumerate() {
        place.publish_by(page);
        let stamp = format!("{}@{EPOCH}", page.estimate.counter.raw());
        for arguments in [
            &["now"][..],
            &["now", "--json", "--tai"],
            &["now", "--format", "unix"],
            &["stamp"],
            &["at", &stamp, "0@3", "18446744073709551615@3", "9223372036854775808@18446744073709551615"],
            &["elapsed", &stamp, "18446744073709551615@3"],
            &["elapsed", "--json", "9223372036854775808@3", &stamp],
            &["wait", "--timeout", "0 s"],
            &["watch", "--count", "1"],
            &["status"],
            &["doctor"],
            &["feed", "--chrony", &socket, "--vmclock", &machine, "--count", "1"],
        ] {
            let ended = place.run(arguments);
            assert!(ended.code != 101 && !ended.err.contains("panicked"), "page {number}: {arguments:?} {ended:?}");
        }
    }
}

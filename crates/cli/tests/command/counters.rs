//! `ffclock counters`: short runs of every instrument, and what it says to input that cannot be used.

use crate::common::Place;
use serde_json::Value;

/// The records of a kind in what `--json` printed, or in a recording.
fn records(text: &str, kind: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|record| record["record"] == kind).collect()
}

#[test]
fn the_list_names_the_counters_and_the_choice() {
    let told = Place::new().run(&["counters", "--json"]).json();
    let names: Vec<&str> = told["counters"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"tsc") && names.contains(&"monotonic-raw"), "{names:?}");
    assert!(names.contains(&told["choice"].as_str().unwrap()));
    let page = Place::new().run(&["counters"]).well();
    assert!(page.contains("choice  ") && page.contains("because") && page.contains("clocksource"), "{page}");
}

#[test]
fn latency_is_recorded_shown_again_and_the_same() {
    let place = Place::new();
    let file = place.file("latency.jsonl");
    let file = file.to_str().unwrap();
    let options = ["--for", "300 ms", "--every", "50 ms", "--burst", "20", "--only", "monotonic-raw,lfence,isb"];
    let printed = place.run(&[&["counters", "latency", "--record", file][..], &options].concat()).well();
    assert!(printed.contains("own overhead, single") && printed.contains("slowest readings"), "{printed}");
    assert_eq!(place.run(&["counters", "show", file]).well(), printed);
    let text = std::fs::read_to_string(file).unwrap();
    let figures = records(&text, "figures");
    assert!(figures.len() >= 9, "{figures:?}");
    for figure in &figures {
        let at = |name: &str| figure["ticks"][name].as_f64().unwrap();
        assert!(at("min") <= at("median") && at("median") <= at("p99") && at("p99") <= at("max"), "{figure}");
    }
    assert!(!records(&text, "round").is_empty() && !records(&text, "histogram").is_empty());
    assert_eq!(records(&text, "end").len(), 1);
}

#[test]
fn stability_is_measured_in_phases() {
    let place = Place::new();
    let options = ["--for", "500 ms", "--every", "10 ms", "--only", "rdtsc,mrs,monotonic-raw vDSO", "--json"];
    let out = place.run(&[&["counters", "stability"][..], &options].concat()).well();
    let samples = records(&out, "sample");
    assert!(samples.len() > 10 && samples[0]["points"].as_array().unwrap().len() == 2, "{out}");
    let found = records(&out, "steadiness");
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|one| !one["deviations"].as_array().unwrap().is_empty()), "{found:?}");
    assert_eq!(records(&out, "phase").len(), 1);
}

#[test]
fn a_file_is_a_reference() {
    let place = Place::new();
    let file = place.file("reference.csv");
    let begin = ffclock_counter::read_ordered(ffclock_counter::CounterKind::Tsc).raw();
    let lines: String = (0..100).map(|n| format!("{},{}\n", begin + n * 100_000_000, 1_000_000 + n)).collect();
    std::fs::write(&file, format!("# base,time\n{lines}")).unwrap();
    let file = file.to_str().unwrap();
    let options = ["--for", "300 ms", "--every", "20 ms", "--only", "monotonic-raw vDSO", "--against", file, "--json"];
    let found = records(&place.run(&[&["counters", "stability"][..], &options].concat()).well(), "steadiness");
    let pairs: Vec<(&Value, &Value)> = found.iter().map(|one| (&one["counter"], &one["against"])).collect();
    assert_eq!(pairs.len(), 3, "{pairs:?}");
    assert!(pairs.iter().any(|pair| *pair.0 == "base" && *pair.1 == file), "{pairs:?}");
}

#[test]
fn the_published_clock_is_a_reference_whichever_counter_it_runs_on() {
    let place = Place::new();
    place.publish(ffclock_units::Status::Synchronised);
    let options =
        ["--for", "500 ms", "--every", "20 ms", "--only", "monotonic-raw vDSO", "--against", "ffclock", "--json"];
    let found = records(&place.run(&[&["counters", "stability"][..], &options].concat()).well(), "steadiness");
    let base = found.iter().find(|one| one["counter"] == "base").unwrap();
    // The page of the tests runs on monotonic-raw: taken for the base it would be wrong by a factor.
    assert!(base["rate_ppm"].as_f64().unwrap().abs() < 100_000.0, "{base}");
    assert_eq!(base["against"], "ffclock");
}

#[test]
fn clocks_of_the_same_packets_are_compared() {
    let place = Place::new();
    let options = ["--for", "2 s", "--poll", "50 ms", "--warm-up", "500 ms", "--only", "rdtsc,mrs,monotonic-raw vDSO"];
    let out = place.run(&[&["counters", "clock", "--json"][..], &options].concat()).well();
    let clocks = records(&out, "clock");
    let names: Vec<String> =
        clocks.iter().map(|c| format!("{} {}", c["counter"], c["stamps"]).replace('"', "")).collect();
    // Further kinds of stamps depend on the rights of whoever runs this.
    assert!(names.len() >= 4 && names.len().is_multiple_of(2), "{names:?}");
    for name in ["tsc user", "tsc socket", "monotonic-raw user", "monotonic-raw socket"] {
        assert!(names.iter().any(|found| found.replace("cntvct", "tsc") == name), "{names:?}");
    }
    for clock in &clocks {
        assert!(clock["count"].as_u64().unwrap() > 5, "{clock}");
        assert_eq!(clock["outside"], 0, "{clock}");
    }
    assert!(records(&out, "exchange").len() > 10 && records(&out, "stamps").len() >= 2);
}

#[test]
fn watching_a_sound_host_finds_nothing_and_says_so() {
    let ended = Place::new().run(&["counters", "watch", "--for", "300 ms", "--every", "50 ms", "--json"]);
    let end = records(&ended.out, "end");
    assert!(end[0]["looks"].as_u64().unwrap() > 1, "{ended:?}");
    let findings = ended.out.lines().count() as u64 - 1;
    assert_eq!(
        (end[0]["findings"].as_u64().unwrap(), ended.code),
        (findings, u8::from(findings > 0).into()),
        "{ended:?}"
    );
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_remedy() {
    let place = Place::new();
    let cut = place.file("cut.jsonl");
    std::fs::write(&cut, "{\"format\":\"ffclock counters 1\",\"instrument\":\"latency\"}\n{\"record\":\"rou").unwrap();
    let cut = cut.to_str().unwrap();
    for (arguments, code, word) in [
        (&["latency", "--only", "sundial"][..], 2, "leaves nothing"),
        (&["latency", "--for", "1 ms"], 2, "too short"),
        (&["latency", "--stress", "tea"], 2, "temperature-cycle"),
        (&["latency", "--phase", "1 s"], 2, "--stress"),
        (&["stability", "--every", "1 us"], 2, "at least 1 ms"),
        (&["stability", "--against", "/dev/null"], 1, "`ffclock counters` lists the devices"),
        (&["stability", "--against", "/dev/pps-none"], 1, "cannot be the reference"),
        (&["stability", "--against", "ffclock"], 1, "start ffclockd"),
        (&["latency", "--record", "/nonexistent/x", "--for", "200 ms"], 1, "cannot be written"),
        (&["show", cut], 1, "record again"),
        (&["show", "/dev/null"], 1, "no recording"),
        (&["show", "/nonexistent/x"], 1, "cannot be opened"),
    ] {
        let ended = place.run(&[&["counters"][..], arguments].concat());
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
        assert!(ended.err.contains(word), "{arguments:?}: {ended:?}");
    }
}

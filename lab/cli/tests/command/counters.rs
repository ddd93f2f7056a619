//! `ffclock-lab counters`: short runs of every instrument, and what it says about unusable input.

use crate::common::Place;
use serde_json::Value;

/// The records of a kind in what `--json` printed, or in a recording.
fn records(text: &str, kind: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|record| record["record"] == kind).collect()
}

#[test]
fn the_list_names_the_counters_and_the_choice() {
    let answer = Place::new().run(&["counters", "--json"]).json();
    let names: Vec<&str> = answer["counters"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"tsc") && names.contains(&"monotonic-raw"), "{names:?}");
    assert!(names.contains(&answer["choice"].as_str().unwrap()));
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
    let begin = ffclock_counter::read_ordered(ffclock_counter::CounterId::CPU).raw();
    let lines: String = (0..100).map(|n| format!("{},{}\n", begin + n * 100_000_000, 1_000_000 + n)).collect();
    std::fs::write(&file, format!("# base,time\n{lines}")).unwrap();
    let file = file.to_str().unwrap();
    let options = ["--for", "300 ms", "--every", "20 ms", "--only", "monotonic-raw vDSO", "--against", file, "--json"];
    let found = records(&place.run(&[&["counters", "stability"][..], &options].concat()).well(), "steadiness");
    let pairs: Vec<(&Value, &Value)> = found.iter().map(|one| (&one["counter"], &one["against"])).collect();
    assert_eq!(pairs.len(), 3, "{pairs:?}");
    assert!(pairs.iter().any(|pair| *pair.0 == "base" && *pair.1 == file), "{pairs:?}");
}

/// The measurement is not lost when the reference turns out to be unusable.
#[test]
fn a_file_that_is_no_reference_costs_no_measurement() {
    let place = Place::new();
    let (file, recording) = (place.file("reference.csv"), place.file("stability.jsonl"));
    let [file, recording] = [&file, &recording].map(|path| path.to_str().unwrap());
    let options = ["--every", "20 ms", "--only", "monotonic-raw vDSO", "--against", file, "--record", recording];
    let measure = |length: &str| place.run(&[&["counters", "stability", "--for", length][..], &options].concat());
    let begin = std::time::Instant::now();
    let missing = measure("60 s");
    assert!(missing.code == 1 && missing.err.contains("cannot be the reference"), "{missing:?}");
    std::fs::write(file, "base;time\n").unwrap();
    assert!(measure("60 s").err.contains("line 1 is not of this form"));
    assert!(begin.elapsed().as_secs() < 30, "nothing is measured in vain: {:?}", begin.elapsed());
    // Its writer has just begun.
    std::fs::write(file, "1,2\n").unwrap();
    let ended = measure("300 ms");
    assert!(ended.code == 1 && ended.err.contains("it has 1 points"), "{ended:?}");
    assert!(ended.out.contains("monotonic-raw vDSO"), "{ended:?}");
    let shown = place.run(&["counters", "show", recording]).well();
    assert!(shown.contains("monotonic-raw vDSO") && shown.contains("ended before its time: "), "{shown}");
    let found = records(&std::fs::read_to_string(recording).unwrap(), "steadiness");
    assert!(found.iter().any(|one| one["rate_ppm"].is_number()), "{found:?}");
    assert!(found.iter().any(|one| one["against"] == file && one["rate_ppm"].is_null()), "{found:?}");
}

/// Neither an earlier measurement nor the reference itself is overwritten.
#[test]
fn a_recording_is_never_written_over_another_file() {
    let place = Place::new();
    let [old, reference] = ["old.jsonl", "reference.csv"].map(|name| place.file(name));
    std::fs::write(&old, "a week of measuring").unwrap();
    std::fs::write(&reference, "1,2\n3,4\n").unwrap();
    let [old, reference] = [&old, &reference].map(|path| path.to_str().unwrap());
    let begin = std::time::Instant::now();
    for (instrument, file, more) in [
        ("latency", old, &[][..]),
        ("stability", old, &[]),
        ("clock", old, &["--warm-up", "1 s"]),
        ("stability", reference, &["--against", reference]),
    ] {
        let kept = std::fs::read_to_string(file).unwrap();
        let options = ["counters", instrument, "--for", "60 s", "--only", "monotonic-raw vDSO", "--record", file];
        let refused = place.run(&[&options, more].concat());
        assert!(refused.code == 1 && refused.err.contains("--record never overwrites"), "{refused:?}");
        assert!(refused.err.contains("another name") && refused.out.is_empty(), "{refused:?}");
        assert_eq!(std::fs::read_to_string(file).unwrap(), kept);
    }
    assert!(begin.elapsed().as_secs() < 30, "nothing is measured in vain: {:?}", begin.elapsed());
    let options = ["--for", "200 ms", "--only", "monotonic-raw vDSO", "--record", "/dev/null"];
    place.run(&[&["counters", "latency"][..], &options].concat()).well();
}

#[test]
fn a_warm_up_that_leaves_nothing_is_refused_at_once() {
    let begin = std::time::Instant::now();
    for options in [&["--for", "30 s"][..], &["--for", "10 s"], &["--stress", "cpu", "--phase", "10 s"]] {
        let refused = Place::new().run(&[&["counters", "clock"][..], options].concat());
        assert!(
            refused.code == 2 && refused.err.contains("nothing is left of 30 s") || refused.err.contains("of 10 s")
        );
        assert!(refused.err.contains("--for") && refused.err.contains("--warm-up"), "{refused:?}");
    }
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
    // The defaults leave something.
    let help = Place::new().run(&["counters", "clock", "--help"]).well();
    assert!(help.contains("[default: \"2 min\"]") && help.contains("[default: \"30 s\"]"), "{help}");
    let other = Place::new().run(&["counters", "latency", "--help"]).well();
    assert!(other.contains("[default: \"10 s\"]"), "{other}");
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
    let names: Vec<String> = clocks
        .iter()
        .map(|c| format!("{} {} {}", c["counter"], c["stamps"], c["estimator"]).replace('"', ""))
        .collect();
    // Further kinds of stamps depend on the rights of the user who runs this.
    assert!(names.len() >= 8 && names.len().is_multiple_of(4), "{names:?}");
    for name in ["tsc user", "tsc socket", "monotonic-raw user", "monotonic-raw socket"] {
        for estimator in ["learned", "classic"] {
            let name = format!("{name} {estimator}");
            assert!(names.iter().any(|found| found.replace("cntvct", "tsc") == name), "{names:?}");
        }
    }
    for clock in &clocks {
        assert!(clock["count"].as_u64().unwrap() > 5, "{clock}");
        assert_eq!(clock["outside"], 0, "{clock}");
    }
    assert!(records(&out, "exchange").len() > 10 && records(&out, "stamps").len() >= 2);
}

/// A recording of a version that did not name what was missing, and one with more readings outside the bound than
/// readings.
#[test]
fn an_old_and_an_impossible_recording_of_clocks_are_shown() {
    let place = Place::new();
    let file = place.file("clock.jsonl");
    let head = r#"{"format":"ffclock counters 1","instrument":"clock","about":{"base_hertz":1e9,"poll_s":1.0,"warm_up_s":0.0,"skew_ppm":0.0,"wander_ppm":0.0,"clocks":["tsc user"]}}"#;
    let clock = r#"{"record":"clock","counter":"tsc","stamps":"user","phase":0,"count":3,"outside":5,"median_s":0.0,"iqr_s":0.0,"p1_s":0.0,"p25_s":0.0,"p75_s":0.0,"p99_s":0.0}"#;
    std::fs::write(&file, format!("{head}\n{clock}\n{}\n", r#"{"record":"end","records":1}"#)).unwrap();
    let shown = place.run(&["counters", "show", file.to_str().unwrap()]).well();
    assert!(shown.contains("0 of 3") && shown.contains("classic"), "{shown}");
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
    let probe = place.file("probe.jsonl");
    std::fs::write(
        &probe,
        "{\"format\":\"ffclock counters 1\",\"instrument\":\"probe\"}\n{\"record\":\"end\",\"records\":0}\n",
    )
    .unwrap();
    let [cut, probe] = [&cut, &probe].map(|path| path.to_str().unwrap());
    for (arguments, code, word) in [
        (&["latency", "--only", "sundial"][..], 2, "leaves nothing"),
        (&["latency", "--for", "1 ms"], 2, "too short"),
        (&["latency", "--stress", "tea"], 2, "temperature-cycle"),
        (&["latency", "--phase", "1 s"], 2, "--stress"),
        (&["stability", "--every", "1 us"], 2, "at least 1 ms"),
        (&["stability", "--against", "/dev/null"], 1, "`ffclock-lab counters` lists the devices"),
        (&["stability", "--against", "/dev/pps-none"], 1, "cannot be the reference"),
        (&["stability", "--against", "ffclock"], 1, "start ffclockd"),
        (&["latency", "--record", "/nonexistent/x", "--for", "200 ms"], 1, "cannot be written"),
        (&["show", cut], 1, "record again"),
        (&["show", "/dev/null"], 1, "no recording"),
        (&["show", probe], 1, "ffclock-lab probe show"),
        (&["show", "/nonexistent/x"], 1, "cannot be opened"),
    ] {
        let ended = place.run(&[&["counters"][..], arguments].concat());
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
        assert!(ended.err.contains(word), "{arguments:?}: {ended:?}");
    }
}

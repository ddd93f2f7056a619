//! The subcommands that ask the daemon: status, sources, watch, reload.

use crate::common::Place;
use ffclock_units::Status;

const REPORT: &str = include_str!("status.json");

fn with_daemon() -> Place {
    let place = Place::new();
    place.answer(REPORT.trim());
    place
}

#[test]
fn status_is_laid_out_for_people() {
    let out = with_daemon().run(&["status"]).well();
    assert_eq!(out, include_str!("status.txt"));
}

#[test]
fn status_in_json_is_the_answer_of_the_daemon() {
    let answer = with_daemon().run(&["status", "--json"]).json();
    let mut sent: serde_json::Value = serde_json::from_str(REPORT).unwrap();
    sent.as_object_mut().unwrap().remove("answer");
    assert_eq!(answer, sent);
}

#[test]
fn status_of_a_clock_that_is_not_synchronised_ends_with_three() {
    let place = Place::new();
    place.answer(&REPORT.trim().replace("\"synchronised\"", "\"unsynchronised\""));
    let ended = place.run(&["status"]);
    assert_eq!(ended.code, 3);
    assert!(ended.out.contains("unsynchronised"), "{ended:?}");
}

#[test]
fn without_a_daemon_the_page_still_speaks() {
    let place = Place::new();
    place.publish(Status::Synchronised);
    let ended = place.run(&["status"]);
    assert_eq!(ended.code, 1);
    assert!(ended.out.contains("The page says: 2026-11-21T09:30:"), "{ended:?}");
    assert!(ended.err.contains("is ffclockd running?"), "{ended:?}");
    let answer = place.run(&["status", "--json"]).json();
    assert_eq!(answer["page"]["status"], "synchronised");
    assert!(answer["error"].as_str().unwrap().contains("control socket"));
    let answer = Place::new().run(&["status", "--json"]).json();
    assert!(answer["page"].is_null());
}

#[test]
fn sources_are_a_table() {
    let out = with_daemon().run(&["sources"]).well();
    let table = include_str!("status.txt").split("\n\n").nth(2).unwrap();
    assert_eq!(out, format!("{table}\n\n  the system clock is 3.25 us ahead\n"));
    let answer = with_daemon().run(&["sources", "--json"]).json();
    assert_eq!(answer[0]["name"], "ntp.example.org");
    assert_eq!(answer.as_array().unwrap().len(), 2);
}

#[test]
fn the_table_of_sixteen_servers_with_long_addresses_fits_a_terminal() {
    let mut answer: serde_json::Value = serde_json::from_str(REPORT).unwrap();
    let mut source = answer["sources"][0].clone();
    source["name"] = "[2001:db8:85a3:1111:2222:8a2e:370:7334]:1123".into();
    (source["state"], source["slowed"], source["poll_s"]) = ("unreachable".into(), true.into(), 187.342_156.into());
    for key in ["bound_s", "uncertainty_s", "floor_s", "round_trip_s", "offset_s"] {
        source[key] = (-0.022_083_7).into();
    }
    (source["used"], source["exchanges"], source["sent"]) = (1_234_567.into(), 1_234_570.into(), 1_300_000.into());
    answer["sources"] = vec![source; 16].into();
    let place = Place::new();
    place.answer(&answer.to_string());
    let out = place.run(&["sources"]).well();
    assert!(out.lines().count() == 19 && out.lines().all(|line| line.chars().count() <= 120), "{out}");
    assert!(out.contains("* [2001") && out.contains("]:1123 "), "{out}");
    assert!(place.run(&["sources", "--why"]).well().contains("[2001:db8:85a3:1111:2222:8a2e:370:7334]:1123"));
}

#[test]
fn a_server_that_asked_for_fewer_requests_is_marked() {
    let place = Place::new();
    place.answer(&REPORT.trim().replacen("\"slowed\":false", "\"slowed\":true", 1));
    let out = place.run(&["sources"]).well();
    assert!(out.lines().nth(1).is_some_and(|line| line.contains("  16 s (RATE)  ")), "{out}");
}

/// The daemon's answer with one server for each way to stand, whose sign is the first letter of its name.
fn answer_with_every_mark() -> String {
    let mut answer: serde_json::Value = serde_json::from_str(REPORT).unwrap();
    let server = answer["sources"][0].clone();
    let stands = |name: &str, belief: &str, suspect: bool| {
        let mut server = server.clone();
        (server["name"], server["belief"], server["selected"]) =
            (name.into(), belief.into(), name.starts_with('*').into());
        server["vote"]["suspect"] = suspect.into();
        server
    };
    let mut selected_suspect = stands("~selected", "truechimer", true);
    selected_suspect["selected"] = true.into();
    answer["sources"] = serde_json::json!([
        stands("*", "truechimer", false),
        stands("+", "truechimer", false),
        stands("~", "truechimer", true),
        selected_suspect,
        stands("x", "falseticker", false),
        stands("x-suspected-before", "falseticker", true),
        stands("?", "undecided", false),
        stands("-", "no-select", false),
    ]);
    answer.to_string()
}

#[test]
fn every_standing_has_a_mark_of_its_own_in_every_table() {
    let place = Place::new();
    place.answer(&answer_with_every_mark());
    place.publish(Status::Synchronised);
    let why = place.run(&["sources", "--why"]).well();
    let is_head = |line: &&str| line.len() > 1 && !line.starts_with("  ") && line.get(1..2) == Some(" ");
    let heads: Vec<&str> = why.lines().filter(is_head).collect();
    assert_eq!(heads.len(), 8, "{why}");
    assert!(heads.iter().all(|line| line[..1] == line[2..3]), "{why}");
    let table = place.run(&["sources"]).well();
    let rows: Vec<&str> = table.lines().skip(1).take(8).collect();
    assert!(rows.len() == 8 && rows.iter().all(|row| row[..1] == row[2..3]), "{table}");
    assert_eq!(
        table.lines().nth(9),
        Some("  ~ suspect, x falseticker, ? undecided, - no_select: see ffclock sources --why")
    );
    let shared: String = table.split_inclusive('\n').take(10).collect();
    assert!(place.run(&["status"]).well().contains(&shared));
    let help = place.run(&["sources", "--help"]).well();
    for sign in ["*", "+", "~", "x", "?", "-"] {
        assert!(help.lines().any(|line| line.starts_with(&format!("  {sign}  "))), "{sign}: {help}");
    }
}

#[test]
fn sources_say_why_they_are_believed_or_not() {
    let out = with_daemon().run(&["sources", "--why"]).well();
    let expected = "\
* ntp.example.org
  protected by NTS, 8 cookies left, certificate until 2027-01-01T00:00:00Z
  claims    stratum 2, an error of 300 us at most
  proves    the true time is -701 us to +812 us from the published one
  off by    +0 ns
  uncertain by 14 us (k = 1), of it noise 9 us
  verdict   believed and selected: it belongs to every majority of the 3 servers

  other.example.org
  protected by nothing: anyone on the path can forge its packets
  claims    not known yet
  proves    not known yet
  off by    not known yet
  uncertain not known yet
  verdict   not believed: its name has no address yet

The bound of 812 us holds as long as none of the 3 believed servers is false by less than the others can see.
The strict bound of 15.1 ms holds as long as at most 1 of the 3 servers with a vote can be false, in whatever way.
";
    assert_eq!(out, expected);
    let answer = with_daemon().run(&["sources", "--why", "--json"]).json();
    assert_eq!(answer[1]["why"], "not believed: its name has no address yet");
    assert_eq!(answer[0]["vote"]["proven_s"][1], 0.000812);
}

#[test]
fn a_server_of_ptp_shows_its_grandmaster() {
    let mut answer: serde_json::Value = serde_json::from_str(REPORT).unwrap();
    let master = "b268b8.fffe.d92b00";
    let ptp = serde_json::json!({"domain": 24, "master": format!("{master}-1"), "grandmaster": master, "clock_class": 6,
                                 "steps_removed": 0});
    (answer["sources"][0]["ptp"], answer["sources"][1]["ptp"]) = (ptp, serde_json::json!({"domain": 0}));
    let place = Place::new();
    place.answer(&answer.to_string());
    let out = place.run(&["sources", "--why"]).well();
    let line = "follows   the grandmaster b268b8.fffe.d92b00 of class 6 in domain 24, 0 boundary clocks away";
    assert!(out.contains(line) && out.contains("follows   no master in domain 0"), "{out}");
}

/// As an earlier daemon answers, which knows of no vote, and a later one with fields of its own.
#[test]
fn an_answer_of_another_version_is_laid_out_as_far_as_it_is_known() {
    let mut answer: serde_json::Value = serde_json::from_str(REPORT).unwrap();
    answer.as_object_mut().unwrap().remove("vote");
    answer["clock"].as_object_mut().unwrap().remove("bound_strict_s");
    answer["clock"]["of_a_later_version"] = 1.into();
    answer["of_a_later_version"] = serde_json::json!({ "s": 1 });
    let place = Place::new();
    place.answer(&answer.to_string());
    let out = place.run(&["status"]).well();
    assert!(!out.contains("Premise") && out.contains("Bound    812 us"), "{out}");
}

#[test]
fn watch_writes_lines_where_there_is_no_terminal() {
    let place = with_daemon();
    place.publish(Status::Synchronised);
    let out = place.run(&["watch", "--count", "2", "--interval", "10 ms"]).well();
    assert_eq!(out.lines().count(), 2);
    for part in [
        "  offset ",
        "  bound 812.",
        "  uncertainty 14",
        "  noise 9",
        "  rate -12.5 ppm",
        "  floor 1.52 ms",
        "  synchronised",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains('\x1b'));
}

#[test]
fn watch_in_json_is_a_line_for_each_look() {
    let place = with_daemon();
    place.publish(Status::Synchronised);
    let out = place.run(&["watch", "--json", "--count", "2", "--interval", "10 ms"]).well();
    for line in out.lines() {
        let look: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(look["reading"]["status"], "synchronised");
        assert!(look["offset_s"].is_number());
        assert_eq!(look["daemon"]["sources"][0]["state"], "reachable");
        assert_eq!(look["errors"].as_array().unwrap().len(), 0);
    }
    let ended = Place::new().run(&["watch", "--count", "1"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("is ffclockd running?"), "{ended:?}");
}

#[test]
fn watch_goes_on_without_a_daemon() {
    let place = Place::new();
    place.publish(Status::Holdover);
    let out = place.run(&["watch", "--count", "1"]).well();
    assert!(out.contains("holdover"), "{out}");
}

#[test]
fn reload_says_how_it_went() {
    let place = Place::new();
    place.answer("{\"answer\":\"reloaded\"}");
    assert!(place.run(&["reload"]).well().contains("in force"));
    let place = Place::new();
    place.answer("{\"answer\":\"error\",\"message\":\"line 3: unknown key `pool`\"}");
    let ended = place.run(&["reload"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("line 3: unknown key `pool`"), "{ended:?}");
}

//! docs/control.md names every field that the control socket can send.

use ffclock_control::protocol::{
    Agreement, Algorithm, Answer, AuthenticationReport, BeliefReport, ClockReport, CounterReport, EventReport,
    PtpReport, QuorumReport, Request, SourceReport, SourceState, SourceVote, Status, StatusReport, VoteReport,
};
use serde_json::Value;

fn source() -> SourceReport {
    SourceReport {
        name: "a".into(),
        address: Some("192.0.2.1:123".into()),
        state: SourceState::Reachable,
        selected: true,
        belief: BeliefReport::Truechimer,
        estimator: Algorithm::Learned,
        agreement: Agreement::Agree,
        wander_ppm: Some(1.0),
        poll_s: 1.0,
        slowed: true,
        stratum: Some(1),
        root_distance_s: Some(0.0),
        sent: 1,
        exchanges: 1,
        used: 1,
        interleaved: 0,
        lost: 0,
        rejected: Vec::new(),
        floor_s: Some(0.0),
        round_trip_s: Some(0.0),
        shifts: (0, 0),
        bound_s: Some(0.0),
        uncertainty_s: Some(0.0),
        noise_s: Some(0.0),
        offset_s: Some(0.0),
        vote: SourceVote { proven_s: Some((0.0, 0.0)), ..SourceVote::default() },
        authentication: AuthenticationReport::default(),
        ptp: Some(PtpReport {
            domain: 0,
            master: Some("b268b8.fffe.d92b00-1".into()),
            grandmaster: Some("b268b8.fffe.d92b00".into()),
            clock_class: Some(6),
            steps_removed: Some(0),
        }),
        why: "believed".into(),
    }
}

fn whole_report() -> StatusReport {
    StatusReport {
        version: "0".into(),
        uptime_s: 0.0,
        counter: CounterReport { name: "tsc".into(), reason: "test".into(), nominal_hz: 1e9, epoch: 1 },
        stamps: "kernel".into(),
        page: "/page".into(),
        clock: Some(ClockReport {
            status: Status::Synchronised,
            utc_ns: 0,
            system_clock_behind_s: 0.0,
            bound_s: 0.0,
            bound_strict_s: Some(0.0),
            uncertainty_s: 0.0,
            noise_s: Some(0.0),
            period_s: 1e-9,
            rate_ppm: 0.0,
            rate_bound_ppm: 0.0,
            tai_offset_s: 37,
            leap: Some((0, 1)),
        }),
        keep_noise_s: Some(2e-6),
        selected: Some("a".into()),
        quorum: Some(QuorumReport::Majority),
        vote: Some(VoteReport::default()),
        sources: vec![source()],
        events: vec![EventReport { at_s: 0.0, source: None, text: "t".into() }],
    }
}

fn field_names(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                names.push(name.clone());
                field_names(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| field_names(item, names)),
        _ => {}
    }
}

#[test]
fn every_field_stands_in_the_document() {
    let document = include_str!("../../../docs/control.md");
    let mut names = Vec::new();
    field_names(&serde_json::to_value(Answer::Status(Box::new(whole_report()))).unwrap(), &mut names);
    field_names(&serde_json::to_value(Answer::Error { message: String::new() }).unwrap(), &mut names);
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        assert!(document.contains(&format!("`{name}`")), "docs/control.md does not explain `{name}`");
    }
    for request in [Request::Status, Request::Reload] {
        let line = serde_json::to_string(&request).unwrap();
        assert!(document.contains(&line), "docs/control.md does not show {line}");
    }
    for state in [
        "reloaded",
        "synchronised",
        "holdover",
        "warming-up",
        "unsynchronised",
        "resolving",
        "waiting",
        "agree",
        "disagree",
        "too-little-data",
        "alone",
        "majority",
        "disagreement",
        "too-few",
        "no-select",
        "truechimer",
        "falseticker",
        "undecided",
        "unknown",
    ] {
        assert!(document.contains(&format!("`{state}`")), "{state}");
    }
}

#[test]
fn the_answer_of_an_older_daemon_is_read() {
    let mut answer = serde_json::to_value(whole_report()).unwrap();
    answer.as_object_mut().unwrap().remove("quorum");
    answer["sources"][0].as_object_mut().unwrap().remove("belief");
    let report: StatusReport = serde_json::from_value(answer).unwrap();
    assert_eq!((report.quorum, report.sources[0].belief), (None, BeliefReport::Unknown));
}

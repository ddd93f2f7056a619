//! Faults that the daemon reports, and those of a daemon that does not.

use super::{Listens, Seed};
use serde_json::{Value, json};
use std::fs;

fn server(report: &mut Value) -> &mut Value {
    &mut report["sources"][1]
}

/// The second server becomes a clock at this host.
fn reference(report: &mut Value) -> &mut Value {
    let server = server(report);
    (server["name"], server["authentication"]) = ("pps:/dev/pps0".into(), json!({ "kind": "none" }));
    server
}

const fn event(sow: fn(&mut super::SeededHost), finds: &'static [&'static str]) -> Seed {
    Seed { sow, finds }
}

pub(super) const SEEDS: &[Seed] = &[
    Seed { sow: |host| host.listens = Listens::Absent, finds: &["daemon-absent"] },
    Seed { sow: |host| host.listens = Listens::Dead, finds: &["daemon-dead"] },
    Seed { sow: |host| host.listens = Listens::Stuck, finds: &["daemon-stuck"] },
    Seed { sow: |host| host.listens = Listens::With("HTTP/1.1 400 Bad Request"), finds: &["answer-foreign"] },
    Seed {
        sow: |host| {
            host.listens = Listens::Absent;
            fs::write(host.place.control(), "mine").unwrap();
        },
        finds: &["control-foreign"],
    },
    Seed { sow: |host| host.report["version"] = "0.0.9".into(), finds: &["versions-differ"] },
    Seed { sow: |host| host.report["clock"] = Value::Null, finds: &["clock-unset"] },
    Seed { sow: |host| host.report["clock"]["status"] = "unsynchronised".into(), finds: &["clock-unset"] },
    Seed { sow: |host| host.report["clock"]["status"] = "holdover".into(), finds: &["holdover"] },
    Seed { sow: |host| host.report["clock"]["status"] = "warming-up".into(), finds: &["warming-up"] },
    Seed { sow: |host| host.report["clock"]["bound_s"] = 0.25.into(), finds: &["bound-large"] },
    Seed { sow: |host| host.report["clock"]["system_clock_behind_s"] = (-3600.0).into(), finds: &["system-clock-off"] },
    // 2026-12-01: the end of November.
    Seed { sow: |host| host.report["clock"]["leap"] = json!([1_796_083_200, 1]), finds: &["leap-odd"] },
    // 2027-01-01: as it should be.
    Seed { sow: |host| host.report["clock"]["leap"] = json!([1_798_761_600, 1]), finds: &[] },
    Seed { sow: |host| host.report["quorum"] = "disagreement".into(), finds: &["no-majority"] },
    Seed { sow: |host| host.report["quorum"] = "too-few".into(), finds: &["too-few"] },
    Seed { sow: |host| host.report["sources"].as_array_mut().unwrap().truncate(1), finds: &["one-server"] },
    Seed { sow: |host| host.report["sources"].as_array_mut().unwrap().truncate(2), finds: &["two-servers"] },
    Seed { sow: |host| host.report["stamps"] = "user (the kernel refuses)".into(), finds: &["stamps-user"] },
    Seed { sow: |host| host.report["stamps"] = "kernel (no network card gives any)".into(), finds: &["stamps-card"] },
    Seed {
        sow: |host| {
            host.report["stamps"] = "hardware; kernel for a.example (the network card's do not serve)".into();
        },
        finds: &["stamps-card"],
    },
    Seed {
        sow: |host| host.report["stamps"] = "kernel; user for b.example (the kernel's do not come)".into(),
        finds: &["stamps-user"],
    },
    Seed {
        sow: |host| {
            host.report["stamps"] = "trace (not to be had: those of the sockets serve)".into();
            host.event("no stamps at the driver's boundary: those of the sockets serve: stamps = \"trace\": no right");
        },
        finds: &["stamps-boundary"],
    },
    Seed {
        sow: |host| {
            let server = server(&mut host.report);
            (server["state"], server["exchanges"], server["lost"]) = ("unreachable".into(), 0.into(), 9.into());
        },
        finds: &["server-silent"],
    },
    Seed { sow: |host| server(&mut host.report)["state"] = "unreachable".into(), finds: &["server-unreachable"] },
    Seed { sow: |host| server(&mut host.report)["state"] = "resolving".into(), finds: &["server-unresolved"] },
    Seed { sow: |host| server(&mut host.report)["state"] = "refused".into(), finds: &["server-refuses"] },
    Seed {
        sow: |host| {
            server(&mut host.report)["ptp"] = json!({"domain": 0});
            server(&mut host.report)["state"] = "resolving".into();
        },
        finds: &["ptp-closed"],
    },
    Seed {
        sow: |host| {
            server(&mut host.report)["ptp"] = json!({"domain": 0});
            server(&mut host.report)["state"] = "unreachable".into();
        },
        finds: &["ptp-silent"],
    },
    // What is for others is no fault.
    Seed {
        sow: |host| {
            server(&mut host.report)["ptp"] = json!({"domain": 0});
            server(&mut host.report)["rejected"] = json!([["domain", 50_000], ["not-for-us", 50_000]]);
        },
        finds: &[],
    },
    // A clock at this host needs no authentication.
    Seed { sow: |host| _ = reference(&mut host.report), finds: &[] },
    Seed { sow: |host| reference(&mut host.report)["state"] = "resolving".into(), finds: &["reference-unread"] },
    Seed { sow: |host| reference(&mut host.report)["state"] = "unreachable".into(), finds: &["reference-silent"] },
    Seed {
        sow: |host| {
            let reference = reference(&mut host.report);
            (reference["state"], reference["exchanges"]) = ("waiting".into(), 0.into());
            reference["rejected"] = json!([["unnumbered", 400]]);
        },
        finds: &["reference-silent"],
    },
    Seed {
        sow: |host| reference(&mut host.report)["rejected"] = json!([["not-a-second", 400]]),
        finds: &["reference-refused"],
    },
    Seed { sow: |host| server(&mut host.report)["slowed"] = true.into(), finds: &["server-slowed"] },
    Seed { sow: |host| server(&mut host.report)["belief"] = "falseticker".into(), finds: &["falseticker"] },
    Seed { sow: |host| server(&mut host.report)["belief"] = "undecided".into(), finds: &["undecided"] },
    Seed { sow: |host| server(&mut host.report)["vote"]["suspect"] = true.into(), finds: &["suspect"] },
    Seed { sow: |host| server(&mut host.report)["vote"]["same_as"] = "a.example".into(), finds: &["server-twice"] },
    Seed {
        sow: |host| server(&mut host.report)["rejected"] = json!([["wrong-origin", 50_000], ["near-leap", 2]]),
        finds: &["packets-refused"],
    },
    Seed { sow: |host| server(&mut host.report)["rejected"] = json!([["near-leap", 5_000]]), finds: &[] },
    Seed { sow: |host| server(&mut host.report)["agreement"] = "disagree".into(), finds: &["estimators-disagree"] },
    Seed {
        sow: |host| server(&mut host.report)["authentication"] = json!({ "kind": "none" }),
        finds: &["server-unauthenticated"],
    },
    Seed {
        sow: |host| {
            server(&mut host.report)["authentication"]["certificate_end"] = "2026-11-30T12:00:00Z".into();
        },
        finds: &["nts-certificate"],
    },
    Seed {
        sow: |host| {
            let server = server(&mut host.report);
            (server["state"], server["exchanges"]) = ("waiting".into(), 0.into());
            server["authentication"] = json!({ "kind": "nts", "cookies": 0 });
        },
        finds: &["nts-no-keys"],
    },
    Seed {
        sow: |host| server(&mut host.report)["authentication"] = json!({ "kind": "key" }),
        finds: &["key-unusable"],
    },
    event(|host| host.event("the rate cannot be remembered: No space left on device"), &["state-unwritten"]),
    event(|host| host.event("recording stopped; what was recorded is kept: No space left"), &["record-stopped"]),
    event(|host| host.event("old stamps will not be converted well: its file system is full"), &["history-unmade"]),
    event(|host| host.event("the page was removed or replaced: it is made again"), &["files-removed"]),
    event(|host| host.event("the page's header was damaged: it is written again: page"), &["page-damaged"]),
    event(|host| host.event("the counter's epoch ended: the host was suspended"), &[]),
    event(|host| (0..2).for_each(|_| host.event("the counter's epoch ended: the counter jumped")), &["counter-broken"]),
    event(
        |host| host.event("the new configuration is refused; the old one stays in force: line 3"),
        &["config-refused"],
    ),
    event(
        |host| {
            host.event("the new configuration is refused; the old one stays in force: line 3");
            host.event("the configuration was read again");
        },
        &[],
    ),
    event(|host| host.event("the server follows this host: it is no source of time"), &["server-loops"]),
    event(
        |host| {
            host.event("the server follows this host: it is no source of time");
            host.event("the server no longer follows this host");
        },
        &[],
    ),
    // Since yesterday.
    Seed {
        sow: |host| {
            let server = server(&mut host.report);
            (server["state"], server["exchanges"]) = ("unreachable".into(), 0.into());
            server["rejected"] = json!([["loop", 5000]]);
        },
        finds: &["server-loops"],
    },
    event(|host| host.event("the server contradicts what it said before: not believed"), &["server-jumped"]),
    event(
        |host| {
            host.event("another server contradicts what the last one proved: it has to insist");
            host.event("the server insisted on another time: it is believed now");
        },
        &[],
    ),
    event(
        |host| host.event("the published time lies outside of what the believed servers share: the bound covers both"),
        &["published-outside"],
    ),
    event(
        |host| {
            host.event(
                "changes outside [[server]], [source], [estimator], the vote and the polls take effect with the next start",
            );
        },
        &["config-waits"],
    ),
    event(|host| host.event("the kernel's clock cannot be driven: Operation not permitted"), &["kernel-clock"]),
    event(|host| host.event("there are more pulses than seconds"), &["reference-noisy"]),
    event(|host| host.event("the pulses slipped: by +0.250000 s"), &["reference-slipped"]),
    event(|host| host.event("the hardware clock was stepped by another program"), &[]),
    event(
        |host| (0..2).for_each(|_| host.event("the hardware clock was stepped by another program")),
        &["reference-stepped"],
    ),
    event(|host| host.event("the host's counter is not the one of this machine"), &["reference-counter"]),
    event(|host| host.event("the host's delays are not known: no calibration"), &["calibration-missing"]),
    event(
        |host| host.event("the clock of a network card was stepped by another program: ptp0 by +1.000e-3 s"),
        &["card-changed"],
    ),
    event(
        |host| host.event("the network card gives no stamps: those of the kernel serve: lo cannot stamp packets"),
        &["stamps-card"],
    ),
    event(|host| host.event("no random numbers: nothing is asked: Function not implemented"), &["no-random"]),
    event(|host| host.event("cannot send: Network is unreachable"), &["cannot-send"]),
    event(|host| host.event("servers do not agree about a leap second"), &["leap-disputed"]),
    event(
        |host| host.event("a second leap second in one run cannot be taken in: restart ffclockd before it"),
        &["leap-twice"],
    ),
    event(|host| host.event("the stated error of the asymmetry contradicts the exchanges"), &["asymmetry-wrong"]),
    event(|host| host.event("the counter left its nominal range: a new start"), &["nominal-left"]),
    event(
        |host| {
            host.event("the counter's rate moved by more than the assumed wander: the bound was widened: 2.000 ppm");
        },
        &["wander-raised"],
    ),
];

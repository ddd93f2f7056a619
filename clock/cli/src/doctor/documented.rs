//! That nothing is written of the daemon which the doctor does not know: each event, state and message of the documents
//! is a sign that it finds, or is here with what finds it in another way, or with the reason that nothing has to.

use super::catalogue::{self as fault, HostCheck};
use super::events::SIGNS;
use Known::{By, Harmless};

const OPERATIONS: &str = include_str!("../../../../docs/operations.md");
const EVENTS: &str = include_str!("../../../../docs/events.md");
const REFERENCES: &str = include_str!("../../../../docs/references.md");
const PTP: &str = include_str!("../../../../docs/ptp.md");

/// Why something that is documented is no sign.
enum Known {
    /// The daemon's state, the page or the host shows it as this fault, for as long as it lasts.
    By(HostCheck),
    /// Nothing is wrong.
    Harmless(&'static str),
}

const AS_ALWAYS: Known = Harmless("regular work");
const OVER: Known = Harmless("something has ended well");
const ONCE: Known = Harmless("once it says little; what it leads to when it recurs is found in the state");
const NO_ESTIMATE: Known = By(fault::CLOCK_UNSET);

/// By heading of the documents.
const OTHERWISE: &[(Known, &[&str])] = &[
    (AS_ALWAYS, &["asking", "the server answers", "selected from now on", "keys were established", "warm-up is over"]),
    (AS_ALWAYS, &["the reference is open", "the reference gives time", "listening for masters of PTP"]),
    (
        AS_ALWAYS,
        &["this master is the best and is followed", "the master gives time", "the configuration was read again"],
    ),
    (AS_ALWAYS, &["the kernel's feed-forward clock follows", "synchronised", "reachable", "learned", "classic"]),
    (AS_ALWAYS, &["the estimate starts again with other options; the rate stays known"]),
    (OVER, &["truechimer: it agrees with the majority", "another address of the pool takes the place of one"]),
    (OVER, &["the remembered rate proved wrong and was dropped"]),
    (OVER, &["the learned filter was re-initialised from the last exchanges"]),
    (OVER, &["the learned filter lost track and started again"]),
    (ONCE, &["a correction too large to be believed was dropped", "a rate too far off to be believed was dropped"]),
    (ONCE, &["exchange out of order", "the round trip is too long to say anything"]),
    (ONCE, &["the server replied before it received"]),
    (ONCE, &["the server claims to have kept the request longer than the round trip"]),
    (ONCE, &["the counter's rate seems to have jumped: the learned filter follows"]),
    (ONCE, &["messages of PTP are turned away"]),
    (ONCE, &["cannot receive", "the device counts its pulses from the beginning again"]),
    (Harmless("for information: the clock does not rest on it"), &["the system clock was set"]),
    (
        Harmless("readers follow; a slow clocksource is found at the host"),
        &["time is kept with another counter from now on"],
    ),
    (Harmless("the bound covers both"), &["the published time lies outside what is proven: the bound covers both"]),
    (Harmless("the route changed, the bound with it"), &["the path became longer: the round-trip floor was raised"]),
    (Harmless("the route changed, the bound with it"), &["the path became shorter: the round-trip floor fell"]),
    (Harmless("as the server's operator wants it"), &["the server follows another reference"]),
    (Harmless("as the server's operator wants it"), &["the master says something else about itself"]),
    (Harmless("the next exchange counts"), &["the server has just changed: the exchange counts for the floor only"]),
    (
        Harmless("a vote follows within 16 s"),
        &["too few servers have answered to decide: the clock runs on its oscillator"],
    ),
    (Harmless("shown in the log, and only on request"), &["packets do not arrive", "packet turned away", "no reply"]),
    (Harmless("it is asked again"), &["no answer to a request for unicast messages"]),
    (
        Harmless("a restore, after which the next exchange brings time back"),
        &["the host says that the counter was disrupted"],
    ),
    (Harmless("the master's own UTC is wrong, its TAI is used"), &["the master has another TAI - UTC"]),
    (Harmless("a new source, and the uncertainty covers it"), &["learned?"]),
    (By(fault::SERVER_UNREACHABLE), &["the server does not answer", "unreachable"]),
    (By(fault::SERVER_UNREACHABLE), &["the server answers, and nothing of it is of use: it counts as silent"]),
    (By(fault::SERVER_SILENT), &["waiting"]),
    (By(fault::SERVER_REFUSES), &["no longer asked", "the server refuses", "refused"]),
    (By(fault::FALSETICKER), &["falseticker: its time contradicts the majority's"]),
    (By(fault::UNDECIDED), &["undecided: no vote can say whether its time is right"]),
    (By(fault::SUSPECT), &["suspect: its path and its claim do not explain its time: it has no weight"]),
    (By(fault::NO_MAJORITY), &["the servers disagree and none has a majority: no server is followed"]),
    (By(fault::TOO_FEW), &["fewer servers answer than min_servers demands: no server is followed"]),
    (By(fault::SERVER_UNRESOLVED), &["name look-up failed", "cannot look the name up", "resolving"]),
    (By(fault::SERVER_UNRESOLVED), &["cannot use the address", "the name has no address of the wanted family"]),
    (
        By(fault::NTS_NO_KEYS),
        &["no keys could be established", "cannot establish keys", "no keys can be established yet"],
    ),
    (By(fault::NTS_NO_KEYS), &["the server cannot open our cookie: keys are established again"]),
    (By(fault::KEY_UNUSABLE), &["the symmetric key cannot be used: nothing is asked"]),
    (By(fault::STAMPS_USER), &["the kernel refuses to stamp packets", "no usable stamps come from the kernel"]),
    (
        By(fault::STAMPS_CARD),
        &["a stamp of the network card: the kernel's serves", "no usable stamps come from the network card"],
    ),
    (By(fault::ESTIMATORS_DISAGREE), &["the learned and the classic estimate disagree", "learned!"]),
    (By(fault::LEAP_ODD), &["a leap second is announced"]),
    (By(fault::REFERENCE_UNREAD), &["the reference cannot be opened", "the reference cannot be read any more"]),
    (By(fault::REFERENCE_SILENT), &["the reference is silent", "no pulses come that can be used"]),
    (ONCE, &["the pulses were numbered by a clock that was wrong: they are numbered again"]),
    (By(fault::PTP_CLOSED), &["masters of PTP cannot be heard"]),
    (By(fault::PTP_SILENT), &["the master is gone, and there is no other", "no master of PTP is heard"]),
    (By(fault::PTP_SILENT), &["the master gives no time that can be used"]),
    (By(fault::PTP_SILENT), &["the master refuses unicast messages", "the master ends its unicast messages"]),
    (By(fault::WARMING_UP), &["warming-up"]),
    (By(fault::HOLDOVER), &["holdover"]),
    (NO_ESTIMATE, &["unsynchronised"]),
    (By(fault::CONFIG_WRONG), &["line N:"]),
    (By(fault::DAEMON_ABSENT), &["may not be written by this user, and XDG_RUNTIME_DIR names no directory instead"]),
    (By(fault::DAEMON_TWICE), &["the page cannot be made: is being written by another daemon"]),
    (By(fault::DAEMON_TWICE), &["control socket: another ffclockd is running"]),
    (By(fault::DISK_FULL), &["the page cannot be made: needs 4096 bytes, and its file system is full"]),
    (By(fault::PAGE_FOREIGN), &["the page cannot be made: is there already and is not a clock page: it is left alone"]),
    (By(fault::CONTROL_FOREIGN), &["control socket: something else is there that is not a socket"]),
    (
        By(fault::UNIT_FAILED),
        &["the page cannot be made:", "metrics on: Address already in use", "the counter cannot be used"],
    ),
];

/// The part of a document from one line on to another.
fn part<'a>(document: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = document.split_once(&format!("\n{from}\n")).unwrap_or_else(|| panic!("no {from}"));
    rest.split(&format!("\n{to}")).next().unwrap_or_default()
}

/// The words in backquotes with which an entry begins, without what stands for others. Where the sentence goes on
/// behind them they are no heading.
fn headings(entry: &str) -> Vec<String> {
    let mut words = entry.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    while let Some((heading, rest)) = words.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
        if found.is_empty() && ![":", ",", " |", " ("].iter().any(|mark| rest.starts_with(mark)) {
            break;
        }
        found.push(heading.replace(" ...", "").trim_start_matches("... ").to_owned());
        words = rest.trim_start_matches([',', ' ']).to_owned();
    }
    found
}

/// All that the documents say may happen.
fn documented() -> Vec<String> {
    let events = part(EVENTS, "## About the counter", "## It does not start");
    let entries = events.split("\n- ").skip(1);
    let tables = [
        part(OPERATIONS, "## What the status means", "## "),
        part(EVENTS, "## It does not start", "## "),
        part(REFERENCES, "## Events", "## "),
        part(PTP, "### Events", "### "),
    ];
    let rows = tables.iter().flat_map(|table| table.lines()).filter_map(|line| line.strip_prefix("| "));
    let mut all: Vec<String> = entries.chain(rows).flat_map(headings).collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn all_that_is_documented_is_found_or_harmless() {
    let all = documented();
    assert!(all.len() >= 110, "{}", all.len());
    for heading in &all {
        let is_sign = SIGNS.iter().any(|sign| heading.starts_with(sign.begins));
        let is_known = OTHERWISE.iter().any(|(_, headings)| headings.contains(&heading.as_str()));
        assert!(is_sign != is_known, "`{heading}` is a sign: {is_sign}; is known otherwise: {is_known}");
    }
    for heading in OTHERWISE.iter().flat_map(|(_, headings)| *headings) {
        assert!(all.iter().any(|documented| documented == heading), "no document has `{heading}`");
    }
}

#[test]
fn what_is_known_otherwise_has_a_reason_or_a_fault() {
    for (known, headings) in OTHERWISE {
        let is_explained = match known {
            By(check) => fault::ALL.contains(check),
            Harmless(reason) => !reason.is_empty(),
        };
        assert!(is_explained && !headings.is_empty(), "{headings:?}");
    }
}

/// The events are recognised by their words, and the documents hold those of the daemon.
#[test]
fn the_words_are_those_of_the_daemon() {
    // Lines are broken anywhere.
    let words = |document: &str| document.split_whitespace().collect::<Vec<_>>().join(" ");
    let documents = [EVENTS, OPERATIONS, REFERENCES, PTP].map(words);
    for sign in SIGNS {
        for words in std::iter::once(&sign.begins).chain(sign.ended_by) {
            assert!(documents.iter().any(|document| document.contains(words)), "no document has the event `{words}`");
        }
    }
}

//! Several servers, some of them false: every reading of the page is compared with the truth.

mod common;

use common::server::{TestServer, Truth};
use common::{Daemon, Judge, Scratch, server_section};
use ffclock_control::protocol::{BeliefReport, QuorumReport, SourceState, StatusReport};
use ffclock_counter::CounterId;
use ffclock_units::{Bound, Span, Status};
use std::time::Duration;

/// Polls come every 250 ms, a silent server is given up after 4 of them, and one that insists on another time is
/// believed after 2 s.
const PATIENCE: &str = "reply_timeout = \"50 ms\"\nunreachable_after = 4\nburst_count = 0\nstep_patience = \"2 s\"";
const LIE: Span = Span::from_millis(50);

struct Case {
    scratch: Scratch,
    truth: Truth,
    servers: Vec<TestServer>,
}

impl Case {
    /// Honest servers that claim 15 ms, as distant ones do.
    fn new(name: &str, servers: usize) -> Self {
        let truth = Truth::beginning_now(CounterId::CPU);
        let start = |_| {
            let server = TestServer::start("127.0.0.1:0", truth);
            server.behave(|behaviour| behaviour.root_dispersion = Bound::of(Span::from_millis(15)));
            server
        };
        Case { scratch: Scratch::new(name), truth, servers: (0..servers).map(start).collect() }
    }

    /// From now on this server is wrong, and claims to be the best.
    fn corrupt(&self, server: usize, lie: Span) {
        self.servers[server].behave(|behaviour| {
            behaviour.lie = lie;
            behaviour.root_dispersion = Bound::of(Span::from_micros(100));
        });
    }

    fn silence(&self, server: usize, silent: bool) {
        self.servers[server].behave(|behaviour| behaviour.silent = silent);
    }

    fn start(&self) -> (Daemon, Judge) {
        let sections: Vec<String> =
            self.servers.iter().map(|server| server_section(server.address, PATIENCE)).collect();
        let daemon =
            Daemon::start(&self.scratch, &(self.scratch.daemon_section("counter = \"tsc\"") + &sections.concat()));
        let judge = Judge::new(&self.scratch, CounterId::CPU, self.truth);
        (daemon, judge)
    }

    fn name(&self, server: usize) -> String {
        format!("127.0.0.1:{}", self.servers[server].address.port())
    }
}

fn beliefs(status: &StatusReport) -> Vec<BeliefReport> {
    status.sources.iter().map(|source| source.belief).collect()
}

fn is_named(status: &StatusReport, name: &str) -> bool {
    let names_it = |event: &&ffclock_control::protocol::EventReport| event.source.as_deref() == Some(name);
    status.events.iter().filter(names_it).any(|event| event.text.starts_with("falseticker"))
}

#[test]
fn a_liar_from_the_start_is_never_followed_though_it_claims_the_least() {
    let case = Case::new("liar", 3);
    case.corrupt(0, LIE);
    let (daemon, mut judge) = case.start();
    judge.watch(Duration::from_millis(1500));
    let status = daemon.wait_for("a verdict", |status| status.quorum == Some(QuorumReport::Majority));
    assert_eq!(beliefs(&status), [BeliefReport::Falseticker, BeliefReport::Truechimer, BeliefReport::Truechimer]);
    assert_ne!(status.selected, Some(case.name(0)));
    assert!(is_named(&status, &case.name(0)), "{:?}", status.events);
    assert!(daemon.log().contains("falseticker"), "{}", daemon.log());
    judge.watch(Duration::from_millis(1500));
    assert!(judge.readings > 500);
}

#[test]
fn two_liars_of_five_with_the_same_lie_are_outvoted() {
    let case = Case::new("five", 5);
    case.corrupt(1, LIE);
    case.corrupt(4, LIE);
    let (daemon, mut judge) = case.start();
    judge.watch(Duration::from_millis(1500));
    let status = daemon.wait_for("all answers", |status| status.sources.iter().all(|source| source.used > 0));
    let liars = |wanted| beliefs(&status).iter().filter(|belief| **belief == wanted).count();
    assert_eq!((liars(BeliefReport::Falseticker), liars(BeliefReport::Truechimer)), (2, 3));
    judge.watch(Duration::from_millis(500));
    assert!(judge.readings > 500);
}

/// Their intervals lie within those of the vague servers, and only the exact one excludes them.
#[test]
fn two_liars_who_please_the_vague_servers_are_not_followed() {
    let case = Case::new("pleasing", 5);
    case.corrupt(2, Span::ZERO);
    case.corrupt(3, Span::from_millis(10));
    case.corrupt(4, Span::from_millis(10));
    let (daemon, mut judge) = case.start();
    judge.watch(Duration::from_millis(1500));
    let status = daemon.wait_for("all answers", |status| {
        status.quorum == Some(QuorumReport::Majority) && status.sources.iter().all(|source| source.used > 0)
    });
    assert_eq!(beliefs(&status)[..2], [BeliefReport::Truechimer; 2]);
    assert_eq!(beliefs(&status)[2..], [BeliefReport::Undecided; 3]);
    assert!(status.events.iter().any(|event| event.text.starts_with("undecided")), "{:?}", status.events);
    judge.watch(Duration::from_secs(1));
    assert!(judge.readings > 500);
}

/// The liar is configured twice, by two names of one address.
#[test]
fn two_names_of_one_server_have_one_vote() {
    let case = Case::new("names", 2);
    case.corrupt(1, LIE);
    let honest = server_section(case.servers[0].address, PATIENCE);
    let liar = server_section(case.servers[1].address, PATIENCE);
    let sections = [honest, liar.clone(), liar.replace("127.0.0.1", "127.1")];
    let daemon = Daemon::start(&case.scratch, &(case.scratch.daemon_section("counter = \"tsc\"") + &sections.concat()));
    let answered = |status: &StatusReport| status.sources.iter().all(|source| source.used > 1);
    let status = daemon.wait_for("all answers", answered);
    assert_eq!((status.clock, status.quorum), (None, Some(QuorumReport::Disagreement)));
    assert_eq!(status.sources[2].belief, BeliefReport::Unknown);
}

#[test]
fn a_followed_server_that_begins_to_lie_is_left_and_believed_again_when_it_stops() {
    let case = Case::new("turncoat", 3);
    case.corrupt(2, Span::ZERO);
    let (daemon, mut judge) = case.start();
    let liar = case.name(2);
    daemon.wait_for("the careful server", |status| status.selected.as_ref() == Some(&liar));
    case.corrupt(2, LIE);
    judge.watch(Duration::from_secs(4));
    let status = daemon.wait_for("the liar's name", |status| status.sources[2].belief == BeliefReport::Falseticker);
    assert!(status.selected.is_some() && status.selected.as_ref() != Some(&liar));
    assert!(is_named(&status, &liar), "{:?}", status.events);
    case.corrupt(2, Span::ZERO);
    judge.watch(Duration::from_secs(3));
    daemon.wait_for("its return", |status| status.sources[2].belief == BeliefReport::Truechimer);
    judge.watch(Duration::from_millis(300));
}

#[test]
fn without_a_majority_the_clock_runs_free_and_its_bound_covers_every_server() {
    let case = Case::new("two-disagree", 2);
    let (daemon, mut judge) = case.start();
    daemon.wait_for("an agreement", |status| status.quorum == Some(QuorumReport::Majority) && status.clock.is_some());
    case.corrupt(1, LIE);
    judge.watch(Duration::from_secs(3));
    let status = daemon.wait_for("a dispute", |status| status.quorum == Some(QuorumReport::Disagreement));
    assert_eq!((status.selected.as_deref(), beliefs(&status)), (None, vec![BeliefReport::Undecided; 2]));
    let clock = status.clock.expect("the clock goes on");
    assert_eq!(clock.status, Status::Holdover);
    assert!(clock.bound_s > 0.05, "either server may be right: {}", clock.bound_s);
    assert!(status.events.iter().any(|event| event.text.starts_with("the servers disagree")), "{:?}", status.events);
    judge.watch(Duration::from_millis(500));
    case.corrupt(1, Span::ZERO);
    daemon.wait_for("an agreement again", |status| status.quorum == Some(QuorumReport::Majority));
    judge.watch(Duration::from_millis(500));
    assert!(judge.readings > 1000);
}

#[test]
fn a_clock_without_a_majority_is_not_published() {
    let case = Case::new("never-agreed", 2);
    case.corrupt(0, LIE);
    let (daemon, mut judge) = case.start();
    let status = daemon.wait_for("a dispute", |status| status.quorum == Some(QuorumReport::Disagreement));
    assert_eq!((status.clock, status.selected), (None, None));
    judge.watch(Duration::from_millis(500));
    assert_eq!(judge.readings, 0, "readers are refused");
}

#[test]
fn the_first_answer_alone_decides_nothing_for_a_while() {
    let case = Case::new("first", 3);
    case.corrupt(0, LIE);
    case.silence(1, true);
    case.silence(2, true);
    let (daemon, mut judge) = case.start();
    let status = daemon.wait_for("one answer", |status| status.sources[0].used > 0);
    assert_eq!((status.clock, status.quorum), (None, Some(QuorumReport::Waiting)));
    case.silence(1, false);
    case.silence(2, false);
    let status = daemon.wait_for("a majority", |status| status.quorum == Some(QuorumReport::Majority));
    assert_eq!(status.sources[0].belief, BeliefReport::Falseticker);
    judge.watch(Duration::from_millis(300));

    let alone = Case::new("alone", 3);
    alone.silence(1, true);
    alone.silence(2, true);
    let (daemon, _) = alone.start();
    let status = daemon.wait_for("the one that answers", |status| status.selected == Some(alone.name(0)));
    assert!(status.sources[1..].iter().all(|source| source.state == SourceState::Unreachable));
}

//! Several servers, some of them false: every reading of the page is compared with the truth.

mod common;

use common::server::{TestServer, Truth};
use common::{Daemon, Judge, Scratch, server_section};
use ffclock_control::protocol::{BeliefReport, QuorumReport, SourceState, StatusReport};
use ffclock_counter::CounterId;
use ffclock_units::{Bound, Span, Status};
use std::time::Duration;

/// Polls come every 250 ms, and a silent server is given up after 4 of them.
const PATIENCE: &str = "reply_timeout = \"50 ms\"\nunreachable_after = 4\nburst_count = 0";
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
        self.start_with("", &[])
    }

    /// With options of the vote, and with options of the first servers.
    fn start_with(&self, vote: &str, options: &[&str]) -> (Daemon, Judge) {
        let section = |(index, server): (usize, &TestServer)| {
            let options = options.get(index).copied().unwrap_or_default();
            server_section(server.address, &format!("{PATIENCE}\n{options}"))
        };
        let sections: Vec<String> = self.servers.iter().enumerate().map(section).collect();
        let top = self.scratch.daemon_section(&format!("counter = \"tsc\"\n{vote}"));
        let daemon = Daemon::start(&self.scratch, &(top + &sections.concat()));
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
    assert_eq!((status.clock.clone(), status.quorum), (None, Some(QuorumReport::Disagreement)));
    assert_eq!(status.sources[2].belief, BeliefReport::Unknown);
    let twin = format!("not counted: it has the same address as {}", case.name(1));
    assert!(why(&status, 2).starts_with(&twin), "{}", why(&status, 2));
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
    // The published time lies between those of the two from before the lie. On a busy machine these are apart.
    assert!(clock.bound_s > 0.045, "either server may be right: {}", clock.bound_s);
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

fn is_settled(status: &StatusReport) -> bool {
    status.quorum == Some(QuorumReport::Majority) && status.sources.iter().all(|source| source.used > 3)
}

fn why(status: &StatusReport, server: usize) -> &str {
    &status.sources[server].why
}

#[test]
fn a_trusted_server_is_followed_against_two_that_agree() {
    let case = Case::new("trust", 3);
    case.corrupt(1, LIE);
    case.corrupt(2, LIE);
    let (daemon, mut judge) = case.start_with("", &["trust = true"]);
    let status = daemon.wait_for("all answers", is_settled);
    assert_eq!(status.selected, Some(case.name(0)));
    assert_eq!(beliefs(&status)[1..], [BeliefReport::Falseticker; 2]);
    assert!(why(&status, 0).contains("decides alone"), "{}", why(&status, 0));
    assert!(why(&status, 1).contains("misses what the trusted servers"), "{}", why(&status, 1));
    let vote = status.vote.expect("a vote");
    assert_eq!((vote.by_trust, vote.deciders, vote.tolerated, vote.believed), (true, 1, 0, 1));
    judge.watch(Duration::from_millis(700));
    assert!(judge.readings > 200);
}

#[test]
fn a_preferred_server_is_published_while_it_is_believed_and_answers() {
    let case = Case::new("prefer", 3);
    case.corrupt(2, Span::ZERO);
    let (daemon, mut judge) = case.start_with("", &["", "prefer = true"]);
    let preferred = case.name(1);
    let status = daemon.wait_for("the preferred one", |status| status.selected.as_ref() == Some(&preferred));
    assert!(why(&status, 1).contains("because it is preferred"), "{}", why(&status, 1));
    judge.watch(Duration::from_millis(300));
    case.silence(1, true);
    daemon.wait_for("another", |status| status.selected.as_ref().is_some_and(|name| *name != preferred));
    case.silence(1, false);
    daemon.wait_for("its return", |status| status.selected.as_ref() == Some(&preferred));
    case.servers[1].behave(|behaviour| behaviour.lie = LIE);
    daemon.wait_for("its lie", |status| status.sources[1].belief == BeliefReport::Falseticker);
    assert_ne!(daemon.status().expect("a status").selected, Some(preferred));
    judge.watch(Duration::from_millis(300));
}

#[test]
fn a_server_without_a_vote_is_measured_and_never_believed() {
    let case = Case::new("no-select", 2);
    case.corrupt(1, LIE);
    let (daemon, mut judge) = case.start_with("", &["", "no_select = true"]);
    let measured = |status: &StatusReport| status.clock.is_some() && status.sources[1].used > 3;
    let status = daemon.wait_for("both", measured);
    assert_eq!((status.selected.clone(), status.quorum), (Some(case.name(0)), Some(QuorumReport::Majority)));
    assert_eq!(status.sources[1].belief, BeliefReport::NoSelect);
    assert!(why(&status, 1).starts_with("not believed: no_select; it is only measured"), "{}", why(&status, 1));
    let offset = status.sources[1].offset_s.expect("it is measured");
    assert!((offset - 0.05).abs() < 0.005, "{offset}");
    judge.watch(Duration::from_millis(500));
}

#[test]
fn with_fewer_servers_than_demanded_none_is_followed() {
    let case = Case::new("min-servers", 2);
    let (daemon, mut judge) = case.start_with("min_servers = 2", &[]);
    daemon.wait_for("both", is_settled);
    case.silence(1, true);
    let status = daemon.wait_for("too few", |status| status.quorum == Some(QuorumReport::TooFew));
    assert_eq!((status.selected.as_deref(), status.clock.as_ref().unwrap().status), (None, Status::Holdover));
    assert!(why(&status, 0).contains("min_servers demands 2 servers that answer, and 1 do"), "{}", why(&status, 0));
    assert!(status.events.iter().any(|event| event.text.starts_with("fewer servers answer")), "{:?}", status.events);
    judge.watch(Duration::from_millis(300));
    case.silence(1, false);
    daemon.wait_for("both again", |status| status.quorum == Some(QuorumReport::Majority));
}

/// The exact server lies by less than the others can see: what rests on it is wrong, and the strict bound holds.
#[test]
fn the_strict_bound_holds_against_a_lie_that_is_not_seen() {
    let case = Case::new("strict", 3);
    case.corrupt(2, Span::from_millis(10));
    let (daemon, mut judge) = case.start_with("bound = \"strict\"", &[]);
    let status = daemon.wait_for("all answers", is_settled);
    assert_eq!(status.selected, Some(case.name(2)), "it claims the least");
    judge.watch(Duration::from_millis(500));
    assert!(judge.readings > 100);
    let clock = daemon.status().and_then(|status| status.clock).expect("a clock");
    assert_eq!(clock.bound_strict_s, Some(clock.bound_s));
    assert!(clock.bound_s > 0.015, "{}", clock.bound_s);
    let vote = status.vote.expect("a vote");
    assert_eq!((vote.deciders, vote.tolerated, vote.believed), (3, 1, 3));
    assert_eq!(vote.bound_premise, vote.strict_premise);
    assert!(vote.bound_premise.starts_with("at most 1 of the 3 servers"), "{}", vote.bound_premise);
}

/// Two honest servers err by 10 ms to both sides, within their claims: together they prove more than the third.
#[test]
fn several_servers_prove_more_than_the_one_that_is_followed() {
    let case = Case::new("together", 3);
    case.servers[0].behave(|behaviour| behaviour.lie = Span::from_millis(10));
    case.servers[1].behave(|behaviour| behaviour.lie = -Span::from_millis(10));
    let (daemon, mut judge) = case.start_with("", &["", "", "prefer = true"]);
    let status = daemon.wait_for("all answers", is_settled);
    judge.watch(Duration::from_millis(500));
    let own = status.sources[2].bound_s.expect("its own bound");
    let clock = daemon.status().and_then(|status| status.clock).expect("a clock");
    assert!(own > 0.015 && clock.bound_s < 0.008, "{own} {}", clock.bound_s);
    assert!(clock.bound_strict_s > Some(0.014), "{clock:?}");
}

/// It goes away from the others at 200 ppm, and stays within what they can prove. What it moves, it moves before the
/// others can distinguish it from noise. Although it claims the least, it is then not selected, and its claim narrows
/// no bound.
#[test]
fn a_server_that_creeps_within_the_intervals_of_the_others_is_suspect() {
    let case = Case::new("creeping", 3);
    case.servers[2].behave(|behaviour| behaviour.root_dispersion = Bound::of(Span::from_millis(10)));
    let (daemon, mut judge) = case.start();
    let name = case.name(2);
    let bound_of = |status: &StatusReport| status.clock.as_ref().map_or(f64::NAN, |clock| clock.bound_s);
    let status = daemon.wait_for("a common clock", |status| status.sources.iter().all(|source| source.used > 60));
    assert_eq!(status.selected.as_ref(), Some(&name), "it claims the least");
    assert!(bound_of(&status) < 0.012, "{status:?}");
    let is_told = |status: &StatusReport, text: &str| {
        status.events.iter().any(|event| event.source.as_deref() == Some(&name) && event.text.starts_with(text))
    };
    let begin = std::time::Instant::now();
    let (status, lie) = loop {
        judge.watch(Duration::from_millis(25));
        let lie = Span::from_seconds(200e-6 * begin.elapsed().as_secs_f64());
        case.servers[2].behave(|behaviour| behaviour.lie = lie);
        let status = daemon.status().expect("the daemon answers");
        if is_told(&status, "suspect: ") || lie > Span::from_millis(12) {
            break (status, lie);
        }
    };
    assert!(is_told(&status, "suspect: "), "{name} at {lie}: {:#?}", status);
    assert_eq!(beliefs(&status), [BeliefReport::Truechimer; 3], "its interval agrees");
    assert!(
        status.sources[2].vote.suspect && status.sources[2].vote.weight == Some(0.0),
        "{:?}",
        status.sources[2].vote
    );
    assert!(why(&status, 2).contains("suspect"), "{}", why(&status, 2));
    assert!(status.selected.is_some() && status.selected.as_ref() != Some(&name), "{:?}", status.selected);
    let clock = status.clock.as_ref().expect("a clock");
    assert!(clock.bound_s > 0.0145 && clock.bound_strict_s > Some(0.0145), "what the others claim: {clock:?}");
    println!("suspect after {lie}");
    let (_, error) = judge.watch(Duration::from_millis(500)).expect("a reading");
    assert!(error.abs() < Span::from_millis(2), "{error}");
    assert!(!is_told(&status, "no longer"));
}

/// Nothing that a host hears can show it. The status says what the bound rests on.
#[test]
fn when_all_lie_alike_the_premise_is_said() {
    let case = Case::new("alike", 3);
    (0..3).for_each(|server| case.corrupt(server, LIE));
    let (daemon, _) = case.start();
    let status = daemon.wait_for("all answers", is_settled);
    let vote = status.vote.expect("a vote");
    assert_eq!(vote.bound_premise, "none of the 3 believed servers is false by less than the others can see");
    assert_eq!(vote.strict_premise, "at most 1 of the 3 servers with a vote can be false, in whatever way");
}

#[test]
fn when_all_servers_are_gone_the_clock_runs_on_and_says_since_when() {
    let case = Case::new("gone", 3);
    let (daemon, mut judge) = case.start();
    daemon.wait_for("all answers", is_settled);
    (0..3).for_each(|server| case.silence(server, true));
    let gone = |status: &StatusReport| {
        status.sources.iter().all(|source| source.state == SourceState::Unreachable && source.why.contains("not heard"))
    };
    let status = daemon.wait_for("silence", gone);
    assert_eq!(status.clock.expect("the clock runs on").status, Status::Holdover);
    assert_eq!(status.vote.expect("a vote").usable, 0);
    let (first, _) = judge.watch(Duration::from_millis(300)).expect("a reading");
    let (second, _) = judge.watch(Duration::from_millis(300)).expect("a reading");
    assert!(second.bound >= first.bound && second.status == Status::Holdover);
}

/// Its replies do not come from the address that was asked: anyone could have sent them.
#[test]
fn a_server_that_answers_from_another_address_is_not_heard() {
    let case = Case::new("elsewhere", 2);
    case.servers[1].behave(|behaviour| behaviour.elsewhere = true);
    let (daemon, mut judge) = case.start();
    let unreachable = |status: &StatusReport| status.sources[1].state == SourceState::Unreachable;
    let status = daemon.wait_for("silence", unreachable);
    assert_eq!((status.sources[1].exchanges, status.sources[1].belief), (0, BeliefReport::Unknown));
    assert!(why(&status, 1).contains("it has given no answer that is of use ("), "{}", why(&status, 1));
    daemon.wait_for("the other", |status| status.selected == Some(case.name(0)));
    judge.watch(Duration::from_millis(300));
}

#[test]
fn without_any_majority_at_the_start_every_server_is_told_why() {
    let case = Case::new("no-majority", 3);
    case.corrupt(0, LIE);
    case.corrupt(1, -LIE);
    let (daemon, mut judge) = case.start();
    let status = daemon.wait_for("a dispute", |status| status.quorum == Some(QuorumReport::Disagreement));
    assert_eq!((status.clock.clone(), status.vote.as_ref().map(|vote| vote.believed)), (None, Some(0)));
    for server in 0..3 {
        assert!(
            why(&status, server).contains("of the 3 servers with a vote too few agree"),
            "{}",
            why(&status, server)
        );
    }
    judge.watch(Duration::from_millis(300));
    assert_eq!(judge.readings, 0);
}

/// Up to seven of sixteen lie at a time, and others are silent.
#[test]
fn sixteen_servers_that_flap_never_move_the_clock_out_of_its_bound() {
    let case = Case::new("flapping", 16);
    let (daemon, mut judge) = case.start();
    daemon.wait_for("all answers", is_settled);
    for turn in 0..12_usize {
        for server in 0..16 {
            let lies = (server + 5 * turn) % 16 < 5;
            case.servers[server].behave(|behaviour| {
                behaviour.lie = if lies { LIE } else { Span::ZERO };
                behaviour.silent = (server + 3 * turn) % 8 == 7;
            });
        }
        judge.watch(Duration::from_millis(350));
    }
    assert!(judge.readings > 500);
    (0..16).for_each(|server| {
        case.servers[server].behave(|behaviour| (behaviour.lie, behaviour.silent) = (Span::ZERO, false));
    });
    daemon.wait_for("sixteen truechimers", |status| {
        beliefs(status).iter().all(|belief| *belief == BeliefReport::Truechimer)
    });
    judge.watch(Duration::from_millis(300));
}

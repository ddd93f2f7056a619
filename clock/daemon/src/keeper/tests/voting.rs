//! The vote across reloads and changes of options, and about leap seconds.

use super::*;
use ffclock_estimator::Ensemble;
use ffclock_units::Estimate;
use ffclock_wire::{NtpTimestamp, Packet};

/// The servers that had outvoted it are replaced by others that have not answered yet.
#[test]
fn a_falseticker_is_not_followed_when_a_reload_leaves_it_alone() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = (0..3).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start("reload-liar", servers, "counter = \"tsc\"");
    case.servers[2].behave(|behaviour| behaviour.lie = Span::from_millis(50));
    let is_named = |status: &StatusReport| status.sources[2].belief == BeliefReport::Falseticker;
    case.run_until("the falseticker", is_named);
    let liar = case.servers.remove(2);
    let others: Vec<TestServer> = (0..2).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    others.iter().for_each(|server| server.behave(|behaviour| behaviour.silent = true));
    case.servers = others.into_iter().chain([liar]).collect();
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"");
    case.keeper.take_over(Config::parse(&text).unwrap());
    case.run_until("some exchanges", |status| status.sources[2].exchanges >= 20);
    let status = case.keeper.status();
    assert_eq!((status.selected, status.quorum), (None, Some(QuorumReport::Waiting)));
    let counter = case.keeper.host_counter.read();
    let error = case.reading().unwrap().time - LeapTable::built_in().utc_from_tai(truth.at(counter));
    assert!(error.abs() < Span::from_millis(25), "the lie is 50 ms: {error}");
    case.servers[..2].iter().for_each(|server| server.behave(|behaviour| behaviour.silent = false));
    case.run_until("the falseticker again", is_named);
}

/// All servers are replaced by a reload: the clock runs on, and says so, until the new ones have answered.
#[test]
fn servers_that_are_all_replaced_leave_the_clock_in_holdover_until_the_new_ones_answer() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let start = |_| TestServer::start("127.0.0.1:0", truth);
    let mut case = Case::start("reload-all", (0..2).map(start).collect(), "counter = \"tsc\"");
    case.run_until("a majority", |status| status.clock.is_some() && used(status) >= 6);
    let others: Vec<TestServer> = (0..2).map(start).collect();
    others.iter().for_each(|server| server.behave(|behaviour| behaviour.silent = true));
    case.servers = others;
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"");
    case.keeper.take_over(Config::parse(&text).unwrap());
    let status = case.run_until("silence", |status| status.sources.iter().all(|source| source.lost > 2));
    assert_eq!((status.selected.as_deref(), status.quorum), (None, Some(QuorumReport::Waiting)));
    let clock = status.clock.expect("the clock runs on");
    assert_eq!(clock.status, Status::Holdover);
    assert!(clock.bound_strict_s >= Some(clock.bound_s), "{clock:?}");
    assert_eq!(status.vote.map(|vote| (vote.deciders, vote.believed)), Some((0, 0)));
    assert!(status.sources.iter().all(|source| source.why.starts_with("not believed: ")), "{:?}", status.sources);
    assert!(status.events.iter().any(|event| event.text.starts_with("too few servers have answered")));
    case.servers.iter().for_each(|server| server.behave(|behaviour| behaviour.silent = false));
    let status = case.run_until("the new ones", |status| status.quorum == Some(QuorumReport::Majority));
    assert!(has_event(&status, "a majority of the servers agrees"), "{:?}", status.events);
    let counter = case.keeper.host_counter.read();
    let reading = case.reading().unwrap();
    let error = reading.time - LeapTable::built_in().utc_from_tai(truth.at(counter));
    assert!(error.abs() <= reading.bound.as_span() + Span::from_micros(1), "{error} {}", reading.bound);
}

/// The counter stood still unnoticed while the machine did, as a virtual one's may: all servers say so alike, and the
/// classic filter waits before it believes in a step. No reading of that time excludes what the servers agree on.
#[test]
fn a_classic_clock_that_all_servers_disprove_is_bounded_by_what_they_agree_on() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = (0..3).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start("all-ahead", servers, "counter = \"tsc\"\nestimator = \"classic\"");
    case.run_until("a majority", |status| status.clock.is_some() && used(status) >= 12);
    let pause = Span::from_millis(50);
    case.servers.iter().for_each(|server| server.behave(|behaviour| behaviour.lie = pause));
    let before = case.keeper.status();
    let exchanges = |status: &StatusReport| status.sources.iter().map(|source| source.exchanges).min();
    let mut was_behind = false;
    for more in 2..12 {
        case.run_until("one more of each", |status| exchanges(status) >= exchanges(&before).map(|count| count + more));
        let counter = case.keeper.host_counter.read();
        let reading = case.reading().unwrap();
        let error = reading.time - (LeapTable::built_in().utc_from_tai(truth.at(counter)) + pause);
        assert!(error.abs() <= reading.bound.as_span() + Span::from_micros(1), "{error} {} {more}", reading.bound);
        was_behind |= error < Span::from_millis(-25);
    }
    assert!(was_behind, "the filter believed in the step at once, so nothing was tried");
}

#[test]
fn the_rules_of_the_vote_change_with_a_reload() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = (0..3).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start("reload-rules", servers, "counter = \"tsc\"");
    case.servers[2].behave(|behaviour| behaviour.lie = Span::from_millis(50));
    case.run_until("the falseticker", |status| status.sources[2].belief == BeliefReport::Falseticker);
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"\ntolerate = 0");
    case.keeper.take_over(Config::parse(&text).unwrap());
    assert_eq!(case.keeper.status().quorum, Some(QuorumReport::Disagreement), "none may be false now");
    assert!(!has_event(&case.keeper.status(), "take effect with the next start"));
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"") + "no_select = true\n";
    case.keeper.take_over(Config::parse(&text).unwrap());
    let status = case.keeper.status();
    assert_eq!((status.quorum, status.sources[2].belief), (Some(QuorumReport::Majority), BeliefReport::NoSelect));
    assert_eq!(status.vote.map(|vote| (vote.deciders, vote.believed)), Some((2, 2)));
}

/// A reload that changes nothing leaves every clock as it is.
#[test]
fn the_same_servers_keep_their_clocks_over_a_reload() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = (0..3).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start("reload-same", servers, "counter = \"tsc\"");
    case.run_until("some exchanges", |status| status.sources.iter().all(|source| source.used >= 6));
    let clocks = |case: &Case| {
        let own: Vec<Option<Estimate>> = case.keeper.peers.iter().map(Peer::estimate).collect();
        (own, case.keeper.context.ensemble.as_ref().and_then(Ensemble::estimate))
    };
    let before = clocks(&case);
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"");
    case.keeper.take_over(Config::parse(&text).unwrap());
    assert_eq!(clocks(&case), before);
    assert!(before.1.is_some() && before.0.iter().all(Option::is_some));
}

/// Only trusted servers decide about leap seconds where there are any.
#[test]
fn untrusted_servers_make_no_leap_second() {
    let truth = Truth::beginning_at(CounterId::CPU, Moment::from_origin(Span::from_secs(MIDNIGHT - 86_400)));
    let servers = (0..3).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start("leap-trust", servers, "counter = \"tsc\"");
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"") + "trust = true\n";
    case.keeper.take_over(Config::parse(&text).unwrap());
    case.announce(0, LeapIndicator::Insert);
    case.announce(1, LeapIndicator::Insert);
    case.run_exchanges();
    assert_eq!(case.leap_step().after, 37);
    case.announce(2, LeapIndicator::Insert);
    case.run_exchanges();
    assert_eq!(case.leap_step(), AHEAD);
}

/// Two believed servers with contradictory leap bits: nothing changes, and the dispute is logged.
#[test]
fn contradictory_leap_bits_change_nothing() {
    let (mut case, _) = before_midnight("leap-tie", 2, 5 * 86_400);
    case.announce(0, LeapIndicator::Insert);
    case.announce(1, LeapIndicator::Delete);
    case.run_exchanges();
    assert_eq!(case.leap_step().after, 37);
    assert!(has_event(&case.keeper.status(), "do not agree about a leap second"));
}

/// The first exchange with other options that cannot be used must not cost the estimate.
#[test]
fn an_estimate_serves_until_its_successor_has_one() {
    let (mut case, _) = one_server("successor", "counter = \"tsc\"");
    case.run_until("an estimate", |status| used(status) >= 3);
    // The server claims to have kept the request for longer than the round trip took.
    case.servers[0].behave(|behaviour| {
        behaviour.before = vec![|_, reply| {
            let receive = NtpTimestamp::from_raw(reply.receive.raw() - (1 << 31));
            Packet { receive, ..*reply }.encode().to_vec()
        }];
    });
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"") + "asymmetry = \"20 ms\"\n";
    case.keeper.take_over(Config::parse(&text).unwrap());
    let before = case.keeper.status().sources[0].exchanges;
    let status = case.run_until("exchanges", |status| status.sources[0].exchanges > before + 2);
    assert!(has_event(&status, "kept the request longer"), "{:?}", status.events);
    assert!(!has_event(&status, "the estimate starts again"));
    assert!(case.keeper.peers[0].estimate().is_some() && case.reading().is_ok());
    case.servers[0].behave(|behaviour| behaviour.before.clear());
    case.run_until("its successor", |status| has_event(status, "the estimate starts again with other options"));
}

/// The vote hears what it says now, so the bound in its report covers that, too.
#[test]
fn the_reported_bound_of_a_server_that_contradicts_itself_reaches_what_it_says_now() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = (0..3).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start("bound-of-liar", servers, "counter = \"tsc\"");
    let is_settled = |status: &StatusReport| status.sources.iter().all(|source| source.used >= 10);
    let bound = |status: &StatusReport| status.sources[2].bound_s.unwrap();
    let before = case.run_until("a majority", |status| status.clock.is_some() && is_settled(status));
    assert!(bound(&before) < 0.04, "{}", bound(&before));
    case.servers[2].behave(|behaviour| behaviour.lie = Span::from_millis(500));
    let after = case.run_until("the falseticker", |status| status.sources[2].belief == BeliefReport::Falseticker);
    let [_, latest] = after.sources[2].vote.proven_s.map(|(earliest, latest)| [earliest, latest]).unwrap();
    assert!(latest > 0.4 && bound(&after) > 0.4, "{latest} {}", bound(&after));
}

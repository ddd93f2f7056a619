//! When servers are asked: in turn, and at polls that keep an uncertainty.

use super::*;

/// The configuration of the tests, with polls that are chosen.
fn adaptive(name: &str, count: usize) -> Case {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = (0..count).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start(name, servers, "counter = \"tsc\"");
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"\nkeep_noise = \"10 ms\"");
    let text = text.replace("poll = \"125 ms\"", "poll_min = \"125 ms\"\npoll_max = \"2 s\"");
    case.keeper.take_over(Config::parse(&text).unwrap());
    case
}

fn polls(status: &StatusReport) -> Vec<f64> {
    status.sources.iter().map(|source| source.poll_s).collect()
}

#[test]
fn servers_are_asked_in_turn() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = (0..4).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start("in-turn", servers, "counter = \"tsc\"");
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"").replace("125 ms", "1 s");
    case.keeper.take_over(Config::parse(&text).unwrap());
    case.run_until("some polls", |status| status.sources.iter().all(|source| source.exchanges >= 6));
    let is_in_turn = |(server, peer): (usize, &Peer)| {
        let due = peer.next_timeout().unwrap().since_origin().as_seconds();
        let off = (due - (server as f64 + 0.5) / 4.0 + 0.5).rem_euclid(1.0) - 0.5;
        // A sixteenth of a poll is near enough; a reply that is waited for adds its timeout.
        (-0.001..0.12).contains(&off)
    };
    // Where the host stalls for a while, a server is out of turn until its next request.
    let all = |keeper: &Keeper<'_>| keeper.peers.iter().enumerate().all(is_in_turn).then_some(());
    case.run_until_there_is("servers asked in turn", all);
}

#[test]
fn polls_lengthen_while_the_uncertainty_is_kept_and_are_short_after_an_upset() {
    let mut case = adaptive("adaptive", 1);
    let status = case.run_until("a long poll", |status| polls(status)[0] > 0.4);
    assert_eq!((status.keep_noise_s, status.sources[0].slowed), (Some(0.01), false));
    case.servers[0].behave(|behaviour| behaviour.lie = Span::from_millis(50));
    let status = case.run_until("a contradiction", |status| has_event(status, "contradicts what it said before"));
    assert!(polls(&status)[0] < 0.2, "{:?}", polls(&status));
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"");
    case.keeper.take_over(Config::parse(&text).unwrap());
    let status = case.keeper.status();
    assert_eq!((polls(&status), status.keep_noise_s), (vec![0.125], None), "fixed by another configuration");
}

#[test]
fn a_server_without_weight_is_asked_less_and_all_are_asked_after_a_break() {
    let mut case = adaptive("weightless", 3);
    case.servers[2].behave(|behaviour| behaviour.lie = Span::from_millis(50));
    let status = case.run_until("patience", |status| polls(status)[2] > 1.9 && used(status) > 30);
    assert_eq!(status.sources[2].belief, BeliefReport::Falseticker);
    assert!(polls(&status)[0] <= polls(&status)[2], "{:?}", polls(&status));
    case.rig.tamper(|tampering| tampering.jumped = Ticks::from_raw(1 << 48));
    case.keeper.wake(ffclock_sys::mono_now());
    assert_eq!(polls(&case.keeper.status()), [0.125; 3]);
}

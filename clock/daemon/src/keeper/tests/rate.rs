//! What is remembered of the counter's rate: over breaks, restarts and changes of servers.

use super::*;

#[test]
fn a_suspend_leaves_the_rate_and_nothing_else() {
    let suspend = |case: &Case| case.rig.tamper(|tampering| tampering.suspended = Span::from_secs(3600));
    let kept = breaks("suspend", suspend, "suspended for 3600 s").expect("the rate");
    assert!(kept.bound >= Rate::from_ppm(20.0) && kept.bound < Rate::from_ppm(50.0), "it became cold: {kept:?}");
}

#[test]
fn a_counter_that_jumps_has_no_past() {
    for (name, jump) in [("forwards", 100_000_000), ("backwards", -100_000_000)] {
        let jump = |case: &Case| case.rig.tamper(|tampering| tampering.jumped = Ticks::from_raw(jump));
        assert_eq!(breaks(name, jump, "the counter jumped by"), None);
    }
}

/// The file must not come to hold the rate of a server that is not believed, whatever it says.
#[test]
fn only_a_believed_server_teaches_the_rate() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = (0..3).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start("teachers", servers, "counter = \"tsc\"");
    let exchanged = |status: &StatusReport| status.sources.iter().all(|source| source.used >= 10);
    case.run_until("a majority", |status| exchanged(status) && status.quorum == Some(QuorumReport::Majority));
    let taught = case.keeper.believed_rate().expect("a rate");
    let periods: Vec<_> = case.keeper.peers.iter().filter_map(|peer| Some(peer.memory()?.period)).collect();
    assert!(periods.contains(&taught.period));
    // Two lie in different ways: none has a majority any more.
    for (server, lie) in [(1, 50), (2, -50)] {
        case.servers[server].behave(|behaviour| behaviour.lie = Span::from_millis(lie));
    }
    case.run_until("a dispute", |status| status.quorum == Some(QuorumReport::Disagreement));
    assert_eq!(case.keeper.believed_rate(), None);
    assert!(case.keeper.context.rate.is_some(), "what was learned before stays");
}

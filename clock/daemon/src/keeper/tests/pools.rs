//! Pools, names whose addresses change, and the ports of requests, with a resolver of the test's own. The servers are
//! at addresses of loopback, all at one port.

use super::*;
use crate::establish::Established;
use ffclock_control::protocol::SourceReport;
use ffclock_nts::{Aead, Key, Session, SessionKeys};
use ffclock_wire::Packet;

/// Servers at 127.0.0.`first` and the addresses after it.
fn servers(first: u8, count: u8, truth: Truth) -> Vec<TestServer> {
    let start = |last: u8, port: u16| TestServer::start(&format!("127.0.0.{last}:{port}"), truth);
    let one = start(first, 0);
    let port = one.address.port();
    std::iter::once(one).chain((1..count).map(|more| start(first + more, port))).collect()
}

impl Case {
    /// A keeper of one table for the name `pool.test`, and of tables for the addresses of other servers.
    fn with_pool(name: &str, servers: Vec<TestServer>, (table, others): (&str, &[TestServer])) -> Self {
        let directory = Self::directory(name);
        let rig = Rig::new();
        rig.call("pool.test", &servers.iter().map(|server| server.address.ip()).collect::<Vec<_>>());
        let mut text = config_text(&directory, others, "");
        text += &format!("[[server]]\nport = {}\n{table}\n", servers[0].address.port());
        let keeper = Keeper::start_on(Box::new(rig.clone()), Config::parse(&text).unwrap(), &SAME_AGAIN).unwrap();
        Case { directory, servers, rig, keeper }
    }

    fn address(&self, server: usize) -> String {
        self.servers[server].address.to_string()
    }
}

impl Rig {
    fn call(&self, name: &str, addresses: &[IpAddr]) {
        self.0.borrow().names.lock().unwrap().insert(name.to_owned(), addresses.to_vec());
    }
}

/// The servers of the pool.
fn of_pool(status: &StatusReport) -> Vec<&SourceReport> {
    status.sources.iter().filter(|source| source.name.contains('#')).collect()
}

fn all_answer(status: &StatusReport) -> bool {
    status.sources.iter().all(|source| source.state == SourceState::Reachable && source.exchanges > 2)
}

fn addresses(status: &StatusReport) -> Vec<String> {
    of_pool(status).iter().filter_map(|source| source.address.clone()).collect()
}

const POOL_OF_3: &str = "pool = \"pool.test\"\npool_size = 3";

#[test]
fn a_pool_has_several_servers_of_one_name() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let mut case = Case::with_pool("pool", servers(21, 4, truth), (POOL_OF_3, &[]));
    let status = case.run_until("three servers", all_answer);
    let port = case.servers[0].address.port();
    let names: Vec<String> = status.sources.iter().map(|source| source.name.clone()).collect();
    assert_eq!(names, [1, 2, 3].map(|slot| format!("pool.test:{port}#{slot}")));
    assert_eq!(addresses(&status), [0, 1, 2].map(|server| case.address(server)));
    assert!(status.sources.iter().all(|source| !source.vote.spare), "a pool alone votes with all its servers");
    case.run_until("three votes", |status| status.vote.as_ref().is_some_and(|vote| vote.believed == 3));
}

#[test]
fn a_server_that_falls_silent_or_refuses_is_replaced() {
    let refuse: fn(&Packet, &Packet) -> Vec<u8> = |request, reply| {
        let reference_id = u32::from_be_bytes(*b"DENY");
        Packet { stratum: 0, reference_id, origin: request.transmit, ..*reply }.encode().to_vec()
    };
    for (first, name, reason) in [(31, "pool-silent", "does not answer"), (41, "pool-refusing", "refuses")] {
        let truth = Truth::beginning_now(CounterId::CPU);
        let mut case = Case::with_pool(name, servers(first, 4, truth), (POOL_OF_3, &[]));
        case.run_until("three servers", all_answer);
        case.servers[1].behave(|behaviour| match reason {
            "refuses" => behaviour.before = vec![refuse],
            _ => behaviour.silent = true,
        });
        let fourth = case.address(3);
        let status = case.run_until("the fourth", |status| addresses(status)[1] == fourth && all_answer(status));
        let event = status.events.iter().find(|event| event.text.contains("another address of the pool")).unwrap();
        assert!(event.text.contains(&case.address(1)) && event.text.contains(reason), "{event:?}");
        assert!(event.source.as_deref().is_some_and(|name| name.ends_with("#2")));
    }
}

/// A name may have fewer addresses than are wanted, and none of them that answers at the moment.
#[test]
fn without_another_address_the_old_one_is_still_asked() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let mut case = Case::with_pool("pool-small", servers(51, 2, truth), (POOL_OF_3, &[]));
    let second = |status: &StatusReport| of_pool(status)[1].state;
    let status = case.run_until("two servers", |status| second(status) == SourceState::Reachable);
    assert_eq!(of_pool(&status)[2].state, SourceState::Resolving);
    case.servers[1].behave(|behaviour| behaviour.silent = true);
    case.run_until("silence", |status| second(status) == SourceState::Unreachable);
    case.servers[1].behave(|behaviour| behaviour.silent = false);
    let status = case.run_until("the answer", |status| second(status) == SourceState::Reachable);
    assert_eq!(addresses(&status), [case.address(0), case.address(1)]);
}

#[test]
fn a_falseticker_is_replaced_after_ten_minutes() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let mut case = Case::with_pool("pool-false", servers(61, 4, truth), (POOL_OF_3, &[]));
    case.run_until("a rate", |status| status.sources.iter().all(|source| source.used > 10));
    case.servers[2].behave(|behaviour| behaviour.lie = Span::from_millis(50));
    let is_false = |status: &StatusReport| of_pool(status)[2].belief == BeliefReport::Falseticker;
    case.run_until("a falseticker", |status| all_answer(status) && is_false(status));
    case.turn();
    let now = case.keeper.context.now;
    for (seconds, address) in [(599, 2), (601, 3)] {
        case.keeper.context.now = now + Span::from_secs(seconds);
        case.keeper.keep_pools();
        assert_eq!(addresses(&case.keeper.status())[2], case.address(address), "after {seconds} s");
    }
    let successor = &case.keeper.peers[2];
    assert!(successor.memory().is_some(), "the rate of those that are believed is its beginning");
    assert_eq!((successor.memory(), successor.estimate()), (case.keeper.context.rate, None), "and the liar's is not");
}

/// Three liars at one name, and two honest servers.
#[test]
fn one_name_outvotes_no_one_unless_it_may() {
    for (first, table, is_misled) in
        [(71, POOL_OF_3.to_owned(), false), (81, format!("{POOL_OF_3}\npool_votes = \"each\""), true)]
    {
        let truth = Truth::beginning_now(CounterId::CPU);
        let liars = servers(first, 3, truth);
        let lie = Span::from_millis(50);
        liars.iter().for_each(|server| server.behave(|behaviour| behaviour.lie = lie));
        let honest: Vec<TestServer> = (0..2).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
        let mut case = Case::with_pool(&format!("pool-votes-{first}"), liars, (&table, &honest));
        let agreed = |status: &StatusReport| all_answer(status) && status.quorum == Some(QuorumReport::Majority);
        let status = case.run_until("a majority", agreed);
        let spares = of_pool(&status).iter().filter(|source| source.vote.spare).count();
        assert_eq!(spares, if is_misled { 0 } else { 2 });
        let counter = case.keeper.host_counter.read();
        let reading = Reader::new(case.page().words()).reading_at(counter, CounterId::CPU).unwrap();
        let error = reading.time - LeapTable::built_in().utc_from_tai(truth.at(counter));
        assert_eq!(error > lie.halved(), is_misled, "{error}");
    }
}

/// Without a network no address can be used: the pool says when the next is tried, and nothing is due before.
#[test]
fn a_pool_without_a_network_waits() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let mut case = Case::with_pool("pool-no-network", servers(171, 1, truth), (POOL_OF_3, &[]));
    // A link-local address without its interface cannot be connected to.
    case.rig.call("pool.test", &["fe80::1".parse().unwrap()]);
    case.run_until("a complaint", |status| has_event(status, "cannot use the address"));
    let now = case.keeper.context.now;
    let mut look_ups = 0;
    for second in 1..600 {
        case.keeper.context.now = now + Span::from_secs(second);
        look_ups += usize::from(case.keeper.next_pool_look_up().is_some_and(|due| due <= case.keeper.context.now));
        case.keeper.timeout();
        assert!(case.keeper.next_timeout() > case.keeper.context.now, "after {second} s it would not wait");
    }
    assert!((1..=20).contains(&look_ups), "{look_ups}");
}

/// Two liars at one name, and three honest servers at another: neither name outvotes the other.
#[test]
fn of_two_names_alone_neither_outvotes_the_other() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let honest = servers(151, 3, truth);
    let liars = servers(161, 2, truth);
    let lie = Span::from_millis(50);
    let mut case = Case::with_pool("pool-two", honest, ("pool = \"pool.test\"\npool_size = 3", &[]));
    case.rig.call("other.test", &liars.iter().map(|server| server.address.ip()).collect::<Vec<_>>());
    let port = case.servers[0].address.port();
    let text = config_text(&case.directory, &[], "")
        + &format!("[[server]]\nport = {port}\npool = \"pool.test\"\npool_size = 3\n")
        + &format!("[[server]]\nport = {}\npool = \"other.test\"\npool_size = 2\n", liars[0].address.port());
    case.keeper.take_over(Config::parse(&text).unwrap());
    let is_agreed = |status: &StatusReport| {
        all_answer(status) && status.vote.as_ref().is_some_and(|vote| (vote.deciders, vote.believed) == (4, 4))
    };
    let status = case.run_until("two votes of each", is_agreed);
    let spares: Vec<bool> = status.sources.iter().map(|source| source.vote.spare).collect();
    assert_eq!(spares, [false, false, true, false, false]);
    liars.iter().for_each(|server| server.behave(|behaviour| behaviour.lie = lie));
    let is_held = |status: &StatusReport| status.quorum == Some(QuorumReport::Disagreement);
    case.run_until("no majority", is_held);
    let counter = case.keeper.host_counter.read();
    let reading = Reader::new(case.page().words()).reading_at(counter, CounterId::CPU).unwrap();
    let error = (reading.time - LeapTable::built_in().utc_from_tai(truth.at(counter))).abs();
    assert!(error < lie.halved() && error <= reading.bound.as_span(), "{error} {}", reading.bound);
}

/// A spare steps in when a server of its pool that votes falls silent; here no other address is left.
#[test]
fn a_spare_steps_in() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let honest = [TestServer::start("127.0.0.1:0", truth)];
    let mut case = Case::with_pool("pool-spare", servers(91, 3, truth), (POOL_OF_3, &honest));
    let spares = |status: &StatusReport| of_pool(status).iter().map(|source| source.vote.spare).collect::<Vec<_>>();
    let status = case.run_until("one vote", all_answer);
    assert_eq!(spares(&status), [false, true, true]);
    assert!(of_pool(&status)[1].why.starts_with("spare: "));
    case.servers[0].behave(|behaviour| behaviour.silent = true);
    case.run_until("another vote", |status| spares(status) == [true, false, true]);
}

#[test]
fn a_name_that_moved_is_followed_after_a_day() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let table = "address = \"pool.test\"";
    let mut case = Case::with_pool("moved", servers(101, 2, truth), (table, &[]));
    let status = case.run_until("an answer", all_answer);
    assert_eq!(status.sources[0].address, Some(case.address(0)));
    case.rig.call("pool.test", &[case.servers[1].address.ip()]);
    let now = case.keeper.context.now;
    assert!(!case.keeper.peers[0].wants_look_up(now + Span::from_secs(86_000)));
    assert!(case.keeper.peers[0].wants_look_up(now + Span::from_secs(86_400)));
    case.keeper.peers[0].look_up(&mut case.keeper.resolver, &mut case.keeper.context);
    let second = Some(case.address(1));
    case.run_until("the new address", |status| status.sources[0].address == second && all_answer(status));
    case.rig.call("pool.test", &case.servers.iter().map(|server| server.address.ip()).collect::<Vec<_>>());
    case.keeper.peers[0].look_up(&mut case.keeper.resolver, &mut case.keeper.context);
    (0..10).for_each(|_| case.turn());
    assert_eq!(case.keeper.status().sources[0].address, second, "an address that is among several stays");
}

/// An establishment looks the name up, so a name that is looked up again each day costs one establishment a day, not
/// one at each poll.
#[test]
fn keys_are_established_again_once_a_day() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let table = "address = \"localhost\"\nnts = true\nnts_port = 1";
    let mut case = Case::with_pool("daily-keys", servers(141, 1, truth), (table, &[]));
    let establish = |case: &mut Case| {
        let peer = &mut case.keeper.peers[0];
        peer.establish(&mut case.keeper.establisher, Ok(ffclock_sys::system_utc_now()), &mut case.keeper.context);
        let key = || Key::new(Aead::AesSivCmac256, &[7; 32]).unwrap();
        let keys = SessionKeys { client_to_server: key(), server_to_client: key() };
        let session = Session::new(keys, vec![vec![1; 100]; 8]);
        let established = Established { session, address: case.servers[0].address, certificate_end: None };
        peer.established(Ok(established), &mut case.keeper.context);
    };
    establish(&mut case);
    let day = Span::from_secs(86_400);
    case.keeper.context.now = case.keeper.context.now + day;
    let next_day = case.keeper.context.now;
    assert!(case.keeper.peers[0].wants_look_up(next_day));
    establish(&mut case);
    assert!(!case.keeper.peers[0].wants_look_up(next_day + Span::from_secs(3_600)));
    assert!(case.keeper.peers[0].wants_look_up(next_day + day));
}

#[test]
fn an_address_needs_no_second_look() {
    let (mut case, _) = one_server("literal", "");
    case.run_until("an answer", all_answer);
    let later = case.keeper.context.now + Span::from_secs(864_000);
    assert!(!case.keeper.peers[0].wants_look_up(later));
}

#[test]
fn only_the_wanted_family_is_asked() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let table = "address = \"pool.test\"\nfamily = \"ipv6\"";
    let mut case = Case::with_pool("family", servers(111, 1, truth), (table, &[]));
    let status = case.run_until("a complaint", |status| has_event(status, "no address of the wanted family"));
    assert_eq!(status.sources[0].address, None);
}

#[test]
fn each_request_may_leave_from_another_port() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let table = "address = \"pool.test\"\nrandom_port = true";
    let mut case = Case::with_pool("ports", servers(121, 1, truth), (table, &[]));
    let mut ports = std::collections::BTreeSet::new();
    for exchanges in 1..=8 {
        let status = case.run_until("an exchange", |status| status.sources[0].exchanges >= exchanges);
        assert_eq!(status.sources[0].lost, 0);
        ports.extend(case.keeper.peers[0].local_port());
    }
    // Of 28,000 ports two are the same by chance once in a thousand runs, and five hardly ever.
    assert!(ports.len() >= 4, "{ports:?}");
}

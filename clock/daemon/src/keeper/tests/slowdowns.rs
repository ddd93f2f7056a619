//! What a server says of how often it may be asked.

use super::*;
use ffclock_wire::Packet;

fn refuse(request: &Packet, reply: &Packet) -> Vec<u8> {
    let reference_id = u32::from_be_bytes(*b"RATE");
    Packet { stratum: 0, reference_id, origin: request.transmit, ..*reply }.encode().to_vec()
}

/// The second table is another name of the same server; after a reload it is another table altogether.
#[test]
fn a_slowdown_holds_for_every_table_of_the_server_and_over_a_reload() {
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU));
    let mut case = Case::start("slowdowns", vec![server], "counter = \"tsc\"");
    let port = case.servers[0].address.port();
    case.rig
        .0
        .borrow()
        .names
        .lock()
        .unwrap()
        .extend(["one.test", "two.test"].map(|name| (name.to_owned(), vec![case.servers[0].address.ip()])));
    let table = |name: &str| format!("[[server]]\naddress = \"{name}\"\nport = {port}\n");
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"");
    case.keeper.take_over(Config::parse(&(text.clone() + &table("one.test"))).unwrap());
    case.run_until("both", |status| status.sources.iter().all(|source| source.exchanges > 2));
    case.servers[0].behave(|behaviour| behaviour.before = vec![refuse]);
    case.run_until("slowness", |status| status.sources.iter().any(|source| source.slowed));
    case.servers[0].behave(|behaviour| behaviour.before = Vec::new());
    let polls: Vec<f64> = case.keeper.status().sources.iter().map(|source| source.poll_s).collect();
    assert!(polls.iter().all(|poll| *poll >= 0.25), "the poll was 125 ms: {polls:?}");
    case.keeper.take_over(Config::parse(&(text + &table("two.test"))).unwrap());
    let status = case.run_until("the other name", |status| status.sources[1].address.is_some());
    assert!(status.sources[1].slowed && status.sources[1].poll_s >= 0.25, "{:?}", status.sources[1]);
}

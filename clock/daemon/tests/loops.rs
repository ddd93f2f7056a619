//! A server that follows this host gives it no time.

mod common;

use common::namespace::is_in_a_namespace;
use common::server::{TestServer, Truth};
use common::{Daemon, Scratch, server_section};
use ffclock_control::protocol::StatusReport;
use ffclock_counter::CounterId;

fn says(status: &StatusReport, event: &str) -> bool {
    status.events.iter().any(|one| one.text.contains(event))
}

/// The server is at an address of this host, so we ask from that address, too.
#[test]
fn a_server_that_follows_this_host_is_no_source_until_it_follows_another() {
    let test = "a_server_that_follows_this_host_is_no_source_until_it_follows_another";
    if !is_in_a_namespace(test, "ip address add 192.0.2.5/32 dev lo") {
        return;
    }
    let server = TestServer::start("192.0.2.5:0", Truth::beginning_now(CounterId::CPU));
    server.behave(|behaviour| (behaviour.stratum, behaviour.reference_id) = (2, 0xc000_0205));
    let scratch = Scratch::new("loops");
    let daemon = Daemon::start(&scratch, &(scratch.daemon_section("") + &server_section(server.address, "")));
    let turned_away = |status: &StatusReport| status.sources[0].rejected.iter().any(|one| one.0 == "loop");
    let status = daemon.wait_for("a loop is found", |status| turned_away(status) && says(status, "follows this host"));
    assert_eq!(status.sources[0].exchanges, 0);
    assert!(status.clock.is_none());
    server.behave(|behaviour| behaviour.reference_id = 0x7f00_0001);
    daemon.wait_for("it follows a program of its own host", |status| {
        status.sources[0].exchanges > 0 && says(status, "no longer follows this host")
    });
}

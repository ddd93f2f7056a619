//! Servers that answer, and say nothing that is of use.

use super::*;
use ffclock_wire::{NtpTimestamp, Packet};

/// It claims to have kept the request for longer than the round trip took.
fn kept_too_long(_: &Packet, reply: &Packet) -> Vec<u8> {
    let receive = NtpTimestamp::from_raw(reply.receive.raw() - (1 << 31));
    Packet { receive, ..*reply }.encode().to_vec()
}

/// It names another reference each time.
fn follows_another(_: &Packet, reply: &Packet) -> Vec<u8> {
    Packet { reference_id: reply.transmit.raw() as u32, ..*reply }.encode().to_vec()
}

#[test]
fn a_server_whose_answers_are_of_no_use_is_as_good_as_silent() {
    for (name, useless) in
        [("kept-too-long", kept_too_long as fn(&Packet, &Packet) -> Vec<u8>), ("others", follows_another)]
    {
        let (mut case, _) = one_server(name, "counter = \"tsc\"");
        case.run_until("some exchanges", |status| used(status) >= 10);
        case.servers[0].behave(|behaviour| behaviour.before = vec![useless]);
        let status = case.run_until("uselessness", |status| status.sources[0].state == SourceState::Unreachable);
        assert!(has_event(&status, "nothing of it is of use"), "{:?}", status.events);
        assert_eq!(status.clock.unwrap().status, Status::Holdover, "{name}");
        assert_eq!(case.reading().unwrap().status, Status::Holdover, "the page says so too");
        let heard = status.sources[0].vote.heard_s.unwrap();
        assert!(heard > 0.3, "four polls of 125 ms brought nothing: {heard} s");
        case.servers[0].behave(|behaviour| behaviour.before = Vec::new());
        let status = case.run_until("use", |status| status.sources[0].state == SourceState::Reachable);
        assert!(has_event(&status, "is of use again"), "{:?}", status.events);
        assert_ne!(status.clock.unwrap().status, Status::Holdover, "{name}");
    }
}

/// Packets that belong to no request say nothing about the server.
#[test]
fn forged_packets_make_no_server_silent() {
    let (mut case, _) = one_server("forged", "counter = \"tsc\"");
    case.servers[0].behave(|behaviour| {
        let forged: fn(&Packet, &Packet) -> Vec<u8> =
            |_, reply| Packet { origin: NtpTimestamp::from_raw(1), ..*reply }.encode().to_vec();
        behaviour.before = vec![forged; 9];
    });
    let status = case.run_until("some exchanges", |status| used(status) >= 10);
    assert!(status.sources[0].rejected.iter().any(|(reason, count)| reason == "wrong-origin" && *count > 20));
    assert_eq!(status.sources[0].state, SourceState::Reachable);
}

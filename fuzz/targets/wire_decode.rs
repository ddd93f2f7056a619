//! Any datagram: decoding gives a packet or a reason, and a decoded packet survives being encoded and decoded again.
#![no_main]

use ffclock_wire::{HEADER_BYTES, PACKET_BYTES_MAX, Packet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Packet::decode(bytes) {
        Ok(packet) => {
            assert!((HEADER_BYTES..=PACKET_BYTES_MAX).contains(&bytes.len()));
            assert_eq!(Packet::decode(&packet.encode()), Ok(packet));
            assert_eq!(&packet.encode()[..], &bytes[..HEADER_BYTES], "a field lost or changed bits");
        }
        Err(reason) => assert!(!reason.to_string().is_empty()),
    }
});

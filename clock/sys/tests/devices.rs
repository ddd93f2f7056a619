//! A group is heard on one device alone, also while other sockets of this host hear it on another.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

#[path = "../../ptp/tests/hosts/mod.rs"]
#[expect(dead_code, reason = "the tests of PTP use more of it")]
mod hosts;

use ffclock_counter::CounterId;
use ffclock_sys::{SocketEvent, StampMode, StampedSocket, Stamper, device_index, hardware_address};
use ffclock_units::Period;
use hosts::{ip, is_on_own_host};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

fn heard(socket: &mut StampedSocket, stamper: &mut Stamper) -> usize {
    let mut count = 0;
    while let Some(event) = socket.next_event(&mut [0; 64], stamper).unwrap() {
        count += usize::from(matches!(event, SocketEvent::Received(_)));
    }
    count
}

#[test]
fn a_group_of_ipv6_is_heard_on_its_device_alone() {
    if !is_on_own_host("a_group_of_ipv6_is_heard_on_its_device_alone") {
        return;
    }
    ip("link set lo up");
    if UdpSocket::bind("[::1]:0").is_err() {
        println!("SKIP: this host has no IPv6");
        return;
    }
    assert_eq!(hardware_address("ours0"), None);
    for number in [0, 1] {
        ip(&format!("link add ours{number} type veth peer name theirs{number}"));
        ip(&format!("link set ours{number} up"));
        ip(&format!("link set theirs{number} up"));
    }
    ip("link set ours1 address 02:03:04:05:06:07");
    assert_eq!(hardware_address("ours1"), Some([2, 3, 4, 5, 6, 7]), "of this namespace, whatever /sys is of");
    let mut stamper = Stamper::new(CounterId::MonotonicRaw, Period::from_hertz(1e9).unwrap());
    let group: SocketAddr = "[ff0e::181]:31900".parse().unwrap();
    let on = |device: &str| StampedSocket::in_group(group, device_index(device).unwrap(), StampMode::Kernel).unwrap();
    let [mut first, mut second, mut speaker] = ["ours0", "ours1", "theirs1"].map(on);
    // Its address is tried for a while before it is used.
    let hears = (0..2000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        let _ = speaker.send_to(&[1; 7], group, &mut stamper);
        heard(&mut second, &mut stamper) > 0
    });
    assert!(hears, "the device of the speaker");
    assert_eq!(heard(&mut first, &mut stamper), 0, "the other one");
}

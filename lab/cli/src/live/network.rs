//! A link from the server to each contestant, direct, through the router, or by a relay. The namespaces are those of
//! their processes and end with them.

use super::plan::PathChange;
use crate::failure::Failure;
use crate::lab::link::inside;
use crate::lab::worker::{Worker, run};
use std::fs;

/// The server's address on a contestant's link.
pub(super) fn server_address(number: usize) -> String {
    format!("10.78.{}.1", number + 1)
}

/// The address of the second server on a contestant's link to it.
pub(super) fn second_address(number: usize) -> String {
    format!("10.79.{}.1", number + 1)
}

/// The contestant's address on its link.
pub(super) fn contestant_address(number: usize) -> String {
    format!("10.78.{}.2", number + 1)
}

/// The contestant's address on its link to the second server.
fn second_contestant_address(number: usize) -> String {
    format!("10.79.{}.2", number + 1)
}

/// Gives a contestant a link of its own to the second server, which is another address of the first; it is down.
pub(super) fn join_second(server: &Worker, contestant: &Worker, number: usize) -> Result<(), Failure> {
    let [server, contestant] = [server.pid().to_string(), contestant.pid().to_string()];
    let end = second_end(number);
    pair([&server, &end], [&contestant, SECOND_CONTESTANT_END])?;
    set_up(&contestant, SECOND_CONTESTANT_END, &second_contestant_address(number))?;
    inside(&server, &["ip", "address", "add", &format!("{}/24", second_address(number)), "dev", &end])
}

/// The number of the link from the relay before a contestant to the contestant.
pub(super) fn behind_relay(number: usize) -> usize {
    number + 100
}

/// Joins a contestant to its server.
pub(super) fn join(server: &Worker, contestant: &Worker, number: usize) -> Result<(), Failure> {
    let [server, contestant] = [server.pid().to_string(), contestant.pid().to_string()];
    pair([&server, &server_end(number)], [&contestant, CONTESTANT_END])?;
    give_addresses(&server, &contestant, number)
}

/// Joins a contestant to its server with a router between them.
pub(super) fn join_by(router: &Worker, server: &Worker, contestant: &Worker, number: usize) -> Result<(), Failure> {
    let [server, contestant, router] = [server, contestant, router].map(|worker| worker.pid().to_string());
    let sides = [format!("s{number}"), router_end(number)];
    pair([&server, &server_end(number)], [&router, &sides[0]])?;
    pair([&router, &sides[1]], [&contestant, CONTESTANT_END])?;
    sides.iter().try_for_each(|side| inside(&router, &["ip", "link", "set", side, "up"]))?;
    give_addresses(&server, &contestant, number)
}

/// The tap that belongs to a side of the router's part of a link: `s` the server's, `c` the other. The guest's card has
/// its number at the end of its address.
pub(super) fn tap(side: &str, number: usize) -> String {
    format!("t{side}{}", 2 * number + usize::from(side != "s"))
}

/// The bridges of a link between device and tap, where the router is a guest.
pub(super) fn bridges(number: usize) -> [String; 2] {
    ["s", "c"].map(|side| format!("b{side}{number}"))
}

/// Gives each side of the router's part of a link a tap that is bridged with it.
pub(super) fn add_taps(router: &Worker, number: usize) -> Result<(), Failure> {
    let router = router.pid().to_string();
    ["s", "c"].into_iter().zip(bridges(number)).try_for_each(|(side, bridge)| {
        let words = [&format!("{side}{number}"), &tap(side, number), &bridge];
        inside(&router, &[&["sh", "-c", BRIDGED], words.map(String::as_str).as_slice()].concat())
    })
}

/// The device ($0) and the tap ($1) on one bridge ($2).
const BRIDGED: &str = "ip tuntap add mode tap name \"$1\" && ip link add name \"$2\" type bridge mcast_snooping 0 \
&& for device in \"$0\" \"$1\"; do ip link set \"$device\" master \"$2\" up || exit 1; done && ip link set \"$2\" up";

/// A pair of devices, each in the network of a process.
fn pair([pid, end]: [&str; 2], [other, other_end]: [&str; 2]) -> Result<(), Failure> {
    let one = ["link", "add", "name", end, "netns", pid, "type", "veth"];
    run("ip", &[one.as_slice(), &["peer", "name", other_end, "netns", other]].concat())
}

fn give_addresses(server: &str, contestant: &str, number: usize) -> Result<(), Failure> {
    let (end, [here, there]) = (server_end(number), [1, 2].map(|side| format!("02:00:00:4c:{side:02x}:{number:02x}")));
    let addresses = [server_address(number), contestant_address(number)];
    inside(server, &["ip", "link", "set", &end, "address", &here])?;
    inside(contestant, &["ip", "link", "set", CONTESTANT_END, "address", &there])?;
    set_up(server, &end, &addresses[0])?;
    set_up(contestant, CONTESTANT_END, &addresses[1])?;
    know(server, &end, [&addresses[1], &there])?;
    know(contestant, CONTESTANT_END, [&addresses[0], &here])
}

/// Who has an address is known from the start. Otherwise a kernel that has forgotten asks for it, in the middle of an
/// exchange; all namespaces of a host together remember 128 of those that are not used for a minute.
fn know(pid: &str, device: &str, [address, link]: [&str; 2]) -> Result<(), Failure> {
    inside(pid, &["ip", "neighbour", "replace", address, "lladdr", link, "nud", "permanent", "dev", device])
}

/// Changes the path to a contestant by the server's end of a link to it. Who ended meanwhile took its link away, and
/// nothing is left to be changed.
pub(super) fn change(server: &Worker, end: &str, change: PathChange) -> Result<(), Failure> {
    let state = match change {
        PathChange::Cut => "down",
        PathChange::Join => "up",
    };
    let changed = inside(&server.pid().to_string(), &["ip", "link", "set", end, state]);
    if has_device(server.pid(), end) { changed } else { Ok(()) }
}

/// The router's device on its link to a contestant.
pub(super) fn router_end(number: usize) -> String {
    format!("c{number}")
}

/// Whether the network of a process still has a device. One that is switched off is there.
pub(super) fn has_device(pid: u32, device: &str) -> bool {
    let devices = fs::read_to_string(format!("/proc/{pid}/net/dev")).unwrap_or_default();
    devices.lines().any(|line| line.trim_start().strip_prefix(device).is_some_and(|rest| rest.starts_with(':')))
}

/// The device of a contestant.
pub(super) const CONTESTANT_END: &str = "ff-live";

/// The server's device on a contestant's link.
pub(super) fn server_end(number: usize) -> String {
    format!("ff-live{number}")
}

/// The second server's device on a contestant's link.
pub(super) fn second_end(number: usize) -> String {
    format!("ff-lan{number}")
}

/// The device of a contestant on its link to the second server.
const SECOND_CONTESTANT_END: &str = "ff-lan";

fn set_up(pid: &str, device: &str, address: &str) -> Result<(), Failure> {
    inside(pid, &["ip", "link", "set", "lo", "up"])?;
    inside(pid, &["ip", "address", "add", &format!("{address}/24"), "dev", device])?;
    inside(pid, &["ip", "link", "set", device, "up"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::worker::{Task, WorkerNetwork, WorkerRights, namespaces_permitted};

    /// One that only has a network, with its log.
    fn sleeper(log: &std::path::Path) -> Worker {
        let command = ["sleep", "600"].map(str::to_owned);
        let task = Task { name: "a sleeper", command: &command, log, rights: WorkerRights::AllButTheClock };
        Worker::prepare(&task, WorkerNetwork::Own).unwrap()
    }

    #[test]
    fn both_ends_of_a_link_know_each_other_from_the_start() {
        if let Err(failure) = namespaces_permitted() {
            return println!("SKIP: neighbours: {failure}");
        }
        let log = std::env::temp_dir().join(format!("ffclock-live-neighbours-{}", std::process::id()));
        let [server, contestant] = [sleeper(&log), sleeper(&log)];
        join(&server, &contestant, 107).unwrap();
        for worker in [&server, &contestant] {
            let known = ["ip", "neighbour", "show", "nud", "permanent"];
            let inside = ["--target", &worker.pid().to_string(), "--net"];
            let said = std::process::Command::new("nsenter").args(inside).args(known).output().unwrap().stdout;
            let said = String::from_utf8(said).unwrap();
            assert!(said.contains("10.78.108.") && said.contains("lladdr 02:00:00:4c:"), "{said}");
        }
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_link_that_went_with_its_contestant_needs_no_change() {
        if let Err(failure) = namespaces_permitted() {
            return println!("SKIP: a link that is gone: {failure}");
        }
        let log = std::env::temp_dir().join(format!("ffclock-live-gone-{}", std::process::id()));
        let server = sleeper(&log);
        for wanted in [PathChange::Cut, PathChange::Join] {
            change(&server, &server_end(0), wanted).unwrap();
            change(&server, "lo", wanted).unwrap();
        }
        std::fs::remove_file(log).unwrap();
    }
}

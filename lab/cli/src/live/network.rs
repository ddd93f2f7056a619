//! A direct link from the server to each contestant. The namespaces are those of their processes and end with them.

use super::plan::PathChange;
use crate::failure::Failure;
use crate::lab::link::inside;
use crate::lab::worker::{Worker, run};

/// The server's address on a contestant's link.
pub(super) fn server_address(number: usize) -> String {
    format!("10.78.{}.1", number + 1)
}

/// Joins a contestant to the server.
pub(super) fn join(server: &Worker, contestant: &Worker, number: usize) -> Result<(), Failure> {
    let [server, contestant] = [server.pid().to_string(), contestant.pid().to_string()];
    let end = server_end(number);
    let ends = ["link", "add", "name", &end, "netns", &server, "type", "veth", "peer", "name", CONTESTANT_END];
    run("ip", &[ends.as_slice(), &["netns", &contestant]].concat())?;
    set_up(&server, &end, &server_address(number))?;
    set_up(&contestant, CONTESTANT_END, &format!("10.78.{}.2", number + 1))
}

/// Changes the path to a contestant.
pub(super) fn change(server: &Worker, number: usize, change: PathChange) -> Result<(), Failure> {
    let state = match change {
        PathChange::Cut => "down",
        PathChange::Join => "up",
    };
    let server = server.pid().to_string();
    inside(&server, &["ip", "link", "set", &server_end(number), state])
}

const CONTESTANT_END: &str = "ff-live";

fn server_end(number: usize) -> String {
    format!("ff-live{number}")
}

fn set_up(pid: &str, device: &str, address: &str) -> Result<(), Failure> {
    inside(pid, &["ip", "link", "set", "lo", "up"])?;
    inside(pid, &["ip", "address", "add", &format!("{address}/24"), "dev", device])?;
    inside(pid, &["ip", "link", "set", device, "up"])
}

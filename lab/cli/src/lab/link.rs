//! A virtual Ethernet link between the namespaces of two workers.

use super::worker::{Worker, run};
use crate::failure::Failure;

/// The server's address on the link.
pub(crate) const SERVER_ADDRESS: &str = "10.77.0.1";
const CLIENT_ADDRESS: &str = "10.77.0.2";

/// The name of the server's end, by its process. The kernel's tracing sees the packets of all network namespaces and
/// names their devices alone, so no two links may have ends of the same name. With a number of 7 digits it is as long
/// as a name may be.
pub(crate) fn server_end(server: u32) -> String {
    format!("ffserver{server}")
}

/// The name of the other end, likewise.
pub(crate) fn client_end(client: u32) -> String {
    format!("ffclient{client}")
}

/// Joins two workers that each have a network of their own.
pub(crate) fn join(server: &Worker, client: &Worker) -> Result<(), Failure> {
    join_processes(server.pid(), client.pid())
}

/// The addresses of the two ends of a link.
pub(crate) struct LinkAddresses<'a> {
    pub(crate) server: &'a str,
    pub(crate) client: &'a str,
}

/// Joins two workers by a link with these addresses. A host can be the client of one link and the server of another.
pub(crate) fn join_at(server: &Worker, client: &Worker, addresses: &LinkAddresses<'_>) -> Result<(), Failure> {
    join_ends((server.pid(), client.pid()), addresses)
}

/// Joins two processes that each have a network of their own.
pub(crate) fn join_processes(server: u32, client: u32) -> Result<(), Failure> {
    join_ends((server, client), &LinkAddresses { server: SERVER_ADDRESS, client: CLIENT_ADDRESS })
}

fn join_ends((server, client): (u32, u32), addresses: &LinkAddresses<'_>) -> Result<(), Failure> {
    let (server_end, client_end) = (server_end(server), client_end(client));
    let (server, client) = (server.to_string(), client.to_string());
    let near = ["link", "add", "name", &server_end, "netns", &server];
    let far = ["type", "veth", "peer", "name", &client_end, "netns", &client];
    run("ip", &[&near[..], &far].concat())?;
    configure(&server, &server_end, addresses.server)?;
    configure(&client, &client_end, addresses.client)
}

/// Gives the server's end one more address on the link.
pub(crate) fn add_address(server: &Worker, address: &str) -> Result<(), Failure> {
    let pid = server.pid();
    inside(&pid.to_string(), &["ip", "address", "add", &format!("{address}/24"), "dev", &server_end(pid)])
}

/// Takes the server's end down, or up again.
pub(crate) fn set_carrier(server: &Worker, state: Carrier) -> Result<(), Failure> {
    let state = match state {
        Carrier::Down => "down",
        Carrier::Up => "up",
    };
    let pid = server.pid();
    inside(&pid.to_string(), &["ip", "link", "set", &server_end(pid), state])
}

/// Whether packets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// They do not.
    Down,
    /// They do.
    Up,
}

fn configure(pid: &str, end: &str, address: &str) -> Result<(), Failure> {
    inside(pid, &["ip", "link", "set", "lo", "up"])?;
    inside(pid, &["ip", "address", "add", &format!("{address}/24"), "dev", end])?;
    inside(pid, &["ip", "link", "set", end, "up"])
}

/// Runs a command to its end in the network of a process.
pub(crate) fn inside(pid: &str, command: &[&str]) -> Result<(), Failure> {
    let mut arguments = vec!["--target", pid, "--net"];
    arguments.extend_from_slice(command);
    run("nsenter", &arguments)
}

//! Network namespaces that play hosts, joined by a bridge in one more. They have no names: a sleeping child holds
//! each, and dies with us, whatever happens, so there is nothing to clean up.

use crate::Failure;
use crate::lab::link::inside;
use crate::lab::worker::{namespaces_permitted, run as call, wait_for_own_network};
use std::process::{Child, Command, Stdio};

/// The network between the hosts: 10.78.0.0/16.
const PREFIX: &str = "10.78";

/// Namespaces in use.
pub(super) struct Namespaces {
    /// One for each host, and the last with the bridge.
    holders: Vec<Child>,
}

impl Namespaces {
    /// `hosts` hosts on one bridge.
    pub(super) fn new(hosts: u32) -> Result<Self, Failure> {
        namespaces_permitted()
            .map_err(|failure| Failure::from(format!("no network namespaces (root is needed): {failure}")))?;
        let mut namespaces = Namespaces { holders: Vec::new() };
        for _ in 0..=hosts {
            namespaces.holders.push(hold()?);
        }
        for holder in &mut namespaces.holders {
            wait_for_own_network(holder, "a namespace")?;
        }
        let hub = namespaces.pid(hosts);
        inside(&hub, &["ip", "link", "add", "name", "hub", "type", "bridge"])?;
        inside(&hub, &["ip", "link", "set", "hub", "up"])?;
        (0..hosts).try_for_each(|host| namespaces.join(host, &hub))?;
        Ok(namespaces)
    }

    fn pid(&self, number: u32) -> String {
        self.holders[number as usize].id().to_string()
    }

    fn join(&self, host: u32, hub: &str) -> Result<(), Failure> {
        let (pid, port) = (self.pid(host), format!("port{host}"));
        let pair = ["link", "add", "name", &port, "netns", hub, "type", "veth", "peer", "name", "eth0", "netns", &pid];
        call("ip", &pair)?;
        inside(hub, &["ip", "link", "set", &port, "master", "hub", "up"])?;
        inside(&pid, &["ip", "link", "set", "lo", "up"])?;
        inside(&pid, &["ip", "address", "add", &format!("{}/16", Self::address(host)), "dev", "eth0"])?;
        inside(&pid, &["ip", "link", "set", "eth0", "up"])
    }

    /// The address of a host.
    pub(super) fn address(host: u32) -> String {
        let number = host + 1;
        format!("{PREFIX}.{}.{}", number / 250, number % 250 + 1)
    }

    /// A command line that runs what is added to it on a host, and no longer than we live.
    pub(super) fn inside(&self, host: u32) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "nsenter", "--target", &self.pid(host), "--net", "--"]);
        command
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            // Both fail only if it has ended by itself.
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

fn hold() -> Result<Child, Failure> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"]).stdin(Stdio::null());
    command.spawn().map_err(|error| Failure::from(format!("setpriv: {error}")))
}

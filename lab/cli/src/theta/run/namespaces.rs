//! Network namespaces that play hosts, joined by a bridge in one more. They have no names: a sleeping child holds
//! each, and dies with us, whatever happens, so there is nothing to clean up.

use crate::Failure;
use crate::lab::link::inside;
use crate::lab::worker::{namespaces_permitted, run as call, wait_for_own_network};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;

/// The network between the hosts: 10.78.0.0/16.
const PREFIX: &str = "10.78";

/// The rate of a link in Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LinkRate(f64);

/// What a link may send at once after a pause. Much less, and a timer that is late costs capacity.
const BURST_BYTES: &str = "8k";
/// A packet that would wait longer is dropped.
const LONGEST_WAIT: &str = "50ms";

impl LinkRate {
    pub(super) fn mbits(self) -> f64 {
        self.0
    }
}

impl FromStr for LinkRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate: Option<f64> = text.parse().ok();
        let rate = rate.filter(|rate| (0.1..=10_000.0).contains(rate));
        rate.map(LinkRate).ok_or_else(|| format!("`{text}` is no rate: say Mbit/s between 0.1 and 10000, such as 100"))
    }
}

/// Namespaces in use.
pub(super) struct Namespaces {
    /// One for each host, and the last with the bridge.
    holders: Vec<Child>,
}

impl Namespaces {
    /// `hosts` hosts on one bridge, with links of this rate, or as fast as the machine is.
    pub(super) fn new(hosts: u32, rate: Option<LinkRate>) -> Result<Self, Failure> {
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
        for host in 0..hosts {
            namespaces.join(host, &hub)?;
            if let Some(rate) = rate {
                limit(&namespaces.pid(host), "eth0", rate)?;
                limit(&hub, &format!("port{host}"), rate)?;
            }
        }
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

/// Gives what a device sends a rate.
fn limit(pid: &str, device: &str, rate: LinkRate) -> Result<(), Failure> {
    let rate = format!("{:.0}bit", rate.mbits() * 1e6);
    let bucket = ["tbf", "rate", &rate, "burst", BURST_BYTES, "latency", LONGEST_WAIT];
    inside(pid, &[&["tc", "qdisc", "add", "dev", device, "root"][..], &bucket].concat())
        .map_err(|failure| Failure::from(format!("--link-rate: {failure} (it needs tc and the kernel's sch_tbf)")))
}

fn hold() -> Result<Child, Failure> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"]).stdin(Stdio::null());
    command.spawn().map_err(|error| Failure::from(format!("setpriv: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_in_megabits() {
        assert_eq!("100".parse(), Ok(LinkRate(100.0)));
        for text in ["", "0", "-1", "NaN", "inf", "1e9", "100mbit"] {
            assert!(text.parse::<LinkRate>().is_err(), "{text}");
        }
    }
}

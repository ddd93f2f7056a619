//! Servers that follow this host in turn: their time is ours, so they are no source of it.
//!
//! A server names the one that it follows by its address (RFC 5905, section 7.3). Not every address names this host
//! alone. Loopback is any program on the server's own host, and another network may have given a private address again:
//! to a bridge of virtual machines, say, whose guests follow it. So what counts are the addresses of this host that no
//! second host has and, for a server whose own address is not unique either, those of the device that our requests to
//! it leave by.

use super::{Context, Peer};
use crate::journal::{Entry, Weight};
use ffclock_source::Rejection;
use ffclock_wire::reference_of;
use std::net::IpAddr;

impl Peer {
    /// Lets the source know by which names others follow this host.
    pub(super) fn know_own_references(&mut self) {
        let ends = self.link.as_ref().and_then(|link| Some((link.local_address()?, link.address().ip())));
        let references = ends.map(|ends| own_references(ends, &ffclock_sys::own_addresses()));
        self.source.set_own_references(references.unwrap_or_default());
    }

    /// Logs why a packet was turned away. A server that follows this host does so for long: that is logged when it
    /// begins and when it ends.
    pub(super) fn log_rejection(&mut self, reason: Rejection, context: &mut Context) {
        if reason != Rejection::Loop {
            self.log(context, Weight::Detail, "packet turned away", reason.name());
        } else if !self.reported.is_loop {
            let kind = "the server follows this host: it is no source of time";
            let entry = Entry { weight: Weight::Warning, source: Some(&self.name), kind, detail: "" };
            self.reported.is_loop = context.journal.log_state(&entry);
        }
    }

    /// The server follows another one.
    pub(super) fn log_end_of_loop(&mut self, context: &mut Context) {
        if self.reported.is_loop {
            let kind = "the server no longer follows this host";
            let entry = Entry { weight: Weight::Notice, source: Some(&self.name), kind, detail: "" };
            self.reported.is_loop = !context.journal.log_state(&entry);
        }
    }
}

/// By which reference identifiers a server names this host, which asks it from `local` and has these addresses.
fn own_references((local, server): (IpAddr, IpAddr), own: &[(String, IpAddr)]) -> Vec<u32> {
    if local.is_loopback() {
        return Vec::new();
    }
    let device = own.iter().find(|(_, ip)| *ip == local).map(|(device, _)| device);
    // A device of loopback may have other addresses, too.
    let is_near = |other: &String, ip: &IpAddr| Some(other) == device && !ip.is_loopback();
    let by_device = own.iter().filter(|(other, ip)| is_near(other, ip)).map(|(_, ip)| *ip).chain([local]);
    let everywhere = own.iter().map(|(_, ip)| *ip).filter(|ip| is_unique(*ip));
    let ours = everywhere.chain(by_device.filter(|ip| is_unique(*ip) || !is_unique(server)));
    let mut references: Vec<u32> = ours.map(reference_of).collect();
    references.sort_unstable();
    references.dedup();
    references
}

/// Whether no second host has this address.
fn is_unique(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let is_shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64;
            !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_shared)
        }
        IpAddr::V6(ip) => !(ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(local: &str, own: &[(&str, &str)]) -> Vec<u32> {
        references_for((local, local), own)
    }

    fn references_for((local, server): (&str, &str), own: &[(&str, &str)]) -> Vec<u32> {
        let own: Vec<(String, IpAddr)> =
            own.iter().map(|(device, ip)| ((*device).to_owned(), ip.parse().unwrap())).collect();
        own_references((local.parse().unwrap(), server.parse().unwrap()), &own)
    }

    fn named(ips: &[&str]) -> Vec<u32> {
        let mut named: Vec<u32> = ips.iter().map(|ip| reference_of(ip.parse().unwrap())).collect();
        named.sort_unstable();
        named
    }

    #[test]
    fn this_host_is_named_by_the_addresses_that_are_its_own_alone() {
        let own = [
            ("lo", "127.0.0.1"),
            ("lo", "::1"),
            ("lo", "10.255.0.1"),
            ("eth0", "192.168.1.5"),
            ("eth0", "2001:db8::5"),
            ("eth0", "fe80::5"),
            ("eth1", "198.51.100.7"),
            ("eth1", "2001:db8:1::7"),
            ("wan", "100.64.3.1"),
            ("virbr0", "192.168.122.1"),
            ("virbr0", "fe80::1"),
        ];
        let everywhere = ["2001:db8::5", "198.51.100.7", "2001:db8:1::7"];
        let through_eth0 = [&everywhere[..], &["192.168.1.5", "fe80::5"]].concat();
        assert_eq!(references("192.168.1.5", &own), named(&through_eth0));
        assert_eq!(references("2001:db8::5", &own), named(&everywhere), "a server elsewhere");
        assert_eq!(references("198.51.100.7", &own), named(&everywhere));
        assert_eq!(references("10.255.0.1", &own), named(&[&everywhere[..], &["10.255.0.1"]].concat()));
        let through_bridge = [&everywhere[..], &["192.168.122.1", "fe80::1"]].concat();
        assert_eq!(references("192.168.122.1", &own), named(&through_bridge));
    }

    /// Its network has private addresses of its own.
    #[test]
    fn to_a_server_elsewhere_a_private_address_names_no_host() {
        let own = [("eth0", "192.168.1.5"), ("eth1", "2001:db8:1::7")];
        assert_eq!(references_for(("192.168.1.5", "203.0.113.9"), &own), named(&["2001:db8:1::7"]));
        assert_eq!(references_for(("192.168.1.5", "192.168.7.9"), &own), named(&["192.168.1.5", "2001:db8:1::7"]));
    }

    /// A server at 127.0.0.1 that follows 127.0.0.1 follows some program of its host, which need not be this one.
    #[test]
    fn loopback_names_no_host() {
        for local in ["127.0.0.1", "127.0.0.2", "::1"] {
            let own = [("lo", "127.0.0.1"), ("lo", "::1"), ("eth0", "198.51.100.7")];
            assert_eq!(references(local, &own), Vec::<u32>::new());
        }
    }

    #[test]
    fn without_a_list_the_address_that_we_ask_from_counts() {
        assert_eq!(references("192.168.1.5", &[]), named(&["192.168.1.5"]));
    }
}

//! Who is answered, and how often.

use ffclock_units::Span;
use std::net::IpAddr;

/// What becomes of requests of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verdict {
    /// Answered in the driver.
    #[default]
    Answer,
    /// Left to the sockets.
    Pass,
    /// Dropped in the driver, and counted.
    Drop,
}

/// A network and what becomes of its requests. The longest prefix that holds an address decides;
/// an address of IPv4 is held by networks of its mapped address (RFC 4291, section 2.5.5.2) too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkRule {
    /// An address of the network.
    pub address: IpAddr,
    /// The length of its prefix in bits: at most 32 or 128.
    pub prefix: u8,
    /// What becomes of its requests.
    pub verdict: Verdict,
}

/// How often an address is answered: a token bucket. For IPv6, an address is its first 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimit {
    /// The time between two requests in the long run.
    pub interval: Span,
    /// How many may come at once.
    pub burst: u32,
    /// One of this number of requests beyond the limit is answered nevertheless; 0: none.
    pub leak: u32,
}

/// Who is answered in the driver.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Rules {
    /// What becomes of requests of no listed network.
    pub otherwise: Verdict,
    /// The listed networks.
    pub networks: Vec<NetworkRule>,
    /// How often an address is answered; `None`: as often as it asks.
    pub limit: Option<RequestLimit>,
    /// One of this number of requests without an answer gets a refusal (RATE, DENY); 0: none.
    pub kiss: u32,
    /// Whether a request that may ask for the interleaved mode (RFC 9769) is left to the sockets.
    pub leaves_interleaved: bool,
}

#[cfg(feature = "ebpf")]
impl Rules {
    /// The most that fit into the driver's list, with room for a reload.
    pub(crate) const NETWORKS_MAX: usize = 16_000;

    /// The networks as the driver looks them up: addresses of IPv4 are mapped into IPv6.
    pub(crate) fn mapped_networks(&self) -> impl Iterator<Item = (u32, [u8; 16], Verdict)> {
        self.networks.iter().map(|network| {
            let prefix = u32::from(network.prefix) + if network.address.is_ipv4() { 96 } else { 0 };
            (prefix, masked(mapped(network.address), prefix), network.verdict)
        })
    }
}

/// An address as one of IPv6 (RFC 4291, section 2.5.5.2).
#[cfg(feature = "ebpf")]
pub(crate) fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The address without what is behind the prefix.
#[cfg(feature = "ebpf")]
fn masked(address: [u8; 16], prefix: u32) -> [u8; 16] {
    let kept = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
    (u128::from_be_bytes(address) & kept).to_be_bytes()
}

#[cfg(test)]
#[cfg(feature = "ebpf")]
mod tests {
    use super::*;

    fn network(address: &str, prefix: u8, verdict: Verdict) -> NetworkRule {
        NetworkRule { address: address.parse().unwrap(), prefix, verdict }
    }

    #[test]
    fn networks_of_both_families_have_one_form() {
        let networks = vec![
            network("192.0.2.77", 24, Verdict::Drop),
            network("2001:db8::1", 32, Verdict::Pass),
            network("::", 0, Verdict::Drop),
        ];
        let rules = Rules { networks, ..Rules::default() };
        let mapped = |address: &str| mapped(address.parse().unwrap());
        assert_eq!(
            rules.mapped_networks().collect::<Vec<_>>(),
            [
                (120, mapped("192.0.2.0"), Verdict::Drop),
                (32, mapped("2001:db8::"), Verdict::Pass),
                (0, [0; 16], Verdict::Drop),
            ]
        );
    }
}

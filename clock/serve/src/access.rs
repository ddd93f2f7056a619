//! Who is served: networks that are allowed or denied, of which the smallest that holds an address decides.

use ffclock_service::Unrecognised;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// The bits that all addresses of IPv4 begin with as IPv6 ones.
const IPV4_LENGTH: u8 = 96;

/// An address as 128 bits: IPv4 ones as mapped into IPv6, so that both families have one order.
pub(crate) fn bits_of(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// All addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

impl Network {
    /// The first bits of 128, and how many they are.
    fn prefix(self) -> (u8, u128) {
        let length = if self.address.is_ipv4() { IPV4_LENGTH + self.length } else { self.length };
        (length, masked(bits_of(self.address), length))
    }
}

fn masked(bits: u128, length: u8) -> u128 {
    bits & u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

impl FromStr for Network {
    type Err = Unrecognised;
    /// An address alone is a network of its own. Bits beyond the prefix must be zero: they are a mistake.
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| Unrecognised)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(most), str::parse).map_err(|_| Unrecognised)?;
        let network = Network { address, length };
        let is_fine = length <= most && network.prefix().1 == bits_of(address);
        is_fine.then_some(network).ok_or(Unrecognised)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// A list of networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

impl Networks {
    /// An empty list.
    pub fn none() -> Self {
        Networks(Vec::new())
    }

    pub(crate) fn of(networks: Vec<Network>) -> Self {
        Networks(networks)
    }

    pub(crate) fn as_slice(&self) -> &[Network] {
        &self.0
    }
}

/// The networks of one prefix length.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    length: u8,
    /// In the order of the prefixes; whether each is served.
    networks: Vec<(u128, bool)>,
}

/// Decides who is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessList {
    /// The longest prefixes first.
    levels: Vec<Level>,
    /// For the addresses that no network holds.
    otherwise: bool,
}

impl AccessList {
    /// From the networks that are served and those that are not. A network in both lists is not.
    pub fn new(allow: &Networks, deny: &Networks) -> Self {
        let both = [(allow, true), (deny, false)];
        let mut prefixes: Vec<(u8, u128, bool)> = both
            .into_iter()
            .flat_map(|(list, is_served)| list.0.iter().map(move |network| (network.prefix(), is_served)))
            .map(|((length, bits), is_served)| (length, bits, is_served))
            .collect();
        // A network of IPv6 that is large enough to hold the place of IPv4's addresses does not hold these.
        let ipv4 = bits_of(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let holds_ipv4 = |(length, bits, _): &(u8, u128, bool)| *length < IPV4_LENGTH && masked(ipv4, *length) == *bits;
        let is_ipv4 = |(length, bits, _): &(u8, u128, bool)| (*length, *bits) == (IPV4_LENGTH, ipv4);
        if prefixes.iter().any(holds_ipv4) && !prefixes.iter().any(is_ipv4) {
            prefixes.push((IPV4_LENGTH, ipv4, allow.0.is_empty()));
        }
        prefixes.sort_unstable();
        let mut levels: Vec<Level> = Vec::new();
        for (length, bits, is_served) in prefixes {
            match levels.last_mut() {
                // `false` sorts first, so a second entry of the same network is the allowing one.
                Some(level) if level.length == length => {
                    if level.networks.last().is_none_or(|last| last.0 != bits) {
                        level.networks.push((bits, is_served));
                    }
                }
                _ => levels.push(Level { length, networks: vec![(bits, is_served)] }),
            }
        }
        levels.reverse();
        AccessList { levels, otherwise: allow.0.is_empty() }
    }

    /// The networks with the bits of their prefixes, and whether each is served: an address of IPv4 is mapped.
    pub(crate) fn networks(&self) -> impl Iterator<Item = (u8, u128, bool)> {
        let of_level =
            |level: &Level| level.networks.iter().map(|(bits, is_served)| (*bits, *is_served)).collect::<Vec<_>>();
        self.levels
            .iter()
            .flat_map(move |level| of_level(level).into_iter().map(|(bits, served)| (level.length, bits, served)))
    }

    /// Whether an address is served that no network holds.
    pub(crate) fn serves_others(&self) -> bool {
        self.otherwise
    }

    /// Whether this address is served.
    pub fn is_served(&self, ip: IpAddr) -> bool {
        if self.levels.is_empty() {
            return self.otherwise;
        }
        let bits = bits_of(ip);
        let found = self.levels.iter().find_map(|level| {
            let wanted = masked(bits, level.length);
            let place = level.networks.binary_search_by_key(&wanted, |network| network.0).ok()?;
            level.networks.get(place).map(|network| network.1)
        });
        found.unwrap_or(self.otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(allow: &str, deny: &str) -> AccessList {
        AccessList::new(&allow.parse().unwrap(), &deny.parse().unwrap())
    }

    fn serves(list: &AccessList, ip: &str) -> bool {
        list.is_served(ip.parse().unwrap())
    }

    #[test]
    fn the_smallest_network_decides() {
        let list = list("10.0.0.0/8, 10.1.2.3", "10.1.0.0/16, 2001:db8::/32");
        assert!(serves(&list, "10.2.0.1") && serves(&list, "10.1.2.3"));
        assert!(!serves(&list, "10.1.2.4") && !serves(&list, "192.0.2.1") && !serves(&list, "2001:db8::1"));
        assert!(serves(&list, "::ffff:10.2.0.1"), "a mapped address is the IPv4 one");
    }

    #[test]
    fn without_an_allowed_network_all_are() {
        assert!(serves(&list("", ""), "192.0.2.1") && serves(&list("", "10.0.0.0/8"), "::1"));
        assert!(!serves(&list("", "10.0.0.0/8"), "10.0.0.1"));
        assert!(!serves(&list("10.0.0.0/8", "10.0.0.0/8"), "10.0.0.1"), "in doubt it is denied");
        assert!(!serves(&list("", "0.0.0.0/0"), "192.0.2.1") && serves(&list("", "0.0.0.0/0"), "2001:db8::1"));
    }

    #[test]
    fn a_family_is_not_the_other_one() {
        let only_v6 = list("::/0", "");
        assert!(serves(&only_v6, "2001:db8::1") && !serves(&only_v6, "192.0.2.1"));
        let no_v6 = list("", "::/0");
        assert!(!serves(&no_v6, "2001:db8::1") && serves(&no_v6, "192.0.2.1") && serves(&no_v6, "::ffff:192.0.2.1"));
        let both = list("::/0, 0.0.0.0/0", "");
        assert!(serves(&both, "2001:db8::1") && serves(&both, "192.0.2.1"));
        assert!(!serves(&list("::/0", "0.0.0.0/0"), "192.0.2.1"));
        assert!(serves(&list("::/0, 10.0.0.0/8", ""), "10.0.0.1"));
    }

    proptest! {
        /// Against looking at every network.
        #[test]
        fn it_agrees_with_a_search_of_all(
            networks in proptest::collection::vec((any::<u8>(), 0..=32_u8, any::<bool>()), 0..20),
            address in any::<u8>(),
        ) {
            let network = |high: u8, length: u8| Network {
                address: IpAddr::V4((u32::from(high) << 24 & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)).into()),
                length,
            };
            let of = |wanted: bool| Networks::of(
                networks.iter().filter(|entry| entry.2 == wanted).map(|entry| network(entry.0, entry.1)).collect(),
            );
            let (allow, deny) = (of(true), of(false));
            let ip = IpAddr::V4((u32::from(address) << 24).into());
            let holds = |network: &Network| masked(bits_of(ip), network.prefix().0) == network.prefix().1;
            let longest = |list: &Networks| list.0.iter().filter(|network| holds(network)).map(|n| n.length + 1).max();
            let expected = match (longest(&allow), longest(&deny)) {
                (None, None) => allow.0.is_empty(),
                (allowed, denied) => allowed > denied,
            };
            prop_assert_eq!(AccessList::new(&allow, &deny).is_served(ip), expected);
        }
    }
}

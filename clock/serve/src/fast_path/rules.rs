//! The policy as the driver has it.

use crate::policy::Policy;
use crate::worker::KISS_SHARE;
use ffclock_xdp::{NetworkRule, Rules, Verdict, XdpHook};
use std::net::{IpAddr, Ipv6Addr};

/// The rules of a policy. Servers that we follow are left to the sockets, which answer them in their own way.
pub(super) fn of(policy: &Policy) -> Rules {
    let judged = |is_served| if is_served { Verdict::Answer } else { Verdict::Drop };
    let listed = policy.access.networks().map(|(length, bits, is_served)| network(bits, length, judged(is_served)));
    let followed = policy.followed.iter().map(|(bits, _)| network(*bits, 128, Verdict::Pass));
    Rules {
        otherwise: judged(policy.access.serves_others()),
        networks: listed.chain(followed).collect(),
        limit: policy.limit.as_request_limit(u32::try_from(policy.leak).unwrap_or(u32::MAX)),
        kiss: if policy.kiss { KISS_SHARE as u32 } else { 0 },
        leaves_interleaved: policy.interleaved,
    }
}

/// Both families have one order, that of IPv6.
fn network(bits: u128, prefix: u8, verdict: Verdict) -> NetworkRule {
    NetworkRule { address: IpAddr::V6(Ipv6Addr::from_bits(bits)), prefix, verdict }
}

/// Where the program is, in the word that wishes for it.
pub(super) const fn hook_name(hook: XdpHook) -> &'static str {
    match hook {
        XdpHook::Auto => "auto",
        XdpHook::Native => "native",
        XdpHook::Generic => "generic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AccessList, bits_of};
    use crate::limit::LimitOptions;
    use crate::options::ServeConfig;
    use crate::ptp::PtpConfig;
    use crate::server::policy;
    use ffclock_units::Span;

    #[test]
    fn the_driver_judges_as_the_sockets_do_and_leaves_them_the_servers_that_are_followed() {
        let access = AccessList::new(&"10.0.0.0/8".parse().unwrap(), &"10.1.0.0/16, 2001:db8::/32".parse().unwrap());
        let followed = vec![(bits_of("10.2.0.1".parse().unwrap()), 7)];
        let policy = Policy { access, followed, ..policy(&ServeConfig::default(), &PtpConfig::default()) };
        let rules = of(&policy);
        let rule = |address: &str, prefix, verdict| NetworkRule {
            address: IpAddr::V6(Ipv6Addr::from_bits(bits_of(address.parse().unwrap()))),
            prefix,
            verdict,
        };
        let mut networks = rules.networks.clone();
        networks.sort_unstable_by_key(|network| network.prefix);
        assert_eq!(
            networks,
            [
                rule("2001:db8::", 32, Verdict::Drop),
                rule("10.0.0.0", 104, Verdict::Answer),
                rule("10.1.0.0", 112, Verdict::Drop),
                rule("10.2.0.1", 128, Verdict::Pass),
            ]
        );
        assert_eq!((rules.otherwise, rules.kiss), (Verdict::Drop, 16));
        let limit = rules.limit.unwrap();
        assert_eq!((limit.burst, limit.leak), (100, 4));
        assert!((limit.interval - Span::from_millis(10)).abs() < Span::from_micros(1));
        let limit = LimitOptions::new(0.0, 5);
        assert_eq!(of(&Policy { limit, kiss: false, ..policy }).limit, None);
    }
}

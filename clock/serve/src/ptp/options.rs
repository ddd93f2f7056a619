//! The options of the table `[ptp]`.

use crate::options::{entries, joined};
use ffclock_ptp::{ClockClass, ClockIdentity, GrandmasterConfig, GrandmasterLimits, GroupService, TimeSource};
use ffclock_service::{DeviceName, DeviceStamps, MessageInterval, Unrecognised, words};
use ffclock_sys::DeviceSetup;
use ffclock_units::{Bound, OptionValue, Span};
use std::fmt;
use std::str::FromStr;

ffclock_units::options! {
    /// Options of PTP: a grandmaster on network devices of this host.
    pub struct PtpConfig {
        /// The network devices that PTP is served on: with a list such as `["eth0"]` PTP is served. UDP ports 319 and
        /// 320 take the capability CAP_NET_BIND_SERVICE at the start, frames take CAP_NET_RAW.
        interfaces: Devices = Devices(Vec::new());
        /// How messages travel: over UDP/IPv4, UDP/IPv6 or both, or in Ethernet frames, to which `allow` and `deny` do
        /// not apply.
        family: PtpFamily = PtpFamily::Ipv4;
        /// Where messages are stamped: by the kernel, or, in addition to that, by the network card by its own clock,
        /// which is never set or steered; that needs the right to read /dev/ptpN.
        stamps: PtpStamps = PtpStamps::Kernel;
        /// What may be done to the network devices for `stamps = "hardware"`: with `leave`, a card is used whose stamps
        /// are on; with `switch-on`, they are switched on where they are off, for all programs, and stay so. That needs
        /// the capability CAP_NET_ADMIN at the start.
        device_stamps: DeviceStamps = DeviceStamps::Leave;
        /// The domain.
        domain: u16 = 0, 0 => 255;
        /// The clock identity: 16 hexadecimal digits, or `auto`, made from the address of the first device and marked
        /// as made up here, so that it is not that of another program on this host.
        identity: OwnIdentity = OwnIdentity(None);
        /// Priority 1: the smallest wins, before all that clocks claim.
        priority_1: u16 = 128, 0 => 255;
        /// Priority 2: the smallest wins among clocks that claim the same.
        priority_2: u16 = 128, 0 => 255;
        /// Whether all clocks of the network are served by multicast, as long as no better master speaks. Otherwise
        /// only clients that negotiate are served, whatever other masters say.
        multicast: bool = true;
        /// The scope of the IPv6 group, ff0X::181: 14 is global, 5 the site, 2 the link.
        multicast_scope: u16 = 14, 1 => 15;
        /// How many unicast grants there may be at a time, three for each client; 0 refuses all. Who can forge an
        /// address can have messages sent to it: beside this, name the clients in `allow`.
        unicast_grants: u32 = 0, 0 => 4096;
        /// The longest unicast grant; the client asks again before it ends.
        grant_max: Span = Span::from_secs(300), Span::from_secs(10) => Span::from_secs(1000);
        /// The time between two Announce messages, and the shortest that a client may ask for.
        announce_interval: MessageInterval = MessageInterval(1);
        /// The same of Sync.
        sync_interval: MessageInterval = MessageInterval(0);
        /// The time between two Delay_Req that followers are asked to keep, and the shortest that a client may ask for.
        delay_interval: MessageInterval = MessageInterval(0);
        /// Announce intervals without a message after which a better master counts as gone.
        announce_timeout: u32 = 3, 2 => 255;
        /// The largest bound with which a synchronised clock claims class 6.
        locked_max: Bound = Bound::of(Span::from_micros(100)), Bound::ZERO => Bound::of(Span::from_secs(1));
        /// The largest bound with which a clock in holdover claims class 7.
        holdover_max: Bound = Bound::of(Span::from_millis(1)), Bound::ZERO => Bound::of(Span::from_secs(1));
        /// The class beyond both, and while there is no majority: `52`, or `187`, which yields to more clocks.
        degraded_class: DegradedClass = DegradedClass::Follower;
        /// Where the time comes from, as it is announced while the clock is synchronised: `auto` says PTP for
        /// a network card of this host, OTHER for another reference at this host, and NTP for a server.
        time_source: TimeSourceChoice = TimeSourceChoice::Auto;
    }
}

/// Network devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices(Vec<DeviceName>);

impl Devices {
    /// Their names.
    pub fn as_slice(&self) -> &[DeviceName] {
        &self.0
    }
}

impl FromStr for Devices {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        entries(text).map(str::parse).collect::<Result<Vec<_>, _>>().map(Devices)
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.0))
    }
}

impl OptionValue for Devices {
    const KIND: &'static str = "a list of network devices, such as [\"eth0\"]";
}

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtpFamily {
    /// UDP/IPv4.
    Ipv4,
    /// UDP/IPv6.
    Ipv6,
    /// Both.
    Both,
    /// Ethernet frames.
    Ethernet,
}

words!(PtpFamily { Ipv4: "ipv4", Ipv6: "ipv6", Both: "both", Ethernet: "ethernet" });

/// Who stamps messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtpStamps {
    /// The kernel.
    Kernel,
    /// The network card, and the kernel as a second best.
    Hardware,
}

words!(PtpStamps { Kernel: "kernel", Hardware: "hardware" });

/// The class of a clock whose bound is too large for a better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DegradedClass {
    /// It follows no other clock.
    Master,
    /// It may follow another clock.
    Follower,
}

words!(DegradedClass { Master: "52", Follower: "187" });

/// What is announced as the source of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSourceChoice {
    /// What the page says.
    Auto,
    /// NTP.
    Ntp,
    /// Satellites.
    Gnss,
    /// PTP.
    Ptp,
    /// Atoms.
    Atomic,
}

words!(TimeSourceChoice { Auto: "auto", Ntp: "ntp", Gnss: "gnss", Ptp: "ptp", Atomic: "atomic" });

/// The clock identity; `None` where it is made from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnIdentity(pub Option<ClockIdentity>);

impl FromStr for OwnIdentity {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        match text {
            "auto" => Ok(OwnIdentity(None)),
            digits => ClockIdentity::parse(digits).map(|identity| OwnIdentity(Some(identity))).ok_or(Unrecognised),
        }
    }
}

impl fmt::Display for OwnIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(identity) => identity.fmt(f),
            None => f.write_str("auto"),
        }
    }
}

impl OptionValue for OwnIdentity {
    const KIND: &'static str = "\"auto\" or a clock identity of 16 hexadecimal digits, such as \"b268b8.fffe.d92b00\"";
}

/// What a reload may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PtpPolicy {
    /// Priority 1 and priority 2.
    pub priorities: (u8, u8),
    /// Up to which bound a class is claimed.
    pub limits: GrandmasterLimits,
    /// Where the time comes from; `None` as the page says.
    pub time_source: Option<TimeSource>,
}

impl PtpConfig {
    /// Whether PTP is served.
    pub fn is_on(&self) -> bool {
        !self.interfaces.0.is_empty()
    }

    /// What is to be done for stamps of the network card, where those are wanted.
    pub(crate) fn hardware(&self) -> Option<DeviceSetup> {
        (self.stamps == PtpStamps::Hardware).then(|| self.device_stamps.into())
    }

    /// What is wrong with the keys, given all of them.
    pub fn contradiction(&self) -> Option<&'static str> {
        let devices = &self.interfaces.0;
        if devices.iter().enumerate().any(|(place, device)| devices[..place].contains(device)) {
            return Some("interfaces: a device is named twice");
        }
        let serves_none = !self.multicast && self.unicast_grants == 0;
        serves_none.then_some("multicast = false and unicast_grants = 0: no one is served")
    }

    /// The part that a reload may change.
    pub(crate) fn policy(&self) -> PtpPolicy {
        let octet = |number: u16| u8::try_from(number).unwrap_or(u8::MAX);
        let time_source = match self.time_source {
            TimeSourceChoice::Auto => None,
            TimeSourceChoice::Ntp => Some(TimeSource::NTP),
            TimeSourceChoice::Gnss => Some(TimeSource::GNSS),
            TimeSourceChoice::Ptp => Some(TimeSource::PTP),
            TimeSourceChoice::Atomic => Some(TimeSource::ATOMIC),
        };
        let limits = GrandmasterLimits {
            locked_max: self.locked_max,
            holdover_max: self.holdover_max,
            degraded: match self.degraded_class {
                DegradedClass::Master => ClockClass::DEGRADED,
                DegradedClass::Follower => ClockClass::DEGRADED_FOLLOWER,
            },
            time_source: time_source.unwrap_or(TimeSource::NTP),
        };
        PtpPolicy { priorities: (octet(self.priority_1), octet(self.priority_2)), limits, time_source }
    }

    /// What the protocol needs to know.
    pub(crate) fn grandmaster(&self) -> GrandmasterConfig {
        GrandmasterConfig {
            domain: u8::try_from(self.domain).unwrap_or(u8::MAX),
            priorities: self.policy().priorities,
            log_announce_interval: self.announce_interval.0,
            log_sync_interval: self.sync_interval.0,
            log_delay_interval: self.delay_interval.0,
            announce_timeout: self.announce_timeout,
            group: if self.multicast { GroupService::Multicast } else { GroupService::UnicastOnly },
            grants_max: self.unicast_grants as usize,
            grant_seconds_max: u32::try_from(self.grant_max.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX),
        }
    }

    /// The same, but for what a reload changes.
    pub(crate) fn is_same_service(&self, other: &Self) -> bool {
        let PtpConfig { priority_1, priority_2, locked_max, holdover_max, degraded_class, time_source, .. } =
            self.clone();
        let reloaded = PtpConfig {
            priority_1,
            priority_2,
            locked_max,
            holdover_max,
            degraded_class,
            time_source,
            ..other.clone()
        };
        *self == reloaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_changes_the_claim_and_nothing_else() {
        let old = PtpConfig::default();
        let with = |key: &str, value: &str| {
            let mut new = old.clone();
            new.set(key, value).unwrap();
            new
        };
        for (key, value) in
            [("priority_1", "7"), ("locked_max", "1 ms"), ("degraded_class", "52"), ("time_source", "gnss")]
        {
            let new = with(key, value);
            assert!(old.is_same_service(&new) && old.policy() != new.policy(), "{key}");
        }
        for (key, value) in [("domain", "7"), ("interfaces", "eth0, eth1"), ("stamps", "hardware")] {
            assert!(!old.is_same_service(&with(key, value)), "{key}");
        }
        assert!(with("multicast", "false").contradiction().is_some());
        assert!(with("interfaces", "eth0, eth0").contradiction().is_some());
        assert_eq!(with("interfaces", "eth0, eth1").contradiction(), None);
        for text in ["auto", "b268b8.fffe.d92b00"] {
            assert_eq!(text.parse::<OwnIdentity>().unwrap().to_string(), text);
        }
    }
}

//! Servers of PTP: which masters are heard, and what they are taken to claim.

use super::lookup::LookUpConfig;
use super::protection::ServerProtection;
use super::values::Unrecognised;
use super::{AddressFamily, Config, PoolConfig, ServerAddress, ServerConfig};
use ffclock_ptp::ClockIdentity;
use ffclock_service::{DeviceName, MessageInterval, Switchable, words};
use ffclock_source::SourceConfig;
use ffclock_units::{Bound, OptionDoc, OptionValue};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

/// The port of the messages whose moment counts (IEEE 1588-2019, annexes C and D).
pub(crate) const EVENT_PORT: u16 = 319;
/// The port of all others.
pub(crate) const GENERAL_PORT: u16 = 320;

ffclock_units::options! {
    /// A server of PTP in place of one of NTP.
    pub struct PtpConfig {
        /// How the server speaks. With `"ptp"` the server is the best master of a PTP domain, which is heard by
        /// multicast on `interface`, or one master that is asked by unicast at `address`; UDP ports 319 and 320 take
        /// the capability CAP_NET_BIND_SERVICE, and `transport = "ethernet"` takes CAP_NET_RAW.
        protocol: Protocol = Protocol::Ntp;
        /// The network device on which masters are heard by multicast: over IPv4, or over IPv6 with `family = "ipv6"`.
        interface: DeviceName = DeviceName::none();
        /// What carries the messages: `"udp"`, or `"ethernet"` for frames without IP (EtherType 0x88F7) on `interface`.
        transport: Transport = Transport::Udp;
        /// How the way of messages is measured: `"end-to-end"` by requests to the master; `"hybrid"` by requests to the
        /// master alone while everything else comes by multicast; `"peer"` by requests to the neighbour on the link,
        /// which must be the master itself and say when they arrived. The last two take `interface`.
        delay_mechanism: DelayChoice = DelayChoice::EndToEnd;
        /// The domain; masters of others are not heard.
        domain: u16 = 0, 0 => 255;
        /// The only grandmaster to follow, by its clock identity as linuxptp prints it, such as `"b268b8.fffe.d92b00"`.
        /// With `"any"` the best master of the domain is followed, which any host on the network can claim to be.
        grandmaster: GrandmasterChoice = GrandmasterChoice(None);
        /// The largest clock class of a grandmaster that may be followed: 6 is that of clocks with a primary reference,
        /// 7 of those that lost it lately, and 248 of those that never had one, as ptp4l by default. 255 is that of
        /// clocks that are never masters.
        clock_class_max: u16 = 254, 0 => 255;
        /// The most boundary clocks between a grandmaster that may be followed and this host.
        steps_removed_max: u16 = 254, 0 => 254;
        /// What the times of a master are that does not say that they are TAI, as ptp4l does with software stamps: with
        /// `"utc"` they are UTC, with `"refuse"` they are not used.
        arbitrary_timescale: TimescaleChoice = TimescaleChoice::Refuse;
        /// The largest error of a grandmaster that claims none (`clockAccuracy` 0xfe, which is ptp4l's default). The
        /// bound rests on it: with `"off"` the times of such a master are not used.
        accuracy_unclaimed: Switchable<Bound> = Switchable::Off;
        /// The time between two Announce messages that is asked for by unicast; by multicast the messages say it.
        announce_interval: MessageInterval = MessageInterval(1);
        /// The time between two Sync messages that is asked for by unicast; by multicast the master chooses it.
        sync_interval: MessageInterval = MessageInterval(0);
        /// The mean time between two of our requests, until the master says another one.
        delay_interval: MessageInterval = MessageInterval(0);
        /// The scope of the IPv6 group, ff0X::181: 14 is global, 5 the site, 2 the link.
        multicast_scope: u16 = 14, 1 => 15;
    }
}

/// How a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// NTP.
    Ntp,
    /// IEEE 1588.
    Ptp,
}

words!(Protocol { Ntp: "ntp", Ptp: "ptp" });

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// UDP over IPv4 or IPv6 (annexes C and D).
    Udp,
    /// Ethernet (annex E).
    Ethernet,
}

words!(Transport { Udp: "udp", Ethernet: "ethernet" });

/// How the way of messages is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayChoice {
    /// By Delay_Req, in the way in which all messages travel.
    EndToEnd,
    /// By Delay_Req to the master alone.
    Hybrid,
    /// By Pdelay_Req to the neighbour.
    Peer,
}

words!(DelayChoice { EndToEnd: "end-to-end", Hybrid: "hybrid", Peer: "peer" });

/// What an arbitrary timescale is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimescaleChoice {
    /// Not known.
    Refuse,
    /// UTC.
    Utc,
}

words!(TimescaleChoice { Refuse: "refuse", Utc: "utc" });

/// The only grandmaster to follow; `None` for the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrandmasterChoice(pub Option<ClockIdentity>);

impl FromStr for GrandmasterChoice {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        if text == "any" {
            return Ok(GrandmasterChoice(None));
        }
        ClockIdentity::parse(text).map(|identity| GrandmasterChoice(Some(identity))).ok_or(Unrecognised)
    }
}

impl fmt::Display for GrandmasterChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(identity) => identity.fmt(f),
            None => f.write_str("any"),
        }
    }
}

impl OptionValue for GrandmasterChoice {
    const KIND: &'static str = "\"any\" or a clock identity of 16 hexadecimal digits, such as \"b268b8.fffe.d92b00\"";
}

/// Where masters are heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PtpPlace {
    /// In this group, on the configured device.
    Group(IpAddr),
    /// In frames on the configured device.
    Frames,
    /// At this address alone.
    Master(IpAddr),
}

impl ServerConfig {
    /// Whether it is a server of PTP.
    pub(crate) fn is_ptp(&self) -> bool {
        self.ptp.protocol == Protocol::Ptp
    }

    /// The port of the packets whose moment counts.
    pub(crate) fn stamped_port(&self) -> u16 {
        if self.is_ptp() { EVENT_PORT } else { self.address.port }
    }

    /// Where a server of PTP is heard. A scope of an address is left out.
    pub(crate) fn ptp_place(&self) -> PtpPlace {
        if let Some(ip) = self.literal_master() {
            return PtpPlace::Master(ip);
        }
        if self.ptp.transport == Transport::Ethernet {
            return PtpPlace::Frames;
        }
        match self.look_up.family {
            AddressFamily::Any | AddressFamily::Ipv4 => PtpPlace::Group(Ipv4Addr::new(224, 0, 1, 129).into()),
            AddressFamily::Ipv6 => {
                let first = 0xff00 | self.ptp.multicast_scope;
                PtpPlace::Group(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0x181).into())
            }
        }
    }

    /// The name of a server of PTP: where it is heard, and its domain.
    pub(super) fn ptp_name(&self) -> String {
        let domain = self.ptp.domain;
        match self.ptp_place() {
            PtpPlace::Master(_) => format!("ptp:{}/{domain}", self.address.address),
            PtpPlace::Group(IpAddr::V4(_)) => format!("ptp:{}/{domain}", self.ptp.interface),
            PtpPlace::Group(IpAddr::V6(_)) => format!("ptp6:{}/{domain}", self.ptp.interface),
            PtpPlace::Frames => format!("ptp-ethernet:{}/{domain}", self.ptp.interface),
        }
    }

    /// The address and port of the one master; `None` where the device of a link-local address is not there.
    pub(crate) fn ptp_master(&self, port: u16) -> Option<SocketAddr> {
        let ip = self.literal_master()?;
        match (ip, self.address.address.as_str().split_once('%')) {
            (IpAddr::V6(ip), Some((_, device))) => {
                let number = device.parse().ok().or_else(|| ffclock_sys::device_index(device))?;
                Some(SocketAddrV6::new(ip, port, 0, number).into())
            }
            _ => Some(SocketAddr::new(ip, port)),
        }
    }

    fn literal_master(&self) -> Option<IpAddr> {
        let text = self.address.address.as_str();
        text.split('%').next().unwrap_or(text).parse().ok()
    }
}

/// What is wrong with a table's keys about PTP, given all of its keys.
pub(super) fn contradiction(server: &ServerConfig, keys: &[&str]) -> Option<String> {
    if !server.is_ptp() {
        let key = keys.iter().find(|key| **key != "protocol" && names(PtpConfig::describe).contains(key))?;
        return Some(format!("{key} is for PTP alone: a [[server]] with protocol = \"ptp\""));
    }
    if cfg!(not(target_os = "linux")) {
        return Some("protocol = \"ptp\": ffclockd speaks PTP on Linux alone".to_owned());
    }
    if let Some(key) = keys.iter().find(|key| is_of_ntp(key)) {
        return Some(format!("{key} is for NTP alone, and protocol = \"ptp\""));
    }
    let address = server.address.address.as_str();
    match (server.literal_master(), server.ptp.interface.as_str()) {
        (None, _) if !server.address.address.is_unset() => {
            Some(format!("address = \"{address}\": a master of PTP is named by its IP address"))
        }
        (None, "") => Some(
            "the server of PTP has neither interface, on which masters are heard by multicast, nor address, of a master \
             that is asked by unicast"
                .to_owned(),
        ),
        (Some(_), device) if !device.is_empty() => Some(
            "interface and address contradict each other: masters are heard by multicast on the one, or one is asked by \
             unicast at the other"
                .to_owned(),
        ),
        (Some(_), _) if server.ptp.transport == Transport::Ethernet => Some(
            "transport = \"ethernet\" and address contradict each other: over Ethernet masters are heard on an interface"
                .to_owned(),
        ),
        (Some(_), _) if server.ptp.delay_mechanism != DelayChoice::EndToEnd => Some(format!(
            "delay_mechanism = \"{}\" and address contradict each other: one master that is asked by unicast is asked \
             for everything, end to end",
            server.ptp.delay_mechanism
        )),
        (None, _) if server.ptp.transport == Transport::Ethernet && keys.contains(&"family") => {
            Some("family is about IP, and transport = \"ethernet\" has none".to_owned())
        }
        (Some(ip), _) if !server.look_up.family.admits(&SocketAddr::new(ip, EVENT_PORT)) => {
            Some(format!("family = \"{}\" contradicts address = \"{address}\"", server.look_up.family))
        }
        _ => None,
    }
}

/// Whether both would hear the same messages, or stand in each other's way: towards one address there is one pair of
/// sockets.
pub(super) fn is_twice(one: &ServerConfig, other: &ServerConfig) -> bool {
    let is_same = match (one.ptp_place(), other.ptp_place()) {
        (PtpPlace::Master(_), PtpPlace::Master(_)) => one.ptp_master(EVENT_PORT) == other.ptp_master(EVENT_PORT),
        (place, place_of_other) => {
            place == place_of_other
                && (one.ptp.interface.as_str(), one.ptp.domain) == (other.ptp.interface.as_str(), other.ptp.domain)
        }
    };
    one.is_ptp() && other.is_ptp() && is_same
}

/// Devices that are not there now.
pub(super) fn obstacles(config: &Config) -> Vec<String> {
    let devices = config.servers.iter().filter(|server| server.is_ptp()).map(|server| server.ptp.interface.as_str());
    let missing = devices.filter(|device| !device.is_empty() && ffclock_sys::device_index(device).is_none());
    missing.map(|device| format!("interface = \"{device}\": there is no such network device")).collect()
}

/// Shows every option of a struct.
type Describe = fn(&mut dyn FnMut(OptionDoc<'_>));

fn names(describe: Describe) -> Vec<&'static str> {
    let mut names = Vec::new();
    describe(&mut |doc| names.push(doc.name));
    names
}

/// Whether a key of `[[server]]` means nothing for a server of PTP.
fn is_of_ntp(key: &str) -> bool {
    let of_both = ["address", "family", "reply_timeout", "root_distance_max"];
    let of_ntp = [
        ServerAddress::describe,
        PoolConfig::describe,
        LookUpConfig::describe,
        ServerProtection::describe,
        SourceConfig::describe,
    ];
    !of_both.contains(&key) && of_ntp.into_iter().any(|describe| names(describe).contains(&key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> (usize, String) {
        let error = Config::parse(text).unwrap_err();
        let [problem] = &error.problems[..] else { panic!("{error}") };
        (problem.line, problem.message.clone())
    }

    fn servers(text: &str) -> Vec<ServerConfig> {
        Config::parse(text).unwrap().servers
    }

    const PTP: &str = "[[server]]\nprotocol = \"ptp\"\n";

    #[test]
    fn masters_are_heard_by_multicast_or_asked_by_unicast() {
        let group = |ip: &str| PtpPlace::Group(ip.parse().unwrap());
        for (keys, name, place) in [
            ("interface = \"eth0\"", "ptp:eth0/0", group("224.0.1.129")),
            ("interface = \"eth0\"\ndomain = 24\nfamily = \"ipv6\"", "ptp6:eth0/24", group("ff0e::181")),
            ("interface = \"e\"\nfamily = \"ipv6\"\nmulticast_scope = 2", "ptp6:e/0", group("ff02::181")),
            ("interface = \"e\"\ntransport = \"ethernet\"", "ptp-ethernet:e/0", PtpPlace::Frames),
            ("address = \"192.0.2.7\"", "ptp:192.0.2.7/0", PtpPlace::Master("192.0.2.7".parse().unwrap())),
            ("address = \"fe80::1%lo\"", "ptp:fe80::1%lo/0", PtpPlace::Master("fe80::1".parse().unwrap())),
        ] {
            let server = &servers(&format!("{PTP}{keys}\n"))[0];
            assert_eq!((server.name().as_str(), server.ptp_place()), (name, place));
        }
        let scoped = &servers(&format!("{PTP}address = \"fe80::1%lo\"\n"))[0];
        let number = ffclock_sys::device_index("lo").unwrap();
        assert_eq!(scoped.ptp_master(319), Some(format!("[fe80::1%{number}]:319").parse().unwrap()));
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_line() {
        let eth = format!("{PTP}interface = \"eth0\"\n");
        let master = format!("{PTP}address = \"192.0.2.7\"\n");
        for (text, line, said) in [
            (PTP.to_owned(), 1, "neither interface"),
            (format!("{eth}address = \"192.0.2.7\"\n"), 1, "interface and address contradict"),
            (format!("{PTP}address = \"gm.example\"\n"), 1, "named by its IP address"),
            (format!("{master}family = \"ipv6\"\n"), 1, "family = \"ipv6\" contradicts"),
            (format!("{eth}poll = \"4 s\"\n"), 1, "poll is for NTP alone"),
            (format!("{eth}nts = true\n"), 1, "nts is for NTP alone"),
            (format!("{eth}port = 319\n"), 1, "port is for NTP alone"),
            (format!("{PTP}pool = \"gm.example\"\n"), 1, "pool is for NTP alone"),
            ("[[server]]\naddress = \"a\"\ndomain = 1\n".to_owned(), 1, "domain is for PTP alone"),
            (format!("{eth}sync_interval = \"3 s\"\n"), 4, "a power of two of a second"),
            (format!("{eth}delay = \"p2p\"\n"), 4, "with PTP the key is delay_mechanism"),
            (format!("{eth}delay_mechanism = \"p2p\"\n"), 4, "\"peer\""),
            (format!("{master}delay_mechanism = \"peer\"\n"), 1, "delay_mechanism = \"peer\" and address contradict"),
            (format!("{master}delay_mechanism = \"hybrid\"\n"), 1, "\"hybrid\" and address contradict"),
            (format!("{master}transport = \"ethernet\"\n"), 1, "\"ethernet\" and address contradict"),
            (format!("{eth}transport = \"ethernet\"\nfamily = \"ipv4\"\n"), 1, "family is about IP"),
            (format!("{eth}grandmaster = \"b268b8\"\n"), 4, "clock identity"),
            (format!("{PTP}interface = \"a/b\"\naddress = \"192.0.2.7\"\n"), 3, "network device"),
            (format!("{eth}{eth}"), 4, "the server ptp:eth0/0 is configured twice"),
            (format!("{master}{master}domain = 1\n"), 4, "configured twice"),
        ] {
            let (at, message) = problem(&text);
            assert!(at == line && message.contains(said), "{text}: {at} {message}");
        }
        let frames = format!("{eth}transport = \"ethernet\"\n");
        let several = format!(
            "{eth}{eth}domain = 1\n{eth}family = \"ipv6\"\n{frames}{master}[[server]]\naddress = \"192.0.2.7\"\n"
        );
        assert_eq!(servers(&several).len(), 6);
        let checked = Config::check(&format!("{PTP}interface = \"nowhere9\"\n"), &[]).unwrap_err();
        assert!(checked.to_string().contains("there is no such network device"), "{checked}");
    }

    #[test]
    fn a_changed_option_makes_another_server() {
        let before = servers(&format!("{PTP}interface = \"eth0\"\n")).remove(0);
        let same = servers(&format!("{PTP}interface = \"eth0\"\ntrust = true\n")).remove(0);
        assert!(before.is_same_server(&same), "its vote is no option of the conversation");
        for (key, value) in [
            ("domain", "1"),
            ("clock_class_max", "7"),
            ("steps_removed_max", "0"),
            ("grandmaster", "\"b268b8.fffe.d92b00\""),
            ("arbitrary_timescale", "\"utc\""),
            ("accuracy_unclaimed", "\"1 ms\""),
            ("announce_interval", "\"4 s\""),
            ("sync_interval", "\"125 ms\""),
            ("delay_interval", "\"2 s\""),
            ("multicast_scope", "5"),
            ("transport", "\"ethernet\""),
            ("delay_mechanism", "\"peer\""),
            ("family", "\"ipv6\""),
            ("reply_timeout", "\"3 s\""),
            ("root_distance_max", "\"1 ms\""),
        ] {
            let after = servers(&format!("{PTP}interface = \"eth0\"\n{key} = {value}\n")).remove(0);
            assert!(!before.is_same_server(&after), "{key}");
        }
    }

    #[test]
    fn values_read_back() {
        for text in ["any", "b268b8.fffe.d92b00"] {
            assert_eq!(text.parse::<GrandmasterChoice>().unwrap().to_string(), text);
        }
        assert_eq!("B2-68-B8-FF-FE-D9-2B-00".parse(), "b268b8.fffe.d92b00".parse::<GrandmasterChoice>());
        for text in ["", "+268b8fffed92b00", "b268b8.fffe.d92b", "none"] {
            assert_eq!(text.parse::<GrandmasterChoice>(), Err(Unrecognised), "{text}");
        }
    }
}

//! The options of the server, each declared once.

use crate::access::{Network, Networks};
use ffclock_service::{FilePath, LoopbackAddress, Switchable, Unrecognised, words};
use ffclock_sys::places;
use ffclock_units::{Bound, OptionValue, Rate, Span};
use ffclock_xdp::XdpHook;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

ffclock_units::options! {
    /// Options of the server as a whole.
    pub struct ServeConfig {
        /// The page that ffclockd publishes.
        page: FilePath = FilePath::fixed(places::PAGE);
        /// The control socket of ffclockd, which is asked whom it follows: clients learn it from the reference
        /// identifier, and so notice a loop.
        daemon: Switchable<FilePath> = Switchable::On(FilePath::fixed(places::CONTROL));
        /// Where to listen: addresses with ports. Sockets that the service manager hands over take the place of all.
        listen: Addresses = Addresses::usual();
        /// How many threads answer on each address.
        threads: u32 = 1, 1 => 64;
        /// The bound that replies carry: `bound` holds as long as no believed server is false by less than the others
        /// can see; `strict` although the tolerated number of servers is false.
        bound: ServedBound = ServedBound::Bound;
        /// With a larger bound the server says that it is not synchronised.
        serve_bound_max: Bound = Bound::of(Span::from_secs(1)), Bound::ZERO => Bound::of(Span::from_secs(16));
        /// What to do with requests while the server is not synchronised: a `reply` that says so, or `silence`.
        unsynchronised: WhenUnsynchronised = WhenUnsynchronised::Reply;
        /// How a leap second is served: `off` announces it by the leap bits, as the standard says; `linear-24h` spreads
        /// it from noon to noon of UTC and announces none. Clients must not mix servers of both kinds.
        smear: Smear = Smear::Off;
        /// Whether clients may ask in the interleaved mode (RFC 9769): a reply then says exactly when the one before it
        /// left. It costs the others nothing.
        interleaved: bool = true;
        /// The networks that are served. Without any, all are.
        allow: Networks = Networks::none();
        /// The networks that are not served. Where several networks hold an address, the smallest decides.
        deny: Networks = Networks::none();
        /// The mean time between two requests of one address (of a /64 with IPv6) that are answered; 0 s: no limit.
        rate_interval: Span = Span::from_millis(10), Span::ZERO => Span::from_secs(60);
        /// How many requests of one address are answered at once after a pause.
        rate_burst: u32 = 100, 1 => 10_000;
        /// One of this number of requests beyond the limit is answered nevertheless, so that no one can have an address
        /// shut out by sending requests in its name.
        rate_leak: u32 = 4, 2 => 1000;
        /// Whether a few of the requests that get no answer get a refusal (RATE, DENY) instead.
        kiss: bool = true;
        /// The memory of the rate limit, for all threads together, in MiB: each has room for 131072 addresses.
        rate_memory: u32 = 8, 1 => 1024;
        /// The network device whose driver answers plain requests before the sockets see them (XDP): `off`, or its
        /// name. Such requests pass no packet filter. It takes CAP_NET_ADMIN and CAP_BPF at the start; without them
        /// the sockets answer alone.
        xdp: FastPathDevice = FastPathDevice::off();
        /// Where packets meet the program: in the driver (`native`), after it (`generic`, slower, on every device), or
        /// where it can be (`auto`).
        xdp_hook: FastPathHook = FastPathHook::Auto;
        /// How often the driver's time is renewed. It is served for four times as long at most.
        xdp_renewal: Span = Span::from_millis(50), Span::from_millis(5) => Span::from_millis(250);
        /// The most by which another program may change the rate of the kernel's clock between two renewals: the
        /// driver's replies state this error. adjtimex goes from -500 to 500 ppm; a program that slews by the tick
        /// (chronyd, by up to 83,333 ppm: its maxslewrate) breaks the claim until the next renewal.
        xdp_slew: Rate = Rate::from_ppm(1000.0), Rate::ZERO => Rate::from_ppm(100_000.0);
        /// How many addresses the driver's rate limit remembers; the least recently seen gives way.
        xdp_addresses: u32 = 65_536, 1024 => 4_194_304;
        /// The status socket.
        control: Switchable<FilePath> = Switchable::On(FilePath::fixed(places::SERVE_CONTROL));
        /// Where to serve metrics (OpenMetrics text over HTTP). Only loopback addresses are accepted.
        metrics: Switchable<LoopbackAddress> = Switchable::Off;
    }
}

/// Keys that hold lists.
pub(crate) const LISTS: [&str; 4] = ["listen", "allow", "deny", "interfaces"];

/// Which bound is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBound {
    /// The bound of the published time.
    Bound,
    /// The strict one.
    Strict,
}

words!(ServedBound { Bound: "bound", Strict: "strict" });

/// What requests get while the server is not synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenUnsynchronised {
    /// A reply that says so.
    Reply,
    /// No reply.
    Silence,
}

words!(WhenUnsynchronised { Reply: "reply", Silence: "silence" });

/// Where the driver's program is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPathHook {
    /// In the driver if it can, else after it.
    Auto,
    /// In the driver.
    Native,
    /// After it.
    Generic,
}

words!(FastPathHook { Auto: "auto", Native: "native", Generic: "generic" });

impl FastPathHook {
    /// In the words of the fast path.
    pub(crate) const fn wanted(self) -> XdpHook {
        match self {
            FastPathHook::Auto => XdpHook::Auto,
            FastPathHook::Native => XdpHook::Native,
            FastPathHook::Generic => XdpHook::Generic,
        }
    }
}

/// The device of the fast path, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastPathDevice(Option<String>);

impl FastPathDevice {
    /// The longest name that Linux gives a device.
    const LONGEST: usize = 15;

    /// No device.
    pub const fn off() -> Self {
        FastPathDevice(None)
    }

    /// Its name.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl FromStr for FastPathDevice {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        let is_name = !text.is_empty()
            && text.len() <= FastPathDevice::LONGEST
            && !text.chars().any(|one| one == '/' || one == ':' || one.is_whitespace() || one.is_control());
        match text {
            "off" => Ok(FastPathDevice::off()),
            name if is_name => Ok(FastPathDevice(Some(name.to_owned()))),
            _ => Err(Unrecognised),
        }
    }
}

impl fmt::Display for FastPathDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or("off"))
    }
}

impl OptionValue for FastPathDevice {
    const KIND: &'static str = "\"off\" or the name of a network device, such as \"eth0\"";
}

/// How a leap second is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smear {
    /// As the standard says.
    Off,
    /// Spread over 24 hours, from noon to noon.
    Linear24h,
}

words!(Smear { Off: "off", Linear24h: "linear-24h" });

/// Addresses with ports to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(Vec<SocketAddr>);

impl Addresses {
    /// Every address of the host, at the port of NTP.
    pub fn usual() -> Self {
        let any = |ip: std::net::IpAddr| SocketAddr::new(ip, 123);
        Addresses(vec![any(std::net::Ipv4Addr::UNSPECIFIED.into()), any(std::net::Ipv6Addr::UNSPECIFIED.into())])
    }

    /// These addresses.
    pub fn of(addresses: Vec<SocketAddr>) -> Self {
        Addresses(addresses)
    }

    /// The addresses, in the order in which they were written.
    pub fn as_slice(&self) -> &[SocketAddr] {
        &self.0
    }
}

/// The entries of a list: what commas separate.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

pub(crate) fn joined<T: fmt::Display>(list: &[T]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl FromStr for Addresses {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        let addresses: Result<Vec<SocketAddr>, _> = entries(text).map(str::parse).collect();
        addresses.ok().filter(|list| !list.is_empty()).map(Addresses).ok_or(Unrecognised)
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.0))
    }
}

impl OptionValue for Addresses {
    const KIND: &'static str = "a list of addresses with ports, such as [\"0.0.0.0:123\", \"[::]:123\"]";
}

impl FromStr for Networks {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        let networks: Result<Vec<Network>, _> = entries(text).map(str::parse).collect();
        networks.map(Networks::of)
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(self.as_slice()))
    }
}

impl OptionValue for Networks {
    const KIND: &'static str = "a list of networks, such as [\"192.0.2.0/24\", \"2001:db8::/32\"]";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_reads_back_as_itself() {
        for text in ["off", "eth0", "enp3s0f1", "wan.10"] {
            assert_eq!(text.parse::<FastPathDevice>().unwrap().to_string(), text);
        }
        for text in ["", "a/b", "a b", "eth0:1", "a-name-of-sixteen"] {
            assert_eq!(text.parse::<FastPathDevice>(), Err(Unrecognised), "{text}");
        }
    }

    #[test]
    fn lists_read_back_as_themselves() {
        let networks: Networks = "192.0.2.0/24, 2001:db8::/32".parse().unwrap();
        assert_eq!(networks.to_string(), "192.0.2.0/24, 2001:db8::/32");
        assert_eq!(Addresses::usual().to_string().parse(), Ok(Addresses::usual()));
        assert_eq!("".parse::<Addresses>(), Err(Unrecognised));
        assert_eq!("".parse::<Networks>(), Ok(Networks::none()));
        for text in ["192.0.2.0/33", "192.0.2", "x/8", "2001:db8::/129", "/8", "192.0.2.1/24"] {
            assert_eq!(text.parse::<Networks>(), Err(Unrecognised), "{text}");
        }
    }
}

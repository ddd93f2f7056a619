//! The options of the table `[nts]`.

use crate::options::Addresses;
use ffclock_service::{FilePath, Switchable, Unrecognised};
use ffclock_sys::places;
use ffclock_units::{OptionValue, Span};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The port of key establishment (RFC 8915, section 7.2).
const PORT: u16 = 4460;

ffclock_units::options! {
    /// Options of NTS: key establishment and cookies.
    pub struct NtsConfig {
        /// The certificate chain in PEM, the server's own certificate first. With it, NTS is served.
        certificate: Switchable<FilePath> = Switchable::Off;
        /// The private key in PEM. Others may have no right to it; its group may read it.
        key: Switchable<FilePath> = Switchable::Off;
        /// Where to establish keys: addresses with ports.
        listen: Addresses = usual_addresses();
        /// The host that clients are sent to for NTP, where it is another one, with its port where that is not 123: it
        /// needs the same `cookies` file.
        ntp_host: NtpHost = NtpHost::default();
        /// The secret that the keys of cookies are derived from. Made at the first start, for its owner alone; servers
        /// with one copy of it take one another's cookies.
        cookies: FilePath = FilePath::fixed(places::SERVE_COOKIES);
        /// How long one key seals cookies.
        rotation: Span = Span::from_secs(86_400), Span::from_secs(1) => Span::from_secs(31_536_000);
        /// How many keys before the newest still open cookies: a client that is silent for longer establishes keys
        /// again.
        old_keys: u32 = 7, 1 => 1000;
        /// How many threads establish keys.
        establishing_threads: u32 = 1, 1 => 64;
        /// The most connections of one of these threads at a time. One more takes the place of the oldest.
        connections: u32 = 1000, 1 => 20_000;
        /// The most connections of one address (of a /64 with IPv6) at a time, for one of these threads.
        connections_per_address: u32 = 16, 1 => 20_000;
        /// The time that one establishment may take.
        patience: Span = Span::from_secs(5), Span::from_millis(100) => Span::from_secs(60);
        /// The mean time between two establishments of one address, for one of these threads; 0 s: no limit.
        establish_interval: Span = Span::from_millis(100), Span::ZERO => Span::from_secs(3600);
        /// How many establishments one address may begin at once after a pause.
        establish_burst: u32 = 100, 1 => 10_000;
    }
}

fn usual_addresses() -> Addresses {
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    Addresses::of(any.map(|ip| (ip, PORT).into()).to_vec())
}

/// A host that clients are sent to, by its name or its address, with a port or without; `off` sends them to the one
/// that they asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NtpHost(Option<(String, Option<u16>)>);

impl NtpHost {
    /// Its name or address.
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|(name, _)| name.as_str())
    }

    /// The port that clients are sent to, where a server answers them on `own` by itself.
    pub(super) fn port(&self, own: Option<u16>) -> Option<u16> {
        match &self.0 {
            Some((_, port)) => *port,
            None => own,
        }
    }
}

impl FromStr for NtpHost {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        if text == "off" {
            return Ok(NtpHost(None));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return with_port(address.ip().to_string(), address.port());
        }
        let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
        let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        let is_fine = |text: &str| is_address(text) || (is_name(text) && !text.is_empty() && text.len() < 254);
        match text.rsplit_once(':') {
            Some((name, port)) if !is_address(text) && is_fine(name) => {
                with_port(name.to_owned(), port.parse().map_err(|_| Unrecognised)?)
            }
            _ => is_fine(text).then(|| NtpHost(Some((text.to_owned(), None)))).ok_or(Unrecognised),
        }
    }
}

fn with_port(name: String, port: u16) -> Result<NtpHost, Unrecognised> {
    if port == 0 { Err(Unrecognised) } else { Ok(NtpHost(Some((name, Some(port))))) }
}

impl fmt::Display for NtpHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("off"),
            Some((name, None)) => f.write_str(name),
            Some((name, Some(port))) if name.contains(':') => write!(f, "[{name}]:{port}"),
            Some((name, Some(port))) => write!(f, "{name}:{port}"),
        }
    }
}

impl OptionValue for NtpHost {
    const KIND: &'static str = "\"off\", or a name or an address, with a port or without";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address() {
        for text in ["ntp.example.org", "192.0.2.1", "2001:db8::1", "a", "::"] {
            let host: NtpHost = text.parse().unwrap();
            assert_eq!((host.name(), host.port(Some(1123)), host.to_string()), (Some(text), None, text.to_owned()));
        }
        for (text, name) in [
            ("ntp.example.org:4123", "ntp.example.org"),
            ("192.0.2.1:4123", "192.0.2.1"),
            ("[2001:db8::1]:4123", "2001:db8::1"),
        ] {
            let host: NtpHost = text.parse().unwrap();
            assert_eq!((host.name(), host.port(None), host.to_string()), (Some(name), Some(4123), text.to_owned()));
        }
        let long = "x".repeat(300);
        for text in ["", "a b", "\u{e4}.example", &long, ":123", "a:", "a:0", "a:b", "a:70000", "192.0.2.1:0", "a:1:2"]
        {
            assert!(text.parse::<NtpHost>().is_err(), "{text}");
        }
    }

    /// The port of another host is not known from our own.
    #[test]
    fn without_another_host_clients_are_sent_to_our_own_port() {
        let host = NtpHost::default();
        assert_eq!((host.name(), host.port(Some(1123)), host.port(None)), (None, Some(1123), None));
    }
}

//! Which addresses and names a server cannot have.

use super::ServerAddress;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest part of a name between two dots (RFC 1035, section 2.3.4).
const LONGEST_LABEL: usize = 63;

/// Why no server can be at this name or address, with the remedy; `None` where one may be.
pub(super) fn fault(text: &str) -> Option<String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return fault_of_address(address.to_canonical()).map(str::to_owned);
    }
    let (before_scope, has_scope) = match text.split_once('%') {
        Some((before, scope)) => (before, !scope.is_empty()),
        None => (text, false),
    };
    if let Some((host, port)) = text.split_once(':').filter(|(_, rest)| !rest.contains(':')) {
        let is_port = port.parse::<u16>().is_ok();
        let remedy = format!("the port has a key of its own: address = \"{host}\" and port = {port}");
        return Some(if is_port { remedy } else { "a name has no colon".to_owned() });
    }
    if text.contains(':') || text.contains('%') {
        let is_scoped = has_scope && before_scope.parse::<Ipv6Addr>().is_ok();
        return (!is_scoped).then(|| "it is no IPv6 address".to_owned());
    }
    fault_of_name(text).map(str::to_owned)
}

fn fault_of_address(address: IpAddr) -> Option<&'static str> {
    if address.is_unspecified() {
        return Some("it means no host in particular");
    }
    if address.is_multicast() {
        return Some("it is a multicast address: a server answers for itself alone");
    }
    match address {
        IpAddr::V4(Ipv4Addr::BROADCAST) => Some("it is the broadcast address: a server answers for itself alone"),
        IpAddr::V6(address) if address.is_unicast_link_local() => {
            Some("a link-local address needs its device: \"fe80::1%eth0\"")
        }
        _ => None,
    }
}

fn fault_of_name(name: &str) -> Option<&'static str> {
    let labels = || name.strip_suffix('.').unwrap_or(name).split('.');
    if labels().any(str::is_empty) {
        return Some("a name has no two dots in a row, and none at its beginning");
    }
    if labels().any(|label| label.len() > LONGEST_LABEL) {
        return Some("a part of a name has at most 63 characters");
    }
    // Shorter forms of addresses, such as 127.1, are for the resolver, which knows them.
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    let is_byte = |label: &str| label.parse::<u8>().is_ok();
    let cannot_be_address = labels().count() > 4 || (labels().count() == 4 && !labels().all(is_byte));
    (labels().all(is_number) && cannot_be_address).then_some("it is neither a name nor an IP address")
}

/// A server as the command line names it: `NAME`, `ADDRESS`, `NAME:PORT` or `[ADDRESS]:PORT`.
///
/// # Errors
/// No server can be there; the text says why.
pub fn server_of_command_line(text: &str) -> Result<ServerAddress, String> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.split_once(':').filter(|(_, rest)| !rest.contains(':')) {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let mut address = ServerAddress::default();
    address.set("address", host).map_err(|error| error.to_string())?;
    if let Some(port) = port {
        address.set("port", port).map_err(|error| format!("port {port}: {error}"))?;
    }
    fault(host).map_or(Ok(address), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_a_server_is_taken() {
        for text in [
            "ntp.example.org",
            "ntp.example.org.",
            "localhost",
            "0.pool.example.org",
            "under_score",
            "192.0.2.1",
            "127.0.0.1",
            "127.1",
            "::1",
            "2001:db8::7",
            "fe80::1%eth0",
        ] {
            assert_eq!(fault(text), None, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_a_server_is_refused_with_the_reason() {
        for (text, reason) in [
            ("127.0.0.1:12304", "address = \"127.0.0.1\" and port = 12304"),
            ("ntp.example.org:123", "address = \"ntp.example.org\" and port = 123"),
            ("ntp:abc", "no colon"),
            ("0.0.0.0", "no host in particular"),
            ("::", "no host in particular"),
            ("224.0.1.1", "multicast"),
            ("ff05::101", "multicast"),
            ("::ffff:224.0.1.1", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("fe80::1", "needs its device"),
            ("fe80::1%", "no IPv6 address"),
            ("2001:db8::7::1", "no IPv6 address"),
            ("300.1.2.3", "neither a name nor an IP address"),
            ("1.2.3.4.5", "neither a name nor an IP address"),
            ("ntp..example", "two dots"),
            (".example", "two dots"),
            (&"x".repeat(64), "63 characters"),
        ] {
            let found = fault(text).unwrap_or_default();
            assert!(found.contains(reason), "{text}: {found}");
        }
    }

    #[test]
    fn the_command_line_names_a_port_as_well() {
        let named = |text: &str| server_of_command_line(text).map(|server| server.to_string());
        for (text, name) in [
            ("time.example", "time.example"),
            ("time.example:1123", "time.example:1123"),
            ("192.0.2.1:123", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]:1123", "[2001:db8::1]:1123"),
        ] {
            assert_eq!(named(text), Ok(name.to_owned()));
        }
        for text in ["", "a b", "time.example:0", "time.example:99999", "224.0.1.1:123", "[::]:123"] {
            assert!(named(text).is_err(), "{text}");
        }
    }
}

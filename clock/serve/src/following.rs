//! Whom ffclockd follows, as clients are to know it: the reference identifier (RFC 5905, section 7.3).
//!
//! The page carries the stratum of the server that is followed, but not its address: its words for the server are what
//! that server says of itself, and a slot has no room for more. So the control socket of ffclockd is asked, by a thread
//! of its own. Nothing waits for the answer; without one, replies carry an identifier of this host that is no address.

use ffclock_control::protocol::{Answer, StatusReport};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long one step of the conversation may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// A longer answer is not from ffclockd.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Whom the daemon follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Following {
    /// The address of the selected server.
    pub selected: Option<IpAddr>,
    /// Those of all its servers.
    pub servers: Vec<IpAddr>,
}

impl Following {
    /// From the daemon's own words.
    pub fn of(report: &StatusReport) -> Self {
        let ip = |address: &str| address.parse::<SocketAddr>().map(|address| address.ip()).ok();
        Following {
            selected: report.selected.as_deref().and_then(ip),
            servers: report.sources.iter().filter_map(|source| ip(source.address.as_deref()?)).collect(),
        }
    }
}

/// Asks the daemon that listens on this socket.
///
/// # Errors
/// It does not answer, or not in its protocol.
pub fn ask(control: &Path) -> io::Result<Following> {
    let mut stream = UnixStream::connect(control)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"{\"command\":\"status\"}\n")?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    while !answer.ends_with(b"\n") {
        let count = stream.read(&mut part)?;
        answer.extend_from_slice(part.get(..count).unwrap_or_default());
        if count == 0 || answer.len() as u64 > LONGEST_ANSWER {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    match serde_json::from_slice(&answer)? {
        Answer::Status(report) => Ok(Following::of(&report)),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

/// The reference identifier of a server with this address: the address itself, or the first four octets of the MD5
/// digest of an IPv6 one.
pub fn reference_of(ip: IpAddr) -> u32 {
    match ip {
        IpAddr::V4(ip) => ip.to_bits(),
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => ip.to_bits(),
            None => md5_first_word(ip.octets()),
        },
    }
}

/// An identifier of this host that is no address of a server: of the class that is reserved (240.0.0.0/4).
pub fn reference_of_host(boot: &str) -> u32 {
    // FNV-1a, of 32 bits.
    let hash = boot.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // 254 is the smear's, and 255 the broadcast's.
    0xf000_0000 | (hash % 0x0e00_0000)
}

/// The first four octets of the MD5 digest (RFC 1321) of 16 octets, which make one block. It names, and protects
/// nothing.
fn md5_first_word(octets: [u8; 16]) -> u32 {
    const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let mut block = [0_u32; 16];
    for (word, bytes) in block.iter_mut().zip(octets.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    (block[4], block[14]) = (0x80, 128);
    let start = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let [mut a, mut b, mut c, mut d] = start;
    for step in 0..64_usize {
        let (mixed, place) = match step / 16 {
            0 => (b & c | !b & d, step),
            1 => (d & b | !d & c, 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        let constant = ((step as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32;
        let sum = a.wrapping_add(mixed).wrapping_add(constant).wrapping_add(block[place % 16]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4])));
    }
    start[0].wrapping_add(a).swap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1321, appendix A.5, has no text of 16 octets; these are md5sum's.
    #[test]
    fn ipv6_servers_are_named_by_a_digest() {
        assert_eq!(md5_first_word([0; 16]), 0x4ae7_1336);
        assert_eq!(md5_first_word(*b"abcdefghijklmnop"), 0x1d64_dce2);
        assert_eq!(reference_of("192.0.2.1".parse().unwrap()), 0xc000_0201);
        assert_eq!(reference_of("::ffff:192.0.2.1".parse().unwrap()), 0xc000_0201);
    }

    #[test]
    fn a_host_is_no_address() {
        for boot in ["", "a", "9d7a1c4e-4a10-4a2c-9c58-0f6d4e0b1c22"] {
            let reference = reference_of_host(boot);
            assert!((0xf000_0000..0xfe00_0000).contains(&reference), "{reference:x}");
        }
    }
}

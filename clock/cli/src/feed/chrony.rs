//! chronyd's SOCK reference clock (chrony.conf(5), `refclock SOCK`): one datagram for each sample, with the system's
//! time and how far it is behind. A socket that is full or gone costs the sample and nothing else.

use super::{Feed, FeedSample};
use crate::failure::Failure;
use ffclock::Clock;
use ffclock_units::Bound;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// The mark at the end of a sample (chrony, refclock_sock.c).
const MAGIC: i32 = 0x534f_434b;
/// A datagram of chronyd on a 64-bit system.
const SAMPLE_BYTES: usize = 40;

/// The way to a chronyd.
pub(super) struct SockFeed {
    socket: UnixDatagram,
    path: PathBuf,
    limit: Bound,
}

impl SockFeed {
    pub(super) fn new(path: &Path, limit: Bound) -> Result<Self, Failure> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(SockFeed { socket, path: path.to_owned(), limit })
    }
}

impl Feed for SockFeed {
    fn give(&mut self, _: &Clock, sample: &FeedSample) -> Result<(), Failure> {
        sample.within(self.limit)?;
        let sent = self.socket.send_to(&datagram(sample), &self.path);
        sent.map(|_| ()).map_err(|error| Failure::from(format!("{}: {}", self.path.display(), explained(&error))))
    }
}

/// `struct sock_sample` of chrony: the system's time (seconds, microseconds), the offset of the true time from it in s,
/// no pulse, the leap second that ends this day, padding, the mark. The offset is that of the same moment, so the
/// nanoseconds that are cut off the system's time are not missing in it.
fn datagram(sample: &FeedSample) -> [u8; SAMPLE_BYTES] {
    let mut bytes = [0; SAMPLE_BYTES];
    bytes[..8].copy_from_slice(&sample.system.as_secs().to_ne_bytes());
    bytes[8..16].copy_from_slice(&u64::from(sample.system.subsec_micros()).to_ne_bytes());
    bytes[16..24].copy_from_slice(&sample.behind.as_seconds().to_ne_bytes());
    bytes[28..32].copy_from_slice(&sample.leap_indicator().to_ne_bytes());
    bytes[36..].copy_from_slice(&MAGIC.to_ne_bytes());
    bytes
}

fn explained(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            "nothing listens there: is chronyd running, with this `refclock SOCK`?".to_owned()
        }
        io::ErrorKind::WouldBlock => "chronyd takes no samples: it is stopped or stuck".to_owned(),
        io::ErrorKind::PermissionDenied => "this user may not send there: run as the user of chronyd".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;
    use ffclock_units::{LeapStep, Span};
    use std::time::Duration;

    #[test]
    fn a_sample_is_laid_out_as_chrony_has_it() {
        let bytes = datagram(&example(Duration::new(7, 123_456_789), Span::from_millis(-2)));
        assert_eq!(bytes[..8], 7_u64.to_ne_bytes());
        assert_eq!(bytes[8..16], 123_456_u64.to_ne_bytes());
        let offset = f64::from_ne_bytes(bytes[16..24].try_into().unwrap());
        assert!((offset + 0.002).abs() < 1e-15, "{offset}");
        assert_eq!(bytes[36..], 0x534f_434b_i32.to_ne_bytes());
        assert_eq!(bytes[24..36], [0; 12]);
        let mut before = example(Duration::new(7, 0), Span::ZERO);
        let at = before.leap.0.whole_seconds() + 10;
        before.leap.1 = LeapStep { before: 37, after: 36, at };
        assert_eq!(datagram(&before)[28..32], 2_i32.to_ne_bytes(), "chrony's LEAP_DeleteSecond");
    }
}

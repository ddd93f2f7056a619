//! `ffclock feed`: gives the published time to another clock daemon on this host.
//!
//! It is a reader of the page like any other: nothing flows back into the clock, whatever the other daemon does with
//! the system clock. Samples go to chronyd's SOCK reference clock (chrony.conf(5), `refclock SOCK`): one datagram each,
//! with the system's time and how far it is behind. A socket that is full or gone costs the sample and nothing else.

use crate::failure::Failure;
use crate::{Global, page, std_duration, waiting_time};
use ffclock_client::Clock;
use ffclock_units::{Bound, Moment, Span, Status, Utc};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

/// Options of `ffclock feed`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock feed --chrony /run/chrony/ffclock.sock

with `refclock SOCK /run/chrony/ffclock.sock refid FFCK poll 0` in chrony.conf. chronyd makes the
socket when it starts. Samples are left out while the clock is unsynchronised or its bound is above
--bound; chronyd then falls back on its other sources.

Exit code: 1 when no sample was taken; without --count it goes on until it is ended.")]
pub(crate) struct Args {
    /// The socket of chronyd's SOCK reference clock
    #[arg(long, value_name = "SOCKET")]
    chrony: PathBuf,
    /// Time between two samples
    #[arg(long, value_name = "SPAN", default_value = "1 s", value_parser = waiting_time)]
    interval: Span,
    /// No sample while the bound is above this
    #[arg(long, value_name = "SPAN", default_value = "100 ms")]
    bound: Bound,
    /// End after this number of samples
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
}

/// The mark at the end of a sample (chrony, refclock_sock.c).
const MAGIC: i32 = 0x534f_434b;
/// A datagram of chronyd on a 64-bit system.
const SAMPLE_BYTES: usize = 40;
/// How often the two clocks are compared for one sample; the closest comparison counts.
const TRIES: usize = 5;

/// The system clock against the published one, at one moment.
struct FeedSample {
    /// What the system clock showed, since 1970.
    system: Duration,
    /// The published time minus it.
    behind: Span,
}

/// Sends samples until it is ended.
pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    let (mut sent, mut trouble) = (0_u64, None);
    let mut number = 0;
    loop {
        number += 1;
        // Opened again each time: the daemon may restart, and remake its page.
        let outcome = page::open(global)
            .and_then(|clock| sample(&clock, args.bound))
            .and_then(|sample| give(&socket, &args.chrony, &sample));
        sent += u64::from(outcome.is_ok());
        let message = outcome.err().map(|failure| failure.message);
        // Only what changes is said.
        if let Some(message) = message.as_ref().filter(|message| trouble.as_ref() != Some(*message)) {
            eprintln!("ffclock: no sample: {message}");
        }
        trouble = message;
        if args.count.is_some_and(|count| number >= count) {
            let nothing = || Failure::from(trouble.clone().unwrap_or_default());
            return if sent > 0 { Ok(()) } else { Err(Failure { message: String::new(), ..nothing() }) };
        }
        thread::sleep(std_duration(args.interval));
    }
}

/// Compares the clocks: the published time before and after a look at the system clock, as close together as they come.
fn sample(clock: &Clock, limit: Bound) -> Result<FeedSample, Failure> {
    let (width, sample) = (0..TRIES)
        .map(|_| {
            let before = clock.stamp();
            let system = SystemTime::now();
            let after = clock.stamp();
            let (before, after) = (page::read_at(clock, before)?.reading, page::read_at(clock, after)?.reading);
            if before.status == Status::Unsynchronised {
                return Err(Failure::unsynchronised("the clock is unsynchronised"));
            }
            if before.bound > limit {
                return Err(Failure::from(format!("the bound is above {limit}")));
            }
            let system =
                system.duration_since(SystemTime::UNIX_EPOCH).map_err(|error| Failure::from(error.to_string()))?;
            let published = before.time.midpoint(after.time);
            let behind = published - Moment::<Utc>::from_origin(Span::from_nanos(system.as_nanos() as i128));
            Ok((after.time - before.time, FeedSample { system, behind }))
        })
        .collect::<Result<Vec<_>, Failure>>()?
        .into_iter()
        .min_by_key(|(width, _)| *width)
        .ok_or("no comparison was made")?;
    debug_assert!(!width.is_negative(), "a counter does not run backwards");
    Ok(sample)
}

impl FeedSample {
    /// `struct sock_sample` of chrony: the system's time (seconds, microseconds), the offset of the true time from it
    /// in s, no pulse, no leap second (chronyd knows them from its table), padding, the mark. The offset is that of the
    /// same moment, so the nanoseconds that are cut off the system's time are not missing in it.
    fn datagram(&self) -> [u8; SAMPLE_BYTES] {
        let mut bytes = [0; SAMPLE_BYTES];
        let offset = self.behind.as_seconds();
        bytes[..8].copy_from_slice(&self.system.as_secs().to_ne_bytes());
        bytes[8..16].copy_from_slice(&u64::from(self.system.subsec_micros()).to_ne_bytes());
        bytes[16..24].copy_from_slice(&offset.to_ne_bytes());
        bytes[36..].copy_from_slice(&MAGIC.to_ne_bytes());
        bytes
    }
}

fn give(socket: &UnixDatagram, path: &Path, sample: &FeedSample) -> Result<(), Failure> {
    let sent = socket.send_to(&sample.datagram(), path);
    sent.map(|_| ()).map_err(|error| Failure::from(format!("{}: {}", path.display(), explained(&error))))
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
    use super::*;

    #[test]
    fn a_sample_is_laid_out_as_chrony_has_it() {
        let sample = FeedSample { system: Duration::new(7, 123_456_789), behind: Span::from_millis(-2) };
        let bytes = sample.datagram();
        assert_eq!(bytes[..8], 7_u64.to_ne_bytes());
        assert_eq!(bytes[8..16], 123_456_u64.to_ne_bytes());
        let offset = f64::from_ne_bytes(bytes[16..24].try_into().unwrap());
        assert!((offset + 0.002).abs() < 1e-15, "{offset}");
        assert_eq!(bytes[36..], 0x534f_434b_i32.to_ne_bytes());
        assert_eq!(bytes[24..36], [0; 12]);
    }
}

//! `ffclock theta load`: keeps the network, the processors or the disk busy while something is measured.

use crate::{Failure, waiting_time};
use ffclock_theta::live::Level;
use ffclock_units::Span;
use std::fs::File;
use std::hint::spin_loop;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock theta load processor --level 50 --for \"10 s\"
  $ ffclock theta load timer --level jumps:10..90 --for \"30 s\"
  $ ffclock theta load network --level ramp:0..90 --to 10.78.0.3:9 --for \"10 s\"

`ffclock theta run --netns N --load timer=50` starts these beside each process.")]
pub(super) struct Args {
    /// What to load
    #[arg(value_enum)]
    pub(super) kind: Kind,
    /// How much, in per cent: 30, ramp:0..90 or jumps:10..90
    #[arg(long)]
    pub(super) level: Level,
    /// How long
    #[arg(long = "for", value_name = "TIME", value_parser = waiting_time)]
    pub(super) length: Span,
    /// Network: to whom in turn; nobody need listen there
    #[arg(long, value_name = "ADDRESS:PORT")]
    to: Vec<SocketAddr>,
    /// Network: what 100 % are, in Mbit/s
    #[arg(long, value_name = "MBITS", default_value_t = 100.0)]
    rate: f64,
    /// Disk: a file that is written over and over, and removed at the end
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// What can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// Packets over the network
    Network,
    /// A processor that works for milliseconds at a time
    Processor,
    /// A processor that works a little, thousands of times a second, as interrupts of a timer do
    Timer,
    /// Writing to a disk
    Disk,
}

/// A processor's work and rest.
const SLICE: Duration = Duration::from_millis(10);
/// A timer's: 5000 a second.
const TICK: Duration = Duration::from_micros(200);
/// Packets are sent a millisecond's worth at a time.
const BURST: Duration = Duration::from_millis(1);
/// Bytes of a packet with all its headers.
const PACKET_BYTES: f64 = 1442.0;
static PAYLOAD: [u8; 1400] = [0; 1400];
static BLOCK: [u8; 65_536] = [0; 65_536];

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let length = crate::std_duration(args.length);
    match args.kind {
        Kind::Processor => work_in(args.level, SLICE, length),
        Kind::Timer => work_in(args.level, TICK, length),
        Kind::Network => send(args, length)?,
        Kind::Disk => write(args, length)?,
    }
    Ok(())
}

/// Works for the level's share of each slice and sleeps for the rest.
fn work_in(level: Level, slice: Duration, length: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < length {
        let slice_begun = Instant::now();
        let work = slice.mul_f64(level.share(begun.elapsed().as_secs_f64()));
        while slice_begun.elapsed() < work {
            spin_loop();
        }
        std::thread::sleep(slice.saturating_sub(slice_begun.elapsed()));
    }
}

fn send(args: &Args, length: Duration) -> Result<(), Failure> {
    if args.to.is_empty() || !(0.001..=1e5).contains(&args.rate) {
        return Err(Failure::usage("a load on the network needs --to, and --rate between 0.001 and 100000"));
    }
    let socket = UdpSocket::bind(if args.to[0].is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    let begun = Instant::now();
    let (mut owed, mut before, mut number) = (0.0, 0.0, 0);
    while begun.elapsed() < length {
        let now = begun.elapsed().as_secs_f64();
        owed += args.level.share(now) * args.rate * 1e6 / 8.0 / PACKET_BYTES * (now - before);
        before = now;
        while owed >= 1.0 {
            // Refused or dropped: it was on the way, which is all it is for.
            let _ = socket.send_to(&PAYLOAD, args.to[number % args.to.len()]);
            (owed, number) = (owed - 1.0, number + 1);
        }
        std::thread::sleep(BURST);
    }
    Ok(())
}

fn write(args: &Args, length: Duration) -> Result<(), Failure> {
    let path = args.file.as_ref().ok_or_else(|| Failure::usage("a load on the disk needs --file"))?;
    let complaint = |error: std::io::Error| Failure::from(format!("{}: {error}", path.display()));
    let begun = Instant::now();
    let mut outcome = Ok(());
    while begun.elapsed() < length && outcome.is_ok() {
        let block_begun = Instant::now();
        outcome = File::create(path).and_then(|mut file| file.write_all(&BLOCK).and_then(|()| file.sync_data()));
        let (took, share) = (block_begun.elapsed(), args.level.share(begun.elapsed().as_secs_f64()));
        // Without load it looks again at the next slice.
        let rest = if share > 0.0 { took.mul_f64((1.0 - share) / share) } else { SLICE };
        std::thread::sleep(rest.min(length.saturating_sub(begun.elapsed())));
    }
    let _ = std::fs::remove_file(path);
    outcome.map_err(complaint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(kind: Kind) -> Args {
        Args {
            kind,
            level: Level::Constant(0.5),
            length: Span::from_nanos(60_000_000),
            to: vec![],
            rate: 100.0,
            file: None,
        }
    }

    #[test]
    fn every_kind_ends_in_time() {
        let place = std::env::temp_dir().join(format!("ffclock-load-{}", std::process::id()));
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = vec![listener.local_addr().unwrap()];
        for kind in [Kind::Processor, Kind::Timer] {
            assert_eq!(run(&args(kind)), Ok(()));
        }
        assert_eq!(run(&Args { to, ..args(Kind::Network) }), Ok(()));
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.recv(&mut [0; 2000]).unwrap(), PAYLOAD.len());
        assert_eq!(run(&Args { file: Some(place.clone()), ..args(Kind::Disk) }), Ok(()));
        assert!(!place.exists());
    }

    #[test]
    fn what_is_missing_is_told() {
        assert!(run(&args(Kind::Network)).unwrap_err().message.contains("--to"));
        assert!(run(&args(Kind::Disk)).unwrap_err().message.contains("--file"));
        let nowhere = Args { file: Some("/no/such/directory/file".into()), ..args(Kind::Disk) };
        assert!(run(&nowhere).unwrap_err().message.contains("/no/such/directory"));
    }
}

//! `ffclock-lab theta load`: keeps the network, the processors or the disk busy during a measurement.

mod interrupts;
mod softirqs;

use crate::{Failure, GlobalOptions, waiting_time};
use ffclock_sim::Random;
use ffclock_theta_live::{LoadLevel, raise_priority};
use ffclock_units::Span;
use serde::Serialize;
use std::fs::File;
use std::hint::spin_loop;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(super) use softirqs::possible as softirqs_possible;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta load processor --level 50 --for \"10 s\"
  $ ffclock-lab theta load timer --level jumps:10..90 --for \"30 s\"
  $ ffclock-lab theta load interrupt --level 20 --for \"10 s\"
  $ ffclock-lab theta load softirq --level jumps:10..90 --for \"10 s\"
  $ ffclock-lab theta load network --level ramp:0..90 --to 10.78.0.3:9 --for \"10 s\"
  $ ffclock-lab theta load traffic --level 90 --to 10.78.0.3:9 --for \"10 s\"
  $ ffclock-lab theta load interrupt --level 10 --for \"10 s\" --json | jq .busy_percent

`ffclock-lab theta run --netns N --load timer=50` starts these beside each process.")]
pub(super) struct Args {
    /// What to load
    #[arg(value_enum)]
    pub(super) kind: LoadSource,
    /// The level in per cent: 30, ramp:0..90 or jumps:10..90
    #[arg(long)]
    pub(super) level: LoadLevel,
    /// The length of the load
    #[arg(long = "for", value_name = "TIME", value_parser = waiting_time)]
    pub(super) length: Span,
    /// A real-time priority (first in, first out), 1 to 98; reported where it is not permitted
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: Option<u8>,
    /// Network and traffic: where to send, in turn; nothing needs to listen there
    #[arg(long, value_name = "ADDRESS:PORT")]
    to: Vec<SocketAddr>,
    /// Network and traffic: the rate of 100 %, in Mbit/s
    #[arg(long, value_name = "MBITS", default_value_t = 100.0)]
    rate: f64,
    /// Disk: a file that is written over and over, and removed at the end
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// What can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LoadSource {
    /// Packets over the network, at even intervals
    Network,
    /// Packets over the network, at random intervals (a Poisson process), as from many independent programs
    Traffic,
    /// A processor that works for milliseconds at a time
    Processor,
    /// A processor that works a little, thousands of times a second, as interrupts of a timer do
    Timer,
    /// Interrupts of timers, which come before every program; reports what they took, less than a high level asks for
    Interrupt,
    /// Every processor, by soft interrupts that burn the whole share before every program; up to 95 %, by root, where
    /// this program was built with eBPF
    Softirq,
    /// Writing to a disk
    Disk,
}

impl LoadSource {
    /// Whether it sends packets to the other hosts.
    pub(super) fn sends(self) -> bool {
        matches!(self, LoadSource::Network | LoadSource::Traffic)
    }
}

/// A processor's work and rest.
const SLICE: Duration = Duration::from_millis(10);
/// A timer's: 5000 a second.
const TICK: Duration = Duration::from_micros(200);
/// A load on the network sees a new level by then, however few packets it sends.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Bytes of a packet with all its headers.
const PACKET_BYTES: f64 = 1442.0;
static PAYLOAD: [u8; 1400] = [0; 1400];
static BLOCK: [u8; 65_536] = [0; 65_536];

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let length = crate::std_duration(args.length);
    let priority = raise_priority(args.priority);
    if args.priority.is_some() && !priority.starts_with("fifo") {
        let _ = writeln!(std::io::stderr(), "ffclock-lab: this load runs with a priority that is {priority}");
    }
    let done = match args.kind {
        LoadSource::Processor => work_in(args.level, SLICE, length),
        LoadSource::Timer => work_in(args.level, TICK, length),
        LoadSource::Interrupt => interrupts::interrupt(args.level, length)?,
        LoadSource::Softirq => softirqs::burn(args.level, length)?,
        LoadSource::Network | LoadSource::Traffic => send(args, length)?,
        LoadSource::Disk => write(args, length)?,
    };
    global.answer(&done, || line(&done, args.level))
}

/// What a load has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Done {
    /// Share of the time; for the network share of the rate. `None` where it could not be measured.
    busy_percent: Option<f64>,
    packets: u64,
    blocks: u64,
    /// Timers that were armed, and callbacks of soft interrupts.
    timers: u64,
}

fn line(done: &Done, level: LoadLevel) -> String {
    let Done { busy_percent, packets, blocks, timers } = done;
    let busy = busy_percent.map_or_else(
        || format!("asked for {level} %, and how busy it was could not be measured"),
        |percent| format!("busy {percent:.1} % of the time"),
    );
    let timers = if *timers > 0 { format!(", {timers} timers expired") } else { String::new() };
    format!("{busy}; {packets} packets sent, {blocks} blocks written{timers}\n")
}

/// Works for the level's share of each slice and sleeps to its end. Slices lie on a grid, so that jumps fall on their
/// edges; a slice that began late gets the same amount of work.
fn work_in(level: LoadLevel, slice: Duration, length: Duration) -> Done {
    let begun = Instant::now();
    let mut busy = Duration::ZERO;
    while begun.elapsed() < length {
        let worked_from = begun.elapsed();
        let number = (worked_from.as_secs_f64() / slice.as_secs_f64()) as u32;
        let slice_begun = slice * number;
        // In the middle of the slice: its edges belong to two.
        let work = slice.mul_f64(level.share((slice_begun + slice / 2).as_secs_f64()));
        while begun.elapsed() < worked_from + work {
            spin_loop();
        }
        busy += work;
        std::thread::sleep((slice_begun + slice).saturating_sub(begun.elapsed()));
    }
    Done { busy_percent: Some(100.0 * busy.as_secs_f64() / begun.elapsed().as_secs_f64()), ..Done::default() }
}

fn send(args: &Args, length: Duration) -> Result<Done, Failure> {
    if args.to.is_empty() || !(0.001..=1e5).contains(&args.rate) {
        return Err(Failure::usage("a load on the network needs --to, and --rate between 0.001 and 100000"));
    }
    let socket = UdpSocket::bind(if args.to[0].is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    let mut gaps = Gaps::of(args.kind)?;
    let begun = Instant::now();
    let (mut missing, mut before, mut number) = (gaps.next(), 0.0, 0);
    while begun.elapsed() < length {
        let now = begun.elapsed().as_secs_f64();
        let per_second = args.level.share(now) * args.rate * 1e6 / 8.0 / PACKET_BYTES;
        missing -= per_second * (now - before);
        before = now;
        while missing <= 0.0 {
            // Refused or dropped: it was on the way, which is all it is for.
            let _ = socket.send_to(&PAYLOAD, args.to[number % args.to.len()]);
            (missing, number) = (missing + gaps.next(), number + 1);
        }
        std::thread::sleep(pause(missing, per_second));
    }
    let of_rate = number as f64 * PACKET_BYTES * 8.0 / (args.rate * 1e6 * begun.elapsed().as_secs_f64());
    Ok(Done { busy_percent: Some(100.0 * of_rate), packets: number as u64, ..Done::default() })
}

/// The intervals between packets, over their mean.
enum Gaps {
    Even,
    /// Those of a Poisson process: packets wait for one another, as they hardly do at even intervals.
    Exponential(Random),
}

impl Gaps {
    fn of(kind: LoadSource) -> Result<Self, Failure> {
        if kind == LoadSource::Traffic {
            return Ok(Gaps::Exponential(Random::new(ffclock_sys::random_nonce()?)));
        }
        Ok(Gaps::Even)
    }

    fn next(&mut self) -> f64 {
        match self {
            Gaps::Even => 1.0,
            Gaps::Exponential(random) => random.exponential(),
        }
    }
}

/// Until the next packet is due, of which `missing` has still to pass, or a new level is to be seen: packets go one by
/// one, not in bursts.
fn pause(missing: f64, per_second: f64) -> Duration {
    Duration::try_from_secs_f64(missing / per_second).unwrap_or(LOOK_EVERY).min(LOOK_EVERY)
}

fn write(args: &Args, length: Duration) -> Result<Done, Failure> {
    let path = args.file.as_ref().ok_or_else(|| Failure::usage("a load on the disk needs --file"))?;
    let complaint = |error: std::io::Error| Failure::from(format!("{}: {error}", path.display()));
    let begun = Instant::now();
    let (mut outcome, mut busy, mut blocks) = (Ok(()), Duration::ZERO, 0);
    while begun.elapsed() < length && outcome.is_ok() {
        let block_begun = Instant::now();
        outcome = File::create(path).and_then(|mut file| file.write_all(&BLOCK).and_then(|()| file.sync_data()));
        let (took, share) = (block_begun.elapsed(), args.level.share(begun.elapsed().as_secs_f64()));
        (busy, blocks) = (busy + took, blocks + 1);
        // Without load it looks again at the next slice.
        let rest = if share > 0.0 { took.mul_f64((1.0 - share) / share) } else { SLICE };
        std::thread::sleep(rest.min(length.saturating_sub(begun.elapsed())));
    }
    let _ = std::fs::remove_file(path);
    outcome.map_err(complaint)?;
    Ok(Done {
        busy_percent: Some(100.0 * busy.as_secs_f64() / begun.elapsed().as_secs_f64()),
        blocks,
        ..Done::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(kind: LoadSource) -> Args {
        Args {
            kind,
            level: LoadLevel::Constant(0.5),
            length: Span::from_nanos(60_000_000),
            priority: None,
            to: vec![],
            rate: 100.0,
            file: None,
        }
    }

    fn run(args: &Args) -> Result<(), Failure> {
        super::run(&GlobalOptions { page: None, json: true }, args)
    }

    /// Each course with each load on the processor. A busy machine may leave less than was asked for, and never more
    /// than a slice beyond.
    #[test]
    fn processors_work_as_much_as_they_are_reported() {
        let length = Duration::from_millis(400);
        for slice in [SLICE, TICK] {
            for (level, percent) in [("30", 30.0), ("jumps:10..90", 50.0), ("ramp:0..100", 20.0)] {
                let level: LoadLevel = level.replace("100", "99").parse().unwrap();
                let done = work_in(level, slice, length);
                assert!(
                    (percent * 0.2..percent + 10.0).contains(&done.busy_percent.unwrap()),
                    "{level:?} {slice:?}: {done:?}"
                );
            }
        }
    }

    /// 20 % of 100 Mbit/s are 1734 packets a second.
    #[test]
    fn the_network_gets_its_share() {
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = vec![listener.local_addr().unwrap()];
        let length = Duration::from_millis(400);
        let levels = [("20", 20.0), ("jumps:10..90", 50.0), ("ramp:0..50", 10.0)];
        let kinds = [LoadSource::Network, LoadSource::Traffic];
        for (kind, (level, percent)) in kinds.into_iter().flat_map(|kind| levels.map(|level| (kind, level))) {
            let done = send(&Args { to: to.clone(), level: level.parse().unwrap(), ..args(kind) }, length).unwrap();
            assert!((percent * 0.5..percent * 1.3).contains(&done.busy_percent.unwrap()), "{kind:?} {level}: {done:?}");
            assert!(done.packets as f64 > percent * 0.5 * 86.7 * 0.4, "{kind:?} {level}: {done:?}");
        }
    }

    #[test]
    fn a_share_that_was_not_measured_is_not_given() {
        let level = "ramp:0..90".parse().unwrap();
        let done = Done { timers: 7, ..Done::default() };
        let text = line(&done, level);
        assert!(text.starts_with("asked for ramp:0..90 %, and") && text.contains("7 timers expired"), "{text}");
        assert!(line(&Done { busy_percent: Some(12.34), ..done }, level).starts_with("busy 12.3 % of"));
    }

    #[test]
    fn packets_are_paced() {
        assert_eq!(pause(1.0, 10_000.0), Duration::from_micros(100));
        assert_eq!(pause(0.25, 10_000.0), Duration::from_micros(25));
        assert_eq!([pause(1.0, 0.0), pause(1.0, 10.0), pause(0.5, f64::NAN)], [LOOK_EVERY; 3]);
    }

    /// Of gaps with the mean 1 those of a Poisson process have the variance 1.
    #[test]
    fn traffic_has_the_gaps_of_a_poisson_process() {
        let moments = |mut gaps: Gaps| {
            let gaps: Vec<f64> = (0..100_000).map(|_| gaps.next()).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            (mean, gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64)
        };
        assert_eq!(moments(Gaps::of(LoadSource::Network).unwrap()), (1.0, 0.0));
        let (mean, variance) = moments(Gaps::of(LoadSource::Traffic).unwrap());
        assert!((mean - 1.0).abs() < 0.03 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
    }

    #[test]
    fn the_disk_is_written_to() {
        let file = std::env::temp_dir().join(format!("ffclock-load-disk-{}", std::process::id()));
        let disk =
            |level: &str| Args { file: Some(file.clone()), level: level.parse().unwrap(), ..args(LoadSource::Disk) };
        for level in ["30", "jumps:10..90", "ramp:10..90"] {
            let done = write(&disk(level), Duration::from_millis(200)).unwrap();
            assert!(done.blocks > 0 && done.busy_percent.unwrap() > 0.0, "{level}: {done:?}");
        }
        assert!(!file.exists());
    }

    #[test]
    fn every_kind_ends_in_time() {
        let place = std::env::temp_dir().join(format!("ffclock-load-{}", std::process::id()));
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = vec![listener.local_addr().unwrap()];
        for kind in [LoadSource::Processor, LoadSource::Timer, LoadSource::Interrupt] {
            assert_eq!(run(&args(kind)), Ok(()));
        }
        listener.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        for kind in [LoadSource::Network, LoadSource::Traffic] {
            assert_eq!(run(&Args { to: to.clone(), ..args(kind) }), Ok(()));
            assert_eq!(listener.recv(&mut [0; 2000]).unwrap(), PAYLOAD.len());
            while listener.recv(&mut [0; 2000]).is_ok() {}
        }
        assert_eq!(run(&Args { file: Some(place.clone()), ..args(LoadSource::Disk) }), Ok(()));
        assert!(!place.exists());
    }

    #[test]
    fn what_is_missing_is_reported() {
        assert!(run(&args(LoadSource::Network)).unwrap_err().message.contains("--to"));
        assert!(run(&args(LoadSource::Disk)).unwrap_err().message.contains("--file"));
        let nowhere = Args { file: Some("/no/such/directory/file".into()), ..args(LoadSource::Disk) };
        assert!(run(&nowhere).unwrap_err().message.contains("/no/such/directory"));
    }
}

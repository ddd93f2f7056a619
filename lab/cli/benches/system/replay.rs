//! How fast `ffclock-lab replay` goes through a native trace, and whether its memory depends on the length.

use crate::Outcome;
use crate::figure::{Figure, largest, median};
use crate::lab::{FFCLOCK_LAB, Lab, status_field};
use crate::traffic::{Reference, Traffic};
use ffclock_trace::Recorder;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Exchanges of a trace whose replay is timed. At 16 s polls these are two and a half years.
const LONG: u64 = 5_000_000;
/// Exchanges of a shorter trace, to compare the memory with.
const SHORT: u64 = 1_000_000;
/// Replays of each trace, in turns.
const ROUNDS: usize = 7;
/// Between two looks at the memory of a replay.
const LOOK: Duration = Duration::from_millis(5);
/// Exchanges a second.
const GOAL: f64 = 3e6;
/// What the original does on the machine on which the goal was set.
const ORIGINAL: &str = "RADclock 1.2: 60000 (measured elsewhere)";

/// A kind of trace.
struct Kind {
    name: &'static str,
    poll_s: u64,
    reference: Reference,
}

const KINDS: [Kind; 3] = [
    Kind { name: "poll 16 s", poll_s: 16, reference: Reference::Without },
    Kind { name: "poll 1 s", poll_s: 1, reference: Reference::Without },
    Kind { name: "poll 16 s with reference times", poll_s: 16, reference: Reference::With },
];

/// One replay, by the classic estimator.
struct Replayed {
    rows_per_second: f64,
    rows_per_cpu_second: f64,
    peak_mib: f64,
}

pub(crate) fn run() -> Outcome {
    KINDS.iter().try_for_each(measure)
}

fn measure(kind: &Kind) -> Outcome {
    let lab = Lab::new("replay")?;
    let traces = [write(&lab, kind, SHORT)?, write(&lab, kind, LONG)?];
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (replays, trace) in rounds.iter_mut().zip(&traces) {
            replays.push(replay(trace)?);
        }
    }
    let [short, long] = rounds;
    report(&format!("replay, {}", kind.name), &short, &long)
}

/// The fastest replay counts: whatever else the machine does can only make it slower.
fn report(name: &str, short: &[Replayed], long: &[Replayed]) -> Outcome {
    let speeds = || long.iter().map(|replay| replay.rows_per_second);
    let (best, middle) = (largest(speeds()), median(speeds()));
    eprintln!("{name}: {best:.3e} exchanges a second at best, {middle:.3e} in the median");
    Figure::new(name, best, "exchanges/s").beside(ORIGINAL).at_least(GOAL).report()?;
    Figure::new(format!("{name}, median of {ROUNDS}"), middle, "exchanges/s").against("the best", best).report()?;
    let busy = largest(long.iter().map(|replay| replay.rows_per_cpu_second));
    Figure::new(format!("{name}, by CPU time"), busy, "exchanges/s").against("by the clock", best).report()?;
    let peak = |replays: &[Replayed]| largest(replays.iter().map(|replay| replay.peak_mib));
    Figure::new(format!("{name}, peak memory with {LONG}"), peak(long), "MiB")
        .against(&format!("with {SHORT}"), peak(short))
        .ratio_at_most(1.1)
        .report()?;
    Ok(())
}

fn write(lab: &Lab, kind: &Kind, count: u64) -> Result<PathBuf, Box<dyn Error>> {
    let path = lab.path(&format!("{count}.fftrace"));
    let mut traffic = Traffic::new(kind.poll_s, kind.reference);
    let mut recorder = Recorder::create(&path, &traffic.header())?;
    (0..count).try_for_each(|_| recorder.append(&traffic.row()))?;
    recorder.flush()?;
    Ok(path)
}

fn replay(trace: &Path) -> Result<Replayed, Box<dyn Error>> {
    let mut command = Command::new(FFCLOCK_LAB);
    command
        .args(["replay", "--json", "--estimator", "classic"])
        .arg(trace)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let child = command.spawn()?;
    let (peak_mib, cpu_s) = watch(&child)?;
    let output = child.wait_with_output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let number = |key: &str| report[key].as_f64().ok_or_else(|| format!("the report of replay has no {key}"));
    Ok(Replayed {
        rows_per_second: number("exchanges_per_s")?,
        rows_per_cpu_second: number("exchanges")? / cpu_s,
        peak_mib,
    })
}

/// The largest memory and the CPU time of a child that runs to its end and says little.
pub(crate) fn watch(child: &Child) -> Result<(f64, f64), Box<dyn Error>> {
    let of = |name: &str| PathBuf::from(format!("/proc/{}/{name}", child.id()));
    let mut peak_kib = 0.0;
    loop {
        // A process that has ended keeps its times until it is waited for, but not its memory.
        let stat = std::fs::read_to_string(of("stat"))?;
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        if let ["Z" | "X", ..] = fields.as_slice() {
            let ticks =
                |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN);
            let ticks = ticks(11) + ticks(12);
            return Ok((peak_kib / 1024.0, ticks / rustix::param::clock_ticks_per_second() as f64));
        }
        peak_kib = status_field(&of("status"), "VmHWM:").unwrap_or(0.0).max(peak_kib);
        sleep(LOOK);
    }
}

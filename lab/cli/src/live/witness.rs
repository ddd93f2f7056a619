//! How wrong the monitor is. Beside each contestant stands a witness (`witness.c`), a program of its own on the same
//! clock, on this host or in a guest of user-mode Linux. It reads the clock as the contestant does, and the truth right
//! before and right after, by nothing of what the monitor reads and computes. What it saw around each look of the
//! monitor is compared with what the monitor read then.

use super::interposer::{self, OwnClock};
use super::monitor::{Seen, truth_ns};
use super::router::{LIBRARIES, boot_is_there};
use crate::failure::Failure;
use crate::lab::worker::{Task, Worker, WorkerRights};
use ffclock_statistics::Sorted;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SOURCE: &str = include_str!("witness.c");
/// A reading that took longer says too little: the witness was interrupted in it.
const WIDTH_MAX_NS: i64 = 300;
/// Two readings farther apart than this are not around one look.
const APART_MAX_NS: i64 = 2_000_000;
/// Where the clock's error changed by more between the two, it was set: what it was in between is not known.
const CHANGE_MAX_NS: i64 = 1_000;
const READINGS: &str = "witness.readings";
const LOOKS: &str = "witness.looks";
/// Where a guest has the programs and its own directory (`tests/uml/init`).
const PROGRAMS_OF_GUEST: &str = "/programs";
const DIRECTORY_OF_GUEST: &str = "/out";

/// Where the witnesses of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WitnessKind {
    /// On this host, in the network of its contestant
    Host,
    /// In a guest of user-mode Linux of its own, where it reads this host's clock
    Guest,
}

/// What is needed to place witnesses.
pub(super) struct Witnesses {
    program: PathBuf,
    library: PathBuf,
    /// What boots a guest, where they are in guests.
    boot: Option<PathBuf>,
    /// The first look, on the host's clock [ns].
    origin_ns: i64,
    interval: Duration,
}

impl Witnesses {
    /// Compiles the program beside `library`, the interposer; the monitor looks each `interval` from now on. `boot` is
    /// what boots a guest for each, where they are in guests.
    pub(super) fn prepare(library: &Path, interval: Duration, boot: Option<&Path>) -> Result<Self, Failure> {
        if let Some(boot) = boot {
            boot_is_there(boot)?;
            guests_see_the_host()?;
        }
        let program = interposer::compile(directory_of(library), ("witness", SOURCE), &["-ldl"])?;
        let boot = boot.map(std::path::absolute).transpose()?;
        Ok(Witnesses { program, library: library.to_owned(), boot, origin_ns: truth_ns()?, interval })
    }

    /// Places one on the clock of a running contestant whose directory this is.
    pub(super) fn place(&self, host: &Worker, directory: &Path, clock: &'static str) -> Result<Witness, Failure> {
        let command = match &self.boot {
            None => self.command(directory_of(&self.library), directory, clock),
            Some(boot) => {
                let [programs, own] = [PROGRAMS_OF_GUEST, DIRECTORY_OF_GUEST].map(Path::new);
                let words = [vec!["FFCLOCK_LIVE_GUEST=1".to_owned()], self.command(programs, own, clock)].concat();
                fs::write(directory.join("plan"), format!("env {}\n", words.join(" ")))?;
                self.guest(boot, directory)
            }
        };
        let log = directory.join("witness.log");
        let task = Task { name: "the witness", command: &command, log: &log, rights: WorkerRights::AllButTheClock };
        let worker = Worker::beside(host, &task)?;
        let looks = OpenOptions::new().create(true).append(true).open(directory.join(LOOKS))?;
        Ok(Witness { worker, looks })
    }

    /// The command of one, where the programs and the contestant's files lie in these directories.
    fn command(&self, programs: &Path, own: &Path, clock: &str) -> Vec<String> {
        let named = |file: &Path| programs.join(file.file_name().expect("a program is a file")).display().to_string();
        let words = [
            named(&self.program),
            clock.to_owned(),
            self.origin_ns.to_string(),
            self.interval.as_nanos().to_string(),
            own.join(READINGS).display().to_string(),
        ];
        let command = OwnClock::within(own).command(Path::new(&named(&self.library)), words.to_vec());
        ["env", "FFCLOCK_LIVE_WITNESS=1"].map(str::to_owned).into_iter().chain(command).collect()
    }

    /// The command that boots a guest, which then runs the plan in the directory.
    fn guest(&self, boot: &Path, directory: &Path) -> Vec<String> {
        let programs = format!("\"PROGRAMS={}\"", directory_of(&self.library).display());
        vec![boot.display().to_string(), directory.display().to_string(), programs, LIBRARIES.to_owned()]
    }
}

fn directory_of(file: &Path) -> &Path {
    file.parent().expect("it is a file in a directory")
}

/// A program in a guest sees this host's clock by a page of this host's kernel alone (`interposer.c`).
fn guests_see_the_host() -> Result<(), Failure> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    if cfg!(target_arch = "x86_64") && maps.contains("[vsyscall]") {
        return Ok(());
    }
    Err("no guest can read this host's clock: its kernel has no page of vsyscalls (vsyscall=none, or not x86-64)"
        .into())
}

/// A witness that runs, and where the monitor's looks at the same clock go.
pub(super) struct Witness {
    worker: Worker,
    looks: File,
}

impl Witness {
    /// Writes down what the monitor read.
    pub(super) fn hear(&mut self, seen: &Seen) -> Result<(), Failure> {
        let line = format!("{} {}\n", seen.truth_ns, seen.read_ns);
        self.looks.write_all(line.as_bytes()).map_err(|error| format!("{LOOKS}: {error}").into())
    }

    /// Fails when it has ended.
    pub(super) fn check_alive(&mut self) -> Result<(), Failure> {
        self.worker.check_alive()
    }
}

/// One reading of a witness [ns].
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    truth: i64,
    width: i64,
    /// The clock less the truth.
    offset: i64,
}

/// How wrong the monitor was, over all looks that were witnessed; sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct MonitorError {
    looks: u64,
    /// Of these, how many had a good reading of the witness on either side.
    witnessed: u64,
    median_s: f64,
    p99_s: f64,
    largest_s: f64,
    /// Half of the time between the two readings of the truth: how well the witness itself knows; median and largest.
    witness_s: [f64; 2],
}

/// Compares what monitor and witness wrote in these directories, one for each contestant; `None` without any.
pub(super) fn compare<'a>(directories: impl Iterator<Item = &'a Path>) -> Option<MonitorError> {
    let (mut looks, mut errors, mut widths) = (0, Vec::new(), Vec::new());
    for directory in directories {
        let seen: Vec<[i64; 2]> = rows(&directory.join(LOOKS));
        let readings: Vec<Reading> = rows(&directory.join(READINGS)).into_iter().map(Reading::of).collect();
        looks += seen.len() as u64;
        for [truth, read] in seen {
            let Some((offset, half_width)) = offset_at(&readings, truth) else { continue };
            errors.push((read - truth - offset).abs() as f64 * 1e-9);
            widths.push(half_width as f64 * 1e-9);
        }
    }
    let witnessed = errors.len() as u64;
    let (errors, widths) = (Sorted::of(errors), Sorted::of(widths));
    Some(MonitorError {
        looks,
        witnessed,
        median_s: errors.quantile(0.5)?,
        p99_s: errors.quantile(0.99)?,
        largest_s: errors.quantile(1.0)?,
        witness_s: [widths.quantile(0.5)?, widths.quantile(1.0)?],
    })
}

/// Whole lines of numbers; the last may have been broken off.
fn rows<const N: usize>(file: &Path) -> Vec<[i64; N]> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let row = |line: &str| {
        let numbers: Option<Vec<i64>> = line.split(' ').map(|word| word.parse().ok()).collect();
        <[i64; N]>::try_from(numbers?).ok()
    };
    whole.lines().filter_map(row).collect()
}

impl Reading {
    fn of([before, after, clock]: [i64; 3]) -> Self {
        let truth = before + (after - before) / 2;
        Reading { truth, width: after - before, offset: clock - truth }
    }
}

/// What the clock was less the truth, by the two readings around it, and half of the wider one's width.
fn offset_at(readings: &[Reading], truth: i64) -> Option<(i64, i64)> {
    let next = readings.partition_point(|reading| reading.truth <= truth);
    let [first, second] = [*readings.get(next.checked_sub(1)?)?, *readings.get(next)?];
    let (width, apart) = (first.width.max(second.width), second.truth - first.truth);
    let change = second.offset - first.offset;
    if width > WIDTH_MAX_NS || apart > APART_MAX_NS || change.abs() > CHANGE_MAX_NS {
        return None;
    }
    let share = (truth - first.truth) as f64 / apart as f64;
    Some((first.offset + (share * change as f64).round() as i64, width / 2))
}

impl MonitorError {
    /// As a line of the report.
    pub(super) fn text(&self) -> String {
        let ns = |seconds: f64| format!("{:.0} ns", seconds * 1e9);
        format!(
            "monitor against its witnesses, {} of {} looks: median {}, 99 % {}, largest {}; they themselves know within {} (half), {} (worst)\n",
            self.witnessed,
            self.looks,
            ns(self.median_s),
            ns(self.p99_s),
            ns(self.largest_s),
            ns(self.witness_s[0]),
            ns(self.witness_s[1])
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock 50 ppm fast that is stepped by 1 ms after a second, a look each 10 ms, all `wrong_ns` off.
    fn compared(name: &str, wrong_ns: i64) -> MonitorError {
        let directory = std::env::temp_dir().join(format!("ffclock-live-witness-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let shown = |truth: i64| truth + truth / 20_000 + if truth >= 1_000_000_000 { 1_000_000 } else { 0 };
        let wide = |truth: i64| if truth % 100_000_000 == 0 { 5_000 } else { 40 };
        let reading = |truth: i64| format!("{} {} {}\n", truth - wide(truth), truth + wide(truth), shown(truth));
        let readings: String = (0..8_000).map(|index| reading(index * 250_000)).collect();
        let look = |truth: i64| format!("{truth} {}\n", shown(truth) + wrong_ns);
        let looks: String = (1..200).map(|index| look(index * 10_000_000 - 100_000)).collect();
        fs::write(directory.join(READINGS), readings + "77 7").unwrap();
        fs::write(directory.join(LOOKS), looks).unwrap();
        let found = compare([directory.as_path()].into_iter()).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        found
    }

    #[test]
    fn a_monitor_that_is_right_is_within_a_nanosecond_and_one_that_is_5_us_off_is_found() {
        let right = compared("right", 0);
        // Those by a wide reading, and the one by which the clock was stepped, say nothing.
        assert_eq!((right.looks, right.witnessed), (199, 180));
        assert!(right.largest_s <= 2e-9 && right.witness_s == [40e-9; 2], "{right:?}");
        for wrong_ns in [5_000, -5_000] {
            let wrong = compared("wrong", wrong_ns);
            assert!((wrong.median_s - 5e-6).abs() < 3e-9 && (wrong.largest_s - 5e-6).abs() < 3e-9, "{wrong:?}");
        }
    }

    #[test]
    fn without_a_witness_nothing_is_said() {
        assert_eq!(compare([Path::new("/nonexistent")].into_iter()), None);
    }
}

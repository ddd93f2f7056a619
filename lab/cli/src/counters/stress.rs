//! Loads, each ended when its phase ends, and also when this process dies.

use crate::failure::Failure;
use crate::lab::link::{self, SERVER_ADDRESS};
use crate::lab::worker::{Task, Worker, WorkerNetwork, WorkerRights, namespaces_permitted};
use ffclock_counters::campaign::{CampaignPhase, Load};
use ffclock_sys::mono_now;
use ffclock_units::{Moment, Mono, Span};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const STRESS_NG: &str = "stress-ng";
const MISSING: &str = "the load needs stress-ng, which cannot be run here; `tools/setup packages` installs it, or install the package stress-ng";
/// Makes sure that a load does not outlive us.
const SETPRIV: &str = "setpriv";
const UNGUARDED: &str = "the load is started by setpriv, which cannot be run here; install the package util-linux";
/// How long after its phase a load ends by itself if its parent is gone.
const GRACE_S: f64 = 60.0;
/// How long stress-ng may take to end cleanly.
const ENDING: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(20);
/// The traffic: as much as the link takes, in packets that fill an Ethernet frame.
const PORT: u16 = 9_009;

/// The loads of a campaign.
pub(super) struct StressLoads {
    running: Vec<RunningLoad>,
    directory: Option<Directory>,
    cycle: Option<Cycle>,
}

enum RunningLoad {
    Program(StressProgram),
    Namespace(Worker),
}

/// stress-ng, ended when dropped.
struct StressProgram(Child);

/// The machine warms and cools in turn.
struct Cycle {
    half: Span,
    next: Moment<Mono>,
    seconds: f64,
    is_warming: bool,
}

/// Removed with everything in it.
struct Directory(PathBuf);

impl StressLoads {
    /// Checks that every load of `phases` can be had, so that none fails hours later.
    pub(super) fn prepare(phases: &[CampaignPhase]) -> Result<Self, Failure> {
        let loads: Vec<Load> = phases.iter().filter_map(|phase| phase.load).collect();
        if loads.iter().any(|load| *load != Load::Network) {
            let tried = Command::new(STRESS_NG).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            tried.map_err(|error| format!("{MISSING} ({error})"))?;
            let tried = Command::new(SETPRIV).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            tried.map_err(|error| format!("{UNGUARDED} ({error})"))?;
        }
        if loads.contains(&Load::Network) {
            namespaces_permitted().map_err(|reason| {
                format!(
                    "the load network needs network namespaces: {reason}; run as root, or leave network out of --stress"
                )
            })?;
        }
        let directory = (!loads.is_empty()).then(Directory::create).transpose()?;
        Ok(StressLoads { running: Vec::new(), directory, cycle: None })
    }

    /// Ends what runs and starts the load of `phase`.
    pub(super) fn change(&mut self, phase: &CampaignPhase) -> Result<(), Failure> {
        self.cycle = None;
        self.running.clear();
        match (phase.load, &self.directory) {
            (Some(Load::Network), Some(directory)) => self.running = traffic(&directory.0)?,
            (Some(load), Some(directory)) => {
                self.running.push(program(load, &directory.0, phase.length_s)?);
                self.cycle = (load == Load::TemperatureCycle).then(|| Cycle::begin(phase.length_s));
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes sure that the load still runs.
    pub(super) fn keep(&mut self) -> Result<(), Failure> {
        for running in &mut self.running {
            running.check()?;
        }
        if self.cycle.as_mut().is_some_and(Cycle::turns) {
            self.turn()?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Failure> {
        let (Some(cycle), Some(directory)) = (&self.cycle, &self.directory) else { return Ok(()) };
        self.running.clear();
        if cycle.is_warming {
            self.running.push(program(Load::TemperatureCycle, &directory.0, cycle.seconds)?);
        }
        Ok(())
    }
}

impl Cycle {
    /// Four times warm and four times cool in a phase.
    fn begin(seconds: f64) -> Self {
        let half = Span::from_seconds(seconds / 8.0);
        Cycle { half, next: mono_now() + half, seconds, is_warming: true }
    }

    fn turns(&mut self) -> bool {
        let is_time = mono_now() >= self.next;
        if is_time {
            self.next = self.next + self.half;
            self.is_warming = !self.is_warming;
        }
        is_time
    }
}

impl RunningLoad {
    fn check(&mut self) -> Result<(), Failure> {
        match self {
            RunningLoad::Namespace(worker) => worker.check_alive(),
            RunningLoad::Program(StressProgram(child)) => match child.try_wait()? {
                None => Ok(()),
                Some(status) => {
                    Err(format!("{STRESS_NG} ended before its time: {status}; run it by hand to see why").into())
                }
            },
        }
    }
}

/// The options of stress-ng, for all CPUs.
fn arguments(load: Load) -> &'static [&'static str] {
    match load {
        Load::Cpu | Load::TemperatureCycle => &["--cpu", "0"],
        Load::Memory => &["--stream", "0", "--vm", "1", "--vm-bytes", "10%"],
        Load::Io => &["--hdd", "1", "--hdd-bytes", "64M", "--iomix", "1", "--iomix-bytes", "16M"],
        Load::Syscall => &["--syscall", "1", "--get", "1"],
        Load::Ip => &["--udp", "1"],
        Load::Interrupt => &["--timer", "1", "--timer-freq", "10000"],
        Load::Network => &[],
    }
}

fn program(load: Load, directory: &Path, seconds: f64) -> Result<RunningLoad, Failure> {
    let timeout = format!("{:.0}s", seconds + GRACE_S);
    let mut command = Command::new(SETPRIV);
    command.args(["--pdeathsig", "KILL", STRESS_NG, "--quiet", "--timeout", &timeout]).args(arguments(load));
    command.arg("--temp-path").arg(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| format!("{UNGUARDED} ({error})"))?;
    Ok(RunningLoad::Program(StressProgram(child)))
}

impl Drop for StressProgram {
    /// stress-ng ends its own children when it is asked to end.
    fn drop(&mut self) {
        let StressProgram(child) = self;
        let pid = rustix::process::Pid::from_child(child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        for _ in 0..ENDING.as_millis() / STEP.as_millis() {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(STEP);
        }
        // Both fail only when the child has already been reaped.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Two namespaces, a link, a program that fills it, and one that captures every packet: the papers' tcpdump on a full
/// hub.
fn traffic(directory: &Path) -> Result<Vec<RunningLoad>, Failure> {
    let ourselves = std::env::current_exe()?;
    let command = |words: &[&str]| -> Vec<String> {
        std::iter::once(ourselves.display().to_string()).chain(words.iter().map(|word| (*word).to_owned())).collect()
    };
    let port = PORT.to_string();
    let capture = command(&["lab", "capture", "--port", &port]);
    let flood = command(&["lab", "flood", "--to", &format!("{SERVER_ADDRESS}:{PORT}")]);
    let logs = [directory.join("capture.log"), directory.join("flood.log")];
    let mut workers = [("packet capture", &capture), ("traffic", &flood)]
        .iter()
        .zip(&logs)
        .map(|((name, command), log)| {
            Worker::prepare(&Task { name, command, log, rights: WorkerRights::AllButTheClock }, WorkerNetwork::Own)
        })
        .collect::<Result<Vec<Worker>, Failure>>()?;
    if let [server, client] = workers.as_slice() {
        link::join(server, client)?;
    }
    workers.iter_mut().try_for_each(Worker::release)?;
    Ok(workers.into_iter().map(RunningLoad::Namespace).collect())
}

const PREFIX: &str = "ffclock-stress-";

/// Removes what a process that was killed left behind.
fn remove_stale(temporary: &Path) {
    for entry in std::fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            // It may be another user's.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl Directory {
    fn create() -> Result<Self, Failure> {
        remove_stale(&std::env::temp_dir());
        let path = std::env::temp_dir().join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left behind lies in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_counters::campaign::schedule;

    fn has_stress_ng() -> bool {
        let found = Command::new(STRESS_NG).arg("--version").output().is_ok();
        if !found {
            println!("SKIP: stress-ng is not installed");
        }
        found
    }

    fn processes_below(directory: &Path) -> usize {
        let wanted = directory.display().to_string();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        entries
            .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
            .filter(|line| String::from_utf8_lossy(line).contains(&wanted))
            .count()
    }

    #[test]
    fn a_load_runs_in_its_phase_and_leaves_nothing() {
        if !has_stress_ng() {
            return;
        }
        let phases = schedule(&[Load::Cpu], Span::from_secs(5));
        let mut stress = StressLoads::prepare(&phases).unwrap();
        let directory = stress.directory.as_ref().unwrap().0.clone();
        stress.change(&phases[1]).unwrap();
        stress.keep().unwrap();
        // On a busy host it takes a moment until the new program runs.
        let appears = (0..250).any(|_| {
            std::thread::sleep(STEP);
            processes_below(&directory) >= 1
        });
        assert!(appears, "no load was started");
        stress.change(&phases[2]).unwrap();
        assert_eq!(processes_below(&directory), 0);
        drop(stress);
        assert!(!directory.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let place = std::env::temp_dir().join(format!("ffclock-stale-{}", std::process::id()));
        // No process has a number above the largest that Linux gives.
        let [stale, ours, foreign] =
            [format!("{PREFIX}4194305"), format!("{PREFIX}{}", std::process::id()), "ffclock-other".to_owned()]
                .map(|name| place.join(name));
        [&stale, &ours, &foreign].iter().for_each(|path| std::fs::create_dir_all(path).unwrap());
        remove_stale(&place);
        assert!(!stale.exists() && ours.exists() && foreign.exists());
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn warm_and_cool_take_turns() {
        let mut cycle = Cycle { half: Span::from_millis(1), next: mono_now(), seconds: 1.0, is_warming: true };
        assert!(cycle.turns() && !cycle.is_warming);
        std::thread::sleep(Duration::from_millis(2));
        assert!(cycle.turns() && cycle.is_warming);
    }
}

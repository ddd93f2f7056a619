//! Child processes of the laboratory: each in a network namespace of its own where that is permitted, none outliving
//! its parent.
//!
//! The namespaces have no names: they live exactly as long as the processes inside, so there is nothing to clean up,
//! whatever happens.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where a worker's network lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerNetwork {
    /// In a namespace of the worker's own.
    Own,
    /// Where its parent's lies.
    Shared,
}

/// What a worker may do to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerRights {
    /// Nothing that needs a capability.
    None,
    /// What a foreign daemon expects of root, except to set the clock.
    AllButTheClock,
}

impl WorkerRights {
    fn bounding_set(self) -> &'static str {
        match self {
            WorkerRights::None => "--bounding-set=-all",
            WorkerRights::AllButTheClock => "--bounding-set=-sys_time",
        }
    }
}

/// What to run.
pub(crate) struct Task<'a> {
    /// What to call it in messages.
    pub(crate) name: &'a str,
    /// The program and its arguments.
    pub(crate) command: &'a [String],
    /// Where its output goes.
    pub(crate) log: &'a Path,
    /// What it may do.
    pub(crate) rights: WorkerRights,
}

/// A running child.
pub(crate) struct Worker {
    child: Child,
    name: String,
    network: WorkerNetwork,
    log: PathBuf,
}

impl Worker {
    /// Prepares a task to run in its network; it starts when [`Worker::release`] is called. No worker may set the
    /// system clock, and each is killed when its parent dies.
    pub(crate) fn prepare(task: &Task<'_>, network: WorkerNetwork) -> Result<Worker, Failure> {
        let entering: &[&str] = if network == WorkerNetwork::Own { &["unshare", "--net"] } else { &[] };
        let mut worker = Worker::spawn(task, entering, network)?;
        if network == WorkerNetwork::Own {
            wait_for_own_network(&mut worker.child, &worker.name)?;
        }
        Ok(worker)
    }

    /// Starts a task at once, in the network of a running worker.
    pub(crate) fn beside(host: &Worker, task: &Task<'_>) -> Result<Worker, Failure> {
        let pid = host.pid().to_string();
        let own = ["nsenter", "--target", &pid, "--net"];
        // The shared network needs not be entered, and perhaps there is no right to.
        let entering: &[&str] = if host.network == WorkerNetwork::Own { &own } else { &[] };
        let mut worker = Worker::spawn(task, entering, host.network)?;
        worker.release()?;
        Ok(worker)
    }

    fn spawn(task: &Task<'_>, entering: &[&str], network: WorkerNetwork) -> Result<Worker, Failure> {
        let mut starter = Command::new("setpriv");
        starter.args(["--pdeathsig", "KILL"]).args(entering);
        starter.args(["sh", "-c", &gate(task.rights), task.name]).args(task.command);
        let output = File::create(task.log).map_err(|error| format!("{}: {error}", task.log.display()))?;
        let errors = output.try_clone()?;
        starter.stdin(Stdio::piped()).stdout(output).stderr(errors);
        let child = starter.spawn().map_err(|error| format!("cannot start {}: setpriv: {error}", task.name))?;
        Ok(Worker { child, name: task.name.to_owned(), network, log: task.log.to_owned() })
    }

    /// Lets a prepared worker run.
    pub(crate) fn release(&mut self) -> Result<(), Failure> {
        let mut gate = self.child.stdin.take().ok_or_else(|| format!("{} was released already", self.name))?;
        gate.write_all(b"go\n").map_err(|error| Failure::from(format!("{} is gone: {error}", self.name)))
    }

    /// The process id, which also names its network namespace.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Fails when the worker has ended, which no worker does by itself.
    pub(crate) fn check_alive(&mut self) -> Result<(), Failure> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("{} ended: {status}{}", self.name, self.last_word()).into()),
        }
    }

    /// The last line of its output, where there is one: it mostly has the reason.
    fn last_word(&self) -> String {
        let output = fs::read_to_string(&self.log).unwrap_or_default();
        let last = output.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or_else(String::new, |line| format!(" ({})", ffclock_cli::text::printable(line)))
    }
}

/// Until a child has left our network, a link meant for it would end up in ours. `name` is what messages call it.
pub(crate) fn wait_for_own_network(child: &mut Child, name: &str) -> Result<(), Failure> {
    let ours = fs::read_link("/proc/self/ns/net")?;
    let theirs = format!("/proc/{}/ns/net", child.id());
    for _ in 0..PREPARING.as_millis() / STEP.as_millis() {
        if let Some(status) = child.try_wait()? {
            return Err(format!("{name} ended: {status}").into());
        }
        if fs::read_link(&theirs).is_ok_and(|network| network != ours) {
            return Ok(());
        }
        std::thread::sleep(STEP);
    }
    Err(format!("{name} did not get a network of its own").into())
}

/// How long a worker may take to reach its network.
const PREPARING: Duration = Duration::from_secs(10);
/// How long a worker may take to end cleanly.
const ENDING: Duration = Duration::from_secs(3);
/// Between two looks at a worker.
const STEP: Duration = Duration::from_millis(10);

impl Worker {
    /// Asks the worker to end, and waits until it has.
    pub(crate) fn terminate(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        if rustix::process::kill_process(pid, rustix::process::Signal::TERM).is_err() {
            return;
        }
        for _ in 0..ENDING.as_millis() / STEP.as_millis() {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(STEP);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only when the child has already been reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The shell script that waits for the word to go and then becomes the task.
fn gate(rights: WorkerRights) -> String {
    let bounding_set = rights.bounding_set();
    format!("read -r go && exec setpriv --pdeathsig KILL {bounding_set} --inh-caps=-all \"$@\"")
}

/// Runs a helper command to its end.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<(), Failure> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {}", arguments.join(" "), said.trim()).into())
}

/// Whether this process may make network namespaces and links between them; otherwise the reason.
pub(crate) fn namespaces_permitted() -> Result<(), Failure> {
    run("unshare", &["--net", "ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"])
}

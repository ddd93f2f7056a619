//! Sets the stage: a reference server and one or two daemons, joined by a link, and their page files.

use crate::failure::Failure;
use crate::lab::link::{self, Carrier};
use crate::lab::truth::{Truth, as_arguments};
use crate::lab::worker::{Task, Worker, WorkerNetwork, WorkerRights, namespaces_permitted};
use ffclock_estimator::Algorithm;
use ffclock_units::{Moment, Mono, Period, Rate, Span};
use std::fs;
use std::path::{Path, PathBuf};

/// What the true time is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TruthSource {
    /// A function of the raw counter, which the embedded server serves.
    Embedded(Truth),
    /// The system clock of this host, served by another program. Nothing adjusts it while the demo runs.
    SystemClock,
}

impl TruthSource {
    /// `period` / the true mean period - 1; `None` where the truth has no known rate.
    pub(super) fn rate_error(&self, period: Period) -> Option<Rate> {
        match self {
            TruthSource::Embedded(truth) => Some(period.relative_to(truth.period)),
            TruthSource::SystemClock => None,
        }
    }
}

/// A daemon, by the place where it stamps its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StampingDaemon {
    Kernel,
    User,
}

impl StampingDaemon {
    pub(super) fn name(self) -> &'static str {
        match self {
            StampingDaemon::Kernel => "kernel",
            StampingDaemon::User => "user",
        }
    }
}

/// The program that serves the time.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ServerProgram {
    /// `ffclock-lab lab server`.
    Embedded,
    /// This chronyd.
    Chronyd(PathBuf),
    /// This ntpd, of ntpsec.
    Ntpd(PathBuf),
}

impl ServerProgram {
    /// Above 1023 where the server has an option for it, so that it needs no privilege.
    fn port(&self) -> u16 {
        match self {
            ServerProgram::Embedded | ServerProgram::Chronyd(_) => 11_123,
            ServerProgram::Ntpd(_) => 123,
        }
    }

    /// Its name in messages.
    pub(super) fn description(&self) -> &'static str {
        match self {
            ServerProgram::Embedded => "embedded reference server",
            ServerProgram::Chronyd(_) => "chronyd as server, truth: the system clock",
            ServerProgram::Ntpd(_) => "ntpsec's ntpd as server, truth: the system clock",
        }
    }
}

/// The plan for one run.
pub(super) struct StagePlan<'a> {
    pub(super) directory: &'a Path,
    pub(super) reference: TruthSource,
    pub(super) server: ServerProgram,
    pub(super) estimator: Algorithm,
    pub(super) poll: Span,
}

/// The server listens by then.
const SERVER_START: std::time::Duration = std::time::Duration::from_millis(400);

/// Everything that runs.
pub(super) struct DemoStage {
    server_command: Vec<String>,
    server_log: PathBuf,
    server: Option<Worker>,
    daemons: Vec<Worker>,
    started: Moment<Mono>,
    directory: PathBuf,
    linked: bool,
    rights: WorkerRights,
}

impl DemoStage {
    /// Starts the server, and a daemon for each kind of stamps.
    pub(super) fn set(plan: &StagePlan<'_>) -> Result<DemoStage, Failure> {
        let linked = match namespaces_permitted() {
            Ok(()) => true,
            Err(reason) if matches!(plan.server, ServerProgram::Ntpd(_)) => {
                return Err(format!("ntpd needs a network namespace of its own: {reason}").into());
            }
            Err(reason) => {
                eprintln!("network namespaces are not permitted here ({reason}); using plain loopback");
                false
            }
        };
        let network = if linked { WorkerNetwork::Own } else { WorkerNetwork::Shared };
        let address = if linked { link::SERVER_ADDRESS } else { "127.0.0.1" };
        let (server_command, rights) = server_command(plan, address)?;
        let mut stage = DemoStage {
            server_command,
            server_log: plan.directory.join("server.log"),
            server: None,
            daemons: Vec::new(),
            started: ffclock_sys::mono_now(),
            directory: plan.directory.to_owned(),
            linked,
            rights,
        };
        let mut server = Worker::prepare(&stage.server_task(), network)?;
        let first = daemon_command(plan, StampingDaemon::Kernel, address)?;
        let second = daemon_command(plan, StampingDaemon::User, address)?;
        let log = stage.log("ffclockd-kernel");
        let task = Task { name: "ffclockd", command: &first, log: &log, rights: WorkerRights::None };
        let mut client = Worker::prepare(&task, network)?;
        if linked {
            link::join(&server, &client)?;
        }
        server.release()?;
        // The server listens before the first request.
        std::thread::sleep(SERVER_START);
        stage.started = ffclock_sys::mono_now();
        client.release()?;
        let log = stage.log("ffclockd-user");
        let task = Task { name: "ffclockd with user stamps", command: &second, log: &log, rights: WorkerRights::None };
        let other = Worker::beside(&client, &task)?;
        stage.server = Some(server);
        stage.daemons = vec![client, other];
        Ok(stage)
    }

    /// Seconds since the daemons were started.
    pub(super) fn elapsed_s(&self) -> f64 {
        (ffclock_sys::mono_now() - self.started).as_seconds()
    }

    /// How the hosts are joined, in words.
    pub(super) fn network(&self) -> &'static str {
        if self.linked { "two network namespaces joined by veth" } else { "loopback" }
    }

    /// Cuts the server off.
    pub(super) fn cut(&mut self) -> Result<(), Failure> {
        match &self.server {
            Some(server) if self.linked => link::set_carrier(server, Carrier::Down),
            _ => {
                self.server = None;
                Ok(())
            }
        }
    }

    /// Brings the server back.
    pub(super) fn reconnect(&mut self) -> Result<(), Failure> {
        match &self.server {
            Some(server) if self.linked => link::set_carrier(server, Carrier::Up),
            _ => {
                let mut server = Worker::prepare(&self.server_task(), WorkerNetwork::Shared)?;
                server.release()?;
                self.server = Some(server);
                Ok(())
            }
        }
    }

    /// Fails when anything that should run has ended; says where to look.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        let directory = self.directory.display().to_string();
        let workers = self.server.iter_mut().chain(&mut self.daemons);
        for worker in workers {
            worker.check_alive().map_err(|failure| format!("{failure}; its output is in {directory}"))?;
        }
        Ok(())
    }

    /// Resident memory of the first daemon [bytes].
    pub(super) fn daemon_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.daemons.first()?.pid())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    }

    /// Ends everything, the daemons cleanly, so that their records are complete.
    pub(super) fn finish(mut self) {
        for daemon in &mut self.daemons {
            daemon.terminate();
        }
    }

    fn log(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.log"))
    }

    fn server_task(&self) -> Task<'_> {
        Task { name: "the reference server", command: &self.server_command, log: &self.server_log, rights: self.rights }
    }
}

/// The page file of a daemon.
pub(super) fn page_path(directory: &Path, stamps: StampingDaemon) -> PathBuf {
    directory.join(format!("{}.page", stamps.name()))
}

/// The directory into which a daemon records its exchanges.
pub(super) fn record_path(directory: &Path, stamps: StampingDaemon) -> PathBuf {
    directory.join(format!("{}.recorded", stamps.name()))
}

fn daemon_command(plan: &StagePlan<'_>, stamps: StampingDaemon, address: &str) -> Result<Vec<String>, Failure> {
    let name = stamps.name();
    let directory = plan.directory.display();
    let record = record_path(plan.directory, stamps);
    fs::create_dir_all(&record)?;
    let text = format!(
        "counter = \"tsc\"\nstamps = \"{name}\"\npage = \"{page}\"\ncontrol = \"{directory}/{name}.control\"\nstate = \"off\"\n\
         record = \"{record}\"\nvalid_for = \"60 s\"\nestimator = \"{estimator}\"\n\n[[server]]\naddress = \"{address}\"\nport = {port}\npoll = \"{poll}\"\n",
        page = page_path(plan.directory, stamps).display(),
        record = record.display(),
        estimator = plan.estimator,
        poll = plan.poll,
        port = plan.server.port(),
    );
    let path = plan.directory.join(format!("ffclockd-{name}.toml"));
    fs::write(&path, text)?;
    let program = sibling("ffclockd")?;
    Ok(vec![program, "--config".to_owned(), path.display().to_string()])
}

fn server_command(plan: &StagePlan<'_>, address: &str) -> Result<(Vec<String>, WorkerRights), Failure> {
    match (&plan.server, plan.reference) {
        (ServerProgram::Chronyd(program), _) => Ok((chronyd_command(plan, program)?, WorkerRights::AllButTheClock)),
        (ServerProgram::Ntpd(program), _) => Ok((ntpd_command(plan, program)?, WorkerRights::AllButTheClock)),
        (ServerProgram::Embedded, TruthSource::Embedded(truth)) => {
            let mut command = vec![sibling("ffclock-lab")?, "lab".to_owned(), "server".to_owned()];
            // Any address of its own namespace; on a shared network loopback alone.
            let listen = if address == "127.0.0.1" { address } else { "0.0.0.0" };
            command.extend(["--listen".to_owned(), format!("{listen}:{}", plan.server.port())]);
            command.extend(as_arguments(&truth));
            Ok((command, WorkerRights::None))
        }
        (ServerProgram::Embedded, TruthSource::SystemClock) => {
            Err("the embedded server serves a truth of its own".into())
        }
    }
}

/// A server's own directory, closed to others, as chronyd demands.
fn server_directory(plan: &StagePlan<'_>, name: &str) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::DirBuilderExt;
    let path = plan.directory.join(name);
    if !path.exists() {
        fs::DirBuilder::new().mode(0o750).create(&path)?;
    }
    Ok(path)
}

fn chronyd_command(plan: &StagePlan<'_>, program: &Path) -> Result<Vec<String>, Failure> {
    let run = server_directory(plan, "chrony")?;
    let configuration = run.join("chrony.conf");
    let text = format!(
        "local stratum 1\nallow all\nport {}\ncmdport 0\npidfile {run}/chronyd.pid\nbindcmdaddress {run}/chronyd.sock\n",
        plan.server.port(),
        run = run.display()
    );
    fs::write(&configuration, text)?;
    // -x: it must not touch the system clock; it has not the right to, either.
    Ok(words(program, &["-x", "-d", "-u", "root", "-f"], &configuration))
}

fn ntpd_command(plan: &StagePlan<'_>, program: &Path) -> Result<Vec<String>, Failure> {
    let configuration = server_directory(plan, "ntpsec")?.join("ntp.conf");
    // Its default limits would stop answering a client that polls faster than every two seconds.
    let text = "disable ntp\ntos orphan 3 orphanwait 1\nlimit average 1000 burst 1000\nrestrict default nomodify\n";
    fs::write(&configuration, text)?;
    Ok(words(program, &["-n", "-c"], &configuration))
}

fn words(program: &Path, options: &[&str], configuration: &Path) -> Vec<String> {
    let program = program.display().to_string();
    let configuration = configuration.display().to_string();
    let options = options.iter().map(|option| (*option).to_owned());
    [program].into_iter().chain(options).chain([configuration]).collect()
}

/// A program that is installed beside this one.
fn sibling(name: &str) -> Result<String, Failure> {
    let here = std::env::current_exe()?;
    let path = here.with_file_name(name);
    if !path.exists() {
        return Err(format!("{} is missing; build the whole workspace: cargo build --release", path.display()).into());
    }
    Ok(path.display().to_string())
}

//! Sets the stage: reference servers and daemons, joined by a link, and the files of the daemons.

use crate::failure::Failure;
use crate::lab::link::{self, Carrier};
use crate::lab::truth::{Truth, as_arguments};
use crate::lab::worker::{Task, Worker, WorkerNetwork, WorkerRights, namespaces_permitted};
use ffclock_counter::CounterId;
use ffclock_estimator::Algorithm;
use ffclock_units::{Counter, Moment, Mono, Period, Rate, Span};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What the true time is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TruthSource {
    /// A function of the raw counter, which the embedded servers serve.
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

/// A server on the stage.
pub(super) struct ServerPlan {
    /// Its name in messages and in the name of its log.
    pub(super) name: &'static str,
    /// Further options of the embedded server.
    pub(super) options: Vec<String>,
}

/// A daemon on the stage.
pub(super) struct DaemonPlan {
    /// Its name in messages and in the names of its files.
    pub(super) name: &'static str,
    /// Where it stamps its packets: "kernel" or "user".
    pub(super) stamps: &'static str,
    /// The numbers of the servers that it asks.
    pub(super) servers: &'static [usize],
}

/// The plan for one run.
pub(super) struct StagePlan<'a> {
    pub(super) directory: &'a Path,
    pub(super) reference: TruthSource,
    pub(super) program: ServerProgram,
    pub(super) servers: &'a [ServerPlan],
    pub(super) daemons: &'a [DaemonPlan],
    pub(super) estimator: Algorithm,
    pub(super) poll: Span,
}

impl StagePlan<'_> {
    fn network(&self) -> Result<WorkerNetwork, Failure> {
        match namespaces_permitted() {
            Ok(()) => Ok(WorkerNetwork::Own),
            Err(reason) if matches!(self.program, ServerProgram::Ntpd(_)) => {
                Err(format!("ntpd needs a network namespace of its own: {reason}").into())
            }
            Err(reason) => {
                eprintln!("network namespaces are not permitted here ({reason}); using plain loopback");
                Ok(WorkerNetwork::Shared)
            }
        }
    }
}

/// The servers listen by then.
const SERVER_START: std::time::Duration = std::time::Duration::from_millis(400);

/// A server that can be started, and started again.
struct ServerStart {
    name: &'static str,
    address: String,
    command: Vec<String>,
    log: PathBuf,
    rights: WorkerRights,
}

impl ServerStart {
    fn of(plan: &StagePlan<'_>, server: &ServerPlan, address: String) -> Result<ServerStart, Failure> {
        let (command, rights) = server_command(plan, server, &address)?;
        let log = plan.directory.join(format!("{}.log", server.name));
        Ok(ServerStart { name: server.name, address, command, log, rights })
    }

    fn task(&self) -> Task<'_> {
        Task { name: self.name, command: &self.command, log: &self.log, rights: self.rights }
    }
}

/// Everything that runs.
pub(super) struct DemoStage {
    starts: Vec<ServerStart>,
    servers: Vec<Worker>,
    daemons: Vec<Worker>,
    began: Moment<Mono>,
    began_counter: Counter,
    directory: PathBuf,
    network: WorkerNetwork,
}

impl DemoStage {
    /// Starts the servers, and then the daemons.
    pub(super) fn set(plan: &StagePlan<'_>) -> Result<DemoStage, Failure> {
        let network = plan.network()?;
        let starts = plan.servers.iter().enumerate();
        let starts = starts.map(|(number, server)| ServerStart::of(plan, server, server_address(network, number)));
        let mut stage = DemoStage {
            starts: starts.collect::<Result<_, Failure>>()?,
            servers: Vec::new(),
            daemons: Vec::new(),
            began: ffclock_sys::mono_now(),
            began_counter: ffclock_counter::read_ordered(CounterId::CPU),
            directory: plan.directory.to_owned(),
            network,
        };
        let commands = plan.daemons.iter().map(|daemon| stage.daemon_command(plan, daemon));
        let commands = commands.collect::<Result<Vec<_>, Failure>>()?;
        let mut tasks = plan.daemons.iter().zip(&commands).map(|(daemon, command)| {
            (daemon.name, command, plan.directory.join(format!("ffclockd-{}.log", daemon.name)))
        });
        let (name, command, log) = tasks.next().ok_or("there is no daemon to show")?;
        let mut first = stage.prepare(&Task { name, command, log: &log, rights: WorkerRights::None })?;
        // The servers listen before the first request.
        std::thread::sleep(SERVER_START);
        (stage.began, stage.began_counter) = (ffclock_sys::mono_now(), ffclock_counter::read_ordered(CounterId::CPU));
        first.release()?;
        for (name, command, log) in tasks {
            let task = Task { name, command, log: &log, rights: WorkerRights::None };
            stage.daemons.push(Worker::beside(&first, &task)?);
        }
        stage.daemons.insert(0, first);
        Ok(stage)
    }

    /// Starts the servers, and prepares the first daemon so that it reaches them.
    fn prepare(&mut self, daemon: &Task<'_>) -> Result<Worker, Failure> {
        let (first, others) = self.starts.split_first().ok_or("there is no server to ask")?;
        let mut server = Worker::prepare(&first.task(), self.network)?;
        let client = Worker::prepare(daemon, self.network)?;
        if self.is_linked() {
            link::join(&server, &client)?;
            others.iter().try_for_each(|start| link::add_address(&server, &start.address))?;
        }
        server.release()?;
        let others = others.iter().map(|start| Worker::beside(&server, &start.task()));
        let others = others.collect::<Result<Vec<_>, Failure>>()?;
        self.servers = std::iter::once(server).chain(others).collect();
        Ok(client)
    }

    /// Seconds since the daemons were started.
    pub(super) fn elapsed_s(&self) -> f64 {
        (ffclock_sys::mono_now() - self.began).as_seconds()
    }

    /// The counter when the daemons were started.
    pub(super) fn began_counter(&self) -> Counter {
        self.began_counter
    }

    /// Whether servers and daemons have a network each, joined by a link.
    fn is_linked(&self) -> bool {
        self.network == WorkerNetwork::Own
    }

    /// How the hosts are joined, in words.
    pub(super) fn network(&self) -> &'static str {
        if self.is_linked() { "two network namespaces joined by veth" } else { "loopback" }
    }

    /// The address of a server: also its name in what a daemon says.
    pub(super) fn address(&self, server: usize) -> &str {
        self.starts.get(server).map_or("", |start| &start.address)
    }

    /// The control socket of a daemon.
    pub(super) fn control(&self, daemon: &str) -> PathBuf {
        control_path(&self.directory, daemon)
    }

    /// Cuts the servers off.
    pub(super) fn cut(&mut self) -> Result<(), Failure> {
        match self.servers.first() {
            Some(server) if self.is_linked() => link::set_carrier(server, Carrier::Down),
            _ => {
                self.servers.clear();
                Ok(())
            }
        }
    }

    /// Brings the servers back.
    pub(super) fn reconnect(&mut self) -> Result<(), Failure> {
        if let (Some(server), true) = (self.servers.first(), self.is_linked()) {
            return link::set_carrier(server, Carrier::Up);
        }
        for start in &self.starts {
            let mut server = Worker::prepare(&start.task(), WorkerNetwork::Shared)?;
            server.release()?;
            self.servers.push(server);
        }
        Ok(())
    }

    /// Fails when anything that should run has ended; says where to look.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        let directory = self.directory.display().to_string();
        let workers = self.servers.iter_mut().chain(&mut self.daemons);
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

    fn daemon_command(&self, plan: &StagePlan<'_>, daemon: &DaemonPlan) -> Result<Vec<String>, Failure> {
        let name = daemon.name;
        let record = record_path(plan.directory, name);
        fs::create_dir_all(&record)?;
        let mut text = format!(
            "counter = \"tsc\"\nstamps = \"{stamps}\"\npage = \"{page}\"\ncontrol = \"{control}\"\nstate = \"off\"\n\
             record = \"{record}\"\nvalid_for = \"60 s\"\nestimator = \"{estimator}\"\n",
            stamps = daemon.stamps,
            page = page_path(plan.directory, name).display(),
            control = control_path(plan.directory, name).display(),
            record = record.display(),
            estimator = plan.estimator,
        );
        for server in daemon.servers {
            let address = self.address(*server);
            let (port, poll) = (plan.program.port(), plan.poll);
            let _ = write!(text, "\n[[server]]\naddress = \"{address}\"\nport = {port}\npoll = \"{poll}\"\n");
        }
        let path = plan.directory.join(format!("ffclockd-{name}.toml"));
        fs::write(&path, text)?;
        Ok(vec![sibling("ffclockd")?, "--config".to_owned(), path.display().to_string()])
    }
}

/// The page file of a daemon.
pub(super) fn page_path(directory: &Path, daemon: &str) -> PathBuf {
    directory.join(format!("{daemon}.page"))
}

fn control_path(directory: &Path, daemon: &str) -> PathBuf {
    directory.join(format!("{daemon}.control"))
}

/// The directory into which a daemon records its exchanges.
pub(super) fn record_path(directory: &Path, daemon: &str) -> PathBuf {
    directory.join(format!("{daemon}.recorded"))
}

/// Makes the directory of the results, without anything of an earlier run that could be taken for this one's.
///
/// The page of an earlier run would serve until the daemon's first estimate, and it is about another truth.
pub(super) fn prepare_directory(path: &Path, daemons: &[DaemonPlan]) -> Result<PathBuf, Failure> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
    for daemon in daemons {
        let page = page_path(path, daemon.name);
        if page.exists() {
            fs::remove_file(&page)?;
        }
        let recorded = record_path(path, daemon.name);
        if recorded.exists() {
            fs::remove_dir_all(&recorded)?;
        }
    }
    Ok(fs::canonicalize(path)?)
}

/// Each server has an address of its own: two names of one address are one server. On loopback it is also this
/// process's own, so that several demonstrations can run at the same time.
fn server_address(network: WorkerNetwork, number: usize) -> String {
    match (network, number) {
        (WorkerNetwork::Own, 0) => link::SERVER_ADDRESS.to_owned(),
        (WorkerNetwork::Own, number) => format!("10.77.0.{}", 10 + number),
        (WorkerNetwork::Shared, number) => {
            let [.., high, low] = std::process::id().to_be_bytes();
            format!("127.{high}.{low}.{}", 1 + number)
        }
    }
}

fn server_command(
    plan: &StagePlan<'_>,
    server: &ServerPlan,
    address: &str,
) -> Result<(Vec<String>, WorkerRights), Failure> {
    match (&plan.program, plan.reference) {
        (ServerProgram::Chronyd(program), _) => Ok((chronyd_command(plan, program)?, WorkerRights::AllButTheClock)),
        (ServerProgram::Ntpd(program), _) => Ok((ntpd_command(plan, program)?, WorkerRights::AllButTheClock)),
        (ServerProgram::Embedded, TruthSource::Embedded(truth)) => {
            let listen = format!("{address}:{}", plan.program.port());
            let mut command = vec![sibling("ffclock-lab")?];
            command.extend(["lab", "server", "--listen", &listen].map(str::to_owned));
            command.extend(as_arguments(&truth).into_iter().chain(server.options.iter().cloned()));
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
        plan.program.port(),
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
pub(crate) fn sibling(name: &str) -> Result<String, Failure> {
    let here = std::env::current_exe()?;
    let path = here.with_file_name(name);
    if !path.exists() {
        return Err(format!("{} is missing; build the whole workspace: cargo build --release", path.display()).into());
    }
    Ok(path.display().to_string())
}

//! Starts the chain: three hosts, each a network namespace joined to the next by veth, or all on loopback.

use super::config::{self, ChainPlaces};
use super::logs::{ClientLog, LogKind};
use super::{ChainArgs, FOLLOWERS, HOST, absolute};
use crate::demo::sampler::ObservedClock;
use crate::demo::stage::sibling;
use crate::failure::Failure;
use crate::lab::link::{self, LinkAddresses};
use crate::lab::worker::{Task, Worker, WorkerNetwork, WorkerRights, namespaces_permitted};
use ffclock_units::Span;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A server listens by then.
const SERVER_START: Duration = Duration::from_millis(500);
/// The host serves a time by then, on a machine that does other things.
const HOST_PATIENCE: Duration = Duration::from_secs(20);
/// The clients have made their pages by then.
const PAGE_PATIENCE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(50);

/// The programs of other projects.
struct ForeignPrograms {
    chronyd: PathBuf,
    ntpd: Option<PathBuf>,
}

/// Everything that runs.
pub(super) struct ServedChain {
    places: ChainPlaces,
    network: WorkerNetwork,
    foreign: ForeignPrograms,
    /// Time between two replies that are judged.
    ask_every: Span,
    /// In the order in which they are ended.
    workers: Vec<Worker>,
    left_out: Vec<String>,
}

impl ServedChain {
    /// Starts one host after the other; the clients begin when the host has a time to serve.
    pub(super) fn start(args: &ChainArgs, output: &Path) -> Result<Self, Failure> {
        let mut left_out = Vec::new();
        let network = match namespaces_permitted() {
            Ok(()) => WorkerNetwork::Own,
            Err(reason) => {
                eprintln!("network namespaces are not permitted here ({reason}); using plain loopback");
                WorkerNetwork::Shared
            }
        };
        let foreign = foreign_programs(args, network, &mut left_out)?;
        let places = ChainPlaces::new(fresh(output)?, network);
        let mut chain =
            ServedChain { places, network, foreign, ask_every: args.ask_every, workers: Vec::new(), left_out };
        if let Err(reason) = chain.places.certify() {
            chain.leave_out(&format!("NTS: {reason}"));
        }
        let [mut reference, mut host, mut clients] = [chain.reference()?, chain.host()?, chain.chronyd_as_client()?];
        if network == WorkerNetwork::Own {
            let places = &chain.places;
            link::join(&reference, &host)?;
            link::join_at(&host, &clients, &LinkAddresses { server: &places.ways[0], client: config::CLIENT_ADDRESS })?;
            places.ways[1..].iter().try_for_each(|address| link::add_address(&host, address))?;
        }
        reference.release()?;
        sleep(SERVER_START);
        host.release()?;
        let servers = chain.servers_beside(&host)?;
        chain.workers.push(host);
        chain.workers.extend(servers);
        chain.workers.push(reference);
        chain.wait_for_the_host()?;
        clients.release()?;
        let others = chain.clients_beside(&clients)?;
        chain.workers.splice(0..0, others.into_iter().chain([clients]));
        Ok(chain)
    }

    fn leave_out(&mut self, what: &str) {
        eprintln!("SKIP: {what}");
        self.left_out.push(what.to_owned());
    }

    fn prepared(&self, name: &str, command: &[String], rights: WorkerRights) -> Result<Worker, Failure> {
        let log = self.places.log(name);
        Worker::prepare(&Task { name, command, log: &log, rights }, self.network)
    }

    fn beside(
        &self,
        host: &Worker,
        (name, command): (&str, &[String]),
        rights: WorkerRights,
    ) -> Result<Worker, Failure> {
        let log = self.places.log(name);
        Worker::beside(host, &Task { name, command, log: &log, rights })
    }

    fn chronyd(&self, name: &str, text: &str) -> Result<Vec<String>, Failure> {
        let file = self.places.write(&format!("{name}.conf"), text)?;
        let mut command = vec![self.foreign.chronyd.display().to_string()];
        // -x: it must not touch the system clock; it has not the right to, either.
        command.extend(["-x", "-d", "-u", &user()?].map(str::to_owned));
        if !is_root() {
            command.push("-U".to_owned());
        }
        command.extend(["-f".to_owned(), file.display().to_string()]);
        Ok(command)
    }

    fn ffclockd(&self, name: &str, server: &str) -> Result<Vec<String>, Failure> {
        let file = self.places.write(&format!("{name}.toml"), &self.places.ffclockd(name, server))?;
        Ok(vec![sibling("ffclockd")?, "--config".to_owned(), file.display().to_string()])
    }

    fn reference(&self) -> Result<Worker, Failure> {
        let name = "reference";
        let command = self.chronyd(name, &self.places.reference_chronyd(name)?)?;
        self.prepared(name, &command, WorkerRights::AllButTheClock)
    }

    fn host(&self) -> Result<Worker, Failure> {
        let command = self.ffclockd(HOST, &self.places.reference_server())?;
        self.prepared(HOST, &command, WorkerRights::None)
    }

    fn chronyd_as_client(&self) -> Result<Worker, Failure> {
        let name = "client-chronyd";
        let command = self.chronyd(name, &self.places.client_chronyd(name)?)?;
        self.prepared(name, &command, WorkerRights::AllButTheClock)
    }

    /// ffclock-serve, and chronyd: one for each of its addresses, because it listens at one.
    fn servers_beside(&self, host: &Worker) -> Result<Vec<Worker>, Failure> {
        let file = self.places.write("ffclock-serve.toml", &self.places.ffclock_serve(self.ask_every))?;
        let command = [sibling("ffclock-serve")?, "--config".to_owned(), file.display().to_string()];
        let rights = WorkerRights::AllButTheClock;
        let mut servers = vec![self.beside(host, ("ffclock-serve", &command), rights)?];
        for way in self.places.ways_in_use().filter(|way| *way >= 2) {
            let name = format!("host-chronyd-{way}");
            let command = self.chronyd(&name, &self.places.host_chronyd(&name, way)?)?;
            servers.push(self.beside(host, (&name, &command), rights)?);
        }
        Ok(servers)
    }

    /// All clients but the first, and the one that asks both servers.
    fn clients_beside(&self, clients: &Worker) -> Result<Vec<Worker>, Failure> {
        let every = self.ask_every.to_string();
        let mut asking = vec![sibling("ffclock-lab")?, "lab".into(), "ask".into(), "--every".into(), every];
        asking.extend([0, 2].map(|way| self.places.endpoint(way)));
        let mut others = vec![self.beside(clients, ("ask", &asking), WorkerRights::None)?];
        for way in self.places.ways_in_use() {
            let name = FOLLOWERS[way];
            let command = self.ffclockd(name, &self.places.server(way))?;
            others.push(self.beside(clients, (name, &command), WorkerRights::None)?);
        }
        if let Some(ntpd) = &self.foreign.ntpd {
            let name = "client-ntpd";
            let file = self.places.write("client-ntpd.conf", &self.places.client_ntpd(name)?)?;
            let command = [ntpd.display().to_string(), "-n".into(), "-c".into(), file.display().to_string()];
            others.push(self.beside(clients, (name, &command), WorkerRights::AllButTheClock)?);
        }
        Ok(others)
    }

    fn wait_for_the_host(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        let page = self.places.page(HOST);
        while !ObservedClock::of_page(&page, HOST).is_ok_and(|clock| clock.shows_a_time()) {
            self.check()?;
            if begun.elapsed() > HOST_PATIENCE {
                return Err(format!("ffclockd has no time after {HOST_PATIENCE:?}; {}", self.where_to_look()).into());
            }
            sleep(STEP);
        }
        // The others of the host need as long.
        sleep(SERVER_START);
        Ok(())
    }

    /// The page of the host first, then those behind each way.
    pub(super) fn pages(&mut self) -> Result<Vec<ObservedClock>, Failure> {
        let followers: Vec<_> = self.places.ways_in_use().map(|way| FOLLOWERS[way]).collect();
        let begun = Instant::now();
        let mut clocks = Vec::new();
        for name in [vec![HOST], followers].concat() {
            let page = self.places.page(name);
            clocks.push(loop {
                self.check()?;
                match ObservedClock::of_page(&page, name) {
                    Err(_) if begun.elapsed() < PAGE_PATIENCE => sleep(STEP),
                    outcome => break outcome?,
                }
            });
        }
        Ok(clocks)
    }

    /// What is written by those that have no page.
    pub(super) fn logs(&self) -> Vec<ClientLog> {
        let places = &self.places;
        let chrony = places.place("client-chronyd");
        let log =
            |kind, path| ClientLog { kind, path, addresses: places.ways_in_use().map(|way| places.way(way)).collect() };
        let mut logs = vec![
            log(LogKind::Replies, places.log("ask")),
            log(LogKind::ChronydEstimates, chrony.join("statistics.log")),
            log(LogKind::ChronydClaims, chrony.join("measurements.log")),
        ];
        if self.foreign.ntpd.is_some() {
            logs.push(log(LogKind::NtpdPeers, places.place("client-ntpd").join("peers")));
        }
        logs
    }

    /// How the hosts are joined, in words.
    pub(super) fn network_words(&self) -> &'static str {
        match self.network {
            WorkerNetwork::Own => "three network namespaces joined by veth",
            WorkerNetwork::Shared => "loopback",
        }
    }

    fn where_to_look(&self) -> String {
        format!("what all said is in {}", self.places.directory().display())
    }

    /// Fails when anything that should run has ended; says where to look.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        let where_to_look = self.where_to_look();
        let alive = self.workers.iter_mut().try_for_each(Worker::check_alive);
        alive.map_err(|failure| format!("{failure}; {where_to_look}").into())
    }

    /// Ends everything cleanly, clients first; what was left out.
    pub(super) fn finish(mut self) -> Vec<String> {
        self.workers.iter_mut().for_each(Worker::terminate);
        self.left_out
    }
}

fn foreign_programs(
    args: &ChainArgs,
    network: WorkerNetwork,
    left_out: &mut Vec<String>,
) -> Result<ForeignPrograms, Failure> {
    let chronyd = absolute(&args.chronyd)?;
    starts(&chronyd)?;
    let mut leave_out = |reason: &str| {
        eprintln!("SKIP: ntpd: {reason}");
        left_out.push(format!("ntpd: {reason}"));
    };
    let ntpd = match &args.ntpd {
        None => {
            leave_out("no program was named (--ntpd)");
            None
        }
        Some(_) if network == WorkerNetwork::Shared => {
            leave_out("it needs a network namespace, because it wants port 123");
            None
        }
        Some(path) => {
            let path = absolute(path)?;
            starts(&path)?;
            Some(path)
        }
    };
    Ok(ForeignPrograms { chronyd, ntpd })
}

fn starts(program: &Path) -> Result<(), Failure> {
    let shown = program.display();
    let ended = Command::new(program).arg("--version").output().map_err(|error| format!("{shown}: {error}"))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(format!("{shown} does not start: {}", said.trim()).into())
}

/// The directory of the run, without anything of an earlier one, closed to others as chronyd demands.
fn fresh(output: &Path) -> Result<PathBuf, Failure> {
    let run = output.join("run");
    if run.exists() {
        fs::remove_dir_all(&run)?;
    }
    fs::DirBuilder::new().mode(0o750).create(&run)?;
    Ok(run)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn user() -> Result<String, Failure> {
    let said = Command::new("id").arg("-un").output()?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

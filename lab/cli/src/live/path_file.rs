//! The path of a run in the file that the router (`router.c`) maps: how long a frame waits that comes at a time, in
//! each direction. The delays are those of the simulator's path, drawn slot by slot, so that all contestants meet the
//! same.

use super::interposer;
use super::monitor::truth_ns;
use super::plan::LivePlan;
use crate::failure::Failure;
use ffclock_sim::{Path as SimulatedPath, Scenario};
use ffclock_units::{Direction, Span};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAGIC: u64 = u64::from_le_bytes(*b"FFLIVEP1");
/// Within it all frames of one direction wait equally long.
pub(super) const SLOT_NS: i64 = 50_000_000;
/// In place of a delay.
pub(super) const LOST: u32 = u32::MAX;
const SOURCE: &str = include_str!("router.c");
/// Where in the file the time of the first slot stands.
const ORIGIN_AT: u64 = 8;

/// Which part of a run's time a file is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathTime {
    /// The whole run.
    pub(super) length: Span,
    /// What earlier sessions have watched.
    pub(super) begin: Span,
}

/// The delays of a plan [ns], to the server and from it; none where its links are direct.
pub(super) fn delays(plan: &LivePlan, time: PathTime, seed: u64) -> Result<Option<Vec<[u32; 2]>>, Failure> {
    let Some(text) = plan.scenario(time.length) else { return Ok(None) };
    let scenario = Scenario::parse(plan.name, &text).map_err(|error| error.to_string())?;
    let mut path = SimulatedPath::new(&scenario.path, (seed, "live"));
    let slots = (time.length.as_nanos() / i128::from(SLOT_NS)).max(0) + 1;
    let mut delay = |direction: Direction, at: Span| {
        let [arrival, _] = path.travel(direction, at);
        arrival.and_then(|arrival| u32::try_from((arrival - at).as_nanos()).ok()).unwrap_or(LOST)
    };
    let at = |slot: i128| Span::from_nanos(slot * i128::from(SLOT_NS));
    // Those of earlier sessions are drawn too: a resumed run has the path that it would have had.
    let drawn = (0..slots).map(|slot| [Direction::Outgoing, Direction::Incoming].map(|way| delay(way, at(slot))));
    let first = usize::try_from(time.begin.as_nanos() / i128::from(SLOT_NS)).unwrap_or_default();
    Ok(Some(drawn.skip(first).collect()))
}

/// Writes the delays from now on and compiles the router; gives its command. None where the links are direct.
pub(super) fn prepare(directory: &Path, plan: &LivePlan, time: PathTime, seed: u64) -> Result<Option<Route>, Failure> {
    let Some(delays) = delays(plan, time, seed)? else { return Ok(None) };
    let program = interposer::compile(directory, ("router", SOURCE), &[])?;
    Ok(Some(Route { program, delays, file: directory.join("path") }))
}

/// What the router needs.
pub(super) struct Route {
    program: PathBuf,
    file: PathBuf,
    delays: Vec<[u32; 2]>,
}

impl Route {
    /// The router's command for this many links. It must not be woken late, so that it goes before all others.
    pub(super) fn command(&self, links: usize) -> Vec<String> {
        let [program, file] = [&self.program, &self.file].map(|path| path.display().to_string());
        ["chrt", "--fifo", "10"].map(str::to_owned).into_iter().chain([program, file, links.to_string()]).collect()
    }

    /// Writes the path as if it began now: a router must have one from its start on.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let slots = i64::try_from(self.delays.len()).unwrap_or(i64::MAX);
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([truth_ns()?, SLOT_NS, slots].iter().flat_map(|number| number.to_ne_bytes()));
        bytes.extend(self.delays.iter().flatten().flat_map(|delay| delay.to_ne_bytes()));
        fs::write(&self.file, bytes).map_err(|error| self.failure(&error))
    }

    /// Lets the path that was written begin now, also for a router that has it mapped.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        let origin = truth_ns()?.to_ne_bytes();
        let file = OpenOptions::new().write(true).open(&self.file);
        file.and_then(|file| file.write_all_at(&origin, ORIGIN_AT)).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        format!("{}: {error}", self.file.display()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::link::inside;
    use crate::lab::worker::{Task, Worker, WorkerNetwork, WorkerRights, namespaces_permitted};
    use crate::live::network;
    use crate::live::uml::Scratch;
    use std::time::{Duration, Instant};

    fn drawn(plan: &str, begin_s: i64) -> Vec<[u32; 2]> {
        let time = PathTime { length: Span::from_secs(1000), begin: Span::from_secs(begin_s) };
        delays(&LivePlan::named(plan).unwrap(), time, 1).unwrap().unwrap()
    }

    #[test]
    fn the_way_to_the_server_alone_becomes_longer_at_half_time() {
        let drawn = drawn("shift-16", 0);
        let floor = |slots: &[[u32; 2]], way: usize| slots.iter().map(|slot| slot[way]).min().unwrap();
        let (first, second) = drawn.split_at(10_000);
        // Smallest delays of ten thousand that chance gave, with a mean queue of 4 us.
        assert!(floor(second, 0).abs_diff(floor(first, 0) + 900_000) < 100);
        assert!(floor(second, 1).abs_diff(floor(first, 1)) < 100);
    }

    #[test]
    fn congestion_comes_with_pauses_and_a_resumed_run_goes_on_in_it() {
        let all = drawn("congested-16", 0);
        let longest =
            |seconds: core::ops::Range<usize>| all[seconds.start * 20..seconds.end * 20].iter().flatten().max();
        assert!(longest(0..420) > Some(&2_000_000) && longest(421..429) < Some(&250_000));
        assert_eq!(drawn("congested-16", 600), all[12_000..]);
    }

    #[test]
    fn the_phases_of_ptp_are_quiet_congested_and_one_way_longer() {
        let drawn = drawn("ptp-1", 0);
        let floor = |slots: &[[u32; 2]], way: usize| slots.iter().map(|slot| slot[way]).min().unwrap();
        let (congested, change) = (9_000..13_000, 17_000);
        let share = |slots: &[[u32; 2]]| {
            slots.iter().flatten().filter(|delay| **delay > 500_000).count() as f64 / (2 * slots.len()) as f64
        };
        assert!(share(&drawn[..congested.start]) < 0.01 && share(&drawn[congested.clone()]) > 0.02);
        assert!(share(&drawn[congested.end..change]) < 0.01);
        assert!(floor(&drawn[change + 1..], 0).abs_diff(floor(&drawn[..change], 0) + 900_000) < 1_000);
        assert!(floor(&drawn[change + 1..], 1).abs_diff(floor(&drawn[..change], 1)) < 1_000);
    }

    /// The directory of a test, which is gone with this value, and a route of no delay in it.
    struct Place(Scratch);

    impl Place {
        fn new(name: &str) -> Place {
            Place(Scratch::new(name))
        }

        fn route(&self, program: PathBuf) -> Route {
            let route = Route { program, delays: vec![[0, 0]], file: self.0.join("path") };
            route.write().unwrap();
            route
        }

        /// A process with a network of its own.
        fn host(&self, name: &str, command: &[String]) -> Worker {
            let log = self.0.join(name).with_extension("log");
            let task = Task { name, command, log: &log, rights: WorkerRights::AllButTheClock };
            Worker::prepare(&task, WorkerNetwork::Own).unwrap()
        }
    }

    #[test]
    fn a_path_begins_when_the_run_does() {
        let place = Place::new("path-begins");
        let route = place.route(PathBuf::new());
        std::thread::sleep(Duration::from_millis(50));
        let before = truth_ns().unwrap();
        route.begin().unwrap();
        let bytes = fs::read(&route.file).unwrap();
        let origin = i64::from_ne_bytes(bytes[8..16].try_into().unwrap());
        assert!((before..=truth_ns().unwrap()).contains(&origin), "{before} {origin}");
        assert_eq!((&bytes[..8], bytes.len()), (&MAGIC.to_ne_bytes()[..], 32 + 8), "the rest is as it was");
    }

    /// What a process has used of the processors, in hundredths of a second: fields 14 and 15 of proc_pid_stat(5).
    fn used(pid: u32) -> u64 {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum()
    }

    /// Sends packets to a port of the server where nothing listens, until the answer comes that says so: a router that
    /// is still starting loses some.
    const ASKED: &str = "export LC_ALL=C; exec 3<>/dev/udp/$0/9; \
        until { echo ask >&3; read -r -t 0.2 -u 3; } 2>&1 | grep -q 'Connection refused'; do :; done";

    #[test]
    fn a_router_waits_in_peace_when_a_contestant_ends_and_serves_the_others() {
        let place = Place::new("router-rests");
        let built = namespaces_permitted().and_then(|()| interposer::compile(&place.0, ("router", SOURCE), &[]));
        let program = match built {
            Ok(program) => program,
            Err(failure) => return println!("SKIP: a router whose contestant ends: {failure}"),
        };
        let waits = ["sleep", "600"].map(str::to_owned);
        let [server, ends, stays] = ["server", "ends", "stays"].map(|name| place.host(name, &waits));
        // Without the priority that it has in a run, so that one that does not rest leaves the machine to others.
        let mut router = place.host("router", &place.route(program).command(2)[3..]);
        network::join_by(&router, &server, &ends, 0).unwrap();
        network::join_by(&router, &server, &stays, 1).unwrap();
        router.release().unwrap();
        let ask =
            || inside(&stays.pid().to_string(), &["timeout", "30", "bash", "-c", ASKED, &network::server_address(1)]);
        ask().unwrap();
        drop(ends);
        let begun = Instant::now();
        while network::has_device(router.pid(), &network::router_end(0)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "the network of the one that ended stays");
            std::thread::sleep(Duration::from_millis(20));
        }
        let before = used(router.pid());
        std::thread::sleep(Duration::from_secs(3));
        let after = used(router.pid());
        assert!(after - before < 10, "{} hundredths of a second of the processor in 3 s", after - before);
        ask().unwrap();
        router.check_alive().unwrap();
    }

    #[test]
    fn a_direct_link_needs_no_router() {
        let time = PathTime { length: Span::from_secs(10), begin: Span::ZERO };
        assert!(delays(&LivePlan::named("quiet-16").unwrap(), time, 1).unwrap().is_none());
    }
}

//! `ffclock-lab theta rank`.

use crate::{Failure, GlobalOptions, waiting_time};
use ffclock_counter::CounterId;
use ffclock_theta::algorithm::{AlgorithmForm, Quorum};
use ffclock_theta_live::{
    Coordinator, Deadlines, Injected, LiveError, LiveSummary, RankOptions, RankPlace, Replies, Settings, place_from,
    run_rank,
};
use ffclock_units::Span;
use std::fmt::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ mpirun -n 4 ffclock-lab theta rank --f 1 --rendezvous node0:9217 --log run-1
  $ srun -n 7 ffclock-lab theta rank --f 2 --delay \"1 ms\" --rendezvous node0:9217 --log run-2
  $ ffclock-lab theta rank --rank 0 --size 4 --log run-3
  $ mpirun -n 4 ffclock-lab theta rank --f 1 --rendezvous node0:9217 --fault 'kind = \"crash\", process = 2, from = \"1 s\"'
  $ mpirun -n 4 ffclock-lab theta rank --f 1 --rendezvous node0:9217 --json | jq .failures

Rank and size come from the launcher: Open MPI, PMIx, PMI, Slurm, Kubernetes (JOB_COMPLETION_INDEX) or Nomad. All ranks meet at rank 0,
which gathers their logs and writes the one log. Exit code 1 if a rank died or did not come to the end: the log is then marked as incomplete.")]
pub(super) struct Args {
    /// Which rank this is [default: from the launcher]
    #[arg(long)]
    rank: Option<u32>,
    /// How many ranks there are: n [default: from the launcher]
    #[arg(long)]
    size: Option<u32>,
    /// The address of rank 0
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9217")]
    rendezvous: String,
    /// Where rank 0 listens [default: the address of the rendezvous]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// What to call this rank's host [default: its name]; ranks of the same name, counter and page are on the same host
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    #[command(flatten)]
    pub(super) course: RankRun,
}

/// About 2 GiB.
const EVENTS_MAX: u32 = 1 << 25;

/// What is run: the same for all ranks.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct RankRun {
    /// Byzantine processes tolerated: there must be at least 3f + 1 ranks [default: the most that they allow]
    #[arg(long, value_name = "COUNT")]
    pub(super) f: Option<u32>,
    /// The last round that is sent
    #[arg(long, value_name = "ROUND", default_value_t = 1000)]
    pub(super) rounds: u64,
    /// The delay D between a quorum and the next round
    #[arg(long, value_name = "TIME", default_value = "0 s", value_parser = waiting_time)]
    pub(super) delay: Span,
    /// Run the algorithm as the paper prints it, which is known to fail
    #[arg(long)]
    pub(super) printed: bool,
    /// How long ranks wait for one another at the start
    #[arg(long, value_name = "TIME", default_value = "30 s", value_parser = waiting_time)]
    pub(super) patience: Span,
    /// How long the run may take
    #[arg(long, value_name = "TIME", default_value = "10 min", value_parser = waiting_time)]
    pub(super) limit: Span,
    /// A real-time priority (first in, first out) for the algorithm, 1 to 99; the log says where it is not permitted
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(super) priority: Option<u8>,
    /// Answer each message at once and measure round trips too, as in the paper: their averages hide what one-way
    /// delays show
    #[arg(long)]
    pub(super) round_trips: bool,
    /// A fault, with the keys that faults have in a scenario; may be given several times
    #[arg(long, value_name = "KEYS")]
    pub(super) fault: Vec<String>,
    /// The counter that stamps events, such as tsc or monotonic-raw; ranks of one machine must take the same, unless
    /// each has a page of its own [default: the counter of the page, or what the checks of the CPU counter decide]
    #[arg(long, value_name = "COUNTER", value_parser = ffclock_counter::usable_counter)]
    pub(super) counter: Option<CounterId>,
    /// Largest number of events each rank keeps in memory until the end; further ones are only counted, and the log is
    /// partial
    #[arg(long, value_name = "COUNT", default_value_t = EVENTS_MAX, value_parser = clap::value_parser!(u32).range(1..=EVENTS_MAX.into()))]
    pub(super) events: u32,
    /// The directory of the log, on the host of rank 0; it must not hold one yet
    #[arg(long, value_name = "DIR")]
    pub(super) log: Option<PathBuf>,
}

impl RankRun {
    pub(super) fn settings(&self, size: u32) -> Result<Settings, Failure> {
        let tolerated = self.f.unwrap_or(Quorum::most_faulty(size));
        Quorum::new(size, tolerated).map_err(|error| Failure::usage(error.to_string()))?;
        let form = if self.printed { AlgorithmForm::Printed } else { AlgorithmForm::Repaired };
        let delay_ns = u64::try_from(self.delay.as_nanos()).unwrap_or(0);
        let replies = if self.round_trips { Replies::RoundTrips } else { Replies::None };
        let (rounds, faults) = (self.rounds, self.fault.clone());
        let settings = Settings { processes: size, tolerated, form, rounds, delay_ns, replies, faults };
        settings.check_faults(size).map_err(|error| Failure::usage(format!("--fault: {error}")))?;
        Ok(settings)
    }
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let place = place_from(args.rank, args.size, |name| std::env::var(name).ok()).map_err(Failure::usage)?;
    let course = &args.course;
    let settings = course.settings(place.size)?;
    let options = RankOptions {
        place,
        settings: settings.clone(),
        rendezvous: args.rendezvous.clone(),
        patience: course.patience,
        priority: course.priority,
        host: args.host.clone(),
        counter: course.counter,
        page: global.page.clone(),
        events_max: course.events,
    };
    if place.rank > 0 {
        return run_rank(&options).map_err(|error| named(place, &error));
    }
    let listen = args.listen.map_or_else(|| address_of(&args.rendezvous), Ok)?;
    let coordinator = bind(listen, &settings, course)?;
    let own = std::thread::spawn(move || run_rank(&options));
    let gathered = coordinator.gather();
    // Rank 0 itself may be the missing one, and then has the reason.
    let own = if gathered.is_ok() || own.is_finished() {
        own.join().unwrap_or_else(|_| Err(LiveError::Protocol("rank 0 has panicked".to_owned())))
    } else {
        Ok(())
    };
    let mut gathered = match (gathered, &own) {
        (Ok(gathered), _) => gathered,
        (Err(_), Err(why @ LiveError::Settings(_))) => return Err(named(place, why)),
        (Err(error), _) => return Err(named(place, &error)),
    };
    if let Some(log) = &course.log {
        gathered.write(log).map_err(|error| named(place, &error))?;
    }
    report(global, &gathered.summary(), course.log.as_deref())?;
    own.map_err(|error| named(place, &error))
}

/// In a namespace the address may not be there yet: tries as long as the others wait.
fn bind(listen: SocketAddr, settings: &Settings, course: &RankRun) -> Result<Coordinator, Failure> {
    let begun = std::time::Instant::now();
    loop {
        match Coordinator::bind(listen, settings.clone(), Deadlines { patience: course.patience, limit: course.limit })
        {
            Err(LiveError::Network { source, .. })
                if source.kind() == std::io::ErrorKind::AddrNotAvailable
                    && begun.elapsed() < crate::std_duration(course.patience) =>
            {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            bound => {
                return bound
                    .map(|bound| bound.above(course.priority))
                    .map_err(|error| Failure::from(error.to_string()));
            }
        }
    }
}

fn address_of(text: &str) -> Result<SocketAddr, Failure> {
    let complaint = |why: &str| Failure::usage(format!("--rendezvous {text}: {why}"));
    let mut addresses = text.to_socket_addrs().map_err(|error| complaint(&error.to_string()))?;
    addresses.next().ok_or_else(|| complaint("no address"))
}

fn named(place: RankPlace, error: &LiveError) -> Failure {
    Failure::from(format!("rank {} of {}: {error}", place.rank, place.size))
}

/// The end of a run, for people or as JSON; a run in which something went wrong has failed.
fn report(global: &GlobalOptions, summary: &LiveSummary, log: Option<&Path>) -> Result<(), Failure> {
    global.answer(summary, || render(summary, log))?;
    if summary.failures.is_empty() { Ok(()) } else { Err(Failure::silent(Failure::FAILED)) }
}

fn render(summary: &LiveSummary, log: Option<&Path>) -> String {
    let LiveSummary { sent, perceived, dropped, lost, refused, unstamped, unrecorded, buffer_bytes, .. } = summary;
    let mut text = format!(
        "{sent} messages sent, {perceived} perceived, {dropped} dropped by full socket buffers (of {buffer_bytes} bytes or more), {lost} lost elsewhere\n\
         {refused} packets refused, {unstamped} kernel stamps missing, {unrecorded} events not recorded\n"
    );
    if summary.replies.0 > 0 {
        let _ = writeln!(text, "{} replies sent, {} came back", summary.replies.0, summary.replies.1);
    }
    if summary.injected != Injected::default() {
        let Injected { lost, duplicated, held, never_released, untrue, missed, slowed } = summary.injected;
        let _ = writeln!(
            text,
            "injected faults: {lost} messages lost, {duplicated} duplicated, {held} held ({never_released} to the end), {untrue} untrue, {missed} missed by \
             processes that were down, {slowed} processed slowly"
        );
    }
    let priorities = summary.priorities.join(", ");
    let _ = writeln!(
        text,
        "least round {}; priorities: control {}; {priorities}",
        summary.least_round, summary.control_priority
    );
    if !summary.lagging.is_empty() {
        let _ = writeln!(text, "not at the last round: ranks {:?}", summary.lagging);
    }
    for failure in &summary.failures {
        let _ = writeln!(text, "PARTIAL: {failure}");
    }
    if let Some(log) = log {
        let _ = writeln!(text, "log: {}", log.display());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_run_is_reported() {
        let summary = LiveSummary { failures: vec!["rank 2 on b: died".to_owned()], ..LiveSummary::default() };
        assert!(render(&summary, Some(Path::new("x"))).contains("PARTIAL: rank 2 on b: died\nlog: x"));
    }

    #[test]
    fn an_address_is_needed() {
        assert_eq!(address_of("127.0.0.1:9217"), Ok(([127, 0, 0, 1], 9217).into()));
        assert_eq!(address_of("nonsense").unwrap_err().code, Failure::USAGE);
    }
}

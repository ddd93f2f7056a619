//! `ffclock-lab theta run`: starts all ranks.

mod namespaces;
mod softirq;

use super::load::{LoadSource, softirqs_possible};
use super::rank::RankRun;
use crate::{Failure, GlobalOptions};
use clap::ValueEnum;
use ffclock_counter::{Choice, choose};
use ffclock_theta_live::LoadLevel;
use ffclock_units::Span;
use namespaces::{LinkRate, Namespaces};
use softirq::UrgentSoftirqs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta run --netns 4 --f 1 --rounds 1000 --delay \"1 ms\" --log run-1
  $ ffclock-lab theta run --netns 7 --f 2 --priority 50 --load timer=jumps:10..90 --load-priority 20 --log run-2
  $ ffclock-lab theta run --netns 4 --f 1 --link-rate 100 --load network=90 --log run-5
  $ ffclock-lab theta run --hosts node0,node1,node2,node3 --f 1 --log run-3
  $ ffclock-lab theta run --netns 4 --f 1 --fault 'kind = \"two-faced\", process = 3' --log run-4
  $ ffclock-lab theta run --netns 4 --f 1 --log run-6 --json | jq -c '[.sent, .perceived, .failures]'

--netns makes network namespaces of its own, joined by a bridge, and needs root; they vanish with the run. --hosts starts `ffclock-lab theta
rank` on each host through ssh; the log is written on the first. For other launchers use `ffclock-lab theta rank` itself.")]
pub(super) struct Args {
    /// Start this many processes on this machine, each in a network namespace of its own
    #[arg(long, value_name = "COUNT", required_unless_present = "hosts")]
    netns: Option<u32>,
    /// Start a process on each of these hosts, through ssh
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', conflicts_with = "netns")]
    hosts: Vec<String>,
    /// The port at which the ranks meet
    #[arg(long, default_value_t = 9217)]
    port: u16,
    /// With --netns: the rate of each host's link in both directions, in Mbit/s, as of a switch; by tc's token bucket
    #[arg(long, value_name = "MBITS", conflicts_with = "hosts")]
    link_rate: Option<LinkRate>,
    /// A load beside each process, with --netns: network, traffic, processor, timer, interrupt or disk with its level
    /// in per cent, and softirq once for all processors; may be given several times
    #[arg(long, value_name = "KIND=LEVEL", value_parser = load_of, conflicts_with = "hosts")]
    load: Vec<(LoadSource, LoadLevel)>,
    /// With --netns: the page of each host, in the order of hosts; they are then compared like hosts with different
    /// counters
    #[arg(long, value_name = "FILE,...", value_delimiter = ',', requires = "netns")]
    pages: Vec<PathBuf>,
    /// The real-time priority of the loads on the network, below that of the algorithm; other loads get one less.
    /// Reported where it is not permitted
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=98))]
    load_priority: Option<u8>,
    /// With --netns: the real-time priority of the kernel's threads for soft interrupts (ksoftirqd) during the run.
    /// They are the whole machine's, and get their normal priority back however the run ends
    #[arg(long, value_name = "PRIORITY", conflicts_with = "hosts", value_parser = clap::value_parser!(u8).range(1..=99))]
    softirq_priority: Option<u8>,
    #[command(flatten)]
    course: RankRun,
}

/// `timer=jumps:10..90`.
fn load_of(text: &str) -> Result<(LoadSource, LoadLevel), String> {
    let (kind, level) = text.split_once('=').ok_or("say KIND=LEVEL, such as timer=50 or network=jumps:10..90")?;
    let kind = LoadSource::from_str(kind, true)?;
    Ok((kind, level.parse()?))
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let size = args.netns.unwrap_or(args.hosts.len() as u32);
    args.course.settings(size)?;
    if !args.pages.is_empty() && args.pages.len() != size as usize {
        return Err(Failure::usage(format!("--pages names {} pages for {size} hosts", args.pages.len())));
    }
    let softirqs: Vec<_> = args.load.iter().filter(|(kind, _)| *kind == LoadSource::Softirq).collect();
    if softirqs.len() > 1 {
        return Err(Failure::usage("softirq loads all processors, so there is one such load"));
    }
    softirqs.into_iter().try_for_each(|(_, level)| softirqs_possible(*level))?;
    let mut ranks = match args.netns {
        Some(_) => in_namespaces(global, args, size)?,
        None => on_hosts(global, args)?,
    };
    ranks.wait()
}

/// The children, and what must live as long as they do.
struct Ranks {
    children: Vec<Child>,
    loads: Loads,
    _namespaces: Option<Namespaces>,
    _softirqs: Option<UrgentSoftirqs>,
}

/// Running loads, and the files that they write.
#[derive(Default)]
struct Loads(Vec<(String, Child)>, Vec<PathBuf>);

impl Loads {
    /// Ends all loads. The names of those that had ended already.
    fn end(&mut self) -> Vec<String> {
        let mut gone = Vec::new();
        for (name, mut child) in self.0.drain(..) {
            if let Ok(Some(status)) = child.try_wait() {
                gone.push(format!("{name} ({status})"));
            }
            // Fails only for those that have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        for file in self.1.drain(..) {
            let _ = std::fs::remove_file(file);
        }
        gone
    }
}

impl Drop for Loads {
    fn drop(&mut self) {
        self.end();
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Fails only for those that have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Ranks {
    /// Waits for all. Rank 0 ends last and has reported what went wrong.
    fn wait(&mut self) -> Result<(), Failure> {
        let mut code = 0;
        // Rank 0 ends last: only then is there nothing left to load.
        for child in &mut self.children {
            let status = child.wait()?;
            // Codes of others, such as ssh, and signals have no meaning here.
            let is_ours = |code: &i32| *code <= i32::from(Failure::USAGE);
            code = code.max(status.code().filter(is_ours).unwrap_or(i32::from(Failure::FAILED)));
        }
        let gone = self.loads.end();
        match u8::try_from(code) {
            Ok(0) if !gone.is_empty() => {
                let gone = gone.join(", ");
                Err(Failure::from(format!("the run was not loaded to its end; loads that ended before: {gone}")))
            }
            Ok(0) => Ok(()),
            code => Err(Failure::silent(code.unwrap_or(Failure::FAILED))),
        }
    }
}

fn in_namespaces(global: &GlobalOptions, args: &Args, size: u32) -> Result<Ranks, Failure> {
    let own = std::env::current_exe()?;
    let namespaces = Namespaces::new(size, args.link_rate)?;
    let softirqs = args.softirq_priority.map(UrgentSoftirqs::begin).transpose()?;
    // Decided once: a check that is repeated by each rank while all are busy may come out differently for one of them.
    let counter = args.course.counter.or_else(|| args.pages.is_empty().then(|| choose(Choice::Auto).kind));
    let mut children = Vec::new();
    for rank in 0..size {
        let mut words = rank_words(args, &format!("{}:{}", Namespaces::address(0), args.port));
        words.extend(["--rank".to_owned(), rank.to_string(), "--size".to_owned(), size.to_string()]);
        words.push(format!("--host=host{rank}"));
        words.extend(counter.map(|counter| format!("--counter={}", counter.name())));
        words.extend(args.pages.get(rank as usize).map(|page| format!("--page={}", page.display())));
        if global.json {
            words.push("--json".to_owned());
        }
        let mut command = namespaces.inside(rank);
        children.push(command.arg(&own).args(words).spawn()?);
    }
    let loads = start_loads(args, size, &namespaces)?;
    Ok(Ranks { children, loads, _namespaces: Some(namespaces), _softirqs: softirqs })
}

/// Starts the loads of --load on each host. In the paper's order of priorities: network above processor, both below
/// the algorithm.
fn start_loads(args: &Args, size: u32, namespaces: &Namespaces) -> Result<Loads, Failure> {
    let mut loads = Loads::default();
    for host in 0..size {
        // Soft interrupts load all processors, which the hosts share.
        for (kind, level) in args.load.iter().filter(|(kind, _)| host == 0 || *kind != LoadSource::Softirq) {
            let mut command = namespaces.inside(host);
            let name = kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
            let length = format!("{} ns", (args.course.limit + args.course.patience).as_nanos());
            command.arg(std::env::current_exe()?).args([
                "theta",
                "load",
                &name,
                "--level",
                &level.to_string(),
                "--for",
                &length,
            ]);
            if let Some(priority) = args.load_priority {
                let lower = u8::from(!kind.sends());
                command.args(["--priority", &priority.saturating_sub(lower).max(1).to_string()]);
            }
            if kind.sends() {
                command.args(args.link_rate.map(|rate| format!("--rate={}", rate.mbits())));
                for other in (0..size).filter(|&other| other != host) {
                    command.args(["--to", &format!("{}:9", Namespaces::address(other))]);
                }
            }
            let file = std::env::temp_dir().join(format!("ffclock-theta-load-{}-{host}", std::process::id()));
            if *kind == LoadSource::Disk {
                command.arg("--file").arg(&file);
                loads.1.push(file);
            }
            // What a load has done is no part of the run's answer.
            command.stdout(Stdio::null());
            loads.0.push((format!("{name} on host{host}"), command.spawn()?));
        }
    }
    Ok(loads)
}

fn on_hosts(global: &GlobalOptions, args: &Args) -> Result<Ranks, Failure> {
    if let Some(host) = args.hosts.iter().find(|host| host.is_empty() || host.starts_with('-')) {
        return Err(Failure::usage(format!("--hosts: {host:?} is no host")));
    }
    let size = args.hosts.len().to_string();
    let mut ranks = Ranks { children: Vec::new(), loads: Loads::default(), _namespaces: None, _softirqs: None };
    for (rank, host) in args.hosts.iter().enumerate() {
        let mut words = rank_words(args, &format!("{}:{}", args.hosts[0], args.port));
        words.extend(["--rank".to_owned(), rank.to_string(), "--size".to_owned(), size.clone()]);
        words.extend(["--listen".to_owned(), format!("0.0.0.0:{}", args.port)]);
        words.extend(args.course.counter.map(|counter| format!("--counter={}", counter.name())));
        if global.json {
            words.push("--json".to_owned());
        }
        // ssh hands the words to a shell.
        let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
        let mut ssh = Command::new("ssh");
        // Ranks read nothing. Our standard input is left for the next command.
        ssh.args(["-o", "BatchMode=yes", host, "ffclock-lab"]).args(quoted).stdin(Stdio::null());
        let remedy = "install an ssh client, or start `ffclock-lab theta rank` on each host by another launcher";
        ranks.children.push(ssh.spawn().map_err(|error| Failure::from(format!("ssh: {error}; {remedy}")))?);
    }
    Ok(ranks)
}

/// `theta rank` with the course, as words of a command line.
fn rank_words(args: &Args, rendezvous: &str) -> Vec<String> {
    let course = &args.course;
    let time = |span: Span| format!("{} ns", span.as_nanos());
    let mut words: Vec<String> = ["theta", "rank", "--rendezvous", rendezvous].map(str::to_owned).into();
    let mut option = |name: &str, value: String| words.push(format!("--{name}={value}"));
    course.f.into_iter().for_each(|f| option("f", f.to_string()));
    option("rounds", course.rounds.to_string());
    option("delay", time(course.delay));
    option("patience", time(course.patience));
    option("limit", time(course.limit));
    option("events", course.events.to_string());
    course.priority.into_iter().for_each(|priority| option("priority", priority.to_string()));
    course.log.iter().for_each(|log| option("log", log.display().to_string()));
    course.fault.iter().for_each(|fault| option("fault", fault.clone()));
    if course.round_trips {
        words.push("--round-trips".to_owned());
    }
    if course.printed {
        words.push("--printed".to_owned());
    }
    words
}

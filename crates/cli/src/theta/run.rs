//! `ffclock theta run`: starts all ranks.

mod namespaces;

use super::rank::Course;
use crate::{Failure, Global};
use ffclock_units::Span;
use namespaces::Namespaces;
use std::process::{Child, Command};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock theta run --netns 4 --f 1 --rounds 1000 --delay \"1 ms\" --log run-1
  $ ffclock theta run --netns 7 --f 2 --priority 50 --log run-2
  $ ffclock theta run --hosts node0,node1,node2,node3 --f 1 --log run-3

--netns makes network namespaces of its own, joined by a bridge, and needs root; they vanish with the run. --hosts starts `ffclock theta
rank` on each host through ssh; the log is written on the first. For other launchers use `ffclock theta rank` itself.")]
pub(super) struct Args {
    /// Start so many processes on this machine, each in a network namespace of its own
    #[arg(long, value_name = "COUNT", required_unless_present = "hosts")]
    netns: Option<u32>,
    /// Start a process on each of these hosts, through ssh
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', conflicts_with = "netns")]
    hosts: Vec<String>,
    /// The port at which the ranks meet
    #[arg(long, default_value_t = 9217)]
    port: u16,
    #[command(flatten)]
    course: Course,
}

pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let size = args.netns.unwrap_or(args.hosts.len() as u32);
    args.course.settings(size)?;
    let mut ranks = match args.netns {
        Some(_) => in_namespaces(global, args, size)?,
        None => on_hosts(global, args)?,
    };
    ranks.wait()
}

/// The children, and what must live as long as they do.
struct Ranks {
    children: Vec<Child>,
    _namespaces: Option<Namespaces>,
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Those that have ended are not there any more.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Ranks {
    /// Rank 0 ends last and has told what went wrong.
    fn wait(&mut self) -> Result<(), Failure> {
        let mut code = 0;
        for child in &mut self.children {
            let status = child.wait()?;
            code = code.max(status.code().unwrap_or(i32::from(Failure::FAILED)));
        }
        match u8::try_from(code) {
            Ok(0) => Ok(()),
            code => Err(Failure::silent(code.unwrap_or(Failure::FAILED))),
        }
    }
}

fn in_namespaces(global: &Global, args: &Args, size: u32) -> Result<Ranks, Failure> {
    let own = std::env::current_exe()?;
    let namespaces = Namespaces::new(size)?;
    let mut children = Vec::new();
    for rank in 0..size {
        let mut words = rank_words(args, &format!("{}:{}", Namespaces::address(0), args.port));
        words.extend(["--rank".to_owned(), rank.to_string(), "--size".to_owned(), size.to_string()]);
        if global.json {
            words.push("--json".to_owned());
        }
        let mut command = namespaces.inside(rank);
        children.push(command.arg(&own).args(words).spawn()?);
    }
    Ok(Ranks { children, _namespaces: Some(namespaces) })
}

fn on_hosts(global: &Global, args: &Args) -> Result<Ranks, Failure> {
    let size = args.hosts.len().to_string();
    let mut children = Vec::new();
    for (rank, host) in args.hosts.iter().enumerate() {
        if host.is_empty() || host.starts_with('-') {
            return Err(Failure::usage(format!("--hosts: {host:?} is no host")));
        }
        let mut words = rank_words(args, &format!("{}:{}", args.hosts[0], args.port));
        words.extend(["--rank".to_owned(), rank.to_string(), "--size".to_owned(), size.clone()]);
        words.extend(["--listen".to_owned(), format!("0.0.0.0:{}", args.port)]);
        if global.json {
            words.push("--json".to_owned());
        }
        // ssh hands the words to a shell.
        let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
        children.push(Command::new("ssh").args(["-o", "BatchMode=yes", host, "ffclock"]).args(quoted).spawn()?);
    }
    Ok(Ranks { children, _namespaces: None })
}

/// `theta rank` with the course, as words of a command line.
fn rank_words(args: &Args, rendezvous: &str) -> Vec<String> {
    let course = &args.course;
    let time = |span: Span| format!("{} ns", span.as_nanos());
    let mut words: Vec<String> = ["theta", "rank", "--rendezvous", rendezvous].map(str::to_owned).into();
    let mut option = |name: &str, value: String| words.push(format!("--{name}={value}"));
    option("f", course.f.to_string());
    option("rounds", course.rounds.to_string());
    option("delay", time(course.delay));
    option("patience", time(course.patience));
    option("limit", time(course.limit));
    course.priority.into_iter().for_each(|priority| option("priority", priority.to_string()));
    course.log.iter().for_each(|log| option("log", log.display().to_string()));
    if course.printed {
        words.push("--printed".to_owned());
    }
    words
}

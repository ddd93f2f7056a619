//! `ffclock-lab probe watch`: the real traffic of a running UDP service.

use super::table;
use crate::columns::{counted, us};
use crate::counters::conditions::Conditions;
use crate::failure::Failure;
use crate::text;
use crate::{GlobalOptions, output, waiting_time};
use ffclock_counter::nominal;
use ffclock_probe::findings::Findings;
use ffclock_probe::watch::program::{self, ServiceProgram, Socket};
use ffclock_probe::watch::{Calls, Role, ServiceWatcher, WatchCounts, WatchPlan, Watched};
use ffclock_statistics::Spread;
use ffclock_units::Span;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::ControlFlow;

/// Between two looks at the kernel's buffers.
const EVERY: Span = Span::from_millis(4);

/// Options of `ffclock-lab probe watch`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab probe watch --port 123                     (chronyd, ntpd, ntpd-rs: server or client)
  $ ffclock-lab probe watch --port 319 --for '2 min'       (ptp4l)
  $ ffclock-lab probe watch --port 123 --pid 812 --json
  $ nsenter --net --target 812 ffclock-lab probe watch --port 123    (a service in another network namespace)

Sends nothing and changes nothing of the program. Needs root: CAP_NET_RAW for packets, CAP_SYS_ADMIN for
what the kernel and the program do with them, CAP_SYS_PTRACE for the options of the program's sockets.")]
pub(super) struct Args {
    /// The service's UDP port
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// How long to watch
    #[arg(long = "for", value_name = "SPAN", default_value = "30 s", value_parser = waiting_time)]
    length: Span,
    /// The device, if not all of them
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The program [default: every program with a socket on that port]
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
}

/// Watches, and prints.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    check_namespace(args.pid)?;
    let counter = ffclock_counter::choose(ffclock_counter::Choice::Auto).kind;
    let nominal = nominal(counter).map_err(|error| format!("the counter cannot be used: {error}"))?;
    let mut programs = program::find(args.port, args.pid);
    let is_server = programs.iter().flat_map(|program| &program.sockets).any(|socket| socket.local.port() == args.port);
    let sees_calls = program::sees_kernel_numbers();
    let threads = if sees_calls { program::threads(&programs) } else { BTreeSet::new() };
    let plan = WatchPlan {
        port: args.port,
        device: args.device.clone(),
        threads,
        role: if is_server { Role::Server } else { Role::Client },
        counter,
        period: nominal.period,
    };
    let mut watched = watch(plan, args)?;
    // A client that has its socket only while it asks was found by its packets.
    if let Some(process) = watched.sender.filter(|_| sees_calls).and_then(program::process_of) {
        programs = program::find(args.port, Some(process));
    }
    if !sees_calls {
        watched.unavailable.push("the program's system calls: this is a process namespace of its own".to_owned());
    }
    if watched.counts.outgoing + watched.counts.incoming == 0 {
        return Err(nothing(args, &programs, &watched));
    }
    let findings = Findings::of(&watched.passages, nominal.period);
    let turnaround_ns = Spread::of(&watched.turnarounds_ns);
    if global.json {
        return output::json(&json!({
            "about": {
                "port": args.port, "device": args.device, "counter": counter.name(), "counter_hz": nominal.period.as_hertz(),
                "role": if is_server { Role::Server } else { Role::Client }, "length_s": watched.length_s,
            },
            "programs": programs, "calls": watched.calls, "counts": watched.counts, "unavailable": watched.unavailable,
            "findings": findings, "turnaround_ns": turnaround_ns,
        }));
    }
    let mut page = head(args, &watched);
    page += &programs_text(args.port, &programs, watched.calls);
    page.push('\n');
    table::tables(&findings, &mut page);
    if let Some(spread) = turnaround_ns {
        let _ = writeln!(
            page,
            "\nfrom a request at the tap to its reply there, in the host: min {}, median {}, 99 % {}, max {} us",
            us(spread.min),
            us(spread.median),
            us(spread.p99),
            us(spread.max)
        );
    }
    output::write(&page)
}

/// What passes the network of another namespace is not seen from here.
fn check_namespace(pid: Option<u32>) -> Result<(), Failure> {
    let Some(pid) = pid else { return Ok(()) };
    let theirs = std::fs::read_link(format!("/proc/{pid}/ns/net"))
        .map_err(|error| format!("process {pid} cannot be looked at: {error}"))?;
    if std::fs::read_link("/proc/self/ns/net").is_ok_and(|ours| ours == theirs) {
        return Ok(());
    }
    let remedy = format!("nsenter --net --target {pid} ffclock-lab probe watch ...");
    Err(format!("process {pid} is in another network namespace; run this in it: {remedy}").into())
}

fn watch(plan: WatchPlan, args: &Args) -> Result<Watched, Failure> {
    let failed = |error: ffclock_probe::watch::WatchError| Failure::from(error.to_string());
    let mut watcher = ServiceWatcher::start(plan).map_err(failed)?;
    let _ = Conditions::look_for(args.length, EVERY, || {
        watcher.look().map_err(failed)?;
        Ok(if watcher.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    watcher.finish().map_err(failed)
}

fn nothing(args: &Args, programs: &[ServiceProgram], watched: &Watched) -> Failure {
    let who = match programs {
        [] => "no program has a socket with that port in this network namespace".to_owned(),
        [first, ..] => format!("{} (process {}) has a socket with that port", first.name, first.pid),
    };
    let device = args.device.as_deref().map_or_else(String::new, |device| format!(" on {device}"));
    format!(
        "no UDP packet from or to port {} passed{device} within {}; {who}; watch for longer (--for), or in the namespace of the service",
        args.port,
        text::duration(watched.length_s)
    )
    .into()
}

fn head(args: &Args, watched: &Watched) -> String {
    let WatchCounts { outgoing, incoming, asked, answered, single, .. } = watched.counts;
    let counts = &watched.counts;
    let mut line = format!(
        "UDP port {} for {}: {outgoing} packets out, {incoming} in; {asked} exchanges asked by this host, {answered} answered, {single} packets alone",
        args.port,
        text::duration(watched.length_s)
    );
    line += &counted([
        (counts.seen_again, "copies on further devices"),
        (counts.ambiguous, "packets left out as ambiguous"),
        (counts.without_events, "packets without events"),
        (counts.without_calls, "packets without a system call"),
        (counts.tap_dropped, "dropped by the tap"),
        (counts.tap_stamps_discarded, "tap stamps discarded"),
        (counts.events_lost, "events lost by the kernel"),
    ]);
    line.push('\n');
    for reason in &watched.unavailable {
        let _ = writeln!(line, "not available: {}", text::printable(reason));
    }
    line
}

/// Which stamps the program can be using, and what cannot be known about that.
fn programs_text(port: u16, programs: &[ServiceProgram], calls: Option<Calls>) -> String {
    let mut page = String::new();
    for program in programs {
        let _ = writeln!(page, "\nprogram {} (process {}) can be using:", text::printable(&program.name), program.pid);
        let is_of_service =
            |socket: &Socket| socket.local.port() == port || socket.remote.is_some_and(|remote| remote.port() == port);
        if !program.sockets.iter().any(is_of_service) {
            page +=
                "  it has its sockets for this port only for a moment, and none now: what they ask for is unknown\n";
        }
        for socket in &program.sockets {
            let remote = socket.remote.map_or_else(String::new, |remote| format!(" to {remote}"));
            let asked = match &socket.stamps {
                Ok(stamps) if stamps.is_empty() => "asks the kernel for no stamps".to_owned(),
                Ok(stamps) => stamps.join("; "),
                Err(reason) => reason.clone(),
            };
            let _ = writeln!(page, "  socket {} at {}{remote}: {asked}", socket.descriptor, socket.local);
        }
        if program.taps > 0 {
            let _ = writeln!(page, "  {} packet sockets: stamps of the tap", program.taps);
        }
        for clock in &program.clocks {
            let _ = writeln!(page, "  {} is open", text::printable(clock));
        }
    }
    if programs.is_empty() {
        page += "\nno program with such a socket is visible, and none was seen to send: it may be in another process namespace\n";
    }
    if let Some(calls) = calls {
        let _ = writeln!(
            page,
            "  seen: {} calls to send; {} to receive that can hand over stamps, {} that cannot; {} looks at the error queue, where transmit stamps are",
            calls.sends, calls.receives_with_stamps, calls.receives_without, calls.error_queue_reads
        );
    }
    page += "  not to be known: clocks that it reads in user space, stamps asked for packet by packet, and what it does with any of them\n";
    page
}

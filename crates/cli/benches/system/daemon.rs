//! The daemon as a process: its memory, and how often it wakes up. A chronyd that asks the same server as often stands beside it.

use crate::figure::Figure;
use crate::lab::{FFCLOCK, Lab, Program, Usage, free_port};
use crate::{Outcome, setting};
use std::error::Error;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// The bursts of the start are over by then.
const SETTLING: Duration = Duration::from_secs(25);
const GOAL_MIB: f64 = 8.0;
/// What may wake the daemon for one request: the timer, the stamp of its departure, the reply. (At a poll of 1 s the sign of life is due
/// only with a publication, which comes with the reply.)
const WAKES_PER_REQUEST: f64 = 3.0;

pub(crate) fn run() -> Outcome {
    let seconds = setting("FFCLOCK_BENCH_WATCH_SECONDS", 60.0)?;
    let lab = Lab::new("daemon")?;
    let port = free_port()?;
    let mut server = lab.start_reference_server(port)?;
    sleep(Duration::from_millis(500));
    server.check_alive()?;
    let mut daemon = lab.start_daemon("ffclockd", port, "1 s")?;
    let mut chronyd = lab.start_chronyd_client(port)?;
    eprintln!("daemon: settling for {} s, then watched for {seconds} s", SETTLING.as_secs());
    sleep(SETTLING);
    daemon.check_alive()?;
    chronyd.check_alive()?;
    // Questions wake the daemon too, so they are asked outside the time that is watched.
    let asked = requests(&lab)?;
    let before = [daemon.usage()?, chronyd.usage()?];
    sleep(Duration::from_secs_f64(seconds));
    let after = [daemon.usage()?, chronyd.usage()?];
    let asked = requests(&lab)? - asked;
    report(&before, &after, asked)?;
    still_alive([daemon, chronyd, server])
}

fn report([before, chrony_before]: &[Usage; 2], [after, chrony_after]: &[Usage; 2], asked: f64) -> Outcome {
    let sleeps = after.sleeps - before.sleeps;
    Figure::new("ffclockd, resident memory", after.resident_mib, "MiB")
        .against("chronyd on the same server", chrony_after.resident_mib)
        .at_most(GOAL_MIB)
        .report()?;
    Figure::new("ffclockd, wake-ups", sleeps, "")
        .against(&format!("its timers and packets for {asked} requests, at most"), WAKES_PER_REQUEST * asked)
        .ratio_at_most(1.0)
        .report()?;
    Figure::new("ffclockd, wake-ups per request", sleeps / asked, "")
        .against("chronyd on the same server", (chrony_after.sleeps - chrony_before.sleeps) / asked)
        .report()?;
    Ok(())
}

/// Requests that the daemon has sent so far.
fn requests(lab: &Lab) -> Result<f64, Box<dyn Error>> {
    let mut command = Command::new(FFCLOCK);
    command.arg("--control").arg(lab.path("ffclockd.control")).args(["status", "--json"]);
    let output = command.output()?;
    let status: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let sent = status.pointer("/sources/0/sent").and_then(serde_json::Value::as_f64);
    sent.ok_or_else(|| format!("ffclock status said {}", String::from_utf8_lossy(&output.stdout)).into())
}

/// What has died meanwhile has not been measured.
fn still_alive(programs: [Program; 3]) -> Outcome {
    programs.into_iter().try_for_each(|mut program| program.check_alive())
}

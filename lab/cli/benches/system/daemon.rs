//! The daemon as a process: its memory, and how often it wakes up. A chronyd that asks the same server as often stands
//! beside it.

use crate::figure::Figure;
use crate::lab::{Lab, Program, Usage, beside, free_port};
use crate::{Outcome, setting};
use std::error::Error;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// The bursts of the start are over by then.
const SETTLING: Duration = Duration::from_secs(25);
const GOAL_MIB: f64 = 8.0;
/// What may wake the daemon for one request: the timer, the stamp of its departure, the reply.
const WAKES_PER_REQUEST: f64 = 3.0;
/// A daemon that has nothing to publish gives a sign of life this often [s].
const SIGN_OF_LIFE_S: f64 = 20.0;
/// It compares the counters of two CPUs this often [s], for which it goes there and back: the kernel puts it to sleep
/// for either.
const CPUS_COMPARED_S: f64 = 60.0;
const SLEEPS_PER_COMPARISON: f64 = 2.0;

/// The daemons under observation: one that asks each second, one whose next request is far away, and a chronyd that
/// asks each second.
struct Observed {
    busy: Program,
    idle: Program,
    chronyd: Program,
}

impl Observed {
    fn start(lab: &Lab, port: u16) -> Result<Self, Box<dyn Error>> {
        Ok(Observed {
            busy: lab.start_daemon("busy", port, "1 s")?,
            idle: lab.start_daemon("idle", port, "1024 s")?,
            chronyd: lab.start_chronyd_client(port)?,
        })
    }

    fn usage(&mut self) -> Result<[Usage; 3], Box<dyn Error>> {
        let [busy, idle, chronyd] = [&mut self.busy, &mut self.idle, &mut self.chronyd].map(|program| {
            program.check_alive()?;
            program.usage()
        });
        Ok([busy?, idle?, chronyd?])
    }
}

pub(crate) fn run() -> Outcome {
    let seconds = setting("FFCLOCK_BENCH_WATCH_SECONDS", 60.0)?;
    let lab = Lab::new("daemon")?;
    let port = free_port()?;
    let mut server = lab.start_reference_server(port)?;
    sleep(Duration::from_millis(500));
    server.check_alive()?;
    let mut observed = Observed::start(&lab, port)?;
    eprintln!("daemon: settling for {} s, then watched for {seconds} s", SETTLING.as_secs());
    sleep(SETTLING);
    // Questions wake the daemon too, so they are asked outside the time that is watched.
    let asked = requests(&lab)?;
    let before = observed.usage()?;
    sleep(Duration::from_secs_f64(seconds));
    let after = observed.usage()?;
    let asked = requests(&lab)? - asked;
    server.check_alive()?;
    report(&after, asked, &std::array::from_fn(|program| after[program].sleeps - before[program].sleeps), seconds)
}

fn report([busy, _, chronyd]: &[Usage; 3], asked: f64, sleeps: &[f64; 3], seconds: f64) -> Outcome {
    Figure::new("ffclockd, resident memory", busy.resident_mib, "MiB")
        .against("chronyd on the same server", chronyd.resident_mib)
        .at_most(GOAL_MIB)
        .report()?;
    Figure::new(format!("ffclockd at poll 1 s, wake-ups in {seconds} s"), sleeps[0], "")
        .against(&format!("timers and packets of {asked} requests"), WAKES_PER_REQUEST * asked)
        .ratio_at_most(1.0)
        .report()?;
    Figure::new(format!("ffclockd between two requests, wake-ups in {seconds} s"), sleeps[1], "")
        .against(
            "signs of life, and visits to another CPU",
            (seconds / SIGN_OF_LIFE_S).ceil() + SLEEPS_PER_COMPARISON * (seconds / CPUS_COMPARED_S).ceil(),
        )
        .ratio_at_most(1.0)
        .report()?;
    Figure::new("ffclockd, wake-ups per request", sleeps[0] / asked, "")
        .against("chronyd on the same server", sleeps[2] / asked)
        .report()?;
    Ok(())
}

/// Requests that the daemon has sent so far.
fn requests(lab: &Lab) -> Result<f64, Box<dyn Error>> {
    let mut command = Command::new(beside("ffclock", "ffclock-cli")?);
    command.arg("--control").arg(lab.path("busy.control")).args(["status", "--json"]);
    let output = command.output()?;
    let status: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let sent = status.pointer("/sources/0/sent").and_then(serde_json::Value::as_f64);
    sent.ok_or_else(|| format!("ffclock status said {}", String::from_utf8_lossy(&output.stdout)).into())
}

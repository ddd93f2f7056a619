//! A log of message delays that no memory holds: simulated, written to disk, and analysed from there. Only when asked
//! for by name: 10^9 messages take 19 GB of the disk, and minutes.

use crate::Outcome;
use crate::figure::Figure;
use crate::lab::{FFCLOCK_LAB, Lab};
use crate::replay::watch;
use rustix::fs::{Advice, fadvise, statvfs};
use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Processes; at four, what comes once a broadcast weighs most.
const PROCESSES: u64 = 4;
/// Messages, unless FFCLOCK_BENCH_MESSAGES says otherwise.
const MESSAGES: f64 = 1e9;
/// Bytes of a message on disk, and a tenth more.
const BYTES_MAX: f64 = 21.0;
/// Million messages a second: 10^9 in 2 minutes.
const GOAL: f64 = 8.34;
/// Memory [MiB].
const MEMORY_GOAL: f64 = 2048.0;

/// A command that has run to its end.
struct Ended {
    report: serde_json::Value,
    wall_s: f64,
    cpu_s: f64,
    peak_mib: f64,
}

pub(crate) fn run() -> Outcome {
    let quick = std::env::var_os("FFCLOCK_BENCH_QUICK").is_some();
    let wanted = crate::setting("FFCLOCK_BENCH_MESSAGES", if quick { MESSAGES / 100.0 } else { MESSAGES })?;
    let rounds = (wanted / (PROCESSES * PROCESSES) as f64).ceil();
    let lab = Lab::new("theta-disk")?;
    let log = lab.path("log");
    require_room(&lab.path("."), wanted * BYTES_MAX)?;

    eprintln!("theta-disk: simulating {wanted:.0} messages");
    let written = ended(
        Command::new(FFCLOCK_LAB)
            .args(["theta", "simulate", "--json", "--f", "1", "--n", &PROCESSES.to_string()])
            .args(["--rounds", &format!("{rounds}"), "--log"])
            .arg(&log),
    )?;
    let messages = written.report["perceived"].as_f64().ok_or("the report of simulate has no messages")?;
    let bytes = leave_no_page_in_memory(&log)?;
    eprintln!("theta-disk: analysing {:.1} GB", bytes / 1e9);
    let analysed = ended(Command::new(FFCLOCK_LAB).args(["theta", "analyse", "--json"]).arg(&log))?;
    if analysed.report["whole"] != true || analysed.report["counts"]["messages"].as_f64() != Some(messages) {
        return Err(format!("the analysis has not counted the {messages} messages: {}", analysed.report).into());
    }
    report("simulated and written to a log, n = 4", messages, &written)
        .beside(format!("{:.1} bytes a message, {:.0} s", bytes / messages, written.wall_s))
        .report()?;
    report("log on disk, n = 4, everything", messages, &analysed)
        .beside(format!(
            "{messages:.3e} messages, {:.1} GB not in memory before, {:.1} s",
            bytes / 1e9,
            analysed.wall_s
        ))
        .at_least(GOAL)
        .report()?;
    Figure::new("theta: log on disk, by CPU time", messages / analysed.cpu_s / 1e6, "million/s")
        .against("by the clock", messages / analysed.wall_s / 1e6)
        .report()?;
    Figure::new("theta: log on disk, peak memory", analysed.peak_mib, "MiB").at_most(MEMORY_GOAL).report()?;
    Ok(())
}

fn report(what: &str, messages: f64, ended: &Ended) -> Figure {
    Figure::new(format!("theta: {what}"), messages / ended.wall_s / 1e6, "million/s")
}

fn require_room(directory: &Path, bytes: f64) -> Outcome {
    let room = statvfs(directory)?;
    let free = room.f_bavail as f64 * room.f_frsize as f64;
    if free < bytes {
        let (free, bytes) = (free / 1e9, bytes / 1e9);
        return Err(format!("the log takes {bytes:.0} GB below the build directory, and {free:.0} GB are free").into());
    }
    Ok(())
}

fn ended(command: &mut Command) -> Result<Ended, Box<dyn Error>> {
    let begun = Instant::now();
    let child = command.stdout(Stdio::piped()).spawn()?;
    let (peak_mib, cpu_s) = watch(&child)?;
    let wall_s = begun.elapsed().as_secs_f64();
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status).into());
    }
    Ok(Ended { report: serde_json::from_slice(&output.stdout)?, wall_s, cpu_s, peak_mib })
}

/// Writes back what is only in memory of the log, and has the kernel forget its pages; how many bytes there are.
fn leave_no_page_in_memory(log: &Path) -> Result<f64, Box<dyn Error>> {
    let mut bytes = 0.0;
    for entry in std::fs::read_dir(log)? {
        let file = File::open(entry?.path())?;
        file.sync_data()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
        bytes += file.metadata()?.len() as f64;
    }
    Ok(bytes)
}

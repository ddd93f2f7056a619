//! A store that gives each transaction a time, and shows it only when that time has certainly passed: who sees one
//! transaction and then begins another, on any host whose bound holds, gets a later time for it.
//!
//! Usage: commit_wait [PAGE]

use ffclock::{Clock, VotedTime, certainly_before, latest};
use ffclock_units::{Moment, Tai};
use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A transaction that was written, with its time.
struct Commit {
    time: Moment<Tai>,
    seen: VotedTime,
}

/// Writes by `write`, and returns when others may see it.
fn commit(clock: &Clock, write: impl FnOnce(Moment<Tai>)) -> Result<Commit, Box<dyn Error>> {
    let time = latest(&clock.time_of(clock.stamp())?);
    // What this takes is taken off the wait.
    write(time);
    let seen = clock.wait_certainly_after(time, Duration::from_secs(10))?;
    Ok(Commit { time, seen })
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = match std::env::args_os().nth(1) {
        Some(page) => Clock::open_at(&PathBuf::from(page))?,
        None => Clock::open()?,
    };
    let mut store = Vec::new();
    let begin = Instant::now();
    let first = commit(&clock, |time| store.push((time, "first")))?;
    let second = commit(&clock, |time| store.push((time, "second")))?;
    assert!(first.time < second.time && certainly_before(&first.seen, &second.seen));
    println!("2 commits in order, in {} us", begin.elapsed().as_micros());
    Ok(())
}

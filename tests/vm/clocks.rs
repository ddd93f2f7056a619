//! Three clocks of a guest, read from its host: those of two ffclockd, of which one asks a server and one has its
//! host's page alone, and the system clock, which chronyd sets there. `make demo-snapshot` draws what they say.

use super::clock::text;
use super::probe::{self, Guest, VALUES, Wanted};
use super::{Outcome, tsc};
use ffclock::{Clock, OpenError, Status};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

/// No time, or no largest error is known.
const NONE: u64 = u64::MAX;
/// Instead of a status: there is no clock, or no time.
const REFUSED: u64 = 100;
/// Of the system clock.
const SYSTEM: u64 = 101;

/// How often each clock is read in one look; the quickest answer counts.
const TRIES: usize = 3;

/// In the guest: gives the readings of all three clocks through the memory at `path`, until it is killed.
pub(crate) fn answer(path: &str) -> Outcome {
    let claimed = Arc::new(AtomicU64::new(NONE));
    let teller = claimed.clone();
    thread::spawn(move || {
        loop {
            teller.store(largest_error().unwrap_or(NONE), Ordering::Relaxed);
            thread::sleep(Duration::from_millis(500));
        }
    });
    let of_dependent = || Clock::open_at(Path::new("/run/ffclock-dependent/page"));
    let (mut independent, mut dependent) = (Clock::open(), of_dependent());
    probe::answer(path, |wanted| match wanted {
        Wanted::Counter => [tsc(), NONE, REFUSED],
        Wanted::Independent => published(&mut independent, Clock::open),
        Wanted::Dependent => published(&mut dependent, of_dependent),
        Wanted::System => [system(), claimed.load(Ordering::Relaxed), SYSTEM],
    })
}

/// Time, bound and status of a published clock, which is opened again where it could not be so far.
fn published(clock: &mut Result<Clock, OpenError>, open: impl Fn() -> Result<Clock, OpenError>) -> [u64; VALUES] {
    if clock.is_err() {
        *clock = open();
    }
    let reading = clock.as_ref().ok().and_then(|clock| clock.now().ok());
    let Some(reading) = reading.filter(|reading| reading.status != Status::Unsynchronised) else {
        return [NONE, NONE, REFUSED];
    };
    let time = u64::try_from(reading.time.since_origin().as_nanos()).unwrap_or(NONE);
    let bound = u64::try_from(reading.bound.as_nanos_up()).unwrap_or(NONE);
    [time, bound, reading.status as u64]
}

fn system() -> u64 {
    now().ok().and_then(|now| u64::try_from(now).ok()).unwrap_or(NONE)
}

/// The largest error of the system clock that a daemon has stated to the kernel [ns], while it keeps it synchronised.
fn largest_error() -> Option<u64> {
    let output = Command::new("adjtimex").output().ok()?.stdout;
    let said = String::from_utf8_lossy(&output);
    let number = |name: &str| -> Option<u64> {
        let line = said.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
        line.trim().split(' ').next()?.parse().ok()
    };
    const UNSYNCHRONISED: u64 = 0x40;
    let is_synchronised = number("status:")? & UNSYNCHRONISED == 0;
    Some(number("maxerror:")? * 1000).filter(|_| is_synchronised)
}

/// The errors of all three clocks by this machine's system clock, as CSV, until it is killed: which clock, seconds
/// since 1970, half the time that the answer took, its status, error and bound; times without a unit in ns.
pub(crate) fn watch(path: &str) -> Outcome {
    let mut guest = Guest::open(path)?;
    println!("clock,at_s,half_ns,status,error_ns,bound_ns");
    loop {
        thread::sleep(Duration::from_millis(100));
        let clocks = [Wanted::Independent, Wanted::Dependent, Wanted::System];
        let answers = guest.ask(clocks, TRIES)?;
        for (name, answer) in ["independent", "dependent", "chronyd"].iter().zip(answers) {
            let Some(answer) = answer else { continue };
            let [time, bound, status] = answer.values;
            let [before, after] = answer.time;
            let shown = |value: u64, away: i128| match value {
                NONE => "-".to_owned(),
                value => (i128::from(value) - away).to_string(),
            };
            let (at, half) = (before as f64 * 1e-9, answer.half());
            let (error, bound) = (shown(time, before.midpoint(after)), shown(bound, 0));
            println!("{name},{at:.3},{half},{},{error},{bound}", status_name(status));
        }
    }
}

fn status_name(status: u64) -> &'static str {
    let published = Status::ALL.into_iter().find(|one| *one as u64 == status).map(Status::name);
    published.unwrap_or(if status == SYSTEM { "system" } else { "refused" })
}

/// This machine's system clock [ns since 1970].
pub(crate) fn now() -> Result<i128, String> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(text)?;
    Ok(since.as_nanos().cast_signed())
}

//! Both clocks of a guest, that of ffclockd and the system clock, which another daemon sets there, asked for from
//! outside. `tools/demo snapshot` draws what they say.

use super::clock::{connect, exchange, text};
use super::{Outcome, tsc};
use ffclock_client::Clock;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// No largest error is known.
const NONE: u64 = u64::MAX;

/// Answers each packet with what it says, the time that ffclockd publishes [ns since 1970], its bound [ns] and status,
/// or two dashes and the reason, and the system clock with the largest error that the kernel has for it [ns], until it
/// is killed.
pub(crate) fn answer(port: &str) -> Outcome {
    let socket = UdpSocket::bind(("0.0.0.0", port.parse().map_err(text)?)).map_err(text)?;
    let claimed = Arc::new(AtomicU64::new(NONE));
    let teller = claimed.clone();
    thread::spawn(move || {
        loop {
            teller.store(largest_error().unwrap_or(NONE), Ordering::Relaxed);
            thread::sleep(Duration::from_millis(500));
        }
    });
    let mut buffer = [0; 64];
    let mut clock = Clock::open();
    loop {
        let (length, from) = socket.recv_from(&mut buffer).map_err(text)?;
        clock = clock.or_else(|_| Clock::open());
        let system = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(text)?.as_nanos();
        let said = match clock.as_ref().map_err(text).and_then(|clock| clock.now().map_err(text)) {
            Ok(reading) => {
                let (time, bound) = (reading.time.since_origin().as_nanos(), reading.bound.as_nanos_up());
                format!("{time} {bound} {}", reading.status.name())
            }
            Err(why) => format!("- - {}", why.replace([' ', ','], "_")),
        };
        let claim = match claimed.load(Ordering::Relaxed) {
            NONE => "-".to_owned(),
            claim => claim.to_string(),
        };
        let question = buffer.get(..length).unwrap_or_default();
        socket.send_to(&[question, format!(" {said} {system} {claim}").as_bytes()].concat(), from).map_err(text)?;
    }
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

/// The errors of both clocks as seen from outside, by this machine's system clock, as CSV: seconds since 1970,
/// half the time that the answer took, and then status, error and bound of ffclockd, error and bound of the system
/// clock, all in ns.
pub(crate) fn watch(guest: &str, seconds: f64) -> Outcome {
    let socket = connect(guest)?;
    socket.set_read_timeout(Some(Duration::from_millis(500))).map_err(text)?;
    let begin = Instant::now();
    println!("at_s,half_ns,status,error_ns,bound_ns,system_error_ns,system_bound_ns");
    while begin.elapsed().as_secs_f64() < seconds {
        thread::sleep(Duration::from_millis(100));
        let before = now()?;
        let question = format!("{} ", tsc());
        let answer = exchange(&socket, question.trim_end().as_bytes(), |reply| reply.starts_with(question.as_bytes()));
        let Ok((_, reply, _)) = answer else { continue };
        let (middle, half) = (before.midpoint(now()?), (now()? - before) / 2);
        let said = core::str::from_utf8(&reply).map_err(text)?.trim_start_matches(&question);
        let [time, bound, status, system, claim] = said.split(' ').collect::<Vec<_>>()[..] else { continue };
        let error = |shown: &str| shown.parse::<i128>().map_or("-".to_owned(), |shown| (shown - middle).to_string());
        let (at, ours, theirs) = (before as f64 * 1e-9, error(time), error(system));
        println!("{at:.3},{half},{status},{ours},{bound},{theirs},{claim}");
    }
    Ok(())
}

/// This machine's system clock [ns since 1970].
pub(crate) fn now() -> Result<i128, String> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(text)?;
    Ok(since.as_nanos().cast_signed())
}

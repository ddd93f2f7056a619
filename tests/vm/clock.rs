//! The clock of the guest, asked for its time from outside.

use super::{Found, Outcome, figure, median, tsc};
use ffclock::{Clock, Status};
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Answers each packet with what it says and the time that ffclockd publishes, as `question nanoseconds-since-1970
/// bound-in-ns status`, until it is killed.
pub(crate) fn answer_time(port: &str) -> Outcome {
    let socket = UdpSocket::bind(("0.0.0.0", port.parse().map_err(text)?)).map_err(text)?;
    let mut buffer = [0; 64];
    let mut clock = Clock::open();
    loop {
        let (length, from) = socket.recv_from(&mut buffer).map_err(text)?;
        clock = clock.or_else(|_| Clock::open());
        let said = match &clock {
            Ok(clock) => say(clock),
            Err(error) => error.to_string(),
        };
        let question = buffer.get(..length).unwrap_or_default();
        socket.send_to(&[question, b" ", said.as_bytes()].concat(), from).map_err(text)?;
    }
}

fn say(clock: &Clock) -> String {
    match clock.now() {
        Ok(reading) => {
            let (time, bound) = (reading.time.since_origin().as_nanos(), reading.bound.as_span().as_nanos());
            format!("{time} {bound} {}", reading.status.name())
        }
        Err(error) => error.to_string(),
    }
}

/// A time that a clock showed, between two readings of our TSC.
struct TimeReading {
    before: u64,
    nanos: i128,
    after: u64,
}

impl TimeReading {
    fn middle(&self) -> f64 {
        self.before as f64 / 2.0 + self.after as f64 / 2.0
    }
}

/// An answer whose round trip is longer than twice this [ns] says nothing about a clock.
const LONGEST_HALF: f64 = 50e6;

/// Answers that a run of a minute gives even on a busy host; a quiet one gives some 500.
const ENOUGH: usize = 50;
/// The largest median error and bound that pass [us], some ten times those of a quiet host: 161 and 194 us with the
/// ACPI timer and two pauses.
const ERROR_MAX: f64 = 2000.0;
const BOUND_MAX: f64 = 2000.0;

/// What the guest's clock says: its bound [ns] and its status with it.
struct Answer {
    time: TimeReading,
    bound: f64,
    status: String,
}

/// What was seen of the guest's clock.
#[derive(Default)]
struct Seen {
    errors: Vec<f64>,
    halves: Vec<f64>,
    bounds: Vec<f64>,
    outside: Vec<String>,
    /// Of those counted, the ones that the clock called synchronised.
    synchronised: usize,
    slow: usize,
    refused: usize,
    /// Of those, the ones before the first time: the guest was not up yet, or had no estimate.
    too_early: usize,
    last_refusal: String,
}

/// The error of the guest's clock as seen from outside: its time against the server's, each asked for between two
/// readings of this machine's TSC, so known to within half the time the answer took.
pub(crate) fn ask(server: &str, guest: &str, seconds: f64) -> Outcome {
    let [server, guest] = [connect(server)?, connect(guest)?];
    let hertz = rate_of_tsc(&server)?;
    let mut seen = Seen::default();
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < seconds {
        thread::sleep(Duration::from_millis(100));
        let Ok(truth) = ask_server(&server) else { continue };
        match ask_guest(&guest) {
            Ok(answer) => seen.compare(&truth, &answer, hertz),
            Err(why) => {
                seen.refused += 1;
                seen.too_early += usize::from(seen.errors.is_empty() && seen.slow == 0);
                seen.last_refusal = why;
            }
        }
    }
    seen.judge()
}

impl Seen {
    fn compare(&mut self, truth: &TimeReading, answer: &Answer, hertz: f64) {
        let Answer { time, bound, status } = answer;
        let true_nanos = (time.middle() - truth.middle()) / hertz * 1e9;
        let error = (time.nanos - truth.nanos) as f64 - true_nanos;
        let half = ((time.after - time.before) + (truth.after - truth.before)) as f64 / hertz * 5e8;
        if half > LONGEST_HALF {
            self.slow += 1;
            return;
        }
        if error.abs() > *bound + half {
            let (at, error) = (self.errors.len(), error * 1e-6);
            self.outside.push(format!("number {at}: {error:.3} ms, bound {:.3} ms, {status}", bound * 1e-6));
        }
        self.synchronised += usize::from(status == Status::Synchronised.name());
        self.errors.push(error.abs());
        self.halves.push(half);
        self.bounds.push(*bound);
    }

    fn judge(mut self) -> Outcome {
        let count = self.errors.len();
        let (error, half) = (median(&mut self.errors) * 1e-3, median(&mut self.halves) * 1e-3);
        let bound = median(&mut self.bounds) * 1e-3;
        figure("clock.error_median_us", error);
        figure("clock.error_largest_us", self.errors.last().copied().unwrap_or(f64::NAN) * 1e-3);
        figure("clock.seen_to_within_median_us", half);
        figure("clock.bound_median_us", bound);
        println!("FIGURE clock.answers_too_slow {}", self.slow);
        println!("FIGURE clock.refused {}, {} of them too early: {}", self.refused, self.too_early, self.last_refusal);
        println!("FIGURE clock.synchronised {} of {count}", self.synchronised);
        let asked = count + self.slow + self.refused - self.too_early;
        Found(count >= ENOUGH && count * 2 >= asked).or_fail(|| {
            format!(
                "{count} answers with a time to {asked} questions since the first; the last without: {}",
                self.last_refusal
            )
        })?;
        // Warming up takes its part of the minute, and the pauses theirs: of the ACPI timer's clock 61 % were seen on
        // an idle host.
        Found(self.synchronised * 2 >= count)
            .or_fail(|| format!("synchronised in {} of {count} answers only", self.synchronised))?;
        Found(bound <= BOUND_MAX && error <= ERROR_MAX + half).or_fail(|| {
            format!(
                "the median error is {error:.0} us, seen to within {half:.0} us, and the median bound {bound:.0} us"
            )
        })?;
        println!("FIGURE clock.outside_bound {} of {count}", self.outside.len());
        let shown = self.outside.iter().take(5).cloned().collect::<Vec<_>>().join("; ");
        Found(self.outside.is_empty()).or_fail(|| {
            format!("{} of {count} errors lie outside the bound that the clock claims: {shown}", self.outside.len())
        })
    }
}

pub(crate) fn connect(address: &str) -> Result<UdpSocket, String> {
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(text)?;
    socket.connect(address).map_err(text)?;
    socket.set_read_timeout(Some(Duration::from_secs(2))).map_err(text)?;
    Ok(socket)
}

/// Ticks of our TSC in a second of the server.
fn rate_of_tsc(server: &UdpSocket) -> Result<f64, String> {
    let first = ask_server(server)?;
    thread::sleep(Duration::from_secs(2));
    let last = ask_server(server)?;
    Ok((last.middle() - first.middle()) / ((last.nanos - first.nanos) as f64 * 1e-9))
}

/// Sends a question and waits for its own answer. A late answer to an earlier question, which a guest that was held up
/// gives, must not be taken for this one: each of the following would then be late by one question, and a right clock
/// would look wrong.
pub(crate) fn exchange(
    socket: &UdpSocket,
    question: &[u8],
    is_answer: impl Fn(&[u8]) -> bool,
) -> Result<(u64, Vec<u8>, u64), String> {
    let mut room = [0; 256];
    let before = tsc();
    socket.send(question).map_err(text)?;
    loop {
        let length = socket.recv(&mut room).map_err(text)?;
        let after = tsc();
        let answer = room.get(..length).unwrap_or_default();
        if is_answer(answer) {
            return Ok((before, answer.to_vec(), after));
        }
    }
}

/// NTP: the transmit timestamp of the reply that repeats ours (RFC 5905, section 7.3), seconds since 1900 and their
/// 2^-32 parts.
fn ask_server(server: &UdpSocket) -> Result<TimeReading, String> {
    let mut request = [0_u8; 48];
    request[0] = 0b00_100_011;
    let origin = tsc().to_be_bytes();
    request[40..].copy_from_slice(&origin);
    let (before, reply, after) = exchange(server, &request, |reply| reply.get(24..32) == Some(&origin))?;
    let stamp: [u8; 8] = reply.get(40..48).and_then(|bytes| bytes.try_into().ok()).ok_or("a short reply")?;
    let units = i128::from(u64::from_be_bytes(stamp)) - (2_208_988_800_i128 << 32);
    Ok(TimeReading { before, nanos: (units * 1_000_000_000) >> 32, after })
}

/// Answers requests of NTP with the time that `now` shows [ns since 1970]; `answered` follows each answer, with
/// the port that it goes to.
pub(crate) fn serve_ntp(socket: &UdpSocket, now: impl Fn() -> i128, answered: impl Fn(u16)) -> Outcome {
    let mut request = [0; 128];
    // Of NTP: seconds since 1900 and their 2^-32 parts.
    let stamp = || (((now() + 2_208_988_800_000_000_000) << 32) / 1_000_000_000) as u64;
    loop {
        let (length, from) = socket.recv_from(&mut request).map_err(text)?;
        let received = stamp();
        let Some(origin) = request.get(40..48).filter(|_| length >= 48) else { continue };
        // Version 4, a server of stratum 1, to within 2^-20 s, no distance.
        let mut reply = vec![0b00_100_100, 1, 0, 0_u8.wrapping_sub(20)];
        reply.extend([0; 8]);
        reply.extend(b"TEST");
        reply.extend((received - (1 << 32)).to_be_bytes());
        reply.extend(origin);
        reply.extend(received.to_be_bytes());
        reply.extend(stamp().to_be_bytes());
        socket.send_to(&reply, from).map_err(text)?;
        answered(from.port());
    }
}

fn ask_guest(guest: &UdpSocket) -> Result<Answer, String> {
    let question = format!("{} ", tsc());
    let (before, reply, after) =
        exchange(guest, question.trim_end().as_bytes(), |reply| reply.starts_with(question.as_bytes()))?;
    let said = core::str::from_utf8(&reply).map_err(text)?.trim_start_matches(&question);
    let mut words = said.split(' ');
    let nanos = words.next().and_then(|word| word.parse().ok()).ok_or(said)?;
    let bound = words.next().and_then(|word| word.parse().ok()).ok_or(said)?;
    // While it warms up the time is right within its bound, too.
    let status = words.next().filter(|status| *status != Status::Unsynchronised.name()).ok_or(said)?.to_owned();
    Ok(Answer { time: TimeReading { before, nanos, after }, bound, status })
}

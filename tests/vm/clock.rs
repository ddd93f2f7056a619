//! The clock of the guest, asked for its time from outside.

use super::{Found, Outcome, figure, median, tsc};
use ffclock_client::{Clock, Status};
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Answers each packet with the time that ffclockd publishes, as `nanoseconds-since-1970 bound-in-ns status`, until it is killed.
pub(crate) fn tell_time(port: &str) -> Outcome {
    let socket = UdpSocket::bind(("0.0.0.0", port.parse().map_err(text)?)).map_err(text)?;
    let mut buffer = [0; 64];
    let mut clock = Clock::open();
    loop {
        let (_, from) = socket.recv_from(&mut buffer).map_err(text)?;
        clock = clock.or_else(|_| Clock::open());
        let said = match &clock {
            Ok(clock) => say(clock),
            Err(error) => error.to_string(),
        };
        socket.send_to(said.as_bytes(), from).map_err(text)?;
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

/// A time as told by somebody, between two readings of our TSC.
struct Told {
    before: u64,
    nanos: i128,
    after: u64,
}

impl Told {
    fn middle(&self) -> f64 {
        self.before as f64 / 2.0 + self.after as f64 / 2.0
    }
}

/// The error of the guest's clock as seen from outside: its time against the server's, each asked for between two readings of this
/// machine's TSC, so known to within half the time the answer took.
pub(crate) fn ask(server: &str, guest: &str, seconds: f64) -> Outcome {
    let [server, guest] = [connect(server)?, connect(guest)?];
    let hertz = rate_of_tsc(&server)?;
    let (mut errors, mut halves, mut bounds, mut outside) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..(seconds * 2.0) as usize {
        thread::sleep(Duration::from_millis(500));
        let Ok(truth) = ask_server(&server) else { continue };
        let Ok((told, bound)) = ask_guest(&guest) else { continue };
        let true_nanos = (told.middle() - truth.middle()) / hertz * 1e9;
        let error = (told.nanos - truth.nanos) as f64 - true_nanos;
        let half = (told.after - told.before) as f64 / hertz * 5e8;
        outside += usize::from(error.abs() > bound + half);
        errors.push(error.abs());
        halves.push(half);
        bounds.push(bound);
    }
    Found(errors.len() >= 5).or_fail(|| format!("only {} answers came from a synchronised clock", errors.len()))?;
    let count = errors.len();
    figure("clock.error_median_us", median(&mut errors) * 1e-3);
    figure("clock.error_largest_us", errors.last().copied().unwrap_or(f64::NAN) * 1e-3);
    figure("clock.seen_to_within_median_us", median(&mut halves) * 1e-3);
    figure("clock.bound_median_us", median(&mut bounds) * 1e-3);
    println!("FIGURE clock.outside_bound {outside} of {count}");
    Found(outside == 0).or_fail(|| format!("{outside} of {count} errors lie outside the bound that the clock claims"))
}

fn connect(address: &str) -> Result<UdpSocket, String> {
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

fn exchange<'a>(socket: &UdpSocket, request: &[u8], room: &'a mut [u8]) -> Result<(u64, &'a [u8], u64), String> {
    let before = tsc();
    socket.send(request).map_err(text)?;
    let length = socket.recv(room).map_err(text)?;
    let after = tsc();
    Ok((before, room.get(..length).unwrap_or_default(), after))
}

/// NTP: the transmit timestamp of the reply (RFC 5905, section 7.3), seconds since 1900 and their 2^-32 parts.
fn ask_server(server: &UdpSocket) -> Result<Told, String> {
    let mut request = [0_u8; 48];
    request[0] = 0b00_100_011;
    request[40..].copy_from_slice(&tsc().to_be_bytes());
    let mut room = [0; 128];
    let (before, reply, after) = exchange(server, &request, &mut room)?;
    let stamp: [u8; 8] = reply.get(40..48).and_then(|bytes| bytes.try_into().ok()).ok_or("a short reply")?;
    let units = i128::from(u64::from_be_bytes(stamp)) - (2_208_988_800_i128 << 32);
    Ok(Told { before, nanos: (units * 1_000_000_000) >> 32, after })
}

fn ask_guest(guest: &UdpSocket) -> Result<(Told, f64), String> {
    let mut room = [0; 256];
    let (before, reply, after) = exchange(guest, b"?", &mut room)?;
    let said = core::str::from_utf8(reply).map_err(text)?;
    let mut words = said.split(' ');
    let nanos = words.next().and_then(|word| word.parse().ok()).ok_or(said)?;
    let bound = words.next().and_then(|word| word.parse().ok()).ok_or(said)?;
    Found(words.next() == Some(Status::Synchronised.name())).or_fail(|| said.to_owned())?;
    Ok((Told { before, nanos, after }, bound))
}

//! Asks servers again and again, and says of each reply how far it is from this machine's system clock, and whether
//! what the server claims of itself can be true.
//!
//! One line for each reply: server, error [s], claim [s], and whether the claim can be true (1 or 0).

use crate::failure::Failure;
use ffclock_cli::output;
use ffclock_units::{Moment, Span};
use ffclock_wire::{LeapIndicator, NtpTimestamp, Packet, Version};
use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

/// Arguments of `ffclock-lab lab ask`.
#[derive(clap::Args)]
pub(super) struct AskArgs {
    /// The servers.
    #[arg(value_name = "ADDRESS:PORT", required = true)]
    servers: Vec<SocketAddr>,
    /// Time between two requests.
    #[arg(long, value_name = "SPAN", default_value = "25 ms")]
    every: Span,
}

/// A reply takes no longer.
const PATIENCE: Duration = Duration::from_millis(200);

/// One reply, by this host's system clock.
#[derive(Clone, Copy, Debug, PartialEq)]
struct JudgedReply {
    /// The server's clock - the system clock, if both ways took equally long [s].
    error_s: f64,
    /// Half the root delay and the root dispersion [s].
    claim_s: f64,
    /// Whether a reply that took no time on one of the ways could be as right as the server claims.
    can_be_true: bool,
}

impl JudgedReply {
    /// From the server's two times and the end of the exchange, each counted from its beginning [s].
    fn of([received_s, sent_s, end_s]: [f64; 3], claim_s: f64) -> Self {
        // The request left before it came, and the reply came after it left: the clock's error lies between these.
        let (least_s, most_s) = (sent_s - end_s, received_s);
        let can_be_true = least_s <= claim_s && most_s >= -claim_s;
        JudgedReply { error_s: least_s.midpoint(most_s), claim_s, can_be_true }
    }
}

/// Asks until it is killed.
pub(super) fn run(args: &AskArgs) -> Result<(), Failure> {
    let sockets = args.servers.iter().map(|server| connected(*server)).collect::<Result<Vec<_>, Failure>>()?;
    let pause = Duration::from_secs_f64(args.every.as_seconds().max(0.0));
    loop {
        for (server, socket) in args.servers.iter().zip(&sockets) {
            if let Some(JudgedReply { error_s, claim_s, can_be_true }) = ask(socket) {
                let verdict = u8::from(can_be_true);
                output::line(&format!("{},{error_s:.12},{claim_s:.12},{verdict}", server.ip()))?;
            }
            sleep(pause);
        }
    }
}

fn connected(server: SocketAddr) -> Result<UdpSocket, Failure> {
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server).map_err(|error| format!("{server}: {error}"))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// One exchange; `None` without a reply that gives a time.
fn ask(socket: &UdpSocket) -> Option<JudgedReply> {
    let begin = ffclock_sys::system_utc_now();
    let pivot = Moment::from_origin(begin.since_origin());
    // The reply repeats it, and no earlier request had the same.
    let request = Packet::request(Version::V4, NtpTimestamp::from_server(pivot));
    socket.send(&request.encode()).ok()?;
    let mut octets = [0; 512];
    let length = socket.recv(&mut octets).ok()?;
    let end = ffclock_sys::system_utc_now();
    let reply = Packet::decode(octets.get(..length)?).ok()?;
    let gives_time = reply.leap != LeapIndicator::Unsynchronised && (1..16).contains(&reply.stratum);
    if !gives_time || reply.origin != request.transmit {
        return None;
    }
    let since = |time: NtpTimestamp| (time.to_server(pivot) - pivot).as_seconds();
    let times = [since(reply.receive), since(reply.transmit), (end - begin).as_seconds()];
    Some(JudgedReply::of(times, reply.root_distance().as_seconds()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_false_when_no_delay_explains_the_reply() {
        // 100 us there and back, none of it in the server.
        let right = JudgedReply::of([50e-6, 50e-6, 100e-6], 1e-6);
        assert!(right.error_s.abs() < 1e-12 && right.can_be_true);
        let ahead = JudgedReply::of([150e-6, 150e-6, 100e-6], 49e-6);
        assert!((ahead.error_s - 100e-6).abs() < 1e-12 && !ahead.can_be_true);
        assert!(JudgedReply::of([150e-6, 150e-6, 100e-6], 51e-6).can_be_true);
        let behind = JudgedReply::of([-50e-6, -40e-6, 100e-6], 49e-6);
        assert!(!behind.can_be_true && behind.error_s < -90e-6);
        assert!(JudgedReply::of([-50e-6, -40e-6, 100e-6], 51e-6).can_be_true);
    }
}

//! A reference server: it answers NTP with a time that is a known function of this machine's raw counter.

use super::truth::Truth;
use crate::failure::Failure;
use ffclock_counter::CounterId;
use ffclock_sys::{Interest, SocketEvent, StampMode, StampedSocket, Stamper, poll};
use ffclock_units::{Bound, Counter, LeapTable, Moment, Period, Rate, Server, Span};
use ffclock_wire::{LogSeconds, NtpTimestamp, Packet, Version};
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// Arguments of `ffclock-lab lab server`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:11123")]
    listen: SocketAddr,
    /// The counter reading at which the truth starts; the present one when absent.
    #[arg(long, value_name = "TICKS")]
    origin_counter: Option<u64>,
    /// TAI at the origin in units of 2^-64 s; the system clock's when absent.
    #[arg(long, value_name = "UNITS")]
    origin_tai: Option<i128>,
    /// The mantissa of the true period; the nominal one when absent.
    #[arg(long, value_name = "MANTISSA", requires = "period_shift")]
    period_mantissa: Option<u64>,
    /// The shift of the true period.
    #[arg(long, value_name = "SHIFT")]
    period_shift: Option<u8>,
    /// The largest deviation of the true rate from its mean.
    #[arg(long, value_name = "RATE", default_value = "0 ppm")]
    wander: Rate,
    /// How long one swing of the wander takes.
    #[arg(long, value_name = "SPAN", default_value = "60 s")]
    swing: Span,
    /// The largest error that the server claims of itself.
    #[arg(long, value_name = "SPAN", default_value = "1 us")]
    claim: Bound,
    /// What to add to the truth from a time on, as SPAN@SECONDS since the origin: a server that goes wrong.
    #[arg(long, value_name = "SPAN@SECONDS", allow_hyphen_values = true)]
    step: Option<ServerStep>,
}

/// A server that goes wrong by a step.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ServerStep {
    by: Span,
    after: Span,
}

impl std::str::FromStr for ServerStep {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (by, after) = text.split_once('@').ok_or("the form is SPAN@SECONDS, such as \"150 ms@30\"")?;
        let by = by.parse().map_err(|error: ffclock_units::ParseError| error.to_string())?;
        let seconds: f64 = after.parse().map_err(|_| "the seconds after @ are not a number".to_owned())?;
        Ok(ServerStep { by, after: Span::from_seconds(seconds) })
    }
}

/// 2^-30 s: a tick, about.
const PRECISION: LogSeconds = LogSeconds::from_exponent(-30);

struct ReferenceServer {
    truth: Truth,
    claim: Bound,
    step: Option<ServerStep>,
    leaps: LeapTable,
}

impl ReferenceServer {
    fn time_at(&self, counter: Counter) -> NtpTimestamp {
        let truth = self.truth.at(counter);
        let wrong = self.step.filter(|step| truth - self.truth.time >= step.after).map_or(Span::ZERO, |step| step.by);
        let utc = self.leaps.utc_from_tai(truth + wrong);
        let label: Moment<Server> = Moment::from_origin(utc.since_origin());
        NtpTimestamp::from_server(label)
    }

    /// The reply to one request that arrived at `received`; it leaves as soon as it is made.
    fn reply(&self, request: &Packet, received: Counter) -> Packet {
        let receive = self.time_at(received);
        let myself = Packet {
            stratum: 1,
            precision: PRECISION,
            root_dispersion: self.claim,
            reference_id: u32::from_be_bytes(*b"LAB\0"),
            reference: receive,
            ..Packet::request(Version::V4, NtpTimestamp::MISSING)
        };
        myself.reply_to(request, receive, self.time_at(ffclock_counter::read_ordered(CounterId::CPU)))
    }
}

/// Serves until it is killed.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let nominal = ffclock_counter::nominal(CounterId::CPU).map_err(|error| error.to_string())?.period;
    let truth = truth(args, nominal)?;
    let server = ReferenceServer { truth, claim: args.claim, step: args.step, leaps: LeapTable::built_in() };
    let mut socket =
        StampedSocket::bind(args.listen, StampMode::Kernel).map_err(|error| format!("{}: {error}", args.listen))?;
    let mut stamper = Stamper::new(CounterId::CPU, nominal);
    let mut buffer = [0; 256];
    loop {
        poll(&mut [Interest::readable(socket.as_fd())], None)?;
        while let Some(event) = socket.next_event(&mut buffer, &mut stamper)? {
            let SocketEvent::Received(received) = event else { continue };
            let Ok(request) = Packet::decode(&buffer[..received.length]) else { continue };
            let reply = server.reply(&request, received.best.stamp.counter).encode();
            // A client that has gone away is no reason to stop serving the others.
            let _ = socket.send_to(&reply, received.from, &mut stamper);
        }
    }
}

fn truth(args: &Args, nominal: Period) -> Result<Truth, Failure> {
    let now = LeapTable::built_in().tai_from_utc(ffclock_sys::system_utc_now());
    let period = match (args.period_mantissa, args.period_shift) {
        (Some(mantissa), Some(shift)) => {
            Period::from_parts(mantissa, shift).ok_or_else(|| Failure::usage("no such period"))?
        }
        _ => nominal,
    };
    if args.swing <= Span::ZERO {
        return Err(Failure::usage("--swing must be longer than nothing"));
    }
    let origin = args.origin_counter.map_or_else(|| ffclock_counter::read_ordered(CounterId::CPU), Counter::from_raw);
    let time = args.origin_tai.map_or(now, |units| Moment::from_origin(Span::from_units(units)));
    Ok(Truth { origin, time, period, wander: args.wander, swing: args.swing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_written_as_span_at_seconds() {
        let step: ServerStep = "150 ms@30".parse().unwrap();
        assert_eq!(step, ServerStep { by: Span::from_millis(150), after: Span::from_secs(30) });
        assert!("150 ms".parse::<ServerStep>().is_err());
        assert!("150@30".parse::<ServerStep>().is_err());
        assert!("1 s@soon".parse::<ServerStep>().is_err());
    }
}

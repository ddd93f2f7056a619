//! Observations of one direction become exchanges of four stamps, the form in which estimators take them.
//!
//! A Delay_Req and the first Sync that left the master after it arrived are an exchange: our request, the time at which
//! it reached the master, the time at which the "reply" left, and our stamp of it. The master held it for up to a Sync
//! interval, as a slow server would. Each half is an inequality of its own (delays are not negative), and the guard's
//! proof uses nothing else of an exchange, so the pair proves as much as the exchange of a request and its own reply.
//! What it needs is the order that every exchange has: the request left before the reply came, and reached the master
//! before the reply left. A Sync that crossed the request on its way, or one with no new request before it, makes no
//! exchange.

use crate::{PERIOD_TOLERANCE, PtpObservation, PtpRejection};
use ffclock_units::{Bound, Direction, Exchange, Moment, Period, ServerQuality, Span, Stamp, Tai};

/// A request that arrived so long before a Sync left is no part of an exchange: estimators refuse round trips of more
/// than 16 s.
const LONGEST_HOLD: Span = Span::from_secs(15);

/// Pairs the observations of one master. Each is used once, and the exchanges are in order.
#[derive(Clone, Debug)]
pub struct ExchangePairing {
    period: Period,
    root_distance_max: Bound,
    /// The newest request, when it reached the master, and what the master claimed then.
    request: Option<(Stamp, Moment<Tai>, ServerQuality)>,
    last: Option<Exchange>,
}

impl ExchangePairing {
    /// `period` is right within [`PERIOD_TOLERANCE`]; a master that claims a larger error than `root_distance_max`
    /// gives no exchanges.
    pub const fn new(period: Period, root_distance_max: Bound) -> Self {
        ExchangePairing { period, root_distance_max, request: None, last: None }
    }

    /// Another master begins: no exchange is made of a request to one and a Sync of another.
    pub const fn restart(&mut self) {
        self.request = None;
    }

    /// Takes an observation of the master that claims `server` of itself, and gives the exchange that it completes.
    ///
    /// # Errors
    /// The request was held for too long, the claim is too large, or the two halves contradict each other.
    pub fn observe(
        &mut self,
        observation: PtpObservation,
        server: ServerQuality,
    ) -> Result<Option<Exchange>, PtpRejection> {
        let PtpObservation { direction, ours, theirs } = observation;
        if direction == Direction::Outgoing {
            let latest = self.request.map(|(sent, ..)| sent).or(self.last.map(|last| last.sent));
            if latest.is_none_or(|latest| ours.counter.is_after(latest.counter)) {
                self.request = Some((ours, theirs, server));
            }
            return Ok(None);
        }
        let Some((sent, server_in, before)) = self.request else { return Ok(None) };
        let follows = self.last.is_none_or(|last| ours.counter.is_after(last.received.counter));
        if !follows || !ours.counter.is_after(sent.counter) || theirs < server_in {
            return Ok(None);
        }
        self.request = None;
        if theirs - server_in > LONGEST_HOLD {
            return Err(PtpRejection::Hold);
        }
        if before.identity != server.identity {
            // Behind one port, another grandmaster.
            return Ok(None);
        }
        // Each half is as wrong as was claimed at its time.
        let server = ServerQuality { root_distance: server.root_distance.max(before.root_distance), ..server };
        if server.root_distance > self.root_distance_max {
            return Err(PtpRejection::RootDistance);
        }
        let exchange = Exchange { sent, server_in, server_out: theirs, received: ours, server };
        self.check_delay(&exchange)?;
        self.last = Some(exchange);
        Ok(Some(exchange))
    }

    /// Both ways together cannot take less than no time.
    fn check_delay(&self, exchange: &Exchange) -> Result<(), PtpRejection> {
        let Exchange { sent, received, server_in, server_out, .. } = *exchange;
        let trip = self.period * (received.counter - sent.counter);
        let widths = self.period * (received.width.abs() + sent.width.abs());
        let tolerance = Span::from_units(trip.units() / PERIOD_TOLERANCE) + widths;
        let is_possible = trip + tolerance >= server_out - server_in;
        if is_possible { Ok(()) } else { Err(PtpRejection::NegativeDelay) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Counter, ServerIdentity, StampLocation, Ticks};
    use proptest::prelude::*;

    /// The counter ticks at 1 GHz, and the master's time is the counter's.
    fn observation(direction: Direction, ours_us: i64, theirs_us: i64) -> PtpObservation {
        let counter = Counter::from_raw(u64::try_from(ours_us).unwrap() * 1000);
        let ours = Stamp { counter, width: Ticks::from_raw(100), location: StampLocation::Kernel };
        PtpObservation { direction, ours, theirs: Moment::from_origin(Span::from_micros(theirs_us)) }
    }

    fn request(ours_us: i64, theirs_us: i64) -> PtpObservation {
        observation(Direction::Outgoing, ours_us, theirs_us)
    }

    fn sync(ours_us: i64, theirs_us: i64) -> PtpObservation {
        observation(Direction::Incoming, ours_us, theirs_us)
    }

    fn pairing() -> ExchangePairing {
        ExchangePairing::new(Period::from_hertz(1e9).unwrap(), Bound::of(Span::from_secs(1)))
    }

    #[test]
    fn a_request_and_the_next_sync_are_an_exchange() {
        let (mut pairing, server) = (pairing(), ServerQuality::default());
        assert_eq!(pairing.observe(sync(100, 90), server), Ok(None), "no request yet");
        assert_eq!(pairing.observe(request(200, 210), server), Ok(None));
        let exchange = pairing.observe(sync(300, 285), server).unwrap().unwrap();
        assert_eq!(exchange.sent, request(200, 210).ours);
        assert_eq!(exchange.server_in, request(200, 210).theirs);
        assert_eq!(exchange.server_out, sync(300, 285).theirs);
        assert_eq!(exchange.received, sync(300, 285).ours);
        assert_eq!(pairing.observe(sync(400, 390), server), Ok(None), "each request is used once");
    }

    #[test]
    fn a_sync_that_crossed_the_request_waits_for_no_one() {
        let (mut pairing, server) = (pairing(), ServerQuality::default());
        pairing.observe(request(200, 210), server).unwrap();
        assert_eq!(pairing.observe(sync(215, 205), server), Ok(None), "left before the request arrived");
        assert_eq!(pairing.observe(sync(199, 215), server), Ok(None), "came before the request left");
        assert!(pairing.observe(sync(300, 290), server).unwrap().is_some(), "the request was kept");
    }

    #[test]
    fn each_half_is_as_wrong_as_was_claimed_at_its_time() {
        let of = |micros, reference_id| ServerQuality {
            identity: ServerIdentity { stratum: 1, reference_id },
            root_distance: Bound::of(Span::from_micros(micros)),
            ..ServerQuality::default()
        };
        for (before, after) in [(1_000, 1), (1, 1_000)] {
            let mut pairing = pairing();
            pairing.observe(request(200, 210), of(before, 7)).unwrap();
            let exchange = pairing.observe(sync(300, 285), of(after, 7)).unwrap().unwrap();
            assert_eq!(exchange.server, of(1_000, 7));
        }
        let mut pairing = pairing();
        pairing.observe(request(200, 210), of(1, 7)).unwrap();
        assert_eq!(pairing.observe(sync(300, 285), of(1, 8)), Ok(None), "another grandmaster behind the same port");
    }

    #[test]
    fn what_contradicts_causality_is_named() {
        let (mut pairing, server) = (pairing(), ServerQuality::default());
        pairing.observe(request(200, 210), server).unwrap();
        assert_eq!(pairing.observe(sync(300, 311), server), Err(PtpRejection::NegativeDelay));
        pairing.observe(request(400, 410), server).unwrap();
        let unknown = ServerQuality { root_distance: Bound::UNKNOWN, ..server };
        assert_eq!(pairing.observe(sync(500, 490), unknown), Err(PtpRejection::RootDistance));
        pairing.observe(request(600, 610), server).unwrap();
        pairing.restart();
        assert_eq!(pairing.observe(sync(700, 690), server), Ok(None), "the request was to another master");
    }

    #[test]
    fn a_request_that_was_held_for_too_long_is_counted() {
        let (mut pairing, server) = (pairing(), ServerQuality::default());
        pairing.observe(request(200, 210), server).unwrap();
        assert!(pairing.observe(sync(14_999_300, 14_999_290), server).unwrap().is_some());
        pairing.observe(request(20_000_000, 20_000_010), server).unwrap();
        assert_eq!(pairing.observe(sync(35_001_000, 35_000_990), server), Err(PtpRejection::Hold));
    }

    proptest! {
        /// The guard refuses exchanges that are not in order; and each half of an exchange stays true as an inequality
        /// whatever it is paired with: with the truth as the master's time, the request left before `server_in` and
        /// the Sync came after `server_out`.
        #[test]
        fn exchanges_are_in_order_and_each_half_is_true(steps in prop::collection::vec((any::<bool>(), 1i64..5_000_000, 0i64..9000), 1..200)) {
            let (mut pairing, server) = (pairing(), ServerQuality::default());
            let mut now = 10_000;
            let mut last: Option<Exchange> = None;
            for (is_request, step, delay) in steps {
                now += step;
                let seen = if is_request { request(now, now + delay) } else { sync(now, now - delay) };
                let Some(exchange) = pairing.observe(seen, server).unwrap() else { continue };
                let truth = |stamp: Stamp| Span::from_nanos(i128::from(stamp.counter.raw()));
                prop_assert!(truth(exchange.sent) <= exchange.server_in.since_origin());
                prop_assert!(truth(exchange.received) >= exchange.server_out.since_origin());
                prop_assert!(exchange.server_in <= exchange.server_out);
                prop_assert!(exchange.received.counter.is_after(exchange.sent.counter));
                if let Some(last) = last {
                    prop_assert!(exchange.sent.counter.is_after(last.sent.counter));
                    prop_assert!(exchange.received.counter.is_after(last.received.counter));
                }
                last = Some(exchange);
            }
        }
    }
}

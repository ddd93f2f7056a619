//! An observation of a reference, and the exchange that it becomes.

use ffclock_units::{Bound, Exchange, Leap, Moment, ServerIdentity, ServerQuality, Span, Stamp, Tai, Ticks, Utc};

/// What another program says: when its system clock showed `received`, the true time was `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignSample {
    /// What the system clock showed.
    pub received: Moment<Utc>,
    /// The true time then, on UTC. Of a pulse only the part below a second counts.
    pub time: Moment<Utc>,
    /// The leap second that the program announces.
    pub leap: Leap,
}

/// The true time was `time`, give or take `claim`, at some moment within the range of `stamp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The counter when it was seen.
    pub stamp: Stamp,
    /// The time that the reference gives.
    pub time: Moment<Tai>,
    /// The largest error of `time` that the operator states.
    pub claim: Bound,
    /// The leap second that the reference announces.
    pub leap: Leap,
}

impl Sample {
    /// The sample as an exchange with a server of stratum 0 (RFC 5905 section 7.3: a reference clock) that answers in
    /// no time: sent at the beginning of the stamp's range, received at its end. `reference_id` is the name of the kind
    /// of reference in four characters.
    pub(crate) fn exchange(&self, reference_id: [u8; 4]) -> Exchange {
        let half = self.stamp.width.abs().halved() + Ticks::from_raw(1);
        let edge = |counter| Stamp { counter, width: Ticks::ZERO, location: self.stamp.location };
        let identity = ServerIdentity { stratum: 0, reference_id: u32::from_be_bytes(reference_id) };
        Exchange {
            sent: edge(self.stamp.counter - half),
            server_in: self.time,
            server_out: self.time,
            received: edge(self.stamp.counter + half),
            server: ServerQuality { identity, leap: self.leap, root_distance: self.claim },
        }
    }
}

/// A number of seconds and nanoseconds below a second; `None` where the nanoseconds are no such part.
pub(crate) fn moment(seconds: i64, nanos: i64) -> Option<Moment<Utc>> {
    let is_part = (0..1_000_000_000).contains(&nanos);
    is_part.then(|| Moment::from_origin(Span::from_secs(seconds) + Span::from_nanos(nanos.into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Counter, StampLocation};

    #[test]
    fn the_exchange_has_the_range_and_the_claim_of_the_sample() {
        let stamp =
            Stamp { counter: Counter::from_raw(1000), width: Ticks::from_raw(40), location: StampLocation::Kernel };
        let time = Moment::from_origin(Span::from_secs(7));
        let claim = Bound::of(Span::from_micros(3));
        let sample = Sample { stamp, time, claim, leap: Leap::Insert };
        let exchange = sample.exchange(*b"PPS\0");
        assert_eq!((exchange.sent.counter.raw(), exchange.received.counter.raw()), (979, 1021));
        assert_eq!((exchange.server_in, exchange.server_out), (time, time));
        assert_eq!((exchange.server.identity.stratum, exchange.server.identity.reference_id), (0, 0x5050_5300));
        assert_eq!((exchange.server.root_distance, exchange.server.leap), (claim, Leap::Insert));
        let bare = Sample { stamp: Stamp { width: Ticks::ZERO, ..stamp }, ..sample }.exchange(*b"PPS\0");
        assert!(bare.received.counter.is_after(bare.sent.counter), "an exchange takes some time");
    }
}

//! Samples become exchanges: one sample is the way there, the next one the way back.
//!
//! An estimator takes the two directions of an exchange as two pieces of evidence. A sample taken for both would count
//! twice, with the noise of the one direction the exact opposite of that of the other: over a simulated hour, pulses
//! with 1 us of jitter then left an interquartile range of up to 0.54 us, and 0.29 us in pairs
//! (`clock/estimator/tests/reference.rs`). So each sample is used once.

use crate::sample::Sample;
use ffclock_units::{Exchange, Period, Span};

/// A sample that is older when the next one comes says too little beside it: the clocks ran freely meanwhile.
const LONGEST_GAP: Span = Span::from_secs(8);

/// Pairs the samples of one reference.
#[derive(Clone, Copy, Debug)]
pub struct SamplePairing {
    period: Period,
    reference_id: [u8; 4],
    first: Option<Sample>,
}

impl SamplePairing {
    /// For a counter of this nominal period. `reference_id` is the kind of reference in four characters.
    pub const fn new(period: Period, reference_id: [u8; 4]) -> Self {
        SamplePairing { period, reference_id, first: None }
    }

    /// Takes a sample, and gives the exchange that it completes. A sample that is not after the one before it, by the
    /// counter or by its time, begins again.
    pub fn observe(&mut self, sample: Sample) -> Option<Exchange> {
        let follows = |first: &Sample| {
            let passed = self.period * (sample.stamp.counter - first.stamp.counter);
            passed > Span::ZERO && passed <= LONGEST_GAP && sample.time >= first.time
        };
        let Some(first) = self.first.filter(follows) else {
            self.first = Some(sample);
            return None;
        };
        self.first = None;
        let (begin, end) = (first.exchange(self.reference_id), sample.exchange(self.reference_id));
        let mut server = end.server;
        server.root_distance = begin.server.root_distance.max(end.server.root_distance);
        Some(Exchange { sent: begin.sent, server_in: begin.server_in, server, ..end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Bound, Counter, Leap, Moment, Stamp, StampLocation, Ticks};

    fn sample(millis: i64) -> Sample {
        let counter = Counter::from_raw(millis as u64 * 1_000_000);
        let stamp = Stamp { counter, width: Ticks::from_raw(100), location: StampLocation::Kernel };
        let time = Moment::from_origin(Span::from_millis(millis));
        Sample { stamp, time, claim: Bound::of(Span::from_micros(1)), leap: Leap::None }
    }

    #[test]
    fn each_sample_is_used_once() {
        let mut pairing = SamplePairing::new(Period::from_hertz(1e9).unwrap(), *b"PPS\0");
        assert_eq!(pairing.observe(sample(1000)), None);
        let exchange = pairing.observe(sample(2000)).unwrap();
        assert_eq!((exchange.server_in, exchange.server_out), (sample(1000).time, sample(2000).time));
        assert_eq!((exchange.sent.counter.raw(), exchange.received.counter.raw()), (999_999_949, 2_000_000_051));
        assert_eq!(pairing.observe(sample(3000)), None);
        assert!(pairing.observe(sample(4000)).is_some());
    }

    #[test]
    fn what_does_not_follow_begins_again() {
        let mut pairing = SamplePairing::new(Period::from_hertz(1e9).unwrap(), *b"PPS\0");
        pairing.observe(sample(1000));
        assert_eq!(pairing.observe(sample(9001)), None, "too long ago");
        assert_eq!(pairing.observe(sample(9001)), None, "the same again");
        assert_eq!(pairing.observe(sample(9000)), None, "earlier");
        assert_eq!(pairing.observe(Sample { time: sample(0).time, ..sample(9500) }), None, "its time runs back");
        assert!(pairing.observe(sample(10_000)).is_some());
    }
}

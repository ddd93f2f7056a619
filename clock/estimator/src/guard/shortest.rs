//! The shortest round trips: how narrow a proven interval can be.
//!
//! An interval ends where the fastest packet of each way left it, so it is at least as wide as the two fastest packets
//! took together. The shortest round trip is as long as these, or longer, if the fastest packets of the two
//! directions were in different exchanges; how densely round trips lie above the shortest shows how much that can be.
//! A narrower interval was not narrowed by packets. It was carried with rates that the counter did not have: the wander
//! is larger than assumed, and the width shows it before the interval runs empty, mostly before the true time has left
//! it.

use crate::frame::{Move, Point};
use crate::tuning::guard::{NARROW_PART, NARROW_SPREAD, NARROW_TRIPS, RATE_PROOF_SPAN, SHORTEST};

/// The shortest round trips, net of the server's residence, of a stretch of time, shortest first. s.
#[derive(Clone, Copy, Debug)]
struct FastestTrips {
    trips: [f64; SHORTEST],
    count: u32,
}

impl FastestTrips {
    const NONE: FastestTrips = FastestTrips { trips: [f64::INFINITY; SHORTEST], count: 0 };

    fn add(&mut self, trip: f64) {
        let place = self.trips.partition_point(|shorter| *shorter <= trip);
        if let Some(longer) = self.trips.get_mut(place..) {
            longer.rotate_right(usize::from(!longer.is_empty()));
            if let Some(first) = longer.first_mut() {
                *first = trip;
            }
        }
        self.count = self.count.saturating_add(1);
    }

    /// A width that no interval falls short of; none is too narrow while there are few round trips.
    fn least_width(&self) -> f64 {
        let [shortest, .., last] = self.trips;
        if last < f64::INFINITY { NARROW_PART * shortest - NARROW_SPREAD * (last - shortest) } else { 0.0 }
    }
}

/// The shortest round trips of the present day and of the day before, and when an interval was last as wide as they
/// ask.
#[derive(Clone, Copy, Debug)]
pub struct ShortestTrips {
    present: FastestTrips,
    before: Option<FastestTrips>,
    /// Where the present day began.
    since: f64,
    /// Where the last interval lay that was wide enough.
    wide_at: f64,
}

impl ShortestTrips {
    /// Before any exchange.
    pub const NONE: ShortestTrips =
        ShortestTrips { present: FastestTrips::NONE, before: None, since: f64::NEG_INFINITY, wide_at: 0.0 };

    /// Takes note of an exchange that was used.
    pub fn add(&mut self, point: &Point) {
        if self.since == f64::NEG_INFINITY {
            self.since = point.x;
        }
        if point.x - self.since > RATE_PROOF_SPAN {
            let before = core::mem::replace(&mut self.present, FastestTrips::NONE);
            (self.before, self.since) = (Some(before), point.x);
        }
        self.present.add(point.net);
    }

    fn least_width(&self) -> f64 {
        match &self.before {
            None if self.present.count < NARROW_TRIPS => 0.0,
            None => self.present.least_width(),
            Some(before) => self.present.least_width().min(before.least_width()),
        }
    }

    /// Whether a proven interval of this width at `x` is too narrow, by no more than rates that are wrong by `room`
    /// [s/s] explain. What narrows it faster is no oscillator: the server's time moved.
    pub fn is_too_narrow(&mut self, x: f64, width: f64, room: f64) -> bool {
        let missing = self.least_width() - width;
        if missing <= 0.0 {
            self.wide_at = x;
            return false;
        }
        missing <= room * (x - self.wide_at)
    }

    /// Follows a move of the frame.
    pub fn follow(&mut self, step: Move) {
        self.since -= step.x_step;
        self.wide_at -= step.x_step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, net: f64) -> Point {
        Point {
            x,
            middle: x,
            forward: 0.0,
            backward: 0.0,
            trip: net,
            net,
            sent_half: 0.0,
            received_half: 0.0,
            root: 0.0,
        }
    }

    fn after(exchanges: u32, net: impl Fn(u32) -> f64) -> ShortestTrips {
        let mut trips = ShortestTrips::NONE;
        for number in 0..exchanges {
            trips.add(&point(16.0 * f64::from(number), net(number)));
        }
        trips
    }

    #[test]
    fn the_shortest_are_kept_in_order() {
        let mut shortest = FastestTrips::NONE;
        for trip in [5.0, 3.0, 9.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0] {
            shortest.add(trip);
        }
        assert_eq!(shortest.trips, [1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 6.0]);
        assert_eq!(shortest.count, 10);
    }

    #[test]
    fn an_interval_far_below_the_shortest_round_trip_is_too_narrow() {
        let mut trips = after(100, |_| 300e-6);
        assert!(!trips.is_too_narrow(1_600.0, 256e-6, 4e-6));
        assert!(trips.is_too_narrow(1_616.0, 254e-6, 4e-6));
    }

    #[test]
    fn what_narrows_it_faster_than_an_oscillator_is_the_server() {
        let mut trips = after(100, |_| 300e-6);
        assert!(!trips.is_too_narrow(1_600.0, 400e-6, 4e-6));
        assert!(!trips.is_too_narrow(1_616.0, 100e-6, 4e-6));
        assert!(trips.is_too_narrow(1_642.0, 100e-6, 4e-6));
    }

    #[test]
    fn round_trips_that_lie_far_apart_prove_little() {
        let mut spread = after(100, |number| 300e-6 + 50e-6 * f64::from(number));
        assert!(!spread.is_too_narrow(1_600.0, 1e-6, 1.0));
        let mut young = after(NARROW_TRIPS - 1, |_| 300e-6);
        assert!(!young.is_too_narrow(1_600.0, 1e-6, 1.0));
    }

    /// After a path became shorter the round trips of the day before prove nothing more.
    #[test]
    fn a_shorter_path_is_allowed_narrower_intervals() {
        for after_midnight in [1, 20, 100] {
            let mut trips = after(5_401 + after_midnight, |number| if number < 5_401 { 300e-6 } else { 100e-6 });
            assert!(!trips.is_too_narrow(90_000.0, 90e-6, 1.0), "{after_midnight}");
        }
        let mut same = after(5_501, |_| 300e-6);
        assert!(same.is_too_narrow(90_000.0, 90e-6, 1.0));
    }
}

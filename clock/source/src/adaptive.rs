//! Polls that keep a stated uncertainty with few requests.
//!
//! The clock's noise, the part of its uncertainty that more requests make smaller, is smallest right after an exchange
//! and grows until the next one, from whichever server. [`AdaptivePoll::follow`] compares what it will be then with
//! what is to be kept, and lengthens or shortens the poll by a part of the difference: the noise after an exchange
//! follows the poll only after a while, since it rests on many exchanges. The server with the largest weight in the
//! clock is asked at that poll, the others less often in proportion to their weights, as each exchange is worth.
//!
//! It reads no clock and asks no server: [`Source::choose_poll`](crate::Source::choose_poll) takes the result, within
//! the range that is configured for its server.

use ffclock_units::{Estimate, Span, StandardUncertainty};

/// Chooses the polls of all servers of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptivePoll {
    /// The noise that is to be kept, s.
    keep: f64,
    /// The shortest and the longest poll of any server, s.
    range: [f64; 2],
    /// That of the server with the largest weight, s.
    poll: f64,
    /// How many times as long the polls of other servers may be: it grows with the exchanges since the last upset.
    patience: f64,
}

/// How much of a difference is made up for with one exchange. The loop is stable as long as the uncertainty follows the
/// poll within some ten exchanges.
const GAIN: f64 = 0.125;
/// An uncertainty that is smaller than it may be by more than this factor lengthens the poll no faster.
const MOST_ROOM: f64 = 2.0;
/// An uncertainty that will be this many times too large is an upset: something has changed.
const UPSET: f64 = 2.0;
/// How much patience with servers of little weight grows with each exchange, and its limit: from 16 s to 1024 s.
const PATIENCE_STEP: f64 = 1.125;
const PATIENCE_MAX: f64 = 64.0;

impl AdaptivePoll {
    /// Polls from the `shortest` to the `longest` that keep this uncertainty; they begin with the shortest.
    pub fn new(keep: StandardUncertainty, [shortest, longest]: [Span; 2]) -> Self {
        let range = [shortest.as_seconds(), longest.max(shortest).as_seconds()];
        AdaptivePoll { keep: keep.as_seconds(), range, poll: range[0], patience: 1.0 }
    }

    /// Something changed that the clock has yet to learn: a path, a server's standing, an epoch. All servers are asked
    /// at the shortest poll, and then less and less.
    pub fn upset(&mut self) {
        let [shortest, _] = self.range;
        (self.poll, self.patience) = (shortest, 1.0);
    }

    /// An exchange was taken, after which the published clock is `clock`. `largest_weight` is that of any server in it,
    /// from 0 to 1: the time from one exchange to the next is this part of the poll.
    pub fn follow(&mut self, clock: &Estimate, largest_weight: f64) {
        let growth = clock.uncertainty_growth.as_rate().as_fraction();
        let ahead = clock.noise.as_seconds() + growth * self.poll * largest_weight.clamp(0.0, 1.0);
        if ahead > UPSET * self.keep {
            // The patience stays as it is: servers of little weight are of no help.
            self.poll = self.range[0];
        } else {
            let room = (self.keep / ahead).min(MOST_ROOM);
            let [shortest, longest] = self.range;
            self.poll = (self.poll * (1.0 + GAIN * (room - 1.0))).clamp(shortest, longest);
        }
        self.patience = (self.patience * PATIENCE_STEP).min(PATIENCE_MAX);
    }

    /// The poll of a server whose weight is this part of the largest one, from 0 to 1.
    pub fn poll(&self, part_of_largest: f64) -> Span {
        let times = 1.0 / part_of_largest.clamp(1.0 / PATIENCE_MAX, 1.0);
        Span::from_seconds(self.poll * times.min(self.patience))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Bound, Counter, GrowthRate, Moment, Period, Rate, Status};

    const RANGE: [Span; 2] = [Span::from_secs(16), Span::from_secs(1024)];

    fn clock(noise: f64, growth: f64) -> Estimate {
        let period = Period::from_hertz(1e9).unwrap();
        Estimate {
            counter: Counter::from_raw(0),
            time: Moment::from_origin(Span::ZERO),
            period,
            uncertainty: StandardUncertainty::UNKNOWN,
            noise: StandardUncertainty::from_seconds(noise),
            uncertainty_growth: GrowthRate::of(Rate::from_fraction(growth)),
            bound: Bound::UNKNOWN,
            bound_growth: GrowthRate::from_units(u64::MAX),
            difference_period: period,
            difference_bound: GrowthRate::from_units(u64::MAX),
            difference_uncertainty: GrowthRate::from_units(u64::MAX),
            status: Status::Synchronised,
        }
    }

    fn keeping(seconds: f64) -> AdaptivePoll {
        AdaptivePoll::new(StandardUncertainty::from_seconds(seconds), RANGE)
    }

    /// Follows a clock whose uncertainty rests on the last `memory` exchanges, and goes with a power of the poll. The
    /// largest and the smallest poll of the last 100 exchanges, s.
    fn settled(polls: &mut AdaptivePoll, memory: f64) -> (f64, f64) {
        let mut remembered = 16.0;
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for number in 0..600 {
            let poll = polls.poll(1.0).as_seconds();
            remembered += (poll - remembered) / memory;
            polls.follow(&clock(0.2e-6 * root(remembered / 16.0), 2e-9), 1.0);
            if number >= 500 {
                (least, most) = (least.min(poll), most.max(poll));
            }
        }
        (least, most)
    }

    /// By Newton's iteration: this crate has no use for roots.
    fn root(value: f64) -> f64 {
        (0..40).fold(value.max(1.0), |guess, _| 0.5 * (guess + value / guess))
    }

    #[test]
    fn the_poll_settles_where_the_uncertainty_is_what_is_to_be_kept() {
        for (memory, keep) in [(1.0, 1e-6), (10.0, 1e-6), (20.0, 2e-6)] {
            let mut polls = keeping(keep);
            let (least, most) = settled(&mut polls, memory);
            assert!(most < 1.05 * least, "memory {memory}: {least} to {most} s");
            let ahead = 0.2e-6 * root(most / 16.0) + 2e-9 * most;
            assert!((ahead / keep - 1.0).abs() < 0.03, "memory {memory}: {ahead:e} of {keep:e}");
        }
    }

    #[test]
    fn what_cannot_be_kept_or_needs_nothing_ends_at_the_range() {
        let mut polls = keeping(1e-8);
        assert_eq!(settled(&mut polls, 10.0), (16.0, 16.0));
        let mut polls = keeping(1e-3);
        assert_eq!(settled(&mut polls, 10.0), (1024.0, 1024.0));
        assert_eq!(polls.poll(0.0), Span::from_secs(64 * 1024), "the source has its own range");
        polls.follow(&clock(1.0, 0.0), 1.0);
        assert_eq!(polls.poll(1.0), RANGE[0], "far too much at once");
    }

    #[test]
    fn a_server_of_little_weight_is_asked_less_and_after_an_upset_as_often() {
        let mut polls = keeping(1e-6);
        settled(&mut polls, 10.0);
        let poll = polls.poll(1.0);
        assert!((polls.poll(0.25) - poll - poll - poll - poll).abs() < Span::from_micros(1));
        assert!(polls.poll(0.0) > polls.poll(0.02));
        polls.upset();
        assert_eq!([polls.poll(1.0), polls.poll(0.25), polls.poll(0.0)], [RANGE[0]; 3]);
        polls.follow(&clock(0.0, 0.0), 1.0);
        let least = polls.poll(0.0).as_seconds();
        assert!((16.0..24.0).contains(&least), "patience comes back slowly: {least}");
    }

    /// Two servers of one weight bring an exchange twice as often.
    #[test]
    fn more_servers_have_longer_polls() {
        let settle = |largest_weight: f64| {
            let mut polls = keeping(1e-6);
            (0..400).for_each(|_| polls.follow(&clock(0.5e-6, 2e-9), largest_weight));
            polls.poll(1.0).as_seconds()
        };
        assert!((settle(1.0) - 250.0).abs() < 5.0 && (settle(0.5) - 500.0).abs() < 10.0);
    }
}

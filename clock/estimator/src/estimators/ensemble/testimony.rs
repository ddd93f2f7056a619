//! What lost servers said of the time, as long as those that are still asked do not know it better.
//!
//! The difference of two servers' times is known to the noise of their floors, so those that stay show what a near and
//! careful one would say now. Its word ages only as far as the systematic errors of the others change.

use super::{Voice, Voices};
use crate::tuning::ensemble::{MOST_TESTIMONIES, STEADY_FOR, STEADY_PART, SUSPECT};

/// The last words of the servers that have left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Testimonies([Option<Testimony>; MOST_TESTIMONIES]);

/// The last word of a server.
#[derive(Clone, Copy, Debug)]
struct Testimony {
    /// Its own time, us ahead of theta.
    time: f64,
    /// The variance of this by its path, its claim and its floors, and by what the others' errors changed since, us^2.
    variance: f64,
}

/// What the testimonies add to a weighted mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TestimonySums {
    /// The sum of their weights, us^-2.
    pub weight: f64,
    /// The sum of their times, each times its weight.
    pub time: f64,
}

impl Testimonies {
    /// Keeps the word of a server that leaves. Where there is no room, the vaguest goes.
    pub(super) fn keep(&mut self, voice: &Voice) {
        let word = Testimony { time: voice.time, variance: voice.variance() };
        let vagueness = |kept: &Option<Testimony>| kept.map_or(f64::INFINITY, |kept| kept.variance);
        let vaguest = self.0.iter_mut().max_by(|a, b| vagueness(a).total_cmp(&vagueness(b)));
        if let Some(place) = vaguest.filter(|place| vagueness(place) > word.variance) {
            *place = Some(word);
        }
    }

    pub(super) fn forget(&mut self) {
        *self = Testimonies::default();
    }

    /// Lets the words age by `elapsed` seconds beside the servers that count, and drops those that these do not need or
    /// contradict. Dropping a word that is vaguer than they are moves their mean by less than its uncertainty.
    pub(super) fn age(&mut self, counting: &Voices, elapsed: f64) {
        let Some((mean, variance)) = mean_and_variance(counting) else { return };
        let aged = STEADY_PART * STEADY_PART * variance * elapsed / STEADY_FOR;
        for place in &mut self.0 {
            let is_needed = |word: &Testimony| {
                let room = SUSPECT * libm::sqrt(word.variance + variance);
                word.variance < variance && (word.time - mean).abs() <= room
            };
            *place = place.map(|word| Testimony { variance: word.variance + aged, ..word }).filter(is_needed);
        }
    }

    pub(super) fn sums(&self) -> TestimonySums {
        self.0.iter().flatten().fold(TestimonySums::default(), |sums, word| TestimonySums {
            weight: sums.weight + 1.0 / word.variance,
            time: sums.time + word.time / word.variance,
        })
    }
}

/// The weighted mean of servers' times, us ahead of theta, and its variance; `None` of no server.
fn mean_and_variance(voices: &Voices) -> Option<(f64, f64)> {
    let (mut weight, mut sum) = (0.0, 0.0);
    for voice in voices.iter().flatten() {
        weight += 1.0 / voice.variance();
        sum += voice.time / voice.variance();
    }
    (weight > 0.0).then(|| (sum / weight, 1.0 / weight))
}

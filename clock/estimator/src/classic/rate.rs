//! The long-term rate p and the local rate, both from pairs of good exchanges.
//!
//! Rates are slopes in the frame: the relative deviation from the nominal period. The naive rate of a pair uses the
//! middles of the two exchanges. With round trips that differ by d, a distance D apart, it differs from the papers'
//! mean of the forward and the backward rate by (d/2D)^2: 1e-11 for 100 us and 16 s.

use super::thresholds::Thresholds;
use crate::frame::{Move, Slope};
use crate::history::{Added, Cursor, History, Record};
use crate::tuning::classic::{
    CLOSEST_PAIR, FAR_PART, LEAST_SQUARED_ERROR, LOCAL_END, LOCAL_STEP, LONG_PART, ORDINARY_PART, WARM_UP_NOISE,
    WARM_UP_PART,
};

/// The naive rate of a pair. Its error: (E_i + E_j + the change of the floor between them) / their distance.
pub fn slope(far: &Record, near: &Record) -> Option<Slope> {
    let distance = near.x - far.x;
    if distance.is_nan() || distance < CLOSEST_PAIR {
        return None;
    }
    let error = far.error().abs() + near.error().abs() + (far.floor - near.floor).abs();
    Some(Slope { rate: (near.y - far.y) / distance, error: error / distance })
}

/// How a measurement was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateChange {
    /// There was none.
    None,
    /// It was taken.
    Updated,
    /// It was not believed.
    Insane,
}

/// The long-term rate: one fixed good exchange at least half the history back against the newest good one.
#[derive(Clone, Debug)]
pub struct LongRate {
    archive: History,
    far: Option<Record>,
    prior: Slope,
    present: Slope,
    /// Since when every measurement has been insane.
    insane: Option<f64>,
    long: bool,
}

impl LongRate {
    /// `prior` is what is believed without any exchange.
    pub fn new(thresholds: &Thresholds, prior: Slope) -> Self {
        let archive = History::new(thresholds.archive());
        LongRate { archive, far: None, prior, present: prior, insane: None, long: false }
    }

    pub fn bytes(&self) -> usize {
        self.archive.bytes()
    }

    pub fn present(&self) -> Slope {
        self.present
    }

    /// Forgets the exchanges and keeps the rate: their times are no longer comparable with the next ones.
    pub fn disconnect(&mut self) {
        self.archive.clear();
        (self.far, self.insane, self.prior) = (None, None, self.present);
    }

    /// Begins the warm-up from another prior.
    pub fn forget_prior(&mut self, prior: Slope) {
        (self.prior, self.present) = (prior, prior);
    }

    pub fn lower_floor(&mut self, floor: f64) {
        self.archive.lower_floor(floor);
        if let Some(far) = &mut self.far {
            far.floor = far.floor.min(floor);
        }
    }

    pub fn raise_floor(&mut self, floor: f64, since: f64) {
        self.archive.raise_floor(floor, since);
    }

    pub fn follow(&mut self, step: Move) {
        self.archive.follow(step);
        if let Some(far) = &mut self.far {
            far.x -= step.x_step;
            far.y -= step.y_step;
        }
        if let Some(insane) = &mut self.insane {
            *insane -= step.x_step;
        }
    }

    /// During the warm-up: the best exchange of the oldest quarter of what has been seen against the best of the
    /// newest, merged with the prior by their errors so that the second exchange is already useful. Nothing is refused.
    pub fn warm_up(&mut self, record: Record, thresholds: &Thresholds) -> RateChange {
        self.archive.add(record);
        debug_assert!(self.archive.len() > 0, "it holds the new record");
        let Some(oldest) = self.archive.oldest() else { return RateChange::None };
        let quarter = WARM_UP_PART * (record.x - oldest.x);
        let far = self.archive.between(oldest.x, oldest.x + quarter).best();
        let near = self.archive.since(record.x - quarter).best();
        let (Some(far), Some(near)) = (far, near) else { return RateChange::None };
        let Some(measured) = slope(&far, &near) else { return RateChange::None };
        let noise = WARM_UP_NOISE * thresholds.stamp_noise / (near.x - far.x);
        self.present = merge(self.prior, Slope { error: measured.error + noise, ..measured });
        self.far = None;
        RateChange::Updated
    }

    /// After the warm-up.
    pub fn add(&mut self, record: Record, thresholds: &Thresholds) -> RateChange {
        let added = self.archive.add(record);
        if added == Added::Opened || self.far.is_none() {
            self.choose_far(record.x, thresholds);
        }
        let Some(far) = self.far else { return RateChange::None };
        if record.error() >= thresholds.pair_point {
            return RateChange::None;
        }
        match slope(&far, &record) {
            Some(measured) => self.judge(measured, record.x, thresholds),
            None => RateChange::None,
        }
    }

    /// The exchange at least half the history back that makes the smallest pair error with an ordinary one now.
    fn choose_far(&mut self, now: f64, thresholds: &Thresholds) {
        debug_assert!(self.archive.len() > 0, "it holds the new record");
        let Some(oldest) = self.archive.oldest() else { return };
        let begin = oldest.x.max(now - thresholds.floor_window);
        let ordinary = ORDINARY_PART * thresholds.pair_point;
        let worth = |far: &Record| (far.error() + ordinary) / (now - far.x);
        let half = self.archive.between(begin, begin + FAR_PART * (now - begin));
        self.far = half.iter().filter(|far| now - far.x > CLOSEST_PAIR).min_by(|a, b| worth(a).total_cmp(&worth(b)));
        self.long |= now - begin > LONG_PART * thresholds.floor_window;
    }

    fn judge(&mut self, measured: Slope, now: f64, thresholds: &Thresholds) -> RateChange {
        let quality = if self.long { thresholds.rate_quality_late } else { thresholds.rate_quality };
        if measured.error >= self.present.error && measured.error >= quality {
            return RateChange::None;
        }
        let difference = (measured.rate - self.present.rate).abs();
        if difference > thresholds.rate_sanity + measured.error + self.present.error {
            // A wrong rate in place must not keep the right one out for ever.
            let since = *self.insane.get_or_insert(now);
            if now - since < thresholds.local_window {
                return RateChange::Insane;
            }
        }
        self.insane = None;
        self.present = measured;
        RateChange::Updated
    }
}

/// The mean of two slopes, weighted by their inverse squared errors.
fn merge(a: Slope, b: Slope) -> Slope {
    let (weight_a, weight_b) =
        (1.0 / (a.error * a.error).max(LEAST_SQUARED_ERROR), 1.0 / (b.error * b.error).max(LEAST_SQUARED_ERROR));
    let share = weight_b / (weight_a + weight_b);
    Slope { rate: a.rate + (b.rate - a.rate) * share, error: a.error.min(b.error) }
}

/// The local rate: the best exchange at the far end of its window against the best at the near end.
#[derive(Clone, Debug, Default)]
pub struct LocalRate {
    present: Option<Slope>,
    measured_at: f64,
    tried_at: f64,
    cursors: [Cursor; 3],
}

impl LocalRate {
    pub fn present(&self) -> Option<Slope> {
        self.present
    }

    pub fn forget(&mut self) {
        self.present = None;
    }

    pub fn follow(&mut self, step: Move) {
        self.measured_at -= step.x_step;
        self.tried_at -= step.x_step;
    }

    /// Measures again from `history`, which ends at `now`.
    pub fn measure(&mut self, history: &History, now: f64, thresholds: &Thresholds) -> RateChange {
        if (0.0..LOCAL_STEP * thresholds.local_window).contains(&(now - self.tried_at)) {
            return RateChange::None;
        }
        self.tried_at = now;
        let end = LOCAL_END * thresholds.local_window;
        let middle = now - thresholds.local_window;
        if self.present.is_some() && now - self.measured_at > thresholds.local_window {
            self.present = None;
        }
        let [far_from, far_to, near_from] = &mut self.cursors;
        let far = history.between_moving(middle - 0.5 * end, far_from, middle + 0.5 * end, far_to).best();
        let near = history.since_moving(now - end, near_from).best();
        let (Some(far), Some(near)) = (far, near) else {
            self.present = None;
            return RateChange::None;
        };
        let Some(measured) = slope(&far, &near) else { return RateChange::None };
        if measured.error >= thresholds.local_quality {
            return RateChange::None;
        }
        let sane = |present: Slope| {
            (measured.rate - present.rate).abs() <= thresholds.rate_sanity + measured.error + present.error
        };
        if !self.present.is_none_or(sane) {
            return RateChange::Insane;
        }
        (self.present, self.measured_at) = (Some(measured), now);
        RateChange::Updated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassicConfig;

    fn thresholds() -> Thresholds {
        Thresholds::new(&ClassicConfig::default())
    }

    const PRIOR: Slope = Slope { rate: 0.0, error: 5e-4 };

    #[test]
    fn a_pair_within_a_millisecond_says_nothing() {
        let far = record(10.0, 1e-6, 0.0);
        assert_eq!(slope(&far, &record(10.0009, 1e-6, 0.0)), None);
        assert_eq!(slope(&far, &record(f64::NAN, 1e-6, 0.0)), None);
        assert!((slope(&far, &record(10.0011, 1e-6, 0.0)).unwrap().rate - 1e-6).abs() < 1e-9);
    }

    fn record(x: f64, rate: f64, error: f64) -> Record {
        Record { x, y: rate * x, cost: 300e-6 + error, floor: 300e-6 }
    }

    /// "A wrong-period lock-out": a wrong rate with a small error must give way to the right one.
    #[test]
    fn a_wrong_rate_is_left_in_time() {
        let thresholds = thresholds();
        let mut rate = LongRate::new(&thresholds, Slope { rate: 5e-5, error: 1e-10 });
        let mut insane = 0;
        for step in 0..700 {
            if rate.add(record(16.0 * step as f64, 1e-6, 2e-6), &thresholds) == RateChange::Insane {
                insane += 1;
            }
        }
        assert!(insane > 100);
        assert!((rate.present().rate - 1e-6).abs() < 1e-9);
    }

    /// Lock-in: "pair error beats the present one or is under the quality threshold" - without the second clause a
    /// lucky pair would hold its rate for ever.
    #[test]
    fn a_lucky_pair_does_not_lock_its_rate_in() {
        let thresholds = thresholds();
        let mut rate = LongRate::new(&thresholds, Slope { rate: 2e-7, error: 0.0 });
        for step in 0..3_000 {
            rate.add(record(16.0 * step as f64, 0.0, 2e-6), &thresholds);
        }
        assert!(rate.present().rate.abs() < 1e-9);
    }

    #[test]
    fn the_second_exchange_is_already_useful() {
        let thresholds = thresholds();
        let mut rate = LongRate::new(&thresholds, PRIOR);
        rate.warm_up(record(0.0, 1e-4, 0.0), &thresholds);
        assert_eq!(rate.present(), PRIOR);
        rate.warm_up(record(16.0, 1e-4, 0.0), &thresholds);
        assert!((rate.present().rate - 1e-4).abs() < 1e-6);
    }

    /// "Values stored although sanity had failed": an insane local rate leaves the present one alone.
    #[test]
    fn an_insane_local_rate_is_not_stored() {
        let thresholds = thresholds();
        let mut history = History::new(thresholds.history());
        let mut local = LocalRate::default();
        for step in 0..400 {
            history.add(record(16.0 * step as f64, 1e-6, 0.0));
            local.measure(&history, 16.0 * step as f64, &thresholds);
        }
        let before = local.present();
        assert!((before.unwrap().rate - 1e-6).abs() < 1e-12);
        let mut moved = record(6_460.0, 1e-6, -1e-6);
        moved.y += 0.1;
        history.add(moved);
        assert_eq!(local.measure(&history, 6_460.0, &thresholds), RateChange::Insane);
        assert_eq!(local.present(), before);
    }
}

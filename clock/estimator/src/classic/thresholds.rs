//! Every threshold of the algorithm, derived from the options in this one place.
//!
//! The multiples are those of the original's "good" preset unless a line says otherwise. All values are seconds or s/s.

use super::minimum::MinimumWindow;
use crate::ClassicConfig;
use crate::history::Shape;
use crate::tuning::classic::{
    ARCHIVE_BINS, ARCHIVE_CAPACITY, ARCHIVE_CROWD, FAR_FLOOR, FAR_OFFSET_QUALITY, FAR_SHIFT, FLOOR_BLOCKS,
    HISTORY_BINS, HISTORY_CAPACITY, HISTORY_CROWD, LEAST_AGEING, LEAST_OFFSET_SCALE, LOCAL_WINDOWS, OFFSET_QUALITY,
    OFFSET_SANITY, OFFSET_SANITY_GROWTH, OFFSET_SCALE, PAIR_POINT, RATE_QUALITY, RATE_QUALITY_LATE, RATE_SANITY, SHIFT,
    SHIFT_BLOCKS, SHIFT_POLLS, SHORTEST_WINDOW,
};
use ffclock_units::{Rate, Span};

/// Derived once from the options.
#[derive(Clone, Debug)]
pub struct Thresholds {
    /// The noise of one stamp.
    pub stamp_noise: f64,
    /// How fast an offset loses worth.
    pub ageing: f64,
    /// How fast the standard uncertainty grows without news.
    pub rate_error: f64,
    /// The largest scale of the weights, Eoffset of the papers.
    pub offset_scale: f64,
    /// The smallest scale of the weights; the same when the scale is fixed.
    pub offset_scale_least: f64,
    /// A far exchange of the long-term rate, and a near one, must have a point error below this, Ep.
    pub pair_point: f64,
    /// A long-term rate with a pair error below this is always taken, even if an older one had a smaller error:
    /// otherwise one lucky pair would lock its value in.
    pub rate_quality: f64,
    /// The same, once the history is long.
    pub rate_quality_late: f64,
    /// Two successive rates differ by less than this beyond their errors.
    pub rate_sanity: f64,
    /// The largest pair error of a local rate.
    pub local_quality: f64,
    /// How far back the offset looks.
    pub offset_window: f64,
    /// How far back the local rate looks.
    pub local_window: f64,
    /// How long the floor is remembered and the rate averaged.
    pub floor_window: f64,
    /// The least time a longer path must last.
    pub shift_window: f64,
    /// Half the configured asymmetry.
    pub half_asymmetry: f64,
}

fn seconds(span: Span) -> f64 {
    span.as_seconds()
}

fn fraction(rate: Rate) -> f64 {
    rate.abs().as_fraction()
}

impl Thresholds {
    pub fn new(config: &ClassicConfig) -> Self {
        let stamp_noise = config.timestamp_limit.as_seconds();
        let rate_error = fraction(config.rate_error_bound);
        let offset_window = seconds(config.offset_window).max(SHORTEST_WINDOW);
        Thresholds {
            stamp_noise,
            ageing: fraction(config.best_rate_accuracy).max(LEAST_AGEING),
            rate_error,
            offset_scale: OFFSET_SCALE * stamp_noise,
            offset_scale_least: if config.follow_noise { LEAST_OFFSET_SCALE } else { OFFSET_SCALE } * stamp_noise,
            pair_point: PAIR_POINT * stamp_noise,
            rate_quality: rate_error / RATE_QUALITY,
            rate_quality_late: rate_error / RATE_QUALITY_LATE,
            rate_sanity: RATE_SANITY * rate_error,
            local_quality: fraction(config.local_rate_quality),
            offset_window,
            local_window: LOCAL_WINDOWS * offset_window,
            floor_window: seconds(config.floor_window).max(SHORTEST_WINDOW),
            shift_window: seconds(config.shift_window).max(SHORTEST_WINDOW),
            half_asymmetry: 0.5 * seconds(config.asymmetry),
        }
    }

    /// The scale of the weights when point errors are typically `typical`.
    ///
    /// The original's constant 150 us weighs all of a quiet LAN's exchanges alike and so averages over a quarter of an
    /// hour of oscillator; a scale that follows the noise looks back no farther than it must. The table
    /// in docs/algorithm/classic.md has the errors with either.
    pub fn scale_for(&self, typical: f64) -> f64 {
        typical.max(self.offset_scale_least).min(self.offset_scale)
    }

    /// How far the floor must move to count as a shift of the path, Eshift.
    pub fn shift(&self, floor: f64) -> f64 {
        SHIFT * self.stamp_noise * if floor >= FAR_FLOOR { FAR_SHIFT } else { 1.0 }
    }

    /// The largest total error of the best exchange of the window with which the offset is corrected.
    pub fn offset_quality(&self, floor: f64) -> f64 {
        self.offset_scale * if floor >= FAR_FLOOR { FAR_OFFSET_QUALITY } else { OFFSET_QUALITY }
    }

    /// The largest correction that is believed `gap` after the last one.
    pub fn offset_sanity(&self, gap: f64) -> f64 {
        OFFSET_SANITY * self.stamp_noise + OFFSET_SANITY_GROWTH * self.rate_error * gap
    }

    /// How long the path must look longer: the shift window, and never less than 100 polls.
    pub fn shift_window_at(&self, poll: f64) -> MinimumWindow {
        let length = self.shift_window.max(SHIFT_POLLS * poll);
        MinimumWindow { length, block: length / SHIFT_BLOCKS }
    }

    /// The window of the floor, in blocks of 10.5 minutes for a week.
    pub fn floor_window(&self) -> MinimumWindow {
        MinimumWindow { length: self.floor_window, block: self.floor_window / FLOOR_BLOCKS }
    }

    /// The history for offsets and local rates: bins of a sixty-fourth of the offset window.
    pub fn history(&self) -> Shape {
        Shape { widest: self.offset_window / HISTORY_BINS, crowd: HISTORY_CROWD, capacity: HISTORY_CAPACITY }
    }

    /// The history for the long-term rate.
    pub fn archive(&self) -> Shape {
        Shape { widest: self.floor_window / ARCHIVE_BINS, crowd: ARCHIVE_CROWD, capacity: ARCHIVE_CAPACITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "A configuration reload that silently lost thresholds": every threshold follows the configuration it was made
    /// of.
    #[test]
    fn every_threshold_follows_its_option() {
        let mut config = ClassicConfig::default();
        let before = Thresholds::new(&config);
        // A far path begins at 3 ms.
        assert!((before.shift(2.9e-3) - 150e-6).abs() < 1e-9 && (before.shift(3.1e-3) - 450e-6).abs() < 1e-9);
        assert!((before.offset_quality(2.9e-3) - 450e-6).abs() < 1e-9);
        assert!((before.offset_sanity(100.0) - 2.5e-3).abs() < 1e-8);
        config.set("timestamp_limit", "30 us").unwrap();
        config.set("rate_error_bound", "1 ppm").unwrap();
        let after = Thresholds::new(&config);
        for (new, old) in [
            (after.shift(1e-3), before.shift(1e-3)),
            (after.pair_point, before.pair_point),
            (after.offset_quality(1e-3), before.offset_quality(1e-3)),
            (after.offset_sanity(100.0), before.offset_sanity(100.0)),
            (after.rate_sanity, before.rate_sanity),
            (after.rate_quality_late, before.rate_quality_late),
        ] {
            assert!((new / old - 2.0).abs() < 1e-6);
        }
    }

    #[test]
    fn every_history_can_fill_its_window() {
        let thresholds = Thresholds::new(&ClassicConfig::default());
        let spans = [5.5 * thresholds.offset_window, thresholds.floor_window];
        for (shape, span) in [thresholds.history(), thresholds.archive()].into_iter().zip(spans) {
            assert!(shape.crowd < shape.capacity);
            assert!(shape.capacity as f64 * 0.9 * shape.widest > span);
        }
    }

    #[test]
    fn the_shift_window_holds_a_hundred_polls() {
        let thresholds = Thresholds::new(&ClassicConfig::default());
        assert_eq!(thresholds.shift_window_at(1.0).length, 1_500.0);
        assert_eq!(thresholds.shift_window_at(16.0).length, 1_600.0);
        assert_eq!(thresholds.shift_window_at(1024.0).length, 102_400.0);
    }
}

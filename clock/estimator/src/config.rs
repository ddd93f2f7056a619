//! The options of both algorithms.

use crate::tuning::ensemble::ASYMMETRY_PART;
use alloc::vec::Vec;
use ffclock_units::{Bound, OptionError, OptionValue, Rate, Span};

ffclock_units::options! {
    /// The classic algorithm. Everything but the timestamp limit, the oscillator and the path can stay as it is.
    pub struct ClassicConfig {
        /// The noise of one stamp in ordinary conditions. Most thresholds are multiples of it.
        timestamp_limit: Bound = Bound::of(Span::from_micros(15)),
            Bound::of(Span::from_nanos(10)) => Bound::of(Span::from_millis(10));
        /// How far the counter's rate moves within a quarter of an hour.
        rate_error_bound: Rate = Rate::from_ppm(0.5), Rate::from_ppb(1.0) => Rate::from_ppm(100.0);
        /// How fast an offset loses worth with its age.
        best_rate_accuracy: Rate = Rate::from_ppm(0.2), Rate::from_ppb(0.1) => Rate::from_ppm(100.0);
        /// The largest error of a local rate that is used.
        local_rate_quality: Rate = Rate::from_ppm(0.8), Rate::from_ppb(1.0) => Rate::from_ppm(100.0);
        /// Whether the weights follow the noise that is seen, between a tenth and ten times the timestamp limit.
        /// Without: always ten times.
        follow_noise: bool = true;
        /// How far back exchanges have a say in the present offset. The local rate looks back five times as far.
        offset_window: Span = Span::from_secs(1024), Span::from_secs(64) => Span::from_secs(86_400);
        /// How long the smallest round trip is remembered, and the long-term rate averaged.
        floor_window: Span = Span::from_secs(604_800), Span::from_secs(3_600) => Span::from_secs(2_592_000);
        /// How long a longer path must last before it is believed; at least 100 polls are waited for in any case.
        shift_window: Span = Span::from_secs(1_500), Span::from_secs(60) => Span::from_secs(86_400);
        /// The smallest delay to the server minus the smallest delay back, where it was measured by other means.
        asymmetry: Span = Span::ZERO, Span::from_secs(-1) => Span::from_secs(1);
        /// How far the stated asymmetry can be off, with all queueing of the fastest exchange. Unknown: it narrows no
        /// bound.
        asymmetry_error: Bound = Bound::UNKNOWN;
        /// The standard deviation of the unknown part of the asymmetry, as a part of the round trip. The published
        /// uncertainty contains it, and several servers are weighed by it. Where `asymmetry_error` is stated, that
        /// counts instead.
        asymmetry_deviation: f64 = ASYMMETRY_PART, 0.0 => 1.0;
        /// The largest deviation of the counter's rate from its mean over the last day. The bound rests on it. Where
        /// the exchanges show a larger one, that is assumed instead, up to five times this.
        wander: Rate = Rate::from_ppm(1.0), Rate::from_ppb(1.0) => Rate::from_ppm(1000.0);
        /// The largest deviation of the counter's rate from its nominal one.
        nominal_error: Rate = Rate::from_ppm(500.0), Rate::from_ppm(1.0) => Rate::from_ppm(50_000.0);
        /// How much a rate can have changed since it was remembered.
        memory_margin: Rate = Rate::from_ppm(1.0), Rate::ZERO => Rate::from_ppm(1000.0);
        /// How long a server must contradict before its new time is believed.
        step_patience: Span = Span::from_secs(900), Span::from_secs(1) => Span::from_secs(86_400);
    }
}

impl ClassicConfig {
    /// The original's constants for a host in a steady room: what the papers measured.
    pub fn good() -> Self {
        ClassicConfig { follow_noise: false, ..Self::default() }
    }
}

ffclock_units::options! {
    /// The learned algorithm. Everything is on unless the worth of a part is to be measured by leaving it out.
    pub struct LearnedConfig {
        /// Members of the bank that follow a temperature cycle, its frequency tracked.
        cycles: bool = true;
        /// Members with several random walks of the rate instead of a usual one.
        several_walks: bool = true;
        /// The family whose queueing is a mixture of exponentials and of shapes that rise soon after the floor.
        edges: bool = true;
        /// The family whose queueing is a mixture of all shapes, the same in both directions.
        humps: bool = true;
        /// Whether the steep shapes of the two directions are learned apart.
        directions: bool = true;
        /// Whether a change of the path is looked for in each direction.
        floor_changes: bool = true;
        /// Whether the filter is re-initialised from where the fastest of the last exchanges place the time, when that
        /// makes these much likelier.
        reinitialisation: bool = true;
    }
}

impl LearnedConfig {
    /// The names of the parts that can be left out.
    pub fn parts(visit: &mut dyn FnMut(&'static str)) {
        Self::describe(&mut |doc| {
            if doc.kind == <bool as OptionValue>::KIND {
                visit(doc.name);
            }
        });
    }

    /// The names of the parts that are left out.
    pub fn left_out(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        Self::parts(&mut |name| {
            let mut without = self.clone();
            if without.leave_out(name).is_ok() && without == *self {
                names.push(name);
            }
        });
        names
    }

    /// Leaves out the part of a name, to measure what it is worth.
    ///
    /// # Errors
    /// No part has this name.
    pub fn leave_out(&mut self, part: &str) -> Result<(), OptionError> {
        let mut is_part = false;
        Self::parts(&mut |name| is_part |= name == part);
        if is_part { self.set(part, "false") } else { Err(OptionError::Unknown) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_can_be_left_out_by_its_name() {
        let mut config = LearnedConfig::default();
        let mut count = 0;
        LearnedConfig::parts(&mut |part| {
            let whole = config.clone();
            assert_eq!(config.leave_out(part), Ok(()));
            assert_ne!(config, whole, "{part}");
            count += 1;
            assert_eq!(config.left_out().len(), count);
        });
        assert_eq!((count, config.cycles, config.directions), (7, false, false));
        assert_eq!(config.leave_out("tides"), Err(OptionError::Unknown));
    }
}

//! The quality that is claimed: what is worse at once, what is better after a while.
//!
//! Bounds and uncertainties rise between two measurements and fall with each. Two clocks that are alike would be the
//! better one in turn, and every change makes all that follow begin with another master.

use crate::{ClockAccuracy, ClockClass, ClockQuality, ScaledVariance};
use ffclock_units::{Moment, Mono, Span};

/// One figure, of which smaller is better.
#[derive(Clone, Copy, Debug)]
struct Held<T> {
    claimed: T,
    /// The worst of those that were better than what is claimed, and since when all were.
    better: Option<(T, Moment<Mono>)>,
}

impl<T: Copy + Ord> Held<T> {
    fn take(&mut self, figure: T, now: Moment<Mono>, hold: Span) -> T {
        if figure >= self.claimed {
            (self.claimed, self.better) = (figure, None);
            return figure;
        }
        let (worst, since) = self.better.map_or((figure, now), |(worst, since)| (worst.max(figure), since));
        self.better = Some((worst, since));
        if now - since >= hold {
            (self.claimed, self.better) = (worst, None);
        }
        self.claimed
    }
}

/// The three figures of a clock, each for itself, so that none is ever claimed better than it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SteadyQuality(Option<(Held<ClockClass>, Held<ClockAccuracy>, Held<ScaledVariance>)>);

impl SteadyQuality {
    /// What is to be claimed of a clock that is this good at `now`. The first one is claimed as it is.
    pub(super) fn take(&mut self, quality: ClockQuality, now: Moment<Mono>, hold: Span) -> ClockQuality {
        let ClockQuality { class, accuracy, variance } = quality;
        let first = || (begin(class), begin(accuracy), begin(variance));
        let (classes, accuracies, variances) = self.0.get_or_insert_with(first);
        ClockQuality {
            class: classes.take(class, now, hold),
            accuracy: accuracies.take(accuracy, now, hold),
            variance: variances.take(variance, now, hold),
        }
    }
}

const fn begin<T>(claimed: T) -> Held<T> {
    Held { claimed, better: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worse_counts_at_once_and_what_is_better_after_a_while() {
        let mut steady = SteadyQuality::default();
        let mut claimed = |second, class, accuracy| {
            let quality = ClockQuality {
                class: ClockClass(class),
                accuracy: ClockAccuracy(accuracy),
                variance: ScaledVariance(0x4f00),
            };
            let now = Moment::from_origin(Span::from_secs(second));
            let claimed = steady.take(quality, now, Span::from_secs(6));
            (claimed.class.0, claimed.accuracy.0)
        };
        assert_eq!(claimed(0, 7, 0x25), (7, 0x25));
        assert_eq!(claimed(1, 7, 0x27), (7, 0x27), "worse");
        assert_eq!(claimed(2, 6, 0x24), (7, 0x27), "better");
        assert_eq!(claimed(4, 6, 0x26), (7, 0x27));
        assert_eq!(claimed(8, 6, 0x24), (6, 0x26), "for six seconds, of which the worst counts");
        assert_eq!(claimed(9, 6, 0x26), (6, 0x26));
        assert_eq!(claimed(14, 6, 0x25), (6, 0x26));
        assert_eq!(claimed(19, 6, 0x26), (6, 0x26), "a sawtooth is claimed at its top");
        assert_eq!(claimed(20, 6, 0x25), (6, 0x26));
        assert_eq!(claimed(26, 187, 0x25), (187, 0x25), "each figure for itself");
    }
}

//! Percentiles of a few values.
//!
//! The value at a share of the way is interpolated linearly between the two order statistics beside it: type 7 of R. J.
//! Hyndman and Y. Fan, "Sample quantiles in statistical packages" (1996), which NumPy calls "linear".

use std::cmp::Ordering;

/// The value at `share` (0 to 1) of the way; `None` of no values. Selects instead of sorting, and leaves the values in
/// another order.
pub fn percentile_in_place(values: &mut [f64], share: f64) -> Option<f64> {
    let place = share * values.len().checked_sub(1)? as f64;
    let below = place as usize;
    let (_, low, rest) = values.select_nth_unstable_by(below, f64::total_cmp);
    let high = rest.iter().copied().min_by(f64::total_cmp).unwrap_or(*low);
    Some(*low + (high - *low) * (place - below as f64))
}

/// The value at `share` (0 to 1) of the way; `None` of no values. Of many values or for several shares, [`Sorted`] is
/// faster.
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    Sorted::of(values.iter().copied()).quantile(share)
}

/// The middle value, of an even number of values the upper of the two in the middle; `None` of no values. It is always
/// one of the values, never between two of them.
pub fn upper_median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    upper_median_by(values, f64::total_cmp)
}

/// The same of values of any type, in this order.
pub fn upper_median_by<T: Copy>(
    values: impl IntoIterator<Item = T>,
    compare: impl FnMut(&T, &T) -> Ordering,
) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, compare).1)
}

/// Values in order. Any number of percentiles can be taken from them.
#[derive(Clone, Debug, Default)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// Puts the values in order.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Sorted(values)
    }

    /// The value at `share` (0 to 1) of the way; `None` of no values.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        let place = share * last as f64;
        let (low, high) = (self.0[place as usize], self.0[(place as usize + 1).min(last)]);
        Some(low + (high - low) * place.fract())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values: numpy.percentile of the same numbers.
    #[test]
    fn quantiles_interpolate() {
        let values = Sorted::of([4.0, 1.0, 2.0]);
        assert_eq!(values.quantile(0.5), Some(2.0));
        assert_eq!(values.quantile(0.75), Some(3.0));
        assert_eq!(Sorted::of([]).quantile(0.5), None);
    }

    #[test]
    fn percentiles_are_interpolated() {
        let mut values = [4.0, 1.0, 3.0, 2.0, 5.0];
        for (share, expected) in [(0.0, 1.0), (0.25, 2.0), (0.5, 3.0), (0.875, 4.5), (1.0, 5.0)] {
            assert_eq!(percentile_in_place(&mut values, share), Some(expected));
        }
        assert_eq!((percentile_in_place(&mut [], 0.5), percentile(&[], 0.5)), (None, None));
        assert_eq!(percentile(&[4.0, 1.0, 2.0, 3.0], 0.5), Some(2.5));
        assert_eq!((percentile(&[3.0, 1.0, 2.0], 0.5), percentile(&[1.0, 2.0], 0.1)), (Some(2.0), Some(1.1)));
    }

    #[test]
    fn selecting_and_sorting_give_the_same_bits() {
        let mut values: Vec<f64> = (0..1000).map(|number| f64::from(number * 7919 % 1009 - 500) / 7.0).collect();
        let sorted = Sorted::of(values.iter().copied());
        for percent in 0..=100 {
            let share = f64::from(percent) / 100.0;
            assert_eq!(
                percentile_in_place(&mut values, share).map(f64::to_bits),
                sorted.quantile(share).map(f64::to_bits)
            );
        }
    }

    #[test]
    fn the_upper_median_is_one_of_the_values() {
        assert_eq!(upper_median([4.0, 1.0, 3.0, 2.0]), Some(3.0));
        assert_eq!(upper_median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(upper_median([]), None);
        assert_eq!(upper_median_by([7, 9, 8], i32::cmp), Some(8));
    }
}

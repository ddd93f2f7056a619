//! The weighted mean over the offset window, written so that it runs in wide registers and gives the same bits
//! everywhere.

use crate::history::{LANES, Row, View, lesser};
use crate::tuning::classic::WORTHLESS;

/// How exchanges are moved to the present and weighted.
#[derive(Clone, Copy, Debug)]
pub struct Weighing {
    /// The present position.
    pub now: f64,
    /// The height predicted for the present; deviations are summed instead of heights, so that no precision is lost.
    pub predicted: f64,
    /// The rate that moves a height to the present.
    pub rate: f64,
    /// How fast an exchange loses worth, s/s.
    pub ageing: f64,
    /// The scale of the weights, s.
    pub scale: f64,
}

/// What the window says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeighedDeviation {
    /// The mean deviation from the prediction.
    pub deviation: f64,
    /// The weighted standard deviation around it.
    pub spread: f64,
}

/// What the errors of a window look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// The smallest total error ET = E + age * ageing; infinite for an empty window.
    pub first: f64,
    /// The second-smallest; infinite with fewer than two exchanges.
    pub second: f64,
    /// The mean point error, each counted as no more than a given limit.
    pub typical: f64,
}

fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// `exp(-u)` for `u >= 0` as `(1 - u/n + u^2/2n^2)^n` with n = 256: multiplications only. Relative error below 2e-3 up
/// to u = 9; a weight below that counts for nothing.
fn falling_exponential(u: f64) -> f64 {
    const PART: f64 = 1.0 / 256.0;
    let v = lesser(u, 128.0) * PART;
    let base = 1.0 - v + 0.5 * v * v;
    let p2 = base * base;
    let p4 = p2 * p2;
    let p8 = p4 * p4;
    let p16 = p8 * p8;
    let p32 = p16 * p16;
    let p64 = p32 * p32;
    let p128 = p64 * p64;
    p128 * p128
}

/// The columns of a few records, side by side.
#[derive(Clone, Copy)]
struct Rows<'a> {
    x: &'a Row,
    y: &'a Row,
    cost: &'a Row,
    floor: &'a Row,
}

/// Shows `view` to `each`, row by row. Lanes that the last row does not need hold a record at `now` that costs
/// `nothing_costs`.
fn for_rows(view: View<'_>, how: &Weighing, nothing_costs: f64, mut each: impl FnMut(Rows<'_>)) {
    debug_assert!([view.y.len(), view.cost.len(), view.floor.len()] == [view.x.len(); 3]);
    let (x, x_rest) = view.x.as_chunks::<LANES>();
    let (y, y_rest) = view.y.as_chunks::<LANES>();
    let (cost, cost_rest) = view.cost.as_chunks::<LANES>();
    let (floor, floor_rest) = view.floor.as_chunks::<LANES>();
    for (((x, y), cost), floor) in x.iter().zip(y).zip(cost).zip(floor) {
        each(Rows { x, y, cost, floor });
    }
    if x_rest.is_empty() {
        return;
    }
    let padded =
        |rest: &[f64], padding: f64| -> Row { core::array::from_fn(|lane| rest.get(lane).copied().unwrap_or(padding)) };
    let (x, y) = (padded(x_rest, how.now), padded(y_rest, how.predicted));
    let (cost, floor) = (padded(cost_rest, nothing_costs), padded(floor_rest, 0.0));
    each(Rows { x: &x, y: &y, cost: &cost, floor: &floor });
}

/// Looks over the errors of `view`; `limit` is the most that a point error counts in their mean.
pub fn survey(view: View<'_>, how: &Weighing, limit: f64) -> Errors {
    let mut first: Row = [f64::INFINITY; LANES];
    let mut second: Row = [f64::INFINITY; LANES];
    let mut sum: Row = [0.0; LANES];
    for_rows(view, how, f64::INFINITY, |rows| {
        let cells = rows.x.iter().zip(rows.cost).zip(rows.floor);
        let lanes = first.iter_mut().zip(&mut second).zip(&mut sum);
        for (((&x, &cost), &floor), ((first, second), sum)) in cells.zip(lanes) {
            let error = cost - floor;
            let total = error + (how.now - x) * how.ageing;
            *second = lesser(*second, greater(*first, total));
            *first = lesser(*first, total);
            *sum += lesser(error, limit);
        }
    });
    let lanes = first.into_iter().zip(second);
    let (first, second) = lanes.fold((f64::INFINITY, f64::INFINITY), |(first, second), (lane_first, lane_second)| {
        (lesser(first, lane_first), lesser(lesser(second, lane_second), greater(first, lane_first)))
    });
    let count = view.x.len();
    let padding = count.next_multiple_of(LANES).saturating_sub(count) as f64 * limit;
    let sum = sum.iter().fold(0.0, |all, lane| all + lane) - padding;
    Errors { first, second, typical: sum / (count.max(1) as f64) }
}

/// The mean over `view`, each height moved to the present, weighted by `exp(-(ET / scale)^2)`; `None` when nothing has
/// weight.
pub fn weigh(view: View<'_>, how: &Weighing) -> Option<WeighedDeviation> {
    let inverse = 1.0 / how.scale;
    let (mut weights, mut sums, mut squares): (Row, Row, Row) = Default::default();
    for_rows(view, how, WORTHLESS, |rows| {
        let cells = rows.x.iter().zip(rows.y).zip(rows.cost.iter().zip(rows.floor));
        let lanes = weights.iter_mut().zip(&mut sums).zip(&mut squares);
        for (((&x, &y), (&cost, &floor)), ((weights, sum), squares)) in cells.zip(lanes) {
            let age = how.now - x;
            let scaled = (cost - floor + age * how.ageing) * inverse;
            let weight = falling_exponential(scaled * scaled);
            let deviation = y + how.rate * age - how.predicted;
            *weights += weight;
            *sum += weight * deviation;
            *squares += weight * deviation * deviation;
        }
    });
    let [weight, sum, squares] = [weights, sums, squares].map(|row| row.iter().fold(0.0, |all, lane| all + lane));
    if weight.is_nan() || weight <= 0.0 {
        return None;
    }
    let deviation = sum / weight;
    Some(WeighedDeviation { deviation, spread: libm::sqrt((squares / weight - deviation * deviation).max(0.0)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_weight_is_an_exponential() {
        for step in 0..=90 {
            let u = step as f64 * 0.1;
            assert!((falling_exponential(u) / libm::exp(-u) - 1.0).abs() < 2e-3, "{u}");
        }
        assert!(falling_exponential(1e300) < 1e-40 && falling_exponential(1e300) >= 0.0);
    }

    #[test]
    fn agrees_with_the_plain_formula() {
        let n = 63;
        let x: Vec<f64> = (0..n).map(|i| 16.0 * i as f64).collect();
        let y: Vec<f64> = (0..n).map(|i| 1e-3 + 1e-5 * (i * 7 % 11) as f64).collect();
        let cost: Vec<f64> = (0..n).map(|i| 300e-6 + 2e-5 * (i * 5 % 13) as f64).collect();
        let floor: Vec<f64> = (0..n).map(|_| 300e-6).collect();
        let view = View { x: &x, y: &y, cost: &cost, floor: &floor };
        let how = Weighing { now: 1_000.0, predicted: 1e-3, rate: 1e-8, ageing: 2e-7, scale: 150e-6 };
        let total = |i: usize| cost[i] - floor[i] + (1_000.0 - x[i]) * 2e-7;
        let weights: Vec<f64> = (0..n).map(|i| libm::exp(-(total(i) / 150e-6) * (total(i) / 150e-6))).collect();
        let mean = (0..n).map(|i| weights[i] * (y[i] + 1e-8 * (1_000.0 - x[i]) - 1e-3)).sum::<f64>()
            / weights.iter().sum::<f64>();
        let weighed = weigh(view, &how).unwrap();
        assert!((weighed.deviation - mean).abs() < 1e-9, "{} {mean}", weighed.deviation);
        let mut totals: Vec<f64> = (0..n).map(total).collect();
        totals.sort_by(f64::total_cmp);
        let errors = survey(view, &how, 1.0);
        assert_eq!((errors.first, errors.second), (totals[0], totals[1]));
        let mean = (0..n).map(|i| cost[i] - floor[i]).sum::<f64>() / n as f64;
        assert!((errors.typical - mean).abs() < 1e-15);
    }

    #[test]
    fn an_empty_window_says_nothing() {
        let view = View { x: &[], y: &[], cost: &[], floor: &[] };
        let how = Weighing { now: 0.0, predicted: 0.0, rate: 0.0, ageing: 1e-7, scale: 1e-4 };
        assert_eq!(weigh(view, &how), None);
        assert_eq!(survey(view, &how, 1.0).first, f64::INFINITY);
    }
}

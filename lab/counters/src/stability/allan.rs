//! Allan deviation and modified Allan deviation of evenly spaced time errors.
//!
//! Source: W. J. Riley, Handbook of Frequency Stability Analysis, NIST SP 1065 (2008), equations 10 (overlapping Allan
//! variance from phase data, page 15) and 14 (modified Allan variance from phase data, page 17).

use serde::{Deserialize, Serialize};

/// A deviation at one averaging time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deviation {
    /// The averaging time, s.
    pub tau_s: f64,
    /// Overlapping Allan deviation.
    pub adev: f64,
    /// Modified Allan deviation, where the data are long enough.
    pub mdev: Option<f64>,
    /// Second differences that the first one rests on.
    pub count: usize,
}

/// Overlapping Allan deviation of time errors `x` [s], `spacing` [s] apart, over `m` spacings. `None` of fewer than 2 m
/// + 1.
pub fn allan_deviation(x: &[f64], spacing: f64, m: usize) -> Option<f64> {
    if m == 0 || x.len() < 2 * m + 1 {
        return None;
    }
    let squares: f64 = (0..x.len() - 2 * m).map(|i| (x[i + 2 * m] - 2.0 * x[i + m] + x[i]).powi(2)).sum();
    let tau = m as f64 * spacing;
    Some((squares / (2.0 * tau * tau * (x.len() - 2 * m) as f64)).sqrt())
}

/// Modified Allan deviation, likewise. `None` of fewer than 3 m.
pub fn modified_allan_deviation(x: &[f64], spacing: f64, m: usize) -> Option<f64> {
    if m == 0 || x.len() < 3 * m {
        return None;
    }
    let second = |i: usize| x[i + 2 * m] - 2.0 * x[i + m] + x[i];
    let mut sum: f64 = (0..m).map(second).sum();
    let groups = x.len() - 3 * m + 1;
    let mut squares = sum * sum;
    for first in 1..groups {
        sum += second(first + m - 1) - second(first - 1);
        squares += sum * sum;
    }
    let (m, tau) = (m as f64, m as f64 * spacing);
    Some((squares / (2.0 * m * m * tau * tau * groups as f64)).sqrt())
}

/// Both at 1, 2, 4 ... spacings, up to half the length.
pub fn deviations(x: &[f64], spacing: f64) -> Vec<Deviation> {
    let lengths = core::iter::successors(Some(1_usize), |m| m.checked_mul(2));
    lengths
        .map_while(|m| {
            let adev = allan_deviation(x, spacing, m)?;
            let mdev = modified_allan_deviation(x, spacing, m);
            Some(Deviation { tau_s: m as f64 * spacing, adev, mdev, count: x.len() - 2 * m })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 1000-point set of NIST SP 1065, section 12.4 (page 107 ff.): frequencies from a linear congruential
    /// generator.
    fn nist() -> Vec<f64> {
        let numbers = core::iter::successors(Some(1_234_567_890_u64), |n| Some(n * 16_807 % 2_147_483_647));
        let mut phase = vec![0.0];
        for number in numbers.take(1000) {
            phase.push(phase[phase.len() - 1] + number as f64 / 2_147_483_647.0);
        }
        phase
    }

    /// Expected values: table 31 of the handbook (averaging factors 1, 10, 100).
    #[test]
    fn the_figures_of_the_handbook_come_out() {
        let x = nist();
        for (m, adev, mdev) in
            [(1, 2.922_319e-1, 2.922_319e-1), (10, 9.159_953e-2, 6.172_376e-2), (100, 3.241_343e-2, 2.170_921e-2)]
        {
            let found = [allan_deviation(&x, 1.0, m).unwrap(), modified_allan_deviation(&x, 1.0, m).unwrap()];
            assert!((found[0] / adev - 1.0).abs() < 1e-6, "{m}: {found:?}");
            assert!((found[1] / mdev - 1.0).abs() < 1e-6, "{m}: {found:?}");
        }
    }

    #[test]
    fn a_constant_rate_is_no_instability_and_short_data_no_figure() {
        let line: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(deviations(&line, 2.0).iter().all(|deviation| deviation.adev < 1e-12));
        assert_eq!(deviations(&line, 2.0).last().unwrap().tau_s, 64.0);
        assert!(
            allan_deviation(&line[..2], 1.0, 1).is_none() && modified_allan_deviation(&line[..2], 1.0, 1).is_none()
        );
        assert!(deviations(&[], 1.0).is_empty() && allan_deviation(&line, 1.0, 0).is_none());
    }
}

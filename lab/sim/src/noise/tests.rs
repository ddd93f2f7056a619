//! The generators against the definition of what they claim: the Allan deviation of what they make.
//!
//! A confidence interval follows W. J. Riley, NIST SP 1065, section 5.3: the overlapping estimate over M intervals in N
//! seconds has about N / M degrees of freedom for the noises here, and its relative error is about 1 / sqrt(2 N / M).
//! Four of these are allowed; seeds are fixed.

use super::*;

const SAMPLES: usize = 12_000;

/// The overlapping Allan deviation of a phase record sampled each `step` seconds, over `span` steps (NIST SP 1065,
/// equation 11).
fn allan_deviation(phase: &[f64], span: usize, step: f64) -> f64 {
    let differences = phase.windows(2 * span + 1).map(|window| window[2 * span] - 2.0 * window[span] + window[0]);
    let (sum, count) = differences.fold((0.0, 0.0), |(sum, count), second| (sum + second * second, count + 1.0));
    (sum / (2.0 * count)).sqrt() / (span as f64 * step)
}

/// Checks the deviation at several spans, averaged over a few seeds, against what it must be.
fn check(step: f64, expected: impl Fn(f64) -> f64, record: impl Fn(u64) -> Vec<f64>) {
    let seeds = 6;
    let records: Vec<Vec<f64>> = (1..=seeds).map(record).collect();
    for span in [1, 4, 16, 64, 256] {
        let squares = records.iter().map(|phase| allan_deviation(phase, span, step).powi(2));
        let seen = (squares.sum::<f64>() / seeds as f64).sqrt();
        let wanted = expected(span as f64 * step);
        let freedom = (SAMPLES / span) as f64 * seeds as f64;
        let allowed = 0.02 + 4.0 / (2.0 * freedom).sqrt();
        assert!((seen / wanted - 1.0).abs() < allowed, "at {span} steps of {step} s: {seen:e}, wanted {wanted:e}");
    }
}

fn walked(mut step: impl FnMut() -> f64) -> Vec<f64> {
    let mut phase = 0.0;
    let advance = |_| {
        phase += step();
        phase
    };
    (0..SAMPLES).map(advance).collect()
}

#[test]
fn white_frequency_noise_falls_with_the_root_of_the_interval() {
    for step in [0.5, 16.0] {
        let noise = WhiteFrequency { at_1_s: 1e-9 };
        check(
            step,
            |interval| 1e-9 / interval.sqrt(),
            |seed| {
                let mut random = Random::new(seed);
                walked(|| noise.step(step, &mut random))
            },
        );
    }
}

#[test]
fn random_walk_frequency_noise_rises_with_the_root_of_the_interval() {
    for step in [1.0, 16.0] {
        check(
            step,
            |interval| 1e-8 * (interval / 1e4).sqrt(),
            |seed| {
                let mut random = Random::new(seed);
                let mut noise = WalkFrequency::new(1e-8, 1e4);
                walked(|| noise.step(step, &mut random))
            },
        );
    }
}

#[test]
fn flicker_frequency_noise_is_flat() {
    for step in [4.0, 64.0] {
        check(
            step,
            |_| 3e-9,
            |seed| {
                let mut random = Random::new(seed);
                let mut noise = FlickerFrequency::new(3e-9, &mut random);
                walked(|| noise.step(step, &mut random))
            },
        );
    }
}

#[test]
fn white_phase_noise_falls_with_the_interval() {
    check(
        1.0,
        |interval| 1e-10 / interval,
        |seed| {
            let mut random = Random::new(seed);
            (0..SAMPLES).map(|_| white_phase(1e-10, &mut random)).collect()
        },
    );
}

/// The formula of table 4 for 1/f phase noise: sigma^2 interval^2 grows with the logarithm of the interval, so by the
/// same amount for each factor of four. Each process contributes v (3 - 4a + a^2), and 3 v once the interval has passed
/// its constant.
#[test]
fn flicker_phase_noise_falls_a_little_slower() {
    let exact = |interval: f64| {
        let share = |interval: f64| {
            let part = |constant: f64| 3.0 - 4.0 * (-interval / constant).exp() + (-2.0 * interval / constant).exp();
            constants(PHASE_FASTEST_S, PHASE_PROCESSES).map(part).sum::<f64>()
        };
        1e-10 / interval * (share(interval) / share(1.0)).sqrt()
    };
    assert!((exact(64.0) / exact(16.0) - 0.25).abs() < 0.05);
    check(1.0, exact, |seed| {
        let mut random = Random::new(seed);
        let mut noise = FlickerPhase::new(1e-10, &mut random);
        let mut look = || {
            noise.step(1.0, &mut random);
            noise.value()
        };
        (0..SAMPLES).map(|_| look()).collect()
    });
}

/// The modified Allan deviation (NIST SP 1065, equation 14), which distinguishes white phase noise from flicker.
fn modified_allan_deviation(phase: &[f64], span: usize, step: f64) -> f64 {
    let sums: Vec<f64> = [0.0]
        .into_iter()
        .chain(phase.iter().scan(0.0, |sum, value| {
            *sum += value;
            Some(*sum)
        }))
        .collect();
    let mean = |from: usize| sums[from + span] - sums[from];
    let count = phase.len() + 1 - 3 * span;
    let square = |from: usize| (mean(from + 2 * span) - 2.0 * mean(from + span) + mean(from)).powi(2);
    let sum: f64 = (0..count).map(square).sum();
    (sum / (2.0 * count as f64)).sqrt() / (span as f64).powi(2) / step
}

/// The slope of a deviation over spans of 4 to 64 seconds on double logarithmic paper, with its standard error over the
/// seeds.
fn slope(deviation: fn(&[f64], usize, f64) -> f64, record: impl Fn(u64) -> Vec<f64>) -> (f64, f64) {
    let seeds = 8_u32;
    let of = |seed: u32| {
        let phase = record(seed.into());
        (deviation(&phase, 64, 1.0) / deviation(&phase, 4, 1.0)).ln() / 16.0_f64.ln()
    };
    let slopes: Vec<f64> = (1..=seeds).map(of).collect();
    let mean = slopes.iter().sum::<f64>() / f64::from(seeds);
    let square: f64 = slopes.iter().map(|slope| (slope - mean).powi(2)).sum();
    (mean, (square / f64::from(seeds * (seeds - 1))).sqrt())
}

/// The slope that flicker phase noise must have, by the covariances of its processes: -1, and a little more since what
/// is faster than the second between two looks is seen as white.
fn flicker_phase_slope() -> f64 {
    let variance = |span: usize| {
        let weight = |index: usize| [1.0, -2.0, 1.0][index / span];
        let correlation = |lag: usize| -> f64 {
            constants(PHASE_FASTEST_S, PHASE_PROCESSES).map(|constant| (-(lag as f64) / constant).exp()).sum()
        };
        let correlations: Vec<f64> = (0..3 * span).map(correlation).collect();
        let row = |one: usize| (0..3 * span).map(move |other| (one, other));
        let pairs = (0..3 * span).flat_map(row);
        let sum: f64 = pairs.map(|(one, other)| weight(one) * weight(other) * correlations[one.abs_diff(other)]).sum();
        sum / (span as f64).powi(4)
    };
    0.5 * (variance(64) / variance(4)).ln() / 16.0_f64.ln()
}

/// Table 4 of NIST SP 1065: the slopes that distinguish the five kinds.
#[test]
fn each_kind_has_its_slope() {
    let make = |kind: usize, seed: u64| {
        let mut random = Random::new(seed);
        let (white, mut walk) = (WhiteFrequency { at_1_s: 1e-9 }, WalkFrequency::new(1e-8, 1e4));
        let mut flicker = FlickerFrequency::new(3e-9, &mut random);
        let mut flicker_phase = FlickerPhase::new(1e-10, &mut random);
        match kind {
            0 => (0..SAMPLES).map(|_| white_phase(1e-10, &mut random)).collect(),
            1 => {
                let mut look = || {
                    flicker_phase.step(1.0, &mut random);
                    flicker_phase.value()
                };
                (0..SAMPLES).map(|_| look()).collect()
            }
            2 => walked(|| white.step(1.0, &mut random)),
            3 => walked(|| flicker.step(1.0, &mut random)),
            _ => walked(|| walk.step(1.0, &mut random)),
        }
    };
    let flicker_phase = flicker_phase_slope();
    assert!((-1.2..=-1.0).contains(&flicker_phase), "{flicker_phase}");
    let slopes = [(-1.5, 0.03), (flicker_phase, 0.01), (-0.5, 0.03), (0.0, 0.03), (0.5, 0.03)];
    for (kind, (expected, systematic)) in slopes.into_iter().enumerate() {
        let (seen, error) = slope(modified_allan_deviation, |seed| make(kind, seed));
        assert!((seen - expected).abs() < 4.0 * error + systematic, "{kind}: {seen} +- {error}, expected {expected}");
        assert!(error < 0.05, "{kind}: {error}");
    }
    // The plain deviation distinguishes the phase noises by the logarithm only.
    let (white, _) = slope(allan_deviation, |seed| make(0, seed));
    assert!((white + 1.0).abs() < 0.02, "{white}");
}

/// Many short steps and one long step are the same process: the variance of the phase agrees.
#[test]
fn the_length_of_a_step_does_not_matter() {
    let variance = |parts: u32| {
        let mut random = Random::new(3);
        let count = 4_000;
        let interval = 64.0 / f64::from(parts);
        let end = |random: &mut Random| {
            let mut flicker = FlickerFrequency::new(1e-9, random);
            let mut walk = WalkFrequency::new(1e-9, 64.0);
            (0..parts).map(|_| flicker.step(interval, random) + walk.step(interval, random)).sum::<f64>()
        };
        (0..count).map(|_| end(&mut random).powi(2)).sum::<f64>() / f64::from(count)
    };
    assert!((variance(1) / variance(40) - 1.0).abs() < 0.12);
}

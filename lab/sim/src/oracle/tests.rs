//! The methods of the oracles against answers that are known.

use super::dynamics::{Dynamics, Matrix, Normal};
use super::evidence::ObservedExchange;
use super::knowledge::WayLaws;
use super::nodes;
use super::particles::{Laws, Particles};
use super::propagation::{PhaseNode, Setting, filter, smooth};
use crate::random::Random;
use crate::scenario::Scenario;
use crate::{CLOCKS, ORACLES, Run};
use ffclock_units::Direction;

const STEP_S: f64 = 16.0;

/// A world in which only the phase moves.
struct Toy {
    dynamics: Dynamics,
    ways: [WayLaws; 2],
    /// How far the phase moves in a step [us].
    walk: f64,
    truth: Vec<f64>,
    exchanges: Vec<ObservedExchange>,
    prior: Normal,
}

impl Toy {
    /// `delay` draws one [us]; the world is `text` below the path.
    fn new(text: &str, seed: u64, count: usize, delay: impl Fn(&mut Random) -> f64) -> Self {
        let text = format!("about = \"x\"\n[path]\nforward = \"100 us\"\nbackward = \"100 us\"\n{text}");
        let scenario = Scenario::parse("toy", &text).unwrap();
        let walk = scenario.oscillator.white_frequency_at_1_s * 1e6 * STEP_S.sqrt();
        let mut random = Random::new(seed);
        let mut phase = 0.0;
        let (mut truth, mut exchanges) = (Vec::new(), Vec::new());
        for index in 0..count {
            phase += walk * random.normal();
            truth.push(phase);
            let (lower, upper) = (phase - delay(&mut random), phase + delay(&mut random));
            exchanges.push(ObservedExchange { at: STEP_S * (index + 1) as f64, trip: 0.0, lower, upper });
        }
        let dynamics = Dynamics::of(&scenario.oscillator);
        let mut covariance = Matrix::zero(dynamics.size());
        covariance.cells[0] = 25.0;
        let prior = Normal { at: STEP_S, mean: vec![0.0; dynamics.size()], covariance };
        let ways = [Direction::Outgoing, Direction::Incoming].map(|direction| WayLaws::of(&scenario, direction));
        Toy { dynamics, ways, walk, truth, exchanges, prior }
    }

    fn packets(&self) -> Vec<PhaseNode> {
        self.exchanges.iter().copied().flat_map(nodes).collect()
    }

    fn setting(&self) -> Setting<'_> {
        Setting { dynamics: &self.dynamics, ways: &self.ways, prior: &self.prior }
    }

    /// The means after each exchange by the particles.
    fn by_particles(&self, count: usize) -> Vec<f64> {
        let laws = Laws { dynamics: &self.dynamics, ways: &self.ways };
        let mut particles = Particles::new(laws, &self.prior, count, Random::new(1));
        let mut after = |exchange: &ObservedExchange| {
            particles.observe(*exchange);
            particles.phase(exchange.at)
        };
        self.exchanges.iter().map(&mut after).collect()
    }

    fn smoothed(&self) -> Vec<f64> {
        let looks: Vec<f64> = self.exchanges.iter().map(|exchange| exchange.at).collect();
        smooth(self.setting(), &self.packets(), &looks).iter().map(|belief| belief.mean).collect()
    }

    /// Filter and smoother as sums over all possibilities, on a grid: means of the phase, and the deviation of the
    /// filter's.
    fn on_a_grid(&self, density: impl Fn(f64) -> f64) -> (Vec<f64>, Vec<f64>, f64) {
        const CELL: f64 = 0.02;
        let places: Vec<f64> = (-1000..=1000).map(|cell| CELL * f64::from(cell)).collect();
        let reach = (6.0 * self.walk / CELL) as usize + 1;
        let kernel: Vec<f64> = (0..=2 * reach)
            .map(|cell| (-0.5 * (CELL * (cell as f64 - reach as f64) / self.walk).powi(2)).exp())
            .collect();
        let spread = |shares: &[f64]| -> Vec<f64> {
            let at = |cell: usize, off: usize| (cell + off).checked_sub(reach).and_then(|from| shares.get(from));
            let sum = |cell| kernel.iter().enumerate().filter_map(|(off, weight)| Some(weight * at(cell, off)?)).sum();
            (0..shares.len()).map(sum).collect()
        };
        let said = |exchange: &ObservedExchange| -> Vec<f64> {
            places.iter().map(|place| density(place - exchange.lower) * density(exchange.upper - place)).collect()
        };
        let product = |one: &[f64], other: &[f64]| normalised(one.iter().zip(other).map(|(a, b)| a * b).collect());
        let mean = |shares: &[f64]| shares.iter().zip(&places).map(|(share, place)| share * place).sum::<f64>();
        let mut forward = vec![normalised(places.iter().map(|place| (-place * place / 50.0).exp()).collect())];
        for (index, exchange) in self.exchanges.iter().enumerate() {
            let last = &forward[forward.len() - 1];
            let expected = if index == 0 { last.clone() } else { spread(last) };
            forward.push(product(&expected, &said(exchange)));
        }
        let mut backward = vec![vec![1.0; places.len()]];
        for exchange in self.exchanges.iter().skip(1).rev() {
            let will = product(&backward[backward.len() - 1], &said(exchange));
            backward.push(spread(&will));
        }
        let filtered: Vec<f64> = forward[1..].iter().map(|shares| mean(shares)).collect();
        let both = forward[1..].iter().zip(backward.iter().rev());
        let smoothed = both.map(|(past, future)| mean(&product(past, future))).collect();
        let last = &forward[forward.len() - 1];
        let square: f64 = last.iter().zip(&places).map(|(share, place)| share * place * place).sum();
        (filtered, smoothed, (square - mean(last).powi(2)).sqrt())
    }
}

fn normalised(shares: Vec<f64>) -> Vec<f64> {
    let sum: f64 = shares.iter().sum();
    shares.into_iter().map(|share| share / sum).collect()
}

fn rms(one: &[f64], other: &[f64]) -> f64 {
    let squares: f64 = one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum();
    (squares / one.len() as f64).sqrt()
}

/// Kalman filter and Rauch-Tung-Striebel smoother of a walking phase, each exchange worth two packets with a deviation
/// of 1 us.
fn kalman(toy: &Toy) -> (Vec<f64>, Vec<f64>) {
    let (mut mean, mut variance) = (0.0, 25.0);
    let mut after = Vec::new();
    for (index, exchange) in toy.exchanges.iter().enumerate() {
        variance += if index == 0 { 0.0 } else { toy.walk * toy.walk };
        let gain = variance / (variance + 0.5);
        mean += gain * (0.5 * (exchange.lower + exchange.upper) - mean);
        variance *= 1.0 - gain;
        after.push((mean, variance));
    }
    let mut smoothed = vec![after[after.len() - 1].0];
    for (mean, variance) in after.iter().rev().skip(1) {
        let gain = variance / (variance + toy.walk * toy.walk);
        smoothed.push(mean + gain * (smoothed[smoothed.len() - 1] - mean));
    }
    smoothed.reverse();
    (after.into_iter().map(|(mean, _)| mean).collect(), smoothed)
}

const WALKING: &str = "[oscillator]\nskew = \"0 ppm\"\nflicker_frequency = 0.0\nwalk_frequency_at_10000_s = 0.0\nwhite_frequency_at_1_s = 2e-8\n";

#[test]
fn with_normal_noise_they_are_the_filter_of_kalman_and_the_smoother_of_rauch() {
    let text = format!("{WALKING}[server]\nnoise = \"1 us\"\n");
    let toy = Toy::new(&text, 1, 120, Random::normal);
    let (filtered, smoothed) = kalman(&toy);
    // The normal density is tabulated and ends at six deviations: a thousandth of its deviation is lost.
    assert!(rms(&toy.smoothed(), &smoothed) < 2e-3, "{}", rms(&toy.smoothed(), &smoothed));
    let last = filter(toy.setting(), &toy.packets()).mean[0];
    assert!((last - filtered[filtered.len() - 1]).abs() < 2e-3);
    // 4000 particles: an error of the posterior's deviation, 0.2 us, over the root of their number.
    let off = rms(&toy.by_particles(4000), &filtered);
    assert!(off < 0.02, "{off}");
}

/// With exponential queueing and a clock that stands still, each phase between the largest lower and the smallest upper
/// end is as likely as any other: the mean is the middle. That is off by half the difference of the smallest delays of
/// n, which are exponential with the mean over n; their difference follows the law of Laplace, whose quartiles lie ln 2
/// scales from the middle (H. A. David, "Order statistics").
#[test]
fn with_a_sharp_edge_and_a_steady_clock_the_middle_of_the_edges_is_known() {
    let text = format!("queue = [{{ mean = \"4 us\" }}]\n{}", WALKING.replace("2e-8", "1e-12"));
    let (mut errors, count) = (Vec::new(), 25);
    for seed in 1..=60 {
        let toy = Toy::new(&text, seed, count, |random| 4.0 * random.exponential());
        let fold = |start: f64, pick: fn(f64, f64) -> f64, end: fn(&ObservedExchange) -> f64| {
            toy.exchanges.iter().map(end).fold(start, pick)
        };
        let lowest = fold(f64::MIN, f64::max, |exchange| exchange.lower);
        let highest = fold(f64::MAX, f64::min, |exchange| exchange.upper);
        let (middle, width) = (0.5 * (lowest + highest), highest - lowest);
        let propagated = filter(toy.setting(), &toy.packets()).mean[0];
        assert!((propagated - middle).abs() < 0.12 * width, "{seed}: {propagated} {middle} {width}");
        errors.push(propagated - toy.truth[count - 1]);
        if seed <= 5 {
            let drawn = toy.by_particles(6000)[count - 1];
            assert!((drawn - middle).abs() < 0.25 * width, "{seed}: {drawn} {middle} {width}");
        }
    }
    errors.sort_by(f64::total_cmp);
    let (iqr, exact) = (errors[44] - errors[14], 4.0 * core::f64::consts::LN_2 / count as f64);
    assert!((0.6..1.6).contains(&(iqr / exact)), "{iqr} {exact}");
}

#[test]
fn with_a_sharp_edge_and_a_walking_clock_they_agree_with_the_sum_over_all_possibilities() {
    let text = format!("queue = [{{ mean = \"4 us\" }}]\n{WALKING}");
    let toy = Toy::new(&text, 2, 100, |random| 4.0 * random.exponential());
    let density = |q: f64| if q < 0.0 { 0.0 } else { 0.25 * (-q / 4.0).exp() };
    let (filtered, smoothed, deviation) = toy.on_a_grid(density);
    let causal = rms(&toy.by_particles(3000), &filtered);
    let both = rms(&toy.smoothed(), &smoothed);
    assert!(causal < 0.1 * deviation, "{causal} {deviation}");
    assert!(both < 0.1 * deviation, "{both} {deviation}");
    // They are the best there are: the errors are those of the exact means, to two per cent.
    let (reached, exact) = (rms(&toy.by_particles(3000), &toy.truth), rms(&filtered, &toy.truth));
    assert!(reached < 1.02 * exact, "{reached} {exact}");
    let (reached, exact) = (rms(&toy.smoothed(), &toy.truth), rms(&smoothed, &toy.truth));
    assert!(reached < 1.02 * exact, "{reached} {exact}");
}

/// The smoother is better than the causal oracle, that is at least as good as every clock, and both are the same with
/// every run.
#[test]
fn oracles_are_ahead_of_all_clocks_and_depend_on_the_seed_alone() {
    let text = "extends = \"lan-16\"\nabout = \"x\"\nduration = \"4 h\"\nfrom = \"1 h\"\n\
        [path]\nqueue = [{ mean = \"4 us\" }, { mean = \"200 us\", share = 0.3, when = { markov = { calm = \"5 min\", busy = \"5 min\" } } }]\n";
    let scenario = Scenario::parse("short", text).unwrap();
    let all: Vec<&str> = CLOCKS.into_iter().chain(ORACLES).collect();
    let run = || Run { name: "short", scenario: &scenario, seed: 3 }.execute_with(&all, None);
    let result = run();
    let rms = |name: &str| result.clocks.iter().find(|clock| clock.name == name).unwrap().windows[0].rms.unwrap();
    assert!(rms("smoother") < 0.7 * rms("oracle"));
    for name in CLOCKS {
        assert!(rms("oracle") < 1.05 * rms(name), "{name}: {} {}", rms(name), rms("oracle"));
    }
    let ratios = result.oracle_ratios.iter().filter(|ratio| ratio.clock == "learned" && ratio.figure == "iqr");
    assert!(ratios.count() == 1 && result.oracle_ratios.len() == 3 * CLOCKS.len());
    assert_eq!(run(), result);
}

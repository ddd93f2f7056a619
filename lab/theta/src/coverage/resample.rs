//! The two runs with their rounds drawn again, in blocks: how far the shares may be from what they would be in longer
//! runs (Kuensch 1989).

use super::sample::{AssumedBound, Draws, WeightedSample};
use super::sweep::CoveredRun;
use super::{
    AgainstTimeout, BoundBasis, BoundCoverage, BoundModel, BoundShares, CoverageCurve, CoverageOptions, CoveragePoint,
    CoverageVerdict, FailingShare, GivenBound,
};
use ffclock_sim::Random;

/// Points of a curve for a tenfold share.
const POINTS_A_DECADE: f64 = 4.0;

/// What a model bounds in one run.
struct RunSamples {
    rounds: WeightedSample,
    time: WeightedSample,
    messages: WeightedSample,
}

/// What a model bounds in both runs.
pub(super) struct ModelSamples {
    model: BoundModel,
    calm: RunSamples,
    loaded: RunSamples,
}

/// What a model gives of the runs, as they are or drawn again.
struct ModelOutcome {
    /// For each share of the curve.
    bounds: Vec<AssumedBound>,
    /// The share of loaded rounds that break each.
    failing: Vec<f64>,
    /// What breaks the first of them, in calm and under load.
    calm: BoundShares<f64>,
    loaded: BoundShares<f64>,
}

/// The runs as they are, or drawn again.
pub(super) struct ResampledRuns {
    models: Vec<ModelOutcome>,
    given: Vec<[BoundShares<f64>; 2]>,
}

/// Draws the rounds of both runs again.
pub(super) struct Resampler<'a> {
    samples: Vec<ModelSamples>,
    /// Rounds and rounds of a block, in calm and under load.
    lengths: [(usize, usize); 2],
    /// The shares of calm rounds that may break a bound; they rise.
    exceeding: Vec<f64>,
    options: &'a CoverageOptions,
}

impl RunSamples {
    fn new(model: BoundModel, run: &CoveredRun, wait_ps: i64) -> Self {
        let count = run.rounds.len();
        let rounds = run.rounds.iter().enumerate();
        let value = |longest_ps, round: usize| model.value(longest_ps, run.rounds[round].relevant_ps, wait_ps);
        let spells = run.spells.iter();
        let messages = run.messages.iter();
        RunSamples {
            rounds: WeightedSample::of(rounds.map(|(at, round)| (value(round.longest_ps, at), 1.0, at)), count),
            time: WeightedSample::of(
                spells.map(|spell| (value(spell.longest_ps, spell.round), spell.lasts_ps as f64, spell.round)),
                count,
            ),
            messages: WeightedSample::of(
                messages.map(|one| (model.value(one.delay_ps, one.relevant_ps, wait_ps), 1.0, one.round)),
                count,
            ),
        }
    }

    fn failing(&self, bound: f64, draws: &Draws) -> BoundShares<f64> {
        let share = |sample: &WeightedSample| sample.failing(&[bound], draws)[0];
        BoundShares { rounds: share(&self.rounds), time: share(&self.time), messages: share(&self.messages) }
    }
}

impl ModelSamples {
    pub(super) fn new(model: BoundModel, [calm, loaded]: &[CoveredRun; 2], wait_ps: i64) -> Self {
        let samples = |run| RunSamples::new(model, run, wait_ps);
        ModelSamples { model, calm: samples(calm), loaded: samples(loaded) }
    }

    fn outcome(&self, exceeding: &[f64], [calm, loaded]: [&Draws; 2]) -> ModelOutcome {
        let bounds = self.calm.rounds.assumed(exceeding, calm);
        let values: Vec<f64> = bounds.iter().map(|bound| bound.value).collect();
        ModelOutcome {
            failing: self.loaded.rounds.failing(&values, loaded),
            calm: self.calm.failing(values[0], calm),
            loaded: self.loaded.failing(values[0], loaded),
            bounds,
        }
    }
}

impl FailingShare {
    /// A figure of the runs as they are, with those of the resamples, which come after it.
    pub(super) fn of(mut figures: impl Iterator<Item = f64>) -> Self {
        let share = figures.next().unwrap_or(f64::NAN);
        let (low, high) = interval(figures).unwrap_or((share, share));
        FailingShare { share, low, high }
    }
}

/// The middle 95 % of figures; `None` if there are none.
pub(super) fn interval(figures: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut figures: Vec<f64> = figures.collect();
    let mut at = |share| ffclock_statistics::percentile_in_place(&mut figures, share);
    Some((at(0.025)?, at(0.975)?))
}

/// The shares of all, with their intervals.
fn shares<'a>(of: impl Iterator<Item = &'a BoundShares<f64>> + Clone) -> BoundShares<FailingShare> {
    BoundShares {
        rounds: FailingShare::of(of.clone().map(|one| one.rounds)),
        time: FailingShare::of(of.clone().map(|one| one.time)),
        messages: FailingShare::of(of.map(|one| one.messages)),
    }
}

/// From the share of the chosen bounds to one half.
fn curve(rarest: f64) -> Vec<f64> {
    let points = (0..).map(|number| 10f64.powf(-f64::from(number) / POINTS_A_DECADE)).skip(2);
    let mut shares: Vec<f64> = points.take_while(|&share| share > rarest * 1.01).collect();
    shares.push(rarest);
    shares.reverse();
    shares
}

impl<'a> Resampler<'a> {
    pub(super) fn new(samples: Vec<ModelSamples>, runs: &[CoveredRun; 2], options: &'a CoverageOptions) -> Self {
        let lengths = [&runs[0], &runs[1]].map(|run| (run.rounds.len(), run.block()));
        Resampler { samples, lengths, exceeding: curve(1.0 - options.share), options }
    }

    /// The runs as they are, and after them those that are drawn again.
    pub(super) fn resamples(&self, watch: &mut dyn FnMut(u32)) -> Vec<ResampledRuns> {
        let mut random = Random::named(self.options.seed, "coverage");
        let whole = self.lengths.map(|(rounds, _)| vec![1; rounds]);
        let mut found = vec![self.outcome([&whole[0], &whole[1]])];
        found.extend((0..self.options.resamples).map(|number| {
            watch(number);
            let draws = self.lengths.map(|(rounds, block)| drawn(rounds, block, &mut random));
            self.outcome([&draws[0], &draws[1]])
        }));
        found
    }

    fn outcome(&self, draws: [&Draws; 2]) -> ResampledRuns {
        ResampledRuns {
            models: self.samples.iter().map(|model| model.outcome(&self.exceeding, draws)).collect(),
            given: self.given_samples().map(|(model, bound)| model.both(bound, draws)).collect(),
        }
    }

    /// Bounds that were given for models that there are.
    fn given_samples(&self) -> impl Iterator<Item = (&ModelSamples, f64)> {
        let of_model = |&GivenBound { model, bound }: &GivenBound| {
            self.samples.iter().find(|samples| samples.model == model).map(|samples| (samples, bound))
        };
        self.options.given.iter().filter_map(of_model)
    }

    /// The chosen bounds, and the curve of each model.
    pub(super) fn chosen(&self, resamples: &[ResampledRuns]) -> (Vec<BoundCoverage>, Vec<CoverageCurve>) {
        let (mut chosen, mut curves) = (Vec::new(), Vec::new());
        for (number, samples) in self.samples.iter().enumerate() {
            let outcomes = || resamples.iter().map(move |runs| &runs.models[number]);
            let Some(whole) = outcomes().next() else { continue };
            let AssumedBound { value: bound, basis } = whole.bounds[0];
            let interval = interval(outcomes().skip(1).map(|one| one.bounds[0].value)).unwrap_or((bound, bound));
            let loaded = shares(outcomes().map(|one| &one.loaded));
            chosen.push(BoundCoverage { model: samples.model, bound, basis, interval, calm: whole.calm, loaded });
            let point = |(place, &calm_share): (usize, &f64)| CoveragePoint {
                calm_share,
                bound: whole.bounds[place].value,
                basis: whole.bounds[place].basis,
                loaded: FailingShare::of(outcomes().map(|one| one.failing[place])),
            };
            let points = self.exceeding.iter().enumerate().map(point).collect();
            curves.push(CoverageCurve { model: samples.model, points });
        }
        (chosen, curves)
    }

    /// The ratios beside the timeout.
    pub(super) fn verdicts(&self, resamples: &[ResampledRuns]) -> Vec<AgainstTimeout> {
        let beside = |(number, samples): (usize, &ModelSamples)| {
            let gain = resamples.iter().map(|runs| runs.models[0].failing[0] - runs.models[number].failing[0]);
            let gain = FailingShare::of(gain);
            let verdict = match gain {
                FailingShare { low, .. } if low > 0.0 => CoverageVerdict::RatioHolds,
                FailingShare { high, .. } if high < 0.0 => CoverageVerdict::TimeoutHolds,
                _ => CoverageVerdict::NoDifference,
            };
            AgainstTimeout { model: samples.model, gain, verdict }
        };
        self.samples.iter().enumerate().skip(1).map(beside).collect()
    }

    pub(super) fn given(&self, resamples: &[ResampledRuns]) -> Vec<BoundCoverage> {
        let found = |(number, (samples, bound)): (usize, (&ModelSamples, f64))| BoundCoverage {
            model: samples.model,
            bound,
            basis: BoundBasis::Given,
            interval: (bound, bound),
            calm: resamples[0].given[number][0],
            loaded: shares(resamples.iter().map(|runs| &runs.given[number][1])),
        };
        self.given_samples().enumerate().map(found).collect()
    }
}

impl ModelSamples {
    fn both(&self, bound: f64, [calm, loaded]: [&Draws; 2]) -> [BoundShares<f64>; 2] {
        [self.calm.failing(bound, calm), self.loaded.failing(bound, loaded)]
    }
}

/// How often each round is drawn, in blocks that begin anywhere, until there are as many as there were.
pub(super) fn drawn(rounds: usize, block: usize, random: &mut Random) -> Vec<u32> {
    let mut times = vec![0; rounds];
    let mut left = rounds;
    while left > 0 {
        let begin = (random.bits() % (rounds - block + 1) as u64) as usize;
        let length = block.min(left);
        times[begin..begin + length].iter_mut().for_each(|one| *one += 1);
        left -= length;
    }
    times
}

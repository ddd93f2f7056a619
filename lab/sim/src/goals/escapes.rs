//! Runs in which a bound did not hold the truth.

use crate::{ENSEMBLES, RunResult};
use serde::Serialize;

/// At most this many of the worst runs are named.
const NAMED_MAX: usize = 20;

/// A run in which a bound did not hold the truth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Escape {
    /// The scenario.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// The clock.
    pub clock: String,
    /// The number of readings outside.
    pub outside: u64,
    /// The largest error of the run [s].
    pub largest: Option<f64>,
}

/// How often bounds held the truth over a whole campaign.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CampaignContainment {
    /// Runs in which the server's claim about itself holds.
    pub runs: u64,
    /// Simulated hours of these runs.
    pub hours: f64,
    /// Readings with a bound, of all feed-forward clocks.
    pub readings: u64,
    /// Those whose bound did not hold the truth.
    pub outside: u64,
    /// The runs with the most of these.
    pub worst: Vec<Escape>,
}

impl CampaignContainment {
    /// Over these runs.
    pub(super) fn of<'a>(runs: impl Iterator<Item = &'a RunResult>) -> Self {
        let mut sum = CampaignContainment::default();
        runs.for_each(|run| sum.add(run));
        sum.worst.sort_by(|one, other| {
            (other.outside, &one.scenario, one.seed).cmp(&(one.outside, &other.scenario, other.seed))
        });
        sum.worst.truncate(NAMED_MAX);
        sum
    }

    fn add(&mut self, run: &RunResult) {
        self.runs += 1;
        self.hours += run.duration_s / 3600.0;
        for name in ["classic", "learned", ENSEMBLES[0]] {
            let whole = run.clocks.iter().find(|clock| clock.name == name).and_then(|clock| clock.windows.first());
            let Some((whole, share)) = whole.and_then(|whole| Some((whole, whole.containment?))) else { continue };
            let claimed = whole.readings as f64 * (1.0 - whole.unread);
            let outside = (claimed * (1.0 - share)).round() as u64;
            self.readings += claimed.round() as u64;
            self.outside += outside;
            if outside > 0 {
                let (scenario, seed) = (run.scenario.clone(), run.seed);
                self.worst.push(Escape { scenario, seed, clock: name.to_owned(), outside, largest: whole.max });
            }
        }
    }
}

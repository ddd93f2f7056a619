//! Lone packets before the floor.
//!
//! Where nearly all packets of a path queue in a soft hump, the floor that the hump suggests lies above the true one,
//! which one packet in hundreds meets. Nothing arrives before the floor, and a counter does not jump for the time of
//! one exchange: such a packet is not garbage, it shows the floor. A path that became shorter makes the packets after
//! it earlier too, and is left to the search for changes.

use super::recent::Recent;
use crate::bank::grid::Cavity;
use crate::bank::{Densities, Family};
use crate::tuning::learned::{DEPTH, LEAST_SQUARED_SHIFT, LONE_GAIN};
use ffclock_units::Direction;

/// A packet that came before the floor, and those after it did not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LonePacket {
    pub way: Direction,
    /// How many of the last exchanges came with it or after it.
    pub since: usize,
    /// How long after the floor it came, us: negative.
    pub shift: f64,
    /// The variance of this, us^2.
    pub variance: f64,
}

/// What a lone packet is looked for in.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    pub recent: &'a Recent,
    pub server: usize,
    /// The family that explains the exchanges best.
    pub family: Family,
}

impl Search<'_> {
    /// Looks at the oldest exchange with the server that is remembered. Its round trip has to be shorter than both
    /// floors together: no error of the clock does that.
    pub fn find(&self, densities: Densities<'_>) -> Option<LonePacket> {
        let Search { recent, server, family } = *self;
        let count = DEPTH.min(recent.depth());
        let since = recent.since(server, count)?;
        let (_, oldest) = recent.of(server).nth(count.checked_sub(1)?)?;
        let [forward, backward] = oldest.predictions[family.index()].cavities;
        let is_short = forward.mean + backward.mean < 0.0;
        let way = if forward.mean < backward.mean { Direction::Outgoing } else { Direction::Incoming };
        let Cavity { mean: shift, variance } = [forward, backward][way.index()];
        let is_early = shift < 0.0 && shift * shift > LEAST_SQUARED_SHIFT * variance;
        if !(is_short && is_early) {
            return None;
        }
        let density = densities[family.index()][way.index()];
        let gain: f64 = recent
            .of(server)
            .take(count.saturating_sub(1))
            .map(|(_, observation)| {
                let predictions = &observation.predictions[family.index()];
                density.log_at(predictions.cavities[way.index()].mean - shift) - predictions.logs[way.index()]
            })
            .sum();
        (gain < LONE_GAIN).then_some(LonePacket { way, since, shift, variance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LearnedConfig;
    use crate::bank::density::{Components, Mixture};
    use crate::bank::group::{Begin, Evident};
    use crate::bank::measurement::Measurement;
    use crate::bank::{Bank, BankExchange, FloorWalk, ModelSet, Prediction, model};
    use crate::learned::recent::Observation;
    use crate::tuning::bank::STEEP;

    /// A mixture that learned packets which queue for 500 to 1500 us.
    fn soft() -> Mixture {
        let components = Components::new();
        let mut mixture = Mixture::new(STEEP, 400, &components);
        for step in 0..400 {
            let mean = 500.0 + 2.5 * f64::from(step);
            mixture.keep(&components.likelihoods(&Cavity { mean, variance: 1.0 }));
        }
        mixture.learn(100, &components);
        mixture
    }

    /// What is found among exchanges whose packets queue for these times there and back, the oldest first, us.
    fn found(queueing: [[f64; 2]; DEPTH]) -> Option<LonePacket> {
        let mixture = soft();
        let density = mixture.table();
        let models = model::models(&LearnedConfig::default());
        let set = ModelSet { servers: 1, models, families: [true; 2] };
        let begin = Begin { server: 0, theta: 0.0, rate: 0.0, rate_variance: 1.0, floors: [0.0; 2], variance: 1.0 };
        let bank = Bank::begin(&begin, &set);
        let mut recent = Recent::new(&set);
        for means in queueing {
            let cavities = means.map(|mean| Cavity { mean, variance: 100.0 });
            let prediction = Prediction { cavities, logs: means.map(|mean| density.log_at(mean)) };
            let measurements = [Measurement { delay: 0.0, trip: 0.0, noise: 1e-6 }; 2];
            let exchange = BankExchange {
                server: 0,
                interval: 16.0,
                measurements,
                evident: Evident::All,
                holds_floors: false,
                walk: FloorWalk::NONE,
            };
            recent.save(&bank);
            recent.push(Observation { exchange, predictions: [prediction; 2], step: 0.0 });
        }
        Search { recent: &recent, server: 0, family: Family::Edges }.find([[density; 2]; 2])
    }

    /// Exchanges that begin with this one and go on as usual.
    fn after(first: [f64; 2]) -> [[f64; 2]; DEPTH] {
        core::array::from_fn(|number| if number == 0 { first } else { [900.0, 800.0 + 20.0 * number as f64] })
    }

    #[test]
    fn one_packet_before_the_floor_is_found_when_those_after_it_are_as_usual() {
        let lone = found(after([300.0, -1_000.0])).expect("a lone packet");
        assert_eq!(lone, LonePacket { way: Direction::Incoming, since: DEPTH, shift: -1_000.0, variance: 100.0 });
        let lone = found(after([-400.0, 100.0])).expect("a lone packet of the other way");
        assert_eq!((lone.way, lone.shift), (Direction::Outgoing, -400.0));
    }

    #[test]
    fn within_four_deviations_of_the_floor_nothing_is_found() {
        assert_eq!(found(after([0.0, -39.0])), None);
        assert!(found(after([0.0, -41.0])).is_some());
    }

    /// An error of the clock delays the one packet by as much as it hurries the other.
    #[test]
    fn a_round_trip_that_is_not_too_short_shows_no_floor() {
        assert_eq!(found(after([1_900.0, -1_000.0])), None);
    }

    #[test]
    fn a_path_that_became_shorter_is_not_a_lone_packet() {
        assert_eq!(found([[900.0, -1_000.0]; DEPTH]), None);
    }
}

//! Load of networks and processors, and how long messages wait for it.

use super::spec::{LoadKind, LoadSpec, Pattern, ReceiverSpec};
use crate::length::picoseconds;
use ffclock_sim::Random;

/// Load of each host over time.
pub(super) struct HostLoads {
    spec: LoadSpec,
    seed: u64,
    period: u64,
    packet: f64,
    interrupt: f64,
    polling_period: u64,
    polling_from: f64,
    /// By host: the period that was asked for last, and what was drawn for it.
    cache: Vec<(u64, LoadDraw)>,
}

/// The random part of the load of a host in one period.
#[derive(Clone, Copy, Default)]
struct LoadDraw {
    /// Whether the host has a level of its own, rather than the common one.
    is_own: bool,
    /// The share of the range of levels, where it is random.
    share: f64,
}

/// Above this load, waits would have no end.
const LEVEL_MAX: f64 = 0.99;
const NEVER: u64 = u64::MAX;

impl HostLoads {
    pub(super) fn new(spec: &LoadSpec, receiver: &ReceiverSpec, hosts: usize, seed: u64) -> Result<Self, String> {
        let length = |name: &str, value| {
            let ps = picoseconds(value).filter(|&ps| ps > 0);
            ps.ok_or_else(|| format!("{name} must lie above 0 s and up to 1000 s"))
        };
        for (name, level) in [("load.low", spec.low), ("load.high", spec.high)] {
            if !(0.0..=LEVEL_MAX).contains(&level) {
                return Err(format!("{name} = {level} must lie between 0 and {LEVEL_MAX}"));
            }
        }
        if !(0.0..=1.0).contains(&spec.correlation) {
            return Err(format!("load.correlation = {} must lie between 0 and 1", spec.correlation));
        }
        Ok(HostLoads {
            seed,
            period: length("load.period", spec.period)?,
            packet: length("load.packet", spec.packet)? as f64,
            interrupt: length("load.interrupt", spec.interrupt)? as f64,
            polling_period: length("receiver.polling_period", receiver.polling_period)?,
            polling_from: receiver.polling_from,
            spec: spec.clone(),
            cache: vec![(NEVER, LoadDraw::default()); hosts],
        })
    }

    /// Whether there is any.
    pub(super) fn is_idle(&self) -> bool {
        let highest =
            if self.spec.pattern == Pattern::Constant { self.spec.high } else { self.spec.low.max(self.spec.high) };
        highest == 0.0 && self.polling_from > 0.0
    }

    /// The load of a host, 0 to 0.99.
    fn level(&mut self, host: usize, at: u64) -> f64 {
        if self.spec.pattern == Pattern::Constant {
            return self.spec.high;
        }
        let index = at / self.period;
        if self.cache[host].0 != index {
            self.cache[host] = (index, self.draw(host as u64, index));
        }
        let draw = self.cache[host].1;
        let within = (at % self.period) as f64 / self.period as f64;
        let share = match (self.spec.pattern, draw.is_own) {
            (Pattern::Ramp, false) => within,
            (Pattern::Ramp, true) => (within + draw.share).fract(),
            (Pattern::Jumps, false) => (index % 2) as f64,
            (Pattern::Jumps, true) => f64::from(u8::from(draw.share >= 0.5)),
            _ => draw.share,
        };
        self.spec.low + share * (self.spec.high - self.spec.low)
    }

    fn draw(&self, host: u64, index: u64) -> LoadDraw {
        // The common one has a number that no host has.
        let mut own = Random::new(self.seed ^ (host + 1) << 44 ^ index);
        let is_own = !own.chance(self.spec.correlation);
        let mut common = Random::new(self.seed ^ index);
        let share = if is_own { own.uniform() } else { common.uniform() };
        LoadDraw { is_own, share }
    }

    /// How long a packet waits for foreign ones at a host, in picoseconds: as in an M/M/1 queue it waits with the
    /// probability of the load, and then exponentially with mean packet / (1 - load).
    pub(super) fn network_wait(&mut self, host: usize, at: u64, random: &mut Random) -> u64 {
        if self.spec.kind == LoadKind::Processor {
            return 0;
        }
        let packet = self.packet;
        wait(self.level(host, at), packet, random)
    }

    /// How long processing is interrupted, in picoseconds.
    pub(super) fn processor_wait(&mut self, host: usize, at: u64, random: &mut Random) -> u64 {
        if self.spec.kind == LoadKind::Network {
            return 0;
        }
        let interrupt = self.interrupt;
        wait(self.level(host, at), interrupt, random)
    }

    /// When the kernel of a host notices a packet that has come: at once, or when it polls next.
    pub(super) fn noticed(&mut self, host: usize, at: u64) -> u64 {
        if self.polling_from > 1.0 || self.level(host, at) < self.polling_from {
            return at;
        }
        let phase = (host as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.polling_period;
        at + (self.polling_period - (at + phase) % self.polling_period) % self.polling_period
    }
}

fn wait(level: f64, mean: f64, random: &mut Random) -> u64 {
    if random.chance(level) { (mean / (1.0 - level) * random.exponential()) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_sim::scenario::Length;
    use ffclock_units::Span;

    fn load(pattern: Pattern, correlation: f64) -> HostLoads {
        let spec = LoadSpec { pattern, correlation, low: 0.1, high: 0.9, ..LoadSpec::default() };
        HostLoads::new(&spec, &ReceiverSpec::default(), 2, 1).unwrap()
    }

    /// How levels of two hosts go together over 2000 periods: Pearson's r.
    fn r(load: &mut HostLoads) -> f64 {
        let at = |index: u64| index * load_period() + 1;
        let pairs: Vec<(f64, f64)> = (0..2000).map(|i| (load.level(0, at(i)), load.level(1, at(i)))).collect();
        let mean = |f: fn(&(f64, f64)) -> f64| pairs.iter().map(f).sum::<f64>() / 2000.0;
        let (a, b) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |f: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(f).sum::<f64>();
        let (ab, aa, bb) = (sum(&|p| (p.0 - a) * (p.1 - b)), sum(&|p| (p.0 - a).powi(2)), sum(&|p| (p.1 - b).powi(2)));
        ab / (aa * bb).sqrt()
    }

    fn load_period() -> u64 {
        10_000_000_000
    }

    #[test]
    fn the_knob_turns_the_correlation() {
        for pattern in [Pattern::Jumps, Pattern::Random] {
            assert!(r(&mut load(pattern, 1.0)) > 0.999, "{pattern:?}");
            assert!(r(&mut load(pattern, 0.0)).abs() < 0.12, "{pattern:?}");
            let half = r(&mut load(pattern, 0.7));
            assert!((0.3..0.7).contains(&half), "{pattern:?}: {half}");
        }
    }

    /// Jumps alternate, ramps rise.
    #[test]
    fn patterns_have_their_shapes() {
        let mut jumps = load(Pattern::Jumps, 1.0);
        assert_eq!([0, 1, 2].map(|i| jumps.level(0, i * load_period())), [0.1, 0.9, 0.1]);
        let mut ramp = load(Pattern::Ramp, 1.0);
        assert!(ramp.level(0, 0) < 0.101 && ramp.level(0, load_period() - 1) > 0.899);
    }

    /// M/M/1: the mean wait is load / (1 - load) services.
    #[test]
    fn the_mean_wait_is_that_of_the_queue() {
        let spec = LoadSpec { high: 0.8, ..LoadSpec::default() };
        let mut load = HostLoads::new(&spec, &ReceiverSpec::default(), 1, 1).unwrap();
        let mut random = Random::new(1);
        let mean = (0..200_000).map(|_| load.network_wait(0, 0, &mut random)).sum::<u64>() as f64 / 2e5;
        assert!((mean / (0.8 / 0.2 * 12e6) - 1.0).abs() < 0.02, "{mean}");
        assert_eq!(load.processor_wait(0, 0, &mut random), 0);
    }

    #[test]
    fn polling_rounds_up_to_its_period() {
        let receiver = ReceiverSpec {
            polling_from: 0.5,
            polling_period: Length(Span::from_nanos(1000)),
            ..ReceiverSpec::default()
        };
        let spec = LoadSpec { high: 0.6, ..LoadSpec::default() };
        let mut polling = HostLoads::new(&spec, &receiver, 1, 1).unwrap();
        assert_eq!([0, 1, 999_999, 1_000_000].map(|at| polling.noticed(0, at)), [0, 1_000_000, 1_000_000, 1_000_000]);
        let idle = LoadSpec { high: 0.4, ..LoadSpec::default() };
        assert_eq!(HostLoads::new(&idle, &receiver, 1, 1).unwrap().noticed(0, 1), 1);
    }
}

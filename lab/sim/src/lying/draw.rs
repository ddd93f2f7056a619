//! Draws a world with liars: its file, as `ffclock-lab sim run` reads it.

use crate::{Random, Scenario};
use std::fmt::Write as _;

/// The kinds of lies. A server that is wrong from the start stays within what others prove, or not; one that pleases
/// moves to the edge of the vaguest server's interval and claims that it knows best.
pub const LIES: [&str; 7] = ["constant", "step", "creep", "drift", "please", "late", "now and then"];

/// How many polls a world lasts, and from which on it is judged.
const POLLS: f64 = 500.0;
const FROM_POLLS: f64 = 4.0;
/// The polls [s], each with its share of the worlds.
const POLL_SHARES: [(f64, f64); 3] = [(64.0, 0.05), (256.0, 0.2), (1024.0, 0.75)];
/// How many servers there are.
const SERVERS: [usize; 2] = [3, 7];

/// A world in which a minority lies.
#[derive(Clone, Debug, PartialEq)]
pub struct LyingWorld {
    /// Its file.
    pub text: String,
    /// The lie of each liar.
    pub lies: Vec<&'static str>,
    /// Whether all liars claim the same false time.
    pub is_alike: bool,
}

/// What lies are made from.
struct LyingSetting {
    poll: f64,
    duration: f64,
    /// Half of the longest round trip of an honest server [s].
    vaguest: f64,
}

impl LyingWorld {
    /// The world of a seed.
    pub fn drawn(seed: u64) -> Self {
        let mut chance = Random::named(seed, "lying");
        let count = SERVERS[0] + below(&mut chance, SERVERS[1] - SERVERS[0] + 1);
        let liars = 1 + below(&mut chance, (count - 1) / 2);
        let poll = poll(&mut chance);
        let (mut text, duration) = head(poll, &mut chance);
        let mut vaguest: f64 = 0.0;
        for _ in 0..count - liars {
            vaguest = vaguest.max(honest(&mut text, duration, &mut chance));
        }
        let setting = LyingSetting { poll, duration, vaguest };
        let is_alike = liars > 1 && chance.chance(0.3);
        let one = chance.bits();
        let mut lies = Vec::new();
        for number in 0..liars {
            let mut own = Random::new(if is_alike { one } else { chance.bits() });
            let _ = write!(text, "\n[[server]]\nname = \"liar-{}\"\nlies = true\n", number + 1);
            lies.push(lie(&mut text, &setting, &mut own));
        }
        LyingWorld { text, lies, is_alike }
    }

    /// It as a scenario.
    ///
    /// # Panics
    /// If a world was drawn that cannot be, which no seed does.
    pub fn scenario(&self) -> Scenario {
        Scenario::parse("lying", &self.text).expect("a world that can be")
    }
}

fn below(chance: &mut Random, count: usize) -> usize {
    ((chance.uniform() * count as f64) as usize).min(count - 1)
}

fn between(chance: &mut Random, [low, high]: [f64; 2]) -> f64 {
    low + (high - low) * chance.uniform()
}

/// Every size is as likely as its double.
fn size(chance: &mut Random, [low, high]: [f64; 2]) -> f64 {
    low * libm::pow(high / low, chance.uniform())
}

fn signed(chance: &mut Random, size: f64) -> f64 {
    if chance.chance(0.5) { size } else { -size }
}

fn poll(chance: &mut Random) -> f64 {
    let mut left = chance.uniform();
    for (poll, share) in POLL_SHARES {
        left -= share;
        if left < 0.0 {
            return poll;
        }
    }
    POLL_SHARES[0].0
}

/// A length of time in whole nanoseconds.
fn nanos(seconds: f64) -> String {
    format!("\"{} ns\"", libm::round(seconds * 1e9) as i64)
}

/// What is common to all servers, and how long the world lasts [s].
fn head(poll: f64, chance: &mut Random) -> (String, f64) {
    let duration = POLLS * poll;
    let (skew, wave) = (between(chance, [-80.0, 80.0]), between(chance, [0.0, 0.2]));
    let text = format!(
        "about = \"A minority of the servers lies\"\nduration = \"{duration} s\"\nfrom = \"{} s\"\npoll = \"{poll} s\"\n\
         reading = \"{} s\"\n\n[oscillator]\nskew = \"{skew:.3} ppm\"\nwave = [{{ peak = \"{wave:.4} ppm\", period = \
         \"1 d\" }}]\n\n[path]\nforward = \"1 ms\"\nbackward = \"1 ms\"\n",
        FROM_POLLS * poll,
        poll / 2.0
    );
    (text, duration)
}

/// A path with this forward delay [s]; half of its round trip [s].
fn path(text: &mut String, forward: f64, chance: &mut Random) -> f64 {
    let backward = forward * between(chance, [0.7, 1.4]);
    let mean = forward * size(chance, [0.005, 0.2]);
    let law =
        ["law = \"exponential\"", "law = \"gamma\", shape = 3.0", "law = \"pareto\", shape = 2.5"][below(chance, 3)];
    let loss = if chance.chance(0.3) { between(chance, [0.0, 0.1]) } else { 0.0 };
    let _ = write!(
        text,
        "path = {{ forward = {}, backward = {}, queue = [{{ {law}, mean = {} }}], loss = {loss:.3}",
        nanos(forward),
        nanos(backward),
        nanos(mean)
    );
    0.5 * (forward + backward)
}

/// An honest server, whose route may change; half of its longest round trip [s].
fn honest(text: &mut String, duration: f64, chance: &mut Random) -> f64 {
    text.push_str("\n[[server]]\n");
    let forward = size(chance, [50e-6, 20e-3]);
    let half = path(text, forward, chance);
    let mut longer = 0.0;
    if chance.chance(0.3) {
        longer = forward * between(chance, [0.1, 1.0]);
        let (at, until) = (between(chance, [0.2, 0.5]) * duration, between(chance, [0.6, 0.9]) * duration);
        let way = ["forward", "backward"][below(chance, 2)];
        let _ =
            write!(text, ", route = [{{ at = \"{at:.0} s\", until = \"{until:.0} s\", {way} = {} }}]", nanos(longer));
    }
    text.push_str(" }\n");
    let _ = writeln!(text, "root_dispersion = {}", nanos(size(chance, [1e-6, 1e-3])));
    half + 0.5 * longer
}

/// A liar; the kind of its lie.
fn lie(text: &mut String, setting: &LyingSetting, chance: &mut Random) -> &'static str {
    let kind = LIES[below(chance, LIES.len())];
    let forward = if chance.chance(0.5) { size(chance, [20e-6, 100e-6]) } else { size(chance, [50e-6, 20e-3]) };
    let half = path(text, forward, chance);
    text.push_str(" }\n");
    let _ = writeln!(text, "root_dispersion = {}", nanos(size(chance, [1e-7, 1e-4])));
    let at = between(chance, [0.1, 0.7]) * setting.duration;
    let share = between(chance, [0.05, 1.5]);
    let within = signed(chance, share * (half + setting.vaguest));
    let (slow, quick) = (size(chance, [1e-3, 0.1]), size(chance, [0.1, 20.0]));
    let (slow, quick) = (signed(chance, slow), signed(chance, quick));
    let wide = size(chance, [1e-6, 3600.0]);
    let wide = signed(chance, wide);
    let drift = |rate: f64| {
        format!(
            "{{ drift = {{ at = \"{at:.0} s\", until = \"{:.0} s\", rate = \"{rate:.6} ppm\" }} }}",
            setting.duration
        )
    };
    let wrong = |at: f64, by: f64| format!("{{ wrong = {{ at = \"{at:.0} s\", by = {} }} }}", nanos(by));
    let fault = match kind {
        "constant" => wrong(0.0, within),
        "step" => wrong(at, wide),
        "creep" => drift(slow),
        "drift" => drift(quick),
        "please" => format!("{{ smear = {{ at = \"{at:.0} s\", by = {} }} }}", nanos(within)),
        "late" => {
            let _ = writeln!(text, "joins = \"{at:.0} s\"");
            wrong(0.0, if share < 0.75 { within } else { wide })
        }
        _ => {
            let each = 40.0 * setting.poll;
            let spell = |number: f64| {
                let begin = at + number * 2.0 * each;
                let by = nanos(if share < 0.75 { within } else { wide });
                format!("{{ wrong = {{ at = \"{begin:.0} s\", until = \"{:.0} s\", by = {by} }} }}", begin + each)
            };
            [spell(0.0), spell(1.0)].join(", ")
        }
    };
    let _ = writeln!(text, "fault = [{fault}]");
    kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_world_can_be_and_its_liars_are_a_minority_of_every_kind() {
        let mut kinds = BTreeSet::new();
        let mut counts = BTreeSet::new();
        for seed in 0..300 {
            let world = LyingWorld::drawn(seed);
            let scenario = world.scenario();
            let liars = scenario.servers.iter().filter(|entry| entry.lies).count();
            assert!(liars >= 1 && 2 * liars < scenario.servers.len(), "seed {seed}");
            assert_eq!(liars, world.lies.len());
            counts.insert((scenario.servers.len(), liars));
            kinds.extend(world.lies);
        }
        assert_eq!(kinds, LIES.into_iter().collect());
        assert_eq!(counts.len(), 1 + 1 + 2 + 2 + 3, "{counts:?}");
    }
}

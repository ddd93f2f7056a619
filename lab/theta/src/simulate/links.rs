//! How long a message takes from one process to another.

use super::law::{LoadDelays, MessageDelayLaw, Sampler};
use super::spec::{LinkSpec, SpecialLink};
use ffclock_sim::Random;

/// The laws of all links.
pub(super) struct Links {
    laws: Vec<Sampler>,
    /// By sender and receiver: which law. Empty if all have the first. There may be as many laws as pairs.
    choice: Vec<u32>,
    processes: usize,
    upward: f64,
}

/// The largest number of processes for which links can have laws of their own: these take four bytes for each pair.
const SPECIAL_PROCESSES_MAX: u32 = 4096;

impl Links {
    pub(super) fn new(spec: &LinkSpec, processes: u32, load: LoadDelays<'_>) -> Result<Self, String> {
        if !(1e-6..=1e6).contains(&spec.upward) {
            return Err(format!("link.upward = {} must lie between 1e-6 and 1e6", spec.upward));
        }
        let mut links = Links {
            laws: vec![Sampler::new(&spec.law, load).map_err(|why| format!("link.law: {why}"))?],
            choice: Vec::new(),
            processes: processes as usize,
            upward: spec.upward,
        };
        if !spec.special.is_empty() && processes > SPECIAL_PROCESSES_MAX {
            return Err(format!("link.special: n must be at most {SPECIAL_PROCESSES_MAX}"));
        }
        for special in &spec.special {
            links.add(special, load).map_err(|why| format!("link.special: {why}"))?;
        }
        Ok(links)
    }

    /// The recorded delays of each link, where there are any; otherwise those of all links together.
    pub(super) fn drawn_again(processes: usize, all: Vec<u64>, links: Vec<(usize, Vec<u64>)>) -> Self {
        let (mut laws, mut choice) = (vec![Sampler::Empirical(all.into())], vec![0; processes * processes]);
        for (link, delays) in links.into_iter().filter(|(_, delays)| !delays.is_empty()) {
            choice[link] = laws.len() as u32;
            laws.push(Sampler::Empirical(delays.into()));
        }
        Links { laws, choice, processes, upward: 1.0 }
    }

    fn add(&mut self, special: &SpecialLink, load: LoadDelays<'_>) -> Result<(), String> {
        self.choice.resize(self.processes * self.processes, 0);
        let number = self.laws.len() as u32;
        self.laws.push(Sampler::new(&special.law, load)?);
        for (&from, &to) in special.from.iter().flat_map(|from| special.to.iter().map(move |to| (from, to))) {
            let pair = (from as usize, to as usize);
            if pair.0.max(pair.1) >= self.processes {
                return Err(format!("there is no process {}: they are 0 to {}", from.max(to), self.processes - 1));
            }
            self.choice[pair.0 * self.processes + pair.1] = number;
        }
        Ok(())
    }

    /// A delay in picoseconds. Processes are different.
    #[inline]
    pub(super) fn draw(&self, from: u32, to: u32, random: &mut Random) -> u64 {
        let law = match self.choice.get(from as usize * self.processes + to as usize) {
            None => &self.laws[0],
            Some(&number) => &self.laws[number as usize],
        };
        let delay = law.draw(random);
        if self.upward == 1.0 || from > to { delay } else { (delay as f64 * self.upward) as u64 }
    }

    /// No message between different processes is faster, in picoseconds.
    pub(super) fn least(&self) -> u64 {
        let least = self.laws.iter().map(Sampler::least).min().unwrap_or(0);
        (least as f64 * self.upward.min(1.0)) as u64
    }

    /// About how long a message takes as a rule, in picoseconds.
    pub(super) fn typical(&self) -> u64 {
        self.laws[0].typical()
    }

    /// The law to oneself.
    pub(super) fn of_self(law: &MessageDelayLaw, load: LoadDelays<'_>) -> Result<Sampler, String> {
        Sampler::new(law, load).map_err(|why| format!("self_reception: {why}"))
    }
}

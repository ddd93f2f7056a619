//! Random adversaries: runs too long for exploration, with deliveries and forgeries drawn at random.
//!
//! Each run draws its own temper: how often Byzantine processes speak, whether they help only some, whether some
//! correct processes are kept waiting. Uniform chance alone hardly ever starves a process.

use super::report::{Delivery, RunWitness, Violation, WitnessStep};
use super::world::{CheckBounds, CheckBoundsError, CheckWorld};
use ffclock_sim::Random;
use serde::Serialize;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct AdversaryCampaign {
    /// Sizes, form and depth.
    pub bounds: CheckBounds,
    /// The seed. Run i uses seed + i, so that any run can be repeated alone.
    pub seed: u64,
}

/// What a campaign saw.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CampaignOutcome {
    /// Runs made.
    pub runs: u64,
    /// Messages delivered in all of them.
    pub deliveries: u64,
    /// Runs that stopped forever.
    pub stopped: u64,
    /// Runs in which a correct process did what it may not.
    pub violated: u64,
    /// The seed of the first bad run, what was violated (nothing if it stopped), and how it went.
    pub first_bad: Option<(u64, Option<Violation>, RunWitness)>,
}

impl CampaignOutcome {
    /// Whether all went well.
    pub fn is_clean(&self) -> bool {
        self.stopped == 0 && self.violated == 0
    }
}

impl AdversaryCampaign {
    /// Makes the `number`-th run and adds it to `outcome`.
    ///
    /// # Errors
    /// When the bounds make no sense.
    pub fn run(&self, number: u64, outcome: &mut CampaignOutcome) -> Result<(), CheckBoundsError> {
        let seed = self.seed.wrapping_add(number);
        let mut run = RandomRun::new(self.bounds, seed)?;
        let violation = run.finish();
        outcome.runs += 1;
        outcome.deliveries += run.steps.len() as u64;
        outcome.violated += u64::from(violation.is_some());
        let has_stopped = violation.is_none() && run.world.has_stopped();
        outcome.stopped += u64::from(has_stopped);
        if (has_stopped || violation.is_some()) && outcome.first_bad.is_none() {
            outcome.first_bad = Some((seed, violation, RunWitness::new(&run.world, run.steps)));
        }
        Ok(())
    }
}

/// What the adversary of one run is like.
struct Temper {
    /// How probable it is that a step is a forgery.
    forging: f64,
    /// By correct process: whether the Byzantine ones talk to it.
    favoured: Vec<bool>,
    /// By correct process: how probable it is that a message chosen for it is held back once more.
    holding: Vec<f64>,
}

impl Temper {
    fn draw(correct: u32, random: &mut Random) -> Self {
        let forging = [0.0, 0.02, 0.1, 0.3, 0.6][random.bits() as usize % 5];
        let favour = random.uniform();
        let favoured = (0..correct).map(|_| random.chance(favour)).collect();
        let holding = (0..correct).map(|_| [0.0, 0.5, 0.98][random.bits() as usize % 3]).collect();
        Temper { forging, favoured, holding }
    }
}

struct RandomRun {
    world: CheckWorld,
    random: Random,
    temper: Temper,
    steps: Vec<WitnessStep>,
    /// Sent by correct processes and not delivered yet.
    waiting: Vec<Delivery>,
    /// By process: how far its rounds are in `waiting`.
    sent_before: Vec<u64>,
}

/// A message is held back at most this often before it comes: links are reliable.
const TRIES: usize = 40;

impl RandomRun {
    fn new(bounds: CheckBounds, seed: u64) -> Result<Self, CheckBoundsError> {
        let world = CheckWorld::start(bounds)?;
        let mut random = Random::new(seed);
        let temper = Temper::draw(world.correct(), &mut random);
        let sent_before = vec![0; world.correct() as usize];
        let mut run = RandomRun { world, random, temper, steps: Vec::new(), waiting: Vec::new(), sent_before };
        (0..run.world.correct()).for_each(|process| run.post(process));
        Ok(run)
    }

    /// Until every process rests or every message has come.
    fn finish(&mut self) -> Option<Violation> {
        while !self.waiting.is_empty() {
            let forged = if self.random.chance(self.temper.forging) { self.forgery() } else { None };
            let delivery = forged.unwrap_or_else(|| self.take_waiting());
            if !self.world.is_new(delivery) {
                continue;
            }
            match self.world.deliver(delivery) {
                Ok(switches) => {
                    self.steps.push(WitnessStep::new(vec![delivery], switches));
                    if !switches.is_empty() {
                        self.post(delivery.to);
                    }
                }
                Err(violation) => return Some(violation),
            }
        }
        None
    }

    /// Puts what a process has sent meanwhile on its way.
    fn post(&mut self, from: u32) {
        let sent = self.world.sent[from as usize];
        let new = sent & !std::mem::replace(&mut self.sent_before[from as usize], sent);
        for round in (1..=self.world.bounds.last_round).filter(|round| new >> round & 1 == 1) {
            self.waiting.extend((0..self.world.correct()).map(|to| Delivery { to, from, round }));
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.bits() % limit
    }

    /// Any message that waits, rather one for a process that is not kept waiting.
    fn take_waiting(&mut self) -> Delivery {
        let count = self.waiting.len() as u64;
        let mut place = self.below(count) as usize;
        for _ in 0..TRIES {
            let holding = self.temper.holding[self.waiting[place].to as usize];
            if !self.random.chance(holding) {
                break;
            }
            place = self.below(count) as usize;
        }
        self.waiting.swap_remove(place)
    }

    /// A lie near the round of its receiver, if the receiver is one that is lied to.
    fn forgery(&mut self) -> Option<Delivery> {
        let quorum = self.world.bounds.quorum;
        let to = self.below(u64::from(self.world.correct())) as u32;
        if quorum.faulty() == 0 || !self.temper.favoured[to as usize] {
            return None;
        }
        let from = self.world.correct() + self.below(u64::from(quorum.faulty())) as u32;
        let round = self.world.round(to) + self.below(3);
        Some(Delivery { to, from, round: round.min(self.world.bounds.last_round) })
    }
}

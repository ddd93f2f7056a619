//! The run: messages through links, load and queues, machines that react.
//!
//! A message is one event: when it comes to its receiver, its place in the receiver's queue is known, and with it when it will have been processed,
//! because queues are first come, first served. So the machine takes it at once, with that later time.

use super::agenda::{Calendar, Due, MESSAGES_MAX};
use super::law::Sampler;
use super::links::Links;
use super::load::HostLoads;
use super::observer::{Observer, Perceived};
use super::outcome::{RoundSpread, SimulationOutcome};
use super::{PreparedScenario, SimulationError};
use crate::algorithm::{Process, Switches};
use crate::faults::{EARLY_ROUNDS, FaultPlan, LinkEffect, Misbehaviour, lies};
use ffclock_sim::Random;

/// Events that are no messages.
const START: u32 = 0;
const TIMER: u32 = 1;
const RESERVED: usize = 2;

/// How many different messages may be in transit beyond what their receivers have taken.
const NO_MESSAGE: SentMessage = SentMessage { sender: 0, round: 0, left: 0 };

#[derive(Clone, Copy)]
struct SentMessage {
    sender: u32,
    round: u64,
    /// How many receivers have not got it yet.
    left: u32,
}

/// One running machine. Twins come after the n processes.
struct SimulatedMachine {
    process: Process,
    /// Whose name it sends under.
    identity: u32,
    host: u32,
    /// When its queue is empty.
    busy: u64,
    /// What the agenda will wake it for.
    timer: Option<u64>,
    starts: u64,
    crashes: u64,
    /// What was sent before is lost to it.
    is_late: bool,
}

/// Everything that changes during a run.
pub(super) struct SimulationEngine<'a, O> {
    agenda: Calendar,
    /// Everything before is done.
    now: u64,
    messages: Vec<SentMessage>,
    free: Vec<u32>,
    machines: Vec<SimulatedMachine>,
    links: &'a Links,
    self_reception: &'a Sampler,
    service: &'a Sampler,
    load: HostLoads,
    plan: &'a FaultPlan,
    gap: u64,
    rounds: u64,
    is_idle: bool,
    delays: Random,
    chance: Random,
    /// What two-faced processes have agreed on.
    conspiracy: u64,
    spread: RoundSpread,
    outcome: SimulationOutcome,
    observer: &'a mut O,
}

impl<'a, O: Observer> SimulationEngine<'a, O> {
    pub(super) fn new(parts: &'a PreparedScenario, seed: u64, observer: &'a mut O) -> Result<Self, SimulationError> {
        let typical = parts.links.typical().max(parts.service.typical());
        let mut engine = SimulationEngine {
            agenda: Calendar::new(typical),
            now: 0,
            messages: vec![NO_MESSAGE; RESERVED],
            free: Vec::new(),
            machines: Vec::new(),
            links: &parts.links,
            self_reception: &parts.self_reception,
            service: &parts.service,
            load: parts.load(seed)?,
            plan: &parts.plan,
            gap: parts.gap,
            rounds: parts.rounds,
            is_idle: false,
            delays: Random::named(seed, "delays"),
            chance: Random::named(seed, "chance"),
            conspiracy: Random::named(seed, "conspiracy").bits(),
            spread: RoundSpread::new(parts.plan.correct()),
            outcome: SimulationOutcome::default(),
            observer,
        };
        engine.is_idle = engine.load.is_idle();
        engine.place(parts, seed);
        Ok(engine)
    }

    /// Puts the machines on their hosts and sets their starts.
    fn place(&mut self, parts: &PreparedScenario, seed: u64) {
        let mut random = Random::named(seed, "starts");
        let identities = (0..parts.quorum.processes()).chain(parts.plan.twins.iter().copied());
        for (number, identity) in identities.enumerate() {
            let late = parts.plan.starts[identity as usize];
            let starts = late.unwrap_or_else(|| (random.uniform() * parts.start_spread as f64) as u64);
            self.machines.push(SimulatedMachine {
                process: Process::new(parts.quorum, parts.form, parts.delay),
                identity,
                host: parts.host_of(identity),
                busy: 0,
                timer: None,
                starts,
                crashes: parts.plan.crashes[identity as usize],
                is_late: late.is_some(),
            });
            self.agenda.push(Due { at: starts, message: START, machine: number as u32 });
        }
    }

    /// Until nothing is on its way. `watch` is told the number of messages now and then.
    pub(super) fn run(mut self, watch: &mut dyn FnMut(u64)) -> Result<SimulationOutcome, SimulationError> {
        while let Some(due) = self.agenda.pop() {
            self.now = due.at;
            match due.message {
                START => self.start(due)?,
                TIMER => self.wake(due)?,
                _ => self.deliver(due)?,
            }
            self.observer.until_now(self.now);
            if self.outcome.perceived.is_multiple_of(1 << 16) {
                watch(self.outcome.perceived);
            }
        }
        self.observer.until_now(u64::MAX);
        Ok(self.finished())
    }

    fn finished(mut self) -> SimulationOutcome {
        let correct = self.plan.correct();
        let rounds = self.rounds;
        self.outcome.precision = self.spread.finish();
        self.outcome.end_ps = self.machines.iter().map(|machine| machine.busy).max().unwrap_or(0).max(self.now);
        let sound = self.machines.iter().filter(|machine| correct[machine.identity as usize]);
        self.outcome.unfinished = sound.clone().filter(|m| m.process.round() < rounds).map(|m| m.identity).collect();
        self.outcome.least_round = sound.clone().map(|machine| machine.process.round()).min().unwrap_or(0);
        self.outcome.greatest_round = sound.map(|machine| machine.process.round()).max().unwrap_or(0);
        self.outcome
    }

    fn start(&mut self, due: Due) -> Result<(), SimulationError> {
        if due.at >= self.machines[due.machine as usize].crashes {
            return Ok(());
        }
        let switches = self.machines[due.machine as usize].process.start(due.at);
        // Who begins with what it heard before is not in round 1 for any time.
        if switches.is_empty() {
            self.spread.switched(due.machine, 1, due.at, due.at);
        }
        self.react(due.machine, switches, due.at)
    }

    fn wake(&mut self, due: Due) -> Result<(), SimulationError> {
        let machine = &mut self.machines[due.machine as usize];
        if due.at >= machine.crashes {
            return Ok(());
        }
        let switches = machine.process.wake(due.at);
        self.react(due.machine, switches, due.at)
    }

    #[inline]
    fn deliver(&mut self, due: Due) -> Result<(), SimulationError> {
        let SentMessage { sender, round, .. } = self.messages[due.message as usize];
        self.release(due.message);
        let at = self.processed_at(due);
        let machine = &mut self.machines[due.machine as usize];
        if at >= machine.crashes || (machine.is_late && due.at < machine.starts) {
            self.outcome.missed += 1;
            return Ok(());
        }
        machine.busy = at;
        if machine.process.deadline().is_some_and(|deadline| deadline <= at) {
            self.wake_before(due)?;
        }
        let machine = &mut self.machines[due.machine as usize];
        let identity = machine.identity;
        let switches = machine.process.receive(sender, round, at);
        self.outcome.perceived += 1;
        if (due.machine as usize) < self.plan.crashes.len() {
            self.observer.perceived(&Perceived { process: identity, sender, round, came_at: due.at, at });
        }
        self.react(due.machine, switches, at)
    }

    /// The delay D ended while the message was being processed.
    #[cold]
    fn wake_before(&mut self, due: Due) -> Result<(), SimulationError> {
        let machine = &mut self.machines[due.machine as usize];
        let at = machine.process.deadline().unwrap_or(due.at).max(due.at);
        let switches = machine.process.wake(at);
        self.react(due.machine, switches, at)
    }

    /// When the receiver is done with a message that comes now.
    #[inline]
    fn processed_at(&mut self, due: Due) -> u64 {
        let host = self.machines[due.machine as usize].host as usize;
        let begins = due.at.max(self.machines[due.machine as usize].busy);
        let mut service = self.service.draw(&mut self.delays);
        if !self.is_idle {
            service += self.load.processor_wait(host, begins, &mut self.delays);
        }
        if !self.plan.slow[host].is_empty() {
            service = (service as f64 * self.plan.slowness(host, begins)) as u64;
        }
        begins + service
    }

    /// Does what a machine wants after an input: tells its switches, broadcasts, sets its timer.
    #[inline]
    fn react(&mut self, machine: u32, switches: Switches, at: u64) -> Result<(), SimulationError> {
        if !switches.is_empty() || self.machines[machine as usize].process.round() == 1 {
            self.tell_and_broadcast(machine, switches, at)?;
        }
        let set = &mut self.machines[machine as usize];
        let deadline = set.process.deadline();
        if deadline != set.timer {
            set.timer = deadline;
            if let Some(at) = deadline {
                self.agenda.push(Due { at, message: TIMER, machine });
            }
        }
        Ok(())
    }

    fn tell_and_broadcast(&mut self, machine: u32, switches: Switches, at: u64) -> Result<(), SimulationError> {
        let identity = self.machines[machine as usize].identity;
        let is_twin = machine as usize >= self.plan.crashes.len();
        for switch in switches {
            self.outcome.switches += 1;
            if !is_twin {
                self.spread.switched(machine, switch.to, at, self.now);
                self.observer.switched(identity, &switch, at);
            }
            self.broadcast_up_to(machine, switch.to, at)?;
        }
        // After a start without a switch there is round 1.
        self.broadcast_up_to(machine, u64::MAX, at)
    }

    /// Broadcasts what a machine wants to send of the rounds up to `limit` and up to the last round of the run.
    fn broadcast_up_to(&mut self, machine: u32, limit: u64, at: u64) -> Result<(), SimulationError> {
        let is_twin = machine as usize >= self.plan.crashes.len();
        let limit = limit.min(self.rounds);
        while let Some(round) = self.machines[machine as usize].process.poll_transmit_up_to(limit) {
            if !is_twin {
                self.observer.broadcast(self.machines[machine as usize].identity, round, at);
            }
            self.broadcast(machine, round, at)?;
        }
        Ok(())
    }

    fn broadcast(&mut self, machine: u32, round: u64, at: u64) -> Result<(), SimulationError> {
        let identity = self.machines[machine as usize].identity as usize;
        match self.plan.misbehaviour(identity, at) {
            None => self.send_to_all(machine, round, at),
            Some(Misbehaviour::Silence) => Ok(()),
            Some(Misbehaviour::TwoFaced) => self.send_two_faced(machine, round, at),
            Some(Misbehaviour::Early) => {
                (round..=round + EARLY_ROUNDS).try_for_each(|round| self.send_to_all(machine, round, at))
            }
            Some(Misbehaviour::Replay) => {
                self.send_to_all(machine, round, at)?;
                let old = 1 + self.chance.bits() % round;
                self.send_to_all(machine, old, at)
            }
        }
    }

    fn send_to_all(&mut self, machine: u32, round: u64, at: u64) -> Result<(), SimulationError> {
        let message = self.new_message(machine, round)?;
        self.outcome.broadcasts += 1;
        let receivers = self.machines.len() as u32;
        self.messages[message as usize].left = 1;
        for receiver in 0..receivers {
            self.send(message, machine, receiver, at + self.gap * u64::from(receiver));
        }
        self.release(message);
        Ok(())
    }

    /// To each its own lie: the round, the next ones, or nothing.
    fn send_two_faced(&mut self, machine: u32, round: u64, at: u64) -> Result<(), SimulationError> {
        let messages = [
            self.new_message(machine, round)?,
            self.new_message(machine, round + 1)?,
            self.new_message(machine, round + 2)?,
        ];
        messages.iter().for_each(|&message| self.messages[message as usize].left = 1);
        for receiver in 0..self.machines.len() as u32 {
            let told = lies(self.conspiracy, receiver, round);
            told.iter().for_each(|&lie| self.send(messages[lie as usize], machine, receiver, at));
        }
        self.outcome.broadcasts += 1;
        messages.iter().for_each(|&message| self.release(message));
        Ok(())
    }

    /// One copy on its way. Its message is held by the caller until all are.
    #[inline]
    fn send(&mut self, message: u32, from: u32, to: u32, at: u64) {
        self.outcome.sent += 1;
        let delay = self.delay(from, to, at);
        if self.plan.links.is_empty() || from == to {
            return self.dispatch(message, to, at + delay);
        }
        let (from, to_identity) = (self.machines[from as usize].identity, self.machines[to as usize].identity);
        let mut arrival = at + delay;
        let mut copies = 1;
        for fault in self.plan.links.iter().filter(|fault| fault.concerns(from, to_identity, at)) {
            if !self.chance.chance(fault.probability) {
                continue;
            }
            match fault.effect {
                LinkEffect::Lose => copies = 0,
                LinkEffect::Duplicate => copies *= 2,
                LinkEffect::Hold(hold) => arrival += hold,
                LinkEffect::HoldToEnd => arrival = arrival.max(fault.window.until + delay),
            }
        }
        self.outcome.lost += u64::from(copies == 0);
        self.outcome.duplicated += u64::from(copies > 1);
        self.outcome.held += u64::from(arrival > at + delay);
        for copy in 0..copies {
            self.dispatch(message, to, arrival + copy * delay);
        }
    }

    fn delay(&mut self, from: u32, to: u32, at: u64) -> u64 {
        if from == to {
            return self.self_reception.draw(&mut self.delays);
        }
        let (sender, receiver) = (&self.machines[from as usize], &self.machines[to as usize]);
        let (hosts, ends) = ((sender.host as usize, receiver.host as usize), (sender.identity, receiver.identity));
        let delay = if ends.0 == ends.1 {
            self.self_reception.draw(&mut self.delays)
        } else {
            self.links.draw(ends.0, ends.1, &mut self.delays)
        };
        if self.is_idle {
            return delay;
        }
        let leaves = at + self.load.network_wait(hosts.0, at, &mut self.delays);
        let comes = leaves + delay + self.load.network_wait(hosts.1, leaves, &mut self.delays);
        self.load.noticed(hosts.1, comes) - at
    }

    #[inline]
    fn dispatch(&mut self, message: u32, machine: u32, at: u64) {
        self.messages[message as usize].left += 1;
        self.agenda.push(Due { at, message, machine });
    }

    fn new_message(&mut self, machine: u32, round: u64) -> Result<u32, SimulationError> {
        let message = SentMessage { sender: self.machines[machine as usize].identity, round, left: 0 };
        if let Some(number) = self.free.pop() {
            self.messages[number as usize] = message;
            return Ok(number);
        }
        if self.messages.len() >= MESSAGES_MAX {
            return Err(SimulationError::TooManyMessages { most: MESSAGES_MAX });
        }
        self.messages.push(message);
        Ok(self.messages.len() as u32 - 1)
    }

    #[inline]
    fn release(&mut self, number: u32) {
        let message = &mut self.messages[number as usize];
        message.left -= 1;
        if message.left == 0 {
            self.free.push(number);
        }
    }
}

//! The run: messages through links, load and queues, machines that react.
//!
//! A message is one event. Queues are first come, first served: when a message reaches its receiver, its place in the
//! queue is known, and with it the time at which its processing ends. So the machine takes it at once, with that later
//! time.

use super::adversary::Adversary;
use super::calendar::{Calendar, DueMessage};
use super::messages::{Content, Messages};
use super::network::{LinkEnd, SimulatedNetwork};
use super::observer::{Observer, Perceived};
use super::outcome::{RoundSpread, SimulationOutcome};
use super::{PreparedScenario, SimulationError};
use crate::algorithm::{Process, Switches};
use crate::faults::{EARLY_ROUNDS, Misbehaviour};
use ffclock_sim::Random;

/// Events that are no messages.
const START: u32 = 0;
const TIMER: u32 = 1;
const RESERVED: usize = 2;

/// One running machine. Twins come after the n processes.
struct SimulatedMachine {
    process: Process,
    /// The process under whose name it sends.
    identity: u32,
    host: u32,
    /// When its queue is empty.
    busy: u64,
    /// The time at which the calendar wakes it.
    timer: Option<u64>,
    starts: u64,
    crashes: u64,
    /// Messages that come before it starts are lost to it.
    is_late: bool,
}

/// Everything that changes during a run.
pub(super) struct SimulationEngine<'a, O> {
    scenario: &'a PreparedScenario,
    calendar: Calendar,
    /// Everything before is done.
    now: u64,
    messages: Messages,
    machines: Vec<SimulatedMachine>,
    network: SimulatedNetwork<'a>,
    adversary: Adversary<'a>,
    spread: RoundSpread,
    outcome: SimulationOutcome,
    observer: &'a mut O,
}

impl<'a, O: Observer> SimulationEngine<'a, O> {
    pub(super) fn new(scenario: &'a PreparedScenario, seed: u64, observer: &'a mut O) -> Result<Self, SimulationError> {
        let typical = scenario.links.typical().max(scenario.service.typical());
        let mut engine = SimulationEngine {
            scenario,
            calendar: Calendar::new(typical),
            now: 0,
            messages: Messages::new(RESERVED),
            machines: Vec::new(),
            network: SimulatedNetwork::new(scenario, seed)?,
            adversary: Adversary::new(&scenario.plan, seed),
            spread: RoundSpread::new(scenario.plan.correct()),
            outcome: SimulationOutcome::default(),
            observer,
        };
        engine.place(seed);
        Ok(engine)
    }

    /// Puts the machines on their hosts and sets their starts.
    fn place(&mut self, seed: u64) {
        let scenario = self.scenario;
        let mut random = Random::named(seed, "starts");
        let identities = (0..scenario.quorum.processes()).chain(scenario.plan.twins.iter().copied());
        for (number, identity) in identities.enumerate() {
            let late = scenario.plan.starts[identity as usize];
            let starts = late.unwrap_or_else(|| (random.uniform() * scenario.start_spread as f64) as u64);
            self.machines.push(SimulatedMachine {
                process: Process::new(scenario.quorum, scenario.form, scenario.delay),
                identity,
                host: scenario.host_of(identity),
                busy: 0,
                timer: None,
                starts,
                crashes: scenario.plan.crashes[identity as usize],
                is_late: late.is_some(),
            });
            self.calendar.push(DueMessage { at: starts, message: START, machine: number as u32 });
        }
    }

    /// Runs until no event is left. `watch` receives the number of messages from time to time.
    pub(super) fn run(mut self, watch: &mut dyn FnMut(u64)) -> Result<SimulationOutcome, SimulationError> {
        while let Some(due) = self.calendar.pop() {
            debug_assert!(due.at >= self.now, "time does not go back");
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
        let correct = self.scenario.plan.correct();
        let rounds = self.scenario.rounds;
        self.outcome.precision = self.spread.finish();
        self.outcome.end_ps = self.machines.iter().map(|machine| machine.busy).max().unwrap_or(0).max(self.now);
        let sound = self.machines.iter().filter(|machine| correct[machine.identity as usize]);
        self.outcome.unfinished = sound.clone().filter(|m| m.process.round() < rounds).map(|m| m.identity).collect();
        self.outcome.least_round = sound.clone().map(|machine| machine.process.round()).min().unwrap_or(0);
        self.outcome.greatest_round = sound.map(|machine| machine.process.round()).max().unwrap_or(0);
        self.outcome
    }

    fn machine(&mut self, machine: u32) -> &mut SimulatedMachine {
        &mut self.machines[machine as usize]
    }

    /// A twin runs under the name of a process; the log has only the process.
    fn is_twin(&self, machine: u32) -> bool {
        machine >= self.scenario.quorum.processes()
    }

    /// A process that has messages to process starts when it has done so: it takes what it has been handed in one
    /// order, and a START that overtook a message would count one that has not been perceived.
    fn start(&mut self, due: DueMessage) -> Result<(), SimulationError> {
        let machine = self.machine(due.machine);
        let at = due.at.max(machine.busy);
        if at >= machine.crashes {
            return Ok(());
        }
        let switches = machine.process.start(at);
        // A process that switches at its start, because of earlier messages, spends no time in round 1.
        if switches.is_empty() {
            self.spread.switched(due.machine, 1, at, due.at);
        }
        self.react(due.machine, switches, at)
    }

    fn wake(&mut self, due: DueMessage) -> Result<(), SimulationError> {
        let machine = self.machine(due.machine);
        if due.at >= machine.crashes {
            return Ok(());
        }
        let switches = machine.process.wake(due.at);
        self.react(due.machine, switches, due.at)
    }

    #[inline]
    fn deliver(&mut self, due: DueMessage) -> Result<(), SimulationError> {
        let Content { sender, round } = self.messages.content(due.message);
        self.messages.release(due.message);
        let at = self.processed_at(due);
        let machine = self.machine(due.machine);
        if at >= machine.crashes || (machine.is_late && due.at < machine.starts) {
            self.outcome.missed += 1;
            return Ok(());
        }
        machine.busy = at;
        if machine.process.deadline().is_some_and(|deadline| deadline <= at) {
            self.wake_before(due)?;
        }
        let machine = self.machine(due.machine);
        let process = machine.identity;
        let switches = machine.process.receive(sender, round, at);
        self.outcome.perceived += 1;
        if !self.is_twin(due.machine) {
            self.observer.perceived(&Perceived { process, sender, round, came_at: due.at, at });
        }
        self.react(due.machine, switches, at)
    }

    /// The delay D ended while the message was being processed.
    #[cold]
    fn wake_before(&mut self, due: DueMessage) -> Result<(), SimulationError> {
        let machine = self.machine(due.machine);
        let at = machine.process.deadline().unwrap_or(due.at).max(due.at);
        let switches = machine.process.wake(at);
        self.react(due.machine, switches, at)
    }

    /// The time at which the receiver has processed a message that arrives now.
    #[inline]
    fn processed_at(&mut self, due: DueMessage) -> u64 {
        let machine = &self.machines[due.machine as usize];
        let begins = due.at.max(machine.busy);
        begins + self.network.service(machine.host as usize, begins)
    }

    /// Does what a machine wants after an input: reports its switches, broadcasts, sets its timer.
    #[inline]
    fn react(&mut self, machine: u32, switches: Switches, at: u64) -> Result<(), SimulationError> {
        if !switches.is_empty() || self.machine(machine).process.round() == 1 {
            self.report_and_broadcast(machine, switches, at)?;
        }
        let set = self.machine(machine);
        let deadline = set.process.deadline();
        if deadline != set.timer {
            set.timer = deadline;
            if let Some(at) = deadline {
                self.calendar.push(DueMessage { at, message: TIMER, machine });
            }
        }
        Ok(())
    }

    fn report_and_broadcast(&mut self, machine: u32, switches: Switches, at: u64) -> Result<(), SimulationError> {
        let identity = self.machine(machine).identity;
        for switch in switches {
            self.outcome.switches += 1;
            if !self.is_twin(machine) {
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
        let identity = self.machine(machine).identity;
        let limit = limit.min(self.scenario.rounds);
        while let Some(round) = self.machine(machine).process.poll_transmit_up_to(limit) {
            if !self.is_twin(machine) {
                self.observer.broadcast(identity, round, at);
            }
            self.broadcast(machine, round, at)?;
        }
        Ok(())
    }

    fn broadcast(&mut self, machine: u32, round: u64, at: u64) -> Result<(), SimulationError> {
        let identity = self.machine(machine).identity;
        match self.adversary.misbehaviour(identity, at) {
            None => self.send_to_all(machine, round, at),
            Some(Misbehaviour::Silence) => Ok(()),
            Some(Misbehaviour::TwoFaced) => self.send_two_faced(machine, round, at),
            Some(Misbehaviour::Early) => {
                (round..=round + EARLY_ROUNDS).try_for_each(|round| self.send_to_all(machine, round, at))
            }
            Some(Misbehaviour::Replay) => {
                self.send_to_all(machine, round, at)?;
                let old = self.adversary.replayed(round);
                self.send_to_all(machine, old, at)
            }
        }
    }

    fn send_to_all(&mut self, machine: u32, round: u64, at: u64) -> Result<(), SimulationError> {
        let message = self.new_message(machine, round)?;
        self.outcome.broadcasts += 1;
        for receiver in 0..self.machines.len() as u32 {
            let copy = DueMessage { at: at + self.scenario.gap * u64::from(receiver), message, machine: receiver };
            self.send(machine, copy);
        }
        self.messages.release(message);
        Ok(())
    }

    /// Sends each receiver its own lie: the round, the next ones, or nothing.
    fn send_two_faced(&mut self, machine: u32, round: u64, at: u64) -> Result<(), SimulationError> {
        let messages = [
            self.new_message(machine, round)?,
            self.new_message(machine, round + 1)?,
            self.new_message(machine, round + 2)?,
        ];
        for receiver in 0..self.machines.len() as u32 {
            let lies = self.adversary.lies(receiver, round);
            lies.iter().for_each(|&lie| {
                self.send(machine, DueMessage { at, message: messages[lie as usize], machine: receiver })
            });
        }
        self.outcome.broadcasts += 1;
        messages.iter().for_each(|&message| self.messages.release(message));
        Ok(())
    }

    /// Puts a copy of a message on its way: `copy` says when it is sent, and to which machine. The caller holds the
    /// message.
    #[inline]
    fn send(&mut self, from: u32, copy: DueMessage) {
        let DueMessage { at, message, machine: to } = copy;
        self.outcome.sent += 1;
        let delay = self.delay(from, to, at);
        if self.adversary.leaves_links_alone() || from == to {
            return self.dispatch(message, to, at + delay);
        }
        let (from, end) = (self.machine(from).identity, self.machine(to).identity);
        let passage = self.adversary.pass([from, end], at);
        self.outcome.lost += u64::from(passage.copies == 0);
        self.outcome.duplicated += u64::from(passage.copies > 1);
        self.outcome.held += u64::from(passage.from > at);
        for number in 0..passage.copies {
            self.dispatch(message, to, passage.from + (number + 1) * delay);
        }
    }

    fn delay(&mut self, from: u32, to: u32, at: u64) -> u64 {
        if from == to {
            return self.network.self_delay();
        }
        let end = |machine: u32| {
            let SimulatedMachine { identity, host, .. } = self.machines[machine as usize];
            LinkEnd { identity, host }
        };
        let (from, to) = (end(from), end(to));
        self.network.delay(from, to, at)
    }

    #[inline]
    fn dispatch(&mut self, message: u32, machine: u32, at: u64) {
        self.messages.hold(message);
        self.calendar.push(DueMessage { at, message, machine });
    }

    fn new_message(&mut self, machine: u32, round: u64) -> Result<u32, SimulationError> {
        let sender = self.machine(machine).identity;
        self.messages.add(Content { sender, round })
    }
}

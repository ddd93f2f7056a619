//! The space-time graph of a run.

use crate::record::{Event, ProcessId, Round, RunDescription};
use serde::Serialize;
use std::collections::BTreeMap;

/// No node.
pub(super) const NONE: u32 = u32::MAX;
/// Larger graphs are refused.
const STEPS_MAX: usize = 1 << 30;

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CycleStep {
    /// The process at which it happened.
    pub process: ProcessId,
    /// The message that it perceived, by sender and round; absent for a step that only sends.
    pub perceived: Option<(ProcessId, Round)>,
}

/// Why there is no graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Causes form a circle: a message was perceived before it was sent.
    #[error("{0} events wait for each other: a message was perceived before it was sent, so rows are out of order")]
    Circular(usize),
    /// Too many events.
    #[error("more than {STEPS_MAX} events")]
    TooLong,
    /// An impossible event.
    #[error("process {0} is not in this run")]
    NoProcess(u32),
}

/// Steps and messages between correct processes, in an order in which causes come first.
#[derive(Clone, Debug, Default)]
pub struct SpaceTime {
    pub(super) steps: Vec<CycleStep>,
    /// The step before at the same process.
    pub(super) before: Vec<u32>,
    /// The step after at the same process.
    pub(super) after: Vec<u32>,
    /// The step that sent what this one perceived.
    pub(super) sender: Vec<u32>,
    /// Steps that perceived what each step sent, in one row after the other.
    receivers: Vec<u32>,
    receivers_from: Vec<u32>,
}

/// Collects the steps of each process.
pub struct SpaceTimeBuilder {
    correct: Vec<bool>,
    /// Whether broadcasts follow from the perception before them, rather than from a timer.
    immediate: bool,
    steps: Vec<CycleStep>,
    last_of_process: Vec<u32>,
    before: Vec<u32>,
    /// The step that sent (sender, round).
    sends: BTreeMap<(u64, u32), u32>,
    /// Whether a further broadcast belongs to the last step of the process.
    sending: Vec<bool>,
}

impl SpaceTimeBuilder {
    /// For a run. Faulty processes are left out; a message from one is a step without a message.
    pub fn new(run: &RunDescription) -> Self {
        let processes = run.processes as usize;
        SpaceTimeBuilder {
            correct: run.correct(),
            immediate: run.delay_ps == 0,
            steps: vec![],
            last_of_process: vec![NONE; processes],
            before: vec![],
            sends: BTreeMap::new(),
            sending: vec![false; processes],
        }
    }

    /// Takes the next event of a process. Only the order within each process matters.
    ///
    /// # Errors
    /// [`GraphError::NoProcess`] and [`GraphError::TooLong`].
    pub fn take(&mut self, event: &Event) -> Result<(), GraphError> {
        let process = event.process();
        let index = process.index();
        if !*self.correct.get(index).ok_or(GraphError::NoProcess(process.0))? {
            return Ok(());
        }
        match *event {
            Event::Perception { sender, round, .. } => {
                self.push(CycleStep { process, perceived: Some((sender, round)) })?;
                self.sending[index] = self.immediate;
            }
            Event::Broadcast { round, .. } => {
                if !self.sending[index] {
                    self.push(CycleStep { process, perceived: None })?;
                    self.sending[index] = true;
                }
                self.sends.entry((round.0, process.0)).or_insert(self.last_of_process[index]);
            }
            Event::Switch(_) | Event::Transmission { .. } => {}
        }
        Ok(())
    }

    fn push(&mut self, step: CycleStep) -> Result<(), GraphError> {
        if self.steps.len() >= STEPS_MAX {
            return Err(GraphError::TooLong);
        }
        let number = self.steps.len() as u32;
        self.before.push(std::mem::replace(&mut self.last_of_process[step.process.index()], number));
        self.steps.push(step);
        Ok(())
    }

    /// The graph. Perceptions of messages that were never sent, and second perceptions, are steps without a message.
    ///
    /// # Errors
    /// [`GraphError::Circular`].
    pub fn build(self) -> Result<SpaceTime, GraphError> {
        let mut perceived = BTreeMap::new();
        let mut sender = vec![NONE; self.steps.len()];
        for (number, step) in self.steps.iter().enumerate() {
            let Some((from, round)) = step.perceived else { continue };
            let Some(&sent) = self.sends.get(&(round.0, from.0)) else { continue };
            if perceived.insert((sent, round.0, step.process.0), ()).is_none() {
                sender[number] = sent;
            }
        }
        SpaceTime::ordered(&self.steps, &self.before, &sender)
    }
}

impl SpaceTime {
    /// A graph from its steps: for each the step before at its process and the step that sent what it perceived.
    /// Sorted so that causes come first, and steps of about the same time lie close together.
    fn ordered(steps: &[CycleStep], before: &[u32], sender: &[u32]) -> Result<Self, GraphError> {
        let unordered = Self::linked(steps.to_vec(), before.to_vec(), sender.to_vec());
        let mut causes: Vec<u8> =
            before.iter().zip(sender).map(|(&a, &b)| u8::from(a != NONE) + u8::from(b != NONE)).collect();
        let mut order: Vec<u32> = (0..steps.len() as u32).filter(|&step| causes[step as usize] == 0).collect();
        let mut next = 0;
        while let Some(&step) = order.get(next) {
            next += 1;
            let after = unordered.after[step as usize];
            for &effect in unordered.receivers(step).iter().chain([&after]).filter(|&&effect| effect != NONE) {
                causes[effect as usize] -= 1;
                if causes[effect as usize] == 0 {
                    order.push(effect);
                }
            }
        }
        if order.len() < steps.len() {
            return Err(GraphError::Circular(steps.len() - order.len()));
        }
        let mut place = vec![NONE; steps.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old as usize] = new as u32;
        }
        let placed = |old: u32| if old == NONE { NONE } else { place[old as usize] };
        let moved = |column: &[u32]| order.iter().map(|&old| placed(column[old as usize])).collect::<Vec<_>>();
        let steps = order.iter().map(|&old| steps[old as usize]).collect();
        Ok(Self::linked(steps, moved(before), moved(sender)))
    }

    fn linked(steps: Vec<CycleStep>, before: Vec<u32>, sender: Vec<u32>) -> Self {
        let mut after = vec![NONE; steps.len()];
        let mut receivers_from = vec![0; steps.len() + 1];
        for (number, (&before, &sender)) in before.iter().zip(&sender).enumerate() {
            if before != NONE {
                after[before as usize] = number as u32;
            }
            if sender != NONE {
                receivers_from[sender as usize + 1] += 1;
            }
        }
        for step in 0..steps.len() {
            receivers_from[step + 1] += receivers_from[step];
        }
        let mut free = receivers_from.clone();
        let mut receivers = vec![NONE; receivers_from[steps.len()] as usize];
        for (number, &sender) in sender.iter().enumerate().filter(|&(_, &sender)| sender != NONE) {
            let slot = &mut free[sender as usize];
            receivers[*slot as usize] = number as u32;
            *slot += 1;
        }
        SpaceTime { steps, before, after, sender, receivers, receivers_from }
    }

    /// The steps that perceived what `step` sent.
    pub(super) fn receivers(&self, step: u32) -> &[u32] {
        let (from, to) = (self.receivers_from[step as usize], self.receivers_from[step as usize + 1]);
        &self.receivers[from as usize..to as usize]
    }

    /// Collects the graph of a run.
    pub fn builder(run: &RunDescription) -> SpaceTimeBuilder {
        SpaceTimeBuilder::new(run)
    }

    /// The number of steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is no step.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// A step by its number.
    pub fn step(&self, number: u32) -> Option<CycleStep> {
        self.steps.get(number as usize).copied()
    }

    /// The step before at the same process.
    pub fn step_before(&self, number: u32) -> Option<u32> {
        self.before.get(number as usize).copied().filter(|&before| before != NONE)
    }

    /// The step that sent what this one perceived.
    pub fn sending_step(&self, number: u32) -> Option<u32> {
        self.sender.get(number as usize).copied().filter(|&sender| sender != NONE)
    }
}

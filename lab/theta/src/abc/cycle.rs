//! The maximum ratio cycle.
//!
//! No relevant cycle has a larger ratio than p/q exactly if steps can be given dates such that local steps do not go
//! back and every message takes between q and p (the constraints are differences; a cycle of positive weight is one of
//! larger ratio). Steps are added one by one, causes first, and dates are repaired where the new step's message would
//! take too long. If the repair comes back to the new step, it has walked a cycle of larger ratio: that becomes the
//! new p/q, and earlier dates remain valid, because the constraints only got looser.

use super::graph::{NONE, SpaceTime};
use serde::Serialize;
use std::collections::VecDeque;

/// One edge of a relevant cycle, from a step to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hop {
    /// Along a message to the step that perceived it: the slow chain.
    Forward {
        /// The step that sent it.
        from: u32,
        /// The step that perceived it.
        to: u32,
    },
    /// Against a message to the step that sent it: the fast chain.
    Backward {
        /// The step that perceived it.
        from: u32,
        /// The step that sent it.
        to: u32,
    },
    /// To the step before at the same process.
    Local {
        /// The later step.
        from: u32,
        /// The earlier one.
        to: u32,
    },
}

impl Hop {
    /// The step from which the edge leads.
    pub fn from(&self) -> u32 {
        match *self {
            Hop::Forward { from, .. } | Hop::Backward { from, .. } | Hop::Local { from, .. } => from,
        }
    }
}

/// Xi* with a cycle that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CycleWitness {
    /// Messages that the cycle takes backward.
    pub backward: u64,
    /// Messages that it takes forward. Xi* = backward / forward, in lowest terms or not.
    pub forward: u64,
    /// The cycle.
    pub hops: Vec<Hop>,
}

impl CycleWitness {
    /// Xi*.
    pub fn ratio(&self) -> f64 {
        self.backward as f64 / self.forward as f64
    }
}

/// The largest ratio of a relevant cycle, if any has a ratio above 1.
pub fn xi(graph: &SpaceTime) -> Option<CycleWitness> {
    let mut dates = Dates::new(graph);
    for step in 0..graph.len() as u32 {
        dates.add(step);
    }
    dates.witness
}

struct Dates<'a> {
    graph: &'a SpaceTime,
    /// A message takes at least q ...
    shortest: i64,
    /// ... and at most p.
    longest: i64,
    dates: Vec<i64>,
    /// Where the repair came from, for the steps that it has moved.
    moved_by: Vec<u32>,
    /// The steps that the repair has moved, with their dates before it.
    moved: Vec<(u32, i64)>,
    queue: VecDeque<u32>,
    witness: Option<CycleWitness>,
}

impl<'a> Dates<'a> {
    fn new(graph: &'a SpaceTime) -> Self {
        Dates {
            graph,
            shortest: 1,
            longest: 1,
            dates: vec![0; graph.len()],
            moved_by: vec![NONE; graph.len()],
            moved: vec![],
            queue: VecDeque::new(),
            witness: None,
        }
    }

    /// Dates the next step, after its causes.
    fn add(&mut self, step: u32) {
        let before = self.graph.before[step as usize];
        let sender = self.graph.sender[step as usize];
        loop {
            let after_local = if before == NONE { 0 } else { self.dates[before as usize] };
            let after_message = if sender == NONE { 0 } else { self.dates[sender as usize] + self.shortest };
            self.dates[step as usize] = after_local.max(after_message);
            if sender == NONE || self.repair(step, sender) {
                return;
            }
        }
    }

    /// Makes the message of the new step short enough by dating its sending later. False if that found a cycle of
    /// larger ratio, with all dates as they were but in the new measure.
    fn repair(&mut self, newest: u32, sender: u32) -> bool {
        self.push_back(sender, self.dates[newest as usize] - self.longest, newest);
        while let Some(step) = self.queue.pop_front() {
            let (graph, date, shortest) = (self.graph, self.dates[step as usize], self.shortest);
            let after = graph.after[step as usize];
            let local = (after != NONE).then_some((after, date));
            let received = graph.receivers(step).iter().map(|&receiver| (receiver, date + shortest));
            let sent = graph.sender[step as usize];
            let sent = (sent != NONE).then_some((sent, date - self.longest));
            for (other, least) in local.into_iter().chain(received).chain(sent) {
                if other == newest && least > self.dates[newest as usize] {
                    self.raise_ratio(newest, step);
                    return false;
                }
                if other < newest {
                    self.push_back(other, least, step);
                }
            }
        }
        self.moved.clear();
        true
    }

    /// Dates a step no earlier than `least`, because of `cause`.
    fn push_back(&mut self, step: u32, least: i64, cause: u32) {
        let date = &mut self.dates[step as usize];
        if *date < least {
            self.moved.push((step, *date));
            *date = least;
            self.moved_by[step as usize] = cause;
            self.queue.push_back(step);
        }
    }

    /// The repair has come from `newest` round to it through `last`.
    fn raise_ratio(&mut self, newest: u32, last: u32) {
        let mut steps = vec![newest, last];
        while let Some(&step) = steps.last().filter(|&&step| step != newest) {
            steps.push(self.moved_by[step as usize]);
        }
        // The dates before the repair broke no constraint, so the one that is broken now lies on this cycle, and its
        // weight is positive.
        let hops: Vec<Hop> = steps.windows(2).map(|pair| self.hop(pair[0], pair[1])).collect();
        let count = |wanted: fn(&Hop) -> bool| hops.iter().filter(|&hop| wanted(hop)).count() as u64;
        let backward = count(|hop| matches!(hop, Hop::Backward { .. }));
        let forward = count(|hop| matches!(hop, Hop::Forward { .. }));
        while let Some((step, date)) = self.moved.pop() {
            self.dates[step as usize] = date;
        }
        self.queue.clear();
        self.measure(backward as i64, forward as i64);
        self.witness = Some(CycleWitness { backward, forward, hops });
    }

    /// The edge of a cycle from one step to another: the date of `from` followed from that of `to`.
    fn hop(&self, from: u32, to: u32) -> Hop {
        if from < to {
            Hop::Forward { from, to }
        } else if self.graph.sender[from as usize] == to {
            Hop::Backward { from, to }
        } else {
            Hop::Local { from, to }
        }
    }

    /// From now on messages take between `forward` and `backward`. Rounding all dates down keeps whole differences.
    fn measure(&mut self, backward: i64, forward: i64) {
        let before = i128::from(self.shortest);
        for date in &mut self.dates {
            *date = (i128::from(*date) * i128::from(forward)).div_euclid(before) as i64;
        }
        (self.shortest, self.longest) = (forward, backward);
    }
}

//! The clock in retrospect: what the past and the future together say about the time of each exchange.
//!
//! Counter readings are raw, so nothing is lost by waiting: a fast exchange is evidence of the time before it as well
//! as after. [`Smoother`] runs the learned algorithm over a recording, and remembers what it took for granted at each
//! exchange: which ones are believed, where a path changed, where the time began again. Then the bank goes over the
//! recording forwards and backwards, a few times, each time with every packet compared with what all the others say,
//! and with the queueing densities learned from the neighbourhood. `docs/algorithm/smooth.md` has the equations.
//!
//! Memory grows with the recording: some 300 bytes for each exchange, up to twice that where the vectors have just
//! grown, and in the end 90 more for its smoothed time; beside them a window of fixed size in which the work is done.
//! `tests/allocation.rs` counts the bytes.

mod adjoint;
mod blend;
mod curve;
mod engine;
mod learn;
mod node;
mod pass;
mod site;

use crate::bank::measurement::{MICRO, measurements};
use crate::frame::Frame;
use crate::tuning::smooth::SNAPSHOT;
use crate::{ClassicConfig, Estimator, Learned, LearnedConfig, Verdict};
use alloc::vec::Vec;
pub use curve::{Smoothed, SmoothedTime};
use engine::Engine;
use ffclock_units::{Exchange, Period};
use node::{Causal, Node, Segment};

/// Takes a recording, and says afterwards what the time was at each of its exchanges.
#[derive(Clone, Debug)]
pub struct Smoother {
    config: LearnedConfig,
    nominal: Period,
    learned: Learned,
    segments: Vec<Segment>,
    epoch: usize,
    open: bool,
}

impl Smoother {
    /// A smoother that has seen nothing; the arguments are those of [`Learned::new`].
    pub fn new(config: LearnedConfig, classic: ClassicConfig, nominal: Period) -> Self {
        let learned = Learned::new(config.clone(), classic, nominal, None);
        Smoother { config, nominal, learned, segments: Vec::new(), epoch: 0, open: false }
    }

    /// Takes the next exchange, in the order in which the replies arrived. Returns whether [`Smoother::finish`] will
    /// have a time at its reply: not of an exchange that is rejected, nor before there is a clock.
    pub fn update(&mut self, exchange: &Exchange) -> bool {
        let verdict = self.learned.update(exchange).verdict;
        if matches!(verdict, Verdict::Rejected(_)) {
            return false;
        }
        if verdict == Verdict::Used && (self.learned.revisions().began || !self.open) {
            self.begin(exchange);
        }
        self.keep(exchange, verdict)
    }

    /// The counter began a new epoch: what follows is another clock.
    pub fn restart(&mut self) {
        self.note_densities();
        self.learned.restart();
        self.epoch = self.epoch.saturating_add(1);
        self.open = false;
    }

    fn note_densities(&mut self) {
        if let Some(segment) = self.segments.last_mut() {
            segment.note_densities(self.learned.densities());
        }
    }

    fn begin(&mut self, exchange: &Exchange) {
        let frame = Frame::at(self.nominal, exchange);
        let begin = self.learned.beginning(&frame.place(exchange));
        self.segments.push(Segment::new(self.epoch, frame, begin));
        self.open = true;
    }

    fn keep(&mut self, exchange: &Exchange, verdict: Verdict) -> bool {
        let (Some(segment), Some(estimate)) = (self.segments.last_mut(), self.learned.estimate()) else { return false };
        let point = segment.frame.place(exchange);
        let interval = segment.nodes.last().map_or(0.0, |last| point.x - last.x);
        let is_first = segment.nodes.is_empty();
        if !self.open || !(is_first || interval > 0.0) {
            return false;
        }
        let counter = exchange.received.counter;
        let causal = Causal::new(&estimate, counter, &segment.frame, self.nominal);
        let measurements = (verdict == Verdict::Used && !is_first).then(|| measurements(&point));
        segment.nodes.push(Node {
            counter,
            x: point.x,
            interval,
            measurements,
            causal,
            changes: node::Changes::default(),
        });
        if segment.nodes.len() % SNAPSHOT == 1 {
            segment.note_densities(self.learned.densities());
        }
        for revision in self.learned.revisions().list.iter().flatten() {
            segment.note(revision);
        }
        true
    }

    /// Works out the times. Shows `progress` the steps done and their number.
    pub fn finish(mut self, progress: &mut dyn FnMut(usize, usize)) -> Smoothed {
        self.note_densities();
        let engine = Engine::new(&self.config);
        let total = self.segments.iter().map(|segment| segment.nodes.len()).sum();
        let mut smoothed = Smoothed::new(self.nominal);
        let mut done = 0;
        for segment in &self.segments {
            let marginals = engine.smooth(segment, &mut |count| {
                done += count;
                progress(done, total);
            });
            smoothed.take(segment, &marginals);
        }
        smoothed
    }
}

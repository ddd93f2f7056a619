//! What a pass knows of its run before it reads an event.

use crate::analysis::options::{DelayMode, Options, SwitchStamping, ThetaMode};
use crate::analysis::tally::{Conformance, DelayHistograms, EventCounts, PassTally, SwitchTally, Unsent};
use crate::analysis::window::RoundWindow;
use crate::record::{LogOrigin, RecordedForm, RunDescription, SwitchRule};
use ffclock_statistics::EvenHistogram;

/// The window of rounds never takes more memory than this.
const WINDOW_BYTES_MAX: u64 = 1 << 30;

/// The run and the options. Nothing of it changes during the pass.
pub(super) struct Rules {
    pub(super) options: Options,
    pub(super) origin: LogOrigin,
    pub(super) form: RecordedForm,
    pub(super) correct: Vec<bool>,
    /// Which processes perceive messages: correct ones; in an imported log only the client, process 0.
    pub(super) listens: Vec<bool>,
    /// The number of these.
    pub(super) listeners: u32,
    pub(super) advance_threshold: usize,
    pub(super) catch_up_threshold: usize,
    pub(super) disorder_ps: i64,
    /// The delay D, in picoseconds.
    pub(super) wait_ps: i64,
}

impl Rules {
    pub(super) fn new(run: &RunDescription, options: Options) -> Self {
        let correct = run.correct();
        let listens =
            |(process, &correct): (usize, &bool)| correct && (run.origin != LogOrigin::Imported || process == 0);
        let listens: Vec<bool> = correct.iter().enumerate().map(listens).collect();
        Rules {
            options,
            origin: run.origin,
            form: run.form,
            listeners: listens.iter().filter(|&&listens| listens).count() as u32,
            listens,
            correct,
            advance_threshold: run.advance_threshold() as usize,
            catch_up_threshold: run.catch_up_threshold() as usize,
            disorder_ps: i64::try_from(run.disorder_ps).unwrap_or(i64::MAX),
            wait_ps: i64::try_from(run.delay_ps).unwrap_or(i64::MAX),
        }
    }

    pub(super) fn processes(&self) -> usize {
        self.correct.len()
    }

    /// Whether `time_ps` counts.
    #[inline]
    pub(super) fn counts(&self, time_ps: i64) -> bool {
        self.options.range.holds(time_ps)
    }

    /// The first time that counts, where Theta is computed and messages may be in transit then.
    pub(super) fn theta_begins_ps(&self) -> Option<i64> {
        let Options { theta, range, .. } = self.options;
        let begin_ps = range.after_ps.saturating_add(1);
        (theta == ThetaMode::Compute && range.after_ps > i64::MIN && begin_ps <= range.until_ps).then_some(begin_ps)
    }

    pub(super) fn is_imported(&self) -> bool {
        self.origin == LogOrigin::Imported
    }

    /// Whether a switch lies after the broadcast of its round. The client of an imported log has no broadcast of its
    /// own.
    pub(super) fn stamps_after_broadcast(&self) -> bool {
        self.options.stamping == SwitchStamping::AfterBroadcast && !self.is_imported()
    }

    /// How many senders a rule needs.
    pub(super) fn threshold(&self, rule: SwitchRule) -> usize {
        match rule {
            SwitchRule::Advance => self.advance_threshold,
            SwitchRule::CatchUp => self.catch_up_threshold,
        }
    }

    pub(super) fn window(&self) -> RoundWindow {
        let processes = self.processes();
        let round_bytes = (processes * (processes + 2) * 8) as u64;
        RoundWindow::new(processes, self.options.window_rounds.min(WINDOW_BYTES_MAX / round_bytes))
    }

    /// An empty tally.
    pub(super) fn tally(&self) -> PassTally {
        let options = &self.options;
        let ranks = if options.delays == DelayMode::Histograms { self.advance_threshold } else { 0 };
        let delays = EvenHistogram::new(options.delay_bin_ps);
        let delays = DelayHistograms { all: delays.clone(), by_rank: vec![delays; ranks] };
        let correct = self.correct.iter().filter(|&&correct| correct).count() as u64;
        PassTally {
            counts: EventCounts::default(),
            delay_max_ps: None,
            delay_min_ps: None,
            worst_not_positive: None,
            first: SwitchTally::new(options.delay_bin_ps),
            all: SwitchTally::new(options.delay_bin_ps),
            pairs: vec![],
            throughout: None,
            theta: None,
            delays: (options.delays == DelayMode::Histograms).then_some(delays),
            conformance: Conformance::default(),
            unsent: vec![Unsent::default(); self.processes()],
            block_rounds: options.block_messages.div_ceil((correct * correct).max(1)).max(1),
            seen: vec![false; self.processes()],
            last_round: 0,
            span_ps: None,
        }
    }
}

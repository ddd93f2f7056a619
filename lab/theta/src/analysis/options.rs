//! What an analysis is to compute, and over which times.

use crate::record::{LogOrigin, RunDescription};

/// Where a switch lies in time, relative to the broadcast of its new round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchStamping {
    /// Before it: the messages of this broadcast are not yet in transit. Fits the paper's histograms.
    BeforeBroadcast,
    /// After it: they are in transit. The theorem on the precision needs this.
    AfterBroadcast,
}

/// Whether Theta, the largest ratio of delays in transit at the same time, is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThetaMode {
    /// It is: every message goes through a heap.
    Compute,
    /// It is left out.
    Omit,
}

/// What is kept of the delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayMode {
    /// The histograms h_x, beside the extremes.
    Histograms,
    /// The smallest and the largest delay.
    Extremes,
}

/// Whether the delays at each first switch are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairMode {
    /// They are: 24 bytes a switch.
    Keep,
    /// Only their extremes and histograms.
    Omit,
}

/// The times whose switches and messages count: after `after_ps`, up to and including `until_ps`. A message that was
/// sent earlier and is still in transit then is not counted, but its delay takes part in tau+ and tau-.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Picoseconds since the origin of the run.
    pub after_ps: i64,
    /// Picoseconds since the origin of the run.
    pub until_ps: i64,
}

impl TimeRange {
    /// All times.
    pub const ALL: TimeRange = TimeRange { after_ps: i64::MIN, until_ps: i64::MAX };

    /// Whether no time counts.
    pub const fn is_empty(&self) -> bool {
        self.after_ps >= self.until_ps
    }

    /// Whether a message is in transit at a time that counts: sent by then, and not yet perceived.
    pub const fn holds_transit(&self, sent_ps: i64, perceived_ps: i64) -> bool {
        !self.is_empty() && sent_ps <= self.until_ps && self.after_ps < perceived_ps.saturating_sub(1)
    }

    /// Whether `time_ps` counts.
    pub const fn holds(&self, time_ps: i64) -> bool {
        self.after_ps < time_ps && time_ps <= self.until_ps
    }
}

/// What a pass is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where switches are stamped.
    pub stamping: SwitchStamping,
    /// Whether Theta is computed.
    pub theta: ThetaMode,
    /// What is kept of the delays.
    pub delays: DelayMode,
    /// Whether the delays at each first switch are kept.
    pub pairs: PairMode,
    /// The width of the bins of delays, in picoseconds.
    pub delay_bin_ps: u64,
    /// The size of a block in messages, approximately. The largest Omega of each block is kept.
    pub block_messages: u64,
    /// The largest number of rounds held while messages of older ones are outstanding.
    pub window_rounds: u64,
    /// Which times count.
    pub range: TimeRange,
}

/// What a client waits for at a time may be a second of a million messages.
const IMPORTED_WINDOW_ROUNDS: u64 = 1 << 20;

impl Options {
    /// These options for a log of `run`: that of a busy client has many rounds under way at a time, which it numbers
    /// itself, so that none is far ahead.
    pub(super) fn for_log(self, run: &RunDescription) -> Self {
        let least = if run.origin == LogOrigin::Imported { IMPORTED_WINDOW_ROUNDS } else { 0 };
        Options { window_rounds: self.window_rounds.max(least), ..self }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            stamping: SwitchStamping::AfterBroadcast,
            theta: ThetaMode::Omit,
            delays: DelayMode::Extremes,
            pairs: PairMode::Omit,
            delay_bin_ps: 1_000_000,
            block_messages: 1_000_000,
            window_rounds: 1 << 17,
            range: TimeRange::ALL,
        }
    }
}

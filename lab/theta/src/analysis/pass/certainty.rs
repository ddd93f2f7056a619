//! What a pass over a part of a log knows of the part that it has not read.

use crate::analysis::options::TimeRange;
use crate::analysis::tally::PassTally;

/// Where a shard was cut out of its log.
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis) struct Edges {
    pub(in crate::analysis) begin_is_cut: bool,
    pub(in crate::analysis) end_is_cut: bool,
}

/// What a shard must show before its tally is that of a pass over the whole log.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::analysis) struct Certainty {
    /// The first time at which a process was the first to reach a round while the rounds of all correct ones were
    /// known.
    settled_ps: Option<i64>,
    /// The last perception of a message whose broadcast was not read.
    unsent_ps: Option<i64>,
}

impl Certainty {
    /// Notes a first switch at which the rounds of all correct processes are known.
    pub(super) fn settle(&mut self, at_ps: i64) {
        debug_assert!(self.settled_ps.is_none_or(|settled| settled <= at_ps), "switches come in the order of time");
        self.settled_ps = self.settled_ps.or(Some(at_ps));
    }

    /// Counts from an origin that is later.
    pub(super) fn move_origin(&mut self, by_ps: i64) {
        for at_ps in self.settled_ps.iter_mut().chain(&mut self.unsent_ps) {
            *at_ps = at_ps.saturating_sub(by_ps);
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        self.settled_ps.is_some()
    }

    /// Notes the last perception of a message whose broadcast was not read.
    pub(super) fn miss_broadcast(&mut self, last_ps: Option<i64>) {
        self.unsent_ps = self.unsent_ps.max(last_ps);
    }

    /// Whether the tally is that of a single pass over the whole log.
    pub(in crate::analysis) fn is_enough(&self, tally: &PassTally, edges: Edges, range: TimeRange) -> bool {
        let counts = &tally.counts;
        let settled = self.settled_ps.is_some_and(|settled| settled <= range.after_ps);
        let begins_well = settled && self.unsent_ps.is_none_or(|unsent| unsent <= range.after_ps);
        let nothing_lost = counts.late == 0 && counts.out_of_order == 0 && counts.stray == 0;
        (!edges.begin_is_cut || (begins_well && nothing_lost)) && (!edges.end_is_cut || counts.unperceived == 0)
    }
}

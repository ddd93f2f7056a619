//! One row of a trace.

use ffclock_units::{CounterEpoch, Exchange, Moment, Tai};

/// Which of the servers of a trace, counted from 0 in the order of their first rows (or as the recorder numbered them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ServerIndex(pub u32);

/// What an independent reference (a capture card, a simulation) says about when the packets passed us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// When our request really left, where that is known.
    pub sent: Option<Moment<Tai>>,
    /// When the reply really reached us.
    pub received: Moment<Tai>,
}

/// One request, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRow {
    /// The number of the request as the trace gives it; the position of the row, from 0, where it gives none.
    pub sequence: u64,
    /// The run of the counter that the stamps belong to.
    pub epoch: CounterEpoch,
    /// The exchange; `None` when no usable reply came.
    pub exchange: Option<Exchange>,
    /// The reference times, where the trace has them.
    pub truth: Option<Truth>,
    /// Which server was asked.
    pub server: ServerIndex,
}

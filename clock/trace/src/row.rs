//! One row of a trace.

use ffclock_units::{CounterEpoch, Exchange, Moment, Tai};

/// The number of a server in a trace, from 0 in the order of their first rows (or as the recorder numbered them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ServerIndex(pub u32);

/// The times at which the packets passed this host, by an independent reference (a capture card, a simulation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// The true time at which our request left, where it is known.
    pub sent: Option<Moment<Tai>>,
    /// The true time at which the reply arrived.
    pub received: Moment<Tai>,
}

/// One request and its exchange, if there was one.
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
    /// The server of the request.
    pub server: ServerIndex,
}

//! Judges a clock against the truth: the clock of a recorded trace, or one that was watched while it ran.
//!
//! A [`ReplayPlan`] says what to replay and [`ReplayPlan::run`] does it: the estimator is fed as the daemon feeds it,
//! so the same trace gives the same estimates. At each reply with a reference time two clocks are judged, both as a
//! reader of the page would have seen them: the one published right after the exchange, and the one published before
//! it, run on to the same reading. The second is the honest figure for a program that asks at an arbitrary moment.
//! Error is clock minus truth: positive when our clock is ahead. Memory does not grow with the trace, except for the
//! clock in retrospect.
//!
//! [`PastJudge`] judges what a clock says of the past: stamps that are converted late, and intervals of any length.
//!
//! [`LiveRun`] holds the samples of a clock that was compared with the truth live, and makes its figures; [`LieRun`]
//! judges such a clock while one of its servers lies.
//!
//! Nothing here reads a clock, prints, or writes a file: an [`ReplayObserver`] takes the rows.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod lie;
mod live;
mod nominal;
mod past;
mod published;
mod report;
mod retrospect;
mod run;
mod selection;
mod track;

pub use lie::{LieReach, LieRun, LieSchedule, ServerAnswer, ServerLook, ServerStanding};
pub use live::{Figure, LiveRun, LiveSample, LiveSchedule, bound_held, set_goals};
pub use nominal::{StartPeriod, StartPeriodSource};
pub use past::{AgeErrors, LengthErrors, PastErrors, PastJudge, PastReport};
pub use published::PublishedClock;
pub use report::{
    ClockErrors, CounterRate, ExchangeCounts, LastClock, PathFigures, Report, RetrospectReport, TraceOrigin,
};
pub use retrospect::{Hindsight, SettledStep};
pub use run::{ReplayError, ReplayObserver, ReplayPlan, Replayed};
pub use track::{Detail, ReplayStep, ReplayTrack, offset_at, round_trip};

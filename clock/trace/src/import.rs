//! Logs of other programs as traces. docs/trace.md says what each format contains and what it lacks.

mod chrony;
mod date;
mod radclock;
mod rawstats;

pub(crate) use chrony::ChronyParser;
pub(crate) use radclock::RadclockParser;
pub(crate) use rawstats::RawstatsParser;

//! Traces that other programs leave behind. What each format can and cannot tell stands in docs/trace.md.

mod chrony;
mod date;
mod radclock;
mod rawstats;

pub(crate) use chrony::ChronyParser;
pub(crate) use radclock::RadclockParser;
pub(crate) use rawstats::RawstatsParser;

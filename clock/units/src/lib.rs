//! The measures of feed-forward timekeeping, as types that cannot be mixed up.
//!
//! A raw counter reading is not a time, a tick is not a second, UTC is not TAI, and a bound never shrinks by accident.
//! Each of these statements is a type here, and each forbidden mixture has a `compile_fail` example. Nothing in this
//! crate reads a clock, allocates, panics or uses floating point where an exact integer is at hand: times are multiples
//! of 2^-64 s in 128 bits, periods are a 64-bit mantissa with a shift.
//!
//! The records that the rooms hand to each other ([`Stamp`], [`Exchange`], [`Estimate`], [`Reading`]) live here too, so
//! that the rooms need not know one another.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod bound;
mod counter;
mod counter_id;
mod direction;
mod leap;
mod machine_mark;
mod moment;
mod options;
mod period;
mod rate;
mod records;
mod span;
mod stamp_shift;
mod text;
mod uncertainty;

pub use bound::{Bound, ClockError};
pub use counter::{Counter, CounterEpoch, Ticks};
pub use counter_id::{CounterId, ModuleCounter};
pub use direction::Direction;
pub use leap::{LeapAnnouncement, LeapStep, LeapTable};
pub use machine_mark::MachineMark;
pub use moment::{Moment, Mono, Phc, Server, Tai, Timescale, Utc};
pub use options::{OptionDoc, OptionError, OptionValue};
pub use period::Period;
pub use rate::Rate;
pub use records::{
    Estimate, Exchange, GrowingBound, GrowthRate, Leap, RateMemory, Reading, ServerIdentity, ServerQuality, Stamp,
    StampLocation, Status, TaiReading,
};
pub use span::Span;
pub use stamp_shift::{StampMove, StampShift};
pub use text::ParseError;
pub use uncertainty::StandardUncertainty;

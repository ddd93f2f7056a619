//! Statistics of the laboratory: percentiles, histograms, and how often a bound held the truth.
//!
//! Each has its one home here. A percentile is interpolated linearly between order statistics ([`percentile`],
//! [`Sorted`]), except where a value that really occurred is wanted ([`upper_median`]). Three histograms serve three
//! kinds of values: sizes over many orders of magnitude ([`LogHistogram`]), whole numbers in bins of equal width
//! ([`EvenHistogram`]), and signed errors ([`ErrorDistribution`], exact up to a million values). [`Containment`] counts
//! how often a clock kept its promise.
//!
//! The same values in the same order give the same figures on every machine.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod containment;
mod distribution;
mod even_histogram;
mod log_histogram;
mod percentile;
mod rank;
mod signed_histogram;
mod spread;

pub use containment::Containment;
pub use distribution::{ErrorDistribution, ErrorFigures};
pub use even_histogram::EvenHistogram;
pub use log_histogram::LogHistogram;
pub use percentile::{Sorted, percentile, percentile_in_place, upper_median, upper_median_by};
pub use spread::Spread;

//! Candidates measured in turns, so that a disturbance meets them all; the medians are compared. The benchmark of
//! `ffclock-cli` uses this file as well.

use std::hint::black_box;
use std::time::Instant;

/// Calls between two looks at the time: short enough to fall between two interruptions.
pub const BLOCK: u32 = 2_000;
/// Blocks of each kind.
pub const BLOCKS: usize = 1_001;

/// Time per call of one block [ns].
#[inline(always)]
pub fn block<T>(mut call: impl FnMut() -> T) -> f64 {
    let begin = Instant::now();
    for _ in 0..BLOCK {
        black_box(&call());
    }
    begin.elapsed().as_nanos() as f64 / f64::from(BLOCK)
}

/// The medians of blocks measured in turns [ns per call].
pub fn medians<const N: usize>(mut blocks: [&mut dyn FnMut() -> f64; N]) -> [f64; N] {
    let mut times: [Vec<f64>; N] = core::array::from_fn(|_| Vec::with_capacity(BLOCKS));
    for _ in 0..BLOCKS {
        times.iter_mut().zip(&mut blocks).for_each(|(times, block)| times.push(block()));
    }
    times.map(|mut values| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    })
}

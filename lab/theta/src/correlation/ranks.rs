//! Rank correlation of a series of pairs, and what it could have been.

use crate::analysis::SwitchPair;
use ffclock_sim::Random;
use std::ops::Range;

/// Pairs by their ranks, in the order of time. Ranks are centred, so that products of them are covariances.
pub(super) struct RankedPairs {
    relevant: Vec<f64>,
    longest: Vec<f64>,
}

impl RankedPairs {
    pub(super) fn of(pairs: &[SwitchPair]) -> Self {
        RankedPairs {
            relevant: centred_ranks(pairs.iter().map(|pair| pair.relevant_ps).collect()),
            longest: centred_ranks(pairs.iter().map(|pair| pair.longest_ps).collect()),
        }
    }

    fn len(&self) -> usize {
        self.relevant.len()
    }

    /// Spearman's rho: the correlation of the ranks, ties at their mean rank. 0 where all values of a series are equal.
    pub(super) fn correlation(&self) -> f64 {
        self.of_indices((0..self.len()).map(|index| (index, index)))
    }

    /// How many switches may depend on each other: the square root of their number.
    pub(super) fn block(&self) -> usize {
        (self.len() as f64).sqrt().ceil() as usize
    }

    /// The 95 % interval by blocks that are drawn again with repetition (Kuensch 1989), by the ranks of the whole.
    pub(super) fn interval(&self, resamples: usize, random: &mut Random) -> (f64, f64) {
        let (length, block) = (self.len(), self.block());
        let blocks = length.div_ceil(block);
        let mut drawn: Vec<f64> = (0..resamples)
            .map(|_| {
                let begins: Vec<usize> = (0..blocks).map(|_| below(random, 0..length - block + 1)).collect();
                let indices = begins.into_iter().flat_map(|begin| begin..begin + block).take(length);
                self.of_indices(indices.map(|index| (index, index)))
            })
            .collect();
        let mut at = |share| ffclock_statistics::percentile_in_place(&mut drawn, share).unwrap_or(f64::NAN);
        (at(0.025), at(0.975))
    }

    /// The correlations with one series turned against the other, by at least a block either way.
    pub(super) fn shifted(&self, shifts: usize, random: &mut Random) -> Vec<f64> {
        let (length, block) = (self.len(), self.block());
        let by = |shift: usize| self.of_indices((0..length).map(|index| (index, (index + shift) % length)));
        (0..shifts).map(|_| by(below(random, block..length - block + 1))).collect()
    }

    fn of_indices(&self, indices: impl Iterator<Item = (usize, usize)>) -> f64 {
        let mut sums = [0.0; 6];
        for (relevant, longest) in indices {
            let (x, y) = (self.relevant[relevant], self.longest[longest]);
            for (sum, term) in sums.iter_mut().zip([1.0, x, y, x * x, y * y, x * y]) {
                *sum += term;
            }
        }
        let [count, x, y, xx, yy, xy] = sums;
        let variance = (xx - x * x / count) * (yy - y * y / count);
        if variance > 0.0 { (xy - x * y / count) / variance.sqrt() } else { 0.0 }
    }
}

fn below(random: &mut Random, range: Range<usize>) -> usize {
    range.start + (random.bits() % range.len().max(1) as u64) as usize
}

/// The rank of each value less the mean rank; equal values share the mean of theirs.
fn centred_ranks(values: Vec<i64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by_key(|&index| values[index]);
    let mean = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut begin = 0;
    for group in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = begin as f64 + (group.len() as f64 - 1.0) / 2.0 - mean;
        group.iter().for_each(|&index| ranks[index] = rank);
        begin += group.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(pairs: &[(i64, i64)]) -> RankedPairs {
        let pair = |&(relevant_ps, longest_ps)| SwitchPair { at_ps: 0, relevant_ps, longest_ps };
        RankedPairs::of(&pairs.iter().map(pair).collect::<Vec<_>>())
    }

    /// Expected values: scipy.stats.spearmanr of the same pairs.
    #[test]
    fn the_rank_correlation_is_spearmans() {
        assert!((ranked(&[(1, 10), (2, 20), (3, 3000)]).correlation() - 1.0).abs() < 1e-12);
        assert!((ranked(&[(1, 30), (2, 20), (3, 10)]).correlation() + 1.0).abs() < 1e-12);
        let ties = ranked(&[(1, 5), (2, 6), (2, 7), (3, 8), (4, 7)]);
        assert!((ties.correlation() - 0.763_157_894_736_842).abs() < 1e-9, "{}", ties.correlation());
        assert_eq!(ranked(&[(1, 5), (1, 6), (1, 7)]).correlation(), 0.0);
    }

    #[test]
    fn the_interval_holds_the_correlation_and_shifts_lose_it() {
        let mut random = Random::new(3);
        let pairs: Vec<(i64, i64)> = (0..900)
            .map(|_| {
                let common = random.uniform() * 1e6;
                ((common + random.uniform() * 3e5) as i64, (common + random.uniform() * 3e5) as i64)
            })
            .collect();
        let ranked = ranked(&pairs);
        let rho = ranked.correlation();
        let (low, high) = ranked.interval(499, &mut random);
        assert!(rho > 0.85 && low < rho && rho < high && high - low < 0.1, "{low} {rho} {high}");
        assert!(ranked.shifted(499, &mut random).into_iter().all(|shifted| shifted.abs() < 0.2));
    }
}

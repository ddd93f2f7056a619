//! Percentiles of what was counted.

/// The value at which `share` of `count` counted values is reached; `None` if the bins hold fewer. The bins ascend.
pub(crate) fn at_share(bins: impl Iterator<Item = (f64, u64)>, share: f64, count: u64) -> Option<f64> {
    let rank = (share * count.saturating_sub(1) as f64) as u64;
    let mut before = 0;
    let mut reached = bins.skip_while(|(_, counted)| {
        before += counted;
        before <= rank
    });
    reached.next().map(|(value, _)| value)
}

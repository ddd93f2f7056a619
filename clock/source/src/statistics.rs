//! Counts of events, for status and metrics.

use crate::Rejection;

/// Counts since the source was made. They survive [`retarget`](crate::Source::retarget) and stop at the largest value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests made.
    pub sent: u64,
    /// Packets handed in, of any kind.
    pub received: u64,
    /// Exchanges completed.
    pub accepted: u64,
    /// Usable replies in the interleaved mode.
    pub interleaved: u64,
    /// Requests that were not answered in time.
    pub lost: u64,
    /// Refusals by the server.
    pub kissed: u64,
    /// Events dropped because they were not fetched.
    pub events_dropped: u64,
    rejected: [u64; Rejection::ALL.len()],
}

impl Statistics {
    /// The number of rejections for `reason`.
    pub fn rejected(&self, reason: Rejection) -> u64 {
        debug_assert!(Rejection::ALL.get(reason as usize) == Some(&reason), "ALL is in the order of the reasons");
        self.rejected.get(reason as usize).copied().unwrap_or(0)
    }

    /// The number of rejections for every reason.
    pub fn rejections(&self) -> impl Iterator<Item = (Rejection, u64)> + '_ {
        Rejection::ALL.into_iter().zip(self.rejected.iter().copied())
    }

    pub(crate) fn count_rejected(&mut self, reason: Rejection) {
        debug_assert!(Rejection::ALL.get(reason as usize) == Some(&reason), "ALL is in the order of the reasons");
        if let Some(count) = self.rejected.get_mut(reason as usize) {
            increase(count);
        }
    }
}

pub(crate) const fn increase(count: &mut u64) {
    *count = count.saturating_add(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_counted_in_its_own_place() {
        let mut statistics = Statistics::default();
        for (times, reason) in Rejection::ALL.into_iter().enumerate() {
            for _ in 0..times {
                statistics.count_rejected(reason);
            }
        }
        for (times, (reason, count)) in statistics.rejections().enumerate() {
            assert_eq!(count, times as u64);
            assert_eq!(statistics.rejected(reason), count);
        }
    }
}

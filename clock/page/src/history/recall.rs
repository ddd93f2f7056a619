//! Reading a history.

use super::segment::time_at;
use super::{HistoryWords, RINGS};
use crate::convert::StampTime;
use crate::layout::history::{self, HISTORY_BYTES, entry, header};
use crate::layout::{self, high};
use crate::words::{load, read_entry};
use crate::{BootId, PageError};
use ffclock_units::Counter;

/// Whether this is a history that this version can read, written in the boot `boot` as far as both are known.
///
/// # Errors
/// [`PageError::NotAPage`], [`PageError::Version`], [`PageError::Size`], [`PageError::Corrupt`],
/// [`PageError::OtherBoot`].
pub fn check_history(memory: &HistoryWords, boot: Option<BootId>) -> Result<(), PageError> {
    const HEADER: [usize; 6] =
        [header::MAGIC, header::VERSION, header::SIZE, header::BOOT_HIGH, header::BOOT_LOW, header::CHECK];
    let [magic, version, size, high, low, check] = HEADER.map(|place| load(memory, place));
    if magic != history::MAGIC {
        return Err(PageError::NotAPage);
    }
    if version != history::VERSION {
        return Err(PageError::Version(version));
    }
    if size != HISTORY_BYTES as u64 {
        return Err(PageError::Size(size));
    }
    if layout::sum(0, &[magic, version, size, high, low]) != check {
        return Err(PageError::Corrupt);
    }
    match (BootId::from_bits(u128::from(high) << 64 | u128::from(low)), boot) {
        (Some(written), Some(boot)) if written != boot => Err(PageError::OtherBoot),
        _ => Ok(()),
    }
}

/// The time of a reading of the counter before the line of a page, at `newest`, in the epoch that the page names so;
/// `None` where the history does not reach it, or is being written there.
#[inline(always)]
pub(crate) fn recall(memory: &HistoryWords, epoch: [u64; 2], [counter, newest]: [Counter; 2]) -> Option<StampTime> {
    let [since, age] = [(counter.raw(), load(memory, header::ORIGIN)), (newest.raw(), counter.raw())]
        .map(|(later, earlier)| later.wrapping_sub(earlier));
    for ring in RINGS {
        let per_tick = load(memory, ring.per_tick);
        if high(age, per_tick) >= ring.entries as u64 {
            continue;
        }
        let bucket = high(since, per_tick);
        // The segment at the beginning of the bucket, or the next one.
        for bucket in [bucket, bucket.wrapping_add(1)] {
            let place = ring.place(bucket);
            if seems_to_cover(memory, place, counter)
                && let Ok((sequence, words)) = read_entry(memory, place, &history::ALL)
                && let Some(time) = time_at((sequence, &words), epoch, counter)
            {
                return Some(time);
            }
        }
    }
    None
}

/// Whether an entry is worth being read whole.
#[inline(always)]
fn seems_to_cover(memory: &HistoryWords, place: usize, counter: Counter) -> bool {
    counter.raw().wrapping_sub(load(memory, place + entry::BEGIN)) <= load(memory, place + entry::TICKS)
}

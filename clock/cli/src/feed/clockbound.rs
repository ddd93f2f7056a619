//! The segments of ClockBound's daemon: `shm0` for its clients of version 2, `shm1` for those of version 3, so that a
//! program which links such a client works with this clock (crates `clock-bound-shm` 2.0 and `clock-bound` 3.0, whose
//! clients read these segments in a test).
//!
//! - A client of version 3 reads the CPU's counter and a line: counter, time, period, bound, and how fast the bound
//!   grows. It gets the published line, from a fresh counter reading.
//! - A client of version 2 reads the system clock. Its bound is that of the published time, plus how far the system
//!   clock is off, plus how far it may be slewed since; a step of it is seen at the next sample only.
//!
//! A file that clients have mapped is never cut off, and goes on when this ends: the time is then void at the moment
//! to which the page was good.

use super::{Feed, FeedSample, halves, seconds_and_nanos};
use crate::failure::Failure;
use crate::output;
use core::sync::atomic::Ordering;
use ffclock::{Clock, ReadError, Snapshot};
use ffclock_sys::{ForeignFormat, SharedWords};
use ffclock_units::{Bound, Counter, CounterId, Moment, Period, Rate, Reading, Span, Status, Utc};
use std::path::{Path, PathBuf};

const FORMAT: ForeignFormat = ForeignFormat { kind: "segment of ClockBound", mark: mark() };
/// Header and payload of each version, in words.
const WORDS_V2: usize = 10;
const WORDS_V3: usize = 13;
const HEADER_WORDS: usize = 2;
/// The version field: of version 3 also the lowest that can read it.
const VERSION_2: u16 = 2;
const VERSION_3: u16 = 3 << 8 | 3;
/// Where clients look for the VMClock.
const VM_CLOCK: &str = "/dev/vmclock0";
/// Clients of version 2 read CLOCK_MONOTONIC_COARSE, which is behind by a tick of the kernel, of 10 ms at most.
const COARSE: Span = Span::from_millis(10);
/// Nanoseconds for what is cut off: of the time, of the bound, and in the client's arithmetic.
const ROUNDING: i64 = 3;
/// Clients refuse 10^9 and more.
const MOST_PPB: f64 = 999_999_999.0;

/// "NZMA", then the second word of their mark, as two words of 32 bits.
const fn mark() -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (0x414d_5a4e_u32.to_ne_bytes(), 0x4342_0200_u32.to_ne_bytes());
    [a, b, c, d, e, f, g, h]
}

/// The clock's state, as clients know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientStatus {
    Unknown = 0,
    Synchronised = 1,
    FreeRunning = 2,
}

/// What both segments say, at one moment.
#[derive(Clone, Copy, Debug)]
struct BoundLine {
    counter: Counter,
    time: Moment<Utc>,
    period: Period,
    bound: Bound,
    growth: Rate,
    /// How long all of this may be believed.
    good_for: Span,
    status: ClientStatus,
    /// The marker of the VMClock, where clients are to compare it.
    marker: Option<u64>,
}

/// Both segments.
pub(super) struct SegmentFeed {
    v2: Segment<WORDS_V2>,
    v3: Segment<WORDS_V3>,
    slew: Rate,
    /// Whether clients compare the VMClock; decided once, because clients decide once.
    watched: Option<bool>,
    /// Whether it was said that there is no `shm1`.
    other_counter_said: bool,
}

impl SegmentFeed {
    pub(super) fn create(directory: &Path, slew: Rate) -> Result<Self, Failure> {
        let (v2, v3) = (directory.join("shm0"), directory.join("shm1"));
        Ok(SegmentFeed {
            v2: Segment::create(v2, VERSION_2)?,
            v3: Segment::create(v3, VERSION_3)?,
            slew,
            watched: None,
            other_counter_said: false,
        })
    }
}

impl Feed for SegmentFeed {
    fn give(&mut self, clock: &Clock, sample: &FeedSample) -> Result<(), Failure> {
        let given = self.write(clock, sample);
        if given.is_err() {
            self.withhold();
        }
        given
    }

    fn withhold(&mut self) {
        self.v2.withhold();
        self.v3.withhold();
    }
}

impl SegmentFeed {
    fn write(&mut self, clock: &Clock, sample: &FeedSample) -> Result<(), Failure> {
        let watched =
            *self.watched.get_or_insert_with(|| clock.machine_mark().is_some() && Path::new(VM_CLOCK).exists());
        let snapshot = clock.snapshot().map_err(|error| Failure::from(error.to_string()))?;
        let mut line = BoundLine::of(&snapshot, sample).map_err(|error| Failure::from(error.to_string()))?;
        if watched {
            let mark = clock.machine_mark().ok_or("the daemon watches the VMClock no more")?;
            // Clients know the disruption marker alone. A new generation makes the page end its epoch, and this void.
            line.marker = Some(mark.disruption);
        }
        // Nothing of this is of another epoch than the page, or nothing is written.
        clock.check_snapshot(&snapshot).map_err(|error| Failure::unsynchronised(error.to_string()))?;
        self.v2.write(&line.version_2(sample, self.slew))?;
        if snapshot.counter_id() == CounterId::CPU {
            return self.v3.write(&line.version_3());
        }
        if !self.other_counter_said {
            output::complain(
                "ffclock: shm1 is not fed: its clients read the CPU's counter, and the clock keeps time with another",
            );
            self.other_counter_said = true;
        }
        Ok(())
    }
}

impl BoundLine {
    /// The line of the page at the sample's last look.
    fn of(snapshot: &Snapshot, sample: &FeedSample) -> Result<Self, ReadError> {
        let (stamp, _) = sample.after;
        if stamp.epoch() != snapshot.epoch() {
            return Err(ReadError::OtherEpoch);
        }
        let counter = stamp.counter();
        let estimate = snapshot.estimate().ok_or(ReadError::NoEstimate)?;
        let Reading { time, bound, status, .. } = snapshot.reading_at(counter)?;
        let to_end = estimate.period * (snapshot.valid_until() - counter);
        let leap = snapshot.leap();
        let to_leap = Moment::from_origin(Span::from_secs(leap.at)) - snapshot.tai_at(counter)?;
        // Clients know no leap second: before one the line ends.
        let leaps = leap.before != leap.after && to_leap > Span::ZERO;
        Ok(BoundLine {
            counter,
            time,
            period: estimate.period,
            bound,
            growth: estimate.bound_growth.as_rate(),
            good_for: if leaps { to_end.min(to_leap) } else { to_end }.max(Span::ZERO),
            status: match status {
                _ if bound == Bound::UNKNOWN => ClientStatus::Unknown,
                Status::Synchronised | Status::WarmingUp => ClientStatus::Synchronised,
                Status::Holdover => ClientStatus::FreeRunning,
                Status::Unsynchronised => ClientStatus::Unknown,
            },
            marker: None,
        })
    }

    /// `ClockErrorBoundV3`: the counter, its time, when that is void, the period and its relative error (which the
    /// growth of the bound holds already), the bound, the VMClock's marker, the growth, the status, and the shifts.
    fn version_3(&self) -> [u64; WORDS_V3 - HEADER_WORDS] {
        let (as_of, void_after) = (seconds_and_nanos(self.time), seconds_and_nanos(self.time + self.good_for));
        let bound = nanos(self.bound.as_span()).saturating_add(ROUNDING);
        [
            self.counter.raw(),
            as_of.0.cast_unsigned(),
            as_of.1.into(),
            void_after.0.cast_unsigned(),
            void_after.1.into(),
            self.period.mantissa(),
            0,
            bound.cast_unsigned(),
            self.marker.unwrap_or_default(),
            self.growth_and_status(self.growth),
            u64::from_ne_bytes([u8::from(self.marker.is_some()), self.period.shift(), 0, 0, 0, 0, 0, 0]),
        ]
    }

    /// `ClockErrorBoundV2`: since when on the scale of the coarse monotonic clock, when that is void, the bound of the
    /// system clock, the VMClock's marker, how fast the bound grows, the status.
    fn version_2(&self, sample: &FeedSample, slew: Rate) -> [u64; WORDS_V2 - HEADER_WORDS] {
        let since = sample.begin - COARSE;
        let (as_of, void_after) = (seconds_and_nanos(since), seconds_and_nanos(since + self.good_for));
        let off = nanos(sample.behind.abs()).saturating_add(nanos(sample.width));
        let bound = nanos(self.bound.as_span()).saturating_add(off).saturating_add(ROUNDING);
        let growth = Rate::from_fraction(self.growth.as_fraction() + slew.abs().as_fraction());
        [
            as_of.0.cast_unsigned(),
            as_of.1.into(),
            void_after.0.cast_unsigned(),
            void_after.1.into(),
            bound.cast_unsigned(),
            self.marker.unwrap_or_default(),
            self.growth_and_status(growth),
            u64::from_ne_bytes([u8::from(self.marker.is_some()), 0, 0, 0, 0, 0, 0, 0]),
        ]
    }

    fn growth_and_status(&self, growth: Rate) -> u64 {
        let ppb = (growth.as_ppb().ceil() + 1.0).clamp(0.0, MOST_PPB);
        halves(ppb as i32, self.status as i32)
    }
}

/// Whole nanoseconds, rounded up; at most 30 years, so that clients can add to them.
fn nanos(span: Span) -> i64 {
    const MOST: i64 = 1_000_000_000_000_000_000;
    i64::try_from(span.as_nanos().saturating_add(1)).map_or(MOST, |nanos| nanos.min(MOST))
}

/// One segment: a header with the mark, the length, the version and a generation, then the payload. The generation is
/// odd while the payload changes, and never 0 once there was one.
struct Segment<const COUNT: usize> {
    path: PathBuf,
    memory: SharedWords<COUNT>,
    version: u16,
    /// The generation that was left; none before the first payload.
    left: Option<u16>,
    /// What was written last.
    payload: Vec<u64>,
}

impl<const COUNT: usize> Segment<COUNT> {
    fn create(path: PathBuf, version: u16) -> Result<Self, Failure> {
        let memory = open(&path)?;
        Ok(Segment { path, memory, version, left: None, payload: Vec::new() })
    }

    fn write(&mut self, payload: &[u64]) -> Result<(), Failure> {
        if !self.memory.is_at(&self.path) {
            self.memory = open(&self.path)?;
            self.left = None;
        }
        let found = generation_of(self.memory.words()[1].load(Ordering::Acquire));
        if self.left.is_some_and(|left| left != found) {
            let path = self.path.display();
            return Err(Failure::from(format!("{path}: another program writes it: is ClockBound's daemon running?")));
        }
        self.left = Some(self.store(found, payload));
        self.payload = payload.to_vec();
        Ok(())
    }

    /// The generation afterwards. Each store is a release: who sees a word of the payload, sees the odd generation.
    fn store(&self, found: u16, payload: &[u64]) -> u16 {
        let words = self.memory.words();
        let writing = found | 1;
        let whole = match writing.wrapping_add(1) {
            0 => 2,
            whole => whole,
        };
        words[1].store(self.header(writing), Ordering::Release);
        words[0].store(u64::from_ne_bytes(FORMAT.mark), Ordering::Release);
        for (word, value) in words.iter().skip(HEADER_WORDS).zip(payload) {
            word.store(*value, Ordering::Release);
        }
        words[1].store(self.header(whole), Ordering::Release);
        whole
    }

    /// The length in octets, the version, the generation.
    fn header(&self, generation: u16) -> u64 {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&((COUNT * size_of::<u64>()) as u32).to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_ne_bytes());
        bytes[6..].copy_from_slice(&generation.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    }

    /// What was said last is of unknown state from now on.
    fn withhold(&mut self) {
        let mut payload = core::mem::take(&mut self.payload);
        // In both versions growth and status are the last word but one.
        if let Some(word) = payload.iter_mut().nth_back(1) {
            let bytes = word.to_ne_bytes();
            let growth = i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            *word = halves(growth, ClientStatus::Unknown as i32);
            // Where that fails, the segment is another program's by now.
            let _ = self.write(&payload);
        }
    }
}

fn open<const COUNT: usize>(path: &Path) -> Result<SharedWords<COUNT>, Failure> {
    SharedWords::create_as(FORMAT, path).map_err(|error| Failure::from(error.to_string()))
}

fn generation_of(header: u64) -> u16 {
    let bytes = header.to_ne_bytes();
    u16::from_ne_bytes([bytes[6], bytes[7]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients take 0 for a segment that was never written, and an odd generation for one that is being written: by a
    /// writer that died too, from which the next one goes on.
    #[test]
    fn the_generation_turns_over_without_zero() {
        let path = std::env::temp_dir().join(format!("ffclock-segment-{}", std::process::id()));
        let mut segment = Segment::<WORDS_V2>::create(path.clone(), VERSION_2).unwrap();
        let payload = [7; WORDS_V2 - HEADER_WORDS];
        for (found, left) in [(0, 2), (2, 4), (0xfffd, 0xfffe), (0xfffe, 2), (0xffff, 2)] {
            segment.memory.words()[1].store(segment.header(found), Ordering::Release);
            segment.left = None;
            segment.write(&payload).unwrap();
            let header = segment.memory.words()[1].load(Ordering::Acquire);
            assert_eq!((header, segment.left), (segment.header(left), Some(left)), "after {found}");
        }
        // All of them, one after the other.
        for _ in 0..40_000 {
            segment.write(&payload).unwrap();
            let left = generation_of(segment.memory.words()[1].load(Ordering::Acquire));
            assert!(left != 0 && left.is_multiple_of(2), "{left}");
        }
        std::fs::remove_file(path).unwrap();
    }
}

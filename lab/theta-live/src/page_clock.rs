//! Samples of the page of a rank's host, taken repeatedly during the run.

use super::control::ClockWord;
use super::stamping::StampingCounter;
use ffclock::Clock;
use ffclock_counter::{CounterId, USABLE, UnknownCounter, read_ordered};
use ffclock_units::{Span, Status};
use std::path::Path;

/// The time between two samples.
const BETWEEN: Span = Span::from_millis(100);

/// The page, and its samples.
pub(super) struct PageClock {
    clock: Result<Clock, String>,
    kind: CounterId,
    next: u64,
    between: u64,
    pub(super) words: Vec<ClockWord>,
    /// Why the last sample that failed could not be taken.
    pub(super) trouble: Option<String>,
}

impl PageClock {
    /// The page at `path`, or where the client library looks for one. Without a page it has no samples, and the reason.
    pub(super) fn open(path: Option<&Path>, counter: StampingCounter) -> Self {
        let clock = match path {
            Some(path) => Clock::open_at(path),
            None => Clock::open(),
        };
        let mut page = PageClock {
            clock: clock.map_err(|error| error.to_string()),
            kind: counter.kind,
            next: 0,
            between: u64::try_from(counter.period.ticks_in(BETWEEN).raw()).unwrap_or(u64::MAX),
            words: Vec::new(),
            trouble: None,
        };
        page.look();
        page
    }

    /// The counter of the page at `path`, or of the page that the client library finds.
    pub(super) fn counter_at(path: Option<&Path>) -> Result<CounterId, String> {
        let clock = path.map_or_else(Clock::open, Clock::open_at).map_err(|error| error.to_string())?;
        let snapshot = clock.snapshot().map_err(|error| format!("{}: {error}", clock.path().display()))?;
        let counter = snapshot.counter_id();
        if USABLE.contains(&counter) { Ok(counter) } else { Err(UnknownCounter.to_string()) }
    }

    /// The counter that it reads.
    pub(super) fn kind(&self) -> CounterId {
        self.kind
    }

    /// Takes a sample if it is due.
    pub(super) fn look_if_due(&mut self, now: u64) {
        if now >= self.next {
            self.look();
        }
    }

    pub(super) fn look(&mut self) {
        match self.word() {
            Ok(word) => self.words.push(word),
            Err(trouble) => self.trouble = Some(trouble),
        }
        self.next = read_ordered(self.kind).raw().saturating_add(self.between);
    }

    fn word(&self) -> Result<ClockWord, String> {
        let clock = self.clock.as_ref().map_err(String::clone)?;
        let named = |why: String| format!("{}: {why}", clock.path().display());
        let snapshot = clock.snapshot().map_err(|error| named(error.to_string()))?;
        if snapshot.counter_id() != self.kind {
            let (page, own) = (snapshot.counter_id().name(), self.kind.name());
            return Err(named(format!("it is about the counter {page}, and events are stamped with {own}")));
        }
        let stamp = clock.stamp();
        let reading = clock.at(stamp).map_err(|error| named(error.to_string()))?;
        let estimate = snapshot.estimate().filter(|_| reading.status != Status::Unsynchronised);
        let estimate = estimate.ok_or_else(|| named("its clock is not synchronised".to_owned()))?;
        Ok(ClockWord {
            counter: stamp.counter().raw(),
            time_ps: picoseconds(reading.time.since_origin()),
            // Rounded down.
            bound_ps: u64::try_from(picoseconds(reading.bound.as_span()) + 2).unwrap_or(u64::MAX),
            drift_ppt: (estimate.bound_growth.as_rate().as_fraction() * 1e12).ceil() as u64,
            period_s: estimate.period.as_seconds(),
        })
    }
}

/// Rounded down.
fn picoseconds(span: Span) -> i128 {
    const SECOND: i128 = 1_000_000_000_000;
    let units = span.units();
    (units >> 64) * SECOND + (((units & i128::from(u64::MAX)) * SECOND) >> 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_counter::nominal;

    #[test]
    fn picoseconds_are_exact() {
        assert_eq!(picoseconds(Span::from_nanos(1_795_253_400_123_456_789)), 1_795_253_400_123_456_788_999);
        assert_eq!(picoseconds(Span::from_secs(-2)), -2_000_000_000_000);
    }

    #[test]
    fn a_missing_page_is_named() {
        let kind = CounterId::MonotonicRaw;
        let counter = StampingCounter { kind, period: nominal(kind).unwrap().period };
        let page = PageClock::open(Some(Path::new("/no/such/page")), counter);
        assert!(page.words.is_empty());
        assert!(page.trouble.unwrap().contains("/no/such/page"));
    }
}

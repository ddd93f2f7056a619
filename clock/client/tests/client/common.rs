//! Pages to test with: real files, a writer of their own, and this machine's counter.

use ffclock_counter::{CounterId, read_ordered};
use ffclock_page::{Publication, Writer};
use ffclock_sys::SharedPage;
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapStep, Moment, Period, Rate, Span, StandardUncertainty,
    Status, Ticks,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Ticks per second that the pages claim.
pub const HERTZ: f64 = 2.7e9;
/// UTC at the reference of `publication`.
pub const UTC_SECONDS: i64 = 1_800_000_000;

/// A directory that is removed with its content.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("ffclock-client-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a directory for the test");
        Directory(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The only writer of the page at `path`.
pub fn writer(path: &Path) -> Writer<SharedPage> {
    Writer::open(SharedPage::create(path).expect("a page"), None)
}

pub fn period() -> Period {
    Period::from_hertz(HERTZ).expect("a period")
}

pub fn seconds(count: i64) -> Ticks {
    period().ticks_in(Span::from_secs(count))
}

/// Synchronised within 50 us as of now, good for an hour; the epoch began ten seconds ago.
pub fn publication() -> Publication {
    about(read_ordered(CounterId::CPU))
}

/// The same, as of a counter reading.
pub fn about(counter: Counter) -> Publication {
    Publication {
        counter_id: CounterId::CPU,
        epoch: CounterEpoch::from_raw(1),
        epoch_begin: counter - seconds(10),
        estimate: Estimate {
            counter,
            time: Moment::from_origin(Span::from_secs(UTC_SECONDS + 37)),
            period: period(),
            uncertainty: StandardUncertainty::of(Span::from_micros(2)),
            noise: StandardUncertainty::of(Span::from_micros(1)),
            uncertainty_growth: GrowthRate::of(Rate::from_ppb(20.0)),
            bound: Bound::of(Span::from_micros(50)),
            bound_growth: GrowthRate::of(Rate::from_ppb(100.0)),
            difference_period: period(),
            difference_bound: GrowthRate::of(Rate::from_ppb(50.0)),
            difference_uncertainty: GrowthRate::of(Rate::from_ppb(5.0)),
            status: Status::Synchronised,
        },
        leap: LeapStep { before: 36, after: 37, at: 1_483_228_836 },
        valid_until: counter + seconds(3600),
        server: None,
    }
}

//! Pages whose truth is known, and the loop of a sender and a reflector in one thread.

use ffclock_counter::{CounterId, boot_id, read_ordered};
use ffclock_owd::packet::BASE_BYTES;
use ffclock_owd::page_time::Unsynchronised;
use ffclock_owd::record::OwdRow;
use ffclock_owd::reflector::{Numbering, Reflector, ReflectorPlan};
use ffclock_owd::sender::{Sender, SenderPlan};
use ffclock_page::{BootId, Publication, Writer};
use ffclock_sys::{SharedPage, StampMode, system_utc_now};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapStep, Moment, Period, Rate, Span, StandardUncertainty,
    Status, Ticks,
};
use std::cell::RefCell;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

/// It counts ns on every machine.
const COUNTER: CounterId = CounterId::MonotonicRaw;

/// The true time of every page at its origin, UTC [s since 1970].
const ORIGIN_S: i64 = 1_800_000_000;
/// TAI - UTC.
const TAI_AHEAD_S: i64 = 37;

/// What a page says of its clock.
#[derive(Clone, Copy, Debug)]
pub struct Shift {
    /// The clock - the truth.
    pub error: Span,
    pub bound: Span,
}

/// A directory of its own, removed when dropped. All pages in it are about the same true time.
pub struct Place {
    directory: PathBuf,
    origin: Counter,
}

impl Place {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("ffclock-owd-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).unwrap();
        Place { directory, origin: read_ordered(COUNTER) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn empty_page(&self, name: &str) -> PathBuf {
        drop(self.writer(name));
        self.path(name)
    }

    pub fn page(&self, name: &str, shift: Shift) -> PathBuf {
        let period = Period::from_seconds(1e-9).unwrap();
        let growth = GrowthRate::of(Rate::from_ppb(1.0));
        let uncertainty = StandardUncertainty::of(shift.bound.halved());
        let estimate = Estimate {
            counter: self.origin,
            time: Moment::from_origin(Span::from_secs(ORIGIN_S + TAI_AHEAD_S)) + shift.error,
            period,
            uncertainty,
            noise: uncertainty,
            uncertainty_growth: growth,
            bound: Bound::of(shift.bound),
            bound_growth: growth,
            difference_period: period,
            difference_bound: growth,
            difference_uncertainty: growth,
            status: Status::Synchronised,
        };
        self.writer(name).publish(&Publication {
            counter_id: COUNTER,
            epoch: CounterEpoch::from_raw(1),
            epoch_begin: self.origin - Ticks::from_raw(1_000_000_000),
            estimate,
            leap: LeapStep { before: 36, after: 37, at: 1_483_228_836 },
            valid_until: self.origin + Ticks::from_raw(3_600_000_000_000),
            server: None,
        });
        self.path(name)
    }

    /// A page that says what the system's clock says.
    pub fn page_of_the_system(&self, name: &str, bound: Span) -> PathBuf {
        let elapsed = Span::from_nanos((read_ordered(COUNTER) - self.origin).raw().into());
        let begun = system_utc_now().since_origin() - elapsed;
        self.page(name, Shift { error: begun - Span::from_secs(ORIGIN_S), bound })
    }

    /// Where the passages of a reflector go, and what was written there.
    pub fn passages(&self) -> (Box<dyn Write>, impl Fn() -> String) {
        let text = SharedText::default();
        let written = text.clone();
        (Box::new(text), move || String::from_utf8(written.0.borrow().clone()).unwrap())
    }

    fn writer(&self, name: &str) -> Writer<SharedPage> {
        Writer::open(SharedPage::create(&self.path(name)).unwrap(), BootId::parse(&boot_id()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[derive(Clone, Default)]
struct SharedText(Rc<RefCell<Vec<u8>>>);

impl Write for SharedText {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub fn reflector_plan(page: &Path) -> ReflectorPlan {
    ReflectorPlan {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        page: Some(page.to_owned()),
        rate: 100_000,
        unsynchronised: Unsynchronised::Refuse,
        stamps: StampMode::Kernel,
        numbering: Numbering::Stateful,
    }
}

pub fn plan(page: &Path, to: SocketAddr, packets: u64) -> SenderPlan {
    SenderPlan {
        to,
        page: Some(page.to_owned()),
        interval: Span::from_micros(500),
        packets: Some(packets),
        patience: Span::from_secs(2),
        bytes: BASE_BYTES,
        unsynchronised: Unsynchronised::Refuse,
        stamps: StampMode::Kernel,
    }
}

/// Lets both work until every packet has its fate.
pub fn drive(sender: &mut Sender, reflector: &mut Reflector) -> Vec<OwdRow> {
    let mut rows = Vec::new();
    while !sender.is_finished() {
        sender.turn(&mut rows).unwrap();
        reflector.turn().unwrap();
    }
    // What was lost is known when it was waited for long enough.
    sender.turn(&mut rows).unwrap();
    rows
}

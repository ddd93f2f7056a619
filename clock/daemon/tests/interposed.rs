//! The unmodified daemon behind a library that stands between it and the C library: all its time comes from that
//! library, and it copes with refused calls.

mod common;

use common::interpose::{Interposer, Place, REFUSE_BOOTTIME, REFUSE_STAMPS, REFUSE_TIMERFD};
use common::server::{TestServer, Truth};
use common::{Daemon, Scratch, page_reader, server_section};
use ffclock_control::protocol::StatusReport;
use ffclock_counter::CounterId;
use ffclock_page::{ReadError, Reader};
use ffclock_sys::SharedPageReader;
use ffclock_units::{LeapTable, Reading, Span, Ticks};
use std::time::{Duration, Instant};

const SECOND_NS: i64 = 1_000_000_000;

/// A daemon behind the library, and a server that is not.
struct Case {
    interposer: Interposer,
    truth: Truth,
    daemon: Daemon,
    page: SharedPageReader,
    server: TestServer,
    _scratch: Scratch,
}

impl Case {
    /// `prepare` sets the library's first commands. `None` where there is no compiler.
    fn start(name: &str, options: &str, prepare: impl FnOnce(&Interposer)) -> Option<Self> {
        let scratch = Scratch::new(name);
        let interposer = Interposer::compile(&scratch)?;
        prepare(&interposer);
        let truth = Truth::beginning_now(CounterId::MonotonicRaw);
        let server = TestServer::start("127.0.0.1:0", truth);
        let top = scratch.daemon_section(&format!("counter = \"monotonic-raw\"\n{options}"));
        let config = top + &server_section(server.address, "reply_timeout = \"50 ms\"");
        let daemon = Daemon::start_in(&scratch, &config, &interposer.environment());
        daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
        let page = page_reader(&scratch);
        Some(Case { interposer, truth, daemon, page, server, _scratch: scratch })
    }

    /// A reading by the counter as the daemon sees it, and its error.
    fn read(&self) -> Result<(Reading, Span), ReadError> {
        let host = ffclock_counter::read_ordered(CounterId::MonotonicRaw);
        let seen = host + Ticks::from_raw(self.interposer.get(Place::RawNs));
        let reading = Reader::new(self.page.words()).reading_at(seen, CounterId::MonotonicRaw)?;
        Ok((reading, reading.time - LeapTable::built_in().utc_from_tai(self.truth.at(host))))
    }

    fn keeps_time(&self) {
        let (reading, error) = self.read().expect("there is an estimate");
        assert!(error.abs() <= reading.bound.as_span(), "error {error}, bound {}", reading.bound);
        assert!(error.abs() < Span::from_millis(2), "{error}");
    }

    /// Breaks the counter's run while the server is silent, waits until readers get an error instead of a time, and
    /// then for a new estimate.
    fn survives(&self, breaking: impl FnOnce(&Interposer)) -> StatusReport {
        let before = self.daemon.status().expect("the daemon answers");
        self.server.behave(|behaviour| behaviour.silent = true);
        breaking(&self.interposer);
        let begin = Instant::now();
        while self.read() != Err(ReadError::NoEstimate) {
            assert!(begin.elapsed() < Duration::from_secs(5), "the break was not noticed: {}", self.daemon.log());
            std::thread::sleep(Duration::from_millis(1));
        }
        self.server.behave(|behaviour| behaviour.silent = false);
        // On a busy machine the first round trip may be long.
        let after = self.daemon.wait_for("a good estimate after the break", |status| {
            status.clock.as_ref().is_some_and(|clock| clock.bound_s < 2e-3)
        });
        assert_eq!(after.counter.epoch, before.counter.epoch + 1);
        self.keeps_time();
        after
    }
}

/// The counter's rate as reported by a daemon whose clocks all run 200 ppm fast.
fn rate_with_fast_clocks(name: &str, options: &str) -> Option<(f64, Case)> {
    let case = Case::start(name, options, |interposer| {
        interposer.set(Place::OriginNs, ffclock_counter::raw_clock().raw() as i64);
        interposer.set(Place::RatePpb, 200_000);
    })?;
    let status = case.daemon.wait_for("a rate", |status| {
        status.clock.as_ref().is_some_and(|clock| clock.rate_bound_ppm < 60.0 && status.sources[0].used >= 20)
    });
    Some((status.clock.expect("just seen").rate_ppm, case))
}

#[test]
fn time_is_what_the_c_library_says() {
    let Some((rate_ppm, case)) = rate_with_fast_clocks("fast-user", "stamps = \"user\"") else { return };
    assert!((rate_ppm + 200.0).abs() < 40.0, "the counter runs 200 ppm fast and is said to run {rate_ppm} ppm slow");
    let reads = [Place::RawReads, Place::MonotonicReads, Place::BoottimeReads, Place::RealtimeReads];
    let counts = reads.map(|place| case.interposer.get(place));
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}

#[test]
fn stamps_of_a_kernel_that_lives_in_another_time_are_not_used() {
    let Some((rate_ppm, case)) = rate_with_fast_clocks("fast-kernel", "stamps = \"kernel\"") else { return };
    assert!((rate_ppm + 200.0).abs() < 40.0, "{rate_ppm} ppm");
    // The system clock that the daemon sees and the one that the kernel stamps with are an hour apart.
    case.interposer.set(Place::RealtimeNs, -3600 * SECOND_NS);
    let status = case.daemon.wait_for("user stamps", |status| status.stamps.starts_with("user"));
    assert_eq!(status.stamps, "user (the kernel's do not come)");
    let used = status.sources[0].used;
    case.daemon.wait_for("more exchanges", |status| status.sources[0].used > used + 4);
}

#[test]
fn a_kernel_that_refuses_leaves_a_clock_and_says_so() {
    let refuse = |interposer: &Interposer| {
        interposer.set(Place::Refused, REFUSE_BOOTTIME | REFUSE_TIMERFD | REFUSE_STAMPS);
    };
    let Some(case) = Case::start("refused", "stamps = \"kernel\"", refuse) else { return };
    // More stamps than may be missing before that is reported.
    let status = case.daemon.wait_for("more exchanges", |status| status.sources[0].used >= 12);
    assert_eq!(status.stamps, "user (the kernel refuses)");
    let missing = "no usable stamps come from the kernel";
    assert!(!status.events.iter().any(|event| event.text.contains(missing)), "it refused: {status:#?}");
    assert!(status.events.iter().any(|event| event.text.contains("the kernel refuses to stamp")), "{status:#?}");
    case.keeps_time();
}

#[test]
fn breaks_of_the_counter_are_seen_from_end_to_end() {
    let Some(case) = Case::start("breaks", "stamps = \"kernel\"", |_| {}) else { return };
    case.keeps_time();
    // The monotonic clock is the witness of the raw clock.
    let jumped = case.survives(|interposer| interposer.set(Place::RawNs, 5 * SECOND_NS));
    assert!(jumped.events.iter().any(|event| event.text.contains("jumped by 5 s")), "{:?}", jumped.events);
    // A suspend: the boot-time clock and the system clock continue, the others do not. Its event is of the same kind as
    // that of the jump a moment ago, and left out.
    case.survives(|interposer| {
        interposer.set(Place::BoottimeNs, 7200 * SECOND_NS);
        interposer.set(Place::RealtimeNs, 7200 * SECOND_NS);
    });
}

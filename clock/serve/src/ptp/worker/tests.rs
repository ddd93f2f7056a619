//! A port with a page, driven by hand, whose sockets have no stamps of the kernel.

use super::*;
use crate::options::ServeConfig;
use crate::ptp::PtpConfig;
use ffclock_counter::read_ordered;
use ffclock_page::{BootId, Publication, Writer};
use ffclock_ptp::{ClockIdentity, PortIdentity, PtpBody, PtpMessage, PtpTransmit};
use ffclock_sys::SharedPage;
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapTable, Rate, Stamp, StandardUncertainty, Status, Tai,
};
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;

/// The counter of the page: it counts ns.
const COUNTER: CounterId = CounterId::MonotonicRaw;

/// A port whose page is right within 10 us; its directory is removed when dropped.
struct Case {
    directory: PathBuf,
    writer: Writer<SharedPage>,
    worker: PortWorker,
}

impl Case {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("ffclock-ptp-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).unwrap();
        let page = directory.join("page");
        let boot = BootId::parse(&ffclock_counter::boot_id());
        let mut writer = Writer::open(SharedPage::create(&page).unwrap(), boot);
        writer.publish(&publication());
        let own = PortIdentity { clock: ClockIdentity::from_mac([2, 0, 0, 0, 0, 1]), port: 1 };
        let (config, ptp) = (ServeConfig::default(), PtpConfig::default());
        let worker = PortWorker::new(PortParts {
            sockets: PtpSockets::unstamped(),
            grandmaster: Grandmaster::new(ptp.grandmaster(), own, mono_now()),
            page: &page,
            board: Arc::new(PolicyBoard::new(crate::server::policy(&config, &ptp))),
            report: Arc::default(),
            announce_interval: Span::from_secs(1),
            table_bytes: 4096,
        });
        let mut worker = worker.unwrap();
        worker.look();
        assert!(worker.grandmaster.is_serving());
        Case { directory, writer, worker }
    }

    /// The next messages to send.
    fn sent(&mut self) -> Vec<(PtpMessage, PtpTransmit)> {
        let transmits = std::iter::from_fn(|| self.worker.grandmaster.poll_transmit());
        transmits.map(|transmit| (PtpMessage::decode(transmit.octets.as_slice()).unwrap().0, transmit)).collect()
    }

    /// The page's time.
    fn tai_at(&self, counter: Counter) -> Moment<Tai> {
        self.worker.clock.snapshot().unwrap().tai_at(counter).unwrap()
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn publication() -> Publication {
    let counter = read_ordered(COUNTER);
    let time = LeapTable::built_in().tai_from_utc(ffclock_sys::system_utc_now());
    let period = Period::from_seconds(1e-9).unwrap();
    let (bound, growth) = (Span::from_micros(10), GrowthRate::of(Rate::from_ppb(100.0)));
    let estimate = Estimate {
        counter,
        time,
        period,
        uncertainty: StandardUncertainty::of(bound.halved()),
        noise: StandardUncertainty::of(bound.halved()),
        uncertainty_growth: growth,
        bound: Bound::of(bound),
        bound_growth: growth,
        difference_period: period,
        difference_bound: growth,
        difference_uncertainty: growth,
        status: Status::Synchronised,
    };
    Publication {
        counter_id: COUNTER,
        epoch: CounterEpoch::from_raw(1),
        epoch_begin: Counter::from_raw(0),
        estimate,
        leap: LeapTable::built_in().step_around(time),
        valid_until: counter + period.ticks_in(Span::from_secs(3600)),
        server: None,
    }
}

fn stamped(counter: Counter, width: Ticks) -> BestStamp {
    BestStamp { stamp: Stamp { counter, width, location: StampLocation::Kernel }, shortfall: None }
}

/// What a message says about its own time, to 2^-16 ns; `sign` is that of its correction.
fn stated(time: ffclock_ptp::PtpTimestamp, message: &PtpMessage, sign: i128) -> Span {
    time.since_origin().unwrap() + Span::from_units(message.correction.as_span().unwrap().units() * sign)
}

#[test]
fn a_departure_is_stated_at_the_beginning_of_its_stamp_and_an_arrival_at_its_end() {
    let mut case = Case::new();
    let now = mono_now();
    case.worker.grandmaster.handle_timeout(now);
    let ticket = case.sent().into_iter().find_map(|(_, transmit)| transmit.ticket).expect("a Sync");
    let (counter, width) = (read_ordered(COUNTER), Ticks::from_raw(20_001));
    case.worker.note_departure(ticket, stamped(counter, width));
    let [(follow_up, _)] = case.sent()[..] else { panic!("a Follow_Up alone") };
    let PtpBody::FollowUp(time) = follow_up.body else { panic!("{follow_up:?}") };
    let early = case.tai_at(counter) - Moment::from_origin(stated(time, &follow_up, 1));
    assert!((early - Span::from_nanos(10_001)).abs() < Span::from_nanos(1), "{early:?}");

    let source = PortIdentity { clock: ClockIdentity::from_mac([2, 0, 0, 0, 0, 9]), port: 1 };
    let request = PtpMessage { source, body: PtpBody::DelayReq(ffclock_ptp::PtpTimestamp::ZERO), ..follow_up };
    let request = PtpMessage { correction: ffclock_ptp::Correction::ZERO, ..request }.encode();
    let length = request.as_slice().len();
    case.worker.buffer[..length].copy_from_slice(request.as_slice());
    let best = stamped(counter, width);
    let from = "127.0.0.1:319".parse().unwrap();
    let (user, kernel) = (best.stamp, Ok(best.stamp));
    let received = Received { length, is_truncated: false, from, to: None, device: None, user, kernel, best };
    case.worker.take_in(&received, now);
    let [(response, _)] = case.sent()[..] else { panic!("a Delay_Resp alone") };
    let PtpBody::DelayResp(time, _) = response.body else { panic!("{response:?}") };
    let late = Moment::from_origin(stated(time, &response, -1)) - case.tai_at(counter);
    assert!((late - Span::from_nanos(10_001)).abs() < Span::from_nanos(1), "{late:?}");
}

/// What leaves after a publication is stated by it, so its error is claimed before.
#[test]
fn a_publication_with_a_larger_error_is_announced_at_once() {
    let mut case = Case::new();
    let now = mono_now();
    case.worker.grandmaster.handle_timeout(now);
    case.sent();
    // The time to make the claim again is far.
    case.worker.claim_due = now + Span::from_secs(3600);
    let mut wider = publication();
    wider.estimate.bound = Bound::of(Span::from_millis(3));
    case.writer.publish(&wider);
    case.worker.look();
    case.worker.grandmaster.handle_timeout(mono_now());
    let sent = case.sent();
    let Some(PtpBody::Announce(announced)) = sent.first().map(|(message, _)| message.body) else { panic!("{sent:?}") };
    assert!(announced.quality.accuracy.as_bound() >= Some(wider.estimate.bound));
}

#[test]
fn a_sync_that_the_kernel_does_not_stamp_is_counted() {
    let mut case = Case::new();
    let now = mono_now();
    case.worker.grandmaster.handle_timeout(now);
    case.worker.drain(now);
    let counts = case.worker.counts;
    assert_eq!([counts.unstamped, counts.without_time, counts.refused_sending], [1, 0, 0]);
    case.worker.claim_due = now;
    case.worker.look();
    let report = case.worker.report.lock().unwrap();
    assert_eq!([report.counts["unstamped"], report.counts["sent"]], [1, 3], "Announce, Sync, Follow_Up");
}

//! Lines over a boot-time clock that is slewed at will, against the truth.

use super::*;
use ffclock_units::{Bound, Moment, Server};
use ffclock_wire::{LogSeconds, Mode, NtpTimestamp, Version};
use proptest::prelude::*;

const LONGEST: Span = Span::from_millis(200);
const RENEWAL_NS: i64 = 50_000_000;
/// Of the counter: 3 GHz, and off by 7 ppm.
const TICKS_PER_NS: f64 = 3.000_021;
const STATED: Span = Span::from_micros(40);

/// A host in which everything is known: nanoseconds of true time, a counter, and a boot-time clock that is slewed.
struct Host {
    true_ns: i64,
    boot_ns: f64,
    slew: f64,
}

impl Host {
    fn pass(&mut self, ns: i64) {
        self.true_ns += ns;
        self.boot_ns += ns as f64 * (1.0 + self.slew);
    }

    fn counter(&self) -> Counter {
        Counter::from_raw((self.true_ns as f64 * TICKS_PER_NS) as u64)
    }

    /// A pair whose clock was read `early` ns after the beginning of a bracket of `width` ns.
    fn pair(&mut self, width: i64, early: i64) -> BootPair {
        let before = self.counter();
        self.pass(early.min(width));
        let shown = Span::from_nanos(self.boot_ns as i128);
        self.pass(width - early.min(width));
        let width = self.counter() - before;
        BootPair { counter: before + width.halved(), width, shown }
    }
}

fn true_time(ns: f64) -> Moment<Server> {
    Moment::from_origin(Span::from_secs(1_800_000_000) + Span::from_seconds(ns * 1e-9))
}

/// A server without any error, which states one all the same.
fn reply_at(counter: Counter) -> Option<Packet> {
    let transmit = NtpTimestamp::from_server(true_time(counter.raw() as f64 / TICKS_PER_NS));
    Some(Packet {
        leap: LeapIndicator::None,
        version: Version::V4,
        mode: Mode::Server,
        stratum: 2,
        poll: LogSeconds::from_exponent(6),
        precision: LogSeconds::from_exponent(-24),
        root_delay: Span::from_micros(100),
        root_dispersion: Bound::of(STATED),
        reference_id: 0x7f00_0001,
        reference: NtpTimestamp::from_raw(1 << 40),
        origin: NtpTimestamp::MISSING,
        receive: transmit,
        transmit,
    })
}

/// As the program in the driver: time and dispersion [2^-32 s].
fn shown(line: &Line, boot_ns: u64) -> Option<(u64, u64)> {
    let age = boot_ns.wrapping_sub(line.reference_ns);
    (age < line.longest_ns).then(|| {
        let along = |rate: u64| rate.checked_mul(age).expect("no product is too large") >> RATE_BITS;
        (line.time + along(line.rate), line.dispersion + along(line.dispersion_rate) + 1)
    })
}

/// How far the line is from the truth, and what it states beyond the server's own statement [ns].
fn error_and_allowance(line: &Line, host: &Host) -> Option<(f64, f64)> {
    let (time, dispersion) = shown(line, host.boot_ns as u64)?;
    let truth = NtpTimestamp::from_server(true_time(host.true_ns as f64)).raw();
    let ns = |units: f64| units / units_of(Span::from_secs(1)) * 1e9;
    Some((ns(time.wrapping_sub(truth).cast_signed() as f64), ns(dispersion as f64 - units_of(STATED))))
}

fn two_pairs(host: &mut Host, maker: &mut LineMaker) -> Result<Line, NoLine> {
    assert_eq!(maker.make(host.pair(60, 10), reply_at), Err(NoLine::Begins));
    host.pass(RENEWAL_NS);
    maker.make(host.pair(60, 50), reply_at)
}

fn host() -> Host {
    Host { true_ns: 5_000_000_000, boot_ns: 7e12, slew: 0.0 }
}

proptest! {
    /// The rate may change by `slew` at any time, in either direction, and the brackets may be as uneven as they like.
    #[test]
    fn a_line_contains_the_truth_whatever_slewing_it_allows_for(
        slews in proptest::collection::vec(-250e-6..250e-6, 2..12),
        widths in proptest::collection::vec((20_i64..3000, 0_i64..3000), 12),
        steps in proptest::collection::vec(1_i64..12_000_000, 16),
    ) {
        let (mut host, mut maker) = (host(), LineMaker::new(LONGEST, Rate::from_ppm(500.0)));
        let mut judged = 0;
        for (slew, (width, early)) in slews.iter().zip(widths) {
            let line = maker.make(host.pair(width, early), reply_at);
            host.slew = *slew;
            for step in &steps {
                host.pass(*step);
                let Some((error, allowed)) = line.ok().and_then(|line| error_and_allowance(&line, &host)) else { continue };
                prop_assert!(error.abs() <= allowed, "{error} ns of error, {allowed} ns allowed");
                judged += 1;
            }
        }
        prop_assert!(judged > 0 || steps.iter().sum::<i64>() > 190_000_000);
    }
}

#[test]
fn a_line_of_a_steady_clock_is_right_to_nanoseconds_and_states_what_slewing_could_add() {
    let (mut host, mut maker) = (host(), LineMaker::new(LONGEST, Rate::from_ppm(500.0)));
    let line = two_pairs(&mut host, &mut maker).unwrap();
    let (error, allowed) = error_and_allowance(&line, &host).unwrap();
    assert!(error.abs() < 40.0 && allowed < 60.0, "{error} ns, {allowed} ns allowed");
    host.pass(RENEWAL_NS);
    let (error, allowed) = error_and_allowance(&line, &host).unwrap();
    assert!(error.abs() < 80.0, "{error} ns");
    assert!((25_000.0..25_300.0).contains(&allowed), "{allowed} ns: 500 ppm of 50 ms, and the pairs'");
}

#[test]
fn a_line_ends() {
    let (mut host, mut maker) = (host(), LineMaker::new(LONGEST, Rate::from_ppm(500.0)));
    let line = two_pairs(&mut host, &mut maker).unwrap();
    host.pass(199_000_000);
    assert!(shown(&line, host.boot_ns as u64).is_some());
    host.pass(1_100_000);
    assert_eq!(shown(&line, host.boot_ns as u64), None);
    assert_eq!(shown(&line, line.reference_ns - 1), None, "before its reference it is not served");
}

#[test]
fn faster_slewing_is_found_by_the_next_pair_and_served_again_when_it_is_steady() {
    let (mut host, mut maker) = (host(), LineMaker::new(LONGEST, Rate::from_ppm(500.0)));
    two_pairs(&mut host, &mut maker).unwrap();
    host.slew = 5e-3;
    host.pass(RENEWAL_NS);
    assert_eq!(maker.make(host.pair(60, 30), reply_at), Err(NoLine::Slewed));
    host.pass(RENEWAL_NS);
    let line = maker.make(host.pair(60, 30), reply_at).unwrap();
    host.pass(RENEWAL_NS);
    let (error, allowed) = error_and_allowance(&line, &host).unwrap();
    assert!(error.abs() <= allowed && error.abs() < 200.0, "{error} ns, {allowed} ns allowed");
}

#[test]
fn after_a_pause_the_rate_is_measured_again() {
    let (mut host, mut maker) = (host(), LineMaker::new(LONGEST, Rate::from_ppm(500.0)));
    two_pairs(&mut host, &mut maker).unwrap();
    // A suspend: the boot-time clock ran on, the counter may have stood still.
    host.boot_ns += 3e9;
    host.pass(RENEWAL_NS);
    assert_eq!(maker.make(host.pair(60, 30), reply_at), Err(NoLine::Begins));
    host.pass(RENEWAL_NS);
    maker.make(host.pair(60, 30), reply_at).unwrap();
}

#[test]
fn there_is_no_line_across_a_change_nor_without_a_time() {
    let (mut host, mut maker) = (host(), LineMaker::new(LONGEST, Rate::from_ppm(500.0)));
    two_pairs(&mut host, &mut maker).unwrap();
    let mut next = |reply: &dyn Fn(Counter) -> Option<Packet>| {
        host.pass(RENEWAL_NS);
        maker.make(host.pair(60, 30), reply)
    };
    let leap_at = |counter: Counter, change: Counter| {
        let leap = if counter.is_after(change) { LeapIndicator::None } else { LeapIndicator::Insert };
        reply_at(counter).map(|packet| Packet { leap, ..packet })
    };
    let first = core::cell::Cell::new(None);
    let change = |counter: Counter| {
        let begin = first.get().unwrap_or(counter);
        first.set(Some(begin));
        leap_at(counter, begin + Ticks::from_raw(1000))
    };
    assert_eq!(next(&change), Err(NoLine::Changes));
    assert_eq!(next(&|_| None), Err(NoLine::Unsynchronised));
    let with = |leap, stratum| move |counter| reply_at(counter).map(|packet| Packet { leap, stratum, ..packet });
    assert_eq!(next(&with(LeapIndicator::Unsynchronised, 2)), Err(NoLine::Unsynchronised));
    assert_eq!(next(&with(LeapIndicator::None, 16)), Err(NoLine::Unsynchronised));
    // A second that is repeated: the end would be served before the beginning.
    let begin = core::cell::Cell::new(false);
    let repeats = |counter: Counter| {
        let back = if begin.replace(true) { 1_u64 << 32 } else { 0 };
        reply_at(counter).map(|packet| {
            let transmit = NtpTimestamp::from_raw(packet.transmit.raw() - back);
            Packet { transmit, ..packet }
        })
    };
    assert_eq!(next(&repeats), Err(NoLine::Changes));
    assert!(next(&reply_at).is_ok(), "and then there is one again");
}

#[test]
fn the_words_carry_the_header_without_version_mode_and_poll() {
    let (mut host, mut maker) = (host(), LineMaker::new(LONGEST, Rate::from_ppm(500.0)));
    let words = two_pairs(&mut host, &mut maker).unwrap().words();
    let first = (words[6] as u32).to_ne_bytes();
    assert_eq!(first, [0, 2, 0, 232], "no leap, stratum 2, no poll, 2^-24 s");
    assert_eq!(((words[6] >> 32) as u32).to_ne_bytes(), 7_u32.to_be_bytes(), "100 us in 2^-16 s, rounded up");
    assert_eq!((words[7] as u32).to_ne_bytes(), [127, 0, 0, 1]);
    assert_eq!(words[5], 200_000_000);
}

#[test]
fn pairs_of_this_host_follow_each_other() {
    let (first, second) = (BootPair::read(CounterId::CPU).unwrap(), BootPair::read(CounterId::CPU).unwrap());
    assert!(second.counter.is_after(first.counter) && second.shown >= first.shown);
}

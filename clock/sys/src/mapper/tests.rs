//! The mapping of kernel stamps against a simulated host, whose system clock another program steps and slews: every
//! accepted stamp contains the truth within its width.

use super::*;
use crate::{Pair, PairReader, StampDiscarded, Watch};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

const HERTZ: f64 = 2.7e9;
const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;
/// What the brackets of two pairs and the truncation to nanoseconds may hide: 100 ns.
const READING_NS: i64 = 100;

/// What is just before and just after.
const CLOSE_NS: i64 = 3_000;

/// When a step becomes known.
#[derive(Clone, Copy, Debug)]
enum Word {
    /// At once.
    AtOnce,
    /// Never, within a test: the kernel is late.
    Late,
    /// The host has no such timer.
    Never,
}

/// A host in true time. The system clock runs `ppm` fast, from `slew_at` on `ppm_after`, and is set by `step` at the
/// time `step_at`.
#[derive(Clone, Debug)]
struct Host {
    now: i64,
    ppm: f64,
    ppm_after: f64,
    slew_at: i64,
    step_at: i64,
    step: i64,
    word: Word,
    reported: bool,
    /// Half brackets, taken in turn.
    brackets: [i64; 4],
    turn: usize,
}

impl Host {
    fn counter_at(&self, time: i64) -> Counter {
        Counter::from_raw((time as f64 * HERTZ * 1e-9) as u64).add_origin()
    }

    fn system_at(&self, time: i64) -> Moment<Utc> {
        let (before, after) = (time.min(self.slew_at), time.saturating_sub(self.slew_at).max(0));
        let gained = (before as f64 * self.ppm + after as f64 * self.ppm_after) * 1e-6;
        let step = if time >= self.step_at { self.step } else { 0 };
        let nanos = time + gained as i64 + step;
        Moment::from_origin(Span::from_secs(1_700_000_000) + Span::from_nanos(nanos.into()))
    }

    fn set(&mut self, at: i64, by: i64) {
        (self.step_at, self.step) = (at, by);
    }

    fn next_bracket(&mut self) -> i64 {
        self.turn = (self.turn + 1) % self.brackets.len();
        self.brackets[self.turn]
    }
}

trait AddOrigin {
    fn add_origin(self) -> Self;
}

impl AddOrigin for Counter {
    /// Readings begin shortly before the counter turns over.
    fn add_origin(self) -> Self {
        self + Ticks::from_raw(-5_000_000_000)
    }
}

#[derive(Clone, Debug)]
struct Shared(Rc<RefCell<Host>>);

impl PairReader for Shared {
    fn read_pair(&mut self) -> Pair {
        let mut host = self.0.borrow_mut();
        let before = host.counter_at(host.now);
        host.now += host.next_bracket();
        let system = host.system_at(host.now);
        host.now += host.next_bracket();
        let width = host.counter_at(host.now) - before;
        Pair { counter: before + width.halved(), width, system }
    }

    fn read_counter(&mut self) -> Counter {
        let mut host = self.0.borrow_mut();
        host.now += 6;
        host.counter_at(host.now)
    }

    fn watch(&mut self) -> Watch {
        let mut host = self.0.borrow_mut();
        let is_news = host.step != 0 && !host.reported && host.now >= host.step_at;
        match host.word {
            Word::Never => Watch::Blind,
            Word::Late => Watch::Quiet,
            Word::AtOnce if is_news => {
                host.reported = true;
                Watch::Set
            }
            Word::AtOnce => Watch::Quiet,
        }
    }
}

/// The course of one exchange, in ns.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// From the mapper's first pair to the request, in three parts of which each ends with a pair.
    before: i64,
    /// From the pair before the request to its stamp.
    to_sent: i64,
    /// From that stamp to its arrival in the error queue.
    to_reported: i64,
    /// From there to the stamp of the reply.
    to_reply: i64,
    /// From that stamp until it is read.
    to_read: i64,
    others: Others,
}

/// What other sockets do with the same mapper in the meantime.
#[derive(Clone, Copy, Debug)]
enum Others {
    /// They make no marks.
    Idle,
    /// They make marks: before the reply, and when half and three quarters of the time are over until it is read.
    Busy,
    /// They make a mark just before the reply.
    CloseBefore,
    /// They make a mark just after the reply.
    CloseAfter,
}

/// A stamp and the counter at the true time of the packet.
type Outcome = (Result<Stamp, StampDiscarded>, Counter);

fn play(host: Host, course: Course) -> [Outcome; 2] {
    let shared = Shared(Rc::new(RefCell::new(host)));
    let advance = |by: i64| shared.0.borrow_mut().now += by;
    let packet = || {
        let host = shared.0.borrow();
        (host.system_at(host.now), host.counter_at(host.now))
    };
    let mut mapper = Mapper::new(shared.clone(), Period::from_hertz(HERTZ).unwrap());
    for _ in 0..3 {
        advance(course.before / 3);
        mapper.mark();
    }
    let since = mapper.mark();
    advance(course.to_sent);
    let (sent_stamp, sent_truth) = packet();
    advance(course.to_reported);
    let sent = mapper.map_sent(sent_stamp, since);
    let reply = match course.others {
        Others::Idle => {
            advance(course.to_reply);
            let (stamp, truth) = packet();
            advance(course.to_read);
            (mapper.map_received(stamp, Some(since)), truth)
        }
        Others::Busy => {
            advance(course.to_reply - course.to_reply / 8);
            mapper.mark();
            advance(course.to_reply / 8);
            let (stamp, truth) = packet();
            advance(course.to_read / 2);
            mapper.mark();
            advance(course.to_read / 4);
            mapper.mark();
            advance(course.to_read / 4);
            (mapper.map_received(stamp, None), truth)
        }
        Others::CloseBefore => {
            advance(course.to_reply - CLOSE_NS);
            mapper.mark();
            advance(CLOSE_NS);
            let (stamp, truth) = packet();
            advance(course.to_read);
            (mapper.map_received(stamp, None), truth)
        }
        Others::CloseAfter => {
            advance(course.to_reply);
            let (stamp, truth) = packet();
            advance(CLOSE_NS);
            mapper.mark();
            advance(course.to_read);
            (mapper.map_received(stamp, None), truth)
        }
    };
    [(sent, sent_truth), reply]
}

fn ticks(nanos: i64) -> Ticks {
    Ticks::from_raw((nanos as f64 * HERTZ * 1e-9) as i64)
}

/// How far outside its width a stamp misses the truth.
fn miss(stamp: Stamp, truth: Counter) -> Ticks {
    (stamp.counter - truth).abs() - stamp.width.halved()
}

fn quiet_host(ppm: f64, word: Word) -> Host {
    let brackets = [20, 31, 24, 19];
    Host {
        now: SECOND,
        ppm,
        ppm_after: ppm,
        slew_at: i64::MAX,
        step_at: i64::MAX,
        step: 0,
        word,
        reported: false,
        brackets,
        turn: 0,
    }
}

const LAN: Course = Course {
    before: 9 * SECOND,
    to_sent: 3_000,
    to_reported: 9_000,
    to_reply: 10 * MS,
    to_read: 40_000,
    others: Others::Idle,
};

#[test]
fn a_clock_that_is_never_stepped_costs_no_stamp_and_little_width() {
    for ppm in [-500.0, -37.0, 0.0, 12.5, 500.0] {
        for (stamp, truth) in play(quiet_host(ppm, Word::AtOnce), LAN) {
            let stamp = stamp.unwrap();
            assert!(miss(stamp, truth) <= Ticks::ZERO, "{ppm} ppm: {stamp:?}, {truth:?}");
            assert!(stamp.width < ticks(300), "{ppm} ppm: {stamp:?}");
            assert!((stamp.counter - truth).abs() < ticks(40), "{ppm} ppm: {stamp:?}, {truth:?}");
        }
    }
}

#[test]
fn without_word_of_steps_the_width_covers_all_that_could_hide() {
    for (stamp, truth) in play(quiet_host(-37.0, Word::Never), LAN) {
        let stamp = stamp.unwrap();
        assert!(miss(stamp, truth) <= Ticks::ZERO);
        assert!(stamp.width < ticks(2 * (6_000 + 1_000)), "{stamp:?}");
    }
}

/// 10 ms of slewing at 500 ppm are made up for by a step of 5 us just before the pair is read: the two pairs around the
/// reply agree.
fn hidden_step(forward: bool, word: Word) -> Host {
    let (ppm_after, step) = if forward { (-500.0, 5_000) } else { (500.0, -5_000) };
    let sent = SECOND + LAN.before + LAN.to_sent;
    let host = Host { ppm_after, slew_at: sent, ..quiet_host(0.0, word) };
    Host { step, step_at: sent + LAN.to_reported + LAN.to_reply + 20_000, ..host }
}

#[test]
fn a_step_that_slewing_hides_is_reported_by_the_kernel() {
    for forward in [true, false] {
        let [(sent, _), (reply, _)] = play(hidden_step(forward, Word::AtOnce), LAN);
        assert!(sent.is_ok());
        assert_eq!(reply, Err(StampDiscarded::ClockStepped));
    }
}

#[test]
fn without_a_report_the_width_covers_it() {
    for forward in [true, false] {
        for (stamp, truth) in play(hidden_step(forward, Word::Never), LAN) {
            let stamp = stamp.unwrap();
            assert!(miss(stamp, truth) <= Ticks::ZERO, "{stamp:?} {truth:?}");
        }
    }
}

/// Sizes from 100 ns to an hour in both directions.
fn steps() -> impl Iterator<Item = i64> {
    let sizes = (2..=12).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_i64.pow(power)));
    sizes.chain([3600 * SECOND]).flat_map(|size| [size, -size])
}

/// Every point of the course: before, at and after each of its events, and inside the brackets of the pairs.
fn points(course: Course) -> Vec<i64> {
    let request = SECOND + 64 * 6 + course.before / 3 * 3 + 5 * 50;
    let mut at = request;
    let mut points = vec![SECOND / 2, request - SECOND, request - 10_000];
    for part in [course.to_sent, course.to_reported, course.to_reply, course.to_read] {
        points.extend((-20..20).map(|near| at + near * 25));
        points.extend((1..10).map(|tenth| at + part / 10 * tenth));
        at += part;
    }
    points.extend((-20..40).map(|near| at + near * 25));
    points
}

/// Steps of all sizes at all points of `course`; the stamps that are accepted must be right.
fn step_everywhere(course: Course) {
    for word in [Word::AtOnce, Word::Late, Word::Never] {
        for step in steps() {
            for step_at in points(course) {
                let host = Host { step, step_at, ..quiet_host(23.0, word) };
                for (stamp, truth) in play(host, course) {
                    let Ok(stamp) = stamp else { continue };
                    let missed = miss(stamp, truth);
                    assert!(missed <= ticks(READING_NS), "{word:?}, {step} ns at {step_at}: {missed} beyond {stamp:?}");
                }
            }
        }
    }
}

#[test]
fn a_step_at_any_point_and_of_any_size_spoils_no_accepted_stamp() {
    step_everywhere(LAN);
}

#[test]
fn nor_where_other_sockets_use_the_mapper_too() {
    for others in [Others::Busy, Others::CloseBefore, Others::CloseAfter] {
        step_everywhere(Course { others, to_read: 60 * MS, ..LAN });
    }
}

#[test]
fn a_step_that_another_socket_found_first_discards_the_stamp_all_the_same() {
    for step in [MS / 10, -MS / 10] {
        let shared = Shared(Rc::new(RefCell::new(quiet_host(23.0, Word::AtOnce))));
        let mut mapper = Mapper::new(shared.clone(), Period::from_hertz(HERTZ).unwrap());
        let since = mapper.mark();
        let now = shared.0.borrow().now;
        let stamp = shared.0.borrow().system_at(now + MS);
        shared.0.borrow_mut().set(now + 2 * MS, step);
        shared.0.borrow_mut().now += 3 * MS;
        mapper.mark();
        assert_eq!(mapper.map_sent(stamp, since), Err(StampDiscarded::ClockStepped));
        assert_eq!(mapper.map_received(stamp, Some(since)), Err(StampDiscarded::ClockStepped));
        assert_eq!(mapper.map_received(stamp, None), Err(StampDiscarded::ClockStepped));
        shared.0.borrow_mut().now += 10 * SECOND;
        assert_eq!(mapper.map_received(stamp, Some(since)), Err(StampDiscarded::ClockStepped), "also much later");
    }
}

#[test]
fn a_large_step_is_always_found() {
    for step in [-3600 * SECOND, -SECOND, -MS, MS, SECOND, 3600 * SECOND] {
        let step_at = SECOND + LAN.before + 5 * MS;
        let [(sent, _), (reply, _)] = play(Host { step, step_at, ..quiet_host(23.0, Word::Late) }, LAN);
        assert!(sent.is_ok());
        assert_eq!(reply, Err(StampDiscarded::ClockStepped), "{step}");
    }
}

#[test]
fn after_a_step_stamps_are_mapped_again() {
    let step_at = SECOND + LAN.before / 2;
    for (stamp, truth) in play(Host { step: -SECOND, step_at, ..quiet_host(23.0, Word::AtOnce) }, LAN) {
        assert!(miss(stamp.unwrap(), truth) <= Ticks::ZERO);
    }
}

#[test]
fn stamps_out_of_order_are_refused() {
    let shared = Shared(Rc::new(RefCell::new(quiet_host(0.0, Word::AtOnce))));
    let mut mapper = Mapper::new(shared.clone(), Period::from_hertz(HERTZ).unwrap());
    let early = shared.0.borrow().system_at(0);
    assert_eq!(mapper.map_received(early, None), Err(StampDiscarded::ClockStepped), "older than anything known");
    shared.0.borrow_mut().now += 10 * MS;
    let before_pair = shared.0.borrow().system_at(SECOND + 5 * MS);
    let since = mapper.mark();
    assert_eq!(mapper.map_sent(before_pair, since), Err(StampDiscarded::BeforeReading));
    let future = shared.0.borrow().system_at(2 * SECOND);
    assert_eq!(mapper.map_sent(future, since), Err(StampDiscarded::AfterReading));
    assert!(mapper.map_received(before_pair, None).is_ok());
    for _ in 0..20 {
        shared.0.borrow_mut().now += 10 * MS;
        mapper.mark();
    }
    assert_eq!(mapper.map_received(before_pair, None), Err(StampDiscarded::TooOld));
}

/// A packet that has waited for five seconds is mapped by the marks around it, if they were to be remembered.
#[test]
fn marks_are_remembered_as_long_as_a_packet_waits() {
    let shared = Shared(Rc::new(RefCell::new(quiet_host(50.0, Word::AtOnce))));
    let mut mapper = Mapper::new(shared.clone(), Period::from_hertz(HERTZ).unwrap());
    mapper.remember_for(Span::from_secs(6));
    mapper.mark();
    let at = shared.0.borrow().now + 5 * MS;
    let (stamped, truth) = (shared.0.borrow().system_at(at), shared.0.borrow().counter_at(at));
    let mut pass = |marks: usize| {
        for _ in 0..marks {
            shared.0.borrow_mut().now += 10 * MS;
            mapper.mark();
        }
        mapper.map_received(stamped, None)
    };
    let stamp = pass(500).unwrap();
    assert!(miss(stamp, truth) <= Ticks::ZERO && stamp.width < ticks(2 * 10_000), "{stamp:?}");
    assert_eq!(pass(1000), Err(StampDiscarded::TooOld));
}

/// Behind a simulator whose processors take no time, or by a counter that ticks more slowly than a call takes.
#[test]
fn a_counter_that_has_not_moved_costs_no_stamp() {
    let host = Host { brackets: [0; 4], ..quiet_host(0.0, Word::AtOnce) };
    let shared = Shared(Rc::new(RefCell::new(host)));
    let mut mapper = Mapper::new(shared.clone(), Period::from_hertz(HERTZ).unwrap());
    shared.0.borrow_mut().now += 10 * MS;
    let since = mapper.mark();
    let (stamped, truth) = (shared.0.borrow().system_at(SECOND + 10 * MS), since.pair.counter);
    for stamp in [mapper.map_sent(stamped, since), mapper.map_received(stamped, Some(since))] {
        let stamp = stamp.unwrap();
        assert!(miss(stamp, truth) <= Ticks::ZERO && stamp.width < ticks(20), "{stamp:?}");
    }
    let future = shared.0.borrow().system_at(SECOND + 11 * MS);
    assert_eq!(mapper.map_received(future, Some(since)), Err(StampDiscarded::AfterReading));
}

#[test]
fn a_stamp_read_late_is_wider_and_still_right() {
    let late = Course { to_read: 400 * MS, ..LAN };
    let [_, (reply, truth)] = play(quiet_host(-200.0, Word::AtOnce), late);
    let reply = reply.unwrap();
    assert!(miss(reply, truth) <= Ticks::ZERO);
    assert!(reply.width < ticks(2 * 10_000), "nearer to the request's stamp, 10 ms away: {reply:?}");
}

prop_compose! {
    fn courses()(
        before in 0..20 * SECOND,
        to_sent in 500_i64..2 * MS,
        to_reported in 500_i64..5 * MS,
        to_reply in 10_000_i64..300 * MS,
        to_read in 500_i64..100 * MS,
        others in prop_oneof![
            Just(Others::Idle), Just(Others::Busy), Just(Others::CloseBefore), Just(Others::CloseAfter)
        ],
    ) -> Course {
        Course { before, to_sent, to_reported, to_reply, to_read, others }
    }
}

prop_compose! {
    fn hosts()(
        ppm in -500.0..500.0,
        brackets in [8_i64..60, 8_i64..60, 8_i64..60, 8_i64..60],
        word in prop_oneof![Just(Word::AtOnce), Just(Word::Late), Just(Word::Never)],
    ) -> Host {
        Host { brackets, ..quiet_host(ppm, word) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn steady_clocks_lose_no_stamp(host in hosts(), course in courses()) {
        for (stamp, truth) in play(host, course) {
            let stamp = stamp.unwrap();
            prop_assert!(miss(stamp, truth) <= Ticks::ZERO, "{stamp:?} {truth:?}");
        }
    }

    #[test]
    fn no_step_spoils_an_accepted_stamp(
        host in hosts(),
        course in courses(),
        point in 0.0..1.0,
        power in 2.0..12.6,
        forward in any::<bool>(),
        ppm_after in -500.0..500.0,
        slew_point in 0.0..1.0,
    ) {
        let whole = course.to_sent + course.to_reported + course.to_reply + course.to_read;
        let step_at = SECOND + course.before - MS + ((whole + 2 * MS) as f64 * point) as i64;
        let size = 10_f64.powf(power) as i64;
        // A step that the kernel reports late and that slewing hides in between cannot be detected by any means.
        let ppm_after = if matches!(host.word, Word::Late) { host.ppm } else { ppm_after };
        let slew_at = SECOND + course.before - MS + ((whole + 2 * MS) as f64 * slew_point) as i64;
        let host = Host { step_at, step: if forward { size } else { -size }, ppm_after, slew_at, ..host };
        for (stamp, truth) in play(host, course) {
            let Ok(stamp) = stamp else { continue };
            let missed = miss(stamp, truth);
            prop_assert!(missed <= ticks(READING_NS), "{missed} beyond {stamp:?}, truth {truth:?}");
        }
    }
}

//! A hardware clock as a reference, in virtual time: the counter is that of the stand-in, and nothing else reads it.

use super::{context, kinds, period, reference};
use crate::peer::feed::Feed;
use crate::peer::reference::inputs::Input;
use crate::peer::reference::{OPEN_AGAIN, Reference};
use crate::peer::{Context, Note};
use ffclock_phc::PhcReading;
use ffclock_source::Reachability;
use ffclock_sys::ClockSource;
use ffclock_units::{Bound, Counter, Exchange, Moment, Phc, Span, Ticks};
use std::cell::Cell;
use std::io;
use std::rc::Rc;

/// What the clock shows at the counter 0, unless another program stepped it.
const BEGIN: Span = Span::from_secs(1_800_000_000);
const POLL: Span = Span::from_millis(250);

/// What another program and a pair of hands do to the clock.
#[derive(Debug, Default)]
struct Fate {
    /// The ns that it is ahead.
    ahead: Cell<i64>,
    /// How much faster than the counter it runs, in ppb, since the counter showed the second number.
    rate: Cell<(i64, u64)>,
    /// The counter's ns since the start.
    counter: Cell<u64>,
    is_removed: Cell<bool>,
}

/// A clock that is read with a jitter of a few ns, within brackets of 100 ns.
#[derive(Debug)]
struct StandIn(Rc<Fate>);

impl Fate {
    fn shown(&self, counter: u64) -> Moment<Phc> {
        let (ppb, since) = self.rate.get();
        let gained = (counter.saturating_sub(since) as i128 * i128::from(ppb)) / 1_000_000_000;
        Moment::from_origin(BEGIN + Span::from_nanos(i128::from(counter) + i128::from(self.ahead.get()) + gained))
    }

    /// Another program steers it from now on.
    fn steer(&self, ppb: i64) {
        self.rate.set((ppb, self.counter.get()));
    }
}

impl ClockSource for StandIn {
    fn read(&mut self) -> io::Result<Vec<PhcReading>> {
        let Fate { counter, is_removed, .. } = &*self.0;
        if is_removed.get() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let reading = |number: u64| {
            let at = counter.get() + number * 1_000;
            let jitter = Span::from_nanos(i128::from(at / 7 % 5) * 4 - 8);
            let width = Ticks::from_raw(100);
            PhcReading { counter: Counter::from_raw(at), width, shown: self.0.shown(at) + jitter }
        };
        Ok((0..5).map(reading).collect())
    }
}

struct Run {
    reference: Box<Reference>,
    context: Context,
    fate: Rc<Fate>,
}

impl Run {
    fn new() -> Self {
        let fate = Rc::new(Fate::default());
        let mut reference = reference("input = \"phc:/dev/ptp0\"\nerror = \"1 us\"\npoll = \"250 ms\"");
        reference.input = Input::of_clock(Box::new(StandIn(Rc::clone(&fate))), period());
        Run { reference, context: context(), fate }
    }

    /// Polls it so often.
    fn poll(&mut self, count: u32) -> (Vec<Exchange>, Vec<Note>) {
        let (mut exchanges, mut notes) = (Vec::new(), Vec::new());
        for _ in 0..count {
            self.context.now = self.context.now.max(self.reference.next()) + Span::from_millis(1);
            self.fate.counter.set(self.fate.counter.get() + POLL.as_nanos() as u64);
            self.reference.collect(&mut self.context);
            exchanges.extend(self.reference.take_exchanges());
            notes.extend(self.reference.take_notes());
        }
        (exchanges, notes)
    }

    /// How far the times of an exchange are from what the clock shows there, at most.
    fn error(&self, exchange: &Exchange) -> Span {
        let shown = |counter: Counter| self.fate.shown(counter.raw()).since_origin();
        let first = exchange.server_in.since_origin() - shown(exchange.sent.counter);
        let second = exchange.server_out.since_origin() - shown(exchange.received.counter);
        first.abs().max(second.abs())
    }
}

fn refused(run: &Run, reason: &str) -> u64 {
    run.reference.counts.refused.get(reason).copied().unwrap_or_default()
}

#[test]
fn what_it_shows_is_the_time_at_the_reading_of_the_counter() {
    let mut run = Run::new();
    let (exchanges, notes) = run.poll(20);
    assert_eq!(exchanges.len(), 10, "two readings make one: {notes:?}");
    assert_eq!(kinds(&notes), ["the reference gives time"]);
    for exchange in &exchanges {
        // A stamp is the end of its bracket, of 100 ns, and the clock jitters by 8 ns.
        assert!(run.error(exchange) <= Span::from_nanos(60), "{}", run.error(exchange));
        assert_eq!(exchange.server.root_distance, Bound::of(Span::from_micros(1)));
        assert_eq!(exchange.server.identity.stratum, 0);
    }
    assert_eq!(run.reference.standing(), Reachability::Reachable);
}

#[test]
fn one_that_shows_the_time_since_its_start_is_no_reference() {
    let mut run = Run::new();
    run.fate.ahead.set(-(BEGIN.as_nanos() as i64));
    let (exchanges, notes) = run.poll(40);
    assert!(exchanges.is_empty());
    assert_eq!(refused(&run, "not-on-time"), 40);
    let silent = notes.iter().find(|note| note.kind == "the reference is silent").unwrap();
    assert!(silent.detail.starts_with("refused so far: not-on-time"), "{}", silent.detail);
    assert_eq!(run.reference.standing(), Reachability::Unreachable);
}

#[test]
fn a_step_is_an_event_and_no_exchange_lies_across_it() {
    let mut run = Run::new();
    run.poll(9);
    let mut exchanges = Vec::new();
    for step in [5_000, -2_000_000, 1_000_000_000] {
        run.fate.ahead.set(run.fate.ahead.get() + step);
        let (found, notes) = run.poll(9);
        let stepped = notes.iter().filter(|note| note.kind == "the hardware clock was stepped by another program");
        assert_eq!(stepped.count(), 1, "{step}: {notes:?}");
        assert!(found.iter().all(|exchange| run.error(exchange) <= Span::from_nanos(60)), "{step}");
        exchanges.extend(found);
    }
    assert_eq!(refused(&run, "clock-stepped"), 3);
    assert_eq!(exchanges.len(), 12, "one reading of nine is lost");
}

#[test]
fn one_that_is_steered_is_followed_and_a_strong_change_is_told() {
    let mut run = Run::new();
    run.poll(400);
    run.fate.steer(200);
    let (exchanges, notes) = run.poll(400);
    assert!(kinds(&notes).contains(&"the hardware clock was steered by another program"), "{notes:?}");
    assert_eq!(exchanges.len(), 200, "nothing is lost by it");
    assert!(exchanges.iter().all(|exchange| run.error(exchange) <= Span::from_nanos(60)));
}

#[test]
fn one_that_is_removed_is_tried_again() {
    let mut run = Run::new();
    run.poll(4);
    run.fate.is_removed.set(true);
    let (exchanges, notes) = run.poll(1);
    assert!(exchanges.is_empty());
    assert_eq!(kinds(&notes), ["the reference cannot be read any more"]);
    assert!(!run.reference.is_open());
    assert_eq!(run.reference.next(), run.context.now + OPEN_AGAIN);
}

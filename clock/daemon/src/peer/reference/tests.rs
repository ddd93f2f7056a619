//! References with stand-ins: pulses that begin the seconds of the system clock, which stand for true time here.

mod hardware_clock;

use super::*;
use crate::calibrator::Calibrator;
use crate::config::{Config, DaemonConfig};
use crate::journal::Journal;
use ffclock_counter::CounterId;
use ffclock_sys::{PulseSource, SeenPulse, Stamper};
use ffclock_units::{Bound, Estimate, GrowthRate, StandardUncertainty, Status, Ticks, Utc};
use std::cell::Cell;
use std::os::unix::net::UnixDatagram;
use std::rc::Rc;
use std::time::Duration;

fn period() -> Period {
    Period::from_hertz(1e9).unwrap()
}

fn context() -> Context {
    context_with(CounterId::MonotonicRaw, period())
}

pub(super) fn context_with(counter: CounterId, period: Period) -> Context {
    let now = ffclock_sys::mono_now();
    Context {
        published: None,
        numbers: None,
        rate: None,
        slowdowns: Default::default(),
        stamper: Stamper::new(counter, period),
        calibrator: Calibrator::new(&DaemonConfig::default(), period),
        journal: Journal::new(now),
        ensemble: None,
        is_upset: false,
        now,
    }
}

pub(super) fn reference(text: &str) -> Box<Reference> {
    let more = "[[server]]\naddress = \"192.0.2.1\"\n";
    let config = Config::parse(&format!("{more}[[reference]]\n{text}\n")).unwrap();
    Reference::of(&config.servers[1], (period(), LeapTable::built_in()), ffclock_sys::mono_now()).unwrap()
}

/// The system clock as a published clock, with this bound.
fn published(stamper: &mut Stamper, bound: Span) -> Estimate {
    let shown = ffclock_sys::system_utc_now();
    let stamp = stamper.place(shown).unwrap();
    let (uncertainty, growth) = (StandardUncertainty::ZERO, GrowthRate::default());
    Estimate {
        counter: stamp.counter,
        time: LeapTable::built_in().tai_from_utc(shown),
        period: period(),
        uncertainty,
        noise: uncertainty,
        uncertainty_growth: growth,
        bound: Bound::of(bound),
        bound_growth: growth,
        difference_period: period(),
        difference_bound: growth,
        difference_uncertainty: growth,
        status: Status::Synchronised,
    }
}

/// Runs a reference for some time as the event loop does.
pub(super) fn run(reference: &mut Reference, context: &mut Context, time: Span) -> Vec<Exchange> {
    let end = ffclock_sys::mono_now() + time;
    let mut exchanges = Vec::new();
    while context.now < end {
        context.now = ffclock_sys::mono_now();
        reference.collect(context);
        exchanges.extend(reference.take_exchanges());
        std::thread::sleep(Duration::from_millis(2));
    }
    exchanges
}

/// Pulses at the seconds of the system clock and, where `extra` says so, 300 ms after them.
#[derive(Debug)]
struct StandIn {
    extra: Rc<Cell<bool>>,
    is_stopped: Rc<Cell<bool>>,
}

impl PulseSource for StandIn {
    fn latest(&mut self) -> std::io::Result<SeenPulse> {
        let now = ffclock_sys::system_utc_now();
        let second = now.whole_seconds();
        let begun: Moment<Utc> = Moment::from_origin(Span::from_secs(second));
        let doubled = Span::from_millis(300);
        let stopped = if self.is_stopped.get() { Span::from_secs(30) } else { Span::ZERO };
        let (shown, sequence) = if self.extra.get() && now - begun > doubled {
            (begun + doubled, 2 * second + 1)
        } else {
            (begun, 2 * second)
        };
        // Without extra pulses the kernel counts each once.
        let sequence = if self.extra.get() { sequence } else { second };
        Ok(SeenPulse { sequence: (sequence & 0xffff_ffff) as u32, shown: shown - stopped })
    }
}

pub(super) fn kinds(notes: &[Note]) -> Vec<&'static str> {
    notes.iter().map(|note| note.kind).collect()
}

#[test]
fn pulses_get_their_seconds_from_the_published_clock_and_extra_ones_are_noticed() {
    let (extra, is_stopped) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
    let mut reference = reference("input = \"pps:/dev/pps0\"\nerror = \"2 ms\"");
    let source = StandIn { extra: extra.clone(), is_stopped: is_stopped.clone() };
    reference.input = Input::of_pulses(Box::new(source), period());
    let mut context = context();
    context.stamper.remember_for(Span::from_secs(5));
    assert_eq!(run(&mut reference, &mut context, Span::from_millis(1500)).len(), 0, "nothing says which second");
    assert!(reference.counts.refused.get("unnumbered").is_some_and(|count| *count > 0));

    context.published = Some(published(&mut context.stamper, Span::from_millis(100)));
    let exchanges = run(&mut reference, &mut context, Span::from_millis(4500));
    assert!(!exchanges.is_empty() && exchanges.len() <= 3, "two pulses make one: {exchanges:?}");
    let clock = context.published.unwrap();
    for exchange in &exchanges {
        assert_eq!(exchange.server_out.since_origin().units().rem_euclid(Span::from_secs(1).units()), 0);
        let away = clock.at(exchange.received.counter).time - exchange.server_out;
        assert!(away.abs() < Span::from_millis(2), "{away}");
        assert_eq!(
            (exchange.server.identity.stratum, exchange.server.root_distance),
            (0, Bound::of(Span::from_millis(2)))
        );
        assert!(exchange.received.counter - exchange.sent.counter > Ticks::from_raw(900_000_000));
    }
    assert!(kinds(&reference.take_notes()).contains(&"the reference gives time"));
    assert_eq!(reference.standing(), Reachability::Reachable);

    context.published = Some(published(&mut context.stamper, Span::from_millis(600)));
    assert_eq!(run(&mut reference, &mut context, Span::from_millis(1200)).len(), 0, "two seconds are possible");
    extra.set(true);
    run(&mut reference, &mut context, Span::from_millis(2200));
    let notes = reference.take_notes();
    let of_train = ["there are more pulses than seconds", "the device counts its pulses from the beginning again"];
    assert!(kinds(&notes).iter().any(|kind| of_train.contains(kind)), "{notes:?}");
}

#[test]
fn pulses_that_stop_are_silence() {
    let mut reference = reference("input = \"pps:/dev/pps0\"\nerror = \"2 ms\"");
    let is_stopped = Rc::new(Cell::new(true));
    let source = StandIn { extra: Rc::default(), is_stopped };
    reference.input = Input::of_pulses(Box::new(source), period());
    let mut context = context();
    context.now = ffclock_sys::mono_now();
    reference.alive = context.now - SILENT_AFTER - Span::from_secs(1);
    reference.collect(&mut context);
    let notes = reference.take_notes();
    assert!(kinds(&notes).contains(&"no pulses come that can be used"), "{notes:?}");
    assert_eq!(reference.standing(), Reachability::Unreachable);
    assert!(reference.next() > context.now, "it is looked at again");
}

fn socket_reference(name: &str) -> (Box<Reference>, std::path::PathBuf) {
    let path = std::env::temp_dir().join(format!("ffclock-{name}-{}.sock", std::process::id()));
    (reference(&format!("input = \"sock:{}\"\nerror = \"1 ms\"", path.display())), path)
}

fn datagram(offset: f64, is_pulse: i32) -> Vec<u8> {
    let now = ffclock_sys::system_utc_now().since_origin().as_nanos();
    let mut bytes = ((now / 1_000_000_000) as i64).to_ne_bytes().to_vec();
    bytes.extend((((now % 1_000_000_000) / 1000) as i64).to_ne_bytes());
    bytes.extend(offset.to_ne_bytes());
    for word in [is_pulse, 0, 0, 0x534f_434b] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

#[test]
fn samples_of_a_socket_are_used_and_floods_and_others_are_not() {
    use std::os::unix::fs::PermissionsExt;
    let (mut reference, path) = socket_reference("samples");
    let mut context = context();
    run(&mut reference, &mut context, Span::from_millis(20));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let sender = UnixDatagram::unbound().unwrap();
    let mut exchanges = Vec::new();
    for _ in 0..2 {
        sender.send_to(&datagram(0.25, 0), &path).unwrap();
        exchanges.extend(run(&mut reference, &mut context, Span::from_millis(100)));
    }
    let [exchange] = &exchanges[..] else { panic!("{exchanges:?} {:?}", reference.take_notes()) };
    let clock = published(&mut context.stamper, Span::from_millis(1));
    let ahead = exchange.server_out - clock.at(exchange.received.counter).time;
    assert!((ahead - Span::from_millis(250)).abs() < Span::from_millis(1), "{ahead}");

    // The kernel keeps ten datagrams for a socket, and then lets the sender wait.
    for _ in 0..12 {
        for _ in 0..5 {
            sender.send_to(&datagram(0.25, 0), &path).unwrap();
        }
        reference.collect(&mut context);
    }
    sender.send_to(b"no sample", &path).unwrap();
    sender.send_to(&[0; 40], &path).unwrap();
    run(&mut reference, &mut context, Span::from_millis(100));
    let refused = &reference.counts.refused;
    assert!(refused["flood"] >= 55 && refused["length"] == 1 && refused["magic"] == 1, "{refused:?}");
    assert!(kinds(&reference.take_notes()).contains(&"samples come in a flood: the rest is refused"));

    std::fs::remove_file(&path).unwrap();
    run(&mut reference, &mut context, Span::from_millis(1200));
    assert!(!reference.is_open(), "it is made again later");
    drop(reference);
    assert!(!path.exists());
}

#[test]
fn a_pulse_by_a_socket_counts_below_the_second_alone() {
    let (mut reference, path) = socket_reference("pulses");
    let mut context = context();
    context.published = Some(published(&mut context.stamper, Span::from_millis(100)));
    run(&mut reference, &mut context, Span::from_millis(20));
    let sender = UnixDatagram::unbound().unwrap();
    let mut exchanges = Vec::new();
    for seconds in [5.0, -3.0] {
        sender.send_to(&datagram(seconds + 0.01, 1), &path).unwrap();
        exchanges.extend(run(&mut reference, &mut context, Span::from_millis(100)));
    }
    let [exchange] = &exchanges[..] else { panic!("{exchanges:?} {:?}", reference.take_notes()) };
    let ahead = exchange.server_out - context.published.unwrap().at(exchange.received.counter).time;
    assert!((ahead - Span::from_millis(10)).abs() < Span::from_millis(1), "{ahead}");
}

#[test]
fn what_is_not_there_is_tried_again() {
    let mut reference = reference("input = \"phc:/dev/ptp4000000\"\nerror = \"1 us\"");
    let mut context = context();
    context.now = ffclock_sys::mono_now();
    reference.collect(&mut context);
    assert_eq!(kinds(&reference.take_notes()), ["the reference cannot be opened"]);
    assert_eq!(reference.next(), context.now + OPEN_AGAIN);
    assert!(!reference.is_open() && reference.take_exchanges().is_empty());
}

//! The line against simulated cards, of which the truth is known.

use ffclock_phc::{PhcChange, PhcLine, PhcReading, Unplaced};
use ffclock_units::{Counter, Moment, Period, Phc, Rate, Span, Ticks};

/// The counter counts tenths of nanoseconds, truly.
const PER_NS: f64 = 10.0;

/// A generator of random numbers (splitmix64).
struct Chance(u64);

impl Chance {
    fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Normal, of standard deviation 1, but for its tails.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.even()).sum::<f64>() - 6.0
    }
}

/// A card whose clock counts in steps of 8 ns, with noise of 10 ns.
struct Card {
    chance: Chance,
    rate: f64,
    /// How far the clock has gone [ns], at `at` [ns].
    shown: f64,
    at: f64,
    /// How the reading lies in its bracket, from 0 to 1.
    side: f64,
}

impl Card {
    fn new(seed: u64) -> Self {
        Card { chance: Chance(seed), rate: 20e-6, shown: 1e12, at: 0.0, side: 0.5 }
    }

    /// Goes on to `at` [ns]; the rate walks as that of quartz does.
    fn go(&mut self, at: f64) {
        let passed = at - self.at;
        self.shown += passed * (1.0 + self.rate);
        self.rate += 1e-10 * (passed / 1e9).sqrt() * self.chance.normal();
        self.at = at;
    }

    fn stamp(&mut self) -> Moment<Phc> {
        let noisy = self.shown + 10.0 * self.chance.normal();
        Moment::from_origin(Span::from_nanos(((noisy / 8.0).floor() * 8.0) as i128))
    }

    /// A reading whose bracket begins now.
    fn read(&mut self) -> PhcReading {
        let width = 200.0 + 100.0 * self.chance.even();
        let begin = self.at;
        self.go(begin + width * self.side);
        let shown = self.stamp();
        self.go(begin + width);
        let counter = Counter::from_raw(((begin + width / 2.0) * PER_NS) as u64);
        PhcReading { counter, width: Ticks::from_raw((width * PER_NS) as i64), shown }
    }
}

/// The errors [ns] of stamps placed, and what was noticed.
#[derive(Default)]
struct Record {
    errors: Vec<f64>,
    outside: usize,
    refused: usize,
    changes: Vec<PhcChange>,
}

impl Record {
    fn range(&self) -> f64 {
        let mut sorted = self.errors.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() * 3 / 4] - sorted[sorted.len() / 4]
    }
}

fn line() -> PhcLine {
    PhcLine::new(Period::from_hertz(PER_NS * 1e9).expect("a frequency"))
}

/// Before a packet and after it the clock is read five times each, as the daemon does it; a packet passes in between.
fn exchange(card: &mut Card, line: &mut PhcLine, record: &mut Record) {
    let read = |card: &mut Card, line: &mut PhcLine, record: &mut Record| {
        for _ in 0..5 {
            record.changes.extend(line.add(&card.read()));
        }
    };
    read(card, line, record);
    card.go(card.at + 20_000.0);
    let (truth, shown) = (card.at * PER_NS, card.stamp());
    card.go(card.at + 30_000.0);
    read(card, line, record);
    match line.place(shown) {
        Ok((counter, width)) => {
            let error = (counter.raw() as f64 - truth) / PER_NS;
            record.errors.push(error);
            record.outside += usize::from(error.abs() > width.as_f64() / PER_NS / 2.0);
        }
        Err(_) => record.refused += 1,
    }
}

/// An hour, a packet every `poll_s` seconds.
fn hour(card: &mut Card, poll_s: f64) -> (PhcLine, Record) {
    let (mut line, mut record) = (line(), Record::default());
    for _ in 0..(3600.0 / poll_s) as usize {
        exchange(card, &mut line, &mut record);
        card.go(card.at + poll_s * 1e9);
    }
    (line, record)
}

/// The interquartile range of stamps of 10 ns noise in steps of 8 ns: what no line can improve on.
fn own_range() -> f64 {
    let mut chance = Chance(99);
    let errors = (0..4000).map(|n| {
        let truth = 1e6 + 13.7 * f64::from(n);
        ((truth + 10.0 * chance.normal()) / 8.0).floor() * 8.0 - truth
    });
    Record { errors: errors.collect(), ..Record::default() }.range()
}

#[test]
fn a_placed_stamp_is_hardly_worse_than_the_stamp_itself_and_its_width_holds() {
    for (seed, poll_s) in [(1, 0.5), (2, 1.0), (3, 16.0), (4, 64.0)] {
        let (_, record) = hour(&mut Card::new(seed), poll_s);
        assert_eq!((record.refused, &record.changes), (0, &Vec::new()), "poll {poll_s}");
        let range = record.range();
        assert!(range <= 1.25 * own_range(), "poll {poll_s}: {range} ns of {} ns", own_range());
        let share = record.outside as f64 / record.errors.len() as f64;
        assert!(share < 0.003, "poll {poll_s}: {share} outside of their widths");
    }
}

#[test]
fn readings_on_one_side_of_their_brackets_move_stamps_within_their_widths() {
    for side in [0.05, 0.95] {
        let mut card = Card { side, ..Card::new(5) };
        let (_, record) = hour(&mut card, 1.0);
        assert!(record.outside * 300 < record.errors.len(), "{} of {}", record.outside, record.errors.len());
    }
}

#[test]
fn the_rate_and_the_noise_become_known() {
    let mut card = Card::new(6);
    let (line, _) = hour(&mut card, 1.0);
    let (rate, deviation) = line.rate().unwrap();
    let error = (rate.as_fraction() - card.rate).abs();
    assert!(error < 4.0 * deviation.as_fraction() && error < 5e-9, "{error:e} of {deviation:?}");
    let noise = line.noise().unwrap().as_seconds() * 1e9;
    assert!((5.0..20.0).contains(&noise), "{noise} ns");
}

#[test]
fn a_step_is_noticed_at_the_next_reading_and_what_was_stamped_before_it_is_refused() {
    for step_ns in [500.0, -500.0, 1e6, -1e6, 1e9, -1e9, 37e9] {
        let mut card = Card::new(7);
        let (mut line, mut record) = hour(&mut card, 1.0);
        let (before, stamped_at) = (card.stamp(), Counter::from_raw((card.at * PER_NS) as u64));
        assert!(line.is_unbroken_since(Counter::from_raw(0) + Ticks::from_raw((card.at * PER_NS) as i64)));
        card.shown += step_ns;
        card.go(card.at + 10_000.0);
        exchange(&mut card, &mut line, &mut record);
        let [PhcChange::Stepped(by)] = record.changes[..] else { panic!("{step_ns}: {:?}", record.changes) };
        assert!((by.as_seconds() * 1e9 - step_ns).abs() < 250.0, "{step_ns}: {by:?}");
        assert!(!line.is_unbroken_since(stamped_at), "{step_ns}");
        // By the new line the old stamp lies before the step, or in the future: never between the step and now.
        match line.place(before) {
            Err(refused) => assert_eq!(refused, Unplaced::ClockStepped),
            Ok((counter, width)) => {
                let now = Counter::from_raw((card.at * PER_NS) as u64);
                assert!(step_ns < 0.0 && (counter + width).is_after(now), "{step_ns}: {counter:?} before {now:?}");
            }
        }
        let errors = record.errors.len();
        exchange(&mut card, &mut line, &mut record);
        assert_eq!((record.errors.len(), record.refused), (errors + 1, 0), "it goes on");
        assert!(record.errors[errors].abs() < 200.0, "{}", record.errors[errors]);
    }
}

#[test]
fn steering_is_noticed_and_stamps_stay_within_their_widths() {
    for steered in [1e-6, -1e-6, 50e-6, -200e-9] {
        let mut card = Card::new(8);
        let (mut line, mut record) = hour(&mut card, 1.0);
        (record.errors, record.outside) = (Vec::new(), 0);
        card.rate += steered;
        for _ in 0..120 {
            exchange(&mut card, &mut line, &mut record);
            card.go(card.at + 1e9);
        }
        let found = record.changes.iter().find_map(|change| match change {
            PhcChange::Steered(rate) => Some(rate.as_fraction()),
            PhcChange::Stepped(_) => None,
        });
        let found = found.unwrap_or_else(|| panic!("{steered:e}: {:?}", record.changes));
        assert!((found - steered).abs() < 0.2 * steered.abs(), "{found:e} of {steered:e}");
        assert!(record.outside <= 2, "{steered:e}: {} of 120 outside", record.outside);
    }
}

#[test]
fn a_clock_that_is_steered_every_second_still_places_stamps() {
    let mut card = Card::new(9);
    let (mut line, mut record) = (line(), Record::default());
    for _ in 0..600 {
        exchange(&mut card, &mut line, &mut record);
        card.rate += 300e-9 * card.chance.normal();
        card.go(card.at + 1e9);
    }
    assert!(record.outside <= 6, "{} of 600 outside", record.outside);
    assert!(record.range() < 3.0 * own_range(), "{} ns", record.range());
}

#[test]
fn nothing_is_placed_without_a_reading_or_far_from_all() {
    let mut line = line();
    assert_eq!(line.place(Moment::from_origin(Span::ZERO)), Err(Unplaced::NoReading));
    assert_eq!((line.rate(), line.noise()), (None, None));
    let mut card = Card::new(10);
    line.add(&card.read());
    assert_eq!(line.place(Moment::from_origin(Span::ZERO)), Err(Unplaced::ClockStepped), "before the first reading");
    assert_eq!(line.place(Moment::from_origin(Span::from_secs(10_000))), Err(Unplaced::Far));
    assert_eq!(line.rate().map(|(rate, _)| rate), Some(Rate::ZERO));
}

#[test]
fn garbage_does_no_harm() {
    let mut chance = Chance(11);
    let mut line = line();
    for _ in 0..20_000 {
        let raw = |chance: &mut Chance| (chance.even() * 1.9e19) as u64;
        let shown = Moment::from_origin(Span::from_units(i128::from(raw(&mut chance) as i64) << 60));
        let width = Ticks::from_raw(raw(&mut chance) as i64);
        line.add(&PhcReading { counter: Counter::from_raw(raw(&mut chance)), width, shown });
        if let Ok((_, width)) = line.place(shown) {
            assert!(width > Ticks::ZERO);
        }
    }
}

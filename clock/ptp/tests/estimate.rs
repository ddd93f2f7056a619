//! What an estimator makes of exchanges that are paired from observations, where the master seems to hold each request
//! for up to a Sync interval. Figures are printed with `--nocapture`; the limits asserted here are some tens of per
//! cent above what was measured.

use ffclock_estimator::{Classic, ClassicConfig, Estimator, Learned, LearnedConfig};
use ffclock_ptp::{ExchangePairing, PtpObservation};
use ffclock_units::{
    Bound, Counter, Direction, Exchange, Moment, Period, ServerQuality, Span, Stamp, StampLocation, Tai, Ticks,
};

/// The frequency by which the counter is known; it is 50 ppm faster.
const HERTZ: f64 = 1e9;
const SKEW: f64 = 50e-6;
/// The shortest way, and the mean of the queueing on it [s].
const FLOOR: f64 = 50e-6;
const QUEUEING: f64 = 5e-6;
const HOURS: f64 = 3600.0;

/// A xorshift generator: the same numbers on every machine.
struct Random(u64);

impl Random {
    /// In (0, 1).
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// One way of a message [s]. The sum of twelve numbers, squared, has the tail of queues.
    fn way(&mut self) -> f64 {
        let normal = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        FLOOR + QUEUEING * normal * normal
    }
}

/// The counter at `time` seconds; its rate moves by 0.05 ppm, up and down within 2000 s.
fn stamp(time: f64) -> Stamp {
    let phase = (time / 1000.0).rem_euclid(2.0);
    let hump = |part: f64| part * part - part;
    let moved = 0.05e-6 * 1000.0 * if phase < 1.0 { hump(phase) } else { -hump(phase - 1.0) };
    let ticks = HERTZ * (time + SKEW * time + moved);
    let counter = Counter::from_raw(1_000_000 + ticks as u64);
    Stamp { counter, width: Ticks::from_raw(200), location: StampLocation::Kernel }
}

fn truth(time: f64) -> Moment<Tai> {
    Moment::from_origin(Span::from_secs(1_795_219_237) + Span::from_seconds(time))
}

fn period() -> Period {
    Period::from_hertz(HERTZ).expect("a period")
}

/// When each request is sent, by the time of the Sync before it and a number in (0, 1).
type RequestTime = fn(f64, f64) -> f64;

/// The exchanges of two hours: a Sync in each `interval` seconds, a request before each.
fn paired(interval: f64, when: RequestTime) -> Vec<Exchange> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut pairing = ExchangePairing::new(period(), Bound::of(Span::from_secs(1)));
    let server = ServerQuality { root_distance: Bound::of(Span::from_nanos(100)), ..ServerQuality::default() };
    let mut exchanges = Vec::new();
    let mut sync = 1.0;
    while sync < 2.0 * HOURS {
        let asked = when(sync, random.uniform());
        sync += interval + 0.002 * (random.uniform() - 0.5);
        let arrived = truth(asked + random.way());
        let request = PtpObservation { direction: Direction::Outgoing, ours: stamp(asked), theirs: arrived };
        let received = stamp(sync + random.way());
        let came = PtpObservation { direction: Direction::Incoming, ours: received, theirs: truth(sync) };
        for seen in [request, came] {
            exchanges.extend(pairing.observe(seen, server).expect("possible"));
        }
    }
    exchanges
}

/// The interquartile range of the error in the second hour [s]. Each estimate's bound holds the truth.
fn interquartile_range(name: &str, mut estimator: impl Estimator, exchanges: &[Exchange]) -> f64 {
    let mut errors = Vec::new();
    let mut bounds = Vec::new();
    let mut refused = 0;
    for exchange in exchanges {
        let outcome = estimator.update(exchange);
        refused += usize::from(outcome.round_trip().is_none());
        let Some(estimate) = estimator.estimate() else { continue };
        // The counter's own reading says the true time: the world is the inverse of `stamp`.
        let time = true_time(exchange.received.counter);
        let reading = estimate.at(exchange.received.counter);
        let error = (reading.time - truth(time)).as_seconds();
        assert!(error.abs() <= reading.bound.as_seconds(), "{name} at {time}: {error:e} beyond {:?}", reading.bound);
        if time > HOURS {
            errors.push(error);
            bounds.push(reading.bound.as_seconds());
        }
    }
    errors.sort_by(f64::total_cmp);
    bounds.sort_by(f64::total_cmp);
    let at = |share: f64| errors[(share * errors.len() as f64) as usize];
    let (range, bound) = (at(0.75) - at(0.25), bounds[bounds.len() / 2]);
    println!(
        "{name}: {} exchanges, {refused} refused, IQR {:.0} ns, median {:.0} ns, median bound {:.1} us",
        exchanges.len(),
        range * 1e9,
        at(0.5) * 1e9,
        bound * 1e6
    );
    assert_eq!(refused, 0, "{name}");
    range
}

/// By bisection, to a picosecond.
fn true_time(counter: Counter) -> f64 {
    let (mut low, mut high) = (0.0, 3.0 * HOURS);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if counter.is_after(stamp(middle).counter) { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

fn learned() -> Learned {
    Learned::new(LearnedConfig::default(), ClassicConfig::default(), period(), None)
}

/// Asked at any time before the next Sync, and 1 ms before it.
fn both_ways_of_asking<E: Estimator>(name: &str, estimator: impl Fn() -> E) -> [f64; 2] {
    let at_random = paired(1.0, |sync, part| sync + 0.9 * part);
    let soon = paired(1.0, |sync, _| sync + 0.998);
    [(at_random, "at random"), (soon, "1 ms before")]
        .map(|(exchanges, when)| interquartile_range(&format!("{name}, asked {when}"), estimator(), &exchanges))
}

/// The learned estimator takes each direction as evidence of its own moment, so that a long hold costs it nothing.
#[test]
fn the_learned_estimator_takes_long_holds() {
    let [at_random, soon] = both_ways_of_asking("learned", learned);
    assert!(at_random < 65e-9 && at_random < 1.2 * soon, "{at_random:e} {soon:e}");
}

/// With slow Syncs, requests are held for up to 15 s: no estimator refuses them.
#[test]
fn the_longest_hold_is_refused_by_no_estimator() {
    let exchanges = paired(16.0, |sync, part| sync + 1.01 + 14.9 * part);
    assert_eq!(exchanges.len(), 450, "one for each Sync");
    let classic = Classic::new(ClassicConfig::default(), period(), None);
    let [of_learned, of_classic] = [
        interquartile_range("learned, a Sync each 16 s", learned(), &exchanges),
        interquartile_range("classic, a Sync each 16 s", classic, &exchanges),
    ];
    assert!(of_learned < 0.5e-6 && of_classic < 12e-6, "{of_learned:e} {of_classic:e}");
}

/// The classic one works with round trips, from which a hold is taken off by the master's clock while the round trip
/// is counted in nominal ticks: 50 ppm of up to a second is in it.
#[test]
fn the_classic_estimator_loses_by_long_holds() {
    let classic = || Classic::new(ClassicConfig::default(), period(), None);
    let [at_random, soon] = both_ways_of_asking("classic", classic);
    assert!(soon < 0.65e-6 && at_random < 1.4e-6, "{at_random:e} {soon:e}");
}

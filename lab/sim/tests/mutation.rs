//! That no constant of the estimators which a user can set is without effect: with any one of them moved, the figures
//! of some world are others. (`tools/mutation` does the same to the constants in the source.)

use ffclock_estimator::{Classic, ClassicConfig, Estimator, Learned, LearnedConfig};
use ffclock_sim::{FeedForward, Read, Run, Scenario, Timekeeper};
use ffclock_trace::TraceRow;
use ffclock_units::{Bound, Exchange, Rate, Span};

/// Something happens in each of these that some constant is about.
const WORLDS: [&str; 6] = [
    "duration = \"12 h\"\n[oscillator]\nwave = [{ peak = \"0.1 ppm\", period = \"1000 s\" }]\n",
    "duration = \"8 h\"\n[path]\nroute = [{ at = \"3 h\", until = \"5 h\", forward = \"900 us\", backward = \"0 us\" }]\n",
    "duration = \"8 h\"\n[path]\nroute = [{ at = \"3 h\", forward = \"450 us\", backward = \"450 us\" }]\n",
    "duration = \"8 h\"\n[server]\nfault = [{ wrong = { at = \"3 h\", by = \"20 ms\" } }]\n",
    "duration = \"12 h\"\n[path]\nqueue = [{ law = \"gamma\", shape = 4.0, mean = \"80 us\", direction = \"forward\" }, { mean = \"20 us\" }]\n\
     outage = [{ at = \"6 h\", until = \"9 h\" }]\n",
    "duration = \"3 h\"\n[oscillator]\nskew = \"80 ppm\"\n[path]\nloss = 0.2\n",
];

fn exchanges(world: &str) -> Vec<Exchange> {
    let text = format!("extends = \"lan-16\"\nabout = \"x\"\nfrom = \"0 s\"\n{world}");
    let scenario = Scenario::parse("mutation", &text).expect("a scenario that reads");
    let run = Run { name: "mutation", scenario: &scenario, seed: 1 };
    let mut exchanges = Vec::new();
    run.execute_with(&[], Some(&mut |row: &TraceRow| exchanges.extend(row.exchange)));
    exchanges
}

/// What a clock shows after each exchange.
fn life(estimator: Box<dyn Estimator>, exchanges: &[Exchange]) -> Vec<Option<Read>> {
    let mut clock = FeedForward::new(estimator);
    let mut after = |exchange: &Exchange| {
        clock.exchange(exchange);
        clock.read(exchange.received.counter)
    };
    exchanges.iter().map(&mut after).collect()
}

type Mutation<C> = (&'static str, fn(&mut C));

fn longer(span: Span) -> Span {
    Span::from_seconds(1.1 * span.as_seconds())
}

fn wider(bound: Bound) -> Bound {
    Bound::of(longer(bound.as_span()))
}

fn faster(rate: Rate) -> Rate {
    Rate::from_fraction(1.1 * rate.as_fraction())
}

const CLASSIC: [Mutation<ClassicConfig>; 13] = [
    ("timestamp_limit", |config| config.timestamp_limit = wider(config.timestamp_limit)),
    ("rate_error_bound", |config| config.rate_error_bound = faster(config.rate_error_bound)),
    ("best_rate_accuracy", |config| config.best_rate_accuracy = faster(config.best_rate_accuracy)),
    ("local_rate_quality", |config| config.local_rate_quality = Rate::from_ppm(0.05)),
    ("follow_noise", |config| config.follow_noise = false),
    ("offset_window", |config| config.offset_window = longer(config.offset_window)),
    ("floor_window", |config| config.floor_window = Span::from_secs(2 * 3600)),
    ("shift_window", |config| config.shift_window = longer(config.shift_window)),
    ("asymmetry", |config| config.asymmetry = Span::from_micros(1)),
    ("wander", |config| config.wander = faster(config.wander)),
    ("nominal_error", |config| config.nominal_error = faster(config.nominal_error)),
    ("step_patience", |config| config.step_patience = longer(config.step_patience)),
    ("asymmetry_error", |config| config.asymmetry_error = Bound::of(Span::from_micros(20))),
];

const LEARNED: [Mutation<LearnedConfig>; 7] = [
    ("cycles", |config| config.cycles = false),
    ("several_walks", |config| config.several_walks = false),
    ("edges", |config| config.edges = false),
    ("humps", |config| config.humps = false),
    ("directions", |config| config.directions = false),
    ("floor_changes", |config| config.floor_changes = false),
    ("reinitialisation", |config| config.reinitialisation = false),
];

/// The names of the mutations that change nothing in any world.
fn survivors<C: Default + Clone>(
    mutations: &[Mutation<C>],
    make: impl Fn(C) -> Box<dyn Estimator>,
) -> Vec<&'static str> {
    let worlds: Vec<_> = WORLDS.iter().map(|world| exchanges(world)).collect();
    let golden: Vec<_> = worlds.iter().map(|world| life(make(C::default()), world)).collect();
    let survives = |mutate: fn(&mut C)| {
        let mut config = C::default();
        mutate(&mut config);
        worlds.iter().zip(&golden).all(|(world, golden)| life(make(config.clone()), world) == *golden)
    };
    mutations.iter().filter(|(_, mutate)| survives(*mutate)).map(|(name, _)| *name).collect()
}

#[test]
fn every_constant_of_the_classic_estimator_matters() {
    let nominal = ffclock_sim::CounterKind::Tsc.nominal();
    let survivors = survivors(&CLASSIC, |config| Box::new(Classic::new(config, nominal, None)));
    assert!(survivors.is_empty(), "{survivors:?}");
}

#[test]
fn every_part_of_the_learned_estimator_matters() {
    let nominal = ffclock_sim::CounterKind::Tsc.nominal();
    let make =
        |config| -> Box<dyn Estimator> { Box::new(Learned::new(config, ClassicConfig::default(), nominal, None)) };
    let survivors = survivors(&LEARNED, make);
    assert!(survivors.is_empty(), "{survivors:?}");
}

//! How fast the laboratory lives, and what the estimators cost in it.

use crate::Outcome;
use crate::figure::{Figure, median};
use ffclock_estimator::{Classic, ClassicConfig, Estimator, Learned, LearnedConfig};
use ffclock_sim::{Run, Scenario};
use ffclock_trace::TraceRow;
use ffclock_units::{Exchange, Period};
use std::time::Instant;

/// Times that each thing is measured; the fastest counts, since whatever else the machine does can only make it slower.
const ROUNDS: usize = 9;
/// A day at 16 s polls with the learned estimator and the three feedback clocks [s].
const DAY_GOAL: f64 = 0.5;
/// An exchange with the learned estimator [us].
const LEARNED_GOAL: f64 = 40.0;
/// Exchanges a second with the classic one.
const CLASSIC_GOAL: f64 = 3e6;

pub(crate) fn run() -> Outcome {
    let text = "extends = \"lan-16\"\nabout = \"a day at 16 s polls\"\nduration = \"1 d\"\nfrom = \"2 h\"\n";
    let scenario = Scenario::parse("day", text)?;
    let day = Run { name: "day", scenario: &scenario, seed: 1 };
    let lived = timed(|| {
        day.execute_with(&["learned", "pi", "pll", "regression"], None);
    });
    let alone = timed(|| {
        day.execute_with(&["learned"], None);
    });
    Figure::new("simulated day, learned and three feedback clocks", lived[0], "s")
        .against("learned alone", alone[0])
        .at_most(DAY_GOAL)
        .report()?;
    Figure::new(format!("simulated day, median of {ROUNDS}"), median(lived.iter().copied()), "s")
        .against("the best", lived[0])
        .report()?;
    let mut exchanges = Vec::new();
    day.execute_with(&[], Some(&mut |row: &TraceRow| exchanges.extend(row.exchange)));
    estimators(&exchanges, scenario.counter.nominal())
}

fn estimators(exchanges: &[Exchange], nominal: Period) -> Outcome {
    let count = exchanges.len() as f64;
    let classic = || Classic::new(ClassicConfig::default(), nominal, None);
    let learned = || Learned::new(LearnedConfig::default(), ClassicConfig::default(), nominal, None);
    let quick = timed(|| feed(classic(), exchanges))[0] / count;
    let slow = timed(|| feed(learned(), exchanges))[0] / count;
    Figure::new("learned estimator, an exchange of a day at 16 s polls", 1e6 * slow, "us")
        .against("classic", 1e6 * quick)
        .at_most(LEARNED_GOAL)
        .report()?;
    Figure::new("classic estimator, in memory", 1.0 / quick, "exchanges/s")
        .against("learned", 1.0 / slow)
        .at_least(CLASSIC_GOAL)
        .report()?;
    Ok(())
}

fn feed(mut estimator: impl Estimator, exchanges: &[Exchange]) {
    for exchange in exchanges {
        std::hint::black_box(estimator.update(exchange));
    }
}

/// Seconds that it takes, the fewest first.
fn timed(mut work: impl FnMut()) -> Vec<f64> {
    let mut round = || {
        let begun = Instant::now();
        work();
        begun.elapsed().as_secs_f64()
    };
    let mut seconds: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

//! That such worlds are what they say: stamps, pairs, and clocks as good as they must be where nothing disturbs them.

use crate::scenario::Scenario;
use crate::{Run, RunResult};
use ffclock_trace::TraceRow;
use ffclock_units::{Span, StampLocation};

fn scenario(base: &str, more: &str) -> Scenario {
    let text = format!("extends = \"{base}\"\nabout = \"x\"\nduration = \"2 h\"\nfrom = \"1 h\"\n{more}");
    Scenario::parse("test", &text).unwrap()
}

/// The result, and the rows of the trace.
fn run(scenario: &Scenario) -> (RunResult, Vec<TraceRow>) {
    let mut rows = Vec::new();
    let result = Run { name: "test", scenario, seed: 1 }.execute(Some(&mut |row: &TraceRow| rows.push(*row)));
    (result, rows)
}

fn figure(result: &RunResult, clock: &str, figure: &str) -> f64 {
    let clock = result.clocks.iter().find(|result| result.name == clock).unwrap();
    clock.windows[0].figure(figure).unwrap()
}

const SILENT: &str = "[oscillator]\nskew = \"0 ppm\"\nwhite_frequency_at_1_s = 0.0\nflicker_frequency = 0.0\n\
                      walk_frequency_at_10000_s = 0.0\n";

/// Requests follow one another by up to twice the interval between Syncs, so 1 in 4 Syncs or a little more has none
/// before it.
#[test]
fn three_of_four_syncs_make_an_exchange() {
    let (result, rows) = run(&scenario("ptp-hardware", ""));
    assert!((6900..7500).contains(&result.requests), "{}", result.requests);
    let share = result.exchanges as f64 / 7200.0;
    assert!((0.72..0.78).contains(&share), "{share}");
    assert_eq!(rows.len() as u64, result.exchanges);
    let truths = rows.iter().filter(|row| row.truth.is_some_and(|truth| truth.sent.is_some())).count();
    assert_eq!(truths, rows.len(), "of each exchange the trace says when its request truly left");
}

/// Both ends cut off what is below 8 ns, 24 ticks of the counter, and err by 10 ns and that cut, 2.3 ns, beside it.
#[test]
fn stamps_have_the_step_and_the_noise_that_the_scenario_says() {
    let (_, rows) = run(&scenario("ptp-hardware", SILENT));
    let mut errors = Vec::new();
    for row in &rows {
        let (exchange, truth) = (row.exchange.unwrap(), row.truth.unwrap());
        assert!(exchange.received.counter.raw() % 24 == 0 && exchange.sent.counter.raw() % 24 == 0);
        assert_eq!(exchange.received.location, StampLocation::Hardware);
        let since_begin = exchange.server_out - crate::world::begin();
        assert_eq!(since_begin.units() % Span::from_nanos(8).units(), 0, "{since_begin}");
        errors.push((truth.received - exchange.server_out - Span::from_nanos(500)).as_seconds());
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let variance = errors.iter().map(|error| (error - mean) * (error - mean)).sum::<f64>() / errors.len() as f64;
    assert!((mean - 4e-9).abs() < 1e-9, "half a step: {mean}");
    assert!((variance.sqrt() - 10.26e-9).abs() < 0.5e-9, "{}", variance.sqrt());
}

/// Without noise each clock is on time within the step of the stamps, and the best one is the best.
#[test]
fn without_noise_every_clock_is_on_time_within_a_step() {
    let (quiet, _) = run(&scenario("ptp-hardware", &format!("{SILENT}[ptp]\nnoise = \"0 s\"\n")));
    for clock in ["learned", "ptp4l", "linreg", "optimum"] {
        let largest = figure(&quiet, clock, "max");
        assert!(largest < 16e-9, "{clock}: {largest}");
    }
}

/// No clock has a smaller spread than the filter that knows the laws.
#[test]
fn the_optimum_is_the_best_clock_of_its_world() {
    for base in ["ptp-hardware", "ptp-hardware-quiet", "pulses"] {
        let (result, _) = run(&scenario(base, ""));
        let best = figure(&result, "optimum", "iqr");
        for clock in result.clocks.iter().filter(|clock| clock.name != "optimum") {
            assert!(best < clock.windows[0].iqr.unwrap(), "{base}: {}", clock.name);
        }
    }
}

/// A median of ten delays adds little to the noise of an offset, so with a steady oscillator the loop of ptp4l is a
/// filter of white noise: x(n+1) = x(n) - 0.7 e(n) - 0.3 sum e, e = x + w, as documented. Its variance follows from the
/// recursion on a noise of deviation one, and the clock is read at any time between two updates.
#[test]
fn the_servo_with_gains_filters_white_noise_as_its_equations_say() {
    let (result, _) = run(&scenario("ptp-hardware", SILENT));
    let mut random = crate::Random::new(1);
    let (mut error, mut drift, mut sum) = (0.0, 0.0, 0.0);
    const UPDATES: i32 = 100_000;
    for _ in 0..UPDATES {
        let offset: f64 = error + random.normal();
        drift += 0.3 * offset;
        let next = error - (0.7 * offset + drift);
        // The mean square between two ends of a straight line.
        sum += (error * error + error * next + next * next) / 3.0;
        error = next;
    }
    let expected = 14.5e-9 * (sum / f64::from(UPDATES)).sqrt();
    let measured = figure(&result, "ptp4l", "rms");
    assert!((measured / expected - 1.0).abs() < 0.12, "{measured} {expected}");
}

/// Where the kernel stamps, the followers have their constants for it, and ptpd follows too. On a path without queues
/// each of them settles within the stamps' noise, half of what is drawn here.
#[test]
fn a_master_with_software_stamps_is_followed_by_the_servos_for_them() {
    let spec = "poll = \"1 s\"\n[ptp]\nstamps = \"software\"\nnoise = \"2 us\"\nstep = \"1 ns\"\n\
                [path]\nforward = \"50 us\"\nbackward = \"50 us\"\n[start]\nrate = \"50 ppm\"\nahead = \"1 ms\"\n";
    let text = format!("about = \"x\"\nduration = \"3 h\"\nfrom = \"1 h\"\n{spec}");
    let (result, _) = run(&Scenario::parse("test", &text).unwrap());
    let names: Vec<&str> = result.clocks.iter().map(|clock| clock.name.as_str()).collect();
    assert_eq!(names, ["classic", "learned", "ptp4l", "linreg", "linreg-raw", "ptpd"]);
    for name in names {
        let iqr = figure(&result, name, "iqr");
        assert!((0.05e-6..3e-6).contains(&iqr), "{name}: {iqr}");
    }
}

/// Two pulses make an exchange, and its times are whole seconds.
#[test]
fn pulses_become_exchanges_of_whole_seconds() {
    let (result, rows) = run(&scenario("pulses", ""));
    assert!((7199..=7200).contains(&result.requests), "{}: the jitter takes the last one in or out", result.requests);
    assert_eq!(result.exchanges, result.requests / 2);
    for row in rows {
        let (exchange, truth) = (row.exchange.unwrap(), row.truth.unwrap());
        assert_eq!(exchange.server_out - exchange.server_in, Span::from_secs(1));
        assert_eq!((Some(exchange.server_in), exchange.server_out), (truth.sent, truth.received));
    }
    assert_eq!(figure(&result, "learned", "containment"), 1.0);
}

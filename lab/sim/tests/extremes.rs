//! That no number in a scenario, however extreme, ends a run in anything but a result or a complaint about its key.

use ffclock_sim::{CLOCKS, ORACLES, Random, Run, Scenario};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a bare number is replaced by.
const NUMBERS: [&str; 18] = [
    "0",
    "-0.0",
    "5e-324",
    "1e-300",
    "1e-12",
    "1e-6",
    "0.3",
    "1.0",
    "1.0000001",
    "7.5",
    "1e3",
    "1e9",
    "1e18",
    "1e300",
    "-1e-9",
    "-1e300",
    "inf",
    "nan",
];
/// What a length of time is replaced by.
const LENGTHS: [&str; 13] = [
    "0 s",
    "0.000000000000000001 s",
    "0.001 ns",
    "1 ms",
    "7 s",
    "10 min",
    "3650 d",
    "-0.001 ns",
    "-7 s",
    "-3650 d",
    "999999999999999999 s",
    "999999999999999999 d",
    "-999999999999999999 d",
];
/// What a rate is replaced by.
const RATES: [&str; 9] = [
    "0 ppm",
    "0.000000000000000001 ppb",
    "-300 ppm",
    "999999 ppm",
    "-999999 ppm",
    "1000000 ppm",
    "-1000000 ppm",
    "999999999999999999 ppm",
    "-999999999999999999 ppm",
];

/// What a place in the scenario holds.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Number,
    Length,
    Rate,
}

/// A key, its table or what it is part of with `?` in place of the value, and what it holds. The world has all of them
/// at once.
struct Key {
    name: &'static str,
    kind: Kind,
    usual: &'static str,
}

const fn key(name: &'static str, kind: Kind, usual: &'static str) -> Key {
    Key { name, kind, usual }
}

/// Every number that a scenario may hold; `?name?` in [`WORLD`] is where it stands.
const KEYS: [Key; 68] = {
    use Kind::{Length, Number, Rate};
    [
        key("from", Length, "0 s"),
        key("poll", Length, "16 s"),
        key("burst", Number, "8"),
        key("windows.w", Length, "1 min"),
        key("windows.w", Length, "9 min"),
        key("start.rate", Rate, "50 ppm"),
        key("start.ahead", Length, "1 ms"),
        key("oscillator.skew", Rate, "50 ppm"),
        key("oscillator.ageing_per_day", Rate, "1 ppb"),
        key("oscillator.white_phase_at_1_s", Number, "1e-10"),
        key("oscillator.flicker_phase_at_1_s", Number, "1e-10"),
        key("oscillator.white_frequency_at_1_s", Number, "1e-9"),
        key("oscillator.flicker_frequency", Number, "3e-9"),
        key("oscillator.walk_frequency_at_10000_s", Number, "1e-8"),
        key("oscillator.wave[0].peak", Rate, "0.1 ppm"),
        key("oscillator.wave[0].period", Length, "200 s"),
        key("oscillator.step[0].at", Length, "2 min"),
        key("oscillator.step[0].until", Length, "3 min"),
        key("oscillator.step[0].change", Rate, "0.1 ppm"),
        key("oscillator.step[0].settling", Length, "10 s"),
        key("host.noise[0].mean", Length, "1 us"),
        key("host.noise[0].share", Number, "0.5"),
        key("host.suspend[0].at", Length, "4 min"),
        key("host.suspend[0].until", Length, "5 min"),
        key("path.forward", Length, "300 us"),
        key("path.backward", Length, "200 us"),
        key("path.loss", Number, "0.01"),
        key("path.duplicate", Number, "0.01"),
        key("path.straggle", Number, "0.01"),
        key("path.queue[0].mean", Length, "20 us"),
        key("path.queue[0].shape", Number, "2.0"),
        key("path.queue[0].share", Number, "0.9"),
        key("path.queue[1].mean", Length, "20 us"),
        key("path.queue[1].shape", Number, "0.7"),
        key("path.queue[2].mean", Length, "20 us"),
        key("path.queue[2].shape", Number, "2.5"),
        key("path.queue[2].when.markov.calm", Length, "10 s"),
        key("path.queue[2].when.markov.busy", Length, "10 s"),
        key("path.queue[3].when.self-similar.calm", Length, "10 s"),
        key("path.queue[3].when.self-similar.busy", Length, "10 s"),
        key("path.queue[4].when.periodic.every", Length, "100 s"),
        key("path.queue[4].when.periodic.lasts", Length, "10 s"),
        key("path.queue[5].when.between.at", Length, "1 min"),
        key("path.queue[5].when.between.until", Length, "2 min"),
        key("path.asymmetry", Number, "0.1"),
        key("path.route[0].at", Length, "3 min"),
        key("path.route[0].until", Length, "4 min"),
        key("path.route[0].forward", Length, "50 us"),
        key("path.route[0].backward", Length, "50 us"),
        key("path.flap.share", Number, "0.1"),
        key("path.flap.forward", Length, "30 us"),
        key("path.flap.backward", Length, "30 us"),
        key("path.outage[0].at", Length, "6 min"),
        key("path.outage[0].until", Length, "7 min"),
        key("path.intermittent.every", Length, "5 min"),
        key("path.intermittent.up", Length, "4 min"),
        key("server.noise", Length, "1 us"),
        key("server.residence", Length, "20 us"),
        key("server.root_dispersion", Length, "50 us"),
        key("server.fault[0].wrong.at", Length, "8 min"),
        key("server.fault[0].wrong.by", Length, "1 ms"),
        key("server.fault[1].drift.at", Length, "7 min"),
        key("server.fault[1].drift.rate", Rate, "1 ppm"),
        key("server.fault[2].smear.at", Length, "1 min"),
        key("server.fault[2].smear.by", Length, "1 ms"),
        key("server.fault[3].claims.root_dispersion", Length, "1 ms"),
        key("server.fault[4].leap.at", Length, "1 min"),
        key("server.fault[5].rate-limit.shortest", Length, "1 s"),
    ]
};

/// Ten minutes with everything that a scenario can hold. Each `?` is the value of the next of the keys.
const WORLD: &str = r#"
about = "x"
duration = "10 min"
from = ?
poll = ?
burst = ?
[windows]
w = [?, ?]
[start]
rate = ?
ahead = ?
[oscillator]
skew = ?
ageing_per_day = ?
white_phase_at_1_s = ?
flicker_phase_at_1_s = ?
white_frequency_at_1_s = ?
flicker_frequency = ?
walk_frequency_at_10000_s = ?
wave = [{ peak = ?, period = ? }]
step = [{ at = ?, until = ?, change = ?, settling = ? }]
[host]
stamps = "socket"
noise = [{ mean = ?, share = ? }]
suspend = [{ at = ?, until = ?, counter = "resets" }]
[path]
forward = ?
backward = ?
loss = ?
duplicate = ?
straggle = ?
queue = [
  { law = "gamma", mean = ?, shape = ?, share = ? },
  { law = "weibull", mean = ?, shape = ? },
  { law = "pareto", mean = ?, shape = ?, when = { markov = { calm = ?, busy = ? } } },
  { mean = "1 us", when = { self-similar = { calm = ?, busy = ? } } },
  { mean = "1 us", when = { periodic = { every = ?, lasts = ? } } },
  { law = "uniform", mean = "1 us", when = { between = { at = ?, until = ? } } },
]
asymmetry = ?
route = [{ at = ?, until = ?, forward = ?, backward = ? }]
flap = { share = ?, forward = ?, backward = ? }
outage = [{ at = ?, until = ? }]
intermittent = { every = ?, up = ? }
[server]
noise = ?
residence = ?
root_dispersion = ?
fault = [
  { wrong = { at = ?, by = ? } },
  { drift = { at = ?, until = "9 min", rate = ? } },
  { smear = { at = ?, by = ? } },
  { claims = { at = "1 min", until = "2 min", root_dispersion = ? } },
  { leap = { at = ? } },
  { rate-limit = { shortest = ? } },
]
"#;

fn values(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Number => &NUMBERS,
        Kind::Length => &LENGTHS,
        Kind::Rate => &RATES,
    }
}

/// The world with some of its values replaced: place and value.
fn world(counter: &str, replaced: &[(usize, &str)]) -> String {
    let mut parts = WORLD.split('?');
    let mut text = format!("counter = \"{counter}\"\n") + parts.next().expect("there is always a first part");
    for (place, (key, part)) in KEYS.iter().zip(parts).enumerate() {
        let value = replaced.iter().rfind(|one| one.0 == place).map_or(key.usual, |one| one.1);
        text += &if matches!(key.kind, Kind::Number) { value.to_owned() } else { format!("\"{value}\"") };
        text += part;
    }
    text
}

/// What is wrong with how this world ends: it must be refused by a key, or come to a result.
fn fault(text: &str, clocks: &[&str]) -> Option<String> {
    let lived = || match Scenario::parse("x", text) {
        Ok(scenario) => {
            Run { name: "x", scenario: &scenario, seed: 3 }.execute_with(clocks, None);
            None
        }
        Err(error) => Some(error.to_string()),
    };
    match catch_unwind(AssertUnwindSafe(lived)) {
        Ok(None) => None,
        Ok(Some(complaint)) => {
            let key = complaint.split(": ").nth(1).unwrap_or_default();
            let names_a_key = KEYS.iter().any(|one| key.split(['.', '[']).next() == one.name.split('.').next());
            (!names_a_key || key.contains(' ')).then(|| format!("unclear: {complaint}"))
        }
        Err(_) => Some("it panicked".to_owned()),
    }
}

#[test]
fn the_world_is_whole() {
    assert_eq!(WORLD.matches('?').count(), KEYS.len());
    let text = world("tsc", &[]);
    let scenario = Scenario::parse("x", &text).expect("every usual value is allowed");
    let result = Run { name: "x", scenario: &scenario, seed: 3 }.execute_with(&CLOCKS, None);
    assert!(result.exchanges > 10, "{}", result.exchanges);
}

fn found(clocks: &[&str], cases: impl Iterator<Item = Vec<(usize, &'static str)>>) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, case) in cases.enumerate() {
        let counter = ["tsc", "hpet", "acpi-pm"][number % 3];
        if let Some(fault) = fault(&world(counter, &case), clocks) {
            let said: Vec<_> = case.iter().map(|(place, value)| format!("{} = {value}", KEYS[*place].name)).collect();
            faults.push(format!("{}: {fault}", said.join(", ")));
        }
    }
    faults
}

fn each_alone() -> impl Iterator<Item = Vec<(usize, &'static str)>> {
    KEYS.iter().enumerate().flat_map(|(place, key)| values(key.kind).iter().map(move |value| vec![(place, *value)]))
}

#[test]
fn an_extreme_number_is_lived_through_or_refused_by_its_key() {
    let faults = found(&CLOCKS, each_alone());
    assert!(faults.is_empty(), "{} cases:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn so_are_several_at_once() {
    let mut random = Random::new(11);
    let mut below = move |limit: usize| (random.uniform() * limit as f64) as usize;
    let mut draw = move || {
        let place = below(KEYS.len());
        let values = values(KEYS[place].kind);
        (place, values[below(values.len())])
    };
    // More at once are nearly always refused for one of them.
    let faults = found(&CLOCKS, (0..300).map(|number| (0..2 + number % 3).map(|_| draw()).collect()));
    assert!(faults.is_empty(), "{} cases:\n{}", faults.len(), faults.join("\n"));
}

/// With everything at once the oracles take seconds, so each of what they tabulate or filter stands in a small world of
/// its own.
#[test]
fn the_oracles_live_through_what_they_must_know() {
    let levels = [
        "white_phase_at_1_s",
        "flicker_phase_at_1_s",
        "white_frequency_at_1_s",
        "flicker_frequency",
        "walk_frequency_at_10000_s",
    ];
    let levels =
        levels.iter().flat_map(|name| ["5e-324", "0.001"].map(|level| format!("[oscillator]\n{name} = {level}")));
    let waves = ["0.000000000000000001 s", "3650 d"]
        .map(|period| format!("[oscillator]\nwave = [{{ peak = \"900000 ppm\", period = \"{period}\" }}]"));
    let delay = |rest: &str| format!("[path]\nqueue = [{{ {rest} }}]");
    let laws = [
        "mean = \"0.000000000000000001 s\"",
        "mean = \"3650 d\"",
        "mean = \"1 us\", share = 5e-324",
        "law = \"gamma\", mean = \"1 us\", shape = 1e-300",
        "law = \"gamma\", mean = \"1 us\", shape = 1e300",
        "law = \"weibull\", mean = \"1 us\", shape = 0.01",
        "law = \"weibull\", mean = \"1 us\", shape = 1e300",
        "law = \"pareto\", mean = \"1 us\", shape = 1.0000001",
        "law = \"pareto\", mean = \"1 us\", shape = 1e300",
        "law = \"uniform\", mean = \"3650 d\"",
        "law = \"constant\", mean = \"3650 d\"",
        "mean = \"1 us\", when = { markov = { calm = \"0.001 ns\", busy = \"3650 d\" } }",
        "mean = \"1 us\", when = { self-similar = { calm = \"3650 d\", busy = \"0.001 ns\" } }",
    ]
    .map(delay);
    let servers = ["noise = \"3650 d\"", "residence = \"3650 d\"", "noise = \"0.000000000000000001 s\""]
        .map(|line| format!("[server]\n{line}"));
    let mut faults = Vec::new();
    for lines in levels.chain(waves).chain(laws).chain(servers) {
        let text = format!("extends = \"lan-16\"\nabout = \"x\"\nduration = \"5 min\"\nfrom = \"0 s\"\n{lines}\n");
        faults.extend(fault(&text, &ORACLES).map(|fault| format!("{lines}: {fault}")));
    }
    assert!(faults.is_empty(), "{} cases:\n{}", faults.len(), faults.join("\n"));
}

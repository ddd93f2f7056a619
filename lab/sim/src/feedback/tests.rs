//! That the opponents are what their sources describe.

use crate::scenario::Scenario;
use crate::{Run, RunResult};
use ffclock_ptp::PtpObservation;
use ffclock_units::{Counter, Direction, Moment, Span, Stamp, StampLocation, Ticks};

/// What a follower of PTP observes of a message that left or came at `ours_ns`, and at the other side at `theirs_ns`.
pub(super) fn observed(direction: Direction, ours_ns: u64, theirs_ns: i128) -> PtpObservation {
    let counter = Counter::from_raw(ours_ns);
    let ours = Stamp { counter, width: Ticks::ZERO, location: StampLocation::Kernel };
    PtpObservation { direction, ours, theirs: Moment::from_origin(Span::from_nanos(theirs_ns)) }
}

fn run(text: &str) -> RunResult {
    let scenario = Scenario::parse("test", text).unwrap();
    Run { name: "test", scenario: &scenario, seed: 1 }
        .execute_with(&["classic", "pi", "ptpd", "pll", "regression"], None)
}

fn figure(result: &RunResult, clock: &str, window: &str, figure: &str) -> f64 {
    let clock = result.clocks.iter().find(|result| result.name == clock).unwrap();
    clock.windows.iter().find(|result| result.name == window).unwrap().figure(figure).unwrap()
}

/// Ridoux, Veitch, Broomhead, section II-C and figure 7: ptpd is off by hundreds of milliseconds after two hours
/// without its server, because it forgets the drift, while the feed-forward clock runs off by what its oscillator
/// wanders.
#[test]
fn ptpd_without_its_server_runs_off_at_the_skew_of_the_oscillator() {
    let result = run("extends = \"lan-16\"\nabout = \"x\"\nduration = \"14 h\"\n\
        [path]\noutage = [{ at = \"10 h\", until = \"12 h\" }]\n\
        [windows]\nend = [\"11.9 h\", \"12 h\"]");
    let (ptpd, pi) = (figure(&result, "ptpd", "end", "max"), figure(&result, "pi", "end", "max"));
    assert!((0.3..0.4).contains(&ptpd), "{ptpd}");
    assert!(pi < 5e-3, "{pi}");
    assert!(figure(&result, "classic", "end", "max") < 1e-3);
}

/// The same section, figure 4: ptpd takes more than an hour to converge where the feed-forward clock is there almost at
/// once.
#[test]
fn ptpd_converges_slowly() {
    let result = run("extends = \"lan-16\"\nabout = \"x\"\nduration = \"4 h\"\nfrom = \"0 s\"\n\
        [windows]\nearly = [\"10 min\", \"20 min\"]\nlate = [\"3 h\", \"4 h\"]");
    let early = figure(&result, "ptpd", "early", "p50");
    assert!(early > 5.0 * figure(&result, "ptpd", "late", "p50"), "{early}");
    assert!(early > 10.0 * figure(&result, "classic", "early", "p50"));
}

/// The same paper, section II-B and table: ntpd's spread is 50 us on a LAN at 256 s polls (here within a factor of 2),
/// where the feed-forward clock has 7; at larger polls its loop is not stable.
#[test]
fn ntpd_loses_its_hold_at_large_polls() {
    let spreads = ["lan-16", "lan-256", "lan-1024"].map(|name| {
        let result = run(&format!("extends = \"{name}\"\nabout = \"x\"\n"));
        (figure(&result, "pll", "", "iqr"), figure(&result, "classic", "", "iqr"))
    });
    let [near, middle, far] = spreads.map(|(pll, classic)| (1e6 * pll, pll / classic));
    assert!(near.0 < 3.0 && (25.0..100.0).contains(&middle.0) && far.0 > 200.0, "{near:?} {middle:?} {far:?}");
    assert!(near.1 < 2.0 && middle.1 > 7.0 && far.1 > 30.0, "{near:?} {middle:?} {far:?}");
}

/// Each of them settles on a quiet network.
#[test]
fn all_of_them_converge_on_a_quiet_network() {
    let result = run("extends = \"lan-16\"\nabout = \"x\"\nfrom = \"8 h\"\n");
    for (clock, iqr) in [("pi", 5e-6), ("pll", 3e-6), ("regression", 3e-6), ("ptpd", 15e-6)] {
        let seen = figure(&result, clock, "", "iqr");
        assert!(seen < iqr && seen > 0.1e-6, "{clock}: {seen}");
    }
}

/// Without a drift file ntpd measures its frequency for a quarter of an hour, at 50 ppm over tens of milliseconds
/// (RFC 5905, figure 26). With one no clock runs off, and each takes out a first millisecond by its own rules: ptp4l
/// steps after two measurements, ntpd and ptpd do not.
#[test]
fn with_what_an_earlier_run_left_no_clock_runs_off_at_the_start() {
    let largest = |start: &str, clock: &str| {
        let world = "extends = \"lan-16\"\nabout = \"x\"\nduration = \"20 min\"\nfrom = \"0 s\"\n";
        figure(&run(&format!("{world}{start}")), clock, "", "max")
    };
    assert!(largest("", "pll") > 20e-3);
    let left = "[start]\nrate = \"50 ppm\"\nahead = \"1 ms\"\n";
    for (clock, [least, most]) in
        [("pll", [0.5e-3, 1.1e-3]), ("ptpd", [0.5e-3, 1.1e-3]), ("regression", [0.0, 1.1e-3]), ("pi", [0.0, 0.1e-3])]
    {
        let seen = largest(left, clock);
        assert!((least..most).contains(&seen), "{clock}: {seen}");
    }
    let seen = largest("[start]\nrate = \"50 ppm\"\n", "pll");
    assert!(seen < 0.1e-3, "{seen}");
}

/// In the interleaved mode of NTP each exchange is complete with the next reply: a clock is there one poll later.
#[test]
fn an_interleaved_exchange_is_used_with_the_next_reply() {
    let unread = |mode: &str| {
        let world = "extends = \"lan-16\"\nabout = \"x\"\nduration = \"16 min\"\nfrom = \"0 s\"\nburst = 1\nreading = \"1 s\"\n";
        let result = run(&format!("{world}{mode}"));
        result.clocks.iter().find(|clock| clock.name == "classic").unwrap().windows[0].unread
    };
    let later = unread("interleaved = true\n") - unread("");
    assert!((later - 1.0 / 60.0).abs() < 4e-3, "16 s of 16 min: {later}");
}

/// The real programs, run in a simulated network of the same noise (chrony 4.8, ntpd 4.2.8 and ptp4l 4.4 at 16 s
/// polls), had these spreads [us] on a quiet LAN and with a temperature wave of 0.1 ppm and 1000 s. The models must be
/// neither weaker nor much stronger.
#[test]
fn the_models_do_as_well_as_the_programs_they_stand_for() {
    for (scenario, measured) in [
        ("world-1", [("pi", 3.6), ("pll", 1.73), ("regression", 1.75)]),
        ("world-2", [("pi", 4.0), ("pll", 18.0), ("regression", 3.4)]),
    ] {
        let result = run(&format!("extends = \"{scenario}\"\nabout = \"x\"\nduration = \"30 h\""));
        for (clock, program) in measured {
            let ratio = figure(&result, clock, "", "iqr") * 1e6 / program;
            assert!((0.5..1.2).contains(&ratio), "{scenario} {clock}: {ratio}");
        }
    }
}

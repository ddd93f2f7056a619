//! How true intervals are: the difference clock after some time of polling, and the clocks of quanta and minstant, in
//! the same run and against the same truth.
//!
//! The truth is the system clock of this host, which must not be disciplined meanwhile; a chronyd that never touches it
//! serves it over NTP to two daemons. Each daemon's rate is measured as a program would: a stamp at the beginning, a
//! stamp at the end, `elapsed` between them.

use crate::figure::{Figure, largest, median};
use crate::lab::{Lab, Program, free_port};
use crate::start_up::{self, Look, Others, Rates, rate_error_ppm};
use crate::{Outcome, setting};
use ffclock::{Clock, Stamp};
use ffclock_counter::raw_clock;
use ffclock_units::{Bound, Counter, Span};
use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// After which the goal holds.
const GOAL_MINUTES: f64 = 20.0;
const GOAL_PPM: f64 = 0.1;
/// The default poll, and one with 16 times the packets.
const POLLS: [&str; 2] = ["16 s", "1 s"];
/// One start of the other libraries in each.
const TURN: Duration = Duration::from_secs(30);
/// How long each start is observed [s]: the readings then blur it by a few ppb only.
const START_S: f64 = 10.0;
/// A daemon has its first estimate by then.
const PATIENCE: Duration = Duration::from_secs(30);
/// Less than this between the system clock and CLOCK_MONOTONIC_RAW, and the system clock is not disciplined.
const UNDISCIPLINED_PPM: f64 = 0.01;

/// A daemon, its clock, and the stamp at the beginning.
struct Observed {
    poll: &'static str,
    daemon: Program,
    clock: Clock,
    begin: Look<Stamp>,
}

/// What a clock has shown since the beginning.
struct Shown {
    error_ppm: f64,
    /// The largest error that the clock itself claims.
    bound_ppm: f64,
}

impl Observed {
    fn start(lab: &Lab, port: u16, poll: &'static str) -> Result<Self, Box<dyn Error>> {
        let name = poll.replace(' ', "-");
        let mut daemon = lab.start_daemon(&name, port, poll)?;
        let page = lab.path(&format!("{name}.page"));
        let begun = Instant::now();
        let clock = loop {
            daemon.check_alive()?;
            match Clock::open_at(&page) {
                Ok(clock) if clock.now().is_ok() => break Clock::open_at(&page)?,
                Err(error) if begun.elapsed() > PATIENCE => return Err(error.into()),
                Ok(_) if begun.elapsed() > PATIENCE => return Err("the daemon has no estimate".into()),
                _ => sleep(Duration::from_millis(100)),
            }
        };
        clock.wait_until(Bound::of(Span::from_secs(1)), PATIENCE)?;
        let begin = Look::take(|| clock.stamp());
        Ok(Observed { poll, daemon, clock, begin })
    }

    fn shown(&mut self) -> Result<Shown, Box<dyn Error>> {
        self.daemon.check_alive()?;
        let now = Look::take(|| self.clock.stamp());
        let interval = self.clock.elapsed(self.begin.value, now.value)?;
        let (truth, _) = now.since(&self.begin);
        Ok(Shown {
            error_ppm: rate_error_ppm(interval.span, truth),
            bound_ppm: interval.bound.as_span().as_seconds() / truth.as_seconds() * 1e6,
        })
    }
}

/// All that was measured.
struct Whole {
    minutes: f64,
    starts: Vec<Rates>,
    here: Rates,
    truth_ppm: f64,
}

pub(crate) fn run() -> Outcome {
    let minutes = setting("FFCLOCK_BENCH_MINUTES", GOAL_MINUTES)?;
    let lab = Lab::new("rates")?;
    let port = free_port()?;
    let mut server = lab.start_chronyd_server(port)?;
    sleep(Duration::from_secs(1));
    server.check_alive()?;
    let others = Others::start();
    let raw = Look::take(raw_clock);
    let [slow, fast] = POLLS.map(|poll| Observed::start(&lab, port, poll));
    let mut observed = [slow?, fast?];
    let begun = Instant::now();
    let length = Duration::from_secs_f64(minutes * 60.0);
    let mut starts = Vec::new();
    while let Some(rest) = length.checked_sub(begun.elapsed()).filter(|rest| !rest.is_zero()) {
        let turn = Instant::now();
        if rest.as_secs_f64() > START_S {
            starts.push(start_up::measure(START_S)?);
        }
        sleep(rest.min(TURN).saturating_sub(turn.elapsed()));
        server.check_alive()?;
        progress(begun.elapsed(), &mut observed, &others, starts.last())?;
    }
    let whole = Whole { minutes, starts, here: others.rates(), truth_ppm: against_raw(&raw) };
    report(&mut observed, &whole)
}

/// The raw clock's rate against the system clock's.
fn against_raw(begin: &Look<Counter>) -> f64 {
    let now = Look::take(raw_clock);
    let raw = Span::from_nanos((now.value - begin.value).raw().into());
    rate_error_ppm(raw, now.since(begin).0)
}

fn progress(elapsed: Duration, observed: &mut [Observed], others: &Others, last: Option<&Rates>) -> Outcome {
    let mut line = format!("{:>5.1} min  rate errors so far, ppm:", elapsed.as_secs_f64() / 60.0);
    for clock in observed {
        let Shown { error_ppm, bound_ppm } = clock.shown()?;
        line += &format!("  poll {} {error_ppm:+.4} (bound {bound_ppm:.3})", clock.poll);
    }
    let here = others.rates();
    line += &format!("  quanta {:+.3}  minstant {:+.3}", here.quanta, here.minstant);
    if let Some(last) = last {
        line += &format!("; restarted {:+.3} {:+.3}", last.quanta, last.minstant);
    }
    eprintln!("{line}");
    Ok(())
}

fn report(observed: &mut [Observed; 2], whole: &Whole) -> Outcome {
    let sizes = |pick: fn(&Rates) -> f64| {
        let all = whole.starts.iter().chain([&whole.here]);
        all.map(|rates| pick(rates).abs()).collect::<Vec<f64>>()
    };
    let others = [("quanta", sizes(|rates| rates.quanta)), ("minstant", sizes(|rates| rates.minstant))];
    let [slow, fast] = observed;
    let (shown, quick) = (slow.shown()?, fast.shown()?);
    let slow_ppm = shown.error_ppm.abs();
    let after = |clock: &Observed| format!("rate error after {} min at poll {}", whole.minutes, clock.poll);
    for (name, errors) in &others {
        let what = format!("{name}, median of {} starts", errors.len());
        let figure = Figure::new(after(slow), slow_ppm, "ppm").against(&what, median(errors.iter().copied()));
        judged(figure, whole.minutes).report()?;
    }
    Figure::new(after(fast), quick.error_ppm.abs(), "ppm").against("at poll 16 s", slow_ppm).report()?;
    for (clock, shown) in [(slow, shown), (fast, quick)] {
        let name = format!("rate error within its own bound, poll {}", clock.poll);
        let figure = Figure::new(name, shown.error_ppm.abs(), "ppm").against("bound", shown.bound_ppm);
        figure.ratio_at_most(1.0).report()?;
    }
    for (name, errors) in others {
        let name = format!("rate error of {name}, largest of {} starts", errors.len());
        Figure::new(name, largest(errors), "ppm").against("ffclock at poll 16 s", slow_ppm).report()?;
    }
    let blur = largest(whole.starts.iter().map(|start| start.blur));
    Figure::new("truth: the system clock against CLOCK_MONOTONIC_RAW", whole.truth_ppm.abs(), "ppm")
        .beside(format!("reading it blurs the whole run by {:.5} ppm, a start by {blur:.4} ppm", whole.here.blur))
        .at_most(UNDISCIPLINED_PPM)
        .report()?;
    Ok(())
}

/// A shorter run is not judged.
fn judged(figure: Figure, minutes: f64) -> Figure {
    if minutes < GOAL_MINUTES { figure } else { figure.at_most(GOAL_PPM) }
}

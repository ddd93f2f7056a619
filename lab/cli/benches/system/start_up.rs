//! Interval clocks of other libraries, which find out the counter's rate when the program starts and keep it from then
//! on. How well they hit it differs from start to start, so each start is a process of its own.

use crate::Outcome;
use ffclock_counter::HostClock;
use ffclock_units::Span;
use std::error::Error;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// The word after which this program is such a process.
pub(crate) const COMMAND: &str = "start-up";

/// Attempts at a narrow bracket.
const TRIES: usize = 200;

/// Something read between two readings of the system clock.
pub(crate) struct Look<T> {
    pub(crate) value: T,
    /// The system clock in the middle.
    truth: Span,
    width: Span,
}

impl<T> Look<T> {
    /// The narrowest of many brackets.
    pub(crate) fn take(mut read: impl FnMut() -> T) -> Self {
        let mut once = || {
            let before = system_time();
            let value = read();
            let width = system_time() - before;
            Look { value, truth: before + width.halved(), width }
        };
        let first = once();
        (1..TRIES).map(|_| once()).fold(first, |best, next| if next.width < best.width { next } else { best })
    }

    /// True time from an earlier look to this one, and how far it can be off.
    pub(crate) fn since<U>(&self, earlier: &Look<U>) -> (Span, Span) {
        (self.truth - earlier.truth, (self.width + earlier.width).halved())
    }
}

fn system_time() -> Span {
    HostClock::Realtime.read().map_or(Span::ZERO, |reading| reading.since_origin())
}

/// Rate errors of one start [ppm].
pub(crate) struct Rates {
    pub(crate) quanta: f64,
    pub(crate) minstant: f64,
    /// How far both can be off by the reading of the truth.
    pub(crate) blur: f64,
}

/// The clocks of the other libraries, from the start of this process.
pub(crate) struct Others {
    clock: quanta::Clock,
    quanta: Look<u64>,
    minstant: Look<minstant::Instant>,
}

impl Others {
    pub(crate) fn start() -> Self {
        let clock = quanta::Clock::new();
        // The first call does more than the later ones.
        let _ = (clock.raw(), minstant::Instant::now());
        Others { quanta: Look::take(|| clock.raw()), minstant: Look::take(minstant::Instant::now), clock }
    }

    /// The rate errors from the start until now.
    pub(crate) fn rates(&self) -> Rates {
        let (quanta, minstant) = (Look::take(|| self.clock.raw()), Look::take(minstant::Instant::now));
        let (truth, blur) = quanta.since(&self.quanta);
        let elapsed = self.clock.delta(self.quanta.value, quanta.value);
        Rates {
            quanta: rate_error_ppm(span(elapsed), truth),
            minstant: rate_error_ppm(
                span(minstant.value.duration_since(self.minstant.value)),
                minstant.since(&self.minstant).0,
            ),
            blur: blur.as_seconds() / truth.as_seconds() * 1e6,
        }
    }
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(duration.as_nanos() as i128)
}

/// How much too fast a clock is that shows `elapsed` in `truth`.
pub(crate) fn rate_error_ppm(elapsed: Span, truth: Span) -> f64 {
    (elapsed - truth).as_seconds() / truth.as_seconds() * 1e6
}

/// Measures this start over this many seconds and prints both rate errors and the blur.
pub(crate) fn run(seconds: &str) -> Outcome {
    let others = Others::start();
    sleep(Duration::from_secs_f64(seconds.parse()?));
    let Rates { quanta, minstant, blur } = others.rates();
    println!("{quanta} {minstant} {blur}");
    Ok(())
}

/// Starts a process that does this, and waits for what it says.
pub(crate) fn measure(seconds: f64) -> Result<Rates, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).args([COMMAND, &seconds.to_string()]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    match *numbers.as_slice() {
        [quanta, minstant, blur] => Ok(Rates { quanta, minstant, blur }),
        _ => Err(format!("{COMMAND} said {text:?} and {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

//! ffclock-steer on the guest's own clock. The truth is a line over the kernel's raw clock, which nothing steers: a
//! server in the guest serves it, and ffclockd follows that server.

use super::clock::serve_ntp;
use super::{Found, Outcome, figure, median};
use ffclock::{Bound, Clock, ReadError, Stamp, Status};
use ffclock_counter::{ClockReading, CounterId, HostClock, raw_clock, read_narrowest};
use ffclock_sys::{KernelClockState, KernelFlags, kernel_clock_state};
use ffclock_units::{Counter, Span};
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The true time is this where the raw clock is 0: the kernel's clock begins some 7 s before it [ns].
const ORIGIN: i128 = 1_767_225_607 * 1_000_000_000;
/// The true time gains this on the raw clock, so that the kernel's clock loses it [ppm].
const GAIN: i128 = 40;
/// The largest error of the steered clock against the page that passes [ns]. It was 0.7 us.
const APART_MAX: f64 = 5_000.0;
/// Errors of the page that differ by no more than this are the same [ns].
const UNCHANGED: f64 = 500.0;

/// How long the machine was away in the end, with its clocks at a standstill [s].
static AWAY: AtomicI64 = AtomicI64::new(0);
/// The server's port, and the one at which it learns of that.
const SERVER: u16 = 7124;
const VM_CLOCK: &str = "/tmp/vmclock";
/// Where a VMClock has its disruption marker.
const MARKER: u64 = 16;

const CONFIGURATION: &str = "/etc/ffclock-steer.toml";
const STATE_LOG: &str = "/tmp/steer.log";

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// The true time at a reading of the raw clock [ns since 1970].
fn truth(raw: Counter) -> i128 {
    let raw = i128::from(raw.raw());
    let away = i128::from(AWAY.load(Ordering::Relaxed)) * 1_000_000_000;
    ORIGIN + away + raw + raw * GAIN / 1_000_000
}

/// Answers requests of NTP with the true time, until it is killed.
pub(crate) fn serve() -> Outcome {
    let socket = UdpSocket::bind(("127.0.0.1", SERVER)).map_err(text)?;
    let control = UdpSocket::bind(("127.0.0.1", SERVER + 1)).map_err(text)?;
    thread::spawn(move || {
        let mut seconds = [0; 8];
        while let Ok((_, from)) = control.recv_from(&mut seconds) {
            AWAY.store(i64::from_le_bytes(seconds), Ordering::Relaxed);
            _ = control.send_to(&seconds, from);
        }
    });
    serve_ntp(&socket, || truth(raw_clock()), |_| ())
}

/// The kernel's clock minus the truth [ns].
fn kernel_error() -> f64 {
    let read = || HostClock::Realtime.read().map_or(0, |shown: ClockReading| shown.since_origin().as_nanos());
    let bracket = read_narrowest(CounterId::MonotonicRaw, 5, read);
    (bracket.value - truth(bracket.middle())) as f64
}

/// A stamp with its true time [ns].
fn true_stamp(clock: &Clock) -> (Stamp, i128) {
    let bracket = read_narrowest(CounterId::Tsc, 5, raw_clock);
    (Stamp::from_parts(bracket.middle(), clock.stamp().epoch()), truth(bracket.value))
}

/// What was seen of the page for a while [ns].
struct Watched {
    /// Its time minus the truth, without signs.
    errors: Vec<f64>,
    /// Its intervals of a second minus the true ones, without signs.
    intervals: Vec<f64>,
    /// The kernel's clock minus the page, without signs.
    apart: Vec<f64>,
    outside: usize,
    unclaimed: usize,
}

fn watch(clock: &Clock, seconds: usize) -> Result<Watched, String> {
    let mut seen = Watched { errors: Vec::new(), intervals: Vec::new(), apart: Vec::new(), outside: 0, unclaimed: 0 };
    for _ in 0..seconds {
        let first = true_stamp(clock);
        thread::sleep(Duration::from_secs(1));
        let second = true_stamp(clock);
        let reading = clock.at(second.0).map_err(text)?;
        let error = (reading.time.since_origin().as_nanos() - second.1) as f64;
        let interval = clock.elapsed(first.0, second.0).map_err(text)?.span.as_nanos() - (second.1 - first.1);
        let kernel = kernel_error();
        let claimed = kernel_clock_state().map_err(text)?.max_error_us as f64 * 1e3;
        seen.outside += usize::from(error.abs() > reading.bound.as_span().as_nanos() as f64);
        seen.unclaimed += usize::from(kernel.abs() > claimed);
        seen.errors.push(error.abs());
        seen.intervals.push((interval as f64).abs());
        seen.apart.push((kernel - error).abs());
    }
    Ok(seen)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The program, with these words behind it.
fn program(words: &[&str]) -> Command {
    let mut command = Command::new("ffclock-steer");
    command.args(["--config", CONFIGURATION]).args(words);
    command
}

fn run(mut command: Command) -> Result<Output, String> {
    command.output().map_err(text)
}

/// A program that goes on; ended where the test ends before it.
struct Running(Child);

impl Running {
    fn start() -> Result<Self, String> {
        let log = fs::File::create(STATE_LOG).map_err(text)?;
        program(&[]).stdout(Stdio::null()).stderr(log).spawn().map(Running).map_err(text)
    }

    /// Its exit code, of which it has `seconds` to come.
    fn code_within(&mut self, seconds: u64) -> Result<i32, String> {
        let begin = Instant::now();
        while begin.elapsed().as_secs() < seconds {
            if let Some(status) = self.0.try_wait().map_err(text)? {
                return status.code().ok_or_else(|| "a signal has ended it".to_owned());
            }
            thread::sleep(Duration::from_millis(100));
        }
        Err(format!("it runs still after {seconds} s: {}", fs::read_to_string(STATE_LOG).unwrap_or_default()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            _ = self.0.kill();
            _ = self.0.wait();
        }
    }
}

/// All of it: the refusals, the way to the page, the page before and with steering, a second program, the end.
pub(crate) fn steer() -> Outcome {
    fs::write(CONFIGURATION, "step_at_start = \"100 ms\"\n").map_err(text)?;
    let clock = opened()?;
    nothing_without_right_or_in_a_dry_run()?;
    let mut before = watch(&clock, 20)?;
    // From before the step of the kernel's clock on.
    let watching = opened()?;
    let watcher = thread::spawn(move || watch(&watching, 30));
    thread::sleep(Duration::from_secs(2));
    let mut running = Running::start()?;
    let settled = settle()?;
    figure("steer.settled_after_s", settled);
    let mut across = watcher.join().map_err(|_| "the watcher panicked".to_owned())??;
    same_page(("across_the_step", &mut before, &mut across))?;
    let mut with = watch(&clock, 40)?;
    judge(&mut before, &mut with)?;
    let state = kernel_clock_state().map_err(text)?;
    let is_shown = !state.flags.has(KernelFlags::UNSYNCHRONISED) && state.max_error_us < 100_000;
    Found(is_shown).or_fail(|| format!("a synchronised page, and the kernel has {state:?}"))?;
    a_second_program_is_left_alone(&mut running)?;
    it_slews_where_no_step_is_permitted(&clock, &mut before)?;
    it_ends_without_a_slew()?;
    a_step_is_left_alone(&clock, &mut before)?;
    a_restored_guest_is_stepped(&clock)
}

/// Some ms off, and with no step permitted: the page stays as it is through the slew, too.
fn it_slews_where_no_step_is_permitted(clock: &Clock, before: &mut Watched) -> Outcome {
    let other = Command::new("adjtimex").args(["-q", "-f", "-26214400"]).status().map_err(text)?;
    Found(other.success()).or_fail(|| "the frequency was refused".to_owned())?;
    // At -400 ppm, and the 40 ppm by which the truth gains.
    thread::sleep(Duration::from_secs(8));
    let off = kernel_error();
    Found(off < -2e6).or_fail(|| format!("the kernel's clock is {off:.0} ns off only"))?;
    fs::write(CONFIGURATION, "step_at_start = \"off\"\n").map_err(text)?;
    let running = Running::start()?;
    let mut slewed = watch(clock, 30)?;
    same_page(("in_a_slew", before, &mut slewed))?;
    figure("steer.settled_without_a_step_after_s", 30.0 + settle()?);
    drop(running);
    let log = fs::read_to_string(STATE_LOG).map_err(text)?;
    Found(!log.contains("stepped")).or_fail(|| format!("stepped without permission: {log}"))
}

/// The page, once it is synchronised.
fn opened() -> Result<Clock, String> {
    let begin = Instant::now();
    loop {
        let clock = Clock::open();
        if let Ok(clock) = clock
            && clock.status() == Status::Synchronised
            && clock.wait_until(Bound::of(Span::from_millis(10)), Duration::ZERO).is_ok()
        {
            return Ok(clock);
        }
        Found(begin.elapsed().as_secs() < 90).or_fail(|| "the page is not synchronised after 90 s".to_owned())?;
        thread::sleep(Duration::from_millis(500));
    }
}

fn nothing_without_right_or_in_a_dry_run() -> Outcome {
    let before = kernel_clock_state().map_err(text)?;
    let mut unprivileged = program(&["--once"]);
    unprivileged.uid(65534).gid(65534);
    let refused = run(unprivileged)?;
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    Found(refused.status.code() == Some(1) && why.contains("CAP_SYS_TIME"))
        .or_fail(|| format!("not refused: {why}"))?;
    let dry = run(program(&["--dry-run", "--once"]))?;
    let shown = String::from_utf8_lossy(&dry.stdout).into_owned();
    Found(dry.status.success() && shown.contains("stepped by +")).or_fail(|| format!("a dry run shows {shown}"))?;
    let after = kernel_clock_state().map_err(text)?;
    let is_same = |a: &KernelClockState, b: &KernelClockState| (a.frequency, a.flags) == (b.frequency, b.flags);
    Found(is_same(&before, &after) && kernel_error() < -1e9)
        .or_fail(|| format!("a dry run has changed {before:?} to {after:?}"))
}

/// Until the kernel's clock is that close to the truth [s].
fn settle() -> Result<f64, String> {
    let begin = Instant::now();
    while kernel_error().abs() > APART_MAX {
        Found(begin.elapsed().as_secs() < 60).or_fail(|| {
            let log = fs::read_to_string(STATE_LOG).unwrap_or_default();
            format!("the kernel's clock is {:.0} ns off after a minute: {log}", kernel_error())
        })?;
        thread::sleep(Duration::from_millis(100));
    }
    let settled = begin.elapsed().as_secs_f64();
    // The slew falls off.
    thread::sleep(Duration::from_secs(20));
    Ok(settled)
}

fn judge(before: &mut Watched, with: &mut Watched) -> Outcome {
    let apart = largest(&with.apart);
    figure("steer.apart_largest_ns", apart);
    figure("steer.apart_median_ns", median(&mut with.apart));
    Found(apart <= APART_MAX).or_fail(|| format!("the kernel's clock is {apart:.0} ns from the page"))?;
    same_page(("with", before, with))
}

/// The page is as good as before, and the kernel's clock no worse than it claims.
fn same_page((name, before, with): (&str, &mut Watched, &mut Watched)) -> Outcome {
    for (name, seen) in [("before", &*before), (name, &*with)] {
        figure(&format!("steer.page_error_largest_{name}_ns"), largest(&seen.errors));
        figure(&format!("steer.interval_error_largest_{name}_ns"), largest(&seen.intervals));
    }
    let [was, is] = [&mut *before, &mut *with].map(|seen| (median(&mut seen.errors), median(&mut seen.intervals)));
    figure("steer.page_error_median_before_ns", was.0);
    figure(&format!("steer.page_error_median_{name}_ns"), is.0);
    figure("steer.interval_error_median_before_ns", was.1);
    figure(&format!("steer.interval_error_median_{name}_ns"), is.1);
    Found(before.outside + with.outside == 0).or_fail(|| "the page is wrong by more than its bound".to_owned())?;
    Found(with.unclaimed == 0).or_fail(|| "the kernel's clock is wrong by more than it claims".to_owned())?;
    // Nothing flows back: the page is as good as before, but for what it does by itself.
    Found(is.0 <= 1.5 * was.0 + UNCHANGED && is.1 <= 1.5 * was.1 + UNCHANGED)
        .or_fail(|| format!("errors of the page and of its intervals have become {is:?} ns, after {was:?}"))
}

/// Another program changes the frequency: it is reported, and what it did stays.
fn a_second_program_is_left_alone(running: &mut Running) -> Outcome {
    const FREQUENCY: i64 = 655_360;
    let other = Command::new("adjtimex").args(["-q", "-f", &FREQUENCY.to_string()]).status().map_err(text)?;
    Found(other.success()).or_fail(|| "the second program was refused".to_owned())?;
    let code = running.code_within(10)?;
    let log = fs::read_to_string(STATE_LOG).map_err(text)?;
    Found(code == 3 && log.contains("it changed the frequency")).or_fail(|| format!("exit code {code}: {log}"))?;
    let left = kernel_clock_state().map_err(text)?.frequency.steps();
    Found(left == FREQUENCY).or_fail(|| format!("its frequency of {FREQUENCY} has become {left}"))
}

fn it_ends_without_a_slew() -> Outcome {
    let mut running = Running::start()?;
    thread::sleep(Duration::from_secs(10));
    let stopped = Command::new("kill").arg(running.0.id().to_string()).status().map_err(text)?;
    Found(stopped.success() && running.code_within(10)? == 0).or_fail(|| "SIGTERM does not end it well".to_owned())?;
    let once = run(program(&["--once"]))?;
    Found(once.status.success()).or_fail(|| String::from_utf8_lossy(&once.stderr).into_owned())?;
    let left = kernel_clock_state().map_err(text)?.frequency.as_rate().as_ppm();
    figure("steer.frequency_left_ppm", left);
    // The truth gains 40 ppm on the kernel's own rate.
    Found((left - GAIN as f64).abs() < 1.0).or_fail(|| format!("{left} ppm are left at the end"))
}

/// Another program sets the kernel's clock: it is reported, the step stays, and the page does not notice.
fn a_step_is_left_alone(clock: &Clock, before: &mut Watched) -> Outcome {
    let mut running = Running::start()?;
    thread::sleep(Duration::from_secs(10));
    let ahead = truth(raw_clock()) / 1_000_000_000 + 3;
    let set = Command::new("date").args(["-s", &format!("@{ahead}")]).stdout(Stdio::null()).status().map_err(text)?;
    Found(set.success()).or_fail(|| "date does not set the clock".to_owned())?;
    let code = running.code_within(10)?;
    let log = fs::read_to_string(STATE_LOG).map_err(text)?;
    Found(code == 3 && log.contains("it set the clock")).or_fail(|| format!("exit code {code}: {log}"))?;
    let mut stepped = watch(clock, 10)?;
    let off = kernel_error();
    Found(off > 1.5e9).or_fail(|| format!("of a step by 2 to 3 s {off:.0} ns are left"))?;
    same_page(("after_a_step", before, &mut stepped))
}

/// What a restore an hour later shows to a guest: its clocks and its counter go on, the VMClock has another mark, and
/// the servers are an hour ahead.
fn a_restored_guest_is_stepped(clock: &Clock) -> Outcome {
    const AN_HOUR: i64 = 3600;
    fs::write(CONFIGURATION, "step_at_start = \"1 s\"\n").map_err(text)?;
    let running = Running::start()?;
    settle()?;
    let before = clock.stamp();
    Found(clock.watches_machine() && clock.at(before).is_ok()).or_fail(|| "the machine is not watched".to_owned())?;
    let host = fs::File::options().write(true).open(VM_CLOCK).map_err(text)?;
    be_away(AN_HOUR)?;
    host.write_all_at(&[2], MARKER).map_err(text)?;
    let refused = clock.now();
    Found(refused.is_err()).or_fail(|| format!("a time from before the restore: {refused:?}"))?;
    figure("steer.settled_after_a_restore_s", settle()?);
    let log = fs::read_to_string(STATE_LOG).map_err(text)?;
    let steps = log.split("stepped by ").skip(1).filter_map(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    let by_an_hour = steps.filter(|step| (step - AN_HOUR as f64).abs() < 1.0).count();
    Found(log.matches("restored, migrated or copied").count() == 1 && by_an_hour == 1)
        .or_fail(|| format!("no step, or more than one: {log}"))?;
    let old = clock.at(before);
    Found(old == Err(ReadError::OtherEpoch)).or_fail(|| format!("a stamp from before the restore has {old:?}"))?;
    let seen = watch(clock, 10)?;
    drop(running);
    let apart = largest(&seen.apart);
    figure("steer.apart_largest_after_a_restore_ns", apart);
    Found(seen.outside == 0 && seen.unclaimed == 0 && apart <= APART_MAX)
        .or_fail(|| format!("{} outside, {} unclaimed, {apart:.0} ns from the page", seen.outside, seen.unclaimed))
}

/// The server and the truth are ahead from now on.
fn be_away(seconds: i64) -> Outcome {
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(text)?;
    socket.set_read_timeout(Some(Duration::from_secs(10))).map_err(text)?;
    socket.send_to(&seconds.to_le_bytes(), ("127.0.0.1", SERVER + 1)).map_err(text)?;
    socket.recv(&mut [0; 8]).map_err(text)?;
    AWAY.store(seconds, Ordering::Relaxed);
    Ok(())
}

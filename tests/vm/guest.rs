//! What runs inside the virtual machine: each check of the module `ffcounter` prints `PASS name` or `FAIL name: why`,
//! and figures as `FIGURE name value`. `tests/vm/run` builds it, boots it and counts.
//!
//!     guest counters CLOCKSOURCE SECONDS TSC_HERTZ
//!     guest concurrent | switch | paused SECONDS | unload MODULE | access | pairs | stamps | stamped CONTROL COUNT | said CONTROL TEXT | hardware SECONDS NOISE-NS MOST [WHEN] | followed SECONDS NOISE-NS MOST [WHEN] | referenced SECONDS NOISE-NS MOST [WHEN] | pair SECONDS NOISE-NS MOST | suspend | latency | steer | serve | clock PORT | ask SERVER GUEST SECONDS | clocks MEMORY | watch MEMORY | offset MEMORY | restored
//!     guest found CLOCKSOURCE BITS HERTZ SECONDS
//!     guest restores GUEST SERVER-PORT COUNT READINGS-EACH
//!     guest pulses RAW STAMPED NOISE-NS

use ffclock_counter::ffcounter::{Ffcounter, FfcounterError, ModuleCounter, PacketStamp, Sample, layout};
use ffclock_counter::{CounterId, read_ordered};
use std::fs;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[path = "clock.rs"]
mod clock;
#[path = "clocks.rs"]
mod clocks;
#[path = "epochs.rs"]
mod epochs;
#[path = "found.rs"]
mod found;
#[path = "hardware.rs"]
mod hardware;
#[path = "machine.rs"]
mod machine;
#[path = "network.rs"]
mod network;
#[path = "probe.rs"]
mod probe;
#[path = "pulses.rs"]
mod pulses;
#[path = "restores.rs"]
mod restores;
#[path = "steer.rs"]
mod steer;

pub(crate) type Outcome = Result<(), String>;

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["counters", clocksource, seconds, hertz] => counters(clocksource, number(seconds), number(hertz)),
        ["found", clocksource, width, hertz, seconds] => found::active(clocksource, [width, hertz, seconds]),
        ["concurrent"] => concurrent(),
        ["switch"] => epochs::switch(),
        ["paused", seconds] => epochs::paused(number(seconds)),
        ["unload", module] => unload(module),
        ["access"] => access(),
        ["probe"] => return if Ffcounter::open().is_ok() { ExitCode::SUCCESS } else { ExitCode::from(3) },
        ["pairs"] => pairs(),
        ["stamps"] => network::stamps(),
        ["stamped", control, least] => network::stamped(control, number(least)),
        ["said", control, wanted] => network::said(control, wanted),
        ["hardware", seconds, noise, most, ..] => {
            hardware::error(number(seconds), [number(noise), number(most)], hardware::Truth::SystemClock)
        }
        ["followed", seconds, noise, most, ..] => {
            hardware::error(number(seconds), [number(noise), number(most)], hardware::Truth::ClockOf(1))
        }
        ["referenced", seconds, noise, most, ..] => {
            hardware::error(number(seconds), [number(noise), number(most)], hardware::Truth::ClockOf(0))
        }
        ["pair", seconds, noise, most] => hardware::pair(number(seconds), [number(noise), number(most)]),
        ["pulses", raw, stamped, noise] => pulses::compare([raw, stamped], number(noise)),
        ["suspend"] => suspend(),
        ["latency"] => latency(),
        ["steer"] => steer::steer(),
        ["serve"] => steer::serve(),
        ["clock", port] => clock::answer_time(port),
        ["ask", server, guest, seconds] => clock::ask(server, guest, number(seconds)),
        ["restored"] => machine::follow_restores(),
        ["clocks", memory] => clocks::answer(memory),
        ["restores", guest, port, count, each] => {
            return end_quietly(restores::follow(guest, port, [number(count) as usize, number(each) as usize]));
        }
        ["watch", memory] => return end_quietly(clocks::watch(memory)),
        ["offset", memory] => return end_quietly(probe::offset(memory)),
        _ => Err("unknown words".to_owned()),
    };
    let name = words.join(" ");
    match outcome {
        Ok(()) => println!("PASS {name}"),
        Err(why) => {
            println!("FAIL {name}: {why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The output is a table.
fn end_quietly(outcome: Outcome) -> ExitCode {
    outcome.map_or_else(
        |why| {
            eprintln!("{why}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// What was found, to be judged.
pub(crate) struct Found(pub(crate) bool);

impl Found {
    /// The check goes on where it is true.
    pub(crate) fn or_fail(self, why: impl FnOnce() -> String) -> Outcome {
        if self.0 { Ok(()) } else { Err(why()) }
    }
}

pub(crate) fn figure(name: &str, value: f64) {
    println!("FIGURE {name} {value:.3}");
}

pub(crate) fn open() -> Result<Ffcounter, String> {
    Ffcounter::open().map_err(|error| error.to_string())
}

pub(crate) fn read(device: &Ffcounter, counter: ModuleCounter) -> Result<Sample, String> {
    device.read(counter).map_err(|error| error.to_string())
}

pub(crate) fn choose_clocksource(name: &str) -> Outcome {
    fs::write(CLOCKSOURCE, name).map_err(|error| format!("{name}: {error}"))?;
    let now = fs::read_to_string(CLOCKSOURCE).map_err(|error| error.to_string())?;
    Found(now.trim() == name).or_fail(|| format!("the kernel keeps {} and not {name}", now.trim()))
}

/// The hardware counter of a clocksource.
fn underlying(clocksource: &str) -> ModuleCounter {
    match clocksource {
        "tsc" => ModuleCounter::Tsc,
        "hpet" => ModuleCounter::Hpet,
        _ => ModuleCounter::AcpiPm,
    }
}

/// One counter followed for a while.
struct Followed {
    counter: ModuleCounter,
    first: Sample,
    last: Sample,
    tsc: u64,
}

/// With one clocksource active, every counter goes on, never backwards, at its rate, in one epoch. The truth is the
/// TSC, which the emulator makes of the same virtual time as the other counters, and which never wraps; its true rate
/// is an argument, since the guest's kernel only measures it.
fn counters(clocksource: &str, seconds: f64, hertz: f64) -> Outcome {
    let device = open()?;
    let before = device.read(ModuleCounter::Active).ok();
    choose_clocksource(clocksource)?;
    let active = read(&device, ModuleCounter::Active)?;
    let expected = u32::from(underlying(clocksource).code());
    Found(active.underlying == expected)
        .or_fail(|| format!("the active counter is {} and not {expected}", active.underlying))?;
    if let Some(before) = before.filter(|before| before.underlying != expected) {
        Found(before.epoch != active.epoch).or_fail(|| "another clocksource and the same epoch".to_owned())?;
    }
    let mut followed = Vec::new();
    for (counter, _) in device.counters() {
        let tsc = tsc();
        let first = read(&device, counter)?;
        followed.push(Followed { counter, first, last: first, tsc });
    }
    Found(followed.len() >= 5).or_fail(|| format!("only {} counters were found", followed.len()))?;
    let end = tsc() + (seconds * hertz) as u64;
    while tsc() < end {
        // Longer than half a turn of the ACPI timer, and nothing to do in between: the machine is idle and without
        // ticks.
        thread::sleep(Duration::from_millis(3100));
        for one in &mut followed {
            follow(&device, one)?;
        }
    }
    followed.iter().try_for_each(|one| judge_rate(&device, one, hertz))
}

fn follow(device: &Ffcounter, one: &mut Followed) -> Outcome {
    for _ in 0..20 {
        let now = read(device, one.counter)?;
        Found(now.epoch == one.first.epoch).or_fail(|| format!("{}: the epoch ended", one.counter))?;
        Found(now.value >= one.last.value)
            .or_fail(|| format!("{}: backwards from {} to {}", one.counter, one.last.value, now.value))?;
        one.last = now;
    }
    Ok(())
}

/// The kernel rounds the frequency of the TSC to 1 kHz, which is 1 ppm of 1 GHz.
const RATE_TOLERANCE_PPM: f64 = 2.0;

fn judge_rate(device: &Ffcounter, one: &Followed, tsc_hertz: f64) -> Outcome {
    let before = tsc();
    let now = read(device, one.counter)?;
    let after = tsc();
    let elapsed = ((before - one.tsc) as f64 + (after - before) as f64 / 2.0) / tsc_hertz;
    let counted = (now.value - one.first.value) as f64 / now.hertz();
    let off = (counted / elapsed - 1.0) * 1e6;
    let turns = (now.value - one.first.value) as f64 / 2f64.powi(i32::from(now.width));
    println!(
        "FIGURE {}.rate_error_ppm {off:.3} over {elapsed:.1} s, {turns:.2} turns of {} bits",
        one.counter, now.width
    );
    Found(off.abs() < RATE_TOLERANCE_PPM)
        .or_fail(|| format!("{}: {off:.1} ppm off over {elapsed:.1} s", one.counter))?;
    let is_narrow = now.width == 24;
    Found(!is_narrow || turns >= elapsed / 4.8)
        .or_fail(|| format!("{}: {turns:.2} turns in {elapsed:.1} s", one.counter))
}

pub(crate) fn tsc() -> u64 {
    read_ordered(CounterId::CPU).raw()
}

/// Readers on every CPU hand each other the largest value seen: no later reading may be smaller.
fn concurrent() -> Outcome {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    Found(cpus >= 2).or_fail(|| format!("{cpus} CPU is not enough"))?;
    let counters: Vec<ModuleCounter> = open()?.counters().into_iter().map(|(counter, _)| counter).collect();
    for counter in counters {
        let seen = AtomicU64::new(0);
        let epochs = AtomicU64::new(u64::MAX);
        let outcomes: Vec<Outcome> = thread::scope(|scope| {
            let readers: Vec<_> = (0..cpus).map(|_| scope.spawn(|| hand_over(counter, &seen, &epochs))).collect();
            readers
                .into_iter()
                .map(|reader| reader.join().unwrap_or_else(|_| Err("a reader panicked".to_owned())))
                .collect()
        });
        outcomes.into_iter().collect::<Outcome>()?;
    }
    Ok(())
}

fn hand_over(counter: ModuleCounter, seen: &AtomicU64, epochs: &AtomicU64) -> Outcome {
    let device = open()?;
    let page = device.page(counter).ok();
    for round in 0..20_000 {
        let before = seen.load(Ordering::Acquire);
        let by_page = page.as_ref().filter(|_| round % 2 == 0).and_then(|page| page.read());
        let (value, epoch) = match by_page {
            Some(reading) => (reading.counter.raw(), reading.epoch),
            None => read(&device, counter).map(|sample| (sample.value, sample.epoch))?,
        };
        let known = epochs
            .compare_exchange(u64::MAX, epoch.into(), Ordering::AcqRel, Ordering::Acquire)
            .unwrap_or_else(|known| known);
        Found(known == u64::MAX || known == u64::from(epoch)).or_fail(|| format!("{counter}: the epoch ended"))?;
        Found(value >= before).or_fail(|| format!("{counter}: {value} after {before} on another CPU"))?;
        seen.fetch_max(value, Ordering::AcqRel);
    }
    Ok(())
}

/// A process that has the device open, or only its page, keeps the module in place.
fn unload(module: &str) -> Outcome {
    let remove = || Command::new("rmmod").arg("ffcounter").output().is_ok_and(|output| output.status.success());
    let device = open()?;
    let page = device.page(ModuleCounter::Tsc).map_err(|error| error.to_string())?;
    Found(!remove()).or_fail(|| "removed while open".to_owned())?;
    drop(device);
    Found(!remove()).or_fail(|| "removed while mapped".to_owned())?;
    let reading = page.read().ok_or("the page of the TSC is closed")?;
    drop(page);
    Found(remove()).or_fail(|| "not removed although it is unused".to_owned())?;
    let missing = matches!(Ffcounter::open(), Err(FfcounterError::Missing(_)));
    Found(missing).or_fail(|| "the device outlives the module".to_owned())?;
    thread::sleep(Duration::from_millis(1100));
    let inserted = Command::new("insmod").arg(module).status().is_ok_and(|status| status.success());
    Found(inserted).or_fail(|| "not inserted again".to_owned())?;
    let again = read(&open()?, ModuleCounter::Tsc)?;
    Found(again.epoch > reading.epoch)
        .or_fail(|| format!("loaded again, and epoch {} after {}", again.epoch, reading.epoch))
}

/// Ordinary users read if they are in the group of the device.
fn access() -> Outcome {
    const UNPRIVILEGED: u32 = 65534;
    let probe = || {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        Command::new(own).arg("probe").uid(UNPRIVILEGED).gid(UNPRIVILEGED).status().map_err(|error| error.to_string())
    };
    Found(probe()?.code() == Some(3)).or_fail(|| "any user may open the device".to_owned())?;
    std::os::unix::fs::chown("/dev/ffcounter", None, Some(UNPRIVILEGED)).map_err(|error| error.to_string())?;
    Found(probe()?.success()).or_fail(|| "the group may not open the device".to_owned())?;
    Ok(())
}

/// A pair's clocks lie between readings of the same clocks around it, and successive pairs agree on the rate.
fn pairs() -> Outcome {
    let device = open()?;
    let raw = || read_ordered(CounterId::MonotonicRaw).raw() as i64;
    for (counter, _) in device.counters() {
        let (mut widest, mut first) = (0.0_f64, None);
        for _ in 0..200 {
            let before = raw();
            let pair = device.read_paired(counter).map_err(|error| error.to_string())?;
            let after = raw();
            Found((before..=after).contains(&pair.monotonic_raw_ns))
                .or_fail(|| format!("{counter}: {} is not within {before}..{after}", pair.monotonic_raw_ns))?;
            Found(pair.value_after >= pair.sample.value).or_fail(|| format!("{counter}: a pair runs backwards"))?;
            widest = widest.max((pair.value_after - pair.sample.value) as f64 / pair.sample.hertz());
            first.get_or_insert(pair);
            thread::sleep(Duration::from_millis(2));
        }
        let (Some(first), last) = (first, device.read_paired(counter).map_err(|error| error.to_string())?) else {
            continue;
        };
        let counted = (last.sample.value - first.sample.value) as f64 / last.sample.hertz();
        let passed = (last.monotonic_raw_ns - first.monotonic_raw_ns) as f64 * 1e-9;
        Found((counted - passed).abs() < 2.0 * widest + passed * 1e-3)
            .or_fail(|| format!("{counter}: {counted} s against {passed} s"))?;
        figure(&format!("{counter}.pair_width_max_us"), widest * 1e6);
    }
    Ok(())
}

/// Into suspend to memory and out again, woken by the alarm of the real-time clock: every counter has a new epoch, and
/// a thread that reads all the time sees errors or values of one epoch in order, nothing else.
fn suspend() -> Outcome {
    let device = open()?;
    let before = device.counters();
    let is_over = AtomicBool::new(false);
    let (slept, watched) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch_suspend(&is_over));
        thread::sleep(Duration::from_millis(100));
        let slept = sleep_and_wake();
        thread::sleep(Duration::from_millis(100));
        is_over.store(true, Ordering::Release);
        (slept, watcher.join().unwrap_or_else(|_| Err("the reader panicked".to_owned())))
    });
    slept?;
    watched?;
    for (counter, before) in before {
        let after = read(&device, counter)?;
        Found(after.epoch > before.epoch)
            .or_fail(|| format!("{counter}: still epoch {} after a suspend", before.epoch))?;
    }
    let page = device.page(ModuleCounter::Tsc).map_err(|error| error.to_string())?;
    let reading = page.read().ok_or("the page stays closed")?;
    Found(reading.epoch == read(&device, ModuleCounter::Tsc)?.epoch)
        .or_fail(|| "the page is of another epoch".to_owned())
}

fn sleep_and_wake() -> Outcome {
    let alarm = "/sys/class/rtc/rtc0/wakealarm";
    fs::write(alarm, "0").and_then(|()| fs::write(alarm, "+3")).map_err(|error| format!("{alarm}: {error}"))?;
    let begin = Instant::now();
    fs::write("/sys/power/state", "mem").map_err(|error| format!("suspend: {error}"))?;
    println!(
        "FIGURE suspend.monotonic_s {:.3} (the kernel's clock stands still meanwhile)",
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

fn watch_suspend(is_over: &AtomicBool) -> Outcome {
    let device = open()?;
    let mut last = read(&device, ModuleCounter::AcpiPm)?;
    let mut refused = 0;
    while !is_over.load(Ordering::Acquire) {
        match device.read(ModuleCounter::AcpiPm) {
            Err(FfcounterError::Asleep(_)) => refused += 1,
            Err(error) => return Err(error.to_string()),
            Ok(now) => {
                let is_in_order = now.epoch > last.epoch || (now.epoch == last.epoch && now.value >= last.value);
                Found(is_in_order).or_fail(|| format!("{now:?} after {last:?}"))?;
                last = now;
            }
        }
    }
    println!("FIGURE suspend.readings_refused {refused}");
    Ok(())
}

/// What calls cost [ns]: of each the least mean over a few calls, one call in turn with the others so that a busy
/// machine affects all equally.
fn costs<const N: usize>(mut calls: [&mut dyn FnMut(); N]) -> [f64; N] {
    const CALLS: u32 = 300;
    let mut least = [f64::INFINITY; N];
    for _ in 0..400 {
        for (call, least) in calls.iter_mut().zip(&mut least) {
            let begin = Instant::now();
            for _ in 0..CALLS {
                call();
            }
            *least = least.min(begin.elapsed().as_nanos() as f64 / f64::from(CALLS));
        }
    }
    least
}

/// What readings cost, beside the same machine's empty system call and vDSO. Figures alone: nothing is judged by speed.
fn latency() -> Outcome {
    choose_clocksource("tsc")?;
    let device = open()?;
    let null = fs::File::open("/dev/null").map_err(|error| error.to_string())?;
    // Whether it is a terminal is asked by an ioctl, which the driver of /dev/null refuses at once.
    let mut refuse = || _ = std::hint::black_box(null.is_terminal());
    let mut empty = || _ = std::os::unix::process::parent_id();
    let [empty_only, refused] = costs([&mut empty, &mut refuse]);
    println!(
        "FIGURE ioctl_that_does_nothing_ns {refused:.1}: empty system call {empty_only:.1}, ratio {:.3}",
        refused / empty_only
    );
    for (counter, sample) in device.counters() {
        let mut empty = || _ = std::os::unix::process::parent_id();
        let mut ioctl = || _ = std::hint::black_box(device.read(counter));
        let [empty, ioctl, refused] = costs([&mut empty, &mut ioctl, &mut refuse]);
        let (hardware, interface) = within_kernel(&device, counter)?;
        println!(
            "FIGURE {counter}.ioctl_ns {ioctl:.1}: empty system call {empty:.1}, register {hardware:.1}, interface {interface:.1}, \
             ratio {:.3}, to an ioctl that does nothing and the register {:.3}",
            ioctl / (1.2 * empty + hardware),
            ioctl / (refused + hardware)
        );
        if sample.has(layout::PAGE)
            && let Ok(page) = device.page(counter)
        {
            let mut by_page = || _ = std::hint::black_box(page.read());
            let mut vdso = || _ = std::hint::black_box(read_ordered(CounterId::MonotonicRaw));
            let [by_page, vdso] = costs([&mut by_page, &mut vdso]);
            println!("FIGURE {counter}.page_ns {by_page:.1}: vDSO {vdso:.1}, ratio {:.3}", by_page / vdso);
        }
    }
    Ok(())
}

/// The register alone, and what the interface adds to it, medians [ns].
fn within_kernel(device: &Ffcounter, counter: ModuleCounter) -> Result<(f64, f64), String> {
    let nanos = 1e9 / read(device, ModuleCounter::Tsc)?.hertz();
    let seen = (0..2000).filter_map(|_| device.measure_latency(counter).ok());
    let (mut hardware, mut interface): (Vec<f64>, Vec<f64>) = seen
        .map(|latency| {
            let between = |from: usize| latency.tsc[from + 1].wrapping_sub(latency.tsc[from]) as f64 * nanos;
            (between(1) - between(0), between(2) - between(1))
        })
        .unzip();
    Ok((median(&mut hardware), median(&mut interface)))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Room for as many stamps as a ring holds, and a few more.
pub(crate) fn room() -> Vec<PacketStamp> {
    vec![PacketStamp::EMPTY; 300]
}

//! The load in soft interrupts takes what is asked, from every program, and ends with its process.

use crate::common::{FFCLOCK_LAB, has_namespaces, json, judge, run_four};
use ffclock_theta_live::raise_priority;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One such load at a time.
static MACHINE: Mutex<()> = Mutex::new(());

fn load(level: &str, length: &str) -> Command {
    let mut command = Command::new(FFCLOCK_LAB);
    command.args(["--json", "theta", "load", "softirq", "--level", level, "--for", length]);
    command
}

/// The machine for oneself, where it can be loaded. Any other refusal than those of the machine is a failure.
fn machine() -> Option<MutexGuard<'static, ()>> {
    let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let output = alone("5", "20 ms");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_ours = ["cargo feature `ebpf`", "does not describe its types", "this kernel has no", "it takes root"];
    if is_ours.iter().any(|reason| complaint.contains(reason)) {
        println!("SKIP: {}", complaint.trim());
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    Some(machine)
}

/// A load to its end, once no other test on this machine has one.
fn alone(level: &str, length: &str) -> Output {
    let begun = Instant::now();
    loop {
        let output = load(level, length).output().expect("works in a test");
        if !is_second(&output) || begun.elapsed() > Duration::from_secs(120) {
            return output;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn is_second(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).contains("another such load runs")
}

/// What a program that is always busy finds out about its processor.
struct Watched {
    /// The share of the time that it misses for less than two slices each time, as interrupts take it. What another
    /// program had instead goes on for longer, and is left out.
    missed: f64,
    /// The share of the time that the kernel counts as that of soft interrupts.
    counted: f64,
}

fn watched_for(length: Duration) -> Watched {
    let watch = move || {
        let cpu = ffclock_counter::allowed_cpus().expect("Linux").first().copied().expect("it runs on one");
        ffclock_counter::pin_to(cpu).expect("it is allowed to");
        raise_priority(Some(50));
        let (begun, mut seen, mut missed) = (Instant::now(), Duration::ZERO, Duration::ZERO);
        let (mut before, (soft, all)) = (begun, counted(cpu));
        while begun.elapsed() < length {
            let now = Instant::now();
            let gap = now - before;
            before = now;
            if gap < Duration::from_millis(2) {
                seen += gap;
                missed += Some(gap).filter(|gap| *gap > Duration::from_micros(5)).unwrap_or_default();
            }
        }
        let (soft_then, all_then) = counted(cpu);
        let counted = (soft_then - soft) / (all_then - all).max(1.0);
        Watched { missed: missed.as_secs_f64() / seen.as_secs_f64(), counted }
    };
    std::thread::spawn(watch).join().expect("works in a test")
}

/// Of a processor until now: soft interrupts, and everything.
fn counted(cpu: usize) -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/stat").expect("Linux");
    let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} "))).expect("it is online");
    let times: Vec<f64> = line.split_whitespace().filter_map(|time| time.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user and nice.
    (times[6], times[..8].iter().sum())
}

/// Waits for a share of the time that is missed.
fn wait_for(wanted: impl Fn(f64) -> bool) {
    let begun = Instant::now();
    let mut missed = f64::NAN;
    while !wanted(missed) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{missed} is missed");
        missed = watched_for(Duration::from_millis(100)).missed;
    }
}

/// Its own count, what a program of real-time priority misses, and what the kernel counts.
#[test]
fn soft_interrupts_take_their_share_from_every_program() {
    let Some(_machine) = machine() else { return };
    let calm = watched_for(Duration::from_millis(500));
    for (level, percent) in [("20", 20.0), ("60", 60.0), ("jumps:10..70", 40.0)] {
        let running = std::thread::spawn(move || alone(level, "3 s"));
        wait_for(|missed| missed > percent / 250.0);
        let watched = watched_for(Duration::from_millis(1400));
        let [missed, counted] =
            [watched.missed - calm.missed, watched.counted - calm.counted].map(|share| 100.0 * share);
        let output = running.join().expect("works in a test");
        assert!(output.status.success(), "{output:?}");
        let done = json(&output);
        let busy = done["busy_percent"].as_f64().expect("it is counted");
        println!(
            "{level}: {busy:.1} % by its own count, {missed:.1} % missed by a program, {counted:.1} % in /proc/stat"
        );
        assert!((percent * 0.6..percent * 1.4).contains(&busy), "{level}: {done}");
        for independent in [missed, counted] {
            assert!((percent * 0.5..percent * 1.6).contains(&independent), "{level}: {missed}, {counted} and {done}");
        }
    }
}

/// A load that ends with the test, also with one that fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// It can do nothing more about it when it is killed: the kernel must.
#[test]
fn nothing_burns_after_a_kill_and_no_second_load_beside_the_first() {
    let Some(_machine) = machine() else { return };
    let mut running =
        Running(load("70", "60 s").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("works in a test"));
    wait_for(|missed| missed > 0.5);
    let second = load("5", "20 ms").output().expect("works in a test");
    running.0.kill().expect("works in a test");
    running.0.wait().expect("works in a test");
    assert!(!second.status.success() && is_second(&second), "{second:?}");
    wait_for(|missed| missed < 0.3);
    assert!(alone("5", "20 ms").status.success(), "the next one may begin");
}

#[test]
fn four_hosts_have_one_load_of_their_processors() {
    if !has_namespaces() {
        return;
    }
    let Some(_machine) = machine() else { return };
    let (output, place) = run_four("softirq", 50, &["--load", "softirq=jumps:5..20"]);
    assert!(output.status.success(), "{output:?}");
    judge(&json(&output), &place.log(), (4, 50));
}

/// Before anything is started, and not by another load in its stead.
#[test]
fn a_run_that_cannot_be_loaded_does_not_begin() {
    let (output, place) = run_four("softirq-much", 50, &["--load", "softirq=96"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("up to 95 %"), "{output:?}");
    assert!(!output.status.success() && !std::path::Path::new(&place.log()).exists(), "{output:?}");
    let (output, place) = run_four("softirq-twice", 50, &["--load", "softirq=10", "--load", "softirq=20"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is one such load"), "{output:?}");
    assert!(!output.status.success() && !std::path::Path::new(&place.log()).exists(), "{output:?}");
    if cfg!(not(feature = "ebpf")) {
        let (output, _place) = run_four("softirq-without", 50, &["--load", "softirq=20"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("cargo feature `ebpf`"), "{output:?}");
        assert!(!output.status.success(), "{output:?}");
    }
}

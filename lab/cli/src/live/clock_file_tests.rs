//! The interposer's discipline against the arithmetic of kernel/time/ntp.c. What comes by itself at later seconds is in
//! the file already, so no test waits.

use super::*;
use crate::live::interposer::{self, OwnClock};
use crate::live::oscillator_file::{OscillatorStart, SampledOscillator};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const SECOND: i64 = 1_000_000_000;
const RAW_NS: i64 = 1_000 * SECOND;
const SKEW_PPM: f64 = 40.0;
/// The seconds of the discipline are those of the clock itself, shorter by what it gains in them. A test that counts
/// seconds of the raw counter meets them this well.
const SECONDS_DIFFER_NS: f64 = 1000.0;

struct Bench {
    directory: PathBuf,
    library: PathBuf,
    own: OwnClock,
}

/// The program's raw counter and its clock before and after it did something [ns].
#[derive(Debug)]
struct Done {
    before: [i64; 2],
    after: [i64; 2],
}

impl Bench {
    fn set_up(name: &str) -> Option<Bench> {
        let directory = std::env::temp_dir().join(format!("ffclock-live-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let own = OwnClock::within(&directory);
        let origin = OscillatorStart { host_ns: host_now_ns(), raw_ns: RAW_NS };
        let start = ClockStart { raw_ns: RAW_NS, shown_ns: origin.host_ns, frequency: 0.0 };
        let library = own.interpose(SKEW_PPM, origin, start);
        let library = library.map_err(|failure| println!("SKIP: {failure}")).ok()?;
        interposer::compile(&directory, ("probe", include_str!("probe.c")), &[]).unwrap();
        Some(Bench { directory, library, own })
    }

    fn program(&self, words: &[&str]) -> Vec<String> {
        [self.directory.join("probe").display().to_string()]
            .into_iter()
            .chain(words.iter().map(|w| (*w).to_owned()))
            .collect()
    }

    fn numbers(&self, words: &[&str]) -> Vec<i64> {
        numbers(&self.own.command(&self.library, self.program(words)))
    }

    fn act(&self, words: &[&str]) -> Done {
        let numbers = self.numbers(words);
        Done { before: [numbers[0], numbers[1]], after: [numbers[2], numbers[3]] }
    }

    /// How far the clock gains on the raw counter between two readings of it [ns].
    fn gain(&self, from_raw: i64, to_raw: i64) -> i64 {
        let clock = OutsideClock::open(&self.own.clock).unwrap();
        clock.shown_at(to_raw).unwrap() - clock.shown_at(from_raw).unwrap() - (to_raw - from_raw)
    }

    /// The raw counter at the begin of the clock's next second, as `after` has it.
    fn next_second(&self, done: &Done) -> i64 {
        done.after[0] + SECOND - done.after[1] % SECOND
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn numbers(command: &[String]) -> Vec<i64> {
    let output = Command::new(&command[0]).args(&command[1..]).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

fn host_now_ns() -> i64 {
    i64::try_from(ffclock_sys::system_utc_now().since_origin().as_nanos()).unwrap()
}

#[track_caller]
fn assert_near(found: i64, wanted: f64, within: f64) {
    assert!((found as f64 - wanted).abs() <= within, "{found} ns in place of {wanted} ns");
}

#[test]
fn a_program_has_a_clock_and_a_raw_counter_of_its_own() {
    let Some(bench) = Bench::set_up("own") else { return };
    let done = bench.act(&[]);
    let oscillator = SampledOscillator::read(&bench.own.oscillator).unwrap();
    let now = oscillator.raw_at(host_now_ns());
    assert!(done.before[0] >= RAW_NS && done.after[0] <= now && now < done.after[0] + 2 * SECOND, "{done:?} {now}");
    // The monitor's own error: it sees what the program reads, but for the time between the program's two readings.
    let clock = OutsideClock::open(&bench.own.clock).unwrap();
    let seen = done.after[1] - clock.shown_at(done.after[0]).unwrap();
    assert!((0..200).contains(&seen), "{seen} ns");
}

#[test]
fn frequency_and_tick_act_at_once_and_for_good() {
    let Some(bench) = Bench::set_up("frequency") else { return };
    let done = bench.act(&["frequency", &(50 << 16).to_string()]);
    assert_near(bench.gain(done.after[0], done.after[0] + 1000 * SECOND), 50e-6 * 1e12, 2.0);
    let done = bench.act(&["tick", "10001"]);
    assert_near(bench.gain(done.after[0], done.after[0] + 1000 * SECOND), 150e-6 * 1e12, 2.0);
}

#[test]
fn a_frequency_that_was_left_in_the_clock_holds_from_its_begin() {
    let Some(bench) = Bench::set_up("left") else { return };
    fs::remove_file(&bench.own.clock).unwrap();
    create(&bench.own.clock, ClockStart { raw_ns: RAW_NS, shown_ns: host_now_ns(), frequency: -SKEW_PPM * 1e-6 })
        .unwrap();
    assert_near(bench.gain(RAW_NS, RAW_NS + 1000 * SECOND), -SKEW_PPM * 1e6, 2.0);
    // The program finds it where the kernel would have it.
    let found = bench.numbers(&["host"])[2];
    assert_eq!(found, (-SKEW_PPM * 65536.0).round() as i64);
}

#[test]
fn a_step_moves_the_clock_and_leaves_the_past_as_it_was() {
    let Some(bench) = Bench::set_up("step") else { return };
    let done = bench.act(&["step", "-250000000"]);
    let moved = done.after[1] - done.before[1] - (done.after[0] - done.before[0]);
    assert_near(moved, -0.25e9, 100_000.0);
    assert_eq!(bench.gain(RAW_NS, done.before[0]), 0);
    let set = bench.act(&["set", "1800000000"]);
    assert_near(set.after[1], 1.8e18, 1e6);
}

#[test]
fn an_offset_is_worked_off_as_the_phase_locked_loop_does() {
    for constant in [0_i32, 3] {
        let Some(bench) = Bench::set_up("pll") else { return };
        let offset = 800_000.0;
        let done = bench.act(&["pll", "800000", &constant.to_string()]);
        let second = bench.next_second(&done);
        assert_eq!(bench.gain(done.after[0], second - 1000), 0, "it begins with the next second");
        let share = 0.5_f64.powi(2 + constant);
        for seconds in [1, 2, 7, 30] {
            let wanted = offset * (1.0 - (1.0 - share).powi(seconds));
            assert_near(bench.gain(second, second + i64::from(seconds) * SECOND), wanted, SECONDS_DIFFER_NS);
        }
        assert_near(bench.gain(second, second + 900 * SECOND), offset, SECONDS_DIFFER_NS);
    }
}

#[test]
fn the_rest_of_an_offset_is_worked_off_as_before_when_the_loop_is_switched_off() {
    let Some(bench) = Bench::set_up("rest") else { return };
    bench.act(&["pll", "800000", "0"]);
    let done = bench.act(&["status", "0"]);
    let second = bench.next_second(&done);
    let rest = 800_000.0 - bench.gain(RAW_NS, second) as f64;
    for seconds in [1, 2, 7] {
        let wanted = rest * (1.0 - 0.75_f64.powi(seconds));
        assert_near(bench.gain(second, second + i64::from(seconds) * SECOND), wanted, SECONDS_DIFFER_NS);
    }
}

#[test]
fn the_loop_changes_the_frequency_by_the_time_since_the_last_offset() {
    let Some(bench) = Bench::set_up("gain") else { return };
    let done = bench.act(&["pll", "1000", "0"]);
    // As if that had been 6 s earlier: `time_reftime`.
    let reference = done.after[1] / SECOND - 6;
    let file = fs::OpenOptions::new().write(true).open(&bench.own.clock).unwrap();
    file.write_all_at(&reference.to_ne_bytes(), 8 * 8).unwrap();
    let done = bench.act(&["pll", "400000", "0"]);
    let seconds = (done.after[1] / SECOND - reference) as f64;
    // offset * seconds >> 2 * (SHIFT_PLL + 2 + constant), in ns a second.
    let frequency = 400_000.0 * seconds / 256.0;
    let late = bench.next_second(&done) + 500 * SECOND;
    assert_near(bench.gain(late, late + 100 * SECOND), frequency * 100.0, 2.0);
}

#[test]
fn adjtime_slews_by_500_ppm() {
    let Some(bench) = Bench::set_up("adjtime") else { return };
    let done = bench.act(&["adjtime", "1300"]);
    let second = bench.next_second(&done);
    for (seconds, wanted) in [(1, 500_000.0), (2, 1_000_000.0), (3, 1_300_000.0), (9, 1_300_000.0)] {
        assert_near(bench.gain(second, second + seconds * SECOND), wanted, SECONDS_DIFFER_NS);
    }
}

/// So late that every segment there is lies before it.
const LATE_NS: i64 = RAW_NS + 1_000_000 * SECOND;
const STEP_NS: i64 = SECOND / 1000;

/// A program that writes to the clock; it ends with the test, also with one that fails.
struct Writer(Child);

impl Writer {
    fn signal(&self, name: &str) {
        let done = Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap();
        assert!(done.success(), "the program runs longer than the test needs it");
    }

    /// It ends well. Returns what it printed.
    #[track_caller]
    fn finish(mut self) -> String {
        let mut said = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.0.wait().unwrap().success(), "{said}");
        said.trim().to_owned()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bench {
    fn start(&self, words: &[&str]) -> Writer {
        let command = self.own.command(&self.library, self.program(words));
        Writer(Command::new(&command[0]).args(&command[1..]).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn late(&self) -> i64 {
        OutsideClock::open(&self.own.clock).unwrap().shown_at(LATE_NS).unwrap()
    }

    /// The sequence of the file: odd while it is written.
    fn sequence(&self) -> u64 {
        OutsideClock::open(&self.own.clock).unwrap().header().unwrap()[1]
    }

    /// Stops a program that writes again and again in the middle of a change. Returns the sequence then.
    fn stop_in_a_change(&self, writer: &Writer) -> u64 {
        let stat = format!("/proc/{}/stat", writer.0.id());
        let begun = self.sequence();
        loop {
            writer.signal("-STOP");
            while !fs::read_to_string(&stat).unwrap().contains(") T ") {
                assert!(
                    !fs::read_to_string(&stat).unwrap().contains(") Z "),
                    "the program ended before it was stopped"
                );
                std::thread::yield_now();
            }
            let sequence = self.sequence();
            if sequence > begun && !sequence.is_multiple_of(2) {
                return sequence;
            }
            writer.signal("-CONT");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs a program that writes, and kills it in the middle of a change.
    fn kill_in_a_change(&self, words: &[&str]) {
        let writer = self.start(words);
        self.stop_in_a_change(&writer);
        drop(writer);
    }
}

#[test]
fn two_programs_write_one_clock_and_no_change_is_lost() {
    let Some(bench) = Bench::set_up("two") else { return };
    // The first has to run for longer than it takes to meet it in the middle of a change.
    const FIRST: i64 = 2_000_000;
    const STEPS: i64 = 200_000;
    const MEANWHILE: i64 = 1000;
    let before = bench.late();
    for round in 1..=3 {
        // On a busy machine two rarely run at once. So the first is stopped in the middle of a change, and both others
        // have to wait for it.
        let first = bench.start(&["steps", &FIRST.to_string()]);
        let stopped_at = bench.stop_in_a_change(&first);
        let others = [STEPS, MEANWHILE].map(|steps| bench.start(&["steps", &steps.to_string()]));
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(bench.sequence(), stopped_at, "nothing is written while another program writes");
        first.signal("-CONT");
        for writer in std::iter::once(first).chain(others) {
            assert_eq!(writer.finish(), "0", "each sees all of its own steps");
        }
        assert_eq!(bench.late() - before, round * (FIRST + STEPS + MEANWHILE) * STEP_NS);
        assert!(bench.sequence().is_multiple_of(2));
    }
}

/// Both have the coming seconds written again and again: an offset is worked off to its end all the same.
#[test]
fn two_programs_write_the_coming_seconds_of_one_clock() {
    let Some(bench) = Bench::set_up("ahead") else { return };
    bench.act(&["pll", "800000", "0"]);
    let before = bench.late();
    let writers = [(); 2].map(|()| bench.start(&["reads", "20000"]));
    for writer in writers {
        writer.finish();
    }
    assert_near(bench.late() - before, 0.0, 100.0);
}

/// Its change was made or was not made; the clock is whole, and the next one goes on.
#[test]
fn a_program_that_is_killed_while_it_writes_leaves_a_whole_clock() {
    let Some(bench) = Bench::set_up("killed") else { return };
    let before = bench.late();
    for number in 1..=10 {
        bench.kill_in_a_change(&["steps", "1000000000"]);
        // It neither waits for the dead nor reads what is half written.
        let done = bench.act(&[]);
        assert!(done.after[1] > done.before[1], "{done:?}");
        let gained = bench.late() - before;
        assert_eq!(gained % STEP_NS, 0, "no step is there by half, kill {number}");
        bench.act(&["step", &STEP_NS.to_string()]);
        assert_eq!(bench.late() - before, gained + STEP_NS, "kill {number}");
    }
}

#[test]
fn a_killed_program_leaves_what_was_to_come() {
    let Some(bench) = Bench::set_up("killed-ahead") else { return };
    bench.act(&["frequency", &(50 << 16).to_string()]);
    bench.act(&["pll", "800000", "0"]);
    let (before, frequency) = (bench.late(), bench.numbers(&["host"])[2]);
    for _ in 0..10 {
        bench.kill_in_a_change(&["reads", "1000000000"]);
        assert_eq!(bench.numbers(&["host"])[2], frequency);
        assert_near(bench.late() - before, 0.0, 100.0);
    }
}

/// The lock of programs that are gone with an earlier boot is no lock, and their change is ended.
#[test]
fn another_session_has_the_clock_with_a_new_lock() {
    let Some(bench) = Bench::set_up("lock") else { return };
    bench.act(&["step", &STEP_NS.to_string()]);
    let before = bench.late();
    let file = fs::OpenOptions::new().read(true).write(true).open(&bench.own.clock).unwrap();
    // As a machine that lost its power in the middle of a change leaves it: held by a process that is not there.
    let mut lock = [0; 40];
    file.read_exact_at(&mut lock, 8 * LOCK_IS_MADE as u64 + 8).unwrap();
    lock[..4].copy_from_slice(&i32::MAX.to_ne_bytes());
    file.write_all_at(&lock, 8 * LOCK_IS_MADE as u64 + 8).unwrap();
    file.write_all_at(&(bench.sequence() + 1).to_ne_bytes(), 8).unwrap();
    forget_lock(&bench.own.clock).unwrap();
    bench.act(&["step", &STEP_NS.to_string()]);
    assert_eq!(bench.late() - before, STEP_NS);
}

#[test]
fn stamps_of_packets_are_of_the_programs_clock() {
    let Some(bench) = Bench::set_up("stamp") else { return };
    bench.act(&["step", "3000000000"]);
    for of in ["stamp", "sent"] {
        let [before, stamp, after] = bench.numbers(&[of])[..] else { panic!("three numbers are printed") };
        assert!(before <= stamp && stamp <= after && before > host_now_ns() + SECOND, "{of} {before} {stamp} {after}");
    }
}

#[test]
fn a_stamp_that_was_cut_off_is_left_alone() {
    let Some(bench) = Bench::set_up("torn") else { return };
    bench.act(&["step", "3000000000"]);
    assert_eq!(
        bench.numbers(&["torn"]),
        [20, 0],
        "the length of the stamp, and what was written behind the place for it"
    );
}

#[test]
fn the_clock_of_the_host_is_untouched() {
    let Some(bench) = Bench::set_up("host") else { return };
    let host = bench.program(&["host"]);
    let before = numbers(&host);
    for words in
        [["frequency", "6553600"], ["tick", "10100"], ["step", "5000000000"], ["pll", "1000000"], ["set", "1800000000"]]
    {
        bench.act(&words);
    }
    assert_eq!(numbers(&host), before);
    assert_ne!(bench.numbers(&["host"]), before, "the program's own clock was changed");
    assert!(host_now_ns() < 1_800_000_000 * SECOND || host_now_ns() > 1_800_000_600 * SECOND);
}

#[test]
fn a_program_without_its_files_does_not_run() {
    let Some(bench) = Bench::set_up("missing") else { return };
    fs::remove_file(&bench.own.clock).unwrap();
    let command = bench.own.command(&bench.library, bench.program(&["host"]));
    let output = Command::new(&command[0]).args(&command[1..]).output().unwrap();
    assert_eq!(output.status.code(), Some(126));
}

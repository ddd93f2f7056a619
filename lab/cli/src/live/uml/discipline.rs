//! The comparison: the same script in a guest and under the interposer.

use super::history::History;
use super::timekeeper::Timekeeper;
use super::{Guest, PATIENCE, Scratch, alone, build_performers};
use crate::live::clock_file::{ClockStart, OutsideClock};
use crate::live::interposer::OwnClock;
use crate::live::monitor::truth_ns;
use crate::live::oscillator_file::OscillatorStart;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const SECOND: i64 = 1_000_000_000;
const SCRIPT: &str = include_str!("script.txt");
/// Set to anything, the script is done with its own waits, of some 75 s; otherwise none is longer than a second.
pub(super) const LONG: &str = "FFCLOCK_UML_LONG";
/// The goal: phase, and frequency.
const PHASE_NS: i64 = 1000;
const FREQUENCY_SHARE: f64 = 0.01;
/// What a line of the kernel's clock cannot show [ns/s]: its multiplier and its nanoseconds are whole numbers.
const FREQUENCY_FLOOR: f64 = 4.0;
/// Where in each second the clocks are compared: rates are from one to the other [ns].
const LOOKS: [i64; 2] = [450_000_000, 950_000_000];
/// A host that let the guest or the program wait longer than this has spoiled the comparison [ns].
const WAITED_AT_MOST: i64 = 190_000_000;
const TRIES: usize = 3;

/// A line of the performer's output.
#[derive(Debug)]
struct Answer {
    verb: String,
    raw: [i64; 2],
    shown: [i64; 2],
    state: Vec<i64>,
}

/// The second of the two readings is the one after the call.
const BEFORE: usize = 0;
const AFTER: usize = 1;
/// The numbers of an answer that are of its offset and what remained of an adjtime: each may differ by rounding.
const ROUNDED: [usize; 2] = [1, 9];
const STATE_WORDS: usize = 10;

impl Answer {
    fn parse(line: &str) -> Answer {
        let (verb, rest) = line.split_once(' ').unwrap();
        let numbers: Vec<i64> = rest.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 4 + STATE_WORDS, "{line}");
        let (verb, state) = (verb.to_owned(), numbers[4..].to_vec());
        Answer { verb, raw: [numbers[0], numbers[2]], shown: [numbers[1], numbers[3]], state }
    }

    fn read_all(path: &Path) -> Vec<Answer> {
        fs::read_to_string(path).unwrap().lines().map(Answer::parse).collect()
    }

    /// How long after its time it came: scripts act 0.3 s after a second, look at 0.8 s, or go on at once.
    fn late(&self) -> i64 {
        let due = if self.verb == "look" { 800_000_000 } else { 300_000_000 };
        (self.shown[BEFORE] - due).rem_euclid(SECOND / 2)
    }
}

/// A clock whose past is known.
pub(super) trait Past {
    fn shown_at(&self, raw: i64) -> i64;

    fn gain(&self, from: i64, to: i64) -> i64 {
        self.shown_at(to) - self.shown_at(from) - (to - from)
    }

    /// The raw reading at which it shows this, from a reading near it on.
    fn raw_when(&self, shown: i64, near: i64) -> i64 {
        (0..5).fold(near, |raw, _| raw + shown - self.shown_at(raw))
    }
}

impl Past for History {
    fn shown_at(&self, raw: i64) -> i64 {
        History::shown_at(self, raw)
    }
}

impl Past for OutsideClock {
    fn shown_at(&self, raw: i64) -> i64 {
        OutsideClock::shown_at(self, raw).unwrap()
    }
}

/// What one of both did.
struct Performance {
    past: Box<dyn Past>,
    answers: Vec<Answer>,
}

impl Performance {
    /// The first begin of a second of its clock after an action, as a raw reading.
    fn next_second(&self, action: usize) -> i64 {
        let (raw, shown) = (self.answers[action].raw[AFTER], self.answers[action].shown[AFTER]);
        let second = (shown / SECOND + 1) * SECOND;
        self.past.raw_when(second, raw + second - shown)
    }

    /// Gains since the next second at each place in each second until the next action [ns].
    fn responses(&self, action: usize) -> Vec<i64> {
        let second = self.next_second(action);
        let times = self.answers[action].raw[AFTER]..self.answers[self.next(action)].raw[BEFORE];
        let raws = (-1..).flat_map(|k| LOOKS.map(|look| second + k * SECOND + look));
        let within = raws.take_while(|raw| *raw < times.end).filter(|raw| times.contains(raw));
        within.map(|raw| self.past.gain(second, raw)).collect()
    }

    /// The next action that is not only a look.
    fn next(&self, action: usize) -> usize {
        (action + 1..self.answers.len())
            .find(|&index| self.answers[index].verb != "look")
            .unwrap_or(self.answers.len() - 1)
    }

    /// How far an action moves the clock at once, and how long it took [ns].
    fn jump(&self, action: usize) -> [i64; 2] {
        let [before, after] = self.answers[action].raw;
        [self.past.gain(before, after), after - before]
    }
}

fn script() -> String {
    let shortened = |line: &str| match line.split_once(' ') {
        Some((seconds, rest)) if seconds != "0" && seconds != "#" => format!("1 {rest}\n"),
        _ => format!("{line}\n"),
    };
    if std::env::var_os(LONG).is_some() { SCRIPT.to_owned() } else { SCRIPT.lines().map(shortened).collect() }
}

/// How long the script takes.
fn length() -> Duration {
    let script = script();
    let seconds = script.lines().filter_map(|line| line.split(' ').next()?.parse::<u64>().ok());
    Duration::from_secs(seconds.sum())
}

/// The program that does the script under the interposer; it ends with this value.
struct Performer(Child);

impl Performer {
    /// Whether it does the script still.
    fn runs(&mut self) -> bool {
        match self.0.try_wait().unwrap() {
            None => true,
            Some(status) => {
                assert!(status.success(), "the script under the interposer: {status}");
                false
            }
        }
    }
}

impl Drop for Performer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Both at work on the same script, in one directory.
struct Bench {
    guest: Guest,
    timekeeper: Timekeeper,
    own: OwnClock,
    directory: Scratch,
}

impl Bench {
    fn set_up(name: &str) -> Option<Bench> {
        let directory = Scratch::new(name);
        if let Err(failure) = build_performers(&directory) {
            println!("SKIP: {failure}");
            return None;
        }
        fs::write(directory.join("script"), script()).unwrap();
        let own = OwnClock::within(&directory);
        let plan =
            "while ! [ -e /out/go ]; do sleep 0.1; done\n/out/performer-static </out/script >/out/guest.answers\n";
        let guest = Guest::boot(&directory, plan)?;
        let timekeeper = Timekeeper::find(guest.kernel());
        Some(Bench { guest, timekeeper, own, directory })
    }

    /// The program under the interposer, with an oscillator that is 40 ppm fast.
    fn perform_interposed(&self) -> Performer {
        let origin = OscillatorStart { host_ns: truth_ns().unwrap(), raw_ns: 1000 * SECOND };
        let start = ClockStart { raw_ns: origin.raw_ns, shown_ns: origin.host_ns, frequency: 0.0 };
        let library = self.own.interpose(40.0, origin, start).unwrap();
        let command = self.own.command(&library, vec![self.directory.join("performer").display().to_string()]);
        let [input, output] = ["script", "own.answers"].map(|name| self.directory.join(name));
        let mut program = Command::new(&command[0]);
        program.args(&command[1..]).stdin(fs::File::open(input).unwrap()).stdout(fs::File::create(output).unwrap());
        Performer(program.spawn().unwrap())
    }

    fn perform(mut self) -> [Performance; 2] {
        let mut history = History::default();
        let mut program = self.perform_interposed();
        fs::write(self.directory.join("go"), "").unwrap();
        let (begun, patience) = (Instant::now(), length() + PATIENCE);
        while (!self.guest.is_done() && self.guest.runs()) || program.runs() {
            assert!(begun.elapsed() < patience, "the script does not end: {}", self.guest.console());
            self.timekeeper.read().into_iter().for_each(|lines| history.add(lines));
            std::thread::sleep(Duration::from_millis(1));
        }
        let [guest, own] = ["guest.answers", "own.answers"].map(|name| Answer::read_all(&self.directory.join(name)));
        let own_clock = OutsideClock::open(&self.own.clock).unwrap();
        let gap = history.gap_max(guest[0].raw[BEFORE], guest.last().unwrap().raw[BEFORE]);
        println!("at most {:.1} ms passed between two updates of the guest's clock", gap as f64 / 1e6);
        [
            Performance { past: Box::new(history), answers: guest },
            Performance { past: Box::new(own_clock), answers: own },
        ]
    }
}

/// The largest differences so far, and what was wrong with the rest.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) compared: usize,
    pub(super) phase_ns: i64,
    pub(super) frequency_share: f64,
    pub(super) wrong: Vec<String>,
}

impl Findings {
    pub(super) fn compare_phases(&mut self, verb: &str, both: [i64; 2]) {
        let difference = (both[0] - both[1]).abs();
        self.compared += 1;
        self.phase_ns = self.phase_ns.max(difference);
        if difference > PHASE_NS {
            self.wrong
                .push(format!("{verb}: the kernel's clock gained {} ns, the interposer's {} ns", both[0], both[1]));
        }
    }

    /// Rates [ns/s] of both.
    pub(super) fn compare_rates(&mut self, verb: &str, both: [f64; 2]) {
        let difference = (both[0] - both[1]).abs() - FREQUENCY_FLOOR;
        let share = (difference / both[0].abs().max(1.0)).max(0.0);
        self.frequency_share = self.frequency_share.max(share);
        if share > FREQUENCY_SHARE {
            self.wrong.push(format!(
                "{verb}: the kernel's clock runs {:.1} ns/s fast, the interposer's {:.1} ns/s",
                both[0], both[1]
            ));
        }
    }

    fn compare_answers(&mut self, guest: &Answer, own: &Answer) {
        let near = |index: usize| (guest.state[index] - own.state[index]).abs() <= i64::from(ROUNDED.contains(&index));
        if guest.verb != own.verb || !(0..STATE_WORDS).all(near) {
            self.wrong
                .push(format!("{}: the kernel answers {:?}, the interposer {:?}", guest.verb, guest.state, own.state));
        }
    }

    fn compare_action(&mut self, [guest, own]: [&Performance; 2], action: usize) {
        let verb = &guest.answers[action].verb;
        let ([jump, took], [own_jump, own_took]) = (guest.jump(action), own.jump(action));
        // A time that is set is one that was read some time before.
        if verb == "set" {
            self.compare_phases(verb, [jump + took.min(SECOND - jump), SECOND]);
            self.compare_phases(verb, [SECOND, own_jump + own_took.min(SECOND - own_jump)]);
        } else {
            self.compare_phases(verb, [jump, own_jump]);
        }
        let both: Vec<[i64; 2]> =
            guest.responses(action).into_iter().zip(own.responses(action)).map(|(g, o)| [g, o]).collect();
        let name = format!("{verb} (answer {action})");
        both.iter().for_each(|phases| self.compare_phases(&name, *phases));
        let seconds = (LOOKS[1] - LOOKS[0]) as f64 / SECOND as f64;
        let rate = |two: &[[i64; 2]], which: usize| (two[1][which] - two[0][which]) as f64 / seconds;
        both.chunks_exact(2).for_each(|two| self.compare_rates(&name, [rate(two, 0), rate(two, 1)]));
    }
}

/// How late the host let one of both be.
fn waited(both: &[Performance; 2]) -> i64 {
    both.iter().flat_map(|one| &one.answers).map(Answer::late).max().unwrap()
}

fn compare(both: &[Performance; 2]) -> Findings {
    let [guest, own] = both;
    let mut findings = Findings::default();
    assert_eq!(guest.answers.len(), own.answers.len());
    for action in 0..guest.answers.len() {
        findings.compare_answers(&guest.answers[action], &own.answers[action]);
        if guest.answers[action].verb != "look" {
            findings.compare_action([guest, own], action);
        }
    }
    findings
}

#[test]
fn the_discipline_of_the_interposer_answers_as_a_kernel_does() {
    let _alone = alone();
    for _ in 0..TRIES {
        let Some(bench) = Bench::set_up("discipline") else { return };
        let both = bench.perform();
        let waited = waited(&both);
        if waited > WAITED_AT_MOST {
            println!("the host let one of both wait for {} ms: once more", waited / 1_000_000);
            continue;
        }
        let findings = compare(&both);
        println!(
            "{} comparisons: phases differ by at most {} ns, frequencies by {:.3} %",
            findings.compared,
            findings.phase_ns,
            findings.frequency_share * 100.0
        );
        let first = &findings.wrong[..findings.wrong.len().min(8)];
        assert!(first.is_empty(), "{} disagreements, the first of them: {first:#?}", findings.wrong.len());
        assert!(findings.compared > 100);
        return;
    }
    println!(
        "SKIP: the host let one of both wait in each of {TRIES} tries, so the discipline was not compared with a kernel's"
    );
}

//! What a program did to its clock, as recorder.c wrote it down, and the same done again under the interposer
//! (replayer.c): each call at the reading of the raw counter at which it was made, so that no time passes.

use crate::live::clock_file::{ClockStart, OutsideClock};
use crate::live::interposer::{self, OwnClock};
use crate::live::oscillator_file::OscillatorStart;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The words of `struct timex` in a record: modes, offset, freq, maxerror, esterror, status, constant, tick, tai, and
/// the two of its time.
const WORDS: usize = 11;
const MODES: usize = 0;
const FREQUENCY_WORD: usize = 2;
const AT_ONCE_WORDS: [usize; 2] = [FREQUENCY_WORD, 7];
const SECOND: i64 = 1_000_000_000;
/// No other call is made within this time of one, since recorder.c holds each back for 3 ms [ns].
const AROUND: i64 = 1_000_000;
/// The kernel begins a second at the next of its 100 interrupts in a second, or later where the host lets it wait
/// [ns].
const NEAR_SECOND: i64 = 30_000_000;
/// Bits of the modes (linux/timex.h): ADJ_OFFSET; ADJ_FREQUENCY, ADJ_SETOFFSET and ADJ_TICK; and adjtime(3) in the
/// clothes of adjtimex(2).
const OFFSET: i64 = 0x1;
const FREQUENCY: i64 = 0x2;
const SET_OFFSET: i64 = 0x100;
const AT_ONCE: i64 = FREQUENCY | SET_OFFSET | 0x4000;
const ADJTIME: i64 = 0x8000;
/// The words of an answer that can be compared: after them comes the time, which is compared as a phase.
pub(super) const ANSWERED: std::ops::Range<usize> = 1..9;

/// A call, with its readings before and after.
#[derive(Debug)]
pub(super) struct Call {
    /// `adjtimex`, or `set`.
    kind: String,
    /// The raw counter, and the clock [ns].
    pub(super) raw: [i64; 2],
    shown: [i64; 2],
    /// What it returned, or the error, negative.
    pub(super) result: i64,
    asked: Vec<i64>,
    pub(super) answered: Vec<i64>,
}

/// The outcome of a call that was done again.
#[derive(Debug)]
pub(super) struct ReplayedAnswer {
    pub(super) result: i64,
    pub(super) answered: Vec<i64>,
}

fn numbers(words: &str) -> Vec<i64> {
    words.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

impl Call {
    fn parse(line: &str) -> Call {
        let (kind, rest) = line.split_once(' ').unwrap();
        let numbers = numbers(rest);
        assert_eq!(numbers.len(), 5 + 2 * WORDS, "{line}");
        let (asked, answered) = numbers[5..].split_at(WORDS);
        Call {
            kind: kind.to_owned(),
            raw: [numbers[0], numbers[2]],
            shown: [numbers[1], numbers[3]],
            result: numbers[4],
            asked: asked.to_vec(),
            answered: answered.to_vec(),
        }
    }

    pub(super) fn read_all(path: &Path) -> Vec<Call> {
        fs::read_to_string(path).unwrap().lines().map(Call::parse).collect()
    }

    /// When it was made, and shortly before and after [ns of the raw counter]: no other is made then.
    pub(super) fn raw_around(&self) -> [i64; 2] {
        [self.raw[0] - AROUND, self.raw[1] + AROUND]
    }

    /// Whether it gives an offset that is worked off from the next second on.
    pub(super) fn gives_offset(&self) -> bool {
        self.kind == "adjtimex" && self.asked[MODES] & OFFSET != 0
    }

    /// Whether it may have changed the clock.
    pub(super) fn acts(&self) -> bool {
        self.kind == "set" || self.asked[MODES] != 0
    }

    /// Whether its answer says something: clock_settime has none.
    pub(super) fn answers(&self) -> bool {
        self.kind == "adjtimex"
    }

    /// Whether the clock's rate changes, or the clock is set, as soon as it is called.
    pub(super) fn acts_at_once(&self) -> bool {
        self.kind == "set" || (self.asked[MODES] & AT_ONCE != 0 && !self.is_adjtime())
    }

    /// The same, and it was not so before: `last` is the last call before it that answered.
    pub(super) fn changes_at_once(&self, last: Option<&Call>) -> bool {
        let is_new = |last: &Call| AT_ONCE_WORDS.iter().any(|word| last.answered[*word] != self.answered[*word]);
        self.acts_at_once() && (self.sets() || last.is_none_or(is_new))
    }

    fn sets(&self) -> bool {
        self.kind == "set" || self.asked[MODES] & SET_OFFSET != 0
    }

    /// Whether it gives an offset so near to the begin of a second that the kernel may have taken it to come before a
    /// second that had begun, or after one that had not.
    pub(super) fn meets_second(&self) -> bool {
        let part = self.shown[0].rem_euclid(SECOND);
        self.gives_offset() && !(NEAR_SECOND..SECOND - NEAR_SECOND).contains(&part)
    }

    /// Whether it gives the clock this frequency, as struct timex has it, and nothing else: no daemon does that.
    pub(super) fn gives_frequency(&self, frequency: i64) -> bool {
        self.kind == "adjtimex" && self.asked[MODES] == FREQUENCY && self.asked[FREQUENCY_WORD] == frequency
    }

    fn is_adjtime(&self) -> bool {
        self.asked[MODES] & ADJTIME != 0
    }

    /// In the words of a message.
    pub(super) fn words(&self) -> String {
        let part = self.shown[0].rem_euclid(SECOND) / 1000;
        format!(
            "{} {:?}, {part} us after a second, took {} us",
            self.kind,
            self.asked,
            (self.raw[1] - self.raw[0]) / 1000
        )
    }
}

/// The last of these calls whose answer says how the clock was then.
pub(super) fn last_answer(calls: &[Call]) -> Option<&Call> {
    calls.iter().rfind(|call| call.answers())
}

#[test]
fn a_frequency_that_the_clock_has_already_is_no_change_also_after_the_clock_was_set() {
    let record = |kind: &str, modes: i64, frequency: i64| {
        let words = format!(" {modes} 0 {frequency} 0 0 64 0 10000 0 0 0");
        let answered = if kind == "set" { " 0".repeat(WORDS) } else { words.clone() };
        Call::parse(&format!("{kind} 0 0 0 0 0{words}{answered}"))
    };
    let calls = [record("adjtimex", FREQUENCY, 77), record("set", 0, 0), record("adjtimex", FREQUENCY, 77)];
    assert!(calls[0].changes_at_once(last_answer(&[])) && calls[1].changes_at_once(last_answer(&calls[..1])));
    assert!(!calls[2].changes_at_once(last_answer(&calls[..2])));
    assert!(record("adjtimex", FREQUENCY, 78).changes_at_once(last_answer(&calls)));
}

/// Does calls again at these moments of the raw counter [ns], from `start` on, in a directory of its own. Gives the
/// clock that they made, and their answers.
pub(super) fn replay(
    directory: &Path,
    calls: &[(i64, &Call)],
    start: ClockStart,
) -> (OutsideClock, Vec<ReplayedAnswer>) {
    fs::create_dir_all(directory).unwrap();
    let own = OwnClock::within(directory);
    let origin = OscillatorStart { host_ns: start.raw_ns, raw_ns: start.raw_ns };
    // Its raw counter is the counter of the record itself.
    let library = own.interpose(0.0, origin, start).unwrap();
    let mut script = String::new();
    for (moment, call) in calls {
        let words: String = call.asked.iter().map(|word| format!(" {word}")).collect();
        writeln!(script, "{moment} {}{words}", call.kind).unwrap();
    }
    let input = directory.join("calls");
    fs::write(&input, script).unwrap();
    let source = include_str!("replayer.c");
    let clock = ("replayed_clock.so", source);
    let clock = interposer::compile(directory, clock, &["-DREPLAYED_CLOCK", "-shared", "-fPIC"]).unwrap();
    let program = interposer::compile(directory, ("replayer", source), &[&clock.display().to_string()]).unwrap();
    let command = own.command(&library, vec![program.display().to_string()]);
    let done = Command::new(&command[0]).args(&command[1..]).stdin(fs::File::open(input).unwrap()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let answers: Vec<ReplayedAnswer> = String::from_utf8(done.stdout)
        .unwrap()
        .lines()
        .map(|line| {
            let numbers = numbers(line);
            ReplayedAnswer { result: numbers[0], answered: numbers[1..].to_vec() }
        })
        .collect();
    assert_eq!(answers.len(), calls.len());
    (OutsideClock::open(&own.clock).unwrap(), answers)
}

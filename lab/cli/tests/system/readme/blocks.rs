//! Fenced blocks of commands, and whether something like what they show was printed.

/// How a block is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Commands only.
    Script,
    /// Commands after `$ `, and what they print.
    Console,
    /// No commands.
    Other,
}

/// What is done with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    Run,
    Show,
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// Of its fence, from 1.
    pub line: usize,
    pub kind: Kind,
    pub treatment: Option<Treatment>,
    lines: Vec<String>,
}

const FENCE: &str = "```";
const PROMPT: &str = "$ ";

impl Block {
    fn new(line: usize, marks: &str, lines: Vec<String>) -> Block {
        let mut words = marks.split_whitespace();
        let kind = match words.next() {
            Some("sh" | "bash" | "shell") => Kind::Script,
            Some("console") => Kind::Console,
            None if lines.iter().any(|line| line.starts_with(PROMPT)) => Kind::Console,
            _ => Kind::Other,
        };
        let treatment = match words.next().filter(|_| kind != Kind::Other) {
            Some("run") => Some(Treatment::Run),
            Some("show") => Some(Treatment::Show),
            _ => None,
        };
        Block { line, kind, treatment, lines }
    }

    /// Its commands.
    pub fn script(&self) -> String {
        let commands = self.lines.iter().filter_map(|line| match self.kind {
            Kind::Console => line.strip_prefix(PROMPT),
            _ => Some(line.as_str()),
        });
        commands.collect::<Vec<_>>().join("\n")
    }

    /// What it shows as printed.
    pub fn shown(&self) -> Vec<&str> {
        let is_shown = |line: &&String| self.kind == Kind::Console && !line.starts_with(PROMPT) && !line.is_empty();
        self.lines.iter().filter(is_shown).map(String::as_str).collect()
    }
}

/// All fenced blocks of a document.
pub fn parse(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, &str, Vec<String>)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        open = match (open, line.strip_prefix(FENCE)) {
            (None, None) => None,
            (None, Some(marks)) => Some((number, marks, Vec::new())),
            (Some((begin, marks, lines)), Some(_)) => {
                blocks.push(Block::new(begin, marks, lines));
                None
            }
            (Some((begin, marks, mut lines)), None) => {
                lines.push(line.to_owned());
                Some((begin, marks, lines))
            }
        };
    }
    blocks
}

/// The first of the shown lines of which nothing like it was printed after the one before.
pub fn missing<'a>(shown: &[&'a str], printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines().map(pattern);
    shown.iter().copied().find(|line| !printed.any(|printed| printed == pattern(line)))
}

/// The line with one word for every number with its unit, and one for every state of the clock: these differ from run
/// to run.
fn pattern(line: &str) -> String {
    const UNITS: [&str; 9] = ["ns", "us", "ms", "s", "min", "h", "d", "ppm", "ppb"];
    const STATES: [&str; 4] = ["synchronised", "warming-up", "holdover", "unsynchronised"];
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let bare = word.trim_end_matches([',', ')', ';']);
        let masked = if STATES.contains(&bare) { "STATE".to_owned() } else { digits_masked(bare) };
        let follows_number = words.last().is_some_and(|last| last.ends_with('#'));
        if !(follows_number && UNITS.contains(&bare)) {
            words.push(masked);
        }
    }
    words.join(" ")
}

/// Every run of digits and points becomes `#`.
fn digits_masked(word: &str) -> String {
    let mut masked = String::new();
    for letter in word.chars() {
        let is_number = letter.is_ascii_digit() || (letter == '.' && masked.ends_with('#'));
        if !(is_number && masked.ends_with('#')) {
            masked.push(if is_number { '#' } else { letter });
        }
    }
    masked
}

#[test]
fn blocks_are_found_with_their_marks() {
    let text = "a\n```sh run\nx\ny\n```\n```\n$ now\n12 us\n```\n```rust\n$ no\n```\n```console show\n$ watch\n```\n";
    let blocks = parse(text);
    assert_eq!(blocks.iter().map(|block| block.line).collect::<Vec<_>>(), [2, 6, 10, 13]);
    let kinds: Vec<Kind> = blocks.iter().map(|block| block.kind).collect();
    assert_eq!(kinds, [Kind::Script, Kind::Console, Kind::Other, Kind::Console]);
    let treatments: Vec<Option<Treatment>> = blocks.iter().map(|block| block.treatment).collect();
    assert_eq!(treatments, [Some(Treatment::Run), None, None, Some(Treatment::Show)]);
    assert_eq!((blocks[0].script().as_str(), blocks[1].script().as_str()), ("x\ny", "now"));
    assert_eq!((blocks[0].shown(), blocks[1].shown()), (vec![], vec!["12 us"]));
}

#[test]
fn what_differs_from_run_to_run_does_not_matter_and_the_rest_does() {
    let printed =
        "begin\n2027-01-02T03:04:05.6Z  +- 1 ms  warming-up (standard uncertainty 3.25 ns)\nelapsed 0.1 s +- 2 ns\n";
    let shown = ["2026-11-21T09:30:00.123456789Z  +- 812.4 us  synchronised (standard uncertainty 14.2 us)"];
    assert_eq!(missing(&shown, printed), None);
    assert_eq!(missing(&["elapsed 12.34 s +- 31 ns", "begin"], printed), Some("begin"));
    assert_eq!(missing(&["elapsed 12.34 s"], printed), Some("elapsed 12.34 s"));
}

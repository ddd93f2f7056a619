//! Judges the clock that a replay wrote by the truth of the generator, without any code of the project.

use super::trace::Truth;
use super::world::Ps;
use std::collections::BTreeMap;

/// The output is cut to nanoseconds, and so is the truth in some of the traces.
const ROUNDING: Ps = 2_000;

/// A row of the output; times in picoseconds.
struct Row<'a> {
    text: &'a str,
    sequence: u64,
    counter: u64,
    utc: Ps,
    bound: Option<Ps>,
    error: Ps,
}

impl<'a> Row<'a> {
    fn new(header: &[&str], text: &'a str) -> Self {
        let cells: Vec<&str> = text.split(',').collect();
        let cell = |name: &str| cells[header.iter().position(|column| *column == name).unwrap()];
        let bound = cell("bound_s");
        Row {
            text,
            sequence: cell("seq").parse().unwrap(),
            counter: cell("counter").parse().unwrap(),
            utc: cell("utc_ns").parse::<Ps>().unwrap() * 1_000,
            bound: (!bound.is_empty()).then(|| picoseconds(bound)),
            error: picoseconds(cell("error_s")),
        }
    }
}

/// Decimal seconds, exactly.
fn picoseconds(text: &str) -> Ps {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = format!("{fraction:0<12}");
    sign * (whole.parse::<Ps>().unwrap() * 1_000_000_000_000 + fraction[..12].parse::<Ps>().unwrap())
}

/// Each row has the error that it says, and the truth is within its bound, from the first one on.
pub fn check(truths: &[Truth], output: &str) {
    if truths.is_empty() {
        return;
    }
    let truths: BTreeMap<u64, &Truth> = truths.iter().map(|truth| (truth.sequence, truth)).collect();
    let mut lines = output.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut rows = 0;
    for row in lines.map(|line| Row::new(&header, line)) {
        let truth = truths[&row.sequence];
        assert_eq!(row.counter, truth.received, "{}", row.text);
        let error = row.utc - truth.time;
        assert!((error - row.error).abs() <= ROUNDING, "the error is {error} ps, not as said: {}", row.text);
        let is_inside = row.bound.is_none_or(|bound| error.abs() <= bound + ROUNDING);
        assert!(is_inside, "the error is {error} ps, outside the bound: {}", row.text);
        rows += 1;
    }
    // Only an estimator that used what it was given has shown anything.
    assert!(rows * 10 >= truths.len() * 9, "{rows} rows for {} exchanges", truths.len());
}

/// How many rows stay readable at either end, and how many in between.
const ENDS: usize = 3;
const BETWEEN: usize = 12;

/// The output in short: its beginning, its end, some rows in between, and a check over all of it.
pub fn digest(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let stride = (lines.len() / BETWEEN).max(1);
    let is_kept = |place: usize| place <= ENDS || place + ENDS >= lines.len() || place.is_multiple_of(stride);
    let kept = lines.iter().enumerate().filter(|(place, _)| is_kept(*place));
    let text = kept.fold(String::new(), |text, (_, line)| text + line + "\n");
    format!("{text}# {} lines, FNV-1a {:016x}\n", lines.len(), fnv1a(output.as_bytes()))
}

/// The hash of Fowler, Noll and Vo, variant 1a, 64 bits (RFC 9923).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn the_check_is_the_published_one() {
    assert_eq!((fnv1a(b""), fnv1a(b"foobar")), (0xcbf2_9ce4_8422_2325, 0x8594_4171_f739_67e8));
}

#[test]
fn a_clock_outside_its_bound_is_found() {
    let truth = [Truth { sequence: 0, received: 7, time: 1_000_000_000 }];
    let judged = |row: &str| {
        let output = format!("seq,counter,utc_ns,bound_s,error_s\n{row}\n");
        std::panic::catch_unwind(|| check(&truth, &output)).is_ok()
    };
    assert!(judged("0,7,1000100,0.000000200,0.0000001"));
    assert!(!judged("0,7,1000300,0.000000200,0.0000003"), "outside the bound");
    assert!(!judged("0,7,1000100,0.000000200,0.0000002"), "another error than said");
    assert!(!judged("0,8,1000100,0.000000200,0.0000001"), "another counter");
    assert!(!judged("0,7,999700,0.000000200,-0.0000003"), "outside on the other side");
}

//! A list of messages without an end, at a million messages a second: lines through a pipe to `ffclock-lab theta
//! watch`, whose CPU time and memory are looked at. By the list's own clock ten million messages take ten seconds, and
//! some of them are on their way for most of the second that a message may be.

use crate::Outcome;
use crate::figure::Figure;
use crate::lab::FFCLOCK_LAB;
use crate::replay::watch;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::io::{BufWriter, Write};
use std::process::{ChildStdin, Command, Stdio};

/// Messages, unless FFCLOCK_BENCH_MESSAGES says otherwise.
const MESSAGES: f64 = 1e7;
const SENDERS: u64 = 3;
/// Nanoseconds between the beginnings of two rounds.
const PERIOD_NS: u64 = 1000 * SENDERS;
/// Million messages a second of one core.
const GOAL: f64 = 1.0;
/// Memory [MiB].
const MEMORY_GOAL: f64 = 64.0;

/// What a watch says at its end, and what it took.
struct Watched {
    figures: serde_json::Value,
    cpu_s: f64,
    peak_mib: f64,
}

/// Messages that have been sent, the one that is perceived first on top: when perceived and sent, sender, round.
type OnTheWay = BinaryHeap<Reverse<(u64, u64, u64, u64)>>;

pub(crate) fn run() -> Outcome {
    let wanted = crate::setting("FFCLOCK_BENCH_MESSAGES", MESSAGES)?;
    let rounds = (wanted / SENDERS as f64).ceil() as u64;
    // A tenth is long enough to fill all that waits: what grows with the list would show.
    let [short, long] = [rounds / 10, rounds].map(watched);
    let (short, long) = (short?, long?);
    let messages = (rounds * SENDERS) as f64;
    let counted = |key: &str| long.figures[key].as_f64();
    if (counted("messages"), counted("late")) != (Some(messages), Some(0.0)) {
        return Err(format!("the watch has not counted the {messages} messages: {}", long.figures).into());
    }
    Figure::new("theta watch: messages by CPU time", messages / long.cpu_s / 1e6, "million/s")
        .beside(format!("{messages:.1e} lines, 3 senders, 1 of 1000 on its way for up to 0.9 s"))
        .at_least(GOAL)
        .report()?;
    Figure::new("theta watch: peak memory", long.peak_mib, "MiB")
        .against("with a tenth of the list", short.peak_mib)
        .at_most(MEMORY_GOAL)
        .report()?;
    Ok(())
}

fn watched(rounds: u64) -> Result<Watched, Box<dyn Error>> {
    eprintln!("theta-watch: {} messages", rounds * SENDERS);
    let mut command = Command::new(FFCLOCK_LAB);
    command.args(["theta", "watch", "-", "--json", "--every", "1 h", "--receiver", "r"]);
    command.args(["--sender", "s1", "--sender", "s2", "--sender", "s3"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let input = child.stdin.take().ok_or("there is no pipe")?;
    let (looked, written) = std::thread::scope(|scope| {
        let writer = scope.spawn(move || write(input, rounds));
        (watch(&child), writer.join())
    });
    written.map_err(|_| "the lines could not be written")??;
    let (peak_mib, cpu_s) = looked?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status).into());
    }
    Ok(Watched { figures: serde_json::from_slice(&output.stdout)?, cpu_s, peak_mib })
}

/// Lines in the order of their perception, as the watch wants them.
fn write(input: ChildStdin, rounds: u64) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, input);
    let (mut waiting, mut random) = (OnTheWay::new(), 88_172_645_463_325_252_u64);
    writeln!(out, "sender,receiver,id,sent,perceived")?;
    for round in 0..rounds {
        let begin_ns = round * PERIOD_NS;
        for sender in 1..=SENDERS {
            // Xorshift: the same list each time.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let slow_ns = if random.is_multiple_of(1000) { (random >> 20) % 900_000_000 } else { 0 };
            let sent_ns = begin_ns + sender * 500;
            waiting.push(Reverse((sent_ns + 20_000 + (random >> 8) % 400_000 + slow_ns, sent_ns, sender, round)));
        }
        write_before(&mut out, &mut waiting, begin_ns)?;
    }
    write_before(&mut out, &mut waiting, u64::MAX)?;
    out.flush()
}

fn write_before(out: &mut impl Write, waiting: &mut OnTheWay, until_ns: u64) -> std::io::Result<()> {
    while waiting.peek().is_some_and(|Reverse((perceived_ns, ..))| *perceived_ns < until_ns) {
        let Some(Reverse((perceived_ns, sent_ns, sender, round))) = waiting.pop() else { break };
        writeln!(out, "s{sender},r,{round},{sent_ns},{perceived_ns}")?;
    }
    Ok(())
}

//! What the analysis costs, against the obvious way of doing it. Prints one JSON line per figure.
//!
//! `cargo bench -p ffclock-theta --bench analysis -- [disk] [memory] [xi]`; `FFCLOCK_BENCH_MESSAGES` says how many
//! messages (2 * 10^7 by default). A log on disk is written below the directory for temporary files, and removed. All
//! on one thread. Time is what the thread itself has used, as the operating system counts it, where a busy machine
//! would falsify the other.

mod synthetic;

use ffclock_theta::abc::{SpaceTime, xi};
use ffclock_theta::analysis::{Clocks, LogPass, Longest, Options, PassTally};
use ffclock_theta::log::{EventColumns, LogReader, LogWriter};
use ffclock_theta::record::Event;
use std::collections::BinaryHeap;
use std::hint::black_box;
use synthetic::Synthetic;

const MESSAGES: u64 = 20_000_000;
/// What can be measured alone.
const PARTS: [&str; 3] = ["disk", "memory", "xi"];
/// Events of a batch, as they come from a file.
const BATCH: usize = 1 << 15;
/// The number of turns, of which the best counts.
const TURNS: usize = 3;

fn main() {
    let messages = std::env::var("FFCLOCK_BENCH_MESSAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(MESSAGES);
    let parts: Vec<String> = std::env::args().skip(1).filter(|word| PARTS.contains(&word.as_str())).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|word| word == part);
    // First, so that the memory it needs is its own.
    if wanted("disk") {
        from_disk(4, messages);
    }
    for processes in [4, 16].into_iter().filter(|_| wanted("memory")) {
        let log = in_memory(processes, messages);
        let tally = whole_analysis(processes, &log);
        transit_alone(processes, &log, &tally);
    }
    if wanted("xi") {
        clock_free(1_000_000);
    }
}

/// CPU time of this process in seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).expect("Linux counts CPU time") * 1e-9
}

/// The least time of several turns.
fn least_seconds<T>(mut work: impl FnMut() -> T) -> f64 {
    let turn = |_| {
        let begun = cpu_seconds();
        black_box(work());
        cpu_seconds() - begun
    };
    (0..TURNS).map(turn).fold(f64::INFINITY, f64::min)
}

/// What a figure is compared with, and how many times better it is.
struct Comparison<'a> {
    against: &'a str,
    ratio: f64,
}

fn figure(name: &str, value: f64, Comparison { against, ratio }: Comparison<'_>, goal: Option<f64>) {
    let met = goal.map(|goal| value >= goal);
    let line = serde_json::json!({
        "name": name, "value": value, "unit": "million/s", "against": against, "ratio": ratio, "goal": goal, "met": met,
    });
    println!("{line}");
}

fn in_memory(processes: u32, messages: u64) -> Vec<EventColumns> {
    let mut batches = vec![EventColumns::default()];
    let mut perceptions = 0;
    for event in Synthetic::new(processes) {
        if batches.last().is_none_or(|batch| batch.len() >= BATCH) {
            batches.push(EventColumns::default());
        }
        perceptions += u64::from(matches!(event, Event::Perception { .. }));
        batches.last_mut().expect("there is one").push(&event);
        if perceptions >= messages {
            return batches;
        }
    }
    batches
}

/// A log on disk from opening it to everything that is reported by default.
fn from_disk(processes: u32, messages: u64) {
    let directory = std::env::temp_dir().join(format!("ffclock-theta-bench-{}", std::process::id()));
    let mut writer = LogWriter::create(&directory, &synthetic::run(processes)).expect("room for a log");
    synthetic::clocks(processes).into_iter().for_each(|sample| writer.clock(sample));
    let mut perceptions = 0;
    for event in Synthetic::new(processes) {
        writer.event(&event).expect("room for a log");
        perceptions += u64::from(matches!(event, Event::Perception { .. }));
        if perceptions >= messages {
            break;
        }
    }
    writer.finish().expect("room for a log");
    let bytes: u64 = std::fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum();
    let begun = cpu_seconds();
    let log = LogReader::open(&directory).expect("just written");
    let tally = ffclock_theta::analysis::analyse(&log, Options::default(), &mut ()).expect("just written");
    let seconds = cpu_seconds() - begun;
    std::fs::remove_dir_all(&directory).expect("ours");
    let per_message = bytes as f64 / messages as f64;
    let against = format!("{per_message:.1} bytes a message, at most {} of memory", peak_memory());
    let rate = tally.counts.messages as f64 / seconds / 1e6;
    // 10^9 in 2 minutes.
    figure(
        "theta: messages of a log on disk, n = 4, everything",
        rate,
        Comparison { against: &against, ratio: 1.0 },
        Some(1000.0 / 120.0),
    );
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |size| size.trim().to_owned())
}

fn analyse(processes: u32, log: &[EventColumns]) -> PassTally {
    let run = synthetic::run(processes);
    let clocks = Clocks::new(&run, &synthetic::clocks(processes)).expect("clocks for all");
    let mut pass = LogPass::new(&run, clocks, 1, Options::default());
    for batch in log {
        pass.take(0, batch).expect("events that can be");
    }
    pass.finish()
}

/// From raw events to everything that is reported by default: counters to times, join, order, maxima, minima, rules.
fn whole_analysis(processes: u32, log: &[EventColumns]) -> PassTally {
    let seconds = least_seconds(|| analyse(processes, log));
    let tally = analyse(processes, log);
    let rate = tally.counts.messages as f64 / seconds / 1e6;
    let name = format!("theta: messages of a log in memory, n = {processes}, everything from raw events on");
    figure(&name, rate, Comparison { against: "", ratio: 1.0 }, None);
    tally
}

/// A message that is sent, or a look at what is in transit.
#[derive(Clone, Copy)]
enum Item {
    Message { delay: i64, end: i64 },
    Look { at: i64, relevant: i64 },
}

/// Messages in the order of sending, with switches between them: the join done beforehand.
fn joined(log: &[EventColumns]) -> Vec<Item> {
    let mut sent = std::collections::BTreeMap::new();
    let mut items = vec![];
    for event in log.iter().flat_map(EventColumns::events) {
        let event = event.expect("just made");
        let at = event.at().raw() as i64;
        match event {
            Event::Broadcast { process, round, .. } => drop(sent.insert((round, process), at)),
            Event::Perception { sender, round, .. } => {
                let sent = sent[&(round, sender)];
                items.push((sent, Item::Message { delay: at - sent, end: at }));
            }
            Event::Switch(_) => items.push((at + 1000, Item::Look { at: at + 1000, relevant: 40_000_000 })),
            Event::Transmission { .. } => {}
        }
    }
    items.sort_by_key(|&(at, _)| at);
    items.into_iter().map(|(_, item)| item).collect()
}

fn largest_by_queue(items: &[Item]) -> f64 {
    let (mut longest, mut largest) = (Longest::default(), 0.0f64);
    for item in items {
        match *item {
            Item::Message { delay, end } => longest.push(delay, end),
            Item::Look { at, relevant } => largest = largest.max(longest.at(at).unwrap_or(0) as f64 / relevant as f64),
        }
    }
    largest
}

fn largest_by_heap(items: &[Item]) -> f64 {
    let (mut heap, mut largest) = (BinaryHeap::new(), 0.0f64);
    for item in items {
        match *item {
            Item::Message { delay, end } => heap.push((delay, end)),
            Item::Look { at, relevant } => {
                while heap.peek().is_some_and(|&(_, end)| end <= at) {
                    heap.pop();
                }
                largest = largest.max(heap.peek().map_or(0, |&(delay, _)| delay) as f64 / relevant as f64);
            }
        }
    }
    largest
}

/// Omega of messages that have been joined and put in order: the monotone queue against a heap that forgets lazily.
fn transit_alone(processes: u32, log: &[EventColumns], tally: &PassTally) {
    let items = joined(log);
    assert_eq!(largest_by_queue(&items), largest_by_heap(&items), "both find the same");
    let messages = tally.counts.messages as f64;
    let (queue, heap) = (least_seconds(|| largest_by_queue(&items)), least_seconds(|| largest_by_heap(&items)));
    let name = format!("theta: messages of a joined log in memory, n = {processes}, exact Omega");
    figure(&name, messages / queue / 1e6, Comparison { against: "lazy heap", ratio: heap / queue }, Some(50.0));
}

fn clock_free(events: usize) {
    let run = synthetic::run(4);
    let mut builder = SpaceTime::builder(&run);
    Synthetic::new(4).take(events).for_each(|event| builder.take(&event).expect("a process of the run"));
    let begun = cpu_seconds();
    let graph = builder.build().expect("causes come first");
    let witness = xi(&graph).expect("delays differ");
    let seconds = cpu_seconds() - begun;
    let against = format!("Xi* = {}/{}, {} steps, {seconds:.2} s", witness.backward, witness.forward, graph.len());
    figure(
        "theta: events of Xi* with witness, n = 4",
        events as f64 / seconds / 1e6,
        Comparison { against: &against, ratio: 1.0 },
        Some(0.2),
    );
}

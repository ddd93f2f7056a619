//! Lists of messages in which a line is wrong: it alone is left out, wherever it is, and named.

mod common;

use common::Scratch;
use ffclock_theta::analysis::{Options, PassTally, analyse};
use ffclock_theta::import::{
    FaultyLine, ImportedMessages, LineFault, MessageOptions, MessageTable, TimeUnit, import_messages,
};
use ffclock_theta::log::LogReader;

const HEADER: &str = "sender,receiver,id,sent,perceived\n";
const BEGIN_US: u64 = 1_700_000_000_000_000;

/// A message of three senders in 200 rounds of 1 ms; one in each 50 rounds is slow.
#[derive(Clone, Copy)]
struct Message {
    sender: u64,
    id: u64,
    sent_us: u64,
    perceived_us: u64,
}

fn messages() -> Vec<Message> {
    let of_round = |id: u64| {
        (0..3).map(move |sender| {
            let sent_us = BEGIN_US + 1000 * id + sender;
            let slow_us = if id % 50 == 17 && sender == 2 { 400 } else { 0 };
            Message { sender, id, sent_us, perceived_us: sent_us + 100 + 10 * sender + slow_us }
        })
    };
    (0..200).flat_map(of_round).collect()
}

fn text(messages: &[Message]) -> String {
    let line = |message: &Message| {
        let Message { sender, id, sent_us, perceived_us } = message;
        format!("s{sender},r,{id},{sent_us},{perceived_us}\n")
    };
    HEADER.to_owned() + &messages.iter().map(line).collect::<String>()
}

fn imported(text: &str, name: &str) -> (ImportedMessages, PassTally) {
    let scratch = Scratch::new(name);
    let place = scratch.path().join("log");
    let table = MessageTable::from_text(text.as_bytes(), TimeUnit::Microseconds).expect("a list");
    let senders = (0..3).map(|sender| format!("s{sender}")).collect();
    let (longest_ns, rounds_open) = (u64::MAX, usize::MAX);
    let options = MessageOptions { receiver: "r".to_owned(), senders, tolerated: 1, longest_ns, rounds_open };
    let imported = import_messages(&table, options, &place).expect("most of it is usable");
    let log = LogReader::open(&place).expect("just written");
    (imported, analyse(&log, Options::default(), &mut ()).expect("just written"))
}

#[test]
fn a_wrong_line_is_left_out_alone_and_named() {
    let right = messages();
    type Wrong = fn(&mut Message);
    let ways: [(&str, Wrong); 5] = [
        ("perceived at 0", |message| message.perceived_us = 0),
        ("perceived far ahead", |message| message.perceived_us *= 3),
        ("sent at 0", |message| message.sent_us = 0),
        ("sent and perceived a year before", |message| {
            message.sent_us -= 365 * 86_400_000_000;
            message.perceived_us -= 365 * 86_400_000_000;
        }),
        ("sent and perceived a year later", |message| {
            message.sent_us += 365 * 86_400_000_000;
            message.perceived_us += 365 * 86_400_000_000;
        }),
    ];
    for place in [0, 1, right.len() / 2, right.len() - 1] {
        let mut others = right.clone();
        others.remove(place);
        let (_, expected) = imported(&text(&others), "others");
        for (way, make_wrong) in ways {
            let mut list = right.clone();
            make_wrong(&mut list[place]);
            let (found, tally) = imported(&text(&list), "wrong");
            assert_eq!((found.passed_over.remote, found.passed_over.damage()), (1, 1), "{way}, message {place}");
            // The header is line 1.
            let line = place as u64 + 2;
            assert_eq!(found.faulty, [FaultyLine { line, reason: LineFault::Remote }], "{way}");
            assert_eq!(tally, expected, "{way}, message {place}");
        }
    }
}

/// A program that writes 0 for what it does not know does so often.
#[test]
fn many_wrong_lines_do_not_decide_what_is_far() {
    let right = messages();
    let mut list = right.clone();
    list.iter_mut().step_by(10).for_each(|message| message.perceived_us = 0);
    let (found, tally) = imported(&text(&list), "tenth");
    assert_eq!((found.passed_over.remote, found.rounds.taken()), (60, 540));
    let lines: Vec<u64> = found.faulty.iter().map(|faulty| faulty.line).collect();
    assert_eq!(lines, (0..10).map(|number| 2 + 10 * number).collect::<Vec<u64>>(), "the first ten are named");
    let others: Vec<Message> =
        right.iter().enumerate().filter(|(place, _)| place % 10 != 0).map(|(_, message)| *message).collect();
    assert_eq!(tally, imported(&text(&others), "nine-tenths").1);
}

/// One of each kind that a list can have, in the order of their lines.
#[test]
fn each_fault_is_named_with_its_line() {
    let mut lines: Vec<String> = text(&messages()).lines().map(str::to_owned).collect();
    lines.insert(1, format!("s0,r,again,{BEGIN_US},0"));
    lines.insert(40, "no message".to_owned());
    lines.insert(90, lines[89].clone());
    lines.push(format!("stranger,r,1,{BEGIN_US},{BEGIN_US}"));
    let (found, _) = imported(&lines.join("\n"), "each");
    let named: Vec<_> = found.faulty.iter().map(|FaultyLine { line, reason }| (*line, *reason)).collect();
    let expected = [
        (2, LineFault::Remote),
        (41, LineFault::Malformed),
        (91, LineFault::Repeated),
        (lines.len() as u64, LineFault::Strangers),
    ];
    assert_eq!(named, expected);
    assert_eq!((found.passed_over.damage(), found.rounds.taken()), (4, 600));
}

//! A watch against the analysis of the same messages, imported.

mod common;

use common::Scratch;
use common::generator::Random;
use ffclock_theta::analysis::{Options, RecentFigures, TimeRange, analyse};
use ffclock_theta::import::{MessageError, MessageOptions, MessageTable, TimeUnit, import_messages};
use ffclock_theta::log::LogReader;
use ffclock_theta::watch::{MessageWatch, TooLongFigures, WatchEnd};

const HEADER: &str = "sender,receiver,id,sent,perceived\n";

fn options(senders: u32, tolerated: u32) -> MessageOptions {
    let senders = (1..=senders).map(|sender| format!("s{sender}")).collect::<Vec<_>>();
    MessageOptions {
        receiver: "r".to_owned(),
        senders,
        tolerated,
        longest_ns: 30_000_000_000,
        rounds_open: MessageWatch::ROUNDS_OPEN,
    }
}

/// Rounds of a random length, times in milliseconds so that many are equal. Some messages are missing or very slow.
fn lines(random: &mut Random, senders: u32, rounds: u64) -> Vec<String> {
    let (mut lines, mut begun) = (vec![], 0);
    for round in 0..rounds {
        begun += random.below(400);
        for sender in 1..=senders {
            let slow = if random.one_in(40) { random.below(20_000) } else { 0 };
            let (sent, took) = (begun + random.below(5), 1 + random.below(8) + slow);
            if !random.one_in(30) {
                lines.push((sent + took, format!("s{sender},r,{},{sent},{}\n", round + 5, sent + took)));
            }
        }
    }
    lines.sort_by_key(|(perceived, _)| *perceived);
    lines.into_iter().map(|(_, line)| line).collect()
}

fn watched(lines: &[String], options: MessageOptions, at_once: usize) -> WatchEnd {
    let mut watch = MessageWatch::new(options, TimeUnit::Milliseconds).expect("senders");
    let text = HEADER.to_owned() + &lines.concat();
    for (number, bytes) in text.as_bytes().chunks(at_once).enumerate() {
        watch.take(bytes).expect("a list");
        // Asking changes nothing.
        if number % 7 == 0 {
            watch.figures();
        }
    }
    watch.finish().expect("a list")
}

fn imported(lines: &[String], options: MessageOptions, scratch: &Scratch) -> LogReader {
    let text = HEADER.to_owned() + &lines.concat();
    let table = MessageTable::from_text(text.as_bytes(), TimeUnit::Milliseconds).expect("a list");
    let place = scratch.path().join("log");
    let passed_over = import_messages(&table, options, &place).expect("a list").passed_over;
    assert_eq!(passed_over.damage(), 0, "{passed_over:?}");
    LogReader::open(&place).expect("just written")
}

/// All of it is from senders that were not named: there is no log without events.
#[test]
fn a_list_of_which_nothing_can_be_used_leaves_no_log() {
    let scratch = Scratch::new("watch-nothing");
    let text = HEADER.to_owned() + "stranger,r,1,5,7\nstranger,r,2,8,9\n";
    let table = MessageTable::from_text(text.as_bytes(), TimeUnit::Milliseconds).expect("a list");
    let place = scratch.path().join("log");
    let error = import_messages(&table, options(2, 0), &place).expect_err("nothing is usable");
    assert!(matches!(error, MessageError::Nothing(_)), "{error}");
    assert!(!place.exists());
}

/// The figures of the run and of its last minute are those of the batch, bit by bit.
#[test]
fn a_watch_equals_the_analysis_of_the_imported_list() {
    let mut random = Random(20);
    let mut reached = 0;
    for number in 0..60 {
        let (senders, tolerated) = [(3, 1), (4, 0), (1, 0), (5, 2)][number % 4];
        let rounds = 20 + random.below(1500);
        let lines = lines(&mut random, senders, rounds);
        let end = watched(&lines, options(senders, tolerated), 1 + random.below(5000) as usize);
        let scratch = Scratch::new("watch");
        let log = imported(&lines, options(senders, tolerated), &scratch);
        let whole = analyse(&log, Options::default(), &mut ()).expect("just written");
        assert_eq!(end.tally, whole, "list {number}");

        let recent = end.figures.minute.expect("there are messages");
        let RecentFigures { after_ps, until_ps, .. } = recent;
        let range = TimeRange { after_ps, until_ps };
        let minute = analyse(&log, Options { range, ..Options::default() }, &mut ()).expect("just written");
        let expected = RecentFigures {
            after_ps,
            until_ps,
            messages: minute.counts.messages,
            switches: minute.first.times,
            omega: minute.first.omega,
            delay_max_ps: minute.delay_max_ps,
            relevant_min_ps: minute.first.relevant_min_ps,
            relevant_max_ps: minute.first.relevant_max_ps,
        };
        assert_eq!(recent, expected, "list {number}");
        reached += u32::from(recent.omega != whole.first.omega);
    }
    assert!(reached >= 10, "in {reached} of 60 lists the last minute differs from the run");
}

/// A list that leaves its order, and much else: nothing is silent, and nothing moves what the rest shows.
#[test]
fn what_cannot_be_used_is_counted_by_reason() {
    let good = lines(&mut Random(3), 3, 400);
    let clean = watched(&good, options(3, 1), 1 << 16);
    let mut bad = good.clone();
    let bits = [
        "s1,elsewhere,9,1,2\n",
        "stranger,r,9,1,2\n",
        "s1,r,9,1,\n",
        "s1,r,2000000,1,99999999999\n",
        "no message\n",
        "s1,r,7,x,9\n",
        "s1,r,8,0,1\n",
    ];
    for (place, line) in bits.iter().enumerate() {
        bad.insert(100 + 10 * place, (*line).to_owned());
    }
    let end = watched(&bad, options(3, 1), 1 << 16);
    let over = end.figures.passed_over;
    let counts = [over.elsewhere, over.strangers, over.lost, over.remote, over.malformed, over.out_of_order];
    assert_eq!(counts, [1, 1, 1, 1, 2, 1], "{over:?}");
    assert_eq!((over.damage(), end.run.unrecorded), (5, 5));
    assert_eq!(end.tally, clean.tally);
}

/// Lines as of a clock that is set back by `by_ms` before line `from`.
fn set_back(mut lines: Vec<String>, from: usize, by_ms: i64) -> Vec<String> {
    for line in &mut lines[from..] {
        let mut fields: Vec<String> = line.trim_end().split(',').map(str::to_owned).collect();
        for field in &mut fields[3..] {
            *field = (field.parse::<i64>().expect("a time") - by_ms).to_string();
        }
        *line = fields.join(",") + "\n";
    }
    lines
}

const DAY_MS: i64 = 86_400_000;

/// Only fifteen lines are passed over, whether the clock went back by an hour or by more than a log can hold.
#[test]
fn a_clock_that_steps_back_is_followed() {
    let lines = lines(&mut Random(4), 3, 400);
    for by_ms in [DAY_MS / 24, 60 * DAY_MS, 400 * DAY_MS] {
        let figures = watched(&set_back(lines.clone(), 600, by_ms), options(3, 1), 1 << 16).figures;
        let over = figures.passed_over;
        assert_eq!((figures.steps_back, over.out_of_order + over.remote, over.damage()), (1, 15, 15), "{over:?}");
        // Slow messages that were on their way meanwhile are of rounds that all have left.
        assert_eq!(figures.messages + figures.late, lines.len() as u64 - 15, "{by_ms}");
        assert!(figures.late < 15, "{by_ms}: {figures:?}");
        assert!(figures.delay_max_ps < Some(30_000_000_000_000), "no delay has the step in it");
        assert_eq!(figures.not_positive, 0, "{by_ms}");
        let minute = figures.minute.expect("there are messages");
        assert!(minute.messages > 300 && minute.messages < 1100, "{by_ms}: {minute:?}");
    }
}

/// A first line 400 days ahead, whether it is a message or only looks like one, hides fifteen lines and no more.
#[test]
fn one_wrong_line_far_ahead_does_not_blind() {
    let good = lines(&mut Random(6), 3, 400);
    let ahead = 400 * DAY_MS;
    for sent in [ahead - 1, 1] {
        let mut lines = good.clone();
        lines.insert(0, format!("s1,r,first,{sent},{ahead}\n"));
        let figures = watched(&lines, options(3, 1), 1 << 16).figures;
        assert_eq!(figures.steps_back, 1, "{sent}: {figures:?}");
        assert_eq!(figures.messages, good.len() as u64 - 15 + u64::from(sent != 1), "{sent}");
        assert_eq!(figures.passed_over.remote, 15 + u64::from(sent == 1), "{sent}");
    }
}

/// Fifteen in a row, lines of a clock that is behind among others, and lines late by less than a second: none of them
/// is a step.
#[test]
fn a_few_lines_out_of_order_are_no_step() {
    let good = lines(&mut Random(7), 3, 400);
    let mut late = good.clone();
    for number in 0..1000 {
        // In groups of fifteen, ten lines apart.
        late.insert(300 + number + 10 * (number / 15), format!("s1,r,late-{number},{0},{0}\n", number));
    }
    late.truncate(1700);
    let figures = watched(&late, options(3, 1), 1 << 16).figures;
    assert_eq!(figures.steps_back, 0, "{:?}", figures.passed_over);
    assert!(figures.passed_over.out_of_order > 700, "{:?}", figures.passed_over);
    let figures = watched(&set_back(good, 600, 900), options(3, 1), 1 << 16).figures;
    assert_eq!(figures.steps_back, 0);
}

/// Twenty messages of a minute: passed over and counted, and known for a minute.
#[test]
fn messages_that_are_too_long_are_known_for_a_minute() {
    const SECOND_NS: u64 = 1_000_000_000;
    let options = MessageOptions { longest_ns: SECOND_NS, ..options(3, 1) };
    let lines = steady(13_000, SECOND_NS / 100, |_, _| 130_000);
    let mut text = text_of(&lines[..3 * 6000], |at| at + 100 * SECOND_NS);
    for number in 0..20 {
        text += &format!("s1,r,slow-{number},{},{}\n", 100 * SECOND_NS, 160 * SECOND_NS);
    }
    let end = watched_text(&text, options.clone());
    let expected = TooLongFigures { messages: 20, delay_max_ps: 60_000_000_000_000 };
    assert_eq!((end.figures.minute_too_long, end.figures.passed_over.too_long), (Some(expected), 20));
    text += &text_of(&lines[3 * 6000..], |at| at + 100 * SECOND_NS)[HEADER.len()..];
    let end = watched_text(&text, options);
    assert_eq!((end.figures.minute_too_long, end.figures.passed_over.too_long), (None, 20));
}

#[test]
fn senders_are_bounded() {
    let of = |senders, tolerated| MessageWatch::new(options(senders, tolerated), TimeUnit::Seconds).err();
    assert!(matches!(of(0, 0), Some(MessageError::Senders(0))));
    assert!(matches!(of(1_000_000, 0), Some(MessageError::Senders(1_000_000))));
    assert!(matches!(of(3, 3), Some(MessageError::Tolerated { tolerated: 3, senders: 3 })));
    assert!(of(1000, 10).is_none());
}

/// A list with bytes changed, doubled and left out at random: counted or refused, never a panic.
#[test]
fn no_list_is_too_bad() {
    let mut random = Random(5);
    let mut whole = 0;
    for _ in 0..300 {
        let mut text = (HEADER.to_owned() + &lines(&mut random, 3, 30).concat()).into_bytes();
        for _ in 0..1 + random.below(30) {
            let place = random.below(text.len() as u64) as usize;
            match random.below(3) {
                0 => text[place] = random.below(256) as u8,
                1 => text.insert(place, b"0123456789,.-\n;"[random.below(15) as usize]),
                _ => drop(text.remove(place)),
            }
        }
        let mut watch = MessageWatch::new(options(3, 1), TimeUnit::Seconds).expect("senders");
        if watch.take(&text).is_ok() {
            let end = watch.finish().expect("a header");
            whole += u32::from(end.tally.counts.messages > 0);
        }
        let _ = MessageTable::from_text(text.as_slice(), TimeUnit::Nanoseconds);
    }
    assert!(whole > 100, "{whole} of 300 lists are of use");
}

/// Lines of rounds that begin `period_ns` after each other.
fn steady(rounds: u64, period_ns: u64, took_ns: impl Fn(u64, u64) -> u64) -> Vec<(u64, u64, u64, u64)> {
    let mut lines = vec![];
    for round in 0..rounds {
        for sender in 1..=3 {
            let sent = round * period_ns + 10 * sender;
            lines.push((sent + took_ns(round, sender), sent, sender, round));
        }
    }
    lines.sort_unstable();
    lines
}

fn text_of(lines: &[(u64, u64, u64, u64)], place_ns: impl Fn(u64) -> u64) -> String {
    let line = |&(perceived, sent, sender, round): &(u64, u64, u64, u64)| {
        format!("s{sender},r,{round},{},{}\n", place_ns(sent), place_ns(perceived))
    };
    HEADER.to_owned() + &lines.iter().map(line).collect::<String>()
}

fn watched_text(text: &str, options: MessageOptions) -> WatchEnd {
    let mut watch = MessageWatch::new(options, TimeUnit::Nanoseconds).expect("senders");
    text.as_bytes().chunks(1 << 16).for_each(|bytes| watch.take(bytes).expect("a list"));
    watch.finish().expect("a list")
}

/// A million messages a second, some of which are on their way for most of the half second that they may be: 140 000
/// rounds are under way at a time, and none is given up, neither by the watch nor by the analysis of the imported list.
#[test]
fn half_a_second_at_a_million_messages_a_second_is_kept_whole() {
    let slow = |round: u64, sender: u64| if (round * 3 + sender).is_multiple_of(9973) { 440_000_000 } else { 0 };
    let lines =
        steady(160_000, 3000, |round, sender| 20_000 + (round * 7 + sender * 1009) % 5000 + slow(round, sender));
    let text = text_of(&lines, |at| at);
    let options = MessageOptions { longest_ns: 500_000_000, ..options(3, 1) };
    let end = watched_text(&text, options.clone());
    let table = MessageTable::from_text(text.as_bytes(), TimeUnit::Nanoseconds).expect("a list");
    let scratch = Scratch::new("watch-million");
    let place = scratch.path().join("log");
    let passed_over = import_messages(&table, options, &place).expect("a list").passed_over;
    let batch = analyse(&LogReader::open(&place).expect("just written"), Options::default(), &mut ()).expect("a log");
    assert_eq!((passed_over.damage(), end.figures.passed_over.damage()), (0, 0));
    assert_eq!((end.figures.messages, end.figures.rounds, end.figures.late), (480_000, 160_000, 0));
    assert_eq!(batch.counts, end.tally.counts);
    assert!(end.tally == batch, "the figures differ");
}

/// Eighty days in pauses of twenty: the same figures as with pauses of an hour, which a log can hold.
#[test]
fn a_list_has_no_last_day() {
    const DAY_NS: u64 = 86_400_000_000_000;
    let lines = steady(1200, 3_000_000, |round, sender| 1_000_000 + (round * 7919 + sender * 104_729) % 5_000_000);
    // A pause in the middle of what is on its way would make it too long.
    let pauses = |at: u64| at.saturating_sub(20_000_000) / 900_000_000;
    let in_pause = |line: &&(u64, u64, u64, u64)| pauses(line.0) == pauses(line.1);
    let lines: Vec<_> = lines.iter().filter(in_pause).copied().collect();
    let with_pauses = |pause_ns: u64| watched_text(&text_of(&lines, |at| at + pauses(at) * pause_ns), options(3, 1));
    let (long, short) = (with_pauses(20 * DAY_NS), with_pauses(DAY_NS / 24));
    assert_eq!(long.figures.passed_over.damage(), 0, "{:?}", long.figures.passed_over);
    assert_eq!(long.figures.messages, lines.len() as u64);
    let without_times = |end: &WatchEnd| {
        let mut tally = end.tally.clone();
        let peaks = [&mut tally.first.omega, &mut tally.all.omega, &mut tally.throughout];
        peaks.into_iter().flatten().for_each(|peak| peak.at_ps = 0);
        tally.span_ps = None;
        let mut figures = end.figures;
        figures.minute = None;
        (tally, figures)
    };
    assert_eq!(without_times(&long), without_times(&short));
    let minute = |end: &WatchEnd| {
        let minute = end.figures.minute.expect("there are messages");
        (
            minute.messages,
            minute.omega.map(|peak| (peak.ratio, peak.round)),
            minute.delay_max_ps,
            minute.relevant_min_ps,
        )
    };
    assert_eq!(minute(&long), minute(&short));
    let latest = lines.iter().filter(|line| pauses(line.1) == pauses(u64::MAX / 4).min(3)).count();
    assert!(minute(&long).0 <= latest as u64 + 9, "a minute holds what came after the last pause");
}

/// One line far ahead is passed over; a clock that has gone there is followed, and so is one that steps by an hour.
#[test]
fn a_clock_that_steps_forward_is_followed() {
    const DAY_NS: u64 = 86_400_000_000_000;
    let lines = steady(1000, 3_000_000, |round, sender| 1_000_000 + (round * 31 + sender * 17) % 1_000_000);
    for step_ns in [DAY_NS / 24, 30 * DAY_NS, 70 * DAY_NS, 400 * DAY_NS] {
        let after = |at: u64| at + if at > 1_500_000_000 { step_ns } else { 0 };
        let mut text = text_of(&lines, after);
        let second_line = HEADER.len() + text[HEADER.len()..].find('\n').expect("lines") + 1;
        text.insert_str(second_line, &format!("s1,r,x,{0},{0}\n", 900 * DAY_NS));
        let end = watched_text(&text, MessageOptions { longest_ns: 1_000_000_000, ..options(3, 1) });
        let over = end.figures.passed_over;
        // Of a few messages on their way the clock stepped between the ends.
        assert!(over.too_long <= 3, "{step_ns}: {over:?}");
        let far = if step_ns > 50 * DAY_NS { 16 } else { 1 };
        assert_eq!((over.remote, over.out_of_order, over.damage() - over.too_long), (far, 0, far), "{step_ns}");
        assert_eq!(end.figures.messages, lines.len() as u64 - over.too_long - (far - 1), "{step_ns}");
        let minute = end.figures.minute.expect("there are messages");
        assert!(minute.messages > 1000 && minute.messages < 1600, "{step_ns}: {minute:?}");
        assert!(end.figures.delay_max_ps < Some(3_000_000_000), "no delay has the step in it");
        assert_eq!(end.figures.not_positive, 0);
    }
}

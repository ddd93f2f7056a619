//! Any bytes as a list of messages: an error in words, or a log that can be read and analysed; cut anywhere, the same
//! messages.
#![no_main]

mod files;

use ffclock_theta::analysis::{Options, analyse};
use ffclock_theta::import::{ImportedMessages, MessageLines, MessageOptions, MessageTable, TimeUnit, import_messages};
use ffclock_theta::log::LogReader;
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::sync::Once;

const UNITS: [TimeUnit; 4] = [TimeUnit::Nanoseconds, TimeUnit::Microseconds, TimeUnit::Milliseconds, TimeUnit::Seconds];
const HEADER: &[u8] = b"sender,receiver,id,sent,perceived\n";

/// The messages, in words, and the number of lines that are none; `None` without a header.
fn lines(chunks: &[&[u8]], unit: TimeUnit) -> Option<(Vec<String>, u64)> {
    let (mut lines, mut seen) = (MessageLines::new(unit), vec![]);
    for chunk in chunks {
        lines
            .push(chunk, &mut |message| {
                seen.push(format!("{message:?}"));
                Ok(())
            })
            .ok()?;
    }
    lines
        .finish(&mut |message| {
            seen.push(format!("{message:?}"));
            Ok(())
        })
        .ok()?;
    Some((seen, lines.malformed))
}

fuzz_target!(|bytes: &[u8]| {
    static FIRST: Once = Once::new();
    FIRST.call_once(files::allow_panics_of_the_library);
    let [choice, cut, rest @ ..] = bytes else { return };
    let unit = UNITS[usize::from(choice & 3)];
    let list = if choice & 4 == 0 { [HEADER, rest].concat() } else { rest.to_vec() };
    let (before, after) = list.split_at(usize::from(*cut).min(list.len()));
    assert_eq!(lines(&[&list], unit), lines(&[before, after], unit));

    let directory = files::place("messages");
    let _ = fs::remove_dir_all(&directory);
    let table = if choice & 8 == 0 {
        MessageTable::from_text(&list[..], unit)
    } else {
        fs::create_dir_all(&directory).expect("room for a list");
        let path = directory.join("list.parquet");
        fs::write(&path, rest).expect("room for a list");
        MessageTable::from_parquet(fs::File::open(path).expect("just written"), unit)
    };
    let receiver = table.as_ref().ok().and_then(|table| table.receiver().ok());
    match (table, receiver) {
        (Err(error), _) => assert!(!error.to_string().is_empty()),
        (Ok(table), Some(receiver)) => {
            let senders = table.senders(&receiver);
            let (tolerated, longest_ns, rounds_open) = (u32::from(choice >> 6), u64::MAX, usize::MAX);
            let options = MessageOptions { receiver, senders, tolerated, longest_ns, rounds_open };
            match import_messages(&table, options, &directory.join("log")) {
                Err(error) => assert!(!error.to_string().is_empty()),
                Ok(ImportedMessages { rounds, passed_over, .. }) => {
                    let log = LogReader::open(&directory.join("log")).expect("an imported log can be read");
                    assert_eq!(log.run().unrecorded, passed_over.damage());
                    let tally = analyse(&log, Options::default(), &mut ());
                    assert!(tally.is_ok() && rounds.rounds() <= rounds.taken());
                }
            }
        }
        _ => {}
    }
    let _ = fs::remove_dir_all(&directory);
});

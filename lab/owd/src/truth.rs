//! The error of one-way delays where both ends read the same counter, so that the true delays are known.
//!
//! The reflector writes down the counter at T2 and T3 of each packet, the sender at T1 and T4. The difference of two
//! readings is the true delay between these stamps, without any clock.

use crate::judge::{Delay, PacketFate};
use crate::record::OwdRow;
use ffclock_statistics::{Containment, Spread};
use ffclock_units::{Bound, ClockError, Counter, Period};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, BufRead};

/// The counter at T2 and at T3 of each packet, by its sequence number on the wire.
pub type ReflectorPassages = BTreeMap<u32, [Counter; 2]>;

/// How far delays were from the truth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TruthFigures {
    /// Packets with both delays and both true delays.
    pub compared: u64,
    /// Delays whose bound did not hold the true one.
    pub outside: u64,
    /// The size of the error to the reflector [ns].
    pub forward_error_ns: Option<Spread>,
    /// The size of the error from the reflector [ns].
    pub backward_error_ns: Option<Spread>,
}

/// Reads what a reflector wrote down of a session. Lines that make no sense are an error.
///
/// # Errors
/// The text cannot be read, or a line of it makes no sense.
pub fn read_passages(input: impl BufRead, session: u16) -> io::Result<ReflectorPassages> {
    let mut passages = ReflectorPassages::new();
    for (number, line) in input.lines().enumerate().skip(1) {
        let line = line?;
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("line {} makes no sense", number + 1));
        let fields: Vec<&str> = line.split(',').collect();
        let [_, named, sequence, received, sent] = fields[..] else { return Err(wrong()) };
        if named.parse() != Ok(session) {
            continue;
        }
        let counter = |text: &str| text.parse().map(Counter::from_raw).map_err(|_| wrong());
        let sequence = sequence.parse().map_err(|_| wrong())?;
        // The first passage of a packet that came twice is the one whose reply comes first.
        passages.entry(sequence).or_insert([counter(received)?, counter(sent)?]);
    }
    Ok(passages)
}

/// Compares the packets that were measured.
pub fn compare(rows: &[OwdRow], passages: &ReflectorPassages, period: Period) -> TruthFigures {
    let mut containment = Containment::default();
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| row.fate == PacketFate::Measured) {
        let theirs = passages.get(&(row.number as u32));
        let (Some([received, sent]), Some(arrived)) = (theirs, row.received_counter) else { continue };
        let (Some(to), Some(back)) = (row.forward, row.backward) else { continue };
        let mut judge = |delay: Delay, [from, until]: [Counter; 2]| {
            let error = ClockError::new(delay.delay - period * (until - from));
            containment.judge(error, delay.bound);
            Bound::of(error.as_span()).as_seconds() * 1e9
        };
        forward.push(judge(to, [row.sent_counter, *received]));
        backward.push(judge(back, [*sent, arrived]));
    }
    TruthFigures {
        compared: forward.len() as u64,
        outside: containment.outside(),
        forward_error_ns: Spread::of(&forward),
        backward_error_ns: Spread::of(&backward),
    }
}

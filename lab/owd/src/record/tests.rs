//! Records written and read back, and records that were damaged.

use super::*;
use serde_json::json;
use std::path::PathBuf;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Scratch(std::env::temp_dir().join(format!("ffclock-owd-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn rows() -> Vec<OwdRow> {
    let delay = |ps| Delay { delay: span(ps), bound: Bound::of(span(5_000_000)) };
    let measured = OwdRow {
        number: 3,
        fate: PacketFate::Measured,
        sent: Moment::from_origin(Span::from_nanos(1_800_000_000_123_456_789)),
        forward: Some(delay(-12_345)),
        backward: Some(delay(70_000_001)),
        round_trip: Some(span(69_987_656)),
        held: Some(span(9_000_000)),
        reflector_sequence: Some(2),
        sent_counter: Counter::from_raw(u64::MAX),
        received_counter: Some(Counter::from_raw(7)),
    };
    let lost = OwdRow {
        number: 4,
        fate: PacketFate::Lost,
        forward: None,
        backward: None,
        round_trip: None,
        held: None,
        reflector_sequence: None,
        received_counter: None,
        ..measured
    };
    vec![measured, lost]
}

#[test]
fn a_record_is_read_back_as_it_was_written() {
    for name in ["rows.csv", "rows.parquet"] {
        let scratch = Scratch::new(name);
        let mut writer = RecordWriter::create(&scratch.0, &json!({ "session": 9 })).unwrap();
        for row in rows() {
            writer.append(&row).unwrap();
        }
        writer.finish().unwrap();
        let record = read(&scratch.0).unwrap();
        assert_eq!(record.about["session"], 9, "{name}");
        let cells =
            |rows: &[OwdRow]| rows.iter().map(OwdRow::cells).map(|cells| cells[..3].to_vec()).collect::<Vec<_>>();
        assert_eq!(cells(&record.rows), cells(&rows()), "{name}");
        assert_eq!(record.rows[1], rows()[1], "{name}");
        // A bound is rounded up each time, never down.
        let bound = |rows: &[OwdRow]| rows[0].forward.unwrap().bound;
        assert!(bound(&record.rows) >= bound(&rows()), "{name}");
    }
}

#[test]
fn what_is_damaged_or_something_else_is_refused() {
    let scratch = Scratch::new("damaged.csv");
    let header = format!("# {FORMAT} {{}}\nfate,{}\n", COLUMNS.join(","));
    for (text, said) in [
        ("", "does not begin with its format"),
        ("a,b\n", "does not begin with its format"),
        ("# ffclock owd 1 {}\nfate\n", "other columns"),
        (&format!("{header}lost,1\n"), "line 3 makes no sense (it ends before sent_ns)"),
        (&format!("{header}gone,1,,,,,,,,,,\n"), "no fate"),
        (&format!("{header}lost,x,,,,,,,,,,\n"), "sequence is no whole number"),
        (&format!("{header}lost,1,,,,,,,,,,\n"), "no number or no time"),
        (&format!("{header}lost,1,2,,,,,,,,3,,\n"), "too many fields"),
    ] {
        std::fs::write(&scratch.0, text).unwrap();
        let error = read(&scratch.0).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
    std::fs::write(&scratch.0, b"PAR1 and nothing more").unwrap();
    assert!(matches!(read(&scratch.0), Err(RecordFault::Table(_))));
}

#[test]
fn picoseconds_saturate_and_bounds_round_up() {
    assert_eq!(picoseconds(Span::MAX), i64::MAX);
    assert_eq!(picoseconds(Span::from_nanos(-7)), -7_000);
    assert!(span(picoseconds_up(Bound::of(Span::from_nanos(7)))) >= Span::from_nanos(7));
}

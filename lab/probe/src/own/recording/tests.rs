//! Recordings that can be calibrated by, and those that cannot.

use super::*;
use core::ops::Deref;
use ffclock_trace::{Recorder, ServerIndex, TraceRow};
use ffclock_units::{CounterEpoch, Moment, ServerQuality, Stamp, StampLocation, Ticks};

fn ghz() -> Period {
    Period::from_hertz(1e9).unwrap()
}

fn exchange(at: u64) -> Exchange {
    let stamp = |raw| Stamp { counter: Counter::from_raw(raw), width: Ticks::ZERO, location: StampLocation::User };
    let server = Moment::from_origin(Span::from_secs(1));
    Exchange {
        sent: stamp(at),
        server_in: server,
        server_out: server,
        received: stamp(at + 1_000),
        server: ServerQuality::default(),
    }
}

/// A recording in a directory of its own, which goes with it.
struct Kept(DaemonRecording);

impl Deref for Kept {
    type Target = DaemonRecording;

    fn deref(&self) -> &DaemonRecording {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.path.parent().map(std::fs::remove_dir_all);
    }
}

/// A recording with these keys and a row for each (epoch, Ta).
fn recorded(name: &str, metadata: &[(&str, &str)], rows: &[(u64, u64)]) -> Kept {
    let directory = std::env::temp_dir().join(format!("ffclock-own-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let header = TraceHeader {
        counter: Some("tsc".to_owned()),
        nominal: Some(ghz()),
        metadata: metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..TraceHeader::default()
    };
    let path = directory.join("one.fftrace");
    let mut recorder = Recorder::create(&path, &header).unwrap();
    for (sequence, (epoch, at)) in rows.iter().enumerate() {
        let (sequence, epoch) = (sequence as u64, CounterEpoch::from_raw(*epoch));
        let row = TraceRow { sequence, epoch, exchange: Some(exchange(*at)), truth: None, server: ServerIndex(0) };
        recorder.append(&row).unwrap();
    }
    recorder.flush().unwrap();
    let recording = DaemonRecording::open(&directory).unwrap();
    assert_eq!(recording.path, path);
    Kept(recording)
}

fn refusal(metadata: &[(&str, &str)], purpose: Purpose) -> Option<String> {
    let name = format!("refusal-{}", metadata.iter().map(|(_, value)| *value).collect::<String>());
    recorded(&name, metadata, &[]).check(purpose).err().map(|error| error.to_string())
}

#[test]
fn only_stamps_as_they_were_taken_before_the_driver_are_calibrated_by() {
    let calibrated = [("asymmetry", "calibrated"), ("stamps", "user")];
    let refused = refusal(&calibrated, Purpose::Calibration).unwrap();
    assert!(refused.contains("restart it, which begins a new recording") && refused.contains("--check"), "{refused}");
    let refused = refusal(&[], Purpose::Calibration).unwrap();
    assert!(refused.contains("recorded by an earlier ffclockd"), "{refused}");
    for stamps in ["trace", "module"] {
        let refused = refusal(&[("asymmetry", "unknown"), ("stamps", stamps)], Purpose::Calibration).unwrap();
        assert!(refused.contains("taken at the driver and need none"), "{refused}");
    }
    for stamps in ["user", "kernel"] {
        assert_eq!(refusal(&[("asymmetry", "unknown"), ("stamps", stamps)], Purpose::Calibration), None);
    }
    assert_eq!(refusal(&calibrated, Purpose::Check), None);
    assert_eq!(refusal(&[], Purpose::Check), None);
}

#[test]
fn earlier_rows_and_those_of_other_epochs_are_passed_over() {
    let rows = [(1, 9_000_000), (1, 9_500_000), (2, 1_000_000), (2, 2_000_000), (2, 3_000_000)];
    let recording = recorded("epochs", &[], &rows);
    let all = recording.read().unwrap();
    assert_eq!(all.exchanges.len(), 3, "the latest epoch");
    let since = all.since(Counter::from_raw(1_500_000));
    assert_eq!(since.exchanges[0].sent.counter, Counter::from_raw(2_000_000));
    assert_eq!(since.exchanges.len(), 2);
}

#[test]
fn a_damaged_row_is_passed_over_and_counted() {
    let recording = recorded("damage", &[], &[(1, 1_000_000), (1, 2_000_000), (1, 3_000_000)]);
    let mut bytes = std::fs::read(&recording.path).unwrap();
    let inside_second = bytes.len() - 112 - 60;
    bytes[inside_second] ^= 1;
    std::fs::write(&recording.path, bytes).unwrap();
    let recorded = recording.read().unwrap();
    assert_eq!((recorded.exchanges.len(), recorded.unreadable), (2, 1));
}

#[test]
fn a_look_that_is_too_short_is_refused_at_once_with_the_length_that_is_not() {
    const POLL: u64 = 16_000_000_000;
    // It began with a burst.
    let burst = (0..4).map(|number| (1, 1_000_000_000 * number));
    let polls = (1..=16).map(|number| (1, 10_000_000_000 + POLL * number));
    let rows: Vec<(u64, u64)> = burst.chain(polls).collect();
    let recorded_rows = recorded("length", &[], &rows).read().unwrap();
    let refused = recorded_rows.check_length(Span::from_secs(120), ghz()).unwrap_err().to_string();
    assert!(refused.contains("'120 s' is too short") && refused.contains("--for '800 s'"), "{refused}");
    recorded_rows.check_length(Span::from_secs(800), ghz()).unwrap();
    let unknown = recorded("unknown", &[], &rows[..1]).read().unwrap();
    unknown.check_length(Span::from_secs(1), ghz()).unwrap();
}

//! The same exchanges in every format, and how each format treats bad input.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its own data has failed")]

use ffclock_trace::{CsvWriter, Format, Recorder, ServerIndex, TraceReader, TraceRow};
use ffclock_units::{Bound, Exchange, Leap, LeapTable, Moment, Period, Span, Tai, Ticks};
use proptest::prelude::*;
use std::io::Cursor;
use std::path::PathBuf;

fn data(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", name].iter().collect()
}

fn open(name: &str) -> TraceReader {
    TraceReader::open(data(name)).unwrap()
}

fn rows(name: &str) -> Vec<TraceRow> {
    open(name).collect::<Result<_, _>>().unwrap()
}

fn read(bytes: &[u8]) -> (Vec<TraceRow>, Vec<String>) {
    match TraceReader::from_reader(Box::new(Cursor::new(bytes.to_vec()))) {
        Err(error) => (Vec::new(), vec![error.to_string()]),
        Ok(reader) => {
            let (good, bad): (Vec<_>, Vec<_>) = reader.partition(Result::is_ok);
            (
                good.into_iter().flatten().collect(),
                bad.into_iter().filter_map(Result::err).map(|e| e.to_string()).collect(),
            )
        }
    }
}

/// UTC in the year 2023 is 37 s behind TAI (IERS Bulletin C).
fn tai(utc: &str) -> Moment<Tai> {
    Moment::from_origin(format!("{utc} s").parse::<Span>().unwrap() + Span::from_secs(37))
}

fn exchange(row: &TraceRow) -> Exchange {
    row.exchange.unwrap()
}

#[test]
fn csv_keeps_twelve_decimals_and_everything_about_the_server() {
    let mut reader = open("trace.csv");
    assert_eq!(reader.format(), Format::Csv);
    assert_eq!(reader.header().counter.as_deref(), Some("tsc"));
    assert_eq!(reader.header().nominal, Period::from_hertz(1e9));
    assert!(reader.header().truth);
    assert_eq!(reader.notes(), ["the column \"temperature\" is not known and was ignored"]);
    let rows: Vec<TraceRow> = reader.by_ref().collect::<Result<_, _>>().unwrap();
    let first = exchange(&rows[0]);
    assert_eq!((first.sent.counter.raw(), first.received.counter.raw()), (5_000_000_000, 5_000_300_000));
    assert_eq!((first.sent.width, first.received.width), (Ticks::from_raw(40), Ticks::from_raw(60)));
    assert_eq!(first.server_in, tai("1700000000.123456789012"));
    assert_eq!(first.server_out, tai("1700000000.123466789012"));
    assert_eq!(first.server.identity.reference_id.to_be_bytes(), *b"GPS\0");
    assert_eq!(first.server.root_distance, "0.000030517578125 s".parse::<Bound>().unwrap());
    assert_eq!(rows[0].truth.unwrap().received, tai("1700000000.123606789012"));
    assert_eq!(rows[0].truth.unwrap().sent, Some(tai("1700000000.123306789012")));
    assert_eq!(rows.iter().map(|row| row.sequence).collect::<Vec<_>>(), [10, 11, 12]);
    assert!(rows[1].exchange.is_none() && rows[1].truth.is_none());
    let third = exchange(&rows[2]);
    assert_eq!(third.server.leap, Leap::Insert);
    assert_eq!(third.server.root_distance, "7 ms".parse::<Bound>().unwrap());
    assert_eq!(reader.server_name(rows[2].server), Some("far"));
}

#[test]
fn integer_nanoseconds_are_the_same_times() {
    let rows = rows("nanoseconds.csv");
    assert_eq!(exchange(&rows[0]).server_in, tai("1700000000.123456789"));
    assert_eq!(rows[0].truth.unwrap().received, tai("1700000000.123606789"));
    assert_eq!((rows[0].truth.unwrap().sent, rows[1].exchange), (None, None));
}

#[test]
fn radclock_stamps_of_every_age_are_the_same_exchanges() {
    let plain: Vec<Exchange> = rows("radclock-plain.txt").iter().map(exchange).collect();
    assert_eq!(plain[0].server_in, tai("1700000000.123456789"));
    assert_eq!(plain[1].received.counter.raw(), 37_038_000_000);
    for name in ["radclock-2009.txt", "radclock-reference.txt", "radclock-servers.txt"] {
        let exchanges: Vec<Exchange> = rows(name).iter().map(exchange).collect();
        assert_eq!(exchanges, plain, "{name}");
        assert_eq!(open(name).format(), Format::Radclock);
    }
}

#[test]
fn radclock_columns_five_and_six_are_distinguished() {
    let keyed = rows("radclock-servers.txt");
    assert_eq!(keyed.iter().map(|row| row.server.0).collect::<Vec<_>>(), [0, 1]);
    assert!(keyed.iter().chain(&rows("radclock-2009.txt")).all(|row| row.truth.is_none()));
    let referenced = rows("radclock-reference.txt");
    let truth = referenced[0].truth.unwrap();
    assert_eq!((truth.sent, truth.received), (Some(tai("1700000000.123306789")), tai("1700000000.123606789")));
    assert_eq!(referenced[1].truth.unwrap().sent, None);
    assert!(referenced.iter().all(|row| row.server == ServerIndex(0)));
}

#[test]
fn rawstats_give_stamps_of_the_system_clock() {
    let mut reader = open("rawstats");
    assert_eq!(reader.format(), Format::Rawstats);
    assert_eq!(reader.header().nominal, Period::from_hertz(1e9));
    let rows: Vec<TraceRow> = reader.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!(rows.iter().map(|row| row.exchange.is_some()).collect::<Vec<_>>(), [true, false, true, false, false]);
    let first = exchange(&rows[0]);
    assert_eq!(first.sent.counter.raw(), 1_700_000_037_123_306_789);
    assert_eq!(first.received.counter - first.sent.counter, Ticks::from_raw(300_000));
    assert_eq!(first.server_in, tai("1700000000.123456789"));
    let precision = Span::from_units(1 << 40);
    assert_eq!(first.server.root_distance, Bound::of(Span::from_micros(31) + precision));
    let third = exchange(&rows[2]);
    assert_eq!((third.server.leap, third.server.identity.reference_id), (Leap::Insert, 0xc000_0207));
    assert_eq!(reader.server_name(rows[2].server), Some("2001:db8::7"));
    assert!(reader.notes()[1].starts_with("1 lines of reference clocks"));
}

#[test]
fn rawstats_find_their_era_by_the_date_of_the_line() {
    let line = "65000 0.0 192.0.2.10 192.0.2.1 23304000.5 23304000.6 23304000.7 23304000.8\n";
    let (rows, errors) = read(line.as_bytes());
    assert_eq!(errors, Vec::<String>::new());
    let written = (65_000 - 40_587) * 86_400;
    let apart = exchange(&rows[0]).server_in - Moment::from_origin(Span::from_secs(written + 37));
    assert!(apart.abs() < Span::from_secs(1000), "{apart:?}");
}

#[test]
fn chrony_measurements_give_back_their_offsets_and_delays() {
    let reader = open("measurements.log");
    assert_eq!(reader.format(), Format::Chrony);
    let rows = rows("measurements.log");
    assert_eq!(rows.iter().map(|row| row.exchange.is_some()).collect::<Vec<_>>(), [true, false, true]);
    let first = exchange(&rows[0]);
    let second = (1_700_000_000 + 37) * 1_000_000_000u64;
    assert_eq!((first.sent.counter.raw(), first.received.counter.raw()), (second - 150_000, second + 150_000));
    assert_eq!(first.server_in, tai("1700000000.000025"));
    assert_eq!(first.server_in, first.server_out);
    let third = exchange(&rows[2]);
    assert_eq!(third.received.counter - third.sent.counter, Ticks::from_raw(38_000_000));
    assert_eq!((tai("1700000032") - third.server_in).as_nanos(), 4_966_000);
    assert_eq!(third.server.root_distance.as_nanos_up(), 7_000_000);
    assert_eq!((third.server.leap, third.server.identity.reference_id), (Leap::Insert, 0xc000_0207));
}

/// The committed file holds the rows of trace.csv. It must stay readable, and the recorder must write the same bytes.
#[test]
fn the_native_format_has_not_changed() {
    let golden = std::fs::read(data("version1.trace")).unwrap();
    let reader = open("version1.trace");
    assert_eq!(reader.format(), Format::Native);
    let header = reader.header().clone();
    let wanted = rows("trace.csv");
    assert_eq!(reader.collect::<Result<Vec<_>, _>>().unwrap(), wanted);
    let mut written = Vec::new();
    let mut recorder = Recorder::to_writer(&mut written, &header).unwrap();
    wanted.iter().for_each(|row| recorder.append(row).unwrap());
    drop(recorder);
    assert_eq!(written, golden);
}

#[test]
fn written_csv_reads_back() {
    let reader = open("trace.csv");
    let header = reader.header().clone();
    let wanted = rows("trace.csv");
    let mut text = Vec::new();
    let mut writer = CsvWriter::new(&mut text, &header).unwrap();
    wanted.iter().for_each(|row| writer.append(row).unwrap());
    writer.flush().unwrap();
    let back = TraceReader::from_reader(Box::new(Cursor::new(text.clone()))).unwrap();
    assert_eq!(back.header(), &header);
    let rounded_up = |row: &TraceRow| {
        row.exchange.map(|exchange| exchange.server.root_distance.as_span() + Span::from_units(1 << 24))
    };
    for (row, wanted) in read(&text).0.iter().zip(&wanted) {
        assert_eq!((row.sequence, row.truth, row.server), (wanted.sequence, wanted.truth, wanted.server));
        assert_eq!(row.exchange.map(|e| (e.sent, e.received)), wanted.exchange.map(|e| (e.sent, e.received)));
        assert_eq!(
            row.exchange.map(|e| (e.server_in, e.server_out)),
            wanted.exchange.map(|e| (e.server_in, e.server_out))
        );
        let distance = row.exchange.map(|exchange| exchange.server.root_distance.as_span());
        assert!(distance >= wanted.exchange.map(|exchange| exchange.server.root_distance.as_span()));
        assert!(distance <= rounded_up(wanted));
    }
    assert_eq!(read(&text).0.len(), wanted.len());
}

#[test]
fn times_in_csv_are_utc_across_a_leap_second() {
    let text = "Ta,Tb,Te,Tf\n1,1483228799.5,1483228799.5,2\n3,1483228800.5,1483228800.5,4\n";
    let (rows, _) = read(text.as_bytes());
    assert_eq!(exchange(&rows[1]).server_in - exchange(&rows[0]).server_in, Span::from_secs(2));
    let midnight = Moment::from_origin(Span::from_secs(1_483_228_800));
    assert_eq!(exchange(&rows[1]).server_in, LeapTable::built_in().tai_from_utc(midnight) + Span::from_millis(500));
}

#[test]
fn friendly_csv_is_understood() {
    let text = "\u{feff}\"Ta\", tb ,Te,TF,server\r\n\r\n 1 ,2.5,2.5, 3,\"a, b\"\r\n# remark\r\n4,,,,\"a, b\"";
    let (rows, errors) = read(text.as_bytes());
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!((rows.len(), exchange(&rows[0]).received.counter.raw()), (2, 3));
    assert_eq!((rows[1].exchange, rows[1].sequence, rows[1].server), (None, 1, ServerIndex(0)));
}

#[test]
fn bad_input_is_named_with_its_line() {
    let csv = "Ta,Tb,Te,Tf\n1,2,3,4\n";
    let stamps = "1 2.0 3.0 4\n";
    let raw = "60262 80000 192.0.2.10 192.0.2.1 3908988800.1 3908988800.1 3908988800.1 3908988800.1";
    let chrony = "2023-11-14 22:13:20 192.0.2.10 N 1 111 111 1111 4 4 0.5";
    let rest = "2.5e-05 3e-04 1e-06 0 3e-05 47505300";
    for (text, expected) in [
        (String::new(), "the file is empty"),
        ("hello\n".into(), "begins with \"hello\""),
        ("seq,Ta,Tb,Tf\n".into(), "line 1: the header has no column Te"),
        ("Ta,Tb,Te,Tf,ta\n".into(), "line 1: the header names the column Ta twice"),
        ("# period=nonsense\nTa,Tb,Te,Tf\n".into(), "line 1: the header of the trace is damaged"),
        (format!("{csv}1,2,3\n"), "line 3: 3 cells where 4 are needed: \"1,2,3\""),
        (format!("{csv}1,2,3,4,5\n"), "line 3: 5 cells where 4 are needed"),
        (format!("{csv}1.5,2,3,4\n"), "line 3: Ta: not a whole number: \"1.5\""),
        (format!("{csv}\n1,2x,3,4\n"), "line 4: Tb: not a decimal number: \"2x\""),
        (format!("{csv}1,,3,4\n"), "line 3: Tb is missing"),
        (format!("{csv}1,2,3,\n"), "line 3: Tf is missing"),
        (format!("{csv}99999999999999999999,2,3,4\n"), "line 3: Ta: too many digits"),
        (format!("{csv}{}\n", "7".repeat(70_000)), "line 3: the line is longer than 64 KiB: \"7777"),
        (format!("{stamps}1 2 3\n"), "line 2: 3 cells where 4 are needed"),
        (format!("{stamps}1 2 x 4\n"), "line 2: Te: not a decimal number: \"x\""),
        (format!("{stamps}-1 2 3 4\n"), "line 2: Ta: not a decimal number: \"-1\""),
        (format!("{raw}\n60262 80000 a b 1 2\n"), "line 2: 6 cells where 8 are needed"),
        (format!("{raw}\n60262 80000 a b 1 2 3 4z\n"), "line 2: destination: not a decimal number: \"4z\""),
        (format!("{raw} 0 4 4 99 4 -24 0 0 GPS 1\n"), "line 1: stratum: not a stratum, 0 to 16: \"99\""),
        (format!("{raw} 0 4 4 1 4 -99 0 0 GPS 1\n"), "line 1: precision: not a power of two"),
        (format!("{chrony}\n"), "line 1: 11 cells where 17 are needed"),
        (format!("{chrony} {rest}\n2023-02-30 0:0:0 a N 1 1 1 1 4 4 1 {rest}\n"), "line 2: date: not a date"),
        (format!("{chrony} {rest}\n2023-02-03 24:0:0 a N 1 1 1 1 4 4 1 {rest}\n"), "line 2: time: not a time of day"),
        (format!("{chrony} {rest}\n2023-02-03 2:0:0 a x 1 1 1 1 4 4 1 {rest}\n"), "line 2: leap: not N, +, - or ?"),
    ] {
        let (_, errors) = read(text.as_bytes());
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert!(errors[0].contains(expected), "{}: {:?} lacks {expected:?}", text.len(), errors[0]);
    }
}

#[test]
fn reading_goes_on_after_a_bad_row() {
    let text = "Ta,Tb,Te,Tf\n1,2,3,4\nbad\n5,6,7,8\n";
    let (rows, errors) = read(text.as_bytes());
    assert_eq!((rows.len(), errors.len()), (2, 1));
    assert_eq!(exchange(&rows[1]).sent.counter.raw(), 5);
}

#[test]
fn a_cut_compressed_trace_gives_its_beginning_and_then_an_error() {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    let mut text = String::from("Ta,Tb,Te,Tf\n");
    (0..50_000u64).for_each(|i| text.push_str(&format!("{},{}.5,{}.6,{}\n", i * 977, i, i, i * 977 + 13)));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    assert_eq!(read(&packed).0.len(), 50_000);
    let (rows, errors) = read(&packed[..packed.len() / 2]);
    assert!(rows.len() > 1000 && rows.len() < 50_000, "{}", rows.len());
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("cannot read on"), "{errors:?}");
}

/// Bytes that get past the sniffing: the beginning of each format, then anything.
fn beginnings() -> impl Strategy<Value = Vec<u8>> {
    let golden = std::fs::read(data("version1.trace")).unwrap();
    let mut beginnings: Vec<Vec<u8>> = vec![Vec::new(), golden[..72].to_vec(), golden];
    for name in [
        "trace.csv",
        "nanoseconds.csv",
        "radclock-reference.txt",
        "radclock-servers.txt",
        "rawstats",
        "measurements.log",
    ] {
        beginnings.push(std::fs::read(data(name)).unwrap());
    }
    proptest::sample::select(beginnings)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_bytes_panic(beginning in beginnings(), bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        read(&[beginning, bytes].concat());
    }

    #[test]
    fn nearly_right_text_does_not_panic(
        beginning in beginnings(),
        cells in proptest::collection::vec("[-+]?[0-9]{0,22}\\.?[0-9]{0,20}|[a-z.:]{0,5}|127.127.1.1|", 0..40),
        separator in "[ ,]",
    ) {
        read(&[beginning, cells.join(&separator).into_bytes()].concat());
    }

    #[test]
    fn damage_within_a_trace_does_not_panic(
        mut bytes in beginnings(),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
    ) {
        for (at, value) in changes {
            let length = bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at % length) {
                *byte = value;
            }
        }
        read(&bytes);
    }
}

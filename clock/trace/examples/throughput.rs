//! Exchanges a second that one core decodes, by format: `throughput [EXCHANGES]`.

use ffclock_trace::{CsvWriter, Recorder, ServerIndex, TraceHeader, TraceReader, TraceRow, Truth};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Exchange, Moment, Period, ServerIdentity, ServerQuality, Span, Stamp, StampLocation,
    Ticks,
};
use std::error::Error;
use std::io::{Cursor, Read, Write};
use std::time::Instant;

/// A poll every 16 s on a counter of 1 GHz, round trip 300 us.
fn row(number: u64) -> TraceRow {
    let stamp = |after: u64| Stamp {
        counter: Counter::from_raw(5_000_000_000 + number * 16_000_000_123 + after),
        width: Ticks::from_raw(40),
        location: StampLocation::Kernel,
    };
    let moment = |nanos: i128| {
        Moment::from_origin(Span::from_nanos(1_700_000_037_123_456_789 + number as i128 * 16_000_000_000 + nanos))
    };
    let server = ServerQuality {
        identity: ServerIdentity { stratum: 1, reference_id: 0x4750_5300 },
        root_distance: Bound::of(Span::from_micros(30)),
        ..ServerQuality::default()
    };
    let exchange = Exchange {
        sent: stamp(0),
        server_in: moment(150_000),
        server_out: moment(160_000),
        received: stamp(300_000),
        server,
    };
    let truth = Truth { sent: Some(moment(0)), received: moment(300_000) };
    let epoch = CounterEpoch::default();
    TraceRow { sequence: number, epoch, exchange: Some(exchange), truth: Some(truth), server: ServerIndex(0) }
}

fn native(count: u64, truth: bool) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut recorder = Recorder::to_writer(&mut bytes, &TraceHeader { truth, ..TraceHeader::default() })?;
    (0..count).try_for_each(|number| recorder.append(&row(number)))?;
    recorder.flush()?;
    drop(recorder);
    Ok(bytes)
}

fn csv(count: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let header = TraceHeader { truth: true, nominal: Period::from_hertz(1e9), ..TraceHeader::default() };
    let mut writer = CsvWriter::new(&mut bytes, &header)?;
    (0..count).try_for_each(|number| writer.append(&row(number)))?;
    Ok(bytes)
}

/// Ta, Tb, Te, Tf and nothing else, as RADclock writes it.
fn stamps(count: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for exchange in (0..count).filter_map(|number| row(number).exchange) {
        let seconds = |moment: Moment<_>| (moment.since_origin() - Span::from_secs(37)).as_nanos();
        let (server_in, server_out) = (seconds(exchange.server_in), seconds(exchange.server_out));
        const BILLION: i128 = 1_000_000_000;
        let (sent, received) = (exchange.sent.counter.raw(), exchange.received.counter.raw());
        writeln!(
            bytes,
            "{sent} {}.{:09} {}.{:09} {received}",
            server_in / BILLION,
            server_in % BILLION,
            server_out / BILLION,
            server_out % BILLION
        )?;
    }
    Ok(bytes)
}

fn measure(name: &str, bytes: Vec<u8>) -> Result<(), Box<dyn Error>> {
    let size = bytes.len();
    let stream: Box<dyn Read> = Box::new(Cursor::new(bytes));
    let begin = Instant::now();
    let mut sum = 0u64;
    let mut rows = 0u64;
    for row in TraceReader::from_reader(stream)? {
        sum = sum.wrapping_add(row?.exchange.map_or(0, |exchange| exchange.received.counter.raw()));
        rows += 1;
    }
    let elapsed = begin.elapsed().as_secs_f64();
    let per_row = size as f64 / rows as f64;
    println!(
        "{name:<24} {:>7.2} M exchanges/s  ({rows} rows of {per_row:.0} bytes, checksum {sum:x})",
        rows as f64 / elapsed / 1e6
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse())?;
    measure("native", native(count, false)?)?;
    measure("native with reference", native(count, true)?)?;
    measure("CSV, every column", csv(count)?)?;
    measure("RADclock stamps", stamps(count)?)
}

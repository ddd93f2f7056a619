//! Any file as a trace: rows and errors of rows, then an end or an error of the whole file; never a panic.
#![no_main]

use ffclock_trace::TraceReader;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

/// Far more rows than an input of libFuzzer can hold, unless a compressed one expands without bound.
const ROWS_MAX: usize = 100_000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(reader) = TraceReader::from_reader(Box::new(Cursor::new(bytes.to_vec()))) else { return };
    let mut has_ended = false;
    for row in reader.take(ROWS_MAX) {
        assert!(!has_ended, "rows after an error that is not one row's own");
        if let Err(error) = row {
            assert!(!error.to_string().is_empty());
            has_ended = !error.is_one_row();
        }
    }
});

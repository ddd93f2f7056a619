//! Turns a trace of any known format into a native one: `convert FROM TO`.

use ffclock_trace::{Recorder, TraceReader};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else { return Err("convert FROM TO".into()) };
    let reader = TraceReader::open(from)?;
    let mut recorder = Recorder::create(to, reader.header())?;
    for row in reader {
        recorder.append(&row?)?;
    }
    Ok(recorder.sync()?)
}

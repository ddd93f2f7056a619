//! Writes a long log in which the rules hold, to measure how fast logs are read: `synthetic_log DIR MESSAGES
//! [PROCESSES]`.

#[path = "../benches/synthetic.rs"]
mod synthetic;

use ffclock_theta::log::{LogError, LogWriter};
use ffclock_theta::record::Event;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<u64>().ok());
    let (Some(directory), Some(messages)) = (arguments.get(1), number(2)) else {
        eprintln!("usage: synthetic_log DIR MESSAGES [PROCESSES]");
        return ExitCode::from(2);
    };
    match write(Path::new(directory), messages, number(3).unwrap_or(4) as u32) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("synthetic_log: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(directory: &Path, messages: u64, processes: u32) -> Result<(), LogError> {
    let mut writer = LogWriter::create(directory, &synthetic::run(processes))?;
    synthetic::clocks(processes).into_iter().for_each(|sample| writer.clock(sample));
    let mut perceptions = 0;
    for event in synthetic::Synthetic::new(processes) {
        writer.event(&event)?;
        perceptions += u64::from(matches!(event, Event::Perception { .. }));
        if perceptions >= messages {
            break;
        }
    }
    writer.finish()
}

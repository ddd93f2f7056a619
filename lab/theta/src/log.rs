//! The log of a run on disk: a directory with `run.json`, `clocks.parquet` and any number of event files.
//!
//! Writing and reading need as much memory as one batch of rows, however long the run. Event files come in parts,
//! because a Parquet file without its end cannot be read: a killed writer loses the part that it was writing and no
//! more. `docs/theta-log.md` describes the format for other programs that write one.

mod clocks;
mod columns;
mod error;
mod events;
mod reader;
mod round_trips;
mod table;
mod writer;

pub use columns::{EventColumns, Optional, kind};
pub use error::LogError;
pub use events::{EventReader, WayInColumns};
pub use reader::{EventStream, LogReader};
pub use round_trips::{RoundTrip, read_round_trips, write_round_trips};
pub use writer::{EventWriter, LogWriter};

/// The file with the description of the run.
const RUN_FILE: &str = "run.json";
/// The samples of the hosts' clocks.
const CLOCK_FILE: &str = "clocks.parquet";
/// The samples without clock errors, in a simulation.
const TRUTH_FILE: &str = "truth.parquet";
/// Event files: `events-NAME-PART.parquet`.
const EVENT_PREFIX: &str = "events-";
/// The ending of event files.
const EVENT_SUFFIX: &str = ".parquet";
/// Marks `run.json` among other JSON files.
const FORMAT: &str = "ffclock-theta-log";
/// The version of the format. A change that old readers would misread gets a new number.
const VERSION: u32 = 1;

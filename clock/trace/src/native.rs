//! The native format "ffclock trace 1": records of one size, each complete in itself, each with a check.
//!
//! A recording may be cut anywhere (power, a full disk, a killed daemon): only the record that was being written is
//! lost. A damaged record affects only itself, because the next one begins at a known place. Layout: docs/trace.md.

mod reader;
mod record;
mod recorder;

pub(crate) use reader::NativeReader;
pub use recorder::Recorder;

use record::check;

/// The first bytes of a native trace of this version.
const MAGIC: &[u8; 16] = b"ffclock trace 1\n";
/// The longest text that a header may carry [bytes].
const TEXT_MAX: usize = 64 * 1024;
/// Magic, size of a record, length of the text, check of the text.
const PREFIX: usize = 32;

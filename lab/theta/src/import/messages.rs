//! Logs from lists of messages, as any program can write them: sender, receiver, id, when sent, when perceived.
//!
//! Messages to one receiver with the same id belong together, as the replies to a request or the votes of a round. The
//! receiver goes on when all senders but the tolerated ones have been heard. Process 0 is the receiver, the senders
//! follow; a round is an id, in the order in which the first message of each is perceived. The same rules make a log
//! ([`import_messages`]) and feed an analysis that never ends ([`crate::watch`]), so both give the same figures.

mod faulty_lines;
mod lines;
mod open_rounds;
mod origin;
mod rounds;
mod table;

pub use faulty_lines::{FaultyLine, LineFault};
pub use lines::{MessageLine, MessageLines, TimeUnit};
pub use rounds::{MessageOptions, MessageRounds, PassedOver};
pub use table::{ImportedMessages, MessageTable, import_messages};

/// More senders are refused.
pub const SENDERS_MAX: usize = 1000;

/// Why a list of messages cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// It cannot be read.
    #[error("cannot read the messages: {0}")]
    Io(#[from] std::io::Error),
    /// The log cannot be written.
    #[error(transparent)]
    Log(#[from] crate::log::LogError),
    /// Its Parquet form is damaged.
    #[error("cannot read the messages: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The first line is no header.
    #[error(
        "the first line must name the columns, with sender, receiver, id, sent and perceived among them; {0} is missing"
    )]
    Header(&'static str),
    /// The first line names a column more than once.
    #[error("the first line names the column {0} more than once")]
    Doubled(&'static str),
    /// A column of times holds something else.
    #[error("the column {0} has times that cannot be read (INT96): write it with times in whole ns, us or ms")]
    OtherTimes(&'static str),
    /// There are several receivers, and none was chosen.
    #[error("there are {count} receivers: choose one (--receiver), such as {example}")]
    Receivers {
        /// How many.
        count: usize,
        /// One of them.
        example: String,
    },
    /// The names of the senders are not usable.
    #[error("{0} senders: 1 to {SENDERS_MAX} are possible")]
    Senders(usize),
    /// All senders may be missing.
    #[error("{tolerated} of {senders} senders need not be heard: at least one must be")]
    Tolerated {
        /// How many of them may be missing.
        tolerated: u32,
        /// How many there are.
        senders: usize,
    },
    /// More messages than are held in memory.
    #[error("more than {0} messages: cut the list into parts")]
    TooMany(usize),
    /// Nothing to import.
    #[error("no usable message to {0}: nothing to import")]
    Nothing(String),
    /// The rows that were made contradict themselves.
    #[error(transparent)]
    Analysis(#[from] crate::analysis::AnalysisError),
}

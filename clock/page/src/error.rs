//! What can be wrong with a page, and why a reading can be refused.

use crate::CounterId;
use core::fmt;

/// What is wrong with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageError {
    /// The memory does not begin as a page does.
    NotAPage,
    /// It is a page of another version, this one.
    Version(u64),
    /// It is a page that calls itself another size, in bytes.
    Size(u64),
    /// It was written in another boot of this machine: its counter readings mean nothing now.
    OtherBoot,
    /// The writer has published nothing yet, or has only made the memory.
    Empty,
    /// The reader was overtaken each time it tried: no writer is that fast, so the page is damaged.
    Torn,
    /// The words do not add up to their check word.
    Corrupt,
}

/// Why there is no reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The page cannot be read.
    Page(PageError),
    /// There is no estimate now: nothing was heard yet, or the counter's epoch ended.
    NoEstimate,
    /// The virtual machine was restored, migrated or copied since, and the daemon has not found the time again.
    Disrupted,
    /// The stamp is older than the counter's present epoch.
    BeforeEpoch,
    /// The stamp, or one of two, belongs to another epoch of the counter.
    OtherEpoch,
    /// The page is about this counter, and the stamp was taken with another.
    OtherCounter(CounterId),
    /// The page is about a counter of the kernel, and that cannot be read.
    CounterUnreadable {
        /// The counter of the page.
        counter: CounterId,
        /// Why, with the remedy.
        why: &'static str,
    },
}

impl From<PageError> for ReadError {
    fn from(error: PageError) -> Self {
        ReadError::Page(error)
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageError::NotAPage => f.write_str("this is not a clock page"),
            PageError::Version(found) => {
                write!(f, "the page has version {found}, and this reader knows version {}", crate::layout::VERSION)
            }
            PageError::Size(found) => {
                write!(f, "the page says that it has {found} bytes instead of {}", crate::layout::PAGE_BYTES)
            }
            PageError::OtherBoot => f.write_str("the page was written before the machine was last started"),
            PageError::Empty => f.write_str("no clock has been published here yet"),
            PageError::Torn => f.write_str("the page never stood still: it is damaged"),
            PageError::Corrupt => f.write_str("the page is damaged: its check sum is wrong"),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Page(error) => error.fmt(f),
            ReadError::NoEstimate => f.write_str("the clock has no estimate at present"),
            ReadError::Disrupted => f.write_str(
                "the virtual machine was restored, migrated or copied: no time is known until a server answers",
            ),
            ReadError::BeforeEpoch => f.write_str("the stamp was taken before the counter's present epoch began"),
            ReadError::OtherEpoch => f.write_str("the stamp belongs to another epoch of the counter"),
            ReadError::OtherCounter(id) => write!(f, "the page is about the counter {}", id.name()),
            ReadError::CounterUnreadable { counter, why } => {
                write!(f, "the counter {} of the clock cannot be read: {why}", counter.name())
            }
        }
    }
}

impl core::error::Error for PageError {}
impl core::error::Error for ReadError {}

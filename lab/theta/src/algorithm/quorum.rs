//! How many processes there are, and how many of them may fail.

use thiserror::Error;

/// Sizes that the algorithm tolerates: n >= 3f + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quorum {
    processes: u32,
    faulty: u32,
}

/// Sizes that no algorithm of this kind can serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QuorumError {
    /// No process at all.
    #[error("there must be at least one process (n = 0)")]
    Empty,
    /// Too many may fail.
    #[error(
        "n = {processes} processes cannot tolerate f = {faulty} Byzantine ones: n must be at least 3f + 1 = {least}"
    )]
    TooManyFaulty {
        /// The number of processes, n.
        processes: u32,
        /// The number of faulty ones, f.
        faulty: u32,
        /// The smallest n for this f.
        least: u64,
    },
    /// More than the packed forms of messages can name.
    #[error("n = {processes} processes are too many: at most {most}", most = Quorum::MOST_PROCESSES)]
    TooManyProcesses {
        /// The number of processes, n.
        processes: u32,
    },
}

impl Quorum {
    /// The largest n.
    pub const MOST_PROCESSES: u32 = 16_384;

    /// `processes` is n, `faulty` is f.
    ///
    /// # Errors
    /// When n < 3f + 1, n = 0 or n is above [`Self::MOST_PROCESSES`].
    pub fn new(processes: u32, faulty: u32) -> Result<Self, QuorumError> {
        let least = 3 * u64::from(faulty) + 1;
        if processes == 0 {
            return Err(QuorumError::Empty);
        }
        if u64::from(processes) < least {
            return Err(QuorumError::TooManyFaulty { processes, faulty, least });
        }
        if processes > Self::MOST_PROCESSES {
            return Err(QuorumError::TooManyProcesses { processes });
        }
        Ok(Quorum { processes, faulty })
    }

    /// The largest f that `processes` tolerate: the f of a run for which none is given.
    pub const fn most_faulty(processes: u32) -> u32 {
        processes.saturating_sub(1) / 3
    }

    /// The number of processes, n.
    pub fn processes(self) -> u32 {
        self.processes
    }

    /// The number of faulty processes, f.
    pub fn faulty(self) -> u32 {
        self.faulty
    }

    /// f + 1: among this many senders at least one is correct.
    pub fn catch_up(self) -> u32 {
        self.faulty + 1
    }

    /// n - f: this many come even if every faulty process keeps silent.
    pub fn advance(self) -> u32 {
        self.processes - self.faulty
    }
}

//! How a command ends when it does not succeed.

use std::fmt;

/// Why a command failed, and the exit code that says so to a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) code: u8,
    /// What was wrong and what to do about it; empty when there is nothing left to say.
    pub(crate) message: String,
}

impl Failure {
    /// The command could not do its work.
    pub(crate) const FAILED: u8 = 1;
    /// The command line makes no sense.
    pub(crate) const USAGE: u8 = 2;
    /// The clock is not synchronised, or did not become so in time.
    pub(crate) const UNSYNCHRONISED: u8 = 3;

    /// A command line that makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure { code: Failure::USAGE, message: message.into() }
    }

    /// A clock that cannot be used yet, or any more.
    pub(crate) fn unsynchronised(message: impl Into<String>) -> Self {
        Failure { code: Failure::UNSYNCHRONISED, message: message.into() }
    }

    /// Ends with `code` and says nothing: the exit code is the answer.
    pub(crate) fn silent(code: u8) -> Self {
        Failure { code, message: String::new() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure { code: Failure::FAILED, message }
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Failure::from(message.to_owned())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::from(error.to_string())
    }
}

//! How a command ends when it does not succeed.

use crate::output;
use std::fmt;
use std::process::ExitCode;

/// Why a command failed, and the exit code that says so to a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// What was wrong and what to do about it; empty when there is nothing left to say.
    pub message: String,
}

impl Failure {
    /// The command could not do its work.
    pub const FAILED: u8 = 1;
    /// The command line makes no sense.
    pub const USAGE: u8 = 2;
    /// The clock is not synchronised, or did not become so in time.
    pub const UNSYNCHRONISED: u8 = 3;

    /// A command line that makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { code: Failure::USAGE, message: message.into() }
    }

    /// A clock that cannot be used yet, or no longer.
    pub fn unsynchronised(message: impl Into<String>) -> Self {
        Failure { code: Failure::UNSYNCHRONISED, message: message.into() }
    }

    /// Ends with `code` and says nothing: the exit code is the answer.
    pub fn silent(code: u8) -> Self {
        Failure { code, message: String::new() }
    }

    /// Says on standard error what was wrong, and how `program` ends with it.
    pub fn end(&self, program: &str) -> ExitCode {
        if !self.message.is_empty() {
            output::complain(&format!("{program}: {self}"));
        }
        ExitCode::from(self.code)
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

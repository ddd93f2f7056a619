//! Writing the answer: the only place that prints to standard output, and to standard error.

use crate::failure::Failure;
use serde::Serialize;
use std::io::{ErrorKind, Write};

/// What a shell reports for a program that a closed pipe ended: 128 + SIGPIPE.
const PIPE_CLOSED: u8 = 141;

/// Writes text unchanged and flushes it, so that a reader sees each line when it is made.
///
/// # Errors
/// Standard output does not take it; where the reader has gone, the failure is silent.
pub fn write(text: &str) -> Result<(), Failure> {
    write_to(std::io::stdout().lock(), "standard output", text)
}

/// Writes text unchanged to standard error, where that is the place for an answer.
///
/// # Errors
/// As [`write()`].
pub fn write_aside(text: &str) -> Result<(), Failure> {
    write_to(std::io::stderr().lock(), "standard error", text)
}

fn write_to(mut out: impl Write, name: &str, text: &str) -> Result<(), Failure> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::silent(PIPE_CLOSED),
        _ => Failure::from(format!("cannot write to {name}: {error}")),
    })
}

/// Says on standard error what is wrong. Where that takes nothing, it is left unsaid: the exit code says enough.
pub fn complain(text: &str) {
    let _ = write_aside(&format!("{text}\n"));
}

/// Writes one line.
///
/// # Errors
/// As [`write()`].
pub fn line(text: &str) -> Result<(), Failure> {
    write(&format!("{text}\n"))
}

/// Writes one JSON object on one line.
///
/// # Errors
/// As [`write()`]; or the value has no JSON form.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    line(&to_json(value)?)
}

/// One JSON object on one line.
///
/// # Errors
/// The value has no JSON form.
pub fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::from(format!("cannot write as JSON: {error}")))
}

//! The library that gives a program a clock of its own, made with the C compiler of this machine.

use crate::failure::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
#[cfg(test)]
use {
    super::clock_file::{self, ClockStart},
    super::oscillator_file::{OscillatorStart, SampledOscillator},
    ffclock_sim::Oscillator,
    ffclock_sim::scenario::{Fraction, OscillatorSpec},
    ffclock_units::{Rate, Span},
};

const SOURCE: &str = include_str!("interposer.c");

/// Compiles the library into a directory.
pub(super) fn build(directory: &Path) -> Result<PathBuf, Failure> {
    compile(directory, ("interposer.so", SOURCE), &["-shared", "-fPIC", "-lm", "-ldl"])
}

/// Compiles a C source into a file of this name, with these options after it.
pub(super) fn compile(directory: &Path, of: (&str, &str), options: &[&str]) -> Result<PathBuf, Failure> {
    let (name, text) = of;
    let file = directory.join(name);
    let source = file.with_extension("c");
    fs::write(&source, text).map_err(|error| format!("{}: {error}", source.display()))?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-O2", "-o"]).arg(&file).arg(&source).args(options);
    let done = command.output().map_err(|error| format!("no C compiler ({}): {error}", compiler.display()))?;
    if done.status.success() {
        return Ok(file);
    }
    Err(format!("{name} does not compile: {}", String::from_utf8_lossy(&done.stderr).trim()).into())
}

/// Where one program's clock lies.
#[derive(Clone, Debug)]
pub(super) struct OwnClock {
    /// Its system clock; see `clock_file.rs`.
    pub(super) clock: PathBuf,
    /// Its raw counter; see `oscillator_file.rs`.
    pub(super) oscillator: PathBuf,
}

impl OwnClock {
    /// The names of the files in a program's directory.
    pub(super) fn within(directory: &Path) -> Self {
        OwnClock { clock: directory.join("clock"), oscillator: directory.join("oscillator") }
    }

    /// Makes a new clock for a test, on an oscillator that runs evenly and this much fast. Gives the library with it.
    #[cfg(test)]
    pub(super) fn interpose(
        &self,
        skew_ppm: f64,
        origin: OscillatorStart,
        start: ClockStart,
    ) -> Result<PathBuf, Failure> {
        let spec = OscillatorSpec { skew: Fraction(Rate::from_ppm(skew_ppm)), ..OscillatorSpec::silent() };
        // Beyond its knots the same rate goes on.
        let sampled = SampledOscillator::sample(Oscillator::new(&spec, 1), origin, Span::from_secs(60));
        sampled.write(&self.oscillator)?;
        clock_file::create(&self.clock, start)?;
        build(self.clock.parent().expect("a clock is a file in a directory"))
    }

    /// The command that runs `command` with this clock.
    pub(super) fn command(&self, library: &Path, command: Vec<String>) -> Vec<String> {
        let words = [
            "env".to_owned(),
            format!("LD_PRELOAD={}", library.display()),
            format!("FFCLOCK_LIVE_CLOCK={}", self.clock.display()),
            format!("FFCLOCK_LIVE_OSCILLATOR={}", self.oscillator.display()),
        ];
        words.into_iter().chain(command).collect()
    }
}

//! Runs that are kept in a file while a long command works, so that it can be interrupted and resumed.
//!
//! One JSON object per line: which program made the run, and the result. Runs of another program, or another build of
//! this one, are left alone and made again: an estimator that changed gives other figures. The last line may be half
//! written. A file with any other line is of another origin, and is refused untouched.

use crate::Failure;
use ffclock_sim::RunResult;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

#[derive(Deserialize, Serialize)]
struct KeptRun {
    program: String,
    run: RunResult,
}

/// How every line begins.
const BEGIN: &[u8] = b"{\"program\":\"";

/// The file of kept runs.
pub(super) struct Kept {
    program: String,
    file: File,
    name: String,
}

impl Kept {
    /// Opens or makes the file; the runs in it that this program made.
    pub(super) fn open(path: &Path) -> Result<(Self, Vec<RunResult>), Failure> {
        let name = path.display().to_string();
        let wrong = |error| Failure::from(format!("{name}: {error}"));
        let program =
            fingerprint().map_err(|error| Failure::from(format!("cannot read the program itself: {error}")))?;
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(wrong)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(wrong)?;
        let mut runs = Vec::new();
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if !is_ours(line) {
                let place = format!("{name}: line {} is no run of ffclock-lab sim goals", index + 1);
                return Err(Failure::from(format!("{place}; give --keep a new file, or one that it made")));
            }
            runs.extend(serde_json::from_slice(line).ok().filter(|line: &KeptRun| line.program == program));
        }
        let runs = runs.into_iter().map(|line| line.run).collect();
        // What follows a line that was cut off must not be joined to it.
        if bytes.last().is_some_and(|last| *last != b'\n') {
            file.write_all(b"\n").map_err(wrong)?;
        }
        Ok((Kept { program, file, name }, runs))
    }

    /// Writes down a run.
    pub(super) fn keep(&mut self, run: &RunResult) -> Result<(), Failure> {
        let line = serde_json::to_string(&KeptRun { program: self.program.clone(), run: run.clone() });
        let line = line.map_err(|error| Failure::from(format!("cannot write as JSON: {error}")))?;
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| Failure::from(format!("{}: {error}", self.name)))
    }
}

/// Whether this command may have written a line: a run, of whatever build, or the beginning of one that was cut off.
fn is_ours(line: &[u8]) -> bool {
    if let Ok(whole) = serde_json::from_slice::<serde_json::Value>(line) {
        return whole["program"].is_string() && whole["run"].is_object();
    }
    let shared = line.len().min(BEGIN.len());
    line[..shared] == BEGIN[..shared]
}

/// FNV-1a over the program's own file.
fn fingerprint() -> std::io::Result<String> {
    let bytes = std::fs::read(std::env::current_exe()?)?;
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    Ok(format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_sim::{Run, Scenario};

    #[test]
    fn runs_are_taken_up_again_and_broken_lines_are_not() {
        let directory = std::env::temp_dir().join(format!("ffclock-kept-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("runs.jsonl");
        let text =
            "about = \"x\"\nduration = \"10 min\"\nfrom = \"0 s\"\n[path]\nforward = \"1 ms\"\nbackward = \"1 ms\"\n";
        let scenario = Scenario::parse("x", text).unwrap();
        let run = |seed| Run { name: "x", scenario: &scenario, seed }.execute_with(&["classic", "pll"], None);
        let (mut kept, runs) = Kept::open(&path).unwrap();
        assert!(runs.is_empty());
        kept.keep(&run(1)).unwrap();
        kept.file.write_all(b"{\"program\":\"cut o").unwrap();
        let (mut kept, runs) = Kept::open(&path).unwrap();
        assert_eq!(runs, [run(1)]);
        kept.program = "another".to_owned();
        kept.keep(&run(2)).unwrap();
        assert_eq!(Kept::open(&path).unwrap().1, [run(1)]);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

//! Runs that are kept in a file while a long command goes on, so that it can be broken off and taken up again.
//!
//! One JSON object per line: which program made the run, and the result. Runs of another program, or another build of this one, are
//! left alone and made anew: an estimator that changed says other things. The last line may be half written.

use crate::Failure;
use ffclock_sim::RunResult;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

#[derive(Deserialize, Serialize)]
struct Line {
    program: String,
    run: RunResult,
}

/// The file.
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
        let lines: Vec<String> = BufReader::new(&file).lines().collect::<Result<_, _>>().map_err(wrong)?;
        let lines = lines.iter().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let runs = lines.filter(|line| line.program == program).map(|line| line.run).collect();
        // What follows a line that was cut off must not be joined to it.
        file.write_all(b"\n").map_err(wrong)?;
        Ok((Kept { program, file, name }, runs))
    }

    /// Writes down a run.
    pub(super) fn keep(&mut self, run: &RunResult) -> Result<(), Failure> {
        let line = serde_json::to_string(&Line { program: self.program.clone(), run: run.clone() });
        let line = line.map_err(|error| Failure::from(format!("cannot write as JSON: {error}")))?;
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| Failure::from(format!("{}: {error}", self.name)))
    }
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
        kept.file.write_all(b"{\"program\": \"cut o").unwrap();
        let (mut kept, runs) = Kept::open(&path).unwrap();
        assert_eq!(runs, [run(1)]);
        kept.program = "another".to_owned();
        kept.keep(&run(2)).unwrap();
        assert_eq!(Kept::open(&path).unwrap().1, [run(1)]);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

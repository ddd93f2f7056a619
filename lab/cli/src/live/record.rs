//! What a run leaves behind: what was to be run, every sample, and what happened. Samples are appended and never
//! rewritten, so that a run which is broken off keeps all of them but perhaps its last line.

use super::plan::Load;
use super::router::RouterKind;
use super::witness::WitnessKind;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Of the files of a run.
pub(super) const FORMAT: u32 = 1;
/// Between the last look and the end of a run that has watched for all of its time.
const LAST_LOOK_S: f64 = 2.0;
const HEADING: &str = "session,t_s,contestant,error_ns,bound_ns\n";

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RunRecord {
    pub(super) format: u32,
    pub(super) plan: String,
    /// In all sessions together.
    pub(super) duration_s: f64,
    /// After each start, for which errors do not count.
    pub(super) settle_s: f64,
    pub(super) seed: u64,
    /// The polling interval in place of the plan's, as a power of two [s].
    #[serde(default)]
    pub(super) poll_log2: Option<i32>,
    /// What burns on the host.
    #[serde(default)]
    pub(super) load: Vec<Load>,
    /// Where a witness of each contestant is, if it has one.
    #[serde(default)]
    pub(super) witnesses: Option<WitnessKind>,
    #[serde(default)]
    pub(super) router: RouterKind,
    /// The timetable of netem in place of the plan's.
    #[serde(default)]
    pub(super) netem: Option<String>,
    pub(super) contestants: Vec<String>,
}

/// One look at one clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LookedAt {
    /// Counted from 0.
    pub(super) session: u32,
    /// Since the begin of the run, the pauses between sessions left out [s].
    pub(super) t_s: f64,
    /// Its number in [`RunRecord::contestants`].
    pub(super) contestant: usize,
    /// The clock minus the truth [ns].
    pub(super) error_ns: i64,
    /// What the clock itself claims to be its largest error, where it does [ns].
    pub(super) bound_ns: Option<i64>,
}

impl RunRecord {
    /// Makes the directory of a new run.
    pub(super) fn create(&self, directory: &Path) -> Result<(), Failure> {
        let file = plan_file(directory);
        if file.exists() {
            let shown = directory.display();
            return Err(
                format!("{shown} holds a run already; go on with it by --resume {shown}, or name another").into()
            );
        }
        fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        fs::write(samples_file(directory), HEADING)?;
        // Last: with it the run exists.
        fs::write(file, text + "\n").map_err(Failure::from)
    }

    /// Reads what was to be run.
    pub(super) fn read(directory: &Path) -> Result<Self, Failure> {
        let file = plan_file(directory);
        let wrong = |error: String| format!("{}: {error}; it is made by ffclock-lab live run", file.display());
        let text = fs::read_to_string(&file).map_err(|error| wrong(error.to_string()))?;
        let record: RunRecord = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        match record.format {
            FORMAT => Ok(record),
            other => Err(wrong(format!("format {other}")).into()),
        }
    }

    /// Whether these samples of its sessions reach its end.
    pub(super) fn is_watched_by(&self, samples: &[LookedAt]) -> bool {
        samples.last().is_some_and(|last| last.t_s + LAST_LOOK_S >= self.duration_s)
    }

    /// All samples so far. A last line without its end was being written when the run was broken off.
    pub(super) fn samples(&self, directory: &Path) -> Result<Vec<LookedAt>, Failure> {
        let file = samples_file(directory);
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let rows = whole.lines().enumerate().skip(1);
        let parse = |(index, line)| {
            self.parse(line).ok_or_else(|| format!("{}:{}: not a sample: {line:?}", file.display(), index + 1).into())
        };
        rows.map(parse).collect()
    }

    fn parse(&self, line: &str) -> Option<LookedAt> {
        let mut cells = line.split(',');
        let mut next = || cells.next();
        let (session, t_s, name) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?);
        let contestant = self.contestants.iter().position(|one| one == name)?;
        let error_ns = next()?.parse().ok()?;
        let bound_ns = match next()? {
            "" => None,
            bound => Some(bound.parse().ok()?),
        };
        next().is_none().then_some(LookedAt { session, t_s, contestant, error_ns, bound_ns })
    }
}

/// Where the samples of a session go.
pub(super) struct SampleFile {
    file: File,
    names: Vec<String>,
}

impl SampleFile {
    /// Opens it at its end, a torn last line taken away.
    pub(super) fn append(directory: &Path, record: &RunRecord) -> Result<Self, Failure> {
        let path = samples_file(directory);
        let whole = fs::read(&path)?.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut file = OpenOptions::new().write(true).open(&path)?;
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        Ok(SampleFile { file, names: record.contestants.clone() })
    }

    /// Writes the samples of one look at all clocks, at once.
    pub(super) fn write(&mut self, looks: &[LookedAt]) -> Result<(), Failure> {
        let lines: String = looks.iter().map(|look| self.line(look)).collect();
        self.file.write_all(lines.as_bytes()).map_err(|error| format!("samples.csv: {error}").into())
    }

    fn line(&self, look: &LookedAt) -> String {
        let bound = look.bound_ns.map_or_else(String::new, |bound| bound.to_string());
        let name = self.names.get(look.contestant).map_or("", String::as_str);
        format!("{},{:.3},{name},{},{bound}\n", look.session, look.t_s, look.error_ns)
    }
}

/// Notes what happened, with its time.
pub(super) fn note(directory: &Path, t_s: f64, what: &str) -> Result<(), Failure> {
    let path = directory.join("events.txt");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    writeln!(file, "{t_s:>10.1} s  {what}").map_err(|error| format!("{}: {error}", path.display()).into())
}

/// What happened, in lines.
pub(super) fn notes(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join("events.txt")).unwrap_or_default();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

fn plan_file(directory: &Path) -> PathBuf {
    directory.join("run.json")
}

fn samples_file(directory: &Path) -> PathBuf {
    directory.join("samples.csv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_watched_when_its_last_look_is_near_its_end() {
        let text = r#"{"format":1,"plan":"quiet-1","duration_s":60.0,"settle_s":10.0,"seed":1,"contestants":["a"]}"#;
        let record: RunRecord = serde_json::from_str(text).unwrap();
        let look = |t_s| LookedAt { session: 0, t_s, contestant: 0, error_ns: 1, bound_ns: None };
        assert!(record.is_watched_by(&[look(1.0), look(59.8)]) && !record.is_watched_by(&[look(57.0)]));
        let short = RunRecord { duration_s: 1.0, ..record };
        assert!(!short.is_watched_by(&[]), "what is short has to be watched, too");
    }

    #[test]
    fn a_broken_run_keeps_every_whole_line() {
        let directory = std::env::temp_dir().join(format!("ffclock-live-record-{}", std::process::id()));
        let record = RunRecord {
            format: FORMAT,
            plan: "quiet-1".to_owned(),
            duration_s: 60.0,
            settle_s: 10.0,
            seed: 1,
            poll_log2: Some(2),
            load: vec![Load::Disk],
            witnesses: Some(WitnessKind::Guest),
            router: RouterKind::Uml,
            netem: Some("0 to delay 1ms\n".to_owned()),
            contestants: vec!["a".to_owned(), "b".to_owned()],
        };
        record.create(&directory).unwrap();
        assert!(record.create(&directory).unwrap_err().message.contains("--resume"));
        assert_eq!(RunRecord::read(&directory).unwrap(), record);
        let look = |contestant, bound_ns| LookedAt { session: 0, t_s: 1.25, contestant, error_ns: -7, bound_ns };
        SampleFile::append(&directory, &record).unwrap().write(&[look(0, None), look(1, Some(40))]).unwrap();
        // Broken off in the middle of a line.
        let mut torn = OpenOptions::new().append(true).open(samples_file(&directory)).unwrap();
        torn.write_all(b"0,1.5,a,1").unwrap();
        assert_eq!(record.samples(&directory).unwrap(), [look(0, None), look(1, Some(40))]);
        SampleFile::append(&directory, &record).unwrap().write(&[look(0, Some(3))]).unwrap();
        assert_eq!(record.samples(&directory).unwrap(), [look(0, None), look(1, Some(40)), look(0, Some(3))]);
        fs::remove_dir_all(&directory).unwrap();
    }
}

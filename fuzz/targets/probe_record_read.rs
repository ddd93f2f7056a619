//! A small record of `ffclock-lab probe run`, damaged or replaced, as a Parquet file, as JSON lines and as output of
//! the DTrace script: an error in words, or a record that can be analysed and written again; never a panic.
#![no_main]

mod files;

use ffclock_probe::findings::Findings;
use ffclock_probe::record::{ProbeRecord, ProbeWriter, read};
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const SCRIPT: &[u8] = include_bytes!("../../lab/probe/tests/probe-d.txt");
/// What the first byte chooses from: the endings of names.
const FORMS: [&str; 3] = ["parquet", "jsonl", "txt"];

/// A directory, in memory where possible, and the same record in every form.
struct Samples {
    directory: PathBuf,
    whole: [Vec<u8>; 3],
}

fn write(path: &Path, record: &ProbeRecord) {
    let mut writer = ProbeWriter::create(path, &record.about).expect("room for a record");
    if let Some(effect) = &record.effect {
        writer.effect(effect).expect("room for a record");
    }
    for phase in &record.phases {
        writer.again(phase).expect("room for a record");
    }
    writer.finish().expect("room for a record");
}

fn samples() -> &'static Samples {
    static SAMPLES: OnceLock<Samples> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        files::allow_panics_of_the_library();
        let directory = files::place("probe");
        fs::create_dir_all(&directory).expect("room for a record");
        let script = directory.join("whole.txt");
        fs::write(&script, SCRIPT).expect("room for a record");
        let record = read(&script).expect("the tests read it");
        let whole = FORMS.map(|form| {
            let path = directory.join(format!("whole.{form}"));
            if form != "txt" {
                write(&path, &record);
            }
            fs::read(path).expect("just written")
        });
        Samples { directory, whole }
    })
}

fuzz_target!(|bytes: &[u8]| {
    let samples = samples();
    let Some((form, damaged)) = files::damaged(&samples.whole, bytes) else { return };
    let path = samples.directory.join(format!("damaged.{}", FORMS[form]));
    fs::write(&path, damaged).expect("room for a record");
    match read(&path) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(record) => {
            for phase in &record.phases {
                let findings = Findings::of(&phase.passages, record.period);
                assert!(findings.delays.iter().all(|delay| delay.count <= phase.passages.len()));
            }
            let again = samples.directory.join(format!("again.{}", FORMS[form & 1]));
            write(&again, &record);
            let again = read(&again).expect("a record that was just written can be read");
            assert_eq!(again.phases.len(), record.phases.len());
        }
    }
});

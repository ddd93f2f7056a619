//! A small record of `ffclock probe run`, damaged or replaced, as a Parquet file, as JSON lines and as output of the DTrace script: an error
//! in words, or a record that can be looked at and written again; never a panic.
#![no_main]

use ffclock_instruments::probe::findings::Findings;
use ffclock_instruments::probe::record::{ProbeRecord, ProbeWriter, read};
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const SCRIPT: &[u8] = include_bytes!("../../crates/instruments/tests/probe-d.txt");
/// What the first byte chooses from: the endings of names.
const FORMS: [&str; 3] = ["parquet", "jsonl", "txt"];

/// A place in memory where there is such a place, and the same record in every form.
struct Samples {
    directory: PathBuf,
    whole: [Vec<u8>; 3],
}

/// Panics of the Parquet library are caught by the reader, and are no finding; libFuzzer would end at each before it is.
fn allow_panics_of_the_library() {
    let end = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if !panicked.location().is_some_and(|place| place.file().contains("/parquet-")) {
            end(panicked);
        }
    }));
}

fn write(path: &Path, record: &ProbeRecord) {
    let mut writer = ProbeWriter::create(path, &record.about).expect("room for a record");
    for phase in &record.phases {
        writer.again(phase).expect("room for a record");
    }
    writer.finish().expect("room for a record");
}

fn samples() -> &'static Samples {
    static SAMPLES: OnceLock<Samples> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        allow_panics_of_the_library();
        let memory = Path::new("/dev/shm");
        let below = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let directory = below.join(format!("ffclock-fuzz-probe-{}", std::process::id()));
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

/// The first byte chooses the form and how it is damaged: by what follows instead of it, or in places (two bytes where, one what).
fn damaged(samples: &Samples, bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    let (&choice, rest) = bytes.split_first()?;
    let form = usize::from(choice >> 1) % FORMS.len();
    if choice & 1 == 1 {
        return Some((form, rest.to_vec()));
    }
    let mut damaged = samples.whole[form].clone();
    for patch in rest.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % damaged.len();
        damaged[place] = patch[2];
    }
    Some((form, damaged))
}

fuzz_target!(|bytes: &[u8]| {
    let samples = samples();
    let Some((form, damaged)) = damaged(samples, bytes) else { return };
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
            let again = read(&again).expect("what was just written can be read");
            assert_eq!(again.phases.len(), record.phases.len());
        }
    }
});

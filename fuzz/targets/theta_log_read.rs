//! A small log of a Theta run of which one file is damaged or replaced: an error in words, or an analysis that ends; never a panic.
#![no_main]

use ffclock_theta::analysis::{Options, Report, Wanted, analyse};
use ffclock_theta::log::LogReader;
use ffclock_theta::simulate::{Simulation, Spec};
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The log as it should be, and the files of it that can be damaged.
struct Log {
    directory: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

/// In memory where there is such a place.
fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let below = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    below.join(format!("ffclock-fuzz-theta-log-{}", std::process::id()))
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

fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        allow_panics_of_the_library();
        let directory = place();
        let _ = fs::remove_dir_all(&directory);
        let spec = Spec::parse("n = 4\nf = 1\nrounds = 8\n").expect("a scenario");
        let simulation = Simulation::new(&spec, Path::new("."), 1).expect("it makes sense");
        simulation.run_to_log(&directory, &mut |_| ()).expect("room for a log");
        let found = fs::read_dir(&directory).expect("just written");
        let mut files: Vec<_> = found.map(|file| file.expect("just written").path()).collect();
        files.sort();
        let files = files.into_iter().map(|path| (path.clone(), fs::read(path).expect("just written"))).collect();
        Log { directory, files }
    })
}

/// The first byte chooses the file and how it is damaged: by what follows instead of it, or in places (two bytes where, one what).
fn damaged<'a>(log: &'a Log, bytes: &[u8]) -> Option<(&'a Path, Vec<u8>)> {
    let (&choice, rest) = bytes.split_first()?;
    let (path, whole) = &log.files[usize::from(choice >> 1) % log.files.len()];
    if choice & 1 == 1 {
        return Some((path, rest.to_vec()));
    }
    let mut damaged = whole.clone();
    for patch in rest.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % damaged.len();
        damaged[place] = patch[2];
    }
    Some((path, damaged))
}

fuzz_target!(|bytes: &[u8]| {
    let log = log();
    let Some((path, damaged)) = damaged(log, bytes) else { return };
    fs::write(path, damaged).expect("room for a log");
    match LogReader::open(&log.directory) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(reader) => {
            // Whoever writes a log may claim a million processes; what that costs is not the question here.
            if reader.run().processes <= 64 {
                let options =
                    Options { window_rounds: 256, theta: Wanted::Yes, delays: Wanted::Yes, ..Options::default() };
                match analyse(&reader, options, &mut ()) {
                    Ok(tally) => assert!(Report::new(reader.run(), &tally, reader.damage()).processes > 0),
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
        }
    }
    let whole = log.files.iter().find(|(name, _)| name == path).map(|(_, whole)| whole);
    fs::write(path, whole.expect("one of the files")).expect("room for a log");
});

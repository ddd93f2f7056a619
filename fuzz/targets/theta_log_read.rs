//! A small log of a Theta run with one file damaged or replaced: an error in words, or an analysis that ends; never a
//! panic.
#![no_main]

mod files;

use ffclock_theta::analysis::{DelayMode, Options, ThetaMode, ThetaReport, analyse};
use ffclock_theta::log::LogReader;
use ffclock_theta::simulate::{Simulation, Spec};
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The undamaged log, and those of its files that can be damaged.
struct Log {
    directory: PathBuf,
    paths: Vec<PathBuf>,
    whole: Vec<Vec<u8>>,
}

fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        files::allow_panics_of_the_library();
        let directory = files::place("theta-log");
        let _ = fs::remove_dir_all(&directory);
        let spec = Spec::parse("n = 4\nf = 1\nrounds = 8\n").expect("a scenario");
        let simulation = Simulation::new(&spec, Path::new("."), 1).expect("it makes sense");
        simulation.run_to_log(&directory, &mut |_| ()).expect("room for a log");
        let found = fs::read_dir(&directory).expect("just written");
        let mut paths: Vec<_> = found.map(|file| file.expect("just written").path()).collect();
        paths.sort();
        let whole = paths.iter().map(|path| fs::read(path).expect("just written")).collect();
        Log { directory, paths, whole }
    })
}

fuzz_target!(|bytes: &[u8]| {
    let log = log();
    let Some((number, damaged)) = files::damaged(&log.whole, bytes) else { return };
    fs::write(&log.paths[number], damaged).expect("room for a log");
    match LogReader::open(&log.directory) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(reader) => {
            // A log may claim a million processes; the memory for them is not tested here.
            if reader.run().processes <= 64 {
                let options = Options {
                    window_rounds: 256,
                    theta: ThetaMode::Compute,
                    delays: DelayMode::Histograms,
                    ..Options::default()
                };
                match analyse(&reader, options, &mut ()) {
                    Ok(tally) => assert!(ThetaReport::new(reader.run(), &tally, reader.damage()).processes > 0),
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
        }
    }
    fs::write(&log.paths[number], &log.whole[number]).expect("room for a log");
});

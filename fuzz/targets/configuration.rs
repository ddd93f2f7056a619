//! Any text as a configuration: accepted, or refused with at least one problem that names a line of the text.
#![no_main]

use ffclock_daemon::config::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Config::parse(text) {
        Ok(config) => assert!(!config.servers.is_empty()),
        Err(error) => {
            let lines = text.lines().count() + 1;
            assert!(!error.problems.is_empty());
            assert!(error.problems.iter().all(|problem| (1..=lines).contains(&problem.line)), "{error:?}");
        }
    }
});

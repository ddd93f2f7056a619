//! `ffclock` and, beside it, `ffclockd`.
//!
//! Cargo builds the programs of the package under test only, so the daemon is there when the whole workspace is tested, and may be
//! missing or old when this package is tested alone. Then it is built here, into the same place.

use super::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The directory with both programs, which are up to date.
pub fn directory() -> &'static Path {
    static READY: OnceLock<PathBuf> = OnceLock::new();
    READY.get_or_init(|| {
        let directory = ffclock().parent().unwrap().to_owned();
        let daemon = directory.join("ffclockd");
        if !daemon.metadata().is_ok_and(|file| file.modified().unwrap() >= newest_source()) {
            build_daemon(&directory);
        }
        assert!(daemon.exists(), "{} was built, and is not there", daemon.display());
        directory
    })
}

/// The command.
pub fn ffclock() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_ffclock"))
}

/// Directories of crates that the daemon is not made of.
const NOT_ITS_OWN: [&str; 3] = ["cli", "client", "python"];

/// When anything was changed that the daemon is made of.
fn newest_source() -> SystemTime {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let its_own = crates.filter(|path| !NOT_ITS_OWN.iter().any(|name| path.ends_with(name)));
    let files = its_own.flat_map(|path| {
        let sources = files_below(&path.join("src"));
        sources.into_iter().chain([path.join("Cargo.toml")])
    });
    let modified = |path: PathBuf| path.metadata().ok()?.modified().ok();
    files.filter_map(modified).max().unwrap()
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

fn build_daemon(directory: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "ffclock-daemon", "--bin", "ffclockd", "--target-dir"]);
    cargo.arg(directory.parent().unwrap());
    if directory.ends_with("release") {
        cargo.arg("--release");
    }
    let ended = cargo.current_dir(root()).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

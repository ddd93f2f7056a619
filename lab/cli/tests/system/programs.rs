//! `ffclock-lab` and, beside it, the product: `ffclockd`, `ffclock` and `ffclock-serve`.
//!
//! Cargo builds the programs of the package under test only, so the product is there when the whole workspace is
//! tested, and may be missing or old when this package is tested alone. Then it is built here, into the same place.

use super::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The programs of the product, each with its package.
const PRODUCT: [(&str, &str); 3] =
    [("ffclockd", "ffclock-daemon"), ("ffclock", "ffclock-cli"), ("ffclock-serve", "ffclock-serve")];

/// The directory with all programs, which are up to date.
pub fn directory() -> &'static Path {
    static READY: OnceLock<PathBuf> = OnceLock::new();
    READY.get_or_init(|| {
        let directory = ffclock_lab().parent().unwrap().to_owned();
        let newest = newest_source();
        for (program, package) in PRODUCT {
            let path = directory.join(program);
            if !path.metadata().is_ok_and(|file| file.modified().unwrap() >= newest) {
                build(&directory, package);
            }
            assert!(path.exists(), "{} was built, and is not there", path.display());
        }
        directory
    })
}

/// The command `ffclock-lab`.
pub fn ffclock_lab() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_ffclock-lab"))
}

/// When anything was changed that the product is made of.
fn newest_source() -> SystemTime {
    let crates = fs::read_dir(root().join("clock")).unwrap().map(|entry| entry.unwrap().path());
    let files = crates.flat_map(|path| {
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

fn build(directory: &Path, package: &str) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", package, "--bins", "--target-dir"]);
    cargo.arg(directory.parent().unwrap());
    if directory.ends_with("release") {
        cargo.arg("--release");
    }
    let ended = cargo.current_dir(root()).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

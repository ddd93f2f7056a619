//! The house-keeper: `cargo xtask tidy` checks the source against the rules of the house, `cargo xtask licences` checks
//! the licences of its dependencies, `cargo xtask figures` makes a table of the benchmarks' figures.
//!
//! Rules that differ from crate to crate (which crate may depend on which, which files may hold unsafe code, which call
//! is banned where) are data in `xtask/tidy.toml`; each check is one file in `checks`. Every check is a pure function
//! of the files and the rules, and has tests that make it fail.

mod checks;
mod figures;
mod licences;
mod rules;
mod scan;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

commands:
  tidy      check the source against the rules of the house (xtask/tidy.toml)
  licences  check licence and origin of every dependency (deny.toml)
  figures   gather figures of benchmarks from standard input into out/bench.json, or into the named file
";

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    let root = workspace_root();
    let outcome = match argument.as_deref() {
        Some("tidy") => checks::tidy(&root),
        Some("licences") => licences::check(&root),
        Some("figures") => figures::gather(&root.join(std::env::args().nth(2).unwrap_or("out/bench.json".to_owned()))),
        Some("--help" | "-h" | "help") => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(complaint) => {
            eprintln!("{complaint}");
            ExitCode::FAILURE
        }
    }
}

/// The directory above this package: `cargo xtask` may be called from anywhere inside the workspace.
fn workspace_root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

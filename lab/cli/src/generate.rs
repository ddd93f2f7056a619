//! `ffclock-lab generate` (hidden): writes the man pages and shell completions of all programs and the reference of
//! the configuration.
//!
//! All of it comes from the declarations in the code; the files are committed, and a test fails when they are out of
//! date.

mod configuration;
mod man;

use crate::failure::Failure;
use crate::{GlobalOptions, LabCli, Public};
use clap::CommandFactory;
use clap_complete::{Generator, Shell};
use ffclock_daemon::arguments::Arguments;
use ffclock_serve::arguments::ServeArguments;
use ffclock_steer::arguments::SteerArguments;
use std::path::PathBuf;

/// Options of `ffclock-lab generate`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ cargo run -p ffclock-lab -- generate --output .")]
pub(crate) struct Args {
    /// The project's directory, below which docs/ and completions/ are written
    #[arg(long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
}

/// A file below the project's directory.
#[derive(Debug)]
struct Generated {
    path: PathBuf,
    text: Vec<u8>,
}

/// Writes every generated file.
pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    for file in everything()? {
        let path = args.output.join(&file.path);
        let write = || -> std::io::Result<()> {
            if let Some(directory) = path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            std::fs::write(&path, &file.text)
        };
        write().map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        global.answer(&serde_json::json!({ "written": path }), || format!("wrote {}\n", path.display()))?;
    }
    Ok(())
}

fn everything() -> Result<Vec<Generated>, Failure> {
    let mut files = man::pages()?;
    files.extend(completions());
    files.extend(configuration::files());
    Ok(files)
}

fn completions() -> impl Iterator<Item = Generated> {
    let commands = [
        ("ffclock", ffclock_cli::command()),
        ("ffclockd", Arguments::command()),
        ("ffclock-serve", ServeArguments::command()),
        ("ffclock-steer", SteerArguments::command()),
        ("ffclock-lab", LabCli::<Public>::command()),
    ];
    commands.into_iter().flat_map(|(name, mut command)| {
        [Shell::Bash, Shell::Zsh, Shell::Fish].map(|shell| {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, name, &mut text);
            Generated { path: PathBuf::from("completions").join(shell.file_name(name)), text }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_committed_files_are_up_to_date() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for file in everything().unwrap() {
            let committed = std::fs::read(root.join(&file.path)).unwrap_or_default();
            assert!(
                committed == file.text,
                "{} is out of date: run `cargo run -p ffclock-lab -- generate`",
                file.path.display()
            );
        }
    }

    #[test]
    fn no_generated_page_is_left_behind() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let expected: Vec<PathBuf> = everything().unwrap().into_iter().map(|file| file.path).collect();
        for directory in ["docs/man", "completions"] {
            for entry in std::fs::read_dir(root.join(directory)).unwrap() {
                let path = Path::new(directory).join(entry.unwrap().file_name());
                assert!(expected.contains(&path), "{} is no longer generated: delete it", path.display());
            }
        }
    }
}

//! The commands in the documents do what the documents say.
//!
//! Each block of commands in README.md is marked, and in the other documents may be:
//!
//! | fence | what is done with it |
//! |---|---|
//! | `sh run` | run as one script |
//! | `console run` | lines with `$ ` are run as one script; what is shown beside them must be printed, up to numbers, units and states |
//! | `sh show`, `console show` | not run, for it would take long, never end, or change the machine; the things that it names must exist |
//!
//! They run in a directory that looks like the checkout, with all programs in the PATH, and with `trace.csv.gz` as some
//! trace; the daemon follows a server with a known truth, both on loopback.

mod blocks;
mod stage;

use super::{programs, root};
use blocks::{Block, Kind, Treatment};
use stage::Stage;
use std::fs;
use std::path::PathBuf;

/// The documents, README.md first.
fn documents() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut docs: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    docs.sort();
    [vec![root().join("README.md")], docs].concat()
}

fn blocks_of(document: &PathBuf) -> Vec<Block> {
    blocks::parse(&fs::read_to_string(document).unwrap())
}

#[test]
fn every_block_of_commands_in_the_readme_is_marked() {
    for block in blocks_of(&root().join("README.md")) {
        let is_marked = block.kind == Kind::Other || block.treatment.is_some();
        let line = block.line;
        assert!(is_marked, "README.md:{line}: mark the fence as `sh run`, `sh show`, `console run` or `console show`");
    }
}

#[test]
fn commands_that_are_run_do_what_is_shown() {
    let stage = Stage::set();
    let mut run = 0;
    for document in documents() {
        for block in blocks_of(&document).iter().filter(|block| block.treatment == Some(Treatment::Run)) {
            let place = format!("{}:{}", document.display(), block.line);
            let printed = stage.run(&block.script(), &place);
            if let Some(missing) = blocks::missing(&block.shown(), &printed) {
                panic!("{place}: nothing like this was printed:\n{missing}\nbut:\n{printed}");
            }
            run += 1;
        }
    }
    assert!(run > 0, "no document has a block that is run");
}

/// Whatever cannot be run must at least be there: targets of make, programs, files.
#[test]
fn commands_that_are_shown_name_what_exists() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    for document in documents() {
        for block in blocks_of(&document).iter().filter(|block| block.treatment == Some(Treatment::Show)) {
            for command in block.script().lines() {
                let place = format!("{}:{}: {command}", document.display(), block.line);
                let words: Vec<&str> = command.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
                check_program(&words, &makefile, &place);
                words.iter().for_each(|word| check_file(word, &place));
            }
        }
    }
}

/// The commands of both wings.
const COMMANDS: [&str; 2] = ["ffclock", "ffclock-lab"];

fn check_program(words: &[&str], makefile: &str, place: &str) {
    match words {
        ["make", targets @ ..] => {
            let is_target = |target: &&str| makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
            assert!(targets.iter().all(is_target), "{place}: the Makefile has no such target");
        }
        [command, subcommand, ..] if COMMANDS.contains(&command.trim_start_matches("target/release/")) => {
            let program = programs::directory().join(command.trim_start_matches("target/release/"));
            let help = std::process::Command::new(program).args([subcommand, "--help"]).output().unwrap();
            assert!(help.status.success(), "{place}: there is no such subcommand");
        }
        [program, ..] if program.starts_with("target/release/") => {
            assert!(["target/release/ffclockd"].contains(program), "{place}: no such program is built");
        }
        _ => {}
    }
}

/// A relative path with a directory in it must lead to something, unless it leads to what was built or made. A name may
/// be before it: `NAME=PATH`.
fn check_file(word: &str, place: &str) {
    let word = word.rsplit('=').next().unwrap_or(word);
    let is_made = ["target/", "out/", "/", "http", "-", "~", "$"].iter().any(|start| word.starts_with(start));
    if word.contains('/') && !is_made {
        assert!(root().join(word).exists(), "{place}: there is no {word}");
    }
}

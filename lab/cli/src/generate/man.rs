//! The man pages of the commands.

use super::Generated;
use crate::failure::Failure;
use crate::{Cli, Public};
use clap::{Command, CommandFactory};
use clap_mangen::roff::{Roff, bold, roman};
use ffclock_daemon::arguments::Arguments;
use std::path::PathBuf;

/// Where the date of a page stands. It is not empty, because an empty argument would vanish and the next one take its place.
pub(super) const NO_DATE: &str = " ";
/// Defines the apostrophe. Every section is rendered with it, and once is enough.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";
/// What a page belongs to.
pub(super) const SOURCE: &str = concat!("ffclock ", env!("CARGO_PKG_VERSION"));

/// `ffclock.1`, `ffclockd.8` and a page for each subcommand and part of one but `help`, which needs none.
pub(super) fn pages() -> Result<Vec<Generated>, Failure> {
    let mut whole = Cli::<Public>::command().disable_help_subcommand(true);
    whole.build();
    let mut files = vec![page(whole.clone(), "1")?, page(Arguments::command(), "8")?];
    for subcommand in whole.get_subcommands() {
        files.push(page(subcommand.clone(), "1")?);
        for part in subcommand.get_subcommands().filter(|part| part.get_name() != "help") {
            files.push(page(part.clone(), "1")?);
        }
    }
    Ok(files)
}

fn page(command: Command, section: &str) -> Result<Generated, Failure> {
    let has_subcommands = command.has_subcommands();
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let page = clap_mangen::Man::new(command).section(section).date(NO_DATE).source(SOURCE).manual("ffclock");
    let path = PathBuf::from("docs/man").join(page.get_filename());
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if has_subcommands {
        page.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    examples_section(&mut rest, &examples);
    rest.control("SH", ["SEE ALSO"]);
    rest.text([bold("ffclock"), roman("(1), "), bold("ffclockd"), roman("(8)")]);
    text.extend_from_slice(rest.to_roff().as_bytes());
    let text = String::from_utf8_lossy(&text).replace(PREAMBLE, "");
    Ok(Generated { path, text: format!("{PREAMBLE}{text}").into_bytes() })
}

/// Lines that begin with spaces are what is typed and what is answered: they stay as they are.
fn examples_section(page: &mut Roff, text: &str) {
    page.control("SH", ["EXAMPLES"]);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    for part in lines.chunk_by(|a, b| a.starts_with(' ') == b.starts_with(' ')) {
        if part.first().is_some_and(|line| line.starts_with(' ')) {
            page.control("nf", []).text([roman(part.join("\n"))]).control("fi", []);
        } else {
            page.control("PP", []).text([roman(part.join("\n").trim().to_owned())]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command below `command` that does something, with all the words that call it.
    fn commands(command: &Command, called: &str) -> Vec<(String, Command)> {
        let parts = command.get_subcommands().filter(|part| part.get_name() != "help");
        let below = parts.flat_map(|part| commands(part, &format!("{called} {}", part.get_name())));
        std::iter::once((called.to_owned(), command.clone())).chain(below).collect()
    }

    #[test]
    fn every_command_has_an_example_of_itself() {
        let mut whole = Cli::<Public>::command().disable_help_subcommand(true);
        whole.build();
        let daemon = ("ffclockd".to_owned(), Arguments::command());
        let all: Vec<_> = commands(&whole, "ffclock").into_iter().chain([daemon]).collect();
        assert!(all.len() > 30, "{}", all.len());
        let has_example = |(called, command): &(String, Command)| {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let first = help.lines().next().unwrap_or_default();
            first.starts_with("Example")
                && help.lines().skip(1).any(|line| line.contains('$') && line.contains(called.as_str()))
        };
        let without: Vec<&String> = all.iter().filter(|one| !has_example(one)).map(|(called, _)| called).collect();
        assert!(without.is_empty(), "no example in the help of {without:?}");
    }
}

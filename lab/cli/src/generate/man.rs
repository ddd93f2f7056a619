//! The man pages of the commands.

use super::Generated;
use crate::failure::Failure;
use crate::{LabCli, Public};
use clap::{Command, CommandFactory};
use clap_mangen::roff::{Roff, bold, roman};
use ffclock_daemon::arguments::Arguments;
use ffclock_serve::arguments::ServeArguments;
use ffclock_steer::arguments::SteerArguments;
use std::path::PathBuf;

/// Where the date of a page stands. It is not empty, because an empty argument would vanish and the next one take its
/// place.
pub(super) const NO_DATE: &str = " ";
/// Defines the apostrophe. Every section is rendered with it, and once is enough.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";
/// What a page belongs to.
pub(super) const SOURCE: &str = concat!("ffclock ", env!("CARGO_PKG_VERSION"));

/// The pages that that of the daemon refers to.
const DAEMON: &[(&str, &str)] = &[("ffclockd.conf", "5"), ("ffclock", "1")];
/// The pages that that of the NTP server refers to.
const SERVE: &[(&str, &str)] = &[("ffclock-serve.conf", "5"), ("ffclockd", "8"), ("ffclock", "1")];
/// The pages that that of the follower refers to.
const STEER: &[(&str, &str)] = &[("ffclock-steer.conf", "5"), ("ffclockd", "8"), ("ffclock", "1")];
/// The pages that those of the product refer to, but for themselves.
const PRODUCT: &[(&str, &str)] = &[("ffclock", "1"), ("ffclockd", "8"), ("ffclockd.conf", "5")];
/// The pages that those of the laboratory refer to, but for themselves.
const LABORATORY: &[(&str, &str)] = &[("ffclock-lab", "1"), ("ffclock", "1"), ("ffclockd", "8")];

/// `ffclockd.8`, `ffclock-serve.8`, `ffclock-steer.8`, `ffclock.1`, `ffclock-lab.1` and a page for each subcommand and
/// part of one but `help`, which needs none.
pub(super) fn pages() -> Result<Vec<Generated>, Failure> {
    let mut files = vec![
        page(Arguments::command(), "8", DAEMON)?,
        page(ServeArguments::command(), "8", SERVE)?,
        page(SteerArguments::command(), "8", STEER)?,
    ];
    for (whole, related) in [(whole(ffclock_cli::command()), PRODUCT), (whole(LabCli::<Public>::command()), LABORATORY)]
    {
        files.push(page(whole.clone(), "1", related)?);
        for subcommand in whole.get_subcommands() {
            files.push(page(subcommand.clone(), "1", related)?);
            for part in subcommand.get_subcommands().filter(|part| part.get_name() != "help") {
                files.push(page(part.clone(), "1", related)?);
            }
        }
    }
    Ok(files)
}

/// The command with every subcommand complete, but for `help`.
fn whole(command: Command) -> Command {
    let mut whole = command.disable_help_subcommand(true);
    whole.build();
    whole
}

fn page(command: Command, section: &str, related: &[(&str, &str)]) -> Result<Generated, Failure> {
    let has_subcommands = command.has_subcommands();
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let page = clap_mangen::Man::new(command).section(section).date(NO_DATE).source(SOURCE).manual("ffclock");
    let file = page.get_filename();
    let path = PathBuf::from("docs/man").join(&file);
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
    let others = related.iter().filter(|(name, section)| file != format!("{name}.{section}"));
    let names = others.enumerate().flat_map(|(index, (name, section))| {
        let comma = if index > 0 { ", " } else { "" };
        [roman(comma), bold(*name), roman(format!("({section})"))]
    });
    rest.text(names.skip(1).collect::<Vec<_>>());
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
    fn pages_refer_to_pages_that_are_there_and_not_to_themselves() {
        let pages: Vec<Generated> = pages().unwrap().into_iter().chain(super::super::configuration::files()).collect();
        let files: Vec<String> =
            pages.iter().map(|page| page.path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        for (page, file) in pages.iter().zip(&files).filter(|(page, _)| page.path.starts_with("docs/man")) {
            let text = String::from_utf8(page.text.clone()).unwrap();
            let (_, references) = text.split_once("\"SEE ALSO\"\n").unwrap();
            for reference in references.trim().replace("\\fB", "").replace("\\fR", "").replace("\\-", "-").split(", ") {
                let named = reference.replace('(', ".").replace(')', "");
                assert!(files.contains(&named) && named != *file, "{file}: {reference}");
            }
            assert_eq!(references.contains("ffclockd.conf"), file == "ffclockd.8" || is_of_product(file), "{file}");
        }
    }

    /// The pages of `ffclock`.
    fn is_of_product(file: &str) -> bool {
        file.ends_with(".1") && !file.starts_with("ffclock-lab")
    }

    #[test]
    fn every_command_has_an_example_of_itself() {
        let product = commands(&whole(ffclock_cli::command()), "ffclock");
        let laboratory = commands(&whole(LabCli::<Public>::command()), "ffclock-lab");
        let daemon = ("ffclockd".to_owned(), Arguments::command());
        let all: Vec<_> = product.into_iter().chain(laboratory).chain([daemon]).collect();
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

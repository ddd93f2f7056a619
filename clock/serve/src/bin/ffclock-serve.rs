//! The server: composition only. What it does is in the library beside it.

use clap::Parser;
use ffclock_serve::arguments::ServeArguments;
use ffclock_serve::config::{self, ServeSettings};
use ffclock_service::{FilePath, read_bounded};
use ffclock_sys::places;
use std::path::Path;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let arguments = ServeArguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("ffclock-serve: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &ServeArguments) -> Result<(), String> {
    let again = || read_config(arguments);
    let config = again()?;
    if arguments.check_config {
        config.nts.check().map_err(|error| format!("{}: [nts] {error}", named(arguments)))?;
        println!("{}: no problem found", named(arguments));
        return Ok(());
    }
    start_log(arguments)?;
    ffclock_serve::run(config, &again).map_err(|error| error.to_string())
}

fn read_config(arguments: &ServeArguments) -> Result<ServeSettings, String> {
    let text = match file(arguments) {
        Some(path) => read_bounded(path).map_err(|error| format!("{}: {error}", path.display()))?,
        None => String::new(),
    };
    let mut config =
        config::parse(&text, &arguments.listen).map_err(|error| format!("{}:\n{error}", named(arguments)))?;
    if let Some(page) = &arguments.page {
        config.serve.page =
            page.to_str().and_then(|page| page.parse::<FilePath>().ok()).ok_or("--page: it is not UTF-8")?;
    }
    Ok(config)
}

/// The configuration file: none if the command line says where to listen and names no file, or the usual one is
/// missing.
fn file(arguments: &ServeArguments) -> Option<&Path> {
    let usual = Path::new(places::SERVE_CONFIGURATION);
    match &arguments.config {
        Some(path) => Some(path),
        None => Some(usual).filter(|usual| arguments.listen.is_empty() && usual.exists()),
    }
}

fn named(arguments: &ServeArguments) -> String {
    file(arguments).map_or_else(|| "command line".to_owned(), |path| path.display().to_string())
}

fn start_log(arguments: &ServeArguments) -> Result<(), String> {
    let filter = EnvFilter::try_new(&arguments.log).map_err(|error| format!("--log: {error}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    if arguments.log_json {
        log.json().init()
    } else {
        log.with_ansi(false).init()
    }
    Ok(())
}

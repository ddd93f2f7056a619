//! The follower of the page: composition only. What it does is in the library beside it.

use clap::Parser;
use ffclock_service::{FilePath, read_bounded};
use ffclock_steer::arguments::SteerArguments;
use ffclock_steer::options::SteerConfig;
use ffclock_steer::{End, Manner, config};
use ffclock_sys::places;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// The exit code of a run that left the clock to another program.
const WITHDRAWN: u8 = 3;

fn main() -> ExitCode {
    let arguments = SteerArguments::parse();
    match run(&arguments) {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::Withdrawn) => ExitCode::from(WITHDRAWN),
        Ok(End::Lost(why)) => fail(&why.to_string()),
        Err(message) => fail(&message),
    }
}

fn fail(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "ffclock-steer: {message}");
    ExitCode::FAILURE
}

fn run(arguments: &SteerArguments) -> Result<End, String> {
    let config = read_config(arguments)?;
    if arguments.check_config {
        println!("{}: no problem found", named(arguments));
        return Ok(End::Done);
    }
    start_log(arguments)?;
    let manner = Manner { is_dry: arguments.dry_run, is_once: arguments.once };
    // Nothing that is read is no reason to stop steering.
    let mut show = |line: &str| drop(writeln!(std::io::stdout(), "{line}"));
    ffclock_steer::run(&config, manner, &mut show).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => {
            "the kernel refuses to be steered: it takes CAP_SYS_TIME (--dry-run takes no right)".to_owned()
        }
        _ => format!("the kernel's clock: {error}"),
    })
}

fn read_config(arguments: &SteerArguments) -> Result<SteerConfig, String> {
    let text = match file(arguments) {
        Some(path) => read_bounded(path).map_err(|error| format!("{}: {error}", path.display()))?,
        None => String::new(),
    };
    let mut config = config::parse(&text).map_err(|error| format!("{}:\n{error}", named(arguments)))?;
    if let Some(page) = &arguments.page {
        config.page = page.to_str().and_then(|page| page.parse::<FilePath>().ok()).ok_or("--page: it is not UTF-8")?;
    }
    Ok(config)
}

/// The configuration file; none if the usual one is missing.
fn file(arguments: &SteerArguments) -> Option<&Path> {
    let usual = Path::new(places::STEER_CONFIGURATION);
    arguments.config.as_deref().or_else(|| Some(usual).filter(|usual| usual.exists()))
}

fn named(arguments: &SteerArguments) -> String {
    file(arguments).map_or_else(|| "defaults".to_owned(), |path| path.display().to_string())
}

fn start_log(arguments: &SteerArguments) -> Result<(), String> {
    let filter = EnvFilter::try_new(&arguments.log).map_err(|error| format!("--log: {error}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    if arguments.log_json {
        log.json().init()
    } else {
        log.with_ansi(false).init()
    }
    Ok(())
}

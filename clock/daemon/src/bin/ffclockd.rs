//! The daemon: composition only. What it does is in the library beside it.

use clap::Parser;
use ffclock_daemon::arguments::Arguments;
use ffclock_daemon::config::{Config, ConfigError, ServerAddress, Surroundings};
use ffclock_service::read_bounded;
use ffclock_sys::places;
use std::path::Path;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let args = Arguments::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("ffclockd: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Arguments) -> Result<(), String> {
    if args.check_config {
        let config = read_config(args, Config::check)?;
        println!("{}: {} server(s), no problem found", named(args), config.servers.len());
        return Ok(());
    }
    let settled = || {
        let mut config = read_config(args, Config::parse_with)?;
        let around = Surroundings { variable: &|name| std::env::var_os(name), may_write: &places::may_write_below };
        config.daemon.settle(&around).map_err(|error| error.to_string())?;
        Ok(config)
    };
    let config = settled()?;
    start_log(args)?;
    ffclock_daemon::run(config, &settled).map_err(|error| error.to_string())
}

type Parse = fn(&str, &[ServerAddress]) -> Result<Config, ConfigError>;

fn read_config(args: &Arguments, parse: Parse) -> Result<Config, String> {
    let text = match file(args) {
        Some(path) => read_bounded(path).map_err(|error| explained(args, path, &error))?,
        None => String::new(),
    };
    let mut config = parse(&text, &args.server).map_err(|error| format!("{}:\n{error}", named(args)))?;
    if let Some(directory) = &args.record {
        let directory = directory.to_str().ok_or("the directory for records is not UTF-8")?;
        config.daemon.set("record", directory).map_err(|error| error.to_string())?;
    }
    Ok(config)
}

/// The configuration file: none if the command line names servers and no file.
fn file(args: &Arguments) -> Option<&Path> {
    match &args.config {
        Some(path) => Some(path),
        None if args.server.is_empty() => Some(Path::new(places::CONFIGURATION)),
        None => None,
    }
}

fn named(args: &Arguments) -> String {
    file(args).map_or_else(|| "command line".to_owned(), |path| path.display().to_string())
}

fn explained(args: &Arguments, path: &Path, error: &std::io::Error) -> String {
    let remedy = if args.config.is_none() { " (name another with --config, or a server with --server)" } else { "" };
    format!("{}: {error}{remedy}", path.display())
}

fn start_log(args: &Arguments) -> Result<(), String> {
    let filter = EnvFilter::try_new(&args.log).map_err(|error| format!("--log: {error}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    if args.log_json {
        log.json().init()
    } else {
        log.with_ansi(false).init()
    }
    Ok(())
}

//! The daemon: composition only. What it does is in the library beside it.

use clap::Parser;
use ffclock_daemon::arguments::Arguments;
use ffclock_daemon::config::{Config, LONGEST_TEXT};
use std::io::Read;
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
    let config = read_config(args)?;
    if args.check_config {
        println!("{}: {} server(s), no problem found", args.config.display(), config.servers.len());
        return Ok(());
    }
    start_log(args)?;
    let again = || read_config(args);
    ffclock_daemon::run(config, &again).map_err(|error| error.to_string())
}

fn read_config(args: &Arguments) -> Result<Config, String> {
    let text = read_bounded(&args.config)?;
    let mut config = Config::parse(&text).map_err(|error| format!("{}:\n{error}", args.config.display()))?;
    if let Some(directory) = &args.record {
        let directory = directory.to_str().ok_or("the directory for records is not UTF-8")?;
        config.daemon.set("record", directory).map_err(|error| error.to_string())?;
    }
    Ok(config)
}

fn read_bounded(path: &Path) -> Result<String, String> {
    let named = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(named)?;
    let mut text = String::new();
    file.take(LONGEST_TEXT as u64 + 1).read_to_string(&mut text).map_err(named)?;
    Ok(text)
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

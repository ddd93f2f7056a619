//! `ffclock doctor`: what is wrong on this host, why it matters, and what to do about it.
//!
//! It looks at what programs and the daemon themselves see: the page, the control socket, the configuration, the host
//! around them. It changes nothing, asks no server, and ends within five seconds on a host where nothing answers.

mod bundle;
mod catalogue;
mod daemon;
#[cfg(test)]
mod documented;
mod events;
mod host;
mod page;
mod servers;
mod system;

use crate::failure::Failure;
use crate::{Global, control, output};
use bundle::Bundle;
use catalogue::{Diagnosis, HostCheck, Severity};
use ffclock_control::protocol::StatusReport;
use ffclock_sys::places;
use ffclock_units::Bound;
use host::HostFiles;
use serde::Serialize;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use system::HostView;

/// The exit code when the worst finding is a warning.
const WARNED: u8 = 4;
/// The exit code when there is an error among the findings.
const FAULTY: u8 = 5;

/// Options of `ffclock doctor`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock doctor
  $ ffclock doctor --json | jq -r '.findings[] | select(.severity == \"error\") | .check'
  $ ffclock doctor --bundle report.tar

Each finding has a severity (error: programs have no time or cannot rely on its bound; warning: the
time is right, and something is worse than it should be or soon will be; note: worth knowing), what
was seen, why it matters and what to do. The fields of --json are check, severity, seen, matters and
remedy.

Run as root or as the daemon's user it sees more: files that others may not read are left out.

Exit code: 0 no finding, or notes only; 4 the worst finding is a warning; 5 it is an error; 1 the
examination itself failed.")]
pub(crate) struct Args {
    /// A bound above this is a finding
    #[arg(long, value_name = "SPAN", default_value = "100 ms")]
    bound: Bound,
    /// The daemon's configuration [default: where ffclockd looks]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Look at the system below this directory, such as that of a container
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Also write findings, state, configuration, log and the last day's recordings into an archive (tar) for a report
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Only show what is looked for
    #[arg(long)]
    list: bool,
}

/// What `--json` shows.
#[derive(Serialize)]
struct Examination {
    version: &'static str,
    looked_for: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
    findings: Vec<Diagnosis>,
}

/// What was examined.
struct Examined {
    files: HostFiles,
    page: PathBuf,
    config: PathBuf,
    report: Option<StatusReport>,
}

/// Examines the host.
pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    if args.list {
        return list(global);
    }
    let (examined, findings) = examine(global, args);
    let examination = Examination::of(findings);
    if let Some(file) = &args.bundle {
        write_bundle(file, &examined, &examination)?;
    }
    match global.json {
        true => output::json(&examination)?,
        false => output::write(&examination.render())?,
    }
    match examination.findings.iter().map(|finding| finding.of.severity).max() {
        Some(Severity::Error) => Err(Failure::silent(FAULTY)),
        Some(Severity::Warning) => Err(Failure::silent(WARNED)),
        Some(Severity::Note) | None => Ok(()),
    }
}

fn list(global: &Global) -> Result<(), Failure> {
    if global.json {
        return output::json(&catalogue::ALL);
    }
    let entry = |check: &HostCheck| format!("{:<8} {}: {}\n", check.severity.name(), check.check, check.matters);
    output::write(&catalogue::ALL.iter().map(entry).collect::<String>())
}

fn examine(global: &Global, args: &Args) -> (Examined, Vec<Diagnosis>) {
    let files = HostFiles::below(&args.root);
    let is_here = args.root == Path::new("/");
    let usual = || if is_here { ffclock::default_page() } else { files.place(places::PAGE) };
    let page = global.page.clone().unwrap_or_else(usual);
    let socket = match (&global.control, is_here) {
        (Some(named), _) => Ok(named.clone()),
        (None, false) => Ok(page.with_file_name(places::CONTROL_NAME)),
        (None, true) => control::socket(global),
    };
    let report = match socket {
        Ok(socket) => daemon::ask(&socket),
        Err(failure) => Err(catalogue::DAEMON_ABSENT.seen(failure.message)),
    };
    let mut findings = page::examine(&page);
    let report = report.map_err(|finding| daemon_of_host(finding, &files, &findings));
    let has_daemon = report.as_ref().err().is_none_or(|finding| finding.of == catalogue::DAEMON_ELSEWHERE);
    let report = report.map_err(|finding| findings.push(finding)).ok();
    if let Some(report) = &report {
        findings.extend(daemon::examine(report, &page, args.bound.as_seconds()));
        findings.extend(servers::examine(report));
        findings.extend(events::examine(report));
    }
    let config = args.config.clone().unwrap_or_else(|| places::CONFIGURATION.into());
    let view = HostView { files: &files, config: &config, page: &page, report: report.as_ref(), has_daemon };
    findings.extend(system::examine(&view));
    (Examined { files, page, config, report }, findings)
}

/// A container whose page is sound has no daemon of its own: it reads that of its host.
fn daemon_of_host(finding: Diagnosis, files: &HostFiles, of_page: &[Diagnosis]) -> Diagnosis {
    let is_sound = of_page.iter().all(|finding| finding.of.severity < Severity::Error);
    match finding.of == catalogue::DAEMON_ABSENT && is_sound && files.is_container() {
        true => catalogue::DAEMON_ELSEWHERE.seen(finding.seen),
        false => finding,
    }
}

impl Examination {
    /// Worst first, otherwise in the order of looking; a fault that is seen in two ways is reported once.
    fn of(mut findings: Vec<Diagnosis>) -> Self {
        let mut seen: Vec<(&str, Option<String>)> = Vec::new();
        findings.retain(|finding| {
            let subject = (finding.of.check, finding.server.clone());
            let is_new = !seen.contains(&subject);
            seen.push(subject);
            is_new
        });
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.of.severity));
        let count = |severity| findings.iter().filter(|finding| finding.of.severity == severity).count();
        Examination {
            version: env!("CARGO_PKG_VERSION"),
            looked_for: catalogue::ALL.len(),
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            notes: count(Severity::Note),
            findings,
        }
    }

    fn render(&self) -> String {
        let texts: String = self.findings.iter().map(render).collect();
        let Examination { looked_for, errors, warnings, notes, .. } = self;
        match self.findings.is_empty() {
            true => format!("no fault found; {looked_for} were looked for\n"),
            false => format!("{texts}{errors} error(s), {warnings} warning(s), {notes} note(s)\n"),
        }
    }
}

fn render(finding: &Diagnosis) -> String {
    let HostCheck { check, severity, matters, remedy } = finding.of;
    let seen = finding.seen.replace('\n', "\n         ");
    let about = finding.server.as_deref().map_or_else(String::new, |server| format!(" ({server})"));
    format!("{}: {check}{about}\n  seen   {seen}\n  why    {matters}\n  do     {remedy}\n\n", severity.name())
}

/// Writes the archive, readable for its owner only.
fn write_bundle(file: &Path, examined: &Examined, examination: &Examination) -> Result<(), Failure> {
    let wrap = |error: std::io::Error| Failure::from(format!("{}: {error}", file.display()));
    let out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(wrap)?;
    let mut bundle = Bundle::new(std::io::BufWriter::new(out), SystemTime::now());
    bundle.add("findings.json", output::to_json(examination)?.as_bytes()).map_err(wrap)?;
    if let Some(report) = &examined.report {
        bundle.add("status.json", output::to_json(report)?.as_bytes()).map_err(wrap)?;
    }
    let config = examined.files.read(&examined.config).unwrap_or_default();
    bundle.add("ffclockd.toml", config.as_bytes()).map_err(wrap)?;
    bundle::add_host(&mut bundle, &examined.files, &examined.page).map_err(wrap)?;
    if let Some(record) = system::setting(&config, "record") {
        bundle::add_recordings(&mut bundle, &examined.files.place(record)).map_err(wrap)?;
    }
    bundle.end().map_err(wrap)
}

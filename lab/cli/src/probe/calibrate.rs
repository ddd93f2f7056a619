//! `ffclock-lab probe calibrate`: the host's own delays, for the daemon to take off its stamps.

use super::answer::MeasuredPhase;
use super::own;
use super::run::{RunExtras, TrafficOptions, measure};
use crate::columns::{table, us};
use crate::failure::Failure;
use crate::{GlobalOptions, output, waiting_time};
use ffclock_control::calibration::{Calibration, CalibrationError, Entry, Subject, Taken};
use ffclock_probe::findings::{Asymmetry, Plausibility};
use ffclock_probe::own::delays::Purpose;
use ffclock_probe::site::{Site, TimestampingLocation};
use ffclock_units::Span;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Options of `ffclock-lab probe calibrate`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab probe calibrate --own /var/lib/ffclock/traces
  $ ffclock-lab probe calibrate --own /var/lib/ffclock/traces --check     (what is left, once it is in use)
  $ ffclock-lab probe calibrate --to 192.0.2.7
  $ ffclock-lab probe calibrate --to 192.0.2.7 --stress cpu,ip --phase '30 s'
  $ ffclock-lab probe calibrate --to 192.0.2.7 --json | jq '.[] | [.location, .unequal_ns]'

Best by the daemon's own packets (--own), while it runs with record = \"DIRECTORY\" and without calibration: test
packets find other caches and another program. The delays are measured up to the boundary of the driver, so
tracing must be permitted. Then set asymmetry = \"calibrated\" in ffclockd.conf and restart ffclockd. Measure again
after a change of kernel, driver or device, with asymmetry = \"unknown\" meanwhile; with loads, what they change is
counted as doubt.")]
#[command(mut_arg("rate", |rate| rate.default_value("8")), mut_arg("packets", |packets| packets.default_value("1000")))]
pub(super) struct Args {
    #[command(flatten)]
    course: TrafficOptions,
    /// Where the calibration is kept
    #[arg(long, value_name = "FILE", default_value = "/var/lib/ffclock/calibration.json")]
    file: PathBuf,
    /// Measure the daemon's own packets instead: what it is recording, a file or the directory of `record`
    // In the group of what says where packets go: one of them must be given.
    #[arg(long, value_name = "RECORDING", group = "Target", conflicts_with_all = ["stress", "phase", "packets", "rate", "size", "without", "xdp"])]
    own: Option<PathBuf>,
    /// With --own, how long to look at its packets; at least some hundred of them should pass
    #[arg(long = "for", value_name = "SPAN", default_value = "2 min", conflicts_with_all = ["to", "netns"], value_parser = waiting_time)]
    length: Span,
    /// With --own, only say what the clock is off by for the host's delays, and write nothing
    #[arg(long, conflicts_with_all = ["to", "netns"])]
    check: bool,
}

/// Measures and writes.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    // What cannot be written should not be measured for minutes first.
    if args.check {
        return check(global, args);
    }
    let mut calibration = read(args)?;
    probe_writing(&args.file).map_err(|error| format!("{}: {error}", args.file.display()))?;
    let own = match &args.own {
        Some(recording) => {
            let delays = own::measure(recording, args.course.device(), args.length, Purpose::Calibration)?;
            Some(delays.entry().map_err(|error| error.to_string())?)
        }
        None => None,
    };
    let entries = match &own {
        Some(own) => vec![own.entry.clone()],
        None => by_test_packets(args)?,
    };
    for entry in &entries {
        calibration.replace(entry.clone());
    }
    calibration.write(&args.file).map_err(|error| format!("{}: {error}", args.file.display()))?;
    if global.json {
        return own.map_or_else(|| output::json(&entries), |own| output::json(&[own]));
    }
    let rests_on = own.map_or_else(String::new, |own| own::rests_on(&own) + "\n");
    output::write(&format!(
        "{}\n{rests_on}written to {}; ffclockd uses it with asymmetry = \"calibrated\" from its next start\n",
        table(HEADING, entries.iter().map(row)),
        args.file.display()
    ))
}

/// Whether the file could be written; it stays as it is, or is not there, until there is something to write.
fn probe_writing(file: &Path) -> std::io::Result<()> {
    let beside = file.with_extension("new");
    std::fs::write(&beside, "")?;
    std::fs::remove_file(&beside)
}

/// What test packets say.
fn by_test_packets(args: &Args) -> Result<Vec<Entry>, Failure> {
    // The daemon's packets will pass no other probe than the tracing at the boundary.
    let whole = measure(&args.course.at_boundary(), RunExtras::default())?;
    let mut subject = Subject::here(&whole.way.device);
    if whole.way.far_device.is_some() {
        // Each run makes a link of its own, with names of its own, and replaces what the run before found.
        "netns".clone_into(&mut subject.device);
    }
    let mut entries: Vec<Entry> = Vec::new();
    for phase in &whole.phases {
        for entry in of_phase(&subject, phase)? {
            join(&mut entries, entry);
        }
    }
    Ok(entries)
}

/// What the daemon's clock is off by for the host's delays.
fn check(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let Some(recording) = &args.own else { return Err(Failure::usage("--check is about --own")) };
    let figures = own::measure(recording, args.course.device(), args.length, Purpose::Check)?.figures();
    global.answer(&figures, || own::table(&figures))
}

fn read(args: &Args) -> Result<Calibration, Failure> {
    match Calibration::read(&args.file) {
        Ok(calibration) => Ok(calibration),
        Err(CalibrationError::Unreadable(error)) if error.kind() == ErrorKind::NotFound => Ok(Calibration::default()),
        Err(error) => Err(format!("{}: {error}; or remove it", args.file.display()).into()),
    }
}

/// What one phase says about the locations that the daemon stamps at.
fn of_phase(subject: &Subject, measured: &MeasuredPhase) -> Result<Vec<Entry>, Failure> {
    let findings = &measured.findings;
    if findings.reference != (Site::DriverOut, Site::DriverIn) {
        let reasons = measured.unavailable.join("; ");
        return Err(format!("the boundary to the driver cannot be seen, so nothing is calibrated ({reasons})").into());
    }
    let wanted = [(TimestampingLocation::User, Taken::User), (TimestampingLocation::Socket, Taken::Kernel)];
    let entries = wanted.into_iter().filter_map(|(location, taken)| {
        let found = findings.asymmetries.iter().find(|one| one.location == location)?;
        (found.verdict != Plausibility::CausalityFault).then(|| entry(subject, taken, found, measured))
    });
    Ok(entries.collect())
}

/// Quiet phases come again and again: of all of them the delays nearest to the boundary count. Those of a stamp that is
/// taken behind it are negative.
fn join(entries: &mut Vec<Entry>, next: Entry) {
    let same = |entry: &&mut Entry| entry.location == next.location && entry.load == next.load;
    match entries.iter_mut().find(same) {
        None => entries.push(next),
        Some(known) => {
            known.out_ns = nearest(known.out_ns, next.out_ns);
            known.in_ns = nearest(known.in_ns, next.in_ns);
            // The first of the phases says how unequal the ways are: a mean of several would be that of none.
            known.uncertainty_ns = known.uncertainty_ns.max(next.uncertainty_ns);
            known.packets += next.packets;
        }
    }
}

fn nearest(one_ns: f64, other_ns: f64) -> f64 {
    if other_ns.abs() < one_ns.abs() { other_ns } else { one_ns }
}

fn entry(subject: &Subject, location: Taken, found: &Asymmetry, measured: &MeasuredPhase) -> Entry {
    Entry {
        subject: subject.clone(),
        location,
        load: measured.phase.name().to_owned(),
        out_ns: found.out_ns,
        in_ns: found.in_ns,
        unequal_ns: Some(found.edges_ns.0 - found.edges_ns.1),
        uncertainty_ns: found.interval_ns.1 - found.interval_ns.0,
        packets: measured.counts.received,
        measured_at: ffclock_sys::system_utc_now().whole_seconds(),
    }
}

const HEADING: &str = "LOCATION|LOAD|>OUT (us)|>IN (us)|>ASYMMETRY (us)|>UNCERTAINTY (us)";

fn row(entry: &Entry) -> Vec<String> {
    vec![
        entry.location.name().to_owned(),
        entry.load.clone(),
        us(entry.out_ns),
        us(entry.in_ns),
        us(entry.unequal_ns.unwrap_or(entry.out_ns - entry.in_ns)),
        us(entry.uncertainty_ns),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(line: &str) -> Result<Args, String> {
        let words = ["calibrate"].into_iter().chain(line.split(' '));
        Line::try_parse_from(words).map(|line| line.args).map_err(|error| error.to_string())
    }

    #[test]
    fn options_that_say_nothing_about_own_packets_are_refused_with_them() {
        for option in
            ["--rate 3", "--packets 9", "--size 70", "--without tap", "--xdp", "--netns", "--to x", "--stress cpu"]
        {
            let refused = parsed(&format!("--own r {option}")).err().unwrap_or_else(|| panic!("{option} was taken"));
            assert!(refused.contains("cannot be used with"), "{refused}");
        }
        for option in ["--for 10s", "--check"] {
            assert!(
                parsed(&format!("--to x {option}"))
                    .err()
                    .is_some_and(|refused| refused.contains("cannot be used with")),
                "{option}"
            );
        }
        let args = parsed("--own r --for 10s --device lo --check").unwrap_or_else(|refused| panic!("{refused}"));
        assert!(args.check && args.course.device() == Some("lo") && args.length == Span::from_secs(10));
        assert!(parsed("--to x --rate 3 --packets 9 --stress cpu").is_ok());
    }

    #[test]
    fn of_two_quiet_phases_the_delays_nearest_to_the_boundary_count() {
        let entry = |out_ns, in_ns, packets| Entry {
            subject: Subject::here("lo"),
            location: Taken::Kernel,
            load: "quiet".to_owned(),
            out_ns,
            in_ns,
            unequal_ns: None,
            uncertainty_ns: 100.0,
            packets,
            measured_at: 0,
        };
        let mut entries = vec![entry(-300.0, 90.0, 7)];
        join(&mut entries, entry(-500.0, 80.0, 5));
        join(&mut entries, entry(-200.0, 85.0, 1));
        assert_eq!(entries, [entry(-200.0, 80.0, 13)]);
    }

    #[test]
    fn whether_it_can_be_written_is_tried_without_writing_it() {
        let directory = std::env::temp_dir().join(format!("ffclock-calibrate-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        probe_writing(&directory.join("calibration.json")).unwrap();
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "an interrupted measurement leaves nothing");
        assert!(probe_writing(&directory.join("missing/calibration.json")).is_err());
        std::fs::remove_dir_all(directory).unwrap();
    }
}

//! The main job in two minutes: synchronise over real packets, compare with the known truth, survive the loss of the
//! server.

mod sampler;
mod stage;
mod table;

use crate::failure::Failure;
use crate::lab::truth::Truth;
use crate::{GlobalOptions, algorithm};
use ffclock_client::Clock;
use ffclock_counter::CounterId;
use ffclock_estimator::Algorithm;
use ffclock_replay::{Figure, LiveRun, LiveSchedule, bound_held, set_goals};
use ffclock_trace::TraceReader;
use ffclock_units::{Rate, Span};
use sampler::ObservedClock;
use serde::Serialize;
use stage::{DemoStage, ServerProgram, StagePlan, StampingDaemon, TruthSource};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// Arguments of `ffclock-lab demo`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  $ ffclock-lab demo --output out/demo")]
pub(crate) struct Args {
    /// Where the results go; the directory is made if it is missing.
    #[arg(long, value_name = "DIR", default_value = "out/demo")]
    output: PathBuf,
    /// Synchronise to this chronyd as the server, which never touches the system clock, instead of the embedded
    /// reference server.
    #[arg(long, value_name = "PATH", conflicts_with = "ntpd")]
    chronyd: Option<PathBuf>,
    /// Synchronise to this ntpd (of ntpsec) as the server, likewise.
    #[arg(long, value_name = "PATH")]
    ntpd: Option<PathBuf>,
    /// The algorithm of the daemon.
    #[arg(long, value_name = "NAME", default_value = "learned", value_parser = algorithm::named())]
    estimator: Algorithm,
    /// Time between two requests.
    #[arg(long, value_name = "SPAN", default_value = "250 ms")]
    poll: Span,
    /// The server's rate against the counter's nominal rate.
    #[arg(long, value_name = "RATE", default_value = "-37 ppm", allow_hyphen_values = true)]
    skew: Rate,
    /// The largest deviation of the server's rate from its mean.
    #[arg(long, value_name = "RATE", default_value = "0.05 ppm")]
    wander: Rate,
    /// Seconds before the server is cut off.
    #[arg(long, value_name = "SECONDS", default_value_t = 50.0)]
    before: f64,
    /// Seconds for which the server is cut off.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    cut: f64,
    /// Seconds after the server has come back.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    after: f64,
    /// The Python interpreter that draws the report; without one, only figures and data are written.
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

/// How long one swing of the server's wander takes.
const SWING: Span = Span::from_secs(60);
/// Time between two comparisons with the truth.
const SAMPLING: Duration = Duration::from_millis(10);
/// The daemons make their pages within this time.
const PAGE_PATIENCE_S: f64 = 10.0;
/// The clock is settled after this time; the goals count from there.
const WARM_UP_S: f64 = 30.0;

#[derive(Serialize)]
struct DemoEvent {
    t_s: f64,
    duration_s: f64,
    text: &'static str,
}

#[derive(Serialize)]
struct DemoSummary<'a> {
    title: &'static str,
    conditions: String,
    warm_up_s: f64,
    figures: &'a [Figure],
    events: Vec<DemoEvent>,
    bound_held: bool,
}

/// Runs the demonstration.
pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let output = prepare_output(&args.output)?;
    let reference = reference(args)?;
    let server = server(args)?;
    let plan = StagePlan { directory: &output, reference, server, estimator: args.estimator, poll: args.poll };
    let mut stage = DemoStage::set(&plan)?;
    let schedule = LiveSchedule {
        warm_until: WARM_UP_S,
        cut_at: args.before,
        back_at: args.before + args.cut,
        end: args.before + args.cut + args.after,
    };
    let conditions = format!(
        "{}; {}; poll {}; this machine's {}",
        plan.server.description(),
        stage.network(),
        args.poll,
        CounterId::CPU.name(),
    );
    eprintln!("{conditions}; {} s", schedule.end);
    let mut observed = open_clocks(&output, &mut stage)?;
    observe(&mut observed, &mut stage, &reference, &schedule)?;
    let runs = observed.map(|observed| observed.run);
    let mut figures = runs[0].figures(&schedule);
    if plan.server == ServerProgram::Embedded {
        set_goals(&mut figures);
    }
    figures.extend(runs[1].figures(&schedule));
    figures.push(resident_memory(&stage));
    stage.finish();
    let held = bound_held(&runs);
    let summary = DemoSummary {
        title: "ffclock against the known truth",
        conditions,
        warm_up_s: WARM_UP_S,
        figures: &figures,
        events: vec![DemoEvent { t_s: schedule.cut_at, duration_s: args.cut, text: "server cut off" }],
        bound_held: held,
    };
    write_results(&output, &runs, &summary)?;
    present(global, &summary)?;
    draw_report(args, &output)?;
    if held { Ok(()) } else { Err("the true time left the published bound".into()) }
}

fn prepare_output(path: &Path) -> Result<PathBuf, Failure> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
    for stamps in [StampingDaemon::Kernel, StampingDaemon::User] {
        // The page of an earlier run would serve until the daemon's first estimate, and it is about another truth.
        let page = stage::page_path(path, stamps);
        if page.exists() {
            fs::remove_file(&page)?;
        }
        let recorded = stage::record_path(path, stamps);
        if recorded.exists() {
            fs::remove_dir_all(&recorded)?;
        }
    }
    Ok(fs::canonicalize(path)?)
}

fn server(args: &Args) -> Result<ServerProgram, Failure> {
    // Links are not resolved: a wrapper may depend on the name by which it is called.
    let program = |path: &Path| std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()));
    Ok(match (&args.chronyd, &args.ntpd) {
        (Some(path), _) => ServerProgram::Chronyd(program(path)?),
        (None, Some(path)) => ServerProgram::Ntpd(program(path)?),
        (None, None) => ServerProgram::Embedded,
    })
}

fn reference(args: &Args) -> Result<TruthSource, Failure> {
    if args.chronyd.is_some() || args.ntpd.is_some() {
        return Ok(TruthSource::SystemClock);
    }
    let nominal = ffclock_counter::nominal(CounterId::CPU).map_err(|error| error.to_string())?;
    let now = ffclock_units::LeapTable::built_in().tai_from_utc(ffclock_sys::system_utc_now());
    Ok(TruthSource::Embedded(Truth {
        origin: ffclock_counter::read_ordered(CounterId::CPU),
        time: now,
        period: nominal.period.stretched(args.skew),
        wander: args.wander,
        swing: SWING,
    }))
}

fn open_clocks(output: &Path, stage: &mut DemoStage) -> Result<[ObservedClock; 2], Failure> {
    let open = |stamps: StampingDaemon| loop {
        match Clock::open_at(&stage::page_path(output, stamps)) {
            Ok(clock) => return Ok(ObservedClock::new(stamps.name(), clock)),
            Err(error) if stage.elapsed_s() > PAGE_PATIENCE_S => return Err(Failure::from(error.to_string())),
            Err(_) => sleep(SAMPLING),
        }
    };
    let clocks = [open(StampingDaemon::Kernel), open(StampingDaemon::User)];
    stage.check()?;
    let [kernel, user] = clocks;
    Ok([kernel?, user?])
}

fn observe(
    observed: &mut [ObservedClock; 2],
    stage: &mut DemoStage,
    reference: &TruthSource,
    schedule: &LiveSchedule,
) -> Result<(), Failure> {
    let mut next_line = 1.0;
    let (mut is_cut, mut is_back) = (false, false);
    loop {
        let t_s = stage.elapsed_s();
        if t_s >= schedule.end {
            return Ok(());
        }
        if !is_cut && t_s >= schedule.cut_at {
            stage.cut()?;
            is_cut = true;
        }
        if !is_back && t_s >= schedule.back_at {
            stage.reconnect()?;
            is_back = true;
        }
        for clock in observed.iter_mut() {
            clock.sample(t_s, reference);
        }
        if t_s >= next_line {
            stage.check()?;
            progress(t_s, schedule, &observed[0]);
            next_line += 1.0;
        }
        sleep(SAMPLING);
    }
}

fn progress(t_s: f64, schedule: &LiveSchedule, clock: &ObservedClock) {
    let link = if (schedule.cut_at..schedule.back_at).contains(&t_s) { "  server cut off" } else { "" };
    let state = match clock.latest() {
        None => "no estimate yet".to_owned(),
        Some(sample) => format!(
            "error {:>+9.3} us  uncertainty {:>8.3} us  bound {:>9.3} us  {}",
            sample.error_s * 1e6,
            sample.uncertainty_s * 1e6,
            sample.bound_s * 1e6,
            sample.status.name()
        ),
    };
    eprintln!("{t_s:>4.0} of {:.0} s  {state}{link}", schedule.end);
}

fn resident_memory(stage: &DemoStage) -> Figure {
    let resident = stage.daemon_memory().map(|bytes| bytes as f64 / (1024.0 * 1024.0));
    Figure::new("ffclockd resident memory".to_owned(), resident, "MiB").at_most(8.0)
}

fn write_results(output: &Path, runs: &[LiveRun; 2], summary: &DemoSummary<'_>) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(summary).map_err(|error| error.to_string())?;
    fs::write(output.join("summary.json"), json)?;
    fs::write(output.join("samples.csv"), table::samples_csv(&runs[0]))?;
    fs::write(output.join("samples-user.csv"), table::samples_csv(&runs[1]))?;
    fs::write(output.join("exchanges.csv"), exchanges_csv(&stage::record_path(output, StampingDaemon::Kernel))?)?;
    Ok(())
}

/// Round trips and their running minimum, from what the daemon itself recorded.
fn exchanges_csv(recorded: &Path) -> Result<String, Failure> {
    let mut text = String::from("t_s,round_trip_s,floor_s\n");
    let Some(file) = fs::read_dir(recorded)?.next() else {
        return Ok(text);
    };
    let reader = TraceReader::open(file?.path()).map_err(|error| error.to_string())?;
    let nominal = ffclock_counter::nominal(CounterId::CPU).map_err(|error| error.to_string())?.period;
    let mut first = None;
    let mut floor = Span::MAX;
    for row in reader {
        let Some(exchange) = row.map_err(|error| error.to_string())?.exchange else { continue };
        let start = *first.get_or_insert(exchange.received.counter);
        let away = nominal * (exchange.received.counter - exchange.sent.counter);
        let round_trip = away - (exchange.server_out - exchange.server_in);
        floor = floor.min(round_trip);
        let t_s = (nominal * (exchange.received.counter - start)).as_seconds();
        let _ = writeln!(text, "{t_s:.6},{:.12},{:.12}", round_trip.as_seconds(), floor.as_seconds());
    }
    Ok(text)
}

fn present(global: &GlobalOptions, summary: &DemoSummary<'_>) -> Result<(), Failure> {
    if global.json {
        println!("{}", serde_json::to_string_pretty(summary).map_err(|error| error.to_string())?);
    } else {
        println!("\n{}\n{}", summary.conditions, table::table(summary.figures));
        println!("  the truth {} the published bound", if summary.bound_held { "never left" } else { "LEFT" });
    }
    Ok(())
}

fn draw_report(args: &Args, output: &Path) -> Result<(), Failure> {
    let Some(python) = &args.python else { return Ok(()) };
    let status = Command::new(python).args(["-m", "ffclock.report"]).arg(output).arg("-o").arg(output).status();
    match status {
        Ok(status) if status.success() => {
            eprintln!("report: {}", output.join("report.html").display());
            Ok(())
        }
        Ok(status) => Err(format!("the report was not drawn: {status}").into()),
        Err(error) => Err(format!("{}: {error}", python.display()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_earlier_run_is_taken_for_this_one() {
        let output = std::env::temp_dir().join(format!("ffclock-demo-output-{}", std::process::id()));
        let recorded = stage::record_path(&output, StampingDaemon::Kernel);
        fs::create_dir_all(&recorded).unwrap();
        let leftovers = [stage::page_path(&output, StampingDaemon::User), recorded.join("a.fftrace")];
        leftovers.iter().for_each(|path| fs::write(path, "").unwrap());
        prepare_output(&output).unwrap();
        assert!(leftovers.iter().all(|path| !path.exists()));
        fs::remove_dir_all(output).unwrap();
    }
}

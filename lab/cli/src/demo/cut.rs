//! One server that is cut off for a while and comes back, and two daemons: with kernel stamps and with stamps in user
//! space.

use super::exchanges::{RunTimes, recorded};
use super::sampler::{ObservedClock, SAMPLING};
use super::stage::{self, DaemonPlan, DemoStage, ServerPlan, ServerProgram, StagePlan, TruthSource};
use super::{DemoEvent, DemoSummary, WorldArgs, draw_reports, table};
use crate::failure::Failure;
use crate::{GlobalOptions, algorithm};
use ffclock_counter::CounterId;
use ffclock_estimator::Algorithm;
use ffclock_replay::{Figure, LiveSchedule, bound_held, set_goals};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;

/// Options of `ffclock-lab demo` without a subcommand.
#[derive(clap::Args)]
pub(super) struct CutArgs {
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
    #[command(flatten)]
    world: WorldArgs,
    /// Seconds before the server is cut off.
    #[arg(long, value_name = "SECONDS", default_value_t = 50.0)]
    before: f64,
    /// Seconds for which the server is cut off.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    cut: f64,
    /// Seconds after the server has come back.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    after: f64,
}

/// The clock is settled after this time; the goals count from there.
const WARM_UP_S: f64 = 30.0;
const KERNEL: &str = "kernel";
const USER: &str = "user";
const DAEMONS: [DaemonPlan; 2] = [
    DaemonPlan { name: KERNEL, stamps: "kernel", servers: &[0] },
    DaemonPlan { name: USER, stamps: "user", servers: &[0] },
];

/// Runs the demonstration.
pub(super) fn run(global: &GlobalOptions, args: &CutArgs) -> Result<(), Failure> {
    let output = stage::prepare_directory(&args.output, &DAEMONS)?;
    let reference = match server(args)? {
        ServerProgram::Embedded => TruthSource::Embedded(args.world.truth()?),
        ServerProgram::Chronyd(_) | ServerProgram::Ntpd(_) => TruthSource::SystemClock,
    };
    let plan = StagePlan {
        directory: &output,
        reference,
        program: server(args)?,
        servers: &[ServerPlan { name: "server", options: Vec::new() }],
        daemons: &DAEMONS,
        estimator: args.estimator,
        poll: args.world.poll,
    };
    let mut stage = DemoStage::set(&plan)?;
    let schedule = LiveSchedule {
        warm_until: WARM_UP_S,
        cut_at: args.before,
        back_at: args.before + args.cut,
        end: args.before + args.cut + args.after,
    };
    let conditions = format!(
        "{}; {}; poll {}; this machine's {}",
        plan.program.description(),
        stage.network(),
        plan.poll,
        CounterId::CPU.name(),
    );
    eprintln!("{conditions}; {} s", schedule.end);
    let mut clocks =
        [ObservedClock::open(&output, KERNEL, &mut stage)?, ObservedClock::open(&output, USER, &mut stage)?];
    observe(&mut clocks, &mut stage, &reference, &schedule)?;
    let mut figures = figures(&clocks, &schedule, &plan.program);
    figures.push(resident_memory(&stage));
    let began = stage.began_counter();
    stage.finish();
    write_data(&output, &clocks, &RunTimes::new(&reference, &clocks[0].track, began)?)?;
    let summary = DemoSummary {
        title: "ffclock against the known truth".to_owned(),
        conditions,
        clock: "kernel-stamps",
        warm_up_s: WARM_UP_S,
        figures,
        events: vec![DemoEvent { t_s: schedule.cut_at, duration_s: Some(args.cut), text: "server cut off".to_owned() }],
        bound_held: bound_held(clocks.iter().map(|clock| &clock.run)),
    };
    summary.write(&output)?;
    present(global, &summary)?;
    draw_reports(args.world.python.as_deref(), &[&output])?;
    if summary.bound_held { Ok(()) } else { Err("the true time left the published bound".into()) }
}

fn server(args: &CutArgs) -> Result<ServerProgram, Failure> {
    // Links are not resolved: a wrapper may depend on the name by which it is called.
    let program = |path: &Path| std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()));
    Ok(match (&args.chronyd, &args.ntpd) {
        (Some(path), _) => ServerProgram::Chronyd(program(path)?),
        (None, Some(path)) => ServerProgram::Ntpd(program(path)?),
        (None, None) => ServerProgram::Embedded,
    })
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
    eprintln!("{t_s:>4.0} of {:.0} s  {}{link}", schedule.end, clock.state());
}

fn resident_memory(stage: &DemoStage) -> Figure {
    let resident = stage.daemon_memory().map(|bytes| bytes as f64 / (1024.0 * 1024.0));
    Figure::new("ffclockd resident memory".to_owned(), resident, "MiB").at_most(8.0)
}

fn figures(clocks: &[ObservedClock; 2], schedule: &LiveSchedule, program: &ServerProgram) -> Vec<Figure> {
    let mut figures = clocks[0].run.figures(schedule);
    if *program == ServerProgram::Embedded {
        set_goals(&mut figures);
    }
    figures.extend(clocks[1].run.figures(schedule));
    figures
}

fn write_data(output: &Path, clocks: &[ObservedClock; 2], times: &RunTimes<'_>) -> Result<(), Failure> {
    let [kernel, user] = clocks;
    fs::write(output.join("samples.csv"), table::samples_csv(&kernel.run))?;
    fs::write(output.join("samples-user-stamps.csv"), table::samples_csv(&user.run))?;
    let servers = recorded(&stage::record_path(output, KERNEL))?;
    let exchanges = servers.first().ok_or("the daemon recorded no exchange")?;
    Ok(fs::write(output.join("exchanges.csv"), exchanges.csv(times))?)
}

fn present(global: &GlobalOptions, summary: &DemoSummary) -> Result<(), Failure> {
    global.answer(summary, || {
        let verdict = if summary.bound_held { "never left" } else { "LEFT" };
        format!(
            "\n{}\n{}  the truth {verdict} the published bound\n",
            summary.conditions,
            table::table(&summary.figures)
        )
    })
}

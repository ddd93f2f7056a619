//! Three servers, one of which begins to lie in the middle of the run. Twice at the same time: a lie that the others'
//! intervals miss, and one that stays within them.
//!
//! Two servers are honest and serve both daemons. Each daemon has a third server of its own, which claims the smallest
//! error of all and lies: who follows the smallest claim follows the lie.

use super::exchanges::{RecordedServer, RunTimes, recorded};
use super::sampler::{ObservedClock, SAMPLING};
use super::stage::{self, DaemonPlan, DemoStage, ServerPlan, ServerProgram, StagePlan, TruthSource};
use super::{DemoEvent, DemoSummary, WorldArgs, draw_reports, table};
use crate::GlobalOptions;
use crate::failure::Failure;
use crate::lab::truth::Truth;
use ffclock_control::protocol::{BeliefReport, SourceReport};
use ffclock_counter::CounterId;
use ffclock_estimator::Algorithm;
use ffclock_replay::{LieReach, LieRun, LieSchedule, ServerAnswer, ServerLook, ServerStanding, bound_held};
use ffclock_units::{Bound, Span};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;

/// Options of `ffclock-lab demo liar`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock-lab demo liar --output out/demo-liar --step '-5 ms'

Two daemons run at the same time, each with two honest servers and a liar of its own: `step`, whose lie the others'
intervals miss, and `inside`, whose lie stays within them. Figures and data are in the directories of these names. The
exit code is 1 if the clock followed a lie, a bound was broken, a liar was not named or an honest server was. While a
lie within the others' intervals is not named, the usual bound rests on a false premise, and only the strict one is judged.")]
pub(super) struct LiarArgs {
    /// Where the results go; the directory is made if it is missing.
    #[arg(long, value_name = "DIR", default_value = "out/demo-liar")]
    output: PathBuf,
    /// The lie that the others' intervals miss.
    #[arg(long, value_name = "SPAN", default_value = "20 ms", allow_hyphen_values = true)]
    step: Span,
    /// The lie that stays within the others' intervals.
    #[arg(long, value_name = "SPAN", default_value = "120 us", allow_hyphen_values = true)]
    inside: Span,
    /// The largest error that an honest server claims of itself.
    #[arg(long, value_name = "SPAN", default_value = "200 us")]
    claim: Bound,
    /// The largest error that a liar claims of itself.
    #[arg(long, value_name = "SPAN", default_value = "60 us")]
    false_claim: Bound,
    #[command(flatten)]
    world: WorldArgs,
    /// Seconds before the lie.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    before: f64,
    /// Seconds from then on.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    after: f64,
}

/// The clock is settled after this time; the figures before the lie count from there.
const WARM_UP_S: f64 = 10.0;
/// A shorter run is settled after this part of the time before the lie.
const WARM_UP_SHARE: f64 = 0.5;
/// Time between two questions to a daemon [s].
const ASKING_S: f64 = 0.1;
/// Numbers of the servers that are honest.
const HONEST: [usize; 2] = [0, 1];
/// The names of a daemon's servers in its files, in the order in which it asks them; the last one lies.
const NAMES: [&str; 3] = ["honest 1", "honest 2", "liar"];
const LIAR: usize = 2;
const DAEMONS: [DaemonPlan; 2] = [
    DaemonPlan { name: "step", stamps: "kernel", servers: &[HONEST[0], HONEST[1], 2] },
    DaemonPlan { name: "inside", stamps: "kernel", servers: &[HONEST[0], HONEST[1], 3] },
];

/// One lie, the daemon that hears it, and what is seen of both.
struct LieCase {
    daemon: &'static DaemonPlan,
    lie: Span,
    reach: LieReach,
    clock: ObservedClock,
    looks: Vec<ServerLook>,
    /// What `ffclock sources --why` said when the liar had been named.
    said: Option<String>,
}

/// What was recorded of a case, and its summary.
struct LieResult {
    directory: PathBuf,
    summary: DemoSummary,
    is_good: bool,
    said: Option<String>,
}

/// Runs the demonstration.
pub(super) fn run(global: &GlobalOptions, args: &LiarArgs) -> Result<(), Failure> {
    let output = stage::prepare_directory(&args.output, &DAEMONS)?;
    let truth = args.world.truth()?;
    let servers = servers(args);
    let plan = StagePlan {
        directory: &output,
        reference: TruthSource::Embedded(truth),
        program: ServerProgram::Embedded,
        servers: &servers,
        daemons: &DAEMONS,
        estimator: Algorithm::Learned,
        poll: args.world.poll,
    };
    let mut stage = DemoStage::set(&plan)?;
    let schedule = schedule(args, &truth, &stage);
    let conditions = conditions(args, &stage);
    eprintln!("{conditions}; {:.0} s", schedule.end);
    let mut cases = open_cases(args, &output, &mut stage)?;
    observe(&mut cases, &mut stage, &plan.reference, &schedule)?;
    let began = stage.began_counter();
    let addresses: Vec<String> = (0..servers.len()).map(|server| stage.address(server).to_owned()).collect();
    stage.finish();
    let scene = LieScene { output: &output, addresses: &addresses, schedule, conditions };
    let results = cases.into_iter().map(|case| {
        let times = RunTimes::new(&plan.reference, &case.clock.track, began)?;
        let answers = scene.answers(&case, &times)?;
        scene.judge(&case, &answers)
    });
    let results = results.collect::<Result<Vec<LieResult>, Failure>>()?;
    present(global, &results)?;
    let directories: Vec<&Path> = results.iter().map(|result| result.directory.as_path()).collect();
    draw_reports(args.world.python.as_deref(), &directories)?;
    let failed: Vec<&str> = results.iter().filter(|result| !result.is_good).map(|result| result.name()).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("the clock failed in: {}", failed.join(", ")).into()) }
}

/// The honest servers, and a liar for each daemon.
fn servers(args: &LiarArgs) -> [ServerPlan; 4] {
    let honest = |name| ServerPlan { name, options: vec!["--claim".to_owned(), args.claim.as_span().to_string()] };
    let liar = |name, lie: Span| {
        let step = format!("--step={lie}@{}", args.before);
        let claim = args.false_claim.as_span().to_string();
        ServerPlan { name, options: vec!["--claim".to_owned(), claim, step] }
    };
    [honest("honest-1"), honest("honest-2"), liar("liar-step", args.step), liar("liar-inside", args.inside)]
}

/// The liars count from the origin of the truth, and the run from the start of the daemons.
fn schedule(args: &LiarArgs, truth: &Truth, stage: &DemoStage) -> LieSchedule {
    let start_s = (truth.at(stage.began_counter()) - truth.time).as_seconds();
    let lie_at = args.before - start_s;
    LieSchedule { warm_until: WARM_UP_S.min(WARM_UP_SHARE * lie_at), lie_at, end: lie_at + args.after }
}

fn conditions(args: &LiarArgs, stage: &DemoStage) -> String {
    format!(
        "two honest embedded servers that claim {}, one that claims {} and lies; {}; poll {}; kernel stamps; this machine's {}",
        args.claim.as_span(),
        args.false_claim.as_span(),
        stage.network(),
        args.world.poll,
        CounterId::CPU.name(),
    )
}

fn open_cases(args: &LiarArgs, output: &Path, stage: &mut DemoStage) -> Result<Vec<LieCase>, Failure> {
    let lies = [(args.step, LieReach::Outside), (args.inside, LieReach::Inside)];
    let open = |(daemon, (lie, reach)): (&'static DaemonPlan, (Span, LieReach))| {
        let clock = ObservedClock::open(output, daemon.name, stage)?;
        Ok(LieCase { daemon, lie, reach, clock, looks: Vec::new(), said: None })
    };
    DAEMONS.iter().zip(lies).map(open).collect()
}

fn observe(
    cases: &mut [LieCase],
    stage: &mut DemoStage,
    reference: &TruthSource,
    schedule: &LieSchedule,
) -> Result<(), Failure> {
    let (mut next_line, mut next_question) = (1.0, 0.0);
    loop {
        let t_s = stage.elapsed_s();
        if t_s >= schedule.end {
            return Ok(());
        }
        for case in cases.iter_mut() {
            case.clock.sample(t_s, reference);
        }
        if t_s >= next_question {
            cases.iter_mut().try_for_each(|case| case.ask(stage, schedule))?;
            next_question = t_s + ASKING_S;
        }
        if t_s >= next_line {
            stage.check()?;
            cases.iter().for_each(|case| case.progress(t_s, schedule));
            next_line += 1.0;
        }
        sleep(SAMPLING);
    }
}

impl LieCase {
    /// Asks the daemon about its servers. Before the first estimate there is nothing to compare its answer with.
    fn ask(&mut self, stage: &DemoStage, schedule: &LieSchedule) -> Result<(), Failure> {
        let Some(error_s) = self.clock.latest().map(|sample| sample.error_s) else { return Ok(()) };
        let control = stage.control(self.daemon.name);
        let report = ffclock_cli::status_at(&control)?;
        let t_s = stage.elapsed_s();
        // Servers are in the order of the configuration.
        for (server, source) in report.sources.iter().enumerate() {
            let proven = source.vote.proven_s.map(|(from, to)| (from + error_s, to + error_s));
            let standing = standing(source);
            self.looks.push(ServerLook { t_s, server, standing, weight: source.vote.weight, proven_s: proven });
        }
        let liar = report.sources.get(LIAR).map(standing);
        if self.said.is_none() && t_s >= schedule.lie_at && liar.is_some_and(ServerStanding::is_named) {
            self.said = Some(sources(&control)?);
        }
        Ok(())
    }

    fn progress(&self, t_s: f64, schedule: &LieSchedule) {
        let lie = if t_s >= schedule.lie_at { "  lied to" } else { "" };
        let of_liar = self.looks.iter().rev().find(|look| look.server == LIAR);
        let liar = of_liar.map_or("unknown", |look| look.standing.name());
        eprintln!(
            "{t_s:>4.0} of {:.0} s  {:<6}  {}  liar {liar}{lie}",
            schedule.end,
            self.daemon.name,
            self.clock.state()
        );
    }
}

fn standing(source: &SourceReport) -> ServerStanding {
    match source.belief {
        BeliefReport::Falseticker => ServerStanding::Falseticker,
        BeliefReport::Undecided => ServerStanding::Undecided,
        BeliefReport::NoSelect | BeliefReport::Unknown => ServerStanding::Unknown,
        BeliefReport::Truechimer if source.vote.suspect => ServerStanding::Suspect,
        BeliefReport::Truechimer => ServerStanding::Believed,
    }
}

/// What a user sees.
fn sources(control: &Path) -> Result<String, Failure> {
    let mut command = Command::new(stage::sibling("ffclock")?);
    let output = command.arg("--control").arg(control).args(["sources", "--why"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What all cases of a run share.
struct LieScene<'a> {
    output: &'a Path,
    addresses: &'a [String],
    schedule: LieSchedule,
    conditions: String,
}

impl LieScene<'_> {
    /// The answers of a case's servers in the order of time. The exchanges of the first one are written beside.
    fn answers(&self, case: &LieCase, times: &RunTimes<'_>) -> Result<Vec<ServerAnswer>, Failure> {
        let recorded = recorded(&stage::record_path(self.output, case.daemon.name))?;
        let of = |place: usize| -> Result<&RecordedServer, Failure> {
            let address = self.address(case, place);
            let found = recorded.iter().find(|server| server.name.starts_with(address));
            found.ok_or_else(|| format!("nothing was recorded of the server {address}").into())
        };
        let directory = self.directory(case)?;
        fs::write(directory.join("exchanges.csv"), of(0)?.csv(times))?;
        let mut answers = Vec::new();
        for place in 0..NAMES.len() {
            answers.extend(of(place)?.answers(place, times));
        }
        answers.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
        Ok(answers)
    }

    fn address(&self, case: &LieCase, place: usize) -> &str {
        let server = case.daemon.servers.get(place);
        server.and_then(|server| self.addresses.get(*server)).map_or("", String::as_str)
    }

    fn directory(&self, case: &LieCase) -> Result<PathBuf, Failure> {
        let directory = self.output.join(case.daemon.name);
        fs::create_dir_all(&directory)?;
        Ok(directory)
    }

    fn judge(&self, case: &LieCase, answers: &[ServerAnswer]) -> Result<LieResult, Failure> {
        let directory = self.directory(case)?;
        let schedule = self.schedule;
        let run =
            LieRun { clock: &case.clock.run, looks: &case.looks, answers, liar: LIAR, reach: case.reach, schedule };
        fs::write(directory.join("samples.csv"), table::samples_csv(&case.clock.run))?;
        fs::write(directory.join("samples-smallest-claim.csv"), table::claims_csv(&run.smallest_claim()))?;
        fs::write(directory.join("servers.csv"), table::answers_csv(answers, &NAMES))?;
        fs::write(directory.join("votes.csv"), table::votes_csv(&case.looks, &NAMES))?;
        if let Some(said) = &case.said {
            fs::write(directory.join("sources.txt"), said)?;
        }
        let figures = run.figures();
        let is_good = LieRun::is_good(&figures);
        let where_to = match case.reach {
            LieReach::Outside => "outside",
            LieReach::Inside => "within",
        };
        let summary = DemoSummary {
            title: format!("Three servers, one of which lies by {} {where_to} the others' intervals", case.lie),
            conditions: self.conditions.clone(),
            clock: "published",
            warm_up_s: schedule.warm_until,
            figures,
            events: events(case, &run),
            bound_held: bound_held([&case.clock.run]),
        };
        summary.write(&directory)?;
        Ok(LieResult { directory, summary, is_good, said: case.said.clone() })
    }
}

fn events(case: &LieCase, run: &LieRun<'_>) -> Vec<DemoEvent> {
    let lies =
        DemoEvent { t_s: run.schedule.lie_at, duration_s: None, text: format!("one server lies by {}", case.lie) };
    let named = |t_s| DemoEvent { t_s, duration_s: None, text: "the liar is named".to_owned() };
    std::iter::once(lies).chain(run.named_at().map(named)).collect()
}

impl LieResult {
    fn name(&self) -> &str {
        self.directory.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    fn text(&self) -> String {
        let DemoSummary { title, conditions, figures, .. } = &self.summary;
        let said = self.said.as_ref().map_or_else(
            || "  the liar was never named\n".to_owned(),
            |said| format!("\n  ffclock sources --why, when the liar was named:\n{}", indented(said)),
        );
        format!("\n{title}\n{conditions}\n{}{said}", table::table(figures))
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") }).collect()
}

fn present(global: &GlobalOptions, results: &[LieResult]) -> Result<(), Failure> {
    let summaries: Vec<&DemoSummary> = results.iter().map(|result| &result.summary).collect();
    global.answer(&summaries, || results.iter().map(LieResult::text).collect())
}

//! The comparison: figures of each contestant, and ratios to the best of the others.

use super::plan::{JUDGED, LivePlan, Load, Phase};
use super::record::{LookedAt, RunRecord, notes};
use super::router::RouterKind;
use super::witness::{self, MonitorError};
use crate::failure::Failure;
use ffclock_cli::text::{Align, table_within};
use ffclock_statistics::{Sorted, upper_median};
use ffclock_units::Span;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// Errors of one contestant in one run, after it settled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct RunFigures {
    readings: u64,
    median_s: f64,
    iqr_s: f64,
    p1_s: f64,
    p5_s: f64,
    p25_s: f64,
    p75_s: f64,
    p95_s: f64,
    p99_s: f64,
    largest_s: f64,
    /// The smallest size of its errors, before it settled too: a clock that never started is never near.
    #[serde(skip)]
    nearest_s: f64,
    /// From when on its error stayed within 100 us; none where it was outside at the end.
    within_100_us_s: Option<f64>,
    within_20_us_s: Option<f64>,
    /// Readings whose own bound did not contain the truth, those before it settled too; none where it has no bound.
    outside: Option<u64>,
}

/// One contestant: medians over all runs, but sums of the readings and of those outside, and the extremes of the
/// largest and the nearest error.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: String,
    runs: usize,
    #[serde(flatten)]
    figures: RunFigures,
    iqr_min_s: f64,
    iqr_max_s: f64,
    /// Its spread over the smallest of those that steer the system clock: a median over the runs in which it started.
    iqr_over_best: Option<f64>,
}

/// What `live report` answers.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RivalsSummary {
    plan: String,
    poll_s: f64,
    load: Vec<Load>,
    router: RouterKind,
    truth: &'static str,
    seeds: Vec<u64>,
    watched_s: f64,
    settle_s: f64,
    /// Whether every run has watched for all of its time, without a contestant that was left out or ended.
    is_complete: bool,
    /// What of the events is a fault: a session that failed, a contestant that was left out or ended.
    faults: Vec<String>,
    events: Vec<String>,
    /// How wrong the monitor was by its witnesses, where it had some.
    monitor: Option<MonitorError>,
    contestants: Vec<Row>,
    /// The parts of the run that the plan judges by themselves.
    phases: Vec<PhaseSummary>,
}

/// The figures of one phase.
#[derive(Clone, Debug, Serialize)]
struct PhaseSummary {
    name: &'static str,
    /// The spread that is asked of the judged contestant, over the best of the others.
    goal: f64,
    contestants: Vec<Row>,
}

const TRUTH: &str = "the host's system clock; the oscillators are realisations of the simulator's over it";
/// How the names of those begin that publish a clock, or follow one that is published (chronyd by `ffclock feed`, too);
/// the others steer the system clock by themselves.
const OURS: [&str; 2] = ["ffclock", "chronyd-sock"];

/// Sums up the runs of these directories, which must be repetitions of one another, with what `settle` leaves of them
/// in place of what they were begun with.
pub(super) fn summary(directories: &[PathBuf], settle: Option<Span>) -> Result<RivalsSummary, Failure> {
    let mut runs = Vec::new();
    for directory in directories {
        let begun = RunRecord::read(directory)?;
        let record = RunRecord { settle_s: settle.map_or(begun.settle_s, Span::as_seconds), ..begun };
        if record.settle_s >= record.duration_s {
            return Err(Failure::usage(format!("--settle leaves nothing of {}", directory.display())));
        }
        let samples = record.samples(directory)?;
        runs.push((record, samples));
    }
    let (first, _) = runs.first().ok_or("there is no run")?;
    let plan = LivePlan::named(&first.plan)?.polled(first.poll_log2);
    if let Some((other, _)) = runs.iter().find(|(run, _)| kind(run) != kind(first)) {
        return Err(
            format!("runs of {} and {}: only repetitions of one plan can be compared", first.plan, other.plan).into()
        );
    }
    let watched = |samples: &[LookedAt]| samples.last().map_or(0.0, |last| last.t_s);
    let events: Vec<String> = directories.iter().flat_map(|directory| notes(directory)).collect();
    let is_whole = |(run, samples): &(RunRecord, Vec<LookedAt>)| run.is_watched_by(samples);
    let is_fault =
        |event: &&String| [" failed: ", " is left out: ", " ended: "].iter().any(|word| event.contains(word));
    let faults: Vec<String> = events.iter().filter(is_fault).cloned().collect();
    Ok(RivalsSummary {
        plan: first.plan.clone(),
        poll_s: plan.poll_s(),
        load: first.load.clone(),
        router: first.router,
        truth: TRUTH,
        seeds: runs.iter().map(|(run, _)| run.seed).collect(),
        watched_s: runs.iter().map(|(_, samples)| watched(samples)).sum(),
        settle_s: first.settle_s,
        is_complete: runs.iter().all(is_whole) && faults.is_empty(),
        faults,
        monitor: monitor_error(directories, &runs),
        contestants: rows(&runs),
        phases: plan.phases.iter().map(|phase| PhaseSummary::of(&runs, phase)).collect(),
        events,
    })
}

/// What the witnesses of all runs say.
fn monitor_error(directories: &[PathBuf], runs: &Runs) -> Option<MonitorError> {
    let of = |(directory, (run, _)): (&PathBuf, &(RunRecord, Vec<LookedAt>))| {
        run.contestants.iter().map(|name| directory.join(name)).collect::<Vec<_>>()
    };
    let places: Vec<PathBuf> = directories.iter().zip(runs).flat_map(of).collect();
    witness::compare(places.iter().map(PathBuf::as_path))
}

impl PhaseSummary {
    fn of(runs: &Runs, phase: &Phase) -> Self {
        let runs: Vec<_> = runs.iter().map(|run| within_phase(run, phase)).collect();
        PhaseSummary { name: phase.name, goal: phase.goal, contestants: rows(&runs) }
    }

    /// The spread of the judged contestant over the best of the others.
    fn ratio(&self) -> Option<f64> {
        self.contestants.iter().find(|row| row.name == JUDGED)?.iqr_over_best
    }
}

/// The settled looks of a run that fall into a phase.
fn within_phase((record, samples): &(RunRecord, Vec<LookedAt>), phase: &Phase) -> (RunRecord, Vec<LookedAt>) {
    let [begin, end] = phase.shares.map(|share| share * record.duration_s);
    let begins = begins(samples);
    let inside = samples.iter().filter(|look| (begin..end).contains(&look.t_s) && has_settled(record, &begins, look));
    (RunRecord { settle_s: 0.0, ..record.clone() }, inside.copied().collect())
}

/// What repetitions have in common.
fn kind(run: &RunRecord) -> RunRecord {
    RunRecord { seed: 0, duration_s: 0.0, witnesses: None, contestants: Vec::new(), ..run.clone() }
}

type Runs = [(RunRecord, Vec<LookedAt>)];

fn rows(runs: &Runs) -> Vec<Row> {
    let of_runs: Vec<Vec<(&str, RunFigures)>> = runs.iter().map(figures_of_run).collect();
    let mut names: Vec<&str> = Vec::new();
    of_runs.iter().flatten().for_each(|(name, _)| {
        if !names.contains(name) {
            names.push(name)
        }
    });
    let row = |name: &str| {
        let all: Vec<(RunFigures, Option<f64>)> =
            of_runs.iter().filter_map(|run| Some((*of(run, name)?, best_of_others(run)))).collect();
        let median = |figure: fn(&RunFigures) -> f64| {
            upper_median(all.iter().map(|(figures, _)| figure(figures))).unwrap_or(f64::NAN)
        };
        let within = |figure: fn(&RunFigures) -> Option<f64>| {
            let all: Option<Vec<f64>> = all.iter().map(|(figures, _)| figure(figures)).collect();
            all.and_then(upper_median)
        };
        let iqrs = Sorted::of(all.iter().map(|(figures, _)| figures.iqr_s));
        let started = all.iter().filter(|(figures, _)| figures.has_started());
        let ratios = started.filter_map(|(figures, best)| Some(figures.iqr_s / (*best)?));
        Row {
            name: name.to_owned(),
            runs: all.len(),
            figures: RunFigures {
                readings: all.iter().map(|(figures, _)| figures.readings).sum(),
                median_s: median(|figures| figures.median_s),
                iqr_s: median(|figures| figures.iqr_s),
                p1_s: median(|figures| figures.p1_s),
                p5_s: median(|figures| figures.p5_s),
                p25_s: median(|figures| figures.p25_s),
                p75_s: median(|figures| figures.p75_s),
                p95_s: median(|figures| figures.p95_s),
                p99_s: median(|figures| figures.p99_s),
                largest_s: all.iter().map(|(figures, _)| figures.largest_s).fold(0.0, f64::max),
                nearest_s: all.iter().map(|(figures, _)| figures.nearest_s).fold(f64::INFINITY, f64::min),
                within_100_us_s: within(|figures| figures.within_100_us_s),
                within_20_us_s: within(|figures| figures.within_20_us_s),
                outside: all.iter().map(|(figures, _)| figures.outside).sum(),
            },
            iqr_min_s: iqrs.quantile(0.0).unwrap_or(f64::NAN),
            iqr_max_s: iqrs.quantile(1.0).unwrap_or(f64::NAN),
            iqr_over_best: upper_median(ratios),
        }
    };
    names.into_iter().map(row).collect()
}

fn of<'a>(run: &'a [(&str, RunFigures)], name: &str) -> Option<&'a RunFigures> {
    run.iter().find(|(one, _)| *one == name).map(|(_, figures)| figures)
}

impl RunFigures {
    /// Whether the clock was ever within 100 us. One that nothing corrects hardly moves: a small spread.
    fn has_started(&self) -> bool {
        self.nearest_s <= 100e-6
    }
}

/// The smallest spread of the others that started.
fn best_of_others(run: &[(&str, RunFigures)]) -> Option<f64> {
    let is_other = |name: &str| !OURS.iter().any(|ours| name.starts_with(ours));
    let others = run.iter().filter(|(name, figures)| is_other(name) && figures.has_started());
    others.map(|(_, figures)| figures.iqr_s).min_by(f64::total_cmp)
}

fn figures_of_run((record, samples): &(RunRecord, Vec<LookedAt>)) -> Vec<(&str, RunFigures)> {
    let begins = begins(samples);
    let names = record.contestants.iter().enumerate();
    let figures = names.filter_map(|(number, name)| {
        let own: Vec<LookedAt> = samples.iter().filter(|look| look.contestant == number).copied().collect();
        Some((name.as_str(), figures_of(&own, |look| has_settled(record, &begins, look))?))
    });
    figures.collect()
}

/// Whether a look comes late enough in its session, of which these are the begins.
fn has_settled(record: &RunRecord, begins: &[f64], look: &LookedAt) -> bool {
    look.t_s - begins.get(look.session as usize).copied().unwrap_or_default() >= record.settle_s
}

/// The figures of one contestant from all looks at it.
fn figures_of(own: &[LookedAt], has_settled: impl Fn(&LookedAt) -> bool) -> Option<RunFigures> {
    let settled: Vec<f64> =
        own.iter().filter(|look| has_settled(look)).map(|look| look.error_ns as f64 * 1e-9).collect();
    let errors = Sorted::of(settled.iter().copied());
    let at = |share| errors.quantile(share);
    let first_session: Vec<LookedAt> = own.iter().take_while(|look| look.session == 0).copied().collect();
    Some(RunFigures {
        readings: settled.len() as u64,
        median_s: at(0.5)?,
        iqr_s: at(0.75)? - at(0.25)?,
        p1_s: at(0.01)?,
        p5_s: at(0.05)?,
        p25_s: at(0.25)?,
        p75_s: at(0.75)?,
        p95_s: at(0.95)?,
        p99_s: at(0.99)?,
        largest_s: at(0.0)?.abs().max(at(1.0)?.abs()),
        nearest_s: own.iter().map(|look| look.error_ns.abs()).min()? as f64 * 1e-9,
        within_100_us_s: within_from(&first_session, 100_000),
        within_20_us_s: within_from(&first_session, 20_000),
        outside: outside(own),
    })
}

/// When each session began to be watched [s].
fn begins(samples: &[LookedAt]) -> Vec<f64> {
    let mut begins: Vec<f64> = Vec::new();
    for look in samples {
        if look.session as usize >= begins.len() {
            // A session that ended before its first look has the begin of the next.
            begins.resize(look.session as usize + 1, look.t_s);
        }
    }
    begins
}

/// From when on the error is at most `limit_ns`, until the end.
fn within_from(looks: &[LookedAt], limit_ns: i64) -> Option<f64> {
    match looks.iter().rposition(|look| look.error_ns.abs() > limit_ns) {
        None => looks.first().map(|look| look.t_s),
        Some(last) => looks.get(last + 1).map(|look| look.t_s),
    }
}

fn outside(looks: &[LookedAt]) -> Option<u64> {
    let bounded = || looks.iter().filter_map(|look| Some((look.error_ns, look.bound_ns?)));
    bounded().next()?;
    Some(bounded().filter(|(error, bound)| error.abs() > *bound).count() as u64)
}

/// The comparison as a table.
pub(super) fn text(summary: &RivalsSummary) -> String {
    let mut text = format!(
        "{}: a request every {} s, {} run(s), {:.0} s watched, errors [us] from {:.0} s after each start\ntruth: {}\n\n",
        summary.plan,
        summary.poll_s,
        summary.seeds.len(),
        summary.watched_s,
        summary.settle_s,
        summary.truth
    );
    let columns = ["IQR", "of best", "median", "1%", "5%", "95%", "99%", "largest", "to 100 us", "to 20 us", "outside"];
    let mut heading = vec![("contestant", Align::Left)];
    heading.extend(columns.map(|name| (name, Align::Right)));
    let rows: Vec<Vec<String>> = summary.contestants.iter().map(cells).collect();
    text += &table_within(&heading, &rows);
    summary.phases.iter().for_each(|phase| text += &phase_text(phase));
    summary.monitor.iter().for_each(|monitor| _ = write!(text, "\n{}", monitor.text()));
    text += if summary.is_complete { "\ncomplete\n" } else { "\nNOT COMPLETE; what happened:\n" };
    if !summary.is_complete {
        summary.events.iter().for_each(|event| _ = writeln!(text, "  {event}"));
    }
    text
}

/// A phase as a table with a verdict.
fn phase_text(phase: &PhaseSummary) -> String {
    let columns = ["IQR", "of best", "median", "1%", "99%", "largest", "outside"];
    let mut heading = vec![("contestant", Align::Left)];
    heading.extend(columns.map(|name| (name, Align::Right)));
    // Of the cells of the whole run, those of these columns.
    let chosen = |row: &Row| [0, 1, 2, 3, 4, 7, 8, 11].map(|place| cells(row).swap_remove(place)).to_vec();
    let rows: Vec<Vec<String>> = phase.contestants.iter().map(chosen).collect();
    let verdict = phase.ratio().map_or_else(
        || "not measured".to_owned(),
        |ratio| format!("{ratio:.3}, {}", if ratio <= phase.goal { "reached" } else { "NOT REACHED" }),
    );
    let goal = format!("goal: the IQR of {JUDGED} is at most {} of the best of the others: {verdict}", phase.goal);
    format!("\n{}\n{}{goal}\n", phase.name, table_within(&heading, &rows))
}

fn cells(row: &Row) -> Vec<String> {
    let us = |seconds: f64| format!("{:.2}", seconds * 1e6);
    let after = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.0} s"));
    let figures = &row.figures;
    let ratio = row.iqr_over_best.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
    let mut cells = vec![row.name.clone(), us(figures.iqr_s), ratio];
    let errors = [figures.median_s, figures.p1_s, figures.p5_s, figures.p95_s, figures.p99_s, figures.largest_s];
    cells.extend(errors.map(us));
    cells.extend([figures.within_100_us_s, figures.within_20_us_s].map(after));
    cells.push(figures.outside.map_or_else(|| "-".to_owned(), |outside| outside.to_string()));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(names: &[&str]) -> RunRecord {
        RunRecord {
            format: 1,
            plan: "quiet-16".to_owned(),
            duration_s: 100.0,
            settle_s: 10.0,
            seed: 1,
            poll_log2: None,
            load: Vec::new(),
            witnesses: None,
            router: RouterKind::Own,
            netem: None,
            contestants: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn look(contestant: usize, t_s: f64, error_ns: i64) -> LookedAt {
        let bound_ns = (contestant == 0).then_some(5_000);
        LookedAt { session: 0, t_s, contestant, error_ns, bound_ns }
    }

    /// Errors of 0 .. 4 us times `scale`, and a wild one before it settled.
    fn run() -> (RunRecord, Vec<LookedAt>) {
        let mut samples = Vec::new();
        for second in 0..100_i64 {
            let wild = if second < 5 { 200_000 } else { 0 };
            samples.push(look(0, second as f64, wild + second % 5 * 1_000));
            samples.push(look(1, second as f64, second % 5 * 2_000));
        }
        (record(&["ffclockd-learned", "chronyd-default"]), samples)
    }

    #[test]
    fn figures_leave_the_start_out_and_compare_with_the_best_of_the_others() {
        let rows = rows(&[run(), run()]);
        let [ours, other] = &rows[..] else { panic!("two contestants") };
        assert_eq!((ours.name.as_str(), ours.runs, ours.figures.readings), ("ffclockd-learned", 2, 180));
        assert!((ours.figures.iqr_s - 2e-6).abs() < 1e-12 && (other.figures.iqr_s - 4e-6).abs() < 1e-12);
        assert_eq!((ours.iqr_over_best, other.iqr_over_best), (Some(0.5), Some(1.0)));
        assert!((ours.figures.largest_s - 4e-6).abs() < 1e-12);
        assert_eq!((ours.figures.within_100_us_s, other.figures.within_100_us_s), (Some(5.0), Some(0.0)));
        // Five wild readings in each of two runs were outside.
        assert_eq!((ours.figures.outside, other.figures.outside), (Some(10), None));
    }

    #[test]
    fn a_daemon_that_is_fed_by_ffclock_is_none_of_the_others() {
        let fed = record(&["ffclockd-learned", "chronyd-sock-tuned"]);
        assert!(rows(&[(fed, run().1)]).iter().all(|row| row.iqr_over_best.is_none()));
    }

    #[test]
    fn a_clock_that_never_started_is_not_the_best_of_the_others() {
        let (record, mut samples) = run();
        let still =
            RunRecord { contestants: [record.contestants, vec!["ptp4l-default".to_owned()]].concat(), ..record };
        samples.extend((0..100).map(|second| look(2, f64::from(second), 999_910 + i64::from(second % 2))));
        let rows = rows(&[(still, samples)]);
        let ratios: Vec<_> = rows.iter().map(|row| row.iqr_over_best).collect();
        assert!(rows[2].figures.iqr_s < 2e-9 && ratios == [Some(0.5), Some(1.0), None], "{ratios:?}");
    }

    #[test]
    fn a_clock_that_is_outside_at_the_end_never_came_within() {
        let looks = [look(0, 1.0, 0), look(0, 2.0, 30_000)];
        assert_eq!(within_from(&looks, 20_000), None);
        assert_eq!(within_from(&looks, 30_000), Some(1.0));
    }

    #[test]
    fn a_phase_counts_its_own_readings_and_says_whether_its_goal_is_reached() {
        let mut record = record(&[JUDGED, "ptp4l-default"]);
        record.settle_s = 55.0;
        let error =
            |contestant: i64, second: i64| second % 5 * 1_000 * (1 + contestant * if second < 75 { 9 } else { 3 });
        let all = (0..100).flat_map(|second| {
            [0, 1].map(|contestant| look(contestant as usize, second as f64, error(contestant, second)))
        });
        let runs = [(record, all.collect())];
        let phase = |shares, goal| PhaseSummary::of(&runs, &Phase { name: "quiet", shares, goal });
        let first = phase([0.5, 0.75], 0.2);
        assert_eq!(first.contestants[0].figures.readings, 20, "from 55 s to 75 s");
        assert!((first.ratio().unwrap() - 0.1).abs() < 1e-9);
        assert!(phase_text(&first).contains("at most 0.2 of the best of the others: 0.100, reached"));
        let second = phase_text(&phase([0.75, 1.0], 0.2));
        assert!(second.contains("0.250, NOT REACHED"), "{second}");
    }

    #[test]
    fn each_session_settles_again() {
        let (record, mut samples) = run();
        let resumed = samples.iter().map(|look| LookedAt { session: 1, t_s: look.t_s + 100.0, ..*look });
        samples.extend(resumed.collect::<Vec<_>>());
        let run = (record, samples);
        let figures = figures_of_run(&run);
        assert_eq!(figures[0].1.readings, 180);
        assert!((figures[0].1.largest_s - 4e-6).abs() < 1e-12);
    }
}

//! `ffclock-lab theta coverage`.

use super::input::{StampingChoice, not_negative, open, picoseconds, whole};
use crate::drawing::{self, Drawing};
use crate::progress::Progress;
use crate::{Failure, GlobalOptions, output};
use ffclock_theta::coverage::{
    BoundBasis, BoundCoverage, BoundModel, Coverage, CoverageError, CoverageOptions, CoverageVerdict, FailingShare,
    GivenBound, coverage,
};
use ffclock_units::Span;
use std::fmt::Write;
use std::path::PathBuf;

/// Options of `ffclock-lab theta coverage`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta coverage calm-run --under loaded-run
  $ ffclock-lab theta coverage calm-run --under loaded-run --share 0.999 --timeout '2 ms' --ratio 3
  $ ffclock-lab theta coverage calm-run --under loaded-run --picture coverage.png
  $ ffclock-lab theta coverage calm-run --under loaded-run --json | jq '.chosen[] | {model, loaded}'

A timeout on tau+ and a bound on the ratio tau+ / tau_r- are chosen so that the same share of the calm rounds keeps them. Shown is what breaks
them under load: which share of rounds, of time and of messages. Both runs must have the same n, f and D. docs/theta.md has the definitions.")]
pub(super) struct Args {
    /// The log of the calm run, for which the bounds are chosen
    #[arg(value_name = "CALM")]
    calm: PathBuf,
    /// The log of the run under load
    #[arg(long, value_name = "LOADED")]
    under: PathBuf,
    /// The share of the calm rounds that keep the bounds, at least 0.5 and below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.99999, value_parser = share)]
    share: f64,
    /// Hold this timeout against both runs too; may be given several times
    #[arg(long, value_name = "SPAN", value_parser = not_negative)]
    timeout: Vec<Span>,
    /// Hold this ratio against both runs too; may be given several times
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    ratio: Vec<f64>,
    /// Place a switch before or after the broadcast of its new round
    #[arg(long, value_name = "WHERE", default_value = "after")]
    stamp: StampingChoice,
    /// Leave out this much at the start and at the end of both runs
    #[arg(long, value_name = "SPAN", value_parser = not_negative)]
    trim: Option<Span>,
    /// Resamples of the bootstrap
    #[arg(long, value_name = "COUNT", default_value_t = 999, value_parser = clap::value_parser!(u32).range(39..=100_000))]
    resamples: u32,
    /// The seed of the resamples
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Draw the curves of both models into this PNG file
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// The interpreter that has the Python package, for --picture
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.5..1.0).contains(share));
    share.ok_or_else(|| "must be at least 0.5 and below 1, such as 0.99999".to_owned())
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio: &f64| *ratio >= 1.0 && ratio.is_finite());
    ratio.ok_or_else(|| "must be 1 or more".to_owned())
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let (calm, loaded) = (open(&args.calm)?, open(&args.under)?);
    let options = options(args);
    let mut progress = Progress::new();
    let mut watch = |number| progress.show(|| format!("{number} of {} resamples", options.resamples));
    let found = coverage(&calm, &loaded, &options, &mut watch).map_err(failure)?;
    drop(progress);
    if let Some(file) = &args.picture {
        let drawing = Drawing { module: "ffclock.theta_coverage", python: &args.python, output: file };
        drawing::draw(&drawing, "Bounds chosen in calm, under load", &output::to_json(&found)?)?;
    }
    global.answer(&found, || {
        let picture = args.picture.iter().map(|file| format!("picture: {}\n", file.display()));
        render(&found) + &picture.collect::<String>()
    })?;
    whole(&args.calm, &calm)?;
    whole(&args.under, &loaded)
}

fn failure(error: CoverageError) -> Failure {
    match error {
        CoverageError::Different { .. } => Failure::usage(error.to_string()),
        _ => Failure::from(error.to_string()),
    }
}

fn options(args: &Args) -> CoverageOptions {
    let timeout = |&span: &Span| GivenBound { model: BoundModel::Timeout, bound: picoseconds(span) as f64 };
    let ratios =
        |&bound: &f64| [BoundModel::Ratio, BoundModel::RatioWithDelay].map(|model| GivenBound { model, bound });
    CoverageOptions {
        share: args.share,
        given: args.timeout.iter().map(timeout).chain(args.ratio.iter().flat_map(ratios)).collect(),
        stamping: args.stamp.into(),
        trim_ps: args.trim.map_or(0, picoseconds),
        resamples: args.resamples,
        seed: args.seed,
    }
}

fn render(found: &Coverage) -> String {
    let Coverage { calm, loaded, .. } = found;
    let mut text = format!(
        "calm: {} rounds, {} messages; under load: {} rounds, {} messages; D = {}\n",
        calm.rounds,
        calm.messages,
        loaded.rounds,
        loaded.messages,
        span(found.delay_ps as f64)
    );
    let kept = percent(found.share);
    let _ = writeln!(text, "\nbounds that {kept} of the calm rounds keep, and what breaks them under load:");
    text.push_str(&table(&found.chosen));
    if !found.given.is_empty() {
        text.push_str("\nbounds that were given, and what breaks them under load:\n");
        text.push_str(&table(&found.given));
        text.push_str("and in calm:\n");
        for BoundCoverage { model, bound, calm, .. } in &found.given {
            let _ = writeln!(
                text,
                "  {:<12} {:<12} {:<27} {:<27} {}",
                name(*model),
                bound_text(*model, *bound),
                percent(calm.rounds),
                percent(calm.time),
                percent(calm.messages)
            );
        }
    }
    text.push('\n');
    text.push_str(&sentence(found));
    text
}

fn table(rows: &[BoundCoverage]) -> String {
    let mut text = format!("  {:<12} {:<12} {:<27} {:<27} {}\n", "", "bound", "of rounds", "of time", "of messages");
    for BoundCoverage { model, bound, basis, interval, loaded, .. } in rows {
        let _ = writeln!(
            text,
            "  {:<12} {:<12} {:<27} {:<27} {}",
            name(*model),
            bound_text(*model, *bound),
            failing(loaded.rounds),
            failing(loaded.time),
            failing(loaded.messages)
        );
        let (low, high) = (bound_text(*model, interval.0), bound_text(*model, interval.1));
        let why = match basis {
            BoundBasis::Given | BoundBasis::Measured => continue,
            BoundBasis::TailFit => "by the tail of the calm run, which is too short for this share",
            BoundBasis::Largest => "the largest of the calm run, which is too short for this share",
        };
        let _ = writeln!(text, "  {:<12} {why} (95 %: {low} to {high})", "");
    }
    text
}

/// The answer in words.
fn sentence(found: &Coverage) -> String {
    let shares: Vec<String> =
        found.chosen.iter().map(|one| format!("the {} in {}", name(one.model), failing(one.loaded.rounds))).collect();
    let mut text = format!("at {} in calm, of the loaded rounds fail: {}\n", percent(found.share), shares.join(", "));
    for beside in &found.verdicts {
        let verdict = match beside.verdict {
            CoverageVerdict::RatioHolds => "holds more often than the timeout",
            CoverageVerdict::TimeoutHolds => "holds less often than the timeout",
            CoverageVerdict::NoDifference => "holds neither more nor less often than the timeout, as far as is shown",
        };
        let _ = writeln!(text, "under this load the {} {verdict}", name(beside.model));
    }
    text
}

fn name(model: BoundModel) -> &'static str {
    match model {
        BoundModel::Timeout => "timeout",
        BoundModel::Ratio => "ratio",
        BoundModel::RatioWithDelay => "ratio with D",
    }
}

fn bound_text(model: BoundModel, bound: f64) -> String {
    if model == BoundModel::Timeout { span(bound) } else { format!("{bound:.3}") }
}

fn span(picoseconds: f64) -> String {
    Span::from_seconds(picoseconds * 1e-12).to_string()
}

fn failing(FailingShare { share, low, high }: FailingShare) -> String {
    format!("{} ({} to {})", percent(share), percent(low), percent(high))
}

/// With as many places as distinguish it from 0 and from 100 %.
fn percent(share: f64) -> String {
    let rare = share.min(1.0 - share);
    let places = if rare > 0.0 { (-(100.0 * rare).log10()).ceil().clamp(0.0, 8.0) as usize + 1 } else { 0 };
    let text = format!("{:.places$}", 100.0 * share);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theta::tests::theta;
    use ffclock_theta::log::LogReader;
    use std::path::Path;

    struct Logs(PathBuf);

    impl Drop for Logs {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    impl Logs {
        /// A calm and a loaded run.
        fn simulated(name: &str) -> Self {
            let place = std::env::temp_dir().join(format!("ffclock-cli-coverage-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&place).unwrap();
            let scenario = place.join("loaded.toml");
            std::fs::write(&scenario, "rounds = 200\n[load]\nhigh = 0.8\n").unwrap();
            let logs = Logs(place);
            theta(&["simulate", "--json", "--rounds", "200", "--log", &logs.log("calm")]).unwrap();
            let scenario = scenario.to_str().unwrap();
            theta(&["simulate", "--json", "--scenario", scenario, "--log", &logs.log("loaded")]).unwrap();
            logs
        }

        fn log(&self, name: &str) -> String {
            self.0.join(name).to_str().unwrap().to_owned()
        }

        fn compared(&self, words: &[&str]) -> Result<(), Failure> {
            let (calm, loaded) = (self.log("calm"), self.log("loaded"));
            theta(&[&["coverage", &calm, "--under", &loaded, "--resamples", "39"], words].concat())
        }
    }

    #[test]
    fn two_runs_are_compared() {
        let logs = Logs::simulated("compared");
        assert_eq!(logs.compared(&[]), Ok(()));
        assert_eq!(logs.compared(&["--json", "--share", "0.9", "--timeout", "1 ms", "--ratio", "2"]), Ok(()));
        assert_eq!(logs.compared(&["--stamp", "before"]), Ok(()));
        let failure = logs.compared(&["--trim", "1 s"]).unwrap_err();
        assert!(failure.message.contains("the calm run: the run lasts"), "{failure}");
        let failure = logs.compared(&["--picture", "x.png", "--python", "no-such-python"]).unwrap_err();
        assert!(failure.message.contains("no-such-python"), "{failure}");
    }

    #[test]
    fn the_answer_is_a_sentence() {
        let logs = Logs::simulated("sentence");
        let open = |name| LogReader::open(Path::new(&logs.log(name))).unwrap();
        let options = CoverageOptions { share: 0.9, resamples: 39, ..CoverageOptions::default() };
        let found = coverage(&open("calm"), &open("loaded"), &options, &mut |_| ()).unwrap();
        let text = render(&found);
        assert!(text.contains("at 90 % in calm, of the loaded rounds fail: the timeout in "), "{text}");
        assert!(text.contains("under this load the ratio holds "), "{text}");
        assert!(text.contains("of rounds") && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn shares_are_told_from_none_and_all() {
        let texts = [0.0, 1.0, 0.5, 0.123, 0.99999, 1e-5].map(percent);
        assert_eq!(texts, ["0 %", "100 %", "50 %", "12.3 %", "99.999 %", "0.001 %"]);
        assert!(share("1").is_err() && share("0.4").is_err() && share("x").is_err() && share("0.5") == Ok(0.5));
        assert!(ratio("0.9").is_err() && ratio("inf").is_err() && ratio("1") == Ok(1.0));
    }
}

//! A clock of several servers, one of which begins to lie: what that did to the clock, when the liar was named, and
//! what a clock would have shown that follows the smallest claim.
//!
//! A server is named when the daemon calls it a falseticker or a suspect.

use crate::{Figure, LiveRun, LiveSample};
use ffclock_statistics::Sorted;

/// What the daemon says of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerStanding {
    /// It belongs to every majority.
    Believed,
    /// It is believed, and has no weight: its time is further from the others' than paths and claims explain.
    Suspect,
    /// The majority contradicts it.
    Falseticker,
    /// No vote can say whether it is right.
    Undecided,
    /// Nothing is known of its time.
    Unknown,
}

impl ServerStanding {
    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            ServerStanding::Believed => "believed",
            ServerStanding::Suspect => "suspect",
            ServerStanding::Falseticker => "falseticker",
            ServerStanding::Undecided => "undecided",
            ServerStanding::Unknown => "unknown",
        }
    }

    /// Whether the daemon accuses the server.
    pub const fn is_named(self) -> bool {
        matches!(self, ServerStanding::Suspect | ServerStanding::Falseticker)
    }
}

/// What the daemon said of a server at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerLook {
    /// Since the start of the run [s].
    pub t_s: f64,
    /// The number of the server, from 0.
    pub server: usize,
    /// What the vote said.
    pub standing: ServerStanding,
    /// Its share in the published time, 0 to 1.
    pub weight: Option<f64>,
    /// The ends of the interval that its exchanges prove for the true time, minus the truth [s].
    pub proven_s: Option<(f64, f64)>,
}

/// One answer of a server, judged by the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerAnswer {
    /// Since the start of the run [s].
    pub t_s: f64,
    /// The number of the server, from 0.
    pub server: usize,
    /// The server's time in the middle of the exchange - the truth there [s].
    pub error_s: f64,
    /// The server's claim of its own largest error [s].
    pub claim_s: f64,
    /// The largest error of that middle if the claim is true: the claim and half of the round trip [s].
    pub reach_s: f64,
}

impl ServerAnswer {
    fn is_outside(&self) -> bool {
        self.error_s.abs() > self.reach_s
    }
}

/// The times of a run with a lie [s since its start].
#[derive(Clone, Copy, Debug)]
pub struct LieSchedule {
    /// The clock is settled from here on.
    pub warm_until: f64,
    /// The server begins to lie.
    pub lie_at: f64,
    /// The run ends.
    pub end: f64,
}

/// Whether the others can see at once that the lie is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LieReach {
    /// The false interval misses those of the others.
    Outside,
    /// The false interval stays within those of the others. Until the liar is named, the premise of the usual bound is
    /// broken; the strict bound has to hold.
    Inside,
}

/// A run with a lie.
#[derive(Clone, Copy, Debug)]
pub struct LieRun<'a> {
    /// The published clock.
    pub clock: &'a LiveRun,
    /// What the daemon said of its servers, in the order of time.
    pub looks: &'a [ServerLook],
    /// What the servers answered, in the order of time.
    pub answers: &'a [ServerAnswer],
    /// The number of the server that lies.
    pub liar: usize,
    /// How far it lies.
    pub reach: LieReach,
    /// When what happened.
    pub schedule: LieSchedule,
}

/// How much larger than before the error may be once a server lies: this many times, and [`EXTRA_S`].
const GROWTH: f64 = 1.5;
const EXTRA_S: f64 = 10e-6;
/// The end of a run, in which the liar has to be named [s].
const CLOSING_S: f64 = 1.0;
/// A lie that the others' intervals miss is named with one of its first answers.
const ANSWERS_UNTIL_NAMED: f64 = 3.0;

impl LieRun<'_> {
    /// When the liar is first named after it began to lie [s since the start]; `None` if it never is.
    pub fn named_at(&self) -> Option<f64> {
        let accuses = |look: &&ServerLook| look.server == self.liar && look.standing.is_named();
        self.looks.iter().filter(|look| look.t_s >= self.schedule.lie_at).find(accuses).map(|look| look.t_s)
    }

    /// The readings of a clock that follows the server with the smallest claim: always the middle of that server's
    /// last exchange. Error and largest error that it would claim.
    pub fn smallest_claim(&self) -> Vec<ServerAnswer> {
        let mut latest: Vec<Option<ServerAnswer>> = Vec::new();
        let mut shown = Vec::new();
        for answer in self.answers {
            latest.resize(latest.len().max(answer.server + 1), None);
            if let Some(place) = latest.get_mut(answer.server) {
                *place = Some(*answer);
            }
            let known = latest.iter().flatten();
            let smallest = known.min_by(|a, b| a.claim_s.total_cmp(&b.claim_s)).copied();
            shown.extend(smallest.map(|followed| ServerAnswer { t_s: answer.t_s, ..followed }));
        }
        shown
    }

    /// The figures, with goals for what must not fail.
    pub fn figures(&self) -> Vec<Figure> {
        let schedule = &self.schedule;
        let before = self.readings(schedule.warm_until, schedule.lie_at);
        let after = self.readings(schedule.lie_at, schedule.end);
        let largest_before = largest(&before);
        let largest_after = Figure::new("largest error once it lies".to_owned(), largest(&after), "s");
        let limit = largest_before.map_or(EXTRA_S, |error| GROWTH * error + EXTRA_S);
        let mut figures = vec![
            figure("error IQR before the lie", iqr(&before), "s"),
            figure("error IQR once it lies", iqr(&after), "s"),
            figure("largest error before the lie", largest_before, "s"),
            largest_after.at_most(limit),
        ];
        figures.extend(self.bounds_kept());
        figures.extend(self.naming());
        figures.extend(self.of_smallest_claim());
        figures
    }

    /// Whether every goal is met.
    pub fn is_good(figures: &[Figure]) -> bool {
        figures.iter().all(|figure| figure.met != Some(false))
    }

    fn readings(&self, from: f64, until: f64) -> Vec<LiveSample> {
        self.clock.samples.iter().filter(|sample| (from..until).contains(&sample.t_s)).copied().collect()
    }

    fn bounds_kept(&self) -> Vec<Figure> {
        let samples = &self.clock.samples;
        let named = self.named_at().unwrap_or(f64::INFINITY);
        let is_unnoticed = |sample: &LiveSample| (self.schedule.lie_at..named).contains(&sample.t_s);
        let outside = |chosen: &dyn Fn(&LiveSample) -> bool| {
            samples.iter().filter(|sample| chosen(sample) && !sample.contained).count() as f64
        };
        let strictly = samples.iter().filter(|sample| !sample.contained_strict).count() as f64;
        let meanwhile =
            figure("readings outside the bound while the liar is believed", Some(outside(&is_unnoticed)), "");
        vec![
            figure("readings outside the bound otherwise", Some(outside(&|sample| !is_unnoticed(sample))), "")
                .at_most(0.0),
            match self.reach {
                LieReach::Outside => meanwhile.at_most(0.0),
                LieReach::Inside => meanwhile,
            },
            figure("readings outside the strict bound", Some(strictly), "").at_most(0.0),
            figure("median bound", median(samples, |sample| sample.bound_s), "s"),
            figure("median strict bound", median(samples, |sample| sample.bound_strict_s), "s"),
            figure("readings", Some(samples.len() as f64), ""),
        ]
    }

    fn naming(&self) -> Vec<Figure> {
        let named_at = self.named_at();
        let takes = figure("time until the liar is named", named_at.map(|at| at - self.schedule.lie_at), "s");
        let false_until = |at: f64| {
            let span = self.schedule.lie_at..=at;
            self.answers.iter().filter(|answer| answer.server == self.liar && span.contains(&answer.t_s)).count() as f64
        };
        let answers = figure("false answers until it is named", named_at.map(false_until), "");
        let believed_again = |at: f64| {
            let of_liar = self.looks.iter().filter(|look| look.server == self.liar && look.t_s >= at);
            of_liar.filter(|look| !look.standing.is_named()).count() as f64
        };
        let again = figure("answers of the daemon that name it no longer", named_at.map(believed_again), "");
        let closing = figure("the same in the last second", Some(believed_again(self.schedule.end - CLOSING_S)), "");
        let of_honest = self.looks.iter().filter(|look| look.server != self.liar && look.standing.is_named()).count();
        vec![
            takes.at_most(self.schedule.end - self.schedule.lie_at),
            match self.reach {
                LieReach::Outside => answers.at_most(ANSWERS_UNTIL_NAMED),
                LieReach::Inside => answers,
            },
            match self.reach {
                LieReach::Outside => again.at_most(0.0),
                LieReach::Inside => again,
            },
            closing.at_most(0.0),
            figure("answers of the daemon that name an honest server", Some(of_honest as f64), "").at_most(0.0),
        ]
    }

    fn of_smallest_claim(&self) -> Vec<Figure> {
        let shown: Vec<ServerAnswer> = self.smallest_claim();
        let lied_to: Vec<&ServerAnswer> = shown.iter().filter(|answer| answer.t_s >= self.schedule.lie_at).collect();
        let worst = lied_to.iter().map(|answer| answer.error_s.abs()).reduce(f64::max);
        let outside = lied_to.iter().filter(|answer| answer.is_outside()).count() as f64;
        let share = (!lied_to.is_empty()).then_some(100.0 * outside / lied_to.len() as f64);
        vec![
            figure("following the smallest claim: largest error once it lies", worst, "s"),
            figure("following the smallest claim: its readings outside its bound then", share, "%"),
        ]
    }
}

fn figure(name: &str, value: Option<f64>, unit: &'static str) -> Figure {
    Figure::new(name.to_owned(), value, unit)
}

fn largest(samples: &[LiveSample]) -> Option<f64> {
    samples.iter().map(|sample| sample.error_s.abs()).reduce(f64::max)
}

fn median(samples: &[LiveSample], of: fn(&LiveSample) -> f64) -> Option<f64> {
    Sorted::of(samples.iter().map(of)).quantile(0.5)
}

fn iqr(samples: &[LiveSample]) -> Option<f64> {
    let errors = Sorted::of(samples.iter().map(|sample| sample.error_s));
    errors.quantile(0.75).zip(errors.quantile(0.25)).map(|(high, low)| high - low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Status;

    const SCHEDULE: LieSchedule = LieSchedule { warm_until: 2.0, lie_at: 6.0, end: 10.0 };

    fn sample(t_s: f64, error_s: f64) -> LiveSample {
        LiveSample {
            t_s,
            error_s,
            bound_s: 1e-4,
            bound_strict_s: 2e-4,
            uncertainty_s: 1e-6,
            noise_s: 1e-7,
            contained: error_s.abs() <= 1e-4,
            contained_strict: error_s.abs() <= 2e-4,
            status: Status::Synchronised,
            rate_error_ppm: None,
        }
    }

    fn clock(errors: &[(f64, f64)]) -> LiveRun {
        let samples = errors.iter().map(|(t_s, error_s)| sample(*t_s, *error_s)).collect();
        LiveRun { name: "step", samples, refused: 0 }
    }

    fn look(t_s: f64, server: usize, standing: ServerStanding) -> ServerLook {
        ServerLook { t_s, server, standing, weight: None, proven_s: None }
    }

    fn answer(t_s: f64, server: usize, error_s: f64) -> ServerAnswer {
        let claim_s = if server == 1 { 1e-6 } else { 3e-4 };
        ServerAnswer { t_s, server, error_s, claim_s, reach_s: claim_s + 2e-5 }
    }

    fn value(figures: &[Figure], begin: &str) -> (Option<f64>, Option<bool>) {
        let found = figures.iter().find(|figure| figure.name.starts_with(begin)).unwrap();
        (found.value, found.met)
    }

    /// Server 1 claims the least, and lies by 20 ms from second 6 on.
    fn answers() -> Vec<ServerAnswer> {
        let lie = |t_s: f64| if t_s > 6.0 { 2e-2 } else { 0.0 };
        [1.0, 3.0, 5.0, 6.1, 6.4, 7.0]
            .into_iter()
            .flat_map(|t_s| [answer(t_s, 0, 1e-6), answer(t_s, 1, lie(t_s))])
            .collect()
    }

    fn run<'a>(clock: &'a LiveRun, looks: &'a [ServerLook], answers: &'a [ServerAnswer]) -> LieRun<'a> {
        LieRun { clock, looks, answers, liar: 1, reach: LieReach::Outside, schedule: SCHEDULE }
    }

    #[test]
    fn a_lie_that_is_named_and_not_followed_meets_every_goal() {
        use ServerStanding::{Believed, Falseticker};
        let clock = clock(&[(1.0, 9e-5), (3.0, 4e-6), (5.0, -2e-6), (6.2, 5e-6), (9.0, 3e-6)]);
        let looks = [look(5.0, 1, Believed), look(6.1, 1, Believed), look(6.5, 1, Falseticker), look(9.0, 0, Believed)];
        let answers = answers();
        let run = run(&clock, &looks, &answers);
        let figures = run.figures();
        assert_eq!(value(&figures, "largest error before").0, Some(4e-6));
        assert_eq!(value(&figures, "largest error once"), (Some(5e-6), Some(true)));
        assert_eq!(value(&figures, "time until"), (Some(0.5), Some(true)));
        assert_eq!(value(&figures, "false answers"), (Some(2.0), Some(true)));
        assert_eq!(value(&figures, "following the smallest claim: largest").0, Some(2e-2));
        assert_eq!(value(&figures, "following the smallest claim: its readings").0, Some(83.333_333_333_333_33));
        assert!(LieRun::is_good(&figures));
    }

    #[test]
    fn a_liar_that_is_never_named_fails() {
        let clock = clock(&[(3.0, 1e-6), (7.0, 1e-6)]);
        let (looks, answers) = ([look(7.0, 1, ServerStanding::Believed)], answers());
        let figures = run(&clock, &looks, &answers).figures();
        assert_eq!(value(&figures, "time until"), (None, Some(false)));
        assert!(!LieRun::is_good(&figures));
    }

    #[test]
    fn a_clock_that_follows_the_lie_fails() {
        let clock = clock(&[(3.0, 1e-6), (7.0, 9e-5), (8.0, 3e-4)]);
        let (looks, answers) = ([look(7.5, 1, ServerStanding::Suspect)], answers());
        let figures = run(&clock, &looks, &answers).figures();
        assert_eq!(value(&figures, "largest error once"), (Some(3e-4), Some(false)));
        assert_eq!(value(&figures, "readings outside the bound otherwise"), (Some(1.0), Some(false)));
        assert_eq!(value(&figures, "readings outside the strict bound"), (Some(1.0), Some(false)));
    }

    /// Within the others' intervals the usual bound may be broken while the liar is believed, and the strict one never.
    #[test]
    fn a_lie_inside_is_excused_from_the_usual_bound_until_it_is_named() {
        let clock = clock(&[(3.0, 0.0), (6.5, 1.5e-4), (8.0, 1e-6)]);
        let (looks, answers) = ([look(7.0, 1, ServerStanding::Suspect)], answers());
        let outside = run(&clock, &looks, &answers);
        let inside = LieRun { reach: LieReach::Inside, ..outside };
        let meanwhile = "readings outside the bound while";
        assert_eq!(value(&outside.figures(), meanwhile), (Some(1.0), Some(false)));
        assert_eq!(value(&inside.figures(), meanwhile), (Some(1.0), None));
        assert_eq!(value(&inside.figures(), "readings outside the strict").1, Some(true));
    }

    #[test]
    fn an_honest_server_that_is_named_or_a_liar_that_is_believed_again_fails() {
        use ServerStanding::{Believed, Falseticker, Suspect};
        let (clock, answers) = (clock(&[(3.0, 0.0), (8.0, 0.0)]), answers());
        let accused = [look(6.2, 1, Falseticker), look(3.0, 0, Suspect)];
        let figures = run(&clock, &accused, &answers).figures();
        assert_eq!(value(&figures, "answers of the daemon that name an honest"), (Some(1.0), Some(false)));
        let forgiven = [look(6.2, 1, Falseticker), look(8.0, 1, Believed), look(9.5, 1, Falseticker)];
        let outside = run(&clock, &forgiven, &answers);
        let again = "answers of the daemon that name it no longer";
        assert_eq!(value(&outside.figures(), again), (Some(1.0), Some(false)));
        let inside = LieRun { reach: LieReach::Inside, ..outside };
        assert_eq!(value(&inside.figures(), again), (Some(1.0), None));
        assert_eq!(value(&inside.figures(), "the same in the last second"), (Some(0.0), Some(true)));
        let in_the_end = [look(6.2, 1, Suspect), look(9.5, 1, Believed)];
        let figures = LieRun { looks: &in_the_end, ..inside }.figures();
        assert_eq!(value(&figures, "the same in the last second"), (Some(1.0), Some(false)));
    }
}

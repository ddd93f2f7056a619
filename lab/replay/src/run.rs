//! One replay from the first row of a trace to its report.

use crate::nominal::{self, StartPeriod, StartPeriodSource};
use crate::report::{self, Report};
use crate::retrospect::{Hindsight, Retrospect, SettledStep};
use crate::selection::Selection;
use crate::track::{Detail, ReplayStep, ReplayTrack};
use ffclock_estimator::{Algorithm, Chosen, Configs, Estimator};
use ffclock_trace::{TraceError, TraceReader, TraceRow};
use ffclock_units::{Period, RateMemory, Span};

/// What to replay, and how.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Its options.
    pub configs: Configs,
    /// The server, by its name in the trace or its number from 0; the first of the trace if there is none here.
    pub server: Option<String>,
    /// The period of the counter, in place of the one that the trace states and of what was known of it before.
    pub nominal: Option<Period>,
    /// The statistics begin this long after the first exchange, or else at the end of the warm-up.
    pub from: Option<Span>,
    /// At which exchanges the clock is worked out. In retrospect it is at every one.
    pub detail: Detail,
    /// Whether the clock is worked out in retrospect too.
    pub in_retrospect: bool,
    /// Whether rows that cannot be read are counted and left out, instead of ending the replay.
    pub skips_bad_rows: bool,
}

/// Takes what a replay shows while it runs.
pub trait ReplayObserver {
    /// Why the observer cannot go on.
    type Error;

    /// A row was read, of any server.
    fn row_read(&mut self) {}

    /// A row of the chosen server was fed; `step` is the clock after it, where there is one.
    ///
    /// # Errors
    /// End the replay.
    fn fed(&mut self, _row: &TraceRow, _track: &ReplayTrack, _step: Option<&ReplayStep>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The clock after an exchange, in the order of the trace: at once, or at the end where it is worked out in
    /// retrospect.
    ///
    /// # Errors
    /// End the replay.
    fn settled(&mut self, _step: &SettledStep) -> Result<(), Self::Error> {
        Ok(())
    }

    /// This many steps of the look back are done, of `all`.
    fn looking_back(&mut self, _done: usize, _all: usize) {}
}

/// Why there is no report.
#[derive(Debug)]
pub enum ReplayError<E> {
    /// The trace cannot be read.
    Trace(TraceError),
    /// The trace has no row of the chosen server; the text says which servers there are.
    NoRows(String),
    /// The frequency of the counter is neither stated nor visible in the first rows.
    UnknownFrequency,
    /// The observer refused a row.
    Observer(E),
}

/// What a replay found.
pub struct Replayed {
    /// The figures.
    pub report: Report,
    /// What a reader of the report should know about the trace.
    pub notes: Vec<String>,
    /// The clock in retrospect, where the plan asks for it.
    pub hindsight: Option<Hindsight>,
}

impl ReplayPlan {
    /// Replays a trace.
    ///
    /// # Errors
    /// [`ReplayError`] lists what can go wrong.
    pub fn run<O: ReplayObserver>(
        &self,
        reader: TraceReader,
        observer: &mut O,
    ) -> Result<Replayed, ReplayError<O::Error>> {
        let selection = Selection::new(self.server.clone());
        Replay { plan: self, reader, selection, observer, trouble: Trouble::default() }.run()
    }

    /// An estimator as the plan has it, with no history but what was known of the counter's rate before.
    pub fn estimator(&self, nominal: Period, remembered: Option<RateMemory>) -> Box<dyn Estimator> {
        match Chosen::new(self.algorithm, self.configs.clone(), nominal, remembered) {
            Chosen::Classic(classic) => classic,
            Chosen::Learned(learned) => learned,
        }
    }

    fn track(&self, nominal: Period, remembered: Option<RateMemory>) -> ReplayTrack {
        let detail = if self.in_retrospect { Detail::EveryExchange } else { self.detail };
        ReplayTrack::new(self.estimator(nominal, remembered), self.from, detail)
    }
}

/// The counter's frequency is measured over at most this many rows.
const FREQUENCY_ROWS: usize = 100;
/// At most this many complaints about single rows become notes.
const NOTED_MAX: usize = 5;

/// What went wrong on the way and did not stop the replay.
#[derive(Default)]
struct Trouble {
    bad_rows: u64,
    notes: Vec<String>,
}

impl Trouble {
    fn note(&mut self, error: &TraceError) {
        self.bad_rows += u64::from(error.is_one_row());
        if self.notes.len() < NOTED_MAX || !error.is_one_row() {
            self.notes.push(error.to_string());
        }
    }
}

/// One replay under way.
struct Replay<'a, O> {
    plan: &'a ReplayPlan,
    reader: TraceReader,
    selection: Selection,
    observer: &'a mut O,
    trouble: Trouble,
}

impl<O: ReplayObserver> Replay<'_, O> {
    fn run(mut self) -> Result<Replayed, ReplayError<O::Error>> {
        let first = self.first_rows()?;
        let nominal = self.nominal(&first)?;
        let remembered = self.remembered(&nominal);
        let mut track = self.plan.track(nominal.period, remembered);
        let wants_retrospect = self.plan.in_retrospect;
        let mut retrospect = wants_retrospect.then(|| Retrospect::new(self.plan.configs.clone(), nominal.period));
        for row in first {
            self.feed(&mut track, &mut retrospect, &row)?;
        }
        while let Some(row) = self.next_row()? {
            self.feed(&mut track, &mut retrospect, &row)?;
        }
        let hindsight = retrospect.map(|retrospect| self.look_back(retrospect)).transpose()?;
        let origin = report::TraceOrigin::of(&self.reader, &self.selection);
        let mut report = Report::of(&track, &nominal, origin);
        report.exchanges.bad_rows = self.trouble.bad_rows;
        report.smooth = hindsight.as_ref().map(Hindsight::report);
        let begin = remembered
            .map(|memory| format!("the trace gives a remembered rate, within {}", memory.bound.to_two_figures()));
        let notes = self.reader.notes().into_iter().chain(begin).chain(self.trouble.notes).collect();
        Ok(Replayed { report, notes, hindsight })
    }

    /// The next row of the chosen server; `None` at the end.
    fn next_row(&mut self) -> Result<Option<TraceRow>, ReplayError<O::Error>> {
        loop {
            match self.reader.next() {
                None => return Ok(None),
                Some(Ok(row)) => {
                    self.observer.row_read();
                    if self.selection.takes(&self.reader, row.server) {
                        return Ok(Some(row));
                    }
                }
                Some(Err(error)) if self.plan.skips_bad_rows => self.trouble.note(&error),
                Some(Err(error)) => return Err(ReplayError::Trace(error)),
            }
        }
    }

    fn feed(
        &mut self,
        track: &mut ReplayTrack,
        retrospect: &mut Option<Retrospect>,
        row: &TraceRow,
    ) -> Result<(), ReplayError<O::Error>> {
        let step = track.feed(row);
        self.observer.fed(row, track, step.as_ref()).map_err(ReplayError::Observer)?;
        match (retrospect, step) {
            (Some(retrospect), step) => retrospect.feed(row, step),
            (None, Some(step)) => self.show(&SettledStep::causal(step))?,
            (None, None) => {}
        }
        Ok(())
    }

    fn show(&mut self, step: &SettledStep) -> Result<(), ReplayError<O::Error>> {
        self.observer.settled(step).map_err(ReplayError::Observer)
    }

    /// Works out the clock in retrospect, and shows the steps that waited for it.
    fn look_back(&mut self, retrospect: Retrospect) -> Result<Hindsight, ReplayError<O::Error>> {
        let hindsight = retrospect.finish(&mut |done, all| self.observer.looking_back(done, all));
        hindsight.steps.iter().try_for_each(|step| self.show(step))?;
        Ok(hindsight)
    }

    /// The rows that must be read before the estimator can begin: one where the counter's frequency is known, to see
    /// whether there is any, and more where it has to be measured.
    fn first_rows(&mut self) -> Result<Vec<TraceRow>, ReplayError<O::Error>> {
        let is_known = self.plan.nominal.or(self.reader.header().nominal).is_some();
        let wanted = if is_known { 1 } else { FREQUENCY_ROWS };
        let mut rows = Vec::new();
        while rows.len() < wanted {
            match self.next_row()? {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        if rows.is_empty() {
            return Err(ReplayError::NoRows(self.selection.explain(&self.reader)));
        }
        Ok(rows)
    }

    /// What the recorder knew of the rate; a period that the plan gives stands alone.
    fn remembered(&self, nominal: &StartPeriod) -> Option<RateMemory> {
        self.reader.header().remembered.filter(|_| nominal.source != StartPeriodSource::Given)
    }

    fn nominal(&self, first: &[TraceRow]) -> Result<StartPeriod, ReplayError<O::Error>> {
        let stated = self.plan.nominal.map(|period| StartPeriod { period, source: StartPeriodSource::Given });
        let traced =
            || self.reader.header().nominal.map(|period| StartPeriod { period, source: StartPeriodSource::Trace });
        let measured =
            || nominal::estimate(first).map(|period| StartPeriod { period, source: StartPeriodSource::Estimated });
        stated.or_else(traced).or_else(measured).ok_or(ReplayError::UnknownFrequency)
    }
}

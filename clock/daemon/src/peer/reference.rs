//! A reference in place of a server: reads it when it is due, and makes exchanges of what it says.
//!
//! What it says is judged in the crate reference, and how it comes in is the business of `ffclock_sys`; here both come
//! together with the counter, and with the servers' clock where pulses need their numbers. That clock gives whole
//! seconds alone, so nothing of it flows back into what the pulses measure.

mod inputs;
mod machine;
#[cfg(test)]
mod tests;

use super::feed::{Counterpart, Feed, Note};
use super::{Beginning, Context, Pace};
use crate::config::{ReferenceConfig, ReferenceInput, ServerConfig};
use crate::leaps::Vote;
use ffclock_control::protocol::SourceReport;
use ffclock_reference::{NumberingRefused, Sample, SamplePairing, number};
use ffclock_source::Reachability;
use ffclock_sys::StampQuality;
use ffclock_units::{Bound, Estimate, Exchange, Leap, LeapTable, Moment, Mono, Period, Span, Stamp, Tai};
use inputs::Input;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

/// What was counted since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) looks: u64,
    pub(super) exchanges: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
}

/// What a reference says of one moment.
#[derive(Clone, Copy, Debug)]
struct Finding {
    stamp: Stamp,
    said: Said,
    /// The largest error that the reference states itself, beside what the operator states of it.
    claim: Bound,
    leap: Leap,
}

#[derive(Clone, Copy, Debug)]
enum Said {
    /// The time.
    Time(Moment<Tai>),
    /// That a second was so old.
    SecondBegan(Span),
}

/// One reference.
#[derive(Debug)]
pub(super) struct Reference {
    config: ReferenceConfig,
    poll: Span,
    nominal: Period,
    leaps: LeapTable,
    input: Input,
    pairing: SamplePairing,
    exchanges: Vec<Exchange>,
    notes: Vec<Note>,
    next: Moment<Mono>,
    standing: Reachability,
    /// When it was last opened, or gave an exchange.
    alive: Moment<Mono>,
    counts: Counts,
    /// Whether it gives pulses, which need numbers.
    is_numbered: bool,
}

/// What cannot be opened is tried again after this time.
const OPEN_AGAIN: Span = Span::from_secs(5);
/// A reference is silent after this number of polls, and not before this time.
const SILENT_POLLS: u32 = 4;
const SILENT_AFTER: Span = Span::from_secs(5);

impl Reference {
    /// The reference of a configuration, if it is one.
    pub(super) fn of(
        server: &ServerConfig,
        (nominal, leaps): (Period, LeapTable),
        now: Moment<Mono>,
    ) -> Option<Box<Self>> {
        let config = server.reference.clone()?;
        let pairing = SamplePairing::new(nominal, config.input.reference_id());
        let is_numbered = matches!(config.input, ReferenceInput::Pulses(_));
        Some(Box::new(Reference {
            is_numbered,
            config,
            poll: server.source.poll,
            nominal,
            leaps,
            input: Input::Closed,
            pairing,
            exchanges: Vec::new(),
            notes: Vec::new(),
            next: now,
            standing: Reachability::Untried,
            alive: now,
            counts: Counts::default(),
        }))
    }

    /// What comes next forms no pair with what came before.
    fn pair_anew(&mut self) {
        self.pairing = SamplePairing::new(self.nominal, self.config.input.reference_id());
    }

    fn open(&mut self, context: &mut Context) {
        match Input::open(&self.config, self.nominal, &context.stamper) {
            Ok(input) => {
                context.stamper.remember_for(SILENT_AFTER);
                self.input = input;
                self.alive = context.now;
                self.notes.push(Note::notice("the reference is open", ""));
            }
            Err(why) => {
                self.next = context.now + OPEN_AGAIN;
                self.notes.push(Note::warning("the reference cannot be opened", why));
            }
        }
    }

    fn close(&mut self, why: impl ToString, now: Moment<Mono>) {
        self.input = Input::Closed;
        self.next = now + OPEN_AGAIN;
        self.notes.push(Note::warning("the reference cannot be read any more", why));
    }

    pub(super) fn refuse(&mut self, reason: &'static str) {
        *self.counts.refused.entry(reason).or_default() += 1;
        self.notes.push(Note::detail("a sample was refused", reason));
    }

    fn take(&mut self, finding: &Finding, context: &Context) {
        self.is_numbered = matches!(finding.said, Said::SecondBegan(_));
        let time = match finding.said {
            Said::Time(time) => time + self.config.delay,
            Said::SecondBegan(ago) => match self.number(finding.stamp, ago, context) {
                Ok(time) => time,
                Err(NumberingRefused::Ambiguous) => return self.refuse("unnumbered"),
                Err(NumberingRefused::NotASecond) => {
                    let kind = "a pulse does not come where a second begins by the published clock";
                    self.notes.push(Note::warning(kind, ""));
                    return self.refuse("not-a-second");
                }
            },
        };
        let sample =
            Sample { stamp: finding.stamp, time, claim: self.config.error + finding.claim, leap: finding.leap };
        let Some(exchange) = self.pairing.observe(sample) else { return };
        self.exchanges.push(exchange);
        self.counts.exchanges += 1;
        self.alive = context.now;
        if self.standing != Reachability::Reachable {
            self.standing = Reachability::Reachable;
            self.notes.push(Note::notice("the reference gives time", self.input.way()));
        }
    }

    /// The time at a stamp when a second was `ago` old. Its number is that of several servers or, where these do not
    /// say it or no second of theirs begins there, of the published clock.
    fn number(&self, stamp: Stamp, ago: Span, context: &Context) -> Result<Moment<Tai>, NumberingRefused> {
        let since = ago + self.config.delay;
        let by = |clock: &Estimate| {
            let shown = clock.at(stamp.counter);
            number(shown.time - since, shown.bound, self.config.error).map(|second| second + since)
        };
        let [by_servers, by_published] = [&context.numbers, &context.published].map(|clock| clock.as_ref().map(by));
        let by_servers = by_servers.filter(Result::is_ok);
        by_servers.or(by_published).unwrap_or(Err(NumberingRefused::Ambiguous))
    }

    fn watch_silence(&mut self, now: Moment<Mono>) {
        let polls = Span::from_units(self.poll.units() * i128::from(SILENT_POLLS));
        if now - self.alive <= polls.max(SILENT_AFTER) || self.standing == Reachability::Unreachable {
            return;
        }
        self.standing = Reachability::Unreachable;
        let reasons = self.counts.refused.iter().map(|(reason, count)| format!("{reason} {count}"));
        let refused = reasons.collect::<Vec<_>>().join(", ");
        let detail = if refused.is_empty() { refused } else { format!("refused so far: {refused}") };
        let kind = match self.config.input {
            ReferenceInput::Pulses(_) => "no pulses come that can be used",
            _ => "the reference is silent",
        };
        self.notes.push(Note::warning(kind, detail));
    }
}

impl Feed for Reference {
    fn descriptors(&self) -> [Option<BorrowedFd<'_>>; 2] {
        [self.input.descriptor(), None]
    }

    fn next(&self) -> Moment<Mono> {
        self.next
    }

    fn poll(&self) -> Span {
        self.poll
    }

    fn standing(&self) -> Reachability {
        self.standing
    }

    fn is_open(&self) -> bool {
        !matches!(self.input, Input::Closed)
    }

    fn quality(&self) -> StampQuality {
        StampQuality::AsWanted
    }

    fn counterpart(&self) -> Option<Counterpart> {
        None
    }

    fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    fn leap_vote(&self) -> Option<Vote> {
        None
    }

    fn set_leaps(&mut self, leaps: LeapTable) {
        self.leaps = leaps;
    }

    fn reconfigure(&mut self, server: &ServerConfig) {
        self.poll = server.source.poll;
    }

    fn begin_epoch(&mut self, beginning: &Beginning, now: Moment<Mono>) {
        (self.nominal, self.leaps) = (beginning.environment.nominal, beginning.environment.leaps);
        self.pair_anew();
        self.exchanges.clear();
        self.input.forget(self.nominal);
        self.next = match beginning.pace {
            Pace::AtOnce => now,
            Pace::Poll => now + self.poll,
        };
    }

    fn collect(&mut self, context: &mut Context) {
        if context.now >= self.next && !self.is_open() {
            self.open(context);
        }
        let is_due = context.now >= self.next;
        if is_due || self.input.descriptor().is_some() {
            let findings = self.read(context);
            for finding in findings {
                self.take(&finding, context);
            }
        }
        self.watch_silence(context.now);
    }

    fn take_exchanges(&mut self) -> Vec<Exchange> {
        std::mem::take(&mut self.exchanges)
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Looks are its requests, and refused samples its refused packets.
    fn report(&self, report: SourceReport) -> SourceReport {
        let refused = self.counts.refused.iter().map(|(reason, count)| ((*reason).to_owned(), *count));
        SourceReport {
            address: self.is_open().then(|| self.config.input.to_string()),
            poll_s: self.poll.as_seconds(),
            sent: self.counts.looks,
            exchanges: self.counts.exchanges,
            rejected: refused.collect(),
            // The time between the two samples of an exchange is no way.
            floor_s: None,
            round_trip_s: None,
            ..report
        }
    }
}

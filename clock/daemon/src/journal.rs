//! Recent events: logged with rate limits, and kept for status.

use crate::limiter::Limiter;
use ffclock_control::protocol::EventReport;
use ffclock_units::{Moment, Mono};
use std::collections::{BTreeMap, VecDeque};

/// The number of events kept for status.
const KEPT: usize = 64;
/// The most kinds of message that have a limiter of their own; the kinds are literals of this crate, and servers are
/// few.
const MOST_KINDS: usize = 1024;

/// Of a kind that is limited as a whole.
pub(crate) const WHOLE: &str = "";

/// A longer detail is cut off [characters].
const LONGEST_DETAIL: usize = 400;

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// For the log only, and only on request.
    Detail,
    /// Worth knowing.
    Notice,
    /// Something is wrong.
    Warning,
}

/// One event before it is logged.
pub(crate) struct Entry<'a> {
    pub(crate) weight: Weight,
    /// The server it concerns.
    pub(crate) source: Option<&'a str>,
    /// The kind, which the rate limit applies to.
    pub(crate) kind: &'static str,
    /// The particulars; may be empty.
    pub(crate) detail: &'a str,
}

/// What is limited together: a server, the kind of its events, and the part of a kind that is limited for itself.
type LimiterKey = (String, &'static str, &'static str);

/// The memory of recent events.
pub(crate) struct Journal {
    start: Moment<Mono>,
    now: Moment<Mono>,
    limiters: BTreeMap<LimiterKey, Limiter>,
    kept: VecDeque<EventReport>,
}

impl Journal {
    pub(crate) fn new(start: Moment<Mono>) -> Self {
        Journal { start, now: start, limiters: BTreeMap::new(), kept: VecDeque::with_capacity(KEPT) }
    }

    /// All later events happen at `now`.
    pub(crate) fn set_now(&mut self, now: Moment<Mono>) {
        self.now = now;
    }

    /// Logs an event, unless one of its kind was logged within the last minute.
    pub(crate) fn log(&mut self, entry: &Entry<'_>) {
        self.log_part(entry, WHOLE);
    }

    /// Logs an event, unless one of this part of its kind was logged within the last minute. The parts are a closed
    /// list, such as the reasons for one thing: what is logged is bounded by their number.
    pub(crate) fn log_part(&mut self, entry: &Entry<'_>, part: &'static str) {
        let key = (entry.source.unwrap_or_default().to_owned(), entry.kind, part);
        if self.limiters.len() >= MOST_KINDS && !self.limiters.contains_key(&key) {
            self.limiters.clear();
        }
        if let Some(left_out) = self.limiters.entry(key).or_default().admit(self.now) {
            self.write(entry, left_out);
        }
    }

    /// Logs a new state. Returns `false` if one of its kind was logged within the last minute: the caller logs it later
    /// if it still holds, so that the last entry in the log is true.
    #[must_use]
    pub(crate) fn log_state(&mut self, entry: &Entry<'_>) -> bool {
        let key = (entry.source.unwrap_or_default().to_owned(), entry.kind, WHOLE);
        let may = self.limiters.get(&key).is_none_or(|limiter| limiter.would_admit(self.now));
        if may {
            self.log(entry);
        }
        may
    }

    /// Logs the answer to a request, every time: an answer to an operator must not be left out.
    pub(crate) fn insist(&mut self, weight: Weight, kind: &'static str, detail: &str) {
        self.write(&Entry { weight, source: None, kind, detail }, 0);
    }

    fn write(&mut self, entry: &Entry<'_>, left_out: u64) {
        let source = entry.source;
        let left_out = (left_out > 0).then_some(left_out);
        let detail = if entry.detail.is_empty() { String::new() } else { format!(": {}", one_line(entry.detail)) };
        let text = format!("{}{detail}", entry.kind);
        match entry.weight {
            Weight::Detail => tracing::debug!(source, left_out, "{text}"),
            Weight::Notice => tracing::info!(source, left_out, "{text}"),
            Weight::Warning => tracing::warn!(source, left_out, "{text}"),
        }
        if entry.weight != Weight::Detail {
            self.keep(EventReport {
                at_s: (self.now - self.start).as_seconds(),
                source: entry.source.map(str::to_owned),
                text,
            });
        }
    }

    /// A notice without a server.
    pub(crate) fn notice(&mut self, kind: &'static str, detail: &str) {
        self.log(&Entry { weight: Weight::Notice, source: None, kind, detail });
    }

    /// A warning without a server.
    pub(crate) fn warn(&mut self, kind: &'static str, detail: &str) {
        self.log(&Entry { weight: Weight::Warning, source: None, kind, detail });
    }

    /// The latest events, oldest first.
    pub(crate) fn latest(&self) -> Vec<EventReport> {
        self.kept.iter().cloned().collect()
    }

    /// Seconds since the start.
    pub(crate) fn uptime_s(&self) -> f64 {
        (self.now - self.start).as_seconds()
    }

    fn keep(&mut self, event: EventReport) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(event);
    }
}

/// Foreign text as one line of reasonable length that cannot pretend to be another log entry.
fn one_line(detail: &str) -> String {
    let mut line: String = detail.chars().take(LONGEST_DETAIL).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if detail.chars().nth(LONGEST_DETAIL).is_some() {
        line.push_str(" ...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Span;

    #[test]
    fn foreign_text_stays_one_short_line() {
        let mut journal = Journal::new(Moment::from_origin(Span::ZERO));
        journal.warn("bad", &format!("a\nERROR forged\x1b[2J{}", "x".repeat(100_000)));
        let text = &journal.latest()[0].text;
        assert!(text.starts_with("bad: a ERROR forged [2Jxx"), "{text}");
        assert!(text.len() < LONGEST_DETAIL + 20 && text.ends_with("x ..."));
    }

    #[test]
    fn answers_to_operators_are_never_left_out() {
        let mut journal = Journal::new(Moment::from_origin(Span::ZERO));
        journal.insist(Weight::Warning, "refused", "first reason");
        journal.insist(Weight::Warning, "refused", "second reason");
        assert_eq!(journal.latest().len(), 2);
    }

    #[test]
    fn a_flood_is_one_line_and_a_count() {
        let start = Moment::from_origin(Span::ZERO);
        let mut journal = Journal::new(start);
        for _ in 0..500 {
            journal.warn("a server lies", "");
        }
        journal.notice("another kind", "with detail");
        assert_eq!(journal.latest().len(), 2);
        assert_eq!(journal.latest()[1].text, "another kind: with detail");
    }

    #[test]
    fn parts_of_a_kind_are_limited_each() {
        let mut journal = Journal::new(Moment::from_origin(Span::ZERO));
        let entry = Entry { weight: Weight::Notice, source: Some("a"), kind: "turned away", detail: "" };
        for _ in 0..500 {
            ["domain", "version", WHOLE].into_iter().for_each(|part| journal.log_part(&entry, part));
            journal.log(&entry);
        }
        assert_eq!(journal.latest().len(), 3);
        journal.set_now(Moment::from_origin(Span::from_secs(60)));
        journal.log_part(&entry, "domain");
        assert_eq!(journal.latest().len(), 4);
    }

    #[test]
    fn only_the_latest_are_kept() {
        let mut journal = Journal::new(Moment::from_origin(Span::ZERO));
        for hour in 0..2 * KEPT as i64 {
            journal.set_now(Moment::from_origin(Span::from_secs(hour * 3600)));
            journal.notice("hourly", "");
        }
        assert_eq!(journal.latest().len(), KEPT);
        assert_eq!(journal.latest()[0].at_s, KEPT as f64 * 3600.0);
    }
}

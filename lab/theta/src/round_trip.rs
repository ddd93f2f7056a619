//! The bias of averaged round trips.
//!
//! The paper had no clocks that were good enough for one-way delays. It had each message answered, took half of what
//! both ways need together for each of them ("Uncertainty Ratio Calculation"), and added what passes at the receiver
//! until the message is perceived. Where the two ways differ, the longer one becomes shorter and the shorter one
//! longer, and their ratio smaller. A live run with replies (`ffclock-lab theta run --replies`) measures both for the
//! same messages, so that the two can be compared.
//!
//! In one respect this is kinder than the paper's way: broadcasts and switches keep their places in time. The paper
//! put the clocks of the hosts together by the same assumption.

use crate::analysis::{Clocks, Longest, Ratio, SwitchStamping, TimeRange};
use crate::certified::CertifyError;
use crate::certified::gather::{GatheredMessage, GatheredSwitch, JoinedLog, MessageKey};
use crate::log::{LogReader, RoundTrip};
use crate::record::{ClockSample, Event, HostId, ProcessId, RunDescription};
use serde::Serialize;
use std::collections::BTreeMap;

/// The same messages, by one-way delays and by averaged round trips.
#[derive(Clone, Debug, Serialize)]
pub struct RoundTripReport {
    /// Messages between correct processes that were answered, of those sent in the range: only these count here.
    pub answered: u64,
    /// Others between them, of those sent in the range.
    pub unanswered: u64,
    /// By one-way delays.
    pub one_way: DelayView,
    /// By averages of round trips.
    pub averaged: DelayView,
    /// How much larger Omega over first switches comes out by averages, in per cent; negative: smaller.
    pub bias_first_percent: Option<f64>,
    /// The same over all switches.
    pub bias_all_percent: Option<f64>,
}

/// The results of one way to measure delays.
#[derive(Clone, Debug, Serialize)]
pub struct DelayView {
    /// Omega over the first switches of rounds.
    pub first: Option<Ratio>,
    /// Omega over all switches.
    pub all: Option<Ratio>,
    /// The mean of tau+(e) / tau_r-(e) over all switches: less at the mercy of a single message than the largest.
    pub mean: Option<f64>,
    /// The largest delay, in picoseconds.
    pub delay_max_ps: Option<i64>,
    /// The smallest tau_r-, in picoseconds.
    pub relevant_min_ps: Option<i64>,
}

/// At which switches the two are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Where switches are stamped.
    pub stamping: SwitchStamping,
    /// Which of them count, and the messages in transit at them.
    pub range: TimeRange,
}

/// Compares the two for a log and its round trips.
///
/// # Errors
/// As [`certify`](crate::certified::certify); clocks are not judged here.
pub fn compare(log: &LogReader, trips: &[RoundTrip], compared: Compared) -> Result<RoundTripReport, CertifyError> {
    let gathered = JoinedLog::from_log(log, compared.stamping)?;
    Ok(report(&gathered, &Averages::new(log.run(), log.clocks(), trips)?, compared))
}

/// A run in memory, with the round trips that it measured.
#[derive(Clone, Copy)]
pub struct EventsInMemory<'a> {
    /// What the run was.
    pub run: &'a RunDescription,
    /// The clocks of its hosts.
    pub clocks: &'a [ClockSample],
    /// The events, those of each process in their order.
    pub events: &'a [Event],
    /// The round trips.
    pub trips: &'a [RoundTrip],
}

/// The same for events in memory, those of each process in their order.
///
/// # Errors
/// As [`compare`].
pub fn compare_events(recorded: EventsInMemory<'_>, compared: Compared) -> Result<RoundTripReport, CertifyError> {
    let EventsInMemory { run, clocks, events, trips } = recorded;
    let gathered = JoinedLog::from_events(run, clocks, events, compared.stamping)?;
    Ok(report(&gathered, &Averages::new(run, clocks, trips)?, compared))
}

fn report(gathered: &JoinedLog, averages: &Averages, compared: Compared) -> RoundTripReport {
    let counted = || gathered.messages.iter().filter(|message| compared.range.holds(message.sent.clock_ps));
    let answered = counted().filter(|message| averages.of(message).is_some()).count() as u64;
    let one_way = |message: &GatheredMessage| {
        averages.of(message)?;
        Some(message.perceived.clock_ps - message.sent.clock_ps).filter(|&delay| delay > 0)
    };
    let (one_way, averaged) =
        (seen(gathered, one_way, compared), seen(gathered, |message| averages.of(message), compared));
    let bias = |by: fn(&DelayView) -> Option<Ratio>| {
        let (averaged, one_way) = (by(&averaged)?.as_f64(), by(&one_way)?.as_f64());
        Some(100.0 * (averaged / one_way - 1.0))
    };
    RoundTripReport {
        answered,
        unanswered: counted().count() as u64 - answered,
        bias_first_percent: bias(|seen| seen.first),
        bias_all_percent: bias(|seen| seen.all),
        one_way,
        averaged,
    }
}

/// Delays from round trips.
struct Averages {
    /// When the reply came, by the sender's clock, less the time from the message's coming to the reply; and from its
    /// coming to its perception.
    trips: BTreeMap<MessageKey, (i64, i64)>,
}

impl Averages {
    fn new(run: &RunDescription, clocks: &[ClockSample], trips: &[RoundTrip]) -> Result<Self, CertifyError> {
        let period = |host: &HostId| {
            let sample = clocks.iter().find(|sample| sample.host == *host);
            sample.map_or(0.0, |sample| sample.period.as_seconds() * 1e12)
        };
        let ticks_ps: Vec<f64> = run.host_of.iter().map(period).collect();
        let mut clocks = Clocks::new(run, clocks)?;
        let known = |process: ProcessId| process.index() < ticks_ps.len();
        let mut averages = Averages { trips: BTreeMap::new() };
        for trip in trips.iter().filter(|trip| known(trip.sender) && known(trip.receiver)) {
            let ticks = |ticks: u64| (ticks as f64 * ticks_ps[trip.receiver.index()]).round() as i64;
            let returned = clocks.time_ps(trip.sender.index(), trip.returned);
            let value = (returned.saturating_sub(ticks(trip.replied_after)), ticks(trip.perceived_after));
            // Of two replies to the same message the first counts.
            averages.trips.entry((trip.round.0, trip.sender.0, trip.receiver.0)).or_insert(value);
        }
        Ok(averages)
    }

    /// Half of both ways, and what passed at the receiver; in picoseconds.
    fn of(&self, message: &GatheredMessage) -> Option<i64> {
        let &(returned, perceived) = self.trips.get(&message.key)?;
        Some(returned.saturating_sub(message.sent.clock_ps) / 2 + perceived).filter(|&delay| delay > 0)
    }
}

/// Omega with the delays that `delay` gives. Messages without one do not count.
fn seen(
    gathered: &JoinedLog,
    delay: impl Fn(&GatheredMessage) -> Option<i64>,
    Compared { stamping, range }: Compared,
) -> DelayView {
    let mut coming =
        gathered.messages.iter().filter_map(|message| Some((message.sent.clock_ps, delay(message)?))).peekable();
    let mut longest = Longest::default();
    let mut seen = DelayView { first: None, all: None, mean: None, delay_max_ps: None, relevant_min_ps: None };
    let (mut sum, mut count, mut highest) = (0.0, 0u64, 1);
    let reaches_in = |message: &GatheredMessage, delay: i64| {
        range.holds_transit(message.sent.clock_ps, message.sent.clock_ps.saturating_add(delay))
    };
    let in_range = |message: &GatheredMessage| delay(message).filter(|&delay| reaches_in(message, delay));
    seen.delay_max_ps = gathered.messages.iter().filter_map(in_range).max();
    for together in gathered.turns.chunk_by(|one, other| one.at.clock_ps == other.at.clock_ps) {
        let at = together[0].at.clock_ps;
        let is_in_transit =
            |sent: i64| if stamping == SwitchStamping::BeforeBroadcast { sent < at } else { sent <= at };
        while let Some((sent, delay)) = coming.next_if(|(sent, _)| is_in_transit(*sent)) {
            longest.push(delay, sent.saturating_add(delay));
        }
        let is_first = together.iter().any(|turn| turn.to > highest);
        highest = together.iter().map(|turn| turn.to).max().unwrap_or(highest).max(highest);
        if !range.holds(at) {
            continue;
        }
        let own = together.iter().filter_map(|turn| relevant(turn, gathered.threshold, &delay));
        let Some(relevant) = own.max() else { continue };
        seen.relevant_min_ps = Some(seen.relevant_min_ps.map_or(relevant, |least: i64| least.min(relevant)));
        let ratio = longest.at(at).and_then(|longest| Ratio::of(longest, relevant)).unwrap_or(Ratio::ONE);
        (sum, count) = (sum + ratio.as_f64(), count + 1);
        seen.all = seen.all.max(Some(ratio));
        if is_first {
            seen.first = seen.first.max(Some(ratio));
        }
    }
    seen.mean = (count > 0).then(|| sum / count as f64);
    seen
}

/// tau_r- of one switch: the delay of the (n-f)-th fastest message that made it.
fn relevant(turn: &GatheredSwitch, threshold: usize, delay: impl Fn(&GatheredMessage) -> Option<i64>) -> Option<i64> {
    let mut delays: Vec<i64> = turn.contributors.iter().filter_map(delay).collect();
    delays.sort_unstable();
    delays.get(delays.len().min(threshold).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{LogOrigin, RecordedForm, Round, RunHost, SwitchEvent, SwitchRule, WayIn};
    use ffclock_units::{Counter, Period, Rate};

    const WHOLE: Compared = Compared { stamping: SwitchStamping::AfterBroadcast, range: TimeRange::ALL };

    /// Two processes on one counter of nanoseconds; f = 0.
    fn run() -> (RunDescription, Vec<ClockSample>) {
        let run = RunDescription {
            origin: LogOrigin::Live,
            form: RecordedForm::Repaired,
            processes: 2,
            tolerated: 0,
            delay_ps: 0,
            delay_min_ps: 0,
            disorder_ps: 0,
            hosts: vec![RunHost { name: "a".to_owned(), counter: "tsc".to_owned() }],
            host_of: vec![HostId(0), HostId(0)],
            faults: vec![],
            settings: BTreeMap::new(),
            unrecorded: 0,
        };
        let sample = ClockSample {
            host: HostId(0),
            counter: Counter::from_raw(0),
            time_ps: 0,
            bound_ps: 0,
            period: Period::from_seconds(1e-9).unwrap(),
            drift_bound: Rate::from_fraction(0.0),
        };
        (run, vec![sample])
    }

    /// A message of a round: sent, perceived, and when its reply, sent at once, came back; nanoseconds. Kernel stamps
    /// are 1 us before perceptions.
    type Exchange = (u64, (u32, u32), (u64, u64, u64));

    fn log(exchanges: &[Exchange]) -> (Vec<Event>, Vec<RoundTrip>) {
        let at = Counter::from_raw;
        let (mut events, mut trips) = (vec![], vec![]);
        for &(round, (sender, receiver), (sent, perceived, returned)) in exchanges {
            let (sender, receiver, round) = (ProcessId(sender), ProcessId(receiver), Round(round));
            events.push(Event::Broadcast { process: sender, round, at: at(sent) });
            let way_in = WayIn::default();
            events.push(Event::Perception { process: receiver, sender, round, at: at(perceived), way_in });
            let returned = at(returned);
            trips.push(RoundTrip { sender, receiver, round, returned, perceived_after: 1000, replied_after: 1000 });
        }
        (events, trips)
    }

    fn advance(process: u32, to: u64, at: u64) -> Event {
        let at = Counter::from_raw(at);
        let (process, from, to, rule) = (ProcessId(process), Round(to - 1), Round(to), SwitchRule::Advance);
        Event::Switch(SwitchEvent { process, from, to, at, decided: at, rule })
    }

    /// The way to process 1 takes 90 us, the way back 10 us, to oneself 10 us: process 0 switches while the slow
    /// message is on its way.
    #[test]
    fn averages_hide_an_asymmetric_way() {
        let (mut events, trips) = log(&[
            (1, (0, 0), (0, 10_000, 19_000)),
            (1, (0, 1), (0, 90_000, 99_000)),
            (1, (1, 0), (0, 10_000, 99_000)),
            (1, (1, 1), (0, 10_000, 19_000)),
        ]);
        events.push(advance(0, 2, 10_001));
        let (run, clocks) = run();
        let seen = compare_events(EventsInMemory { run: &run, clocks: &clocks, events: &events, trips: &trips }, WHOLE)
            .unwrap();
        assert_eq!((seen.answered, seen.unanswered), (4, 0));
        assert_eq!(seen.one_way.first, Ratio::of(90, 10));
        // There and back are 98 us without the stay of 1 us: 49 us each and 1 us to the perception.
        assert_eq!(seen.averaged.delay_max_ps, Some(50_000_000));
        assert_eq!(seen.averaged.relevant_min_ps, Some(50_000_000));
        assert_eq!(seen.averaged.first, Some(Ratio::ONE));
        assert!((seen.bias_first_percent.unwrap() + 100.0 * 8.0 / 9.0).abs() < 1e-9);
    }

    /// The slow message counts where a switch of the range meets it, and nowhere else.
    #[test]
    fn only_switches_in_the_range_count() {
        let (mut events, trips) = log(&[
            (1, (0, 0), (0, 10_000, 19_000)),
            (1, (0, 1), (0, 90_000, 99_000)),
            (1, (1, 0), (0, 10_000, 19_000)),
            (2, (0, 0), (100_000, 110_000, 119_000)),
            (2, (1, 0), (100_000, 110_000, 119_000)),
        ]);
        events.push(advance(0, 2, 10_001));
        events.push(advance(0, 3, 110_001));
        let (run, clocks) = run();
        let of = |after_us: i64, until_us: i64| {
            let range = TimeRange { after_ps: after_us * 1_000_000, until_ps: until_us * 1_000_000 };
            let compared = Compared { stamping: SwitchStamping::BeforeBroadcast, range };
            compare_events(EventsInMemory { run: &run, clocks: &clocks, events: &events, trips: &trips }, compared)
                .unwrap()
        };
        let (early, late) = (of(-1, 50), of(95, 200));
        assert_eq!((early.one_way.first, early.answered), (Ratio::of(90, 10), 3));
        assert_eq!((late.one_way.first, late.answered), (Some(Ratio::ONE), 2));
        assert_eq!(late.one_way.delay_max_ps, Some(10_000_000));
    }

    #[test]
    fn what_was_not_answered_counts_in_neither() {
        let (mut events, mut trips) = log(&[
            (1, (0, 0), (0, 10_000, 19_000)),
            (1, (0, 1), (0, 90_000, 99_000)),
            (1, (1, 0), (0, 10_000, 19_000)),
        ]);
        events.push(advance(0, 2, 10_001));
        trips.remove(1);
        let (run, clocks) = run();
        let seen = compare_events(EventsInMemory { run: &run, clocks: &clocks, events: &events, trips: &trips }, WHOLE)
            .unwrap();
        assert_eq!((seen.answered, seen.unanswered), (2, 1));
        assert_eq!(seen.one_way.delay_max_ps, Some(10_000_000));
        let nothing =
            compare_events(EventsInMemory { run: &run, clocks: &clocks, events: &events, trips: &[] }, WHOLE).unwrap();
        assert_eq!((nothing.answered, nothing.one_way.first, nothing.bias_first_percent), (0, None, None));
    }
}

//! A run in the form of OpenMetrics.

use crate::last_minute::MinuteFigures;
use crate::sender::{StrayCounts, UnstampedCounts};
use crate::summary::{DirectionFigures, OwdFigures};
use ffclock_control::metrics::{Family, Kind};
use ffclock_service::Exposition;
use ffclock_statistics::Spread;

const PACKETS: Family = Family::new("ffclock_owd_packets", Kind::Counter, "", "Packets by fate");
const STRAYS: Family =
    Family::new("ffclock_owd_strays", Kind::Counter, "", "Packets that are no first reply, by reason");
/// No counter: a loss may move to the other direction when a later reply shows the reflector's count.
const LOST: Family = Family::new(
    "ffclock_owd_lost",
    Kind::Gauge,
    "",
    "Packets of the run that were lost before its last reply, by direction, where the reflector's count shows it",
);
const fn seconds(name: &'static str, help: &'static str) -> Family {
    Family::new(name, Kind::Gauge, "seconds", help)
}
/// Delay and bound, to the reflector and from it.
const OF_RUN: [[Family; 2]; 2] = [
    [
        seconds("ffclock_owd_forward_delay_seconds", "Delay to the reflector, by quantile of the run"),
        seconds(
            "ffclock_owd_forward_bound_seconds",
            "Largest error of the delay to the reflector, by quantile of the run",
        ),
    ],
    [
        seconds("ffclock_owd_backward_delay_seconds", "Delay from the reflector, by quantile of the run"),
        seconds(
            "ffclock_owd_backward_bound_seconds",
            "Largest error of the delay from the reflector, by quantile of the run",
        ),
    ],
];
const ROUND_TRIP: Family =
    seconds("ffclock_owd_round_trip_seconds", "Round trip without the time in the reflector, by quantile of the run");
const MINUTE_PACKETS: Family =
    Family::new("ffclock_owd_minute_packets", Kind::Gauge, "", "Packets of the last minute by fate");
const OF_MINUTE: [[Family; 2]; 2] = [
    [
        seconds("ffclock_owd_minute_forward_delay_seconds", "Delay to the reflector, by quantile of the last minute"),
        seconds(
            "ffclock_owd_minute_forward_bound_seconds",
            "Largest error of the delay to the reflector, by quantile of the last minute",
        ),
    ],
    [
        seconds(
            "ffclock_owd_minute_backward_delay_seconds",
            "Delay from the reflector, by quantile of the last minute",
        ),
        seconds(
            "ffclock_owd_minute_backward_bound_seconds",
            "Largest error of the delay from the reflector, by quantile of the last minute",
        ),
    ],
];
const MINUTE_ROUND_TRIP: Family = seconds(
    "ffclock_owd_minute_round_trip_seconds",
    "Round trip without the time in the reflector, by quantile of the last minute",
);
const UNSTAMPED: Family = Family::new(
    "ffclock_owd_unstamped",
    Kind::Counter,
    "",
    "Missing stamps of the kernel: T1 and T4 here, T2 at the reflector",
);
const REORDERED: Family = Family::new("ffclock_owd_reordered", Kind::Counter, "", "Replies that were overtaken");
const REORDERED_BY_DIRECTION: Family = Family::new(
    "ffclock_owd_reordered_by_direction",
    Kind::Counter,
    "",
    "Replies that were overtaken, by the direction in which they were, where the reflector's count shows it",
);

/// A run until now.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    /// All of it.
    pub figures: &'a OwdFigures,
    /// The last minute; `None` without a packet.
    pub minute: Option<&'a MinuteFigures>,
    /// Packets that are no first reply.
    pub strays: &'a StrayCounts,
    /// Missing stamps.
    pub unstamped: &'a UnstampedCounts,
}

/// The whole text.
pub fn exposition(run: &RunView<'_>) -> String {
    let RunView { figures, minute, strays, unstamped } = *run;
    let mut text = Exposition::default();
    text.describe(&PACKETS);
    for (fate, count) in &figures.fates {
        text.labelled(&PACKETS, ("fate", fate), count);
    }
    directions(&mut text, &LOST, [figures.lost_forward, figures.lost_backward]);
    text.describe(&STRAYS);
    for (reason, count) in by_reason(strays) {
        text.labelled(&STRAYS, ("reason", reason), &count);
    }
    text.describe(&UNSTAMPED);
    for (time, count) in [("T1", unstamped.sent), ("T2", unstamped.reflected), ("T4", unstamped.received)] {
        text.labelled(&UNSTAMPED, ("time", time), &count);
    }
    text.value(&REORDERED, Some(figures.reordered as f64));
    directions(&mut text, &REORDERED_BY_DIRECTION, [figures.reordered_forward, figures.reordered_backward]);
    delays(&mut text, &OF_RUN, [figures.forward, figures.backward]);
    quantiles(&mut text, &ROUND_TRIP, figures.round_trip_ns);
    if let Some(minute) = minute {
        text.describe(&MINUTE_PACKETS);
        for (fate, count) in &minute.fates {
            text.labelled(&MINUTE_PACKETS, ("fate", fate), count);
        }
        delays(&mut text, &OF_MINUTE, [minute.forward, minute.backward]);
        quantiles(&mut text, &MINUTE_ROUND_TRIP, minute.round_trip_ns);
    }
    text.end()
}

/// What is known of both directions, or nothing.
fn directions(text: &mut Exposition, family: &Family, counts: [Option<u64>; 2]) {
    if let [Some(forward), Some(backward)] = counts {
        text.describe(family);
        text.labelled(family, ("direction", "forward"), &forward);
        text.labelled(family, ("direction", "backward"), &backward);
    }
}

fn delays(text: &mut Exposition, families: &[[Family; 2]; 2], directions: [Option<DirectionFigures>; 2]) {
    for ([delay, bound], figures) in families.iter().zip(directions) {
        quantiles(text, delay, figures.map(|figures| figures.delay_ns));
        quantiles(text, bound, figures.map(|figures| figures.bound_ns));
    }
}

fn by_reason(strays: &StrayCounts) -> [(&'static str, u64); 6] {
    let StrayCounts { duplicates, not_awaited, other_sessions, altered, foreign, unreachable } = *strays;
    [
        ("duplicate", duplicates),
        ("not-awaited", not_awaited),
        ("other-session", other_sessions),
        ("altered", altered),
        ("foreign", foreign),
        ("unreachable", unreachable),
    ]
}

fn quantiles(text: &mut Exposition, family: &Family, spread: Option<Spread>) {
    let Some(Spread { min, median, p99, p999, max, .. }) = spread else { return };
    text.describe(family);
    for (quantile, nanos) in [("0", min), ("0.5", median), ("0.99", p99), ("0.999", p999), ("1", max)] {
        text.labelled(family, ("quantile", quantile), &(nanos / 1e9));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::judge::{Delay, PacketFate};
    use crate::last_minute::LastMinute;
    use crate::record::OwdRow;
    use crate::summary::OwdSummary;
    use ffclock_units::{Bound, Counter, Moment, Span};

    fn text_of(summary: &OwdSummary, minute: Option<&MinuteFigures>) -> String {
        let unstamped = UnstampedCounts { sent: 4, ..UnstampedCounts::default() };
        let strays = StrayCounts { foreign: 3, ..StrayCounts::default() };
        exposition(&RunView { figures: &summary.figures(), minute, strays: &strays, unstamped: &unstamped })
    }

    #[test]
    fn an_empty_run_is_still_a_text() {
        let text = text_of(&OwdSummary::default(), None);
        assert!(text.contains("ffclock_owd_strays_total{reason=\"foreign\"} 3\n"), "{text}");
        assert!(text.contains("ffclock_owd_unstamped_total{time=\"T1\"} 4\n"), "{text}");
        assert!(text.ends_with("# EOF\n") && !text.contains("delay_seconds{"), "{text}");
        assert!(!text.contains("ffclock_owd_lost{") && !text.contains("minute"), "{text}");
    }

    /// Packet 1 never arrived at the reflector, the reply to packet 2 was lost, that to packet 3 overtaken.
    #[test]
    fn losses_and_the_last_minute_are_exported() {
        let (mut summary, mut minute) = (OwdSummary::default(), LastMinute::default());
        let now = Moment::from_origin(Span::from_secs(9));
        let delay = Delay { delay: Span::from_millis(2), bound: Bound::of(Span::from_micros(5)) };
        for (number, reflector_sequence) in [(0, Some(0)), (4, Some(3)), (3, Some(2)), (1, None), (2, None)] {
            let known = reflector_sequence.map(|_| delay);
            let row = OwdRow {
                number,
                fate: if known.is_some() { PacketFate::Measured } else { PacketFate::Lost },
                sent: Moment::from_origin(Span::from_secs(1_800_000_000)),
                forward: known,
                backward: known,
                round_trip: known.map(|delay| delay.delay),
                held: None,
                reflector_sequence,
                sent_counter: Counter::from_raw(0),
                received_counter: None,
            };
            summary.add(&row);
            minute.add(&row, now);
        }
        let text = text_of(&summary, minute.figures(now).as_ref());
        for line in [
            "ffclock_owd_lost{direction=\"forward\"} 1",
            "ffclock_owd_lost{direction=\"backward\"} 1",
            "ffclock_owd_reordered_total 1",
            "ffclock_owd_reordered_by_direction_total{direction=\"forward\"} 0",
            "ffclock_owd_reordered_by_direction_total{direction=\"backward\"} 1",
            "ffclock_owd_minute_packets{fate=\"lost\"} 2",
            "ffclock_owd_minute_backward_delay_seconds{quantile=\"1\"} 0.002",
            "ffclock_owd_forward_delay_seconds{quantile=\"1\"} 0.002",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
        }
    }
}

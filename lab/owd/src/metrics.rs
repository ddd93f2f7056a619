//! A run in the form of OpenMetrics.

use crate::sender::{StrayCounts, UnstampedCounts};
use crate::summary::{DirectionFigures, OwdSummary};
use ffclock_control::metrics::{Family, Kind};
use ffclock_service::Exposition;
use ffclock_statistics::Spread;

const PACKETS: Family = Family::new("ffclock_owd_packets", Kind::Counter, "", "Packets by fate");
const STRAYS: Family =
    Family::new("ffclock_owd_strays", Kind::Counter, "", "Packets that are no first reply, by reason");
const FORWARD: Family = Family::new(
    "ffclock_owd_forward_delay_seconds",
    Kind::Gauge,
    "seconds",
    "Delay to the reflector, by quantile of the run",
);
const BACKWARD: Family = Family::new(
    "ffclock_owd_backward_delay_seconds",
    Kind::Gauge,
    "seconds",
    "Delay from the reflector, by quantile of the run",
);
const FORWARD_BOUND: Family = Family::new(
    "ffclock_owd_forward_bound_seconds",
    Kind::Gauge,
    "seconds",
    "Largest error of the delay to the reflector, by quantile of the run",
);
const BACKWARD_BOUND: Family = Family::new(
    "ffclock_owd_backward_bound_seconds",
    Kind::Gauge,
    "seconds",
    "Largest error of the delay from the reflector, by quantile of the run",
);
const ROUND_TRIP: Family = Family::new(
    "ffclock_owd_round_trip_seconds",
    Kind::Gauge,
    "seconds",
    "Round trip without the time in the reflector, by quantile of the run",
);
const UNSTAMPED: Family = Family::new(
    "ffclock_owd_unstamped",
    Kind::Counter,
    "",
    "Missing stamps of the kernel: T1 and T4 here, T2 at the reflector",
);
const REORDERED: Family = Family::new("ffclock_owd_reordered", Kind::Counter, "", "Replies that were overtaken");

/// The whole text.
pub fn exposition(summary: &OwdSummary, strays: &StrayCounts, unstamped: &UnstampedCounts) -> String {
    let mut text = Exposition::default();
    let figures = summary.figures();
    text.describe(&PACKETS);
    for (fate, count) in &figures.fates {
        text.labelled(&PACKETS, ("fate", fate), count);
    }
    text.describe(&STRAYS);
    for (reason, count) in by_reason(strays) {
        text.labelled(&STRAYS, ("reason", reason), &count);
    }
    text.describe(&UNSTAMPED);
    for (time, count) in [("T1", unstamped.sent), ("T2", unstamped.reflected), ("T4", unstamped.received)] {
        text.labelled(&UNSTAMPED, ("time", time), &count);
    }
    text.value(&REORDERED, Some(figures.reordered as f64));
    let delay = |figures: DirectionFigures| figures.delay_ns;
    let bound = |figures: DirectionFigures| figures.bound_ns;
    quantiles(&mut text, &FORWARD, figures.forward.map(delay));
    quantiles(&mut text, &FORWARD_BOUND, figures.forward.map(bound));
    quantiles(&mut text, &BACKWARD, figures.backward.map(delay));
    quantiles(&mut text, &BACKWARD_BOUND, figures.backward.map(bound));
    quantiles(&mut text, &ROUND_TRIP, figures.round_trip_ns);
    text.end()
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

    #[test]
    fn an_empty_run_is_still_a_text() {
        let unstamped = UnstampedCounts { sent: 4, ..UnstampedCounts::default() };
        let strays = StrayCounts { foreign: 3, ..StrayCounts::default() };
        let text = exposition(&OwdSummary::default(), &strays, &unstamped);
        assert!(text.contains("ffclock_owd_unstamped_total{time=\"T1\"} 4\n"), "{text}");
        assert!(text.contains("ffclock_owd_strays_total{reason=\"foreign\"} 3\n"), "{text}");
        assert!(text.ends_with("# EOF\n") && !text.contains("delay_seconds{"), "{text}");
    }
}

//! A watch in the form of OpenMetrics.

use super::alarm::AlarmState;
use ffclock_control::metrics::{Family, Kind};
use ffclock_service::Exposition;
use ffclock_theta::import::PassedOver;
use ffclock_theta::watch::WatchFigures;

const OMEGA: Family = Family::new("ffclock_theta_omega", Kind::Gauge, "", "Largest ratio of tau+ to tau_r-, by window");
const DELAY: Family = Family::new(
    "ffclock_theta_delay_max_seconds",
    Kind::Gauge,
    "seconds",
    "Largest delay in transit (tau+), by window",
);
const RELEVANT: Family = Family::new(
    "ffclock_theta_relevant_min_seconds",
    Kind::Gauge,
    "seconds",
    "Smallest delay of the last message that let the receiver go on (tau_r-), by window",
);
const MESSAGES: Family = Family::new("ffclock_theta_messages", Kind::Counter, "", "Messages that count");
const ROUNDS: Family = Family::new("ffclock_theta_rounds", Kind::Counter, "", "Rounds that have begun");
const PASSED_OVER: Family = Family::new("ffclock_theta_passed_over", Kind::Counter, "", "Messages left out, by reason");
const STEPS_BACK: Family = Family::new(
    "ffclock_theta_steps_back",
    Kind::Counter,
    "",
    "Times that 16 messages in a row were earlier than those before",
);
const TOO_LONG_DELAY: Family = Family::new(
    "ffclock_theta_too_long_max_seconds",
    Kind::Gauge,
    "seconds",
    "Largest delay of a message of the last minute that took longer than messages may",
);
const ALARM: Family =
    Family::new("ffclock_theta_alarm", Kind::Gauge, "", "Whether a limit of the last minute is broken");

/// The whole text.
pub(super) fn exposition(figures: &WatchFigures, alarm: &AlarmState) -> String {
    let mut text = Exposition::default();
    let minute = figures.minute.as_ref();
    let omega = minute.and_then(|minute| minute.omega).map(|peak| peak.ratio.as_f64());
    windows(&mut text, &OMEGA, [omega, figures.omega.map(|ratio| ratio.as_f64())]);
    let seconds = |picoseconds: Option<i64>| picoseconds.map(|picoseconds| picoseconds as f64 * 1e-12);
    let delay = minute.and_then(|minute| minute.delay_max_ps);
    windows(&mut text, &DELAY, [delay, figures.delay_max_ps].map(seconds));
    let relevant = minute.and_then(|minute| minute.relevant_min_ps);
    windows(&mut text, &RELEVANT, [relevant, figures.relevant_min_ps].map(seconds));
    text.value(&MESSAGES, Some(figures.messages as f64));
    text.value(&ROUNDS, Some(figures.rounds as f64));
    text.describe(&PASSED_OVER);
    for (reason, count) in by_reason(figures) {
        text.labelled(&PASSED_OVER, ("reason", reason), &count);
    }
    text.value(&STEPS_BACK, Some(figures.steps_back as f64));
    if let Some(found) = figures.minute_too_long {
        text.value(&TOO_LONG_DELAY, seconds(Some(found.delay_max_ps)));
    }
    text.value(&ALARM, Some(f64::from(u8::from(alarm.is_raised()))));
    text.end()
}

fn windows(text: &mut Exposition, family: &Family, values: [Option<f64>; 2]) {
    text.describe(family);
    for (window, value) in ["minute", "run"].into_iter().zip(values) {
        if let Some(value) = value {
            text.labelled(family, ("window", window), &value);
        }
    }
}

fn by_reason(figures: &WatchFigures) -> [(&'static str, u64); 10] {
    let PassedOver { malformed, elsewhere, strangers, lost, repeated, out_of_order, too_long, remote } =
        figures.passed_over;
    [
        ("malformed", malformed),
        ("elsewhere", elsewhere),
        ("strangers", strangers),
        ("lost", lost),
        ("repeated", repeated),
        ("out-of-order", out_of_order),
        ("too-long", too_long),
        ("remote", remote),
        ("not-positive", figures.not_positive),
        ("late", figures.late),
    ]
}

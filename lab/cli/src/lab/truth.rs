//! The command-line form of the time that the reference server serves.

pub(crate) use ffclock_counters::known_time::KnownTime as Truth;

/// The options that [`super::server::Args`] reads back.
pub(crate) fn as_arguments(truth: &Truth) -> Vec<String> {
    let origin = truth.time.since_origin().units();
    let words = [
        ("--origin-counter", truth.origin.raw().to_string()),
        ("--origin-tai", origin.to_string()),
        ("--period-mantissa", truth.period.mantissa().to_string()),
        ("--period-shift", truth.period.shift().to_string()),
        ("--wander", truth.wander.to_string()),
        ("--swing", truth.swing.to_string()),
    ];
    words.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
}

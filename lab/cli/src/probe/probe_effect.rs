//! The tables of the probe effect.

use crate::columns::{table, us, way};
use ffclock_probe::effect::{Corrected, Effect, EffectLevel};
use ffclock_probe::kind::ProbeKind;
use std::fmt::Write;

const LEVELS: &str =
    ">PROBES|ADDED|>USER TO DRIVER (us)|>DRIVER TO USER (us)|>ONE SEND (us)|>COST OF THE ADDED (ns)|>95 % INTERVAL";

const CORRECTED: &str = "WAY|LOCATION|>MEDIAN|>PROBES BETWEEN|>THEIR COST|>CORRECTED";
/// The goal of the instrument for one probe [ns].
const GOAL_NS: f64 = 200.0;

/// What the probes cost.
pub(super) fn text(effect: &Effect) -> String {
    let mut page = format!(
        "\nprobe effect: medians with 0, 1, 2, ... probes between user space and the driver, {} rounds; costs by the wall time of sends\n",
        effect.rounds
    );
    page += &table(LEVELS, effect.levels.iter().map(level_row));
    for kind in [ProbeKind::Tracing, ProbeKind::Ebpf] {
        let Some(cost) = effect.levels.iter().find(|level| level.added == Some(kind)).and_then(|level| level.cost)
        else {
            continue;
        };
        let verdict = if cost.median_ns <= GOAL_NS { "at most" } else { "more than" };
        let _ = writeln!(page, "one {}: {:.0} ns, {verdict} {GOAL_NS:.0}", kind.name(), cost.median_ns);
    }
    page
}

fn level_row(level: &EffectLevel) -> Vec<String> {
    let cost = level.cost.map(|cost| (format!("{:.0}", cost.median_ns), cost.interval_ns));
    let (cost, interval) = cost
        .map_or(("-".to_owned(), "-".to_owned()), |(median, (low, high))| (median, format!("{low:.0} to {high:.0}")));
    vec![
        level.probes.to_string(),
        level.added.map_or("-", ProbeKind::name).to_owned(),
        us(level.out_ns.median),
        us(level.in_ns.median),
        us(level.send_ns.median),
        cost,
        interval,
    ]
}

/// Raw and corrected medians; nothing where the costs are not known.
pub(super) fn corrected(corrected: &[Corrected]) -> String {
    if corrected.is_empty() {
        return String::new();
    }
    format!(
        "\nmedian delays without what the probes between a location and the driver cost (us)\n{}",
        table(CORRECTED, corrected.iter().map(corrected_row))
    )
}

fn corrected_row(one: &Corrected) -> Vec<String> {
    let mut row =
        vec![way(one.site.direction()), one.site.name().to_owned(), us(one.median_ns), one.probes.to_string()];
    row.extend([one.cost_ns, one.corrected_ns].map(us));
    row
}

//! The table that compares the two ways to take kernel stamps.

use crate::columns::{table, us, way};
use ffclock_probe::agreement::MethodAgreement;
use ffclock_probe::effect::Effect;
use ffclock_probe::kind::ProbeKind;
use ffclock_probe::pairs::MappingError;
use std::fmt::Write;

/// The goal of the instrument [ns].
const GOAL_NS: f64 = 200.0;

const HEADING: &str = "WAY|LOCATION|>PACKETS|>TRACING|>EBPF|>EBPF - TRACING: 25 %|>MEDIAN|>75 %|>99 %";

/// Nothing where there is nothing to compare.
pub(super) fn text(agreements: &[MethodAgreement], mapping: Option<MappingError>, effect: Option<&Effect>) -> String {
    let Some(mapping) = mapping.filter(|_| !agreements.is_empty()) else { return String::new() };
    let mut page = String::from(
        "\nthe same packets by both methods: medians from user space to the location and back (us), differences (ns)\n",
    );
    page += &table(HEADING, agreements.iter().map(row));
    let _ = writeln!(page, "\n{}", verdict(agreements));
    if let Some(cost_ns) = effect.map(|effect| effect.cost_ns(ProbeKind::Tracing)) {
        let rest = widest(agreements.iter().map(|one| one.difference_ns.median - cost_ns));
        let _ = writeln!(
            page,
            "without the {cost_ns:.0} ns that one tracing event costs they {} within {rest:.0} ns",
            judge(rest)
        );
    }
    let _ = writeln!(
        page,
        "stamps by eBPF are mapped to the counter within +-{:.0} ns (half of them), +-{:.0} ns (all)",
        mapping.median_ns, mapping.worst_ns
    );
    page
}

fn verdict(agreements: &[MethodAgreement]) -> String {
    let widest = widest(agreements.iter().map(|one| one.difference_ns.median));
    format!(
        "the methods {} within {widest:.0} ns in the median (goal {GOAL_NS:.0}); at each place tracing stamps first, and its own cost is in \
         the difference",
        judge(widest)
    )
}

fn widest(differences: impl Iterator<Item = f64>) -> f64 {
    differences.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0)
}

fn judge(widest: f64) -> &'static str {
    if widest.abs() <= GOAL_NS { "agree" } else { "differ" }
}

fn row(one: &MethodAgreement) -> Vec<String> {
    let mut row = vec![way(one.site.direction()), one.site.name().to_owned(), one.count.to_string()];
    row.extend([us(one.tracing_ns), us(one.ebpf_ns)]);
    let difference = &one.difference_ns;
    row.extend([difference.p25, difference.median, difference.p75, difference.p99].map(|ns| format!("{ns:.0}")));
    row
}

//! The tables of what lies outside the host, and of sites that are mixed.

use crate::columns::{table, us};
use ffclock_probe::findings::{MixedPair, WireTrip};
use ffclock_statistics::Spread;
use std::fmt::Write;

const OUTSIDE: &str = "OUTSIDE THE HOST|>MIN|>25 %|>MEDIAN|>75 %|>99 %|>MAX";

/// The round trip of the network, and what lies between the wire and the reference.
pub(super) fn text(wire: &WireTrip) -> String {
    let row = |name: &str, spread: &Spread| {
        let Spread { min, p25, median, p75, p99, max, .. } = *spread;
        let figures = [min, p25, median, p75, p99, max].map(us);
        [&[name.to_owned()][..], &figures].concat()
    };
    let mut page = table(
        OUTSIDE,
        [
            row("round trip of the network", &wire.network_ns),
            row("added by the device", &wire.device_ns),
            row("reference to wire, out", &wire.out_ns),
            row("wire to reference, in", &wire.in_ns),
        ],
    );
    let order = if wire.is_ordered { "kept" } else { "BROKEN: no figure against it means anything" };
    let _ = writeln!(
        page,
        "the reference itself: asymmetry {} us (95 %: {} to {}), 99 % within {} us of the nearest, order of events {order}\n",
        us(wire.asymmetry_ns),
        us(wire.interval_ns.0),
        us(wire.interval_ns.1),
        us(wire.reach_ns)
    );
    page
}

/// A row for each site out, a column for each site in.
pub(super) fn mixed(pairs: &[MixedPair]) -> String {
    let mut heading = "ASYMMETRY (OUT \\ IN)".to_owned();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let first = pairs.first().map(|pair| pair.out);
    for pair in pairs {
        if Some(pair.out) == first {
            let _ = write!(heading, "|>{}", pair.back.name());
        }
        let name = pair.out.name();
        if rows.last().and_then(|row| row.first()).is_none_or(|last| last != name) {
            rows.push(vec![name.to_owned()]);
        }
        let cell = if pair.is_ordered { us(pair.asymmetry_ns) } else { "impossible".to_owned() };
        if let Some(row) = rows.last_mut() {
            row.push(cell);
        }
    }
    if rows.is_empty() { String::new() } else { table(&heading, rows) + "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_probe::site::Site;

    #[test]
    fn pairs_are_a_matrix() {
        let pair = |out, back, asymmetry_ns| MixedPair {
            out,
            back,
            asymmetry_ns,
            interval_ns: (0.0, 0.0),
            limit_ns: 0.0,
            is_ordered: asymmetry_ns < 3e3,
        };
        let pairs = [
            pair(Site::TapOut, Site::TapIn, 1e3),
            pair(Site::TapOut, Site::ReadIn, 2e3),
            pair(Site::DriverOut, Site::TapIn, 3e3),
            pair(Site::DriverOut, Site::ReadIn, -4e3),
        ];
        let expected = "ASYMMETRY (OUT \\ IN)         tap   read\n\
                        tap                         1.00   2.00\n\
                        driver                impossible  -4.00\n\n";
        assert_eq!(mixed(&pairs), expected);
        assert_eq!(mixed(&[]), "");
    }
}

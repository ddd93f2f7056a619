//! The findings of the paper on FreeBSD 9, compared with the measurement on this host (sections IV and V, figures 3
//! to 5).

use crate::digest::{DelaySummary, Digest, load_name, mean_of};
use crate::distances::SampledNs;
use crate::findings::Plausibility;
use crate::payload::Direction;
use crate::site::{Site, TimestampingLocation};
use ffclock_counters::campaign::Load;
use serde::Serialize;
use std::cmp::Ordering;

/// Medians and spreads that are no further apart are level: half of the most that mapping a software stamp to the
/// counter may err [ns].
const LEVEL_NS: f64 = 250.0;
/// An asymmetry that changes by no more is steady: the paper's "about 1 us".
const STEADY_NS: f64 = 1e3;

/// Whether a finding of the paper holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaperVerdict {
    /// It does.
    Confirmed,
    /// It does not.
    NotOnThisKernel,
    /// The intervals of the figures overlap: more packets may show it.
    Undecided,
    /// What would show it was not measured.
    NotMeasured,
}

impl PaperVerdict {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            PaperVerdict::Confirmed => "confirmed",
            PaperVerdict::NotOnThisKernel => "not on this kernel",
            PaperVerdict::Undecided => "undecided",
            PaperVerdict::NotMeasured => "not measured",
        }
    }
}

/// A finding of the paper, and whether it holds here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PaperClaim {
    /// What the paper says.
    pub claim: String,
    /// Where it says so.
    pub source: &'static str,
    /// Whether it holds.
    pub verdict: PaperVerdict,
    /// The numbers that show it, or what is missing.
    pub evidence: String,
}

/// The locations that programs stamp at, from the best of the paper to its worst.
const LOCATIONS: [TimestampingLocation; 3] =
    [TimestampingLocation::Tap, TimestampingLocation::Socket, TimestampingLocation::User];
const WAYS: [Direction; 2] = [Direction::Outgoing, Direction::Incoming];

/// All of them, in the order of the paper.
pub fn claims(digest: &Digest<'_>) -> Vec<PaperClaim> {
    let view = PaperView { digest };
    let mut claims = Vec::new();
    for way in WAYS {
        claims.push(view.tap_is_best(way));
        claims.push(view.user_is_worst(way));
    }
    claims.extend([
        view.order_under_stress(),
        view.outgoing_is_worse(),
        view.stress_orders(),
        view.minima_drop(),
        view.ip_spares_incoming(),
        view.socket_out_breaks_causality(),
        view.tap_asymmetry_is_steady(),
    ]);
    claims
}

fn site(location: TimestampingLocation, way: Direction) -> Site {
    let (out, back) = location.sites();
    if way == Direction::Outgoing { out } else { back }
}

fn word(way: Direction) -> &'static str {
    if way == Direction::Outgoing { "out" } else { "in" }
}

fn us(ns: f64) -> String {
    format!("{:.2}", ns / 1e3)
}

/// The distance of a delay from the boundary, on whichever side.
fn away(nearest: SampledNs) -> SampledNs {
    if nearest.ns >= 0.0 {
        return nearest;
    }
    let (low, high) = nearest.interval_ns;
    SampledNs { ns: -nearest.ns, interval_ns: (-high, -low) }
}

/// What counts as equal is not larger.
fn level(figure: SampledNs) -> SampledNs {
    let (low, high) = figure.interval_ns;
    SampledNs { ns: figure.ns + LEVEL_NS, interval_ns: (low + LEVEL_NS, high + LEVEL_NS) }
}

/// A verdict and the numbers that show it.
struct Judgement {
    verdict: PaperVerdict,
    evidence: String,
}

impl Judgement {
    fn missing(what: &str) -> Self {
        Judgement { verdict: PaperVerdict::NotMeasured, evidence: what.to_owned() }
    }

    fn claim(self, text: impl Into<String>, source: &'static str) -> PaperClaim {
        PaperClaim { claim: text.into(), source, verdict: self.verdict, evidence: self.evidence }
    }
}

/// A statement about this host, with its numbers.
struct Statement {
    verdict: PaperVerdict,
    words: String,
}

/// Of what does not hold, and of what does.
const VERDICTS: [PaperVerdict; 2] = [PaperVerdict::NotOnThisKernel, PaperVerdict::Confirmed];

impl Statement {
    /// That each figure is larger than the one before it.
    fn rising(figures: &[SampledNs], words: String) -> Self {
        let pairs: Vec<_> = figures.windows(2).map(|pair| (pair[0], pair[1])).collect();
        Statement::ordered(&pairs, words)
    }

    /// That the second figure of each pair is the larger one.
    fn ordered(pairs: &[(SampledNs, SampledNs)], words: String) -> Self {
        let steps: Vec<_> = pairs.iter().map(|(small, large)| small.compare(*large)).collect();
        let verdict = if steps.contains(&Some(Ordering::Greater)) {
            PaperVerdict::NotOnThisKernel
        } else if steps.contains(&None) {
            PaperVerdict::Undecided
        } else {
            PaperVerdict::Confirmed
        };
        Statement { verdict, words }
    }

    /// That two figures are no further apart than `limit_ns`, as far as their intervals say.
    fn steady(first: SampledNs, second: SampledNs, limit_ns: f64) -> PaperVerdict {
        let (low, high) = (second.interval_ns.0 - first.interval_ns.1, second.interval_ns.1 - first.interval_ns.0);
        if low >= -limit_ns && high <= limit_ns {
            PaperVerdict::Confirmed
        } else if high < -limit_ns || low > limit_ns {
            PaperVerdict::NotOnThisKernel
        } else {
            PaperVerdict::Undecided
        }
    }

    fn judged(self) -> Judgement {
        Judgement { verdict: self.verdict, evidence: self.words }
    }
}

/// Of several statements of the same kind all have to hold: one that does not refutes them, one that is open leaves
/// them open.
fn all_of(statements: &[Statement], otherwise: &str) -> Judgement {
    if statements.is_empty() {
        return Judgement::missing(otherwise);
    }
    let count = |verdict| statements.iter().filter(|statement| statement.verdict == verdict).count();
    let (kept, broken) = (count(PaperVerdict::Confirmed), count(PaperVerdict::NotOnThisKernel));
    let open = statements.len() - kept - broken;
    let words: Vec<&str> = statements.iter().map(|statement| statement.words.as_str()).collect();
    let counted = if open > 0 { format!(" ({open} undecided)") } else { String::new() };
    let evidence = format!("{kept} of {}{counted}: {}", statements.len(), words.join("; "));
    let verdict = match (broken, open) {
        (0, 0) => PaperVerdict::Confirmed,
        (0, _) => PaperVerdict::Undecided,
        _ => PaperVerdict::NotOnThisKernel,
    };
    Judgement { verdict, evidence }
}

struct PaperView<'a> {
    digest: &'a Digest<'a>,
}

impl PaperView<'_> {
    fn quiet(&self, location: TimestampingLocation, way: Direction) -> Option<DelaySummary> {
        self.digest.site(None, site(location, way))
    }

    /// Distance from the reference and spread of each location when the machine is quiet.
    fn three(&self, way: Direction) -> Option<[DelaySummary; 3]> {
        let [tap, socket, user] = LOCATIONS.map(|location| self.quiet(location, way));
        Some([tap?, socket?, user?])
    }

    fn words(way: Direction, three: &[DelaySummary; 3]) -> String {
        let one = |(location, summary): (&TimestampingLocation, &DelaySummary)| {
            format!("{} {} (IQR {})", location.name(), us(summary.median.ns), us(summary.iqr.ns))
        };
        let all: Vec<String> = LOCATIONS.iter().zip(three).map(one).collect();
        format!("median {} us: {}", word(way), all.join(", "))
    }

    fn tap_is_best(&self, way: Direction) -> PaperClaim {
        self.of_three(way, "the tap has the smallest and least variable delay", |[tap, others @ ..]| {
            let pairs =
                |other: &DelaySummary| [(away(tap.median), level(away(other.median))), (tap.iqr, level(other.iqr))];
            others.iter().flat_map(pairs).collect()
        })
    }

    fn user_is_worst(&self, way: Direction) -> PaperClaim {
        self.of_three(way, "user space has the largest and most variable delay", |[others @ .., user]| {
            let pairs = |other: &DelaySummary| [(away(other.median), user.median), (other.iqr, user.iqr)];
            others.iter().flat_map(pairs).collect()
        })
    }

    /// `pairs` of figures of the three, the smaller one first.
    fn of_three(
        &self,
        way: Direction,
        what: &str,
        pairs: fn(&[DelaySummary; 3]) -> Vec<(SampledNs, SampledNs)>,
    ) -> PaperClaim {
        let judged = |three| Statement::ordered(&pairs(&three), Self::words(way, &three)).judged();
        let found = self.three(way).map(judged);
        let found = found.unwrap_or_else(|| Judgement::missing("needs tap, socket and user space"));
        found.claim(format!("{what} on the way {}", word(way)), "IV, figures 3 and 4")
    }

    fn loads(&self) -> Vec<Load> {
        self.digest.loads().into_iter().flatten().collect()
    }

    fn order_under_stress(&self) -> PaperClaim {
        let mut statements = Vec::new();
        for load in self.loads() {
            let median = |location, way| Some(self.digest.site(Some(load), site(location, way))?.median);
            let (out, back) = (Direction::Outgoing, Direction::Incoming);
            let (tap_out, user_out) = (median(TimestampingLocation::Tap, out), median(TimestampingLocation::User, out));
            let in_three = LOCATIONS.map(|location| median(location, back));
            let (Some(tap_out), Some(user_out), [Some(tap), Some(socket), Some(user)]) = (tap_out, user_out, in_three)
            else {
                continue;
            };
            let words = format!(
                "{load} out tap {}, user {}, in tap {}, socket {}, user {} us",
                us(tap_out.ns),
                us(user_out.ns),
                us(tap.ns),
                us(socket.ns),
                us(user.ns)
            );
            let pairs = [(tap_out, user_out), (tap, level(socket)), (socket, user)];
            statements.push(Statement::ordered(&pairs, words));
        }
        let text = "every stress keeps the order: tap before user space going out; tap, socket, user space coming in";
        all_of(&statements, "needs --stress, tap, socket and user space").claim(text, "figure 3")
    }

    fn outgoing_is_worse(&self) -> PaperClaim {
        let mut statements = Vec::new();
        for location in [TimestampingLocation::Tap, TimestampingLocation::User] {
            let both = (self.quiet(location, Direction::Outgoing), self.quiet(location, Direction::Incoming));
            if let (Some(out), Some(back)) = both {
                let words = format!(
                    "{} out {} (IQR {}), in {} (IQR {}) us",
                    location.name(),
                    us(out.median.ns),
                    us(out.iqr.ns),
                    us(back.median.ns),
                    us(back.iqr.ns)
                );
                let pairs = [(back.median, out.median), (back.iqr, out.iqr)];
                statements.push(Statement::ordered(&pairs, words));
            }
        }
        let text = "delays are larger and more variable on the way out than on the way in";
        all_of(&statements, "needs the tap or user space").claim(text, "IV, direction")
    }

    /// Every location and direction that was stamped quiet and under all of `loads`, with its spreads in that order.
    fn series<T>(&self, loads: &[Load], of: fn(&DelaySummary) -> T) -> Vec<(String, Vec<T>)> {
        let mut series = Vec::new();
        for location in LOCATIONS {
            for way in WAYS {
                let place = site(location, way);
                let all = core::iter::once(None).chain(loads.iter().copied().map(Some));
                let values: Option<Vec<T>> =
                    all.map(|load| self.digest.site(load, place).map(|summary| of(&summary))).collect();
                series.extend(values.map(|values| (format!("{} {}", location.name(), word(way)), values)));
            }
        }
        series
    }

    fn stress_orders(&self) -> PaperClaim {
        let series = self.series(&[Load::Io, Load::Syscall], |summary| summary.reach);
        let statements: Vec<Statement> = series
            .into_iter()
            .map(|(name, reaches)| {
                let [quiet, io, syscall] = [0, 1, 2].map(|place: usize| us(reaches[place].ns));
                Statement::rising(&reaches, format!("{name} quiet {quiet}, io {io}, syscall {syscall} us"))
            })
            .collect();
        let text = "system calls disrupt more than disk activity, and that more than quiet (99 % beyond the nearest)";
        all_of(&statements, "needs --stress io,syscall").claim(text, "IV, stress")
    }

    fn minima_drop(&self) -> PaperClaim {
        let mut statements = Vec::new();
        for load in [Load::Syscall, Load::Ip] {
            for (name, nearest) in self.series(&[load], |summary| summary.nearest) {
                let words = format!("{load} {name} {} to {}", us(nearest[0].ns), us(nearest[1].ns));
                statements.push(Statement::rising(&[nearest[1], nearest[0]].map(away), words));
            }
        }
        let text = "smallest delays shrink under system calls and IP traffic (hot caches)";
        all_of(&statements, "needs --stress syscall,ip").claim(text, "IV, stress")
    }

    fn ip_spares_incoming(&self) -> PaperClaim {
        let series = self.series(&[Load::Ip], |summary| summary.median);
        let spared = series.iter().filter(|(name, _)| name == "tap in" || name == "socket in");
        let statements: Vec<Statement> = spared
            .map(|(name, values)| {
                let words = format!("{name} {} to {} us", us(values[0].ns), us(values[1].ns));
                let limit_ns = LEVEL_NS.max(0.2 * values[0].ns.abs());
                Statement { verdict: Statement::steady(values[0], values[1], limit_ns), words }
            })
            .collect();
        let text = "IP traffic leaves tap and socket almost as they are on the way in (medians)";
        all_of(&statements, "needs --stress ip, and the tap").claim(text, "IV, stress")
    }

    /// The paper's stamp is taken from the multicast copy that comes back over loopback. That of Linux's own socket is
    /// another mechanism, taken in the driver, and shows nothing about it.
    fn socket_out_breaks_causality(&self) -> PaperClaim {
        let text = "the socket's stamp on the way out can come after the packet is back";
        let delays = || self.digest.all().flat_map(|(_, findings)| &findings.delays);
        let pairs = [(Site::LoopOut, Site::DriverIn), (Site::LoopOut, Site::SocketIn)];
        let orders = self.digest.all().flat_map(|(_, findings)| &findings.causality);
        let ours = orders.filter(|order| pairs.contains(&(order.first, order.second)));
        let (packets, broken) =
            ours.fold((0, 0), |(packets, broken), order| (packets.max(order.count), broken + order.violations));
        let earliest = delays().filter(|delay| delay.site == Site::LoopOut).map(|delay| delay.delay_ns.min);
        let Some(earliest) = earliest.reduce(f64::min).filter(|_| packets > 0) else {
            return Judgement::missing("needs --multicast, and the socket or the driver").claim(text, "IV and V");
        };
        let words = format!(
            "{broken} violations; the stamp of the multicast copy lies up to {} us behind the driver's boundary (the paper: 356 us)",
            us((-earliest).max(0.0))
        );
        Statement { verdict: VERDICTS[usize::from(broken > 0)], words }.judged().claim(text, "IV and V")
    }

    fn tap_asymmetry_is_steady(&self) -> PaperClaim {
        let text = "the tap's asymmetry hardly depends on stress (about 1 us)";
        let of = |load| {
            let all = self.digest.asymmetries(load, TimestampingLocation::Tap);
            let sound = all.iter().filter(|one| one.verdict != Plausibility::CausalityFault);
            mean_of(sound.map(|one| SampledNs { ns: one.asymmetry_ns, interval_ns: one.interval_ns }))
        };
        let loads = self.digest.loads();
        let values: Vec<(Option<Load>, SampledNs)> =
            loads.into_iter().filter_map(|load| Some((load, of(load)?))).collect();
        let Some((_, quiet)) = values.iter().find(|(load, _)| load.is_none()).filter(|_| values.len() > 1) else {
            return Judgement::missing("needs --stress, and the tap").claim(text, "V, figure 5");
        };
        let statements: Vec<Statement> = values
            .iter()
            .filter(|(load, _)| load.is_some())
            .map(|(load, value)| {
                let words = format!("quiet {}, {} {} us", us(quiet.ns), load_name(*load), us(value.ns));
                Statement { verdict: Statement::steady(*quiet, *value, STEADY_NS), words }
            })
            .collect();
        all_of(&statements, "needs --stress, and the tap").claim(text, "V, figure 5")
    }
}

#[cfg(test)]
mod tests;

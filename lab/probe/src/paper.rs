//! What the paper found on FreeBSD 9, held against what was measured here (sections IV and V, figures 3 to 5).

use crate::digest::{Digest, Summary, load_name};
use crate::findings::Plausibility;
use crate::payload::Direction;
use crate::site::{Location, Site};
use ffclock_counters::campaign::Load;
use serde::Serialize;

/// Medians and spreads that are no further apart are level: half of the most that mapping a software stamp to the counter
/// may err [ns].
const LEVEL_NS: f64 = 250.0;

/// Whether a finding of the paper holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Confirmed,
    /// It does not.
    NotOnThisKernel,
    /// What would show it was not measured.
    NotMeasured,
}

impl Verdict {
    /// For tables.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::NotOnThisKernel => "not on this kernel",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// What a statement comes to that does not hold, or does.
const VERDICTS: [Verdict; 2] = [Verdict::NotOnThisKernel, Verdict::Confirmed];

/// A finding of the paper, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// What the paper says.
    pub claim: String,
    /// Where it says so.
    pub source: &'static str,
    /// Whether it holds.
    pub verdict: Verdict,
    /// The numbers that show it, or what is missing.
    pub evidence: String,
}

/// The locations that programs stamp at, from the best of the paper to its worst.
const LOCATIONS: [Location; 3] = [Location::Tap, Location::Socket, Location::User];
const WAYS: [Direction; 2] = [Direction::Outgoing, Direction::Incoming];

/// All of them, in the order of the paper.
pub fn claims(digest: &Digest<'_>) -> Vec<Claim> {
    let view = View { digest };
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

fn site(location: Location, way: Direction) -> Site {
    let (out, back) = location.sites();
    if way == Direction::Outgoing { out } else { back }
}

fn word(way: Direction) -> &'static str {
    if way == Direction::Outgoing { "out" } else { "in" }
}

fn us(ns: f64) -> String {
    format!("{:.2}", ns / 1e3)
}

fn claim(text: impl Into<String>, source: &'static str, (verdict, evidence): (Verdict, String)) -> Claim {
    Claim { claim: text.into(), source, verdict, evidence }
}

fn missing(what: &str) -> (Verdict, String) {
    (Verdict::NotMeasured, what.to_owned())
}

/// Of several statements of the same kind: all have to hold.
fn all_of(told: &[(bool, String)], otherwise: &str) -> (Verdict, String) {
    if told.is_empty() {
        return missing(otherwise);
    }
    let kept = told.iter().filter(|(holds, _)| *holds).count();
    let words: Vec<&str> = told.iter().map(|(_, words)| words.as_str()).collect();
    (VERDICTS[usize::from(kept == told.len())], format!("{kept} of {}: {}", told.len(), words.join("; ")))
}

struct View<'a> {
    digest: &'a Digest<'a>,
}

impl View<'_> {
    fn quiet(&self, location: Location, way: Direction) -> Option<Summary> {
        self.digest.site(None, site(location, way))
    }

    /// Distance from the reference and spread of each location when the machine is quiet.
    fn three(&self, way: Direction) -> Option<[Summary; 3]> {
        let [tap, socket, user] = LOCATIONS.map(|location| self.quiet(location, way));
        Some([tap?, socket?, user?])
    }

    fn words(way: Direction, three: &[Summary; 3]) -> String {
        let one = |(location, summary): (&Location, &Summary)| {
            format!("{} {} (IQR {})", location.name(), us(summary.median_ns), us(summary.iqr_ns))
        };
        let all: Vec<String> = LOCATIONS.iter().zip(three).map(one).collect();
        format!("median {} us: {}", word(way), all.join(", "))
    }

    fn tap_is_best(&self, way: Direction) -> Claim {
        let text = format!("the tap has the smallest and least variable delay on the way {}", word(way));
        let found = self.three(way).map(|three| {
            let [tap, others @ ..] = &three;
            let holds = others.iter().all(|other| {
                tap.median_ns.abs() <= other.median_ns.abs() + LEVEL_NS && tap.iqr_ns <= other.iqr_ns + LEVEL_NS
            });
            (VERDICTS[usize::from(holds)], Self::words(way, &three))
        });
        claim(text, "IV, figures 3 and 4", found.unwrap_or_else(|| missing("needs tap, socket and user space")))
    }

    fn user_is_worst(&self, way: Direction) -> Claim {
        let text = format!("user space has the largest and most variable delay on the way {}", word(way));
        let found = self.three(way).map(|three| {
            let [others @ .., user] = &three;
            let holds =
                others.iter().all(|other| user.median_ns >= other.median_ns.abs() && user.iqr_ns >= other.iqr_ns);
            (VERDICTS[usize::from(holds)], Self::words(way, &three))
        });
        claim(text, "IV, figures 3 and 4", found.unwrap_or_else(|| missing("needs tap, socket and user space")))
    }

    fn loads(&self) -> Vec<Load> {
        self.digest.loads().into_iter().flatten().collect()
    }

    fn order_under_stress(&self) -> Claim {
        let mut told = Vec::new();
        for load in self.loads() {
            let median = |location, way| Some(self.digest.site(Some(load), site(location, way))?.median_ns);
            let (out, back) = (Direction::Outgoing, Direction::Incoming);
            let (tap_out, user_out) = (median(Location::Tap, out), median(Location::User, out));
            let in_three = LOCATIONS.map(|location| median(location, back));
            let (Some(tap_out), Some(user_out), [Some(tap), Some(socket), Some(user)]) = (tap_out, user_out, in_three)
            else {
                continue;
            };
            let holds = tap_out < user_out && tap <= socket + LEVEL_NS && socket < user;
            let words = format!(
                "{load} out tap {}, user {}, in tap {}, socket {}, user {} us",
                us(tap_out),
                us(user_out),
                us(tap),
                us(socket),
                us(user)
            );
            told.push((holds, words));
        }
        let text = "every stress keeps the order: tap before user space going out; tap, socket, user space coming in";
        claim(text, "figure 3", all_of(&told, "needs --stress, tap, socket and user space"))
    }

    fn outgoing_is_worse(&self) -> Claim {
        let mut told = Vec::new();
        for location in [Location::Tap, Location::User] {
            let both = (self.quiet(location, Direction::Outgoing), self.quiet(location, Direction::Incoming));
            if let (Some(out), Some(back)) = both {
                let holds = out.median_ns > back.median_ns && out.iqr_ns > back.iqr_ns;
                let words = format!(
                    "{} out {} (IQR {}), in {} (IQR {}) us",
                    location.name(),
                    us(out.median_ns),
                    us(out.iqr_ns),
                    us(back.median_ns),
                    us(back.iqr_ns)
                );
                told.push((holds, words));
            }
        }
        let text = "delays are larger and more variable on the way out than on the way in";
        claim(text, "IV, direction", all_of(&told, "needs the tap or user space"))
    }

    /// Every location and direction that was stamped quiet and under all of `loads`, with its spreads in that order.
    fn series(&self, loads: &[Load], of: fn(&Summary) -> f64) -> Vec<(String, Vec<f64>)> {
        let mut series = Vec::new();
        for location in LOCATIONS {
            for way in WAYS {
                let place = site(location, way);
                let all = core::iter::once(None).chain(loads.iter().copied().map(Some));
                let values: Option<Vec<f64>> =
                    all.map(|load| self.digest.site(load, place).map(|summary| of(&summary))).collect();
                series.extend(values.map(|values| (format!("{} {}", location.name(), word(way)), values)));
            }
        }
        series
    }

    fn stress_orders(&self) -> Claim {
        let series = self.series(&[Load::Io, Load::Syscall], |summary| summary.p99_ns - summary.min_ns);
        let told: Vec<(bool, String)> = series
            .into_iter()
            .map(|(name, values)| {
                let [quiet, io, syscall] = [values[0], values[1], values[2]];
                (
                    quiet < io && io < syscall,
                    format!("{name} quiet {}, io {}, syscall {} us", us(quiet), us(io), us(syscall)),
                )
            })
            .collect();
        let text = "system calls disrupt more than disk activity, and that more than quiet (99 % less minimum)";
        claim(text, "IV, stress", all_of(&told, "needs --stress io,syscall"))
    }

    fn minima_drop(&self) -> Claim {
        let mut told = Vec::new();
        for load in [Load::Syscall, Load::Ip] {
            for (name, values) in self.series(&[load], |summary| summary.min_ns) {
                told.push((values[1] < values[0], format!("{load} {name} {} to {}", us(values[0]), us(values[1]))));
            }
        }
        let text = "smallest delays shrink under system calls and IP traffic (hot caches)";
        claim(text, "IV, stress", all_of(&told, "needs --stress syscall,ip"))
    }

    fn ip_spares_incoming(&self) -> Claim {
        let series = self.series(&[Load::Ip], |summary| summary.median_ns);
        let spared = series.iter().filter(|(name, _)| name == "tap in" || name == "socket in");
        let told: Vec<(bool, String)> = spared
            .map(|(name, values)| {
                let change = values[1] - values[0];
                let words = format!("{name} {} to {} us", us(values[0]), us(values[1]));
                (change.abs() <= LEVEL_NS.max(0.2 * values[0].abs()), words)
            })
            .collect();
        let text = "IP traffic leaves tap and socket almost as they are on the way in (medians)";
        claim(text, "IV, stress", all_of(&told, "needs --stress ip, and the tap"))
    }

    /// The paper's stamp is taken from a copy that comes back over loopback, at any time; Linux takes it in the driver.
    fn socket_out_breaks_causality(&self) -> Claim {
        let text = "the socket's stamp on the way out can come after the packet is back";
        let pairs = [(Site::SocketOut, Site::DriverIn), (Site::SocketOut, Site::SocketIn)];
        let orders = self.digest.all().flat_map(|(_, findings)| &findings.causality);
        let ours = orders.filter(|order| pairs.contains(&(order.first, order.second)));
        let (packets, broken) =
            ours.fold((0, 0), |(packets, broken), order| (packets.max(order.count), broken + order.violations));
        let smallest = self.digest.all().flat_map(|(_, findings)| &findings.delays);
        let earliest = smallest.filter(|delay| delay.site == Site::SocketOut).map(|delay| delay.delay_ns.min);
        let Some(earliest) = earliest.reduce(f64::min).filter(|_| packets > 0) else {
            return claim(text, "IV and V", missing("needs the socket's stamps and the driver"));
        };
        let evidence = format!(
            "{broken} violations; the stamp lies up to {} us behind the driver's boundary (the paper: 356 us)",
            us((-earliest).max(0.0))
        );
        claim(text, "IV and V", (VERDICTS[usize::from(broken > 0)], evidence))
    }

    fn tap_asymmetry_is_steady(&self) -> Claim {
        let text = "the tap's asymmetry hardly depends on stress (about 1 us)";
        let of = |load| {
            let all = self.digest.asymmetries(load, Location::Tap);
            let sound = all.iter().filter(|one| one.verdict != Plausibility::CausalityFault);
            let values: Vec<f64> = sound.map(|one| one.asymmetry_ns).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let loads = self.digest.loads();
        let values: Vec<(Option<Load>, f64)> = loads.into_iter().filter_map(|load| Some((load, of(load)?))).collect();
        let Some((_, quiet)) = values.iter().find(|(load, _)| load.is_none()).filter(|_| values.len() > 1) else {
            return claim(text, "V, figure 5", missing("needs --stress, and the tap"));
        };
        let holds = values.iter().all(|(_, value)| (value - quiet).abs() <= 1e3);
        let words: Vec<String> =
            values.iter().map(|(load, value)| format!("{} {}", load_name(*load), us(*value))).collect();
        claim(text, "V, figure 5", (VERDICTS[usize::from(holds)], format!("{} us", words.join(", "))))
    }
}

#[cfg(test)]
mod tests;

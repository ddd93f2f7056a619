//! Where to stamp on this host, in plain words.
//!
//! A clock filters what varies and keeps what is constant, so the best location is the one whose delays reach least far
//! beyond the nearest to the driver, summed over both directions, in the worst of the phases. What these nearest delays
//! leave is the asymmetry, which is stated with all that is known of it. A location whose stamps break causality is
//! never advised.
//!
//! Each reach has two 95 % intervals. The one that is stated is for another run, in which the rest of the host may do
//! something else (`OTHER_LOAD`). The other one is for the host as it was during this run. It decides whether
//! locations can be distinguished, since other load moves all of them together. Where those of the best and of others
//! overlap or nearly do, another run may well reverse their order: then all of these are named, and the simplest of
//! them is advised, so that runs advise alike.

use crate::digest::{Digest, load_name};
use crate::distances::SampledNs;
use crate::findings::{Asymmetry, Plausibility};
use crate::site::{Site, TimestampingLocation};
use ffclock_counters::campaign::Load;
use serde::Serialize;

/// With fewer packets a single packet decides the 99th percentile.
const FEW_PACKETS: usize = 1000;
/// The gap between the intervals of two locations must be more than this [ns], half a microsecond each way: mapping a
/// stamp of the socket or the tap to the counter may err as much, and two runs need not err alike.
const LEVEL_NS: f64 = 1_000.0;
/// What other programs do to a reach from one run to the next, which a run of seconds does not see: a factor within
/// which 95 % of other runs lie. In 300 s under load that came and went (docs/probe.md), 98 % of all pairs of runs
/// differed by less.
const OTHER_LOAD: f64 = 2.0;
/// Stress that widens delays by less than this share is not mentioned.
const NOTABLE: f64 = 1.5;

/// The findings about one location.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LocationCandidate {
    /// The location that this is about.
    pub location: TimestampingLocation,
    /// How far its delays reach beyond the nearest to the driver, out and in together, 99 %, when the machine is quiet
    /// [ns].
    pub reach_ns: f64,
    /// How far another run finds that they reach, 95 %, in the phase in which they reach farthest [ns].
    pub worst_interval_ns: (f64, f64),
    /// The same while the rest of the host does what it did during this run [ns].
    pub steady_interval_ns: (f64, f64),
    /// How far they reach under each load [ns].
    pub under_loads: Vec<(Load, f64)>,
    /// Its asymmetry when the machine is quiet; `None` where it is the reference itself.
    pub asymmetry: Option<Asymmetry>,
    /// Whether any phase found its stamps to break causality.
    pub is_broken: bool,
}

/// Where to stamp on this host, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Where to stamp; `None` where nothing sound was measured.
    pub location: Option<TimestampingLocation>,
    /// What a program sets to stamp there.
    pub how: Option<String>,
    /// The locations that cannot be distinguished from the best, itself among them; empty where it stands alone.
    pub tie: Vec<TimestampingLocation>,
    /// The reasons, a sentence each.
    pub reasons: Vec<String>,
    /// The locations that were compared, best first.
    pub candidates: Vec<LocationCandidate>,
}

/// Where programs can stamp without a reference of their own, the simplest first: the socket needs no right, user space
/// has the program's own waits in its stamps, and the tap needs a right and a copy of every packet.
const CANDIDATES: [TimestampingLocation; 3] =
    [TimestampingLocation::Socket, TimestampingLocation::User, TimestampingLocation::Tap];

/// Judges a run. `unavailable` is what the host did not offer.
pub fn advise(digest: &Digest<'_>, unavailable: &[String]) -> Advice {
    let mut candidates: Vec<LocationCandidate> =
        CANDIDATES.into_iter().filter_map(|location| candidate(digest, location)).collect();
    candidates.sort_by(|a, b| {
        (a.is_broken, worst(a)).partial_cmp(&(b.is_broken, worst(b))).unwrap_or(core::cmp::Ordering::Equal)
    });
    let is_driver_seen = digest.all().all(|(_, findings)| findings.reference == (Site::DriverOut, Site::DriverIn));
    let sound: Vec<&LocationCandidate> = candidates.iter().filter(|candidate| !candidate.is_broken).collect();
    let tied = |of: &&LocationCandidate| sound[0].steady_interval_ns.1 + LEVEL_NS >= of.steady_interval_ns.0;
    let mut level: Vec<&LocationCandidate> = sound.iter().copied().filter(tied).collect();
    level.sort_by_key(|candidate| CANDIDATES.iter().position(|location| *location == candidate.location));
    let best = level.first().copied();
    let mut reasons = Vec::new();
    match best {
        Some(best) if level.len() > 1 => reasons.push(tie_words(best, &level[1..])),
        Some(best) => reasons.push(why(best, &candidates[1..])),
        None => {
            reasons.push("No location gave stamps that keep the order of events, so none can be advised.".to_owned())
        }
    }
    if let Some(best) = best {
        reasons.extend(best.asymmetry.as_ref().map(asymmetry_words));
        reasons.push(stress_words(best));
    }
    for broken in candidates.iter().filter(|candidate| candidate.is_broken) {
        reasons.push(format!(
            "Do not pair stamps of {}: some of them contradict the order of events (see the causality lines of the tables).",
            plain(broken.location)
        ));
    }
    reasons.push(if is_driver_seen { seen_words() } else { unseen_words(unavailable) });
    let packets = digest.with(None).flat_map(|findings| &findings.delays).map(|delay| delay.count).max().unwrap_or(0);
    if packets < FEW_PACKETS {
        reasons.push(format!(
            "This rests on {packets} packets only; measure more of them (--packets) before relying on it."
        ));
    }
    Advice {
        location: best.map(|candidate| candidate.location),
        how: best.map(|candidate| how(candidate.location).to_owned()),
        tie: level.iter().map(|candidate| candidate.location).filter(|_| level.len() > 1).collect(),
        reasons,
        candidates,
    }
}

fn candidate(digest: &Digest<'_>, location: TimestampingLocation) -> Option<LocationCandidate> {
    let reach = |load| reach(digest, load, location);
    let loads = digest.loads().into_iter().flatten();
    let under_loads: Vec<(Load, SampledNs)> = loads.filter_map(|load| Some((load, reach(Some(load))?))).collect();
    let quiet = reach(None)?;
    let worst = under_loads.iter().map(|(_, reach)| *reach).fold(quiet, |a, b| if b.ns > a.ns { b } else { a });
    let mut asymmetries = digest.asymmetries(None, location);
    asymmetries.sort_by(|a, b| width(a).total_cmp(&width(b)));
    let everywhere = digest.all().flat_map(|(_, findings)| &findings.asymmetries);
    let is_broken =
        everywhere.filter(|one| one.location == location).any(|one| one.verdict == Plausibility::CausalityFault);
    Some(LocationCandidate {
        location,
        reach_ns: quiet.ns,
        worst_interval_ns: for_another_run(worst),
        steady_interval_ns: worst.interval_ns,
        under_loads: under_loads.into_iter().map(|(load, reach)| (load, reach.ns)).collect(),
        asymmetry: asymmetries.first().copied(),
        is_broken,
    })
}

/// The reach of both directions; a site that is the reference reaches nowhere.
fn reach(digest: &Digest<'_>, load: Option<Load>, location: TimestampingLocation) -> Option<SampledNs> {
    let (out, back) = location.sites();
    let references = digest.with(load).map(|findings| findings.reference).next()?;
    let one = |site, reference| match digest.site(load, site) {
        Some(summary) => Some(summary.worst_reach),
        None => (site == reference).then_some(SampledNs { ns: 0.0, interval_ns: (0.0, 0.0) }),
    };
    let (out, back) = (one(out, references.0)?, one(back, references.1)?);
    // What varies in one direction does so by itself: the distances of the ends add as squares do.
    let (ns, (below, above), (low, high)) = (out.ns + back.ns, out.sides_ns(), back.sides_ns());
    Some(SampledNs { ns, interval_ns: (ns - below.hypot(low), ns + above.hypot(high)) })
}

/// The interval of a reach, with what the rest of the host may do meanwhile.
fn for_another_run(reach: SampledNs) -> (f64, f64) {
    let (low, high) = reach.interval_ns;
    (low.min(reach.ns / OTHER_LOAD), high.max(reach.ns * OTHER_LOAD))
}

fn width(one: &Asymmetry) -> f64 {
    one.interval_ns.1 - one.interval_ns.0
}

fn worst(candidate: &LocationCandidate) -> f64 {
    candidate.under_loads.iter().map(|(_, reach)| *reach).fold(candidate.reach_ns, f64::max)
}

fn us(ns: f64) -> String {
    format!("{:.2} us", ns / 1e3)
}

const fn plain(location: TimestampingLocation) -> &'static str {
    match location {
        TimestampingLocation::User => "user space",
        TimestampingLocation::MulticastCopy => "the copy of a multicast packet",
        TimestampingLocation::Socket => "the socket",
        TimestampingLocation::Tap => "the packet tap",
        TimestampingLocation::Driver => "the driver",
    }
}

const fn how(location: TimestampingLocation) -> &'static str {
    match location {
        TimestampingLocation::User => "read the counter around sendmsg and recvmsg (ffclockd: stamps = \"user\")",
        TimestampingLocation::MulticastCopy => "a second socket that hears the group, SO_TIMESTAMPNS",
        TimestampingLocation::Socket => {
            "SO_TIMESTAMPING with software stamps, both directions (ffclockd: stamps = \"kernel\")"
        }
        TimestampingLocation::Tap => "AF_PACKET as libpcap uses it, both directions",
        TimestampingLocation::Driver => "the kernel's tracing with a raw trace clock (ffclockd: stamps = \"trace\")",
    }
}

fn why(best: &LocationCandidate, others: &[LocationCandidate]) -> String {
    let rest: Vec<String> =
        others.iter().map(|other| format!("{} {}", plain(other.location), us(worst(other)))).collect();
    let against = if rest.is_empty() { String::new() } else { format!("; {}", rest.join(", ")) };
    format!(
        "Stamp at {}: of what a program can use, its delays reach least far beyond the nearest to the driver (99 %, both directions, worst phase): {}{against}.",
        plain(best.location),
        between_words(best)
    )
}

fn between_words(candidate: &LocationCandidate) -> String {
    let (low, high) = candidate.worst_interval_ns;
    format!("{} (95 %: {} to {})", us(worst(candidate)), us(low), us(high))
}

fn tie_words(best: &LocationCandidate, others: &[&LocationCandidate]) -> String {
    let others: Vec<String> =
        others.iter().map(|other| format!("{} by {}", plain(other.location), between_words(other))).collect();
    format!(
        "Stamp at {}, which is the simplest of those that cannot be distinguished: its delays reach beyond the nearest to the driver by {} (99 %, both \
         directions, worst phase), those of {}, and another run may put them in another order.",
        plain(best.location),
        between_words(best),
        others.join(", those of ")
    )
}

fn asymmetry_words(one: &Asymmetry) -> String {
    let (low, high) = one.interval_ns;
    let measured = format!("Its own asymmetry is {} (95 %: {} to {})", us(one.asymmetry_ns), us(low), us(high));
    let limit = if one.limit_ns >= 0.0 {
        format!("round trips alone say only that it lies within +-{}", us(one.limit_ns))
    } else {
        "round trips alone say nothing, as it lies nearer to the wire than the reference".to_owned()
    };
    let cost = format!("a clock that takes it for zero is wrong by {}", us(one.asymmetry_ns.abs() / 2.0));
    format!("{measured}; {limit}; {cost}, which `ffclock-lab probe calibrate` takes off.")
}

fn stress_words(best: &LocationCandidate) -> String {
    if best.under_loads.is_empty() {
        return "What stress does to it was not measured: add --stress io,syscall,ip,cpu,interrupt.".to_owned();
    }
    let notable = best.under_loads.iter().filter(|(_, reach)| *reach > NOTABLE * best.reach_ns.max(1.0));
    let words: Vec<String> = notable.map(|(load, reach)| format!("{load} to {}", us(*reach))).collect();
    let loads: Vec<&str> = best.under_loads.iter().map(|(load, _)| load_name(Some(*load))).collect();
    if words.is_empty() {
        return format!(
            "Stress ({}) does not widen its delays notably: {} when quiet.",
            loads.join(", "),
            us(best.reach_ns)
        );
    }
    format!("Stress widens its delays from {} when quiet: {}.", us(best.reach_ns), words.join(", "))
}

fn seen_words() -> String {
    "The kernel's tracing sees the boundary to the driver here: ffclockd with stamps = \"trace\" stamps there and has none of these delays."
        .to_owned()
}

fn unseen_words(unavailable: &[String]) -> String {
    let reasons = if unavailable.is_empty() { "not asked for".to_owned() } else { unavailable.join("; ") };
    format!(
        "The boundary to the driver was not seen ({reasons}), so delays are counted from the socket's own stamps, and nothing can be \
         said about those."
    )
}

#[cfg(test)]
mod tests;

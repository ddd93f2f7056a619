//! A run in few numbers: each site's delays by load, over all phases with that load.

use crate::distances::SampledNs;
use crate::findings::{Asymmetry, Findings, SiteDelay};
use crate::site::{Site, TimestampingLocation};
use ffclock_counters::campaign::Load;
use serde::Serialize;

/// The delays of a site under one load [ns].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelaySummary {
    /// The mean of the phases' delays nearest to the boundary, and all that their intervals hold. A mean, because the
    /// nearest of several phases together is nearer than that of one.
    pub nearest: SampledNs,
    /// The mean of the phases' medians, and all that their intervals hold.
    pub median: SampledNs,
    /// The mean of the phases' distances between the quartiles, and all that their intervals hold.
    pub iqr: SampledNs,
    /// The mean of how far the phases' delays reach, and all that their intervals hold.
    pub reach: SampledNs,
    /// The phase in which they reach farthest.
    pub worst_reach: SampledNs,
}

/// Findings by load.
#[derive(Clone, Debug)]
pub struct Digest<'a> {
    phases: Vec<(Option<Load>, &'a Findings)>,
}

impl<'a> Digest<'a> {
    /// The digest of these phases.
    pub fn of(phases: impl IntoIterator<Item = (Option<Load>, &'a Findings)>) -> Self {
        Digest { phases: phases.into_iter().collect() }
    }

    /// The loads that there were, quiet first.
    pub fn loads(&self) -> Vec<Option<Load>> {
        let mut loads: Vec<Option<Load>> = Vec::new();
        for (load, _) in &self.phases {
            if !loads.contains(load) {
                loads.push(*load);
            }
        }
        loads.sort_by_key(Option::is_some);
        loads
    }

    /// The phases with this load.
    pub fn with(&self, load: Option<Load>) -> impl Iterator<Item = &'a Findings> {
        self.phases.iter().filter(move |(own, _)| *own == load).map(|(_, findings)| *findings)
    }

    /// Every phase.
    pub fn all(&self) -> impl Iterator<Item = (Option<Load>, &'a Findings)> {
        self.phases.iter().copied()
    }

    /// A site's delays under a load; zero, without spread, for the reference itself, and `None` where it was not
    /// stamped.
    pub fn site(&self, load: Option<Load>, site: Site) -> Option<DelaySummary> {
        let found: Vec<&SiteDelay> =
            self.with(load).flat_map(|findings| &findings.delays).filter(|delay| delay.site == site).collect();
        let mean = |of: fn(&SiteDelay) -> SampledNs| mean_of(found.iter().map(|delay| of(delay)));
        let worst_reach = found.iter().map(|delay| delay.reach).max_by(|a, b| a.ns.total_cmp(&b.ns))?;
        Some(DelaySummary {
            nearest: mean(|delay| delay.nearest)?,
            median: mean(|delay| delay.median)?,
            iqr: mean(|delay| delay.iqr)?,
            reach: mean(|delay| delay.reach)?,
            worst_reach,
        })
    }

    /// The asymmetries of a location under a load, one for each phase.
    pub fn asymmetries(&self, load: Option<Load>, location: TimestampingLocation) -> Vec<Asymmetry> {
        let all = self.with(load).flat_map(|findings| &findings.asymmetries);
        all.filter(|one| one.location == location).copied().collect()
    }
}

/// The mean of figures, and all that their intervals hold, from the lowest to the highest end; `None` of none.
pub(crate) fn mean_of(figures: impl Iterator<Item = SampledNs>) -> Option<SampledNs> {
    let (mut count, mut sum, mut ends) = (0.0, 0.0, (f64::INFINITY, f64::NEG_INFINITY));
    for SampledNs { ns, interval_ns: (low, high) } in figures {
        (count, sum, ends) = (count + 1.0, sum + ns, (ends.0.min(low), ends.1.max(high)));
    }
    (count > 0.0).then(|| SampledNs { ns: sum / count, interval_ns: ends })
}

/// The name of a load, for people.
pub fn load_name(load: Option<Load>) -> &'static str {
    load.map_or("quiet", Load::name)
}

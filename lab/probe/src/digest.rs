//! A run in few numbers: each site's delays by load, over all phases with that load.

use crate::findings::{Asymmetry, Findings, SiteDelay};
use crate::site::{Site, TimestampingLocation};
use ffclock_counters::campaign::Load;
use serde::Serialize;

/// The delays of a site under one load [ns].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelaySummary {
    /// The smallest of all phases.
    pub min_ns: f64,
    /// The mean of the phases' medians.
    pub median_ns: f64,
    /// The mean of the phases' distances between the quartiles.
    pub iqr_ns: f64,
    /// The largest of the phases' 99th percentiles.
    pub p99_ns: f64,
    /// The 95 % interval of that phase's.
    pub p99_interval_ns: (f64, f64),
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
        let mean = |of: fn(&SiteDelay) -> f64| found.iter().map(|delay| of(delay)).sum::<f64>() / found.len() as f64;
        let widest = found.iter().max_by(|a, b| a.delay_ns.p99.total_cmp(&b.delay_ns.p99))?;
        Some(DelaySummary {
            min_ns: found.iter().map(|delay| delay.delay_ns.min).fold(f64::INFINITY, f64::min),
            median_ns: mean(|delay| delay.delay_ns.median),
            iqr_ns: mean(|delay| delay.delay_ns.iqr()),
            p99_ns: widest.delay_ns.p99,
            p99_interval_ns: widest.p99_interval_ns,
        })
    }

    /// The asymmetries of a location under a load, one for each phase.
    pub fn asymmetries(&self, load: Option<Load>, location: TimestampingLocation) -> Vec<Asymmetry> {
        let all = self.with(load).flat_map(|findings| &findings.asymmetries);
        all.filter(|one| one.location == location).copied().collect()
    }
}

/// The name of a load, for people.
pub fn load_name(load: Option<Load>) -> &'static str {
    load.map_or("quiet", Load::name)
}

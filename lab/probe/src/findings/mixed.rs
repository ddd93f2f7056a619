//! Stamps out at one site and in at another (section V of the paper): such a pair has an asymmetry too.

use super::{OrderViolation, PassageView, is_violated};
use crate::distances::{BoundaryDistances, SampledNs};
use crate::payload::Direction;
use crate::site::Site;
use serde::{Deserialize, Serialize};

/// The asymmetry of a host that stamps out at one site and in at another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixedPair {
    /// Where it stamps requests.
    pub out: Site,
    /// Where it stamps replies.
    pub back: Site,
    /// Nearest delay out minus nearest delay in [ns].
    pub asymmetry_ns: f64,
    /// The 95 % interval of the asymmetry by the bootstrap [ns].
    pub interval_ns: (f64, f64),
    /// What round trips alone say: the asymmetry lies within +- this [ns].
    pub limit_ns: f64,
    /// Whether the stamps of both keep the order of events; otherwise the asymmetry means nothing.
    pub is_ordered: bool,
}

/// Every site out with every site in, in the order of the way; the reference is one of them, at no distance.
pub(super) fn pairs(view: &PassageView<'_>, causality: &[OrderViolation]) -> Vec<MixedPair> {
    let nearest = |site: Site| {
        let is_reference = site == view.reference.0 || site == view.reference.1;
        let at_reference = (view.passages.count(site) > 0).then_some(SampledNs { ns: 0.0, interval_ns: (0.0, 0.0) });
        if is_reference { at_reference } else { Some(BoundaryDistances::of(&view.delays_ns(site))?.nearest()) }
    };
    let known: Vec<(Site, SampledNs)> = Site::ALL.into_iter().filter_map(|site| Some((site, nearest(site)?))).collect();
    let of = |way: Direction| known.iter().filter(move |(site, _)| site.direction() == way);
    let pair = |&(out, there): &(Site, SampledNs), &(back, here): &(Site, SampledNs)| MixedPair {
        out,
        back,
        asymmetry_ns: there.ns - here.ns,
        interval_ns: (there.interval_ns.0 - here.interval_ns.1, there.interval_ns.1 - here.interval_ns.0),
        limit_ns: there.ns + here.ns,
        is_ordered: !is_violated(causality, out, back),
    };
    of(Direction::Outgoing).flat_map(|out| of(Direction::Incoming).map(move |back| pair(out, back))).collect()
}

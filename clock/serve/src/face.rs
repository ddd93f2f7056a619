//! What the server says of its time: from one publication of the page to the header of the replies.
//!
//! A pure function of the publication and of counter readings. A client that computes the root distance (RFC 5905,
//! section 11.1: half the root delay and the root dispersion) from the reply gets no less than the bound of the page at
//! the moments that the reply names. Twice the bound that held at the publication is the root delay, rounded up to the
//! steps of the wire; what time has added since is the root dispersion.

use crate::options::{ServedBound, Smear};
use crate::smear::{smear_reference, smear_units, smeared};
use ffclock::Snapshot;
use ffclock_units::{Bound, Counter, LeapStep, Moment, Server, Span, Status, Tai, Ticks};
use ffclock_wire::{LeapIndicator, LogSeconds, NtpTimestamp, Packet, ReplyTemplate, Version};

/// From here on a server is not synchronised (RFC 5905, figure 11).
const STRATUM_NONE: u8 = 16;
/// A leap second is announced this long before it.
const ANNOUNCED: i64 = 86_400;
/// One step of root delay and root dispersion: 2^-16 s.
const STEP: u32 = 48;

/// What the operator decides about the claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaceOptions {
    /// Which bound is served.
    pub bound: ServedBound,
    /// A larger bound is not served as time.
    pub bound_max: Bound,
    /// What happens around a leap second.
    pub smear: Smear,
    /// The leap second that is smeared, by its second of TAI: one that was known before its smear begins. `None` before
    /// the first look at it: a server goes on with a smear that it finds.
    pub smeared_leap: Option<i64>,
    /// How long it takes to read the clock.
    pub precision: LogSeconds,
    /// Whom we follow, as clients are to know it, so that they can notice that it is them; `None` where it is no server
    /// of NTP, so that the page has its only name.
    pub reference_id: Option<u32>,
}

impl FaceOptions {
    /// What happens around this leap second.
    fn smear_of(&self, leap: LeapStep) -> Smear {
        if self.smeared_leap.is_none_or(|at| at == leap.at) { self.smear } else { Smear::Off }
    }
}

/// Why a reply says that the server is not synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unserved {
    /// The page is missing, or cannot be read.
    NoPage,
    /// The page has no estimate, or none of this epoch of the counter.
    NoEstimate,
    /// The estimate was not renewed in time.
    Stale,
    /// The bound is larger than what is served.
    Bound,
    /// The servers that are followed have no stratum to add one to.
    Stratum,
}

impl Unserved {
    /// The reason in words.
    pub const fn words(self) -> &'static str {
        match self {
            Unserved::NoPage => "the page cannot be read",
            Unserved::NoEstimate => "the page has no estimate",
            Unserved::Stale => "the page was not renewed in time",
            Unserved::Bound => "the bound is larger than serve_bound_max",
            Unserved::Stratum => "no server is followed",
        }
    }
}

/// When a batch of requests came and their replies leave: readings of the counter of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyMoments {
    /// When the first of the requests came.
    pub earliest: Counter,
    /// What the replies state as their time of leaving.
    pub transmit: Counter,
    /// They may leave sooner than that, but by no more than this.
    pub foreseen: Ticks,
}

impl ReplyMoments {
    /// A request that comes and is answered at one moment.
    pub fn at(moment: Counter) -> Self {
        ReplyMoments { earliest: moment, transmit: moment, foreseen: Ticks::ZERO }
    }
}

/// The header that all replies of a batch share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedFace {
    /// The replies but for what each request decides.
    pub template: ReplyTemplate,
    /// Whether it claims a time, and why not.
    pub standing: Result<ServedClaim, Unserved>,
}

/// What a face claims, for those who watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedClaim {
    /// Our distance from a primary source.
    pub stratum: u8,
    /// Whether a leap second is announced.
    pub leap: LeapIndicator,
    /// Root delay / 2 + root dispersion as they stand in the reply.
    pub distance: Bound,
    /// The reference identifier.
    pub reference_id: u32,
}

impl ServedFace {
    /// The face of the replies of one batch.
    pub fn of(snapshot: &Snapshot, moments: &ReplyMoments, options: &FaceOptions) -> Self {
        match claim(snapshot, moments, options) {
            Ok((claim, packet)) => ServedFace { template: ReplyTemplate::new(&packet), standing: Ok(claim) },
            Err(reason) => ServedFace::unserved(reason, options),
        }
    }

    /// The face of a server that is not synchronised: leap indicator 3, stratum 16, the widest claim.
    pub fn unserved(reason: Unserved, options: &FaceOptions) -> Self {
        let packet = Packet {
            leap: LeapIndicator::Unsynchronised,
            stratum: STRATUM_NONE,
            precision: options.precision,
            root_dispersion: Bound::UNKNOWN,
            ..Packet::request(Version::V4, NtpTimestamp::MISSING)
        };
        ServedFace { template: ReplyTemplate::new(&packet), standing: Err(reason) }
    }
}

fn claim(
    snapshot: &Snapshot,
    &ReplyMoments { earliest, transmit, foreseen }: &ReplyMoments,
    options: &FaceOptions,
) -> Result<(ServedClaim, Packet), Unserved> {
    let estimate = snapshot.estimate().ok_or(Unserved::NoEstimate)?;
    let now = snapshot.time_at(transmit).map_err(|_| Unserved::NoEstimate)?;
    if now.reading.status == Status::Unsynchronised {
        return Err(Unserved::Stale);
    }
    let bound_at = |counter| bound_at(snapshot, counter, options.bound);
    let bound = bound_at(transmit).max(bound_at(earliest)) + Bound::of(estimate.period * foreseen);
    if bound > options.bound_max {
        return Err(Unserved::Bound);
    }
    let followed = snapshot.server().filter(|server| server.stratum < STRATUM_NONE - 1).ok_or(Unserved::Stratum)?;
    let stratum = followed.stratum + 1;
    let followed = options.reference_id.filter(|_| followed.stratum > 0).unwrap_or(followed.reference_id);
    let (root_delay, root_dispersion) = split(bound_at(estimate.counter), bound);
    let smear = options.smear_of(snapshot.leap());
    let (leap, reference_id) = match (smear, smear_units(now.tai, snapshot.leap(), smear)) {
        (Smear::Off, _) => (announced(now.tai, snapshot.leap()), followed),
        (Smear::Linear24h, 0) => (LeapIndicator::None, followed),
        (Smear::Linear24h, units) => (LeapIndicator::None, smear_reference(units)),
    };
    let packet = Packet {
        leap,
        stratum,
        precision: options.precision,
        root_delay,
        root_dispersion,
        reference_id,
        reference: timestamp(snapshot, estimate.counter, options).unwrap_or(NtpTimestamp::MISSING),
        ..Packet::request(Version::V4, NtpTimestamp::MISSING)
    };
    let distance = Bound::of(root_delay).halved() + root_dispersion;
    Ok((ServedClaim { stratum, leap, distance, reference_id }, packet))
}

/// The bound that is served of the time at a counter reading.
pub fn bound_at(snapshot: &Snapshot, counter: Counter, served: ServedBound) -> Bound {
    match served {
        ServedBound::Bound => snapshot.reading_at(counter).map_or(Bound::UNKNOWN, |reading| reading.bound),
        ServedBound::Strict => snapshot.strict_bound_at(counter),
    }
}

/// A bound as root delay and root dispersion, in whole steps of the wire: half the first and the second are never less
/// than `bound`, and more by less than two steps.
fn split(at_publication: Bound, bound: Bound) -> (Span, Bound) {
    let up = |units: i128| (units.max(0) >> STEP) + i128::from(units & ((1 << STEP) - 1) > 0);
    let most = bound.max(at_publication).as_span().units();
    let delay = up(at_publication.as_span().units().min(most).saturating_mul(2));
    let rest = most - ((delay << STEP) >> 1);
    (Span::from_units(delay << STEP), Bound::of(Span::from_units(up(rest) << STEP)))
}

/// The announcement of a leap second within the next day.
fn announced(now: Moment<Tai>, leap: LeapStep) -> LeapIndicator {
    let ahead = leap.at.saturating_sub(now.whole_seconds());
    match (1..=ANNOUNCED).contains(&ahead) {
        true if leap.after > leap.before => LeapIndicator::Insert,
        true if leap.after < leap.before => LeapIndicator::Delete,
        _ => LeapIndicator::None,
    }
}

/// The time of a counter reading as the packet carries it; `None` where the page cannot convert it.
pub fn timestamp(snapshot: &Snapshot, counter: Counter, options: &FaceOptions) -> Option<NtpTimestamp> {
    let time = match options.smear_of(snapshot.leap()) {
        Smear::Off => snapshot.reading_at(counter).ok()?.time.since_origin(),
        Smear::Linear24h => {
            let time = snapshot.time_at(counter).ok()?;
            smeared(time.tai, snapshot.leap()).unwrap_or(time.reading.time.since_origin())
        }
    };
    let label: Moment<Server> = Moment::from_origin(time);
    Some(NtpTimestamp::from_server(label))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEAP: LeapStep = LeapStep { before: 37, after: 38, at: 2_000_000_037 };

    fn tai(seconds: i64, millis: i64) -> Moment<Tai> {
        Moment::from_origin(Span::from_secs(seconds) + Span::from_millis(millis))
    }

    proptest! {
        /// The claim of the reply is never smaller than the bound, and at most two steps larger.
        #[test]
        fn the_split_holds_the_bound(published in 0..1_i128 << 70, grown in 0..1_i128 << 66) {
            let [at, bound] = [published, published + grown].map(|units| Bound::of(Span::from_units(units)));
            let (delay, dispersion) = split(at, bound);
            let distance = delay.units() / 2 + dispersion.as_span().units();
            prop_assert!(distance >= bound.as_span().units());
            prop_assert!(distance - bound.as_span().units() < 2 << STEP);
            prop_assert_eq!((delay.units() % (1 << STEP), dispersion.as_span().units() % (1 << STEP)), (0, 0));
        }
    }

    #[test]
    fn a_leap_second_is_announced_for_a_day_and_not_after_it() {
        assert_eq!(announced(tai(LEAP.at - 86_401, 0), LEAP), LeapIndicator::None);
        assert_eq!(announced(tai(LEAP.at - 86_400, 0), LEAP), LeapIndicator::Insert);
        assert_eq!(announced(tai(LEAP.at - 1, 999), LEAP), LeapIndicator::Insert);
        assert_eq!(announced(tai(LEAP.at, 0), LEAP), LeapIndicator::None);
        let delete = LeapStep { after: 36, ..LEAP };
        assert_eq!(announced(tai(LEAP.at - 5, 0), delete), LeapIndicator::Delete);
    }
}

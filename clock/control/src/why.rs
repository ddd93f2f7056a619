//! Whether a server is believed and why, in one sentence: for the answer of the daemon, so that its log, the command
//! and other programs say the same.

use crate::protocol::{BeliefReport, QuorumReport, SourceReport, SourceState, VoteReport};
use ffclock_units::Span;

/// A server that has not been heard for this number of polls is said to be silent.
const SILENT_POLLS: f64 = 3.0;

/// Whether `source` is believed and why, given how the vote stands.
pub fn sentence(source: &SourceReport, quorum: QuorumReport, vote: &VoteReport) -> String {
    let verdict = verdict(source, quorum, vote);
    let silence = source.vote.heard_s.filter(|heard| *heard > SILENT_POLLS * source.poll_s);
    let silence = silence.map(|heard| format!("; not heard for {}, so its interval grows", span(heard)));
    let youth = (source.vote.warming_up && source.bound_s.is_some()).then_some("; still warming up");
    format!("{verdict}{}{}", silence.unwrap_or_default(), youth.unwrap_or_default())
}

fn verdict(source: &SourceReport, quorum: QuorumReport, vote: &VoteReport) -> String {
    if source.vote.no_select {
        return "not believed: no_select; it is only measured".to_owned();
    }
    if let Some(other) = &source.vote.same_as {
        let shared = if source.ptp.is_some() { "follows the same master" } else { "has the same address" };
        return format!("not counted: it {shared} as {other}, which has the vote of both");
    }
    if source.vote.spare {
        return "spare: its pool has as many votes without it as it may; it steps in when one of them is lost"
            .to_owned();
    }
    match source.belief {
        BeliefReport::Unknown if source.bound_s.is_none() => unheard(source),
        BeliefReport::Truechimer => believed(source, vote),
        BeliefReport::Falseticker => contradicted(source, vote),
        BeliefReport::Undecided => undecided(quorum, vote),
        BeliefReport::NoSelect | BeliefReport::Unknown => {
            "not believed: nothing is known yet of how far its clock can be off".to_owned()
        }
    }
}

/// Why nothing is proven of a server's time.
fn unheard(source: &SourceReport) -> String {
    match source.state {
        SourceState::Resolving if source.ptp.is_some() => {
            "not believed: masters of PTP cannot be heard, the log says why".to_owned()
        }
        SourceState::Resolving => "not believed: its name has no address yet".to_owned(),
        SourceState::Waiting if source.ptp.is_some() => {
            "not believed: a first exchange with a master is awaited".to_owned()
        }
        SourceState::Waiting => "not believed: its first answer is awaited".to_owned(),
        SourceState::Reachable => "not believed: none of its answers could be used yet".to_owned(),
        SourceState::Unreachable if source.ptp.is_some() => {
            "not believed: no master of PTP gave time that can be used".to_owned()
        }
        SourceState::Unreachable => {
            format!("not believed: it has given no answer that is of use ({} requests lost)", source.lost)
        }
        SourceState::Refused => "not believed: it asked us to stay away".to_owned(),
    }
}

fn believed(source: &SourceReport, vote: &VoteReport) -> String {
    if source.vote.suspect {
        let apart = source
            .offset_s
            .map_or_else(String::new, |offset| format!(", {} from the published time,", span(offset.abs())));
        return format!(
            "suspect, so without weight: its interval meets the others', but its time{apart} is not explained by what is \
             known of paths and claims, or moves against them"
        );
    }
    let role = match (source.selected, source.vote.prefer) {
        (true, true) => "believed and selected, because it is preferred",
        (true, false) => "believed and selected",
        (false, _) => "believed",
    };
    let reason = match (vote.by_trust, source.vote.trust, vote.deciders) {
        (true, true, 1) => "it is the only trusted server with a vote, and decides alone".to_owned(),
        (true, true, deciders) => format!("it belongs to every majority of the {deciders} trusted servers"),
        (true, false, _) => "it agrees with what the trusted servers decide".to_owned(),
        (false, _, 1) => "it is the only server with a vote, and nothing contradicts it".to_owned(),
        (false, _, deciders) => format!("it belongs to every majority of the {deciders} servers"),
    };
    let weight =
        source.vote.weight.map(|weight| format!("; its weight in the published time is {:.0} %", 100.0 * weight));
    format!("{role}: {reason}{}", weight.unwrap_or_default())
}

fn contradicted(source: &SourceReport, vote: &VoteReport) -> String {
    let whom =
        if vote.by_trust { "the trusted servers and those that agree with them" } else { "the believed servers" };
    match source.vote.misses_s {
        Some(misses) => {
            format!("not believed (falseticker): its interval misses what {whom} share by {}", span(misses))
        }
        None => format!("not believed (falseticker): no majority shares a time with it and {whom}"),
    }
}

fn undecided(quorum: QuorumReport, vote: &VoteReport) -> String {
    match quorum {
        QuorumReport::Majority => {
            "not believed (undecided): it belongs to one majority and not to another, and no vote can say which is right"
                .to_owned()
        }
        QuorumReport::Waiting => "not believed yet: servers that may turn the vote have not answered".to_owned(),
        QuorumReport::Disagreement => {
            let kind = if vote.by_trust { "trusted servers" } else { "servers" };
            format!("not believed: of the {} {kind} with a vote too few agree, so none is believed", vote.deciders)
        }
        QuorumReport::TooFew => {
            format!("not believed: min_servers demands {} servers that answer, and {} do", vote.min_servers, vote.usable)
        }
    }
}

/// What the usual bound rests on.
pub fn believed_premise(vote: &VoteReport) -> String {
    match vote.believed {
        0 => "one of the servers is right (no majority agrees)".to_owned(),
        1 => "the claim of the one believed server is true".to_owned(),
        many => format!("none of the {many} believed servers is false by less than the others can see"),
    }
}

/// What the strict bound rests on.
pub fn strict_premise(vote: &VoteReport) -> String {
    let kind = if vote.by_trust { "trusted servers" } else { "servers" };
    match (vote.believed, vote.tolerated) {
        (0, _) => believed_premise(vote),
        (_, 0) => format!("the claims of all {} {kind} with a vote are true", vote.deciders),
        (_, tolerated) => {
            format!("at most {tolerated} of the {} {kind} with a vote can be false, in whatever way", vote.deciders)
        }
    }
}

fn span(seconds: f64) -> String {
    Span::from_seconds(seconds).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Agreement, Algorithm, PtpReport, SourceVote};

    fn source() -> SourceReport {
        SourceReport {
            name: "a.example".into(),
            address: None,
            state: SourceState::Reachable,
            selected: false,
            belief: BeliefReport::Truechimer,
            estimator: Algorithm::Learned,
            agreement: Agreement::Agree,
            poll_s: 16.0,
            slowed: false,
            wander_ppm: Some(1.0),
            stratum: Some(2),
            root_distance_s: Some(0.001),
            sent: 9,
            exchanges: 8,
            used: 8,
            interleaved: 0,
            lost: 7,
            rejected: Vec::new(),
            floor_s: None,
            round_trip_s: None,
            shifts: (0, 0),
            bound_s: Some(0.002),
            uncertainty_s: None,
            noise_s: None,
            offset_s: None,
            vote: SourceVote { proven_s: Some((-1.0, 1.0)), heard_s: Some(8.0), ..SourceVote::default() },
            authentication: Default::default(),
            ptp: None,
            why: String::new(),
        }
    }

    fn vote() -> VoteReport {
        VoteReport { deciders: 5, tolerated: 2, believed: 3, usable: 5, min_servers: 1, ..VoteReport::default() }
    }

    fn said(source: &SourceReport) -> String {
        sentence(source, QuorumReport::Majority, &vote())
    }

    #[test]
    fn a_believed_server_is_told_by_whose_majority() {
        assert_eq!(said(&source()), "believed: it belongs to every majority of the 5 servers");
        let selected = SourceReport { selected: true, ..source() };
        assert!(said(&selected).starts_with("believed and selected: it belongs"));
        let preferred = SourceVote { prefer: true, ..source().vote };
        let preferred = SourceReport { vote: preferred, ..selected.clone() };
        assert!(said(&preferred).starts_with("believed and selected, because it is preferred: "));
        let alone = VoteReport { deciders: 1, ..vote() };
        assert!(sentence(&selected, QuorumReport::Majority, &alone).contains("the only server with a vote"));
    }

    #[test]
    fn trusted_servers_are_named_as_such() {
        let by_trust = VoteReport { by_trust: true, deciders: 1, ..vote() };
        let trusted = SourceReport { vote: SourceVote { trust: true, ..source().vote }, ..source() };
        let said = |source: &SourceReport, vote: &VoteReport| sentence(source, QuorumReport::Majority, vote);
        assert!(said(&trusted, &by_trust).ends_with("the only trusted server with a vote, and decides alone"));
        assert!(said(&source(), &by_trust).ends_with("it agrees with what the trusted servers decide"));
        let three = VoteReport { deciders: 3, ..by_trust };
        assert!(said(&trusted, &three).ends_with("every majority of the 3 trusted servers"));
    }

    #[test]
    fn a_falseticker_is_told_by_how_much_it_misses() {
        let of = |misses_s| SourceReport {
            belief: BeliefReport::Falseticker,
            vote: SourceVote { misses_s, ..source().vote },
            ..source()
        };
        let text = said(&of(Some(0.0349)));
        assert_eq!(text, "not believed (falseticker): its interval misses what the believed servers share by 34.9 ms");
        assert!(said(&of(None)).contains("no majority shares a time with it"));
    }

    #[test]
    fn the_undecided_are_told_why() {
        let undecided = SourceReport { belief: BeliefReport::Undecided, ..source() };
        let under = |quorum| sentence(&undecided, quorum, &VoteReport { min_servers: 6, ..vote() });
        assert!(under(QuorumReport::Majority).contains("one majority and not to another"));
        assert!(under(QuorumReport::Waiting).contains("have not answered"));
        assert!(under(QuorumReport::Disagreement).contains("of the 5 servers with a vote too few agree"));
        assert!(under(QuorumReport::TooFew).ends_with("min_servers demands 6 servers that answer, and 5 do"));
    }

    #[test]
    fn a_server_without_a_vote_is_told_why() {
        let unknown = SourceReport { belief: BeliefReport::Unknown, ..source() };
        let unheard = |state| SourceReport { state, bound_s: None, vote: SourceVote::default(), ..unknown.clone() };
        assert!(said(&unheard(SourceState::Resolving)).ends_with("no address yet"));
        assert!(said(&unheard(SourceState::Waiting)).ends_with("is awaited"));
        assert!(said(&unheard(SourceState::Unreachable)).ends_with("(7 requests lost)"));
        assert!(said(&unheard(SourceState::Refused)).ends_with("stay away"));
        assert!(said(&unheard(SourceState::Reachable)).ends_with("could be used yet"));
        let no_select = SourceReport { vote: SourceVote { no_select: true, ..source().vote }, ..source() };
        assert_eq!(said(&no_select), "not believed: no_select; it is only measured");
        let ptp = Some(PtpReport::default());
        let of_ptp = |state| said(&SourceReport { ptp: ptp.clone(), ..unheard(state) });
        assert!(of_ptp(SourceState::Resolving).contains("cannot be heard"));
        assert!(of_ptp(SourceState::Waiting).contains("first exchange with a master"));
        assert!(of_ptp(SourceState::Unreachable).contains("no master of PTP"));
        let twin = SourceReport { vote: SourceVote { same_as: Some("b".into()), ..source().vote }, ..source() };
        assert_eq!(said(&twin), "not counted: it has the same address as b, which has the vote of both");
        let spare = SourceReport { vote: SourceVote { spare: true, ..source().vote }, ..source() };
        assert!(said(&spare).starts_with("spare: its pool has as many votes"));
        assert!(said(&unknown).contains("how far its clock can be off"));
    }

    #[test]
    fn silence_and_youth_are_added() {
        let vote = SourceVote { heard_s: Some(49.0), warming_up: true, ..source().vote };
        let text = said(&SourceReport { vote, ..source() });
        assert!(text.ends_with("; not heard for 49 s, so its interval grows; still warming up"), "{text}");
    }

    #[test]
    fn a_weight_is_stated_and_a_suspect_has_none() {
        let with = |weight, suspect| {
            let vote = SourceVote { weight, suspect, ..source().vote };
            SourceReport { vote, offset_s: Some(-3e-4), ..source() }
        };
        let third = sentence(&with(Some(0.333), false), QuorumReport::Majority, &vote());
        assert!(third.ends_with("; its weight in the published time is 33 %"), "{third}");
        let suspect = sentence(&with(Some(0.0), true), QuorumReport::Majority, &vote());
        assert!(suspect.starts_with("suspect, so without weight: ") && suspect.contains("300 us from"), "{suspect}");
    }

    #[test]
    fn the_bounds_say_what_they_rest_on() {
        assert!(believed_premise(&vote()).starts_with("none of the 3 believed servers is false by less"));
        assert_eq!(strict_premise(&vote()), "at most 2 of the 5 servers with a vote can be false, in whatever way");
        let two = VoteReport { deciders: 2, tolerated: 0, by_trust: true, ..vote() };
        assert_eq!(strict_premise(&two), "the claims of all 2 trusted servers with a vote are true");
        let none = VoteReport { believed: 0, ..vote() };
        assert_eq!(strict_premise(&none), believed_premise(&none));
        assert!(believed_premise(&VoteReport { believed: 1, ..vote() }).contains("the one believed server"));
    }
}

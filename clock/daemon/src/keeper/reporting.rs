//! The keeper's state as the control socket and the metrics report it.

use super::Keeper;
use super::election_log::Standing;
use crate::config::{PublishedBound, StampChoice};
use crate::control::Reporter;
use crate::journal::Weight;
use crate::peer::Peer;
use ffclock_control::protocol::{BeliefReport, ClockReport, CounterReport, SourceReport, StatusReport, VoteReport};
use ffclock_control::why;
use ffclock_counter::read_narrowest;
use ffclock_sys::StampQuality;
use ffclock_units::{Span, StandardUncertainty};

/// The number of brackets tried when the system clock is compared.
const TRIES: usize = 8;

impl Keeper<'_> {
    fn clock_report(&self) -> Option<ClockReport> {
        let publication = self.published.as_ref()?;
        let estimate = &publication.estimate;
        // Both clocks are read at one moment: the middle of the narrowest bracket.
        let pair = read_narrowest(self.host_counter.kind(), TRIES, ffclock_sys::system_utc_now);
        let at = estimate.at(pair.middle());
        let reading = at.to_utc(&self.leaps);
        let ahead = self.leaps.announced().filter(|leap| leap.utc_second > reading.time.whole_seconds());
        Some(ClockReport {
            status: reading.status,
            utc_ns: reading.time.since_origin().as_nanos() as i64,
            system_clock_behind_s: (reading.time - pair.value).as_seconds(),
            bound_s: reading.bound.as_seconds(),
            bound_strict_s: known(self.strict.after(at.time - estimate.time).as_span()),
            uncertainty_s: at.uncertainty.as_seconds(),
            noise_s: known(at.noise.as_span()),
            period_s: estimate.difference_period.as_seconds(),
            rate_ppm: estimate.difference_period.relative_to(self.host_counter.nominal.period).as_ppm(),
            rate_bound_ppm: estimate.difference_bound.as_rate().as_ppm(),
            tai_offset_s: (at.time.whole_seconds() - reading.time.whole_seconds()) as i32,
            leap: ahead.map(|leap| (leap.utc_second, leap.change)),
        })
    }

    fn source_reports(&self, vote: &VoteReport) -> Vec<SourceReport> {
        let counter = self.host_counter.read();
        let published = self.published.map(|publication| publication.estimate.at(counter).time);
        let report = |(server, peer): (usize, &Peer)| {
            let mut report = peer.report();
            report.selected = self.election.selected() == Some(server);
            if let Some(own) = peer.estimate().map(|estimate| estimate.at(counter)) {
                // One that contradicts itself is counted by what it says now.
                let claim = peer.claimed(counter).map_or(Span::ZERO, |claimed| claimed.farthest_from(own.time));
                report.bound_s = known(own.bound.as_span().max(claim));
                report.uncertainty_s = known(own.uncertainty.as_span());
                report.noise_s = known(own.noise.as_span());
                report.offset_s = published.map(|published| (own.time - published).as_seconds());
            }
            self.report_vote(server, &mut report);
            let ends = peer.claimed(counter).zip(published);
            report.vote.proven_s = ends.map(|(proven, published)| {
                ((proven.earliest - published).as_seconds(), (proven.latest - published).as_seconds())
            });
            report.why = why::sentence(&report, self.election.quorum(), vote);
            report
        };
        self.peers.iter().enumerate().map(report).collect()
    }

    /// How a server stands to the vote.
    fn report_vote(&self, server: usize, report: &mut SourceReport) {
        let Standing { belief, misses, .. } = self.election.standing(server);
        report.belief = if report.vote.no_select { BeliefReport::NoSelect } else { belief };
        report.vote.misses_s = misses.map(Span::as_seconds);
        if let Some(member) = self.member(server) {
            (report.vote.weight, report.vote.suspect) = (Some(member.weight), member.is_suspect);
        }
        report.vote.same_as = self.same_as(server).map(str::to_owned);
        report.vote.spare = self.is_spare(server);
        let heard = self.peers.get(server).and_then(Peer::heard_at);
        report.vote.heard_s = heard.map(|heard| (self.context.now - heard).as_seconds());
    }

    fn vote_report(&self) -> VoteReport {
        let counts = self.election.counts();
        let mut report = VoteReport {
            deciders: counts.deciders.into(),
            by_trust: self.election.is_by_trust(),
            tolerated: counts.tolerated.into(),
            believed: counts.believed.into(),
            usable: self.election.usable(),
            min_servers: self.election.rules().min_servers as usize,
            ..VoteReport::default()
        };
        report.strict_premise = why::strict_premise(&report);
        report.bound_premise = match self.election.rules().bound {
            PublishedBound::Believed => why::believed_premise(&report),
            PublishedBound::Strict => report.strict_premise.clone(),
        };
        report
    }

    /// Where packets are stamped: the configured location, and what is used instead.
    fn stamps_report(&self) -> String {
        let names = |quality: fn(StampQuality) -> bool| -> Vec<&str> {
            self.peers.iter().filter(|peer| quality(peer.stamp_quality())).map(Peer::name).collect()
        };
        let shortfalls = [
            (names(|quality| quality == StampQuality::Refused), "the kernel refuses"),
            (names(|quality| matches!(quality, StampQuality::Missing(_))), "the kernel's do not come"),
        ];
        let card_shortfalls = [
            (names(|quality| quality == StampQuality::NoCard), "no network card gives any"),
            (names(|quality| matches!(quality, StampQuality::CardMissing(_))), "the network card's do not serve"),
        ];
        let mut text = self.config.stamps.to_string();
        match (self.config.stamps, self.context.stamper.driver_tally()) {
            (_, Some(tally)) => text += &format!(" ({} at the driver, {} by the socket)", tally.found, tally.missed),
            (StampChoice::Trace | StampChoice::Module, None) => text += " (not to be had: those of the sockets serve)",
            _ => {}
        }
        let located = |location| move |(names, reason)| (location, names, reason);
        for (location, names, reason) in
            shortfalls.into_iter().map(located("user")).chain(card_shortfalls.into_iter().map(located("kernel")))
        {
            if !names.is_empty() && names.len() == self.peers.len() {
                return format!("{location} ({reason})");
            }
            if !names.is_empty() {
                text += &format!("; {location} for {} ({reason})", names.join(", "));
            }
        }
        text
    }
}

impl Reporter for Keeper<'_> {
    fn status(&self) -> StatusReport {
        let chosen = &self.host_counter.chosen;
        let vote = self.vote_report();
        StatusReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.context.journal.uptime_s(),
            counter: CounterReport {
                name: chosen.kind.name().to_owned(),
                reason: chosen.reason.clone(),
                nominal_hz: self.host_counter.nominal.period.as_hertz(),
                epoch: self.host_counter.epoch.raw(),
            },
            stamps: self.stamps_report(),
            page: self.config.page.to_string(),
            clock: self.clock_report(),
            keep_noise_s: self.polling.kept().map(StandardUncertainty::as_seconds),
            selected: self.selected_peer().map(|peer| peer.name().to_owned()),
            quorum: Some(self.election.quorum()),
            sources: self.source_reports(&vote),
            vote: Some(vote),
            events: self.context.journal.latest(),
        }
    }

    fn reload(&mut self) -> Result<(), String> {
        match (self.read_config)() {
            Ok(config) => {
                self.take_over(config);
                Ok(())
            }
            Err(error) => {
                let kind = "the new configuration is refused; the old one stays in force";
                self.context.journal.insist(Weight::Warning, kind, &error);
                Err(error)
            }
        }
    }
}

/// An error figure in seconds; `None` where it is too large to have a meaning.
fn known(error: Span) -> Option<f64> {
    (error < Span::MAX).then(|| error.as_seconds())
}

//! The keeper's state as the control socket and the metrics report it.

use super::Keeper;
use crate::config::StampChoice;
use crate::control::Reporter;
use crate::journal::Weight;
use crate::peer::Peer;
use ffclock_control::protocol::{ClockReport, CounterReport, SourceReport, StatusReport};
use ffclock_counter::read_narrowest;
use ffclock_sys::StampQuality;
use ffclock_units::Span;

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
            uncertainty_s: reading.uncertainty.as_seconds(),
            period_s: estimate.difference_period.as_seconds(),
            rate_ppm: estimate.difference_period.relative_to(self.host_counter.nominal.period).as_ppm(),
            rate_bound_ppm: estimate.difference_bound.as_rate().as_ppm(),
            tai_offset_s: (at.time.whole_seconds() - reading.time.whole_seconds()) as i32,
            leap: ahead.map(|leap| (leap.utc_second, leap.change)),
        })
    }

    fn source_reports(&self) -> Vec<SourceReport> {
        let counter = self.host_counter.read();
        let published = self.published.map(|publication| publication.estimate.at(counter).to_utc(&self.leaps));
        let report = |(server, peer): (usize, &Peer)| {
            let mut report = peer.report();
            report.selected = self.election.selected() == Some(server);
            report.belief = self.election.belief(server);
            if let Some(own) = peer.estimate().map(|estimate| estimate.at(counter).to_utc(&self.leaps)) {
                report.bound_s = known(own.bound.as_span());
                report.uncertainty_s = known(own.uncertainty.as_span());
                report.offset_s = published.map(|published| (own.time - published.time).as_seconds());
            }
            report
        };
        self.peers.iter().enumerate().map(report).collect()
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
        let mut text = self.config.stamps.to_string();
        match (self.config.stamps, self.context.stamper.driver_tally()) {
            (_, Some(tally)) => text += &format!(" ({} at the driver, {} by the socket)", tally.found, tally.missed),
            (StampChoice::Trace | StampChoice::Module, None) => text += " (not to be had: those of the sockets serve)",
            _ => {}
        }
        for (names, reason) in shortfalls {
            if !names.is_empty() && names.len() == self.peers.len() {
                return format!("user ({reason})");
            }
            if !names.is_empty() {
                text += &format!("; user for {} ({reason})", names.join(", "));
            }
        }
        text
    }
}

impl Reporter for Keeper<'_> {
    fn status(&self) -> StatusReport {
        let chosen = &self.host_counter.chosen;
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
            selected: self.selected_peer().map(|peer| peer.name().to_owned()),
            quorum: Some(self.election.quorum()),
            sources: self.source_reports(),
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

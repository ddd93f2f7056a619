//! The state of the server in the words of its status socket and of its metrics.

use crate::face::ServedClaim;
use ffclock_control::metrics::Family;
use ffclock_control::metrics::serve as metrics;
use ffclock_control::serve::{ClaimReport, PtpPortReport, ServeReport};
use ffclock_service::Exposition;
use ffclock_wire::LeapIndicator;
use std::collections::BTreeMap;

/// What replies claim.
pub(crate) fn claim_report(claim: ServedClaim) -> ClaimReport {
    ClaimReport {
        stratum: claim.stratum,
        reference_id: format!("{:08x}", claim.reference_id),
        leap: match claim.leap {
            LeapIndicator::Insert => "insert",
            LeapIndicator::Delete => "delete",
            LeapIndicator::None | LeapIndicator::Unsynchronised => "none",
        }
        .to_owned(),
        root_distance_s: claim.distance.as_seconds(),
    }
}

/// The metrics of a report.
pub(crate) fn exposition(report: &ServeReport) -> String {
    let mut text = Exposition::default();
    text.value(&metrics::SYNCHRONISED, Some(f64::from(report.claim.is_some())));
    text.value(&metrics::ROOT_DISTANCE, report.claim.as_ref().map(|claim| claim.root_distance_s));
    text.value(&metrics::STRATUM, report.claim.as_ref().map(|claim| f64::from(claim.stratum)));
    text.describe(&metrics::PACKETS);
    for (kind, count) in &report.counts {
        text.labelled(&metrics::PACKETS, ("kind", kind), count);
    }
    if let Some(nts) = &report.nts {
        text.value(&metrics::CERTIFICATE_END, nts.certificate_end_unix_s.map(|end| end as f64));
        text.describe(&metrics::ESTABLISHMENTS);
        for (reason, count) in &nts.establishments {
            text.labelled(&metrics::ESTABLISHMENTS, ("reason", reason), count);
        }
    }
    if let Some(path) = &report.fast_path {
        text.value(&metrics::FAST_PATH, Some(f64::from(path.attached.is_some())));
        text.describe(&metrics::FAST_PACKETS);
        for (kind, count) in &path.counts {
            text.labelled(&metrics::FAST_PACKETS, ("kind", kind), count);
        }
    }
    if !report.ptp.is_empty() {
        expose_ptp(&mut text, &report.ptp);
    }
    text.value(&metrics::KERNEL_DROPPED, Some(report.kernel_dropped as f64));
    text.value(&metrics::UPTIME, Some(report.uptime_s));
    text.end()
}

/// The metrics of the ports of PTP.
fn expose_ptp(text: &mut Exposition, ports: &[PtpPortReport]) {
    let mut of_each = |family: &'static Family, value: &dyn Fn(&PtpPortReport) -> Option<f64>| {
        text.describe(family);
        for (port, value) in ports.iter().filter_map(|port| Some((port, value(port)?))) {
            text.labelled(family, ("port", &port.port), &value);
        }
    };
    of_each(&metrics::PTP_SERVING, &|port| Some(f64::from(port.state == "serving")));
    of_each(&metrics::PTP_CLOCK_CLASS, &|port| Some(f64::from(port.clock_class)));
    of_each(&metrics::PTP_CLOCK_ACCURACY, &|port| port.clock_accuracy_s);
    of_each(&metrics::PTP_GRANTS, &|port| Some(port.grants as f64));
    text.describe(&metrics::PTP_MESSAGES);
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, count) in ports.iter().flat_map(|port| &port.counts) {
        *sums.entry(kind).or_default() += count;
    }
    for (kind, count) in sums {
        text.labelled(&metrics::PTP_MESSAGES, ("kind", kind), &count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_control::serve::{FastPathReport, NtsReport, PtpPortReport};

    #[test]
    fn every_metric_is_served_in_order_and_stands_in_the_document() {
        let claim = ClaimReport {
            stratum: 2,
            reference_id: "c0000201".to_owned(),
            leap: "none".to_owned(),
            root_distance_s: 1e-3,
        };
        let nts = NtsReport {
            listen: Vec::new(),
            cookie_key: Some(20_000),
            rotation_s: 86_400.0,
            old_keys: 7,
            certificate_end: Some("2027-01-01T00:00:00Z".to_owned()),
            certificate_end_unix_s: Some(1_798_761_600),
            establishments: [("established".to_owned(), 5)].into(),
        };
        let report = ServeReport {
            version: String::new(),
            uptime_s: 1.0,
            page: String::new(),
            listen: Vec::new(),
            threads: 1,
            claim: Some(claim),
            unserved: None,
            nts: Some(nts),
            smear: String::new(),
            kernel_dropped: 0,
            counts: [("received".to_owned(), 7)].into(),
            fast_path: Some(FastPathReport {
                attached: Some("eth0 (native)".to_owned()),
                counts: [("replied".to_owned(), 8)].into(),
                ..FastPathReport::default()
            }),
            ptp: vec![PtpPortReport {
                port: "eth0/ipv4".to_owned(),
                state: "serving".to_owned(),
                clock_class: 6,
                clock_accuracy_s: Some(1e-4),
                grants: 3,
                counts: [("received".to_owned(), 9)].into(),
                ..PtpPortReport::default()
            }],
        };
        let text = exposition(&report);
        let served: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let listed: Vec<String> =
            metrics::ALL.iter().map(|family| format!("{} {}", family.name, family.kind.name())).collect();
        assert_eq!(served, listed);
        assert!(text.contains("\nffclock_serve_establishments_total{reason=\"established\"} 5\n"), "{text}");
        assert!(text.contains("\nffclock_serve_certificate_end_seconds 1798761600\n"), "{text}");
        assert!(text.contains("\nffclock_serve_packets_total{kind=\"received\"} 7\n"), "{text}");
        assert!(text.contains("\nffclock_serve_fast_path 1\n"), "{text}");
        assert!(text.contains("\nffclock_serve_fast_packets_total{kind=\"replied\"} 8\n"), "{text}");
        assert!(text.contains("\nffclock_serve_ptp_clock_class{port=\"eth0/ipv4\"} 6\n"), "{text}");
        assert!(text.contains("\nffclock_serve_ptp_messages_total{kind=\"received\"} 9\n"), "{text}");
        let document = include_str!("../../../docs/serve.md");
        for family in metrics::ALL {
            assert!(document.contains(&format!("`{}`", family.sample())), "docs/serve.md has no `{}`", family.sample());
        }
    }
}

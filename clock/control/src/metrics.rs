//! The metrics that the daemon serves: each family with its name, kind, unit and help, in this one place.
//!
//! docs/operations.md explains each of them to operators. The daemon fills them in from a
//! [`StatusReport`](crate::protocol::StatusReport).

/// Whether the values of a family can fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They rise and fall.
    Gauge,
    /// They only rise, until the daemon starts again.
    Counter,
}

/// A family of metrics, as OpenMetrics describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The name, with the unit at its end where it has one.
    pub name: &'static str,
    /// Gauge or counter.
    pub kind: Kind,
    /// The unit; empty for numbers and for yes (1) and no (0).
    pub unit: &'static str,
    /// The help text, one sentence.
    pub help: &'static str,
}

impl Kind {
    /// The name in OpenMetrics.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        }
    }
}

impl Family {
    /// A family; `name` ends with the unit where it has one.
    pub const fn new(name: &'static str, kind: Kind, unit: &'static str, help: &'static str) -> Self {
        Family { name, kind, unit, help }
    }

    /// The name before each value: that of the family, with the ending that OpenMetrics demands of counters.
    pub fn sample(&self) -> String {
        match self.kind {
            Kind::Gauge => self.name.to_owned(),
            Kind::Counter => format!("{}_total", self.name),
        }
    }
}

/// Makes a constant of each family, and the list of all; the help is also the documentation of the constant.
macro_rules! families {
    ($($constant:ident = $name:literal: $kind:ident $(in $unit:literal)?, $help:literal;)+) => {
        $(
            #[doc = $help]
            pub const $constant: Family =
                Family::new($name, Kind::$kind, concat!($($unit)?), $help);
        )+

        /// Every family, in the order in which they are served.
        pub const ALL: &[Family] = &[$($constant),+];
    };
}

families! {
    SYNCHRONISED = "ffclock_synchronised": Gauge, "Whether the published clock is synchronised.";
    MAJORITY = "ffclock_majority": Gauge, "Whether more than half of the servers agree.";
    BOUND = "ffclock_bound_seconds": Gauge in "seconds", "Largest possible error of the published clock.";
    BOUND_STRICT = "ffclock_bound_strict_seconds": Gauge in "seconds",
        "Largest possible error of the published clock although the tolerated number of servers is false.";
    DECIDERS = "ffclock_deciders": Gauge, "Servers that decide the vote.";
    TOLERATED = "ffclock_tolerated": Gauge, "Deciders that may be false while the strict bound holds.";
    BELIEVED = "ffclock_believed": Gauge, "Servers that are believed.";
    UNCERTAINTY = "ffclock_uncertainty_seconds": Gauge in "seconds",
        "Combined standard uncertainty (k = 1) of the published clock: noise, path and servers.";
    NOISE = "ffclock_noise_seconds": Gauge in "seconds",
        "Part of the standard uncertainty of the published clock that exchanges show.";
    SYSTEM_CLOCK_BEHIND = "ffclock_system_clock_behind_seconds": Gauge in "seconds", "Published clock - system clock.";
    RATE = "ffclock_rate_ppm": Gauge in "ppm", "Long-term rate of the counter against its nominal frequency.";
    RATE_BOUND = "ffclock_rate_bound_ppm": Gauge in "ppm", "Largest error of the long-term rate.";
    COUNTER_EPOCH = "ffclock_epoch": Gauge, "Number of the counter's present epoch.";
    KEEP_NOISE = "ffclock_keep_noise_seconds": Gauge in "seconds",
        "The uncertainty by noise that polls are chosen to keep.";
    UPTIME = "ffclock_uptime_seconds": Gauge in "seconds", "Time since the daemon started.";
    SOURCE_SELECTED = "ffclock_source_selected": Gauge, "Whether this source is the selected one.";
    SOURCE_FALSETICKER = "ffclock_source_falseticker": Gauge,
        "Whether the majority of the servers contradicts this source.";
    SOURCE_TRUECHIMER = "ffclock_source_truechimer": Gauge,
        "Whether this source agrees with every majority of the servers.";
    SOURCE_SUSPECT = "ffclock_source_suspect": Gauge,
        "Whether this source agrees with the majority, but not as far as paths and claims explain.";
    SOURCE_WEIGHT = "ffclock_source_weight_ratio": Gauge,
        "The share of this source in the published time, where several make it together.";
    SOURCE_UNDECIDED = "ffclock_source_undecided": Gauge, "Whether no vote can say if this source is right.";
    SOURCE_MISSES = "ffclock_source_misses_seconds": Gauge in "seconds",
        "How far this source's proven interval misses what the believed servers share.";
    SOURCE_HEARD = "ffclock_source_heard_seconds": Gauge in "seconds", "Time since this source's last answer that was of use.";
    SOURCE_REACHABLE = "ffclock_source_reachable": Gauge, "Whether this source answers.";
    SOURCE_POLL = "ffclock_source_poll_seconds": Gauge in "seconds", "Time between two requests now.";
    SOURCE_WANDER = "ffclock_source_wander_ppm": Gauge in "ppm",
        "The wander of the counter's rate that this source's bound assumes: what was configured, or more if learned.";
    SOURCE_STRATUM = "ffclock_source_stratum": Gauge, "Distance from a primary source.";
    SOURCE_ROOT_DISTANCE = "ffclock_source_root_distance_seconds": Gauge in "seconds",
        "The server's claim of its error.";
    SOURCE_FLOOR = "ffclock_source_floor_seconds": Gauge in "seconds", "Smallest round trip in force.";
    SOURCE_ROUND_TRIP = "ffclock_source_round_trip_seconds": Gauge in "seconds", "Round trip of the last exchange.";
    SOURCE_BOUND = "ffclock_source_bound_seconds": Gauge in "seconds", "Largest possible error of this source's clock.";
    SOURCE_OFFSET = "ffclock_source_offset_seconds": Gauge in "seconds", "This source's clock - the published clock.";
    SOURCE_LEARNED_AGREES = "ffclock_source_learned_agrees": Gauge,
        "Whether the learned estimator has enough data and agrees with the classic.";
    SOURCE_LEARNED_CONTRADICTS = "ffclock_source_learned_contradicts": Gauge,
        "Whether the learned and the classic time contradict each other.";
    SOURCE_COOKIES = "ffclock_source_cookies": Gauge, "Cookies of NTS that are left.";
    SOURCE_CERTIFICATE_END = "ffclock_source_certificate_end_seconds": Gauge in "seconds",
        "End of the certificate that keys were established with, in seconds since 1970.";
    SOURCE_REQUESTS = "ffclock_source_requests": Counter, "Requests sent.";
    SOURCE_EXCHANGES = "ffclock_source_exchanges": Counter, "Replies accepted.";
    SOURCE_USED = "ffclock_source_used": Counter, "Exchanges that moved the estimate.";
    SOURCE_INTERLEAVED = "ffclock_source_interleaved": Counter, "Replies in the interleaved mode.";
    SOURCE_LOST = "ffclock_source_lost": Counter, "Requests without a reply.";
    SOURCE_REJECTED = "ffclock_source_rejected": Counter, "Packets refused.";
}

/// What ffclock-serve serves of itself.
pub mod serve {
    use super::{Family, Kind};

    families! {
        SYNCHRONISED = "ffclock_serve_synchronised": Gauge, "Whether replies claim a time.";
        ROOT_DISTANCE = "ffclock_serve_root_distance_seconds": Gauge in "seconds",
            "Half the root delay and the root dispersion of replies: the largest error that they admit.";
        STRATUM = "ffclock_serve_stratum": Gauge, "Stratum of replies.";
        PACKETS = "ffclock_serve_packets": Counter, "Packets of each kind.";
        CERTIFICATE_END = "ffclock_serve_certificate_end_seconds": Gauge in "seconds",
            "End of the certificate that is shown for NTS, in seconds since 1970.";
        ESTABLISHMENTS = "ffclock_serve_establishments": Counter,
            "Connections for key establishment (NTS), by the reason for which they ended.";
        FAST_PATH = "ffclock_serve_fast_path": Gauge, "Whether the program that answers in the driver is attached.";
        FAST_PACKETS = "ffclock_serve_fast_packets": Counter, "Packets to the served port with each outcome in the driver.";
        PTP_SERVING = "ffclock_serve_ptp_serving": Gauge,
            "Whether this port of PTP serves: there is a time, and no better master speaks.";
        PTP_CLOCK_CLASS = "ffclock_serve_ptp_clock_class": Gauge, "Clock class that this port of PTP announces.";
        PTP_CLOCK_ACCURACY = "ffclock_serve_ptp_clock_accuracy_seconds": Gauge in "seconds",
            "Largest error that this port of PTP announces.";
        PTP_GRANTS = "ffclock_serve_ptp_grants": Gauge, "Unicast grants of PTP in force.";
        PTP_MESSAGES = "ffclock_serve_ptp_messages": Counter, "Messages of PTP of each kind, of all ports.";
        KERNEL_DROPPED = "ffclock_serve_kernel_dropped": Counter,
            "Packets that the kernel threw away because a socket was full.";
        UPTIME = "ffclock_serve_uptime_seconds": Gauge in "seconds", "Time since the server started.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_stands_in_the_document() {
        let document = include_str!("../../../docs/operations.md");
        for family in ALL {
            let sample = format!("`{}`", family.sample());
            assert!(document.contains(&sample), "docs/operations.md does not explain {sample}");
        }
    }

    /// The converse: every documented metric is served.
    #[test]
    fn every_metric_of_the_document_is_served() {
        let document = include_str!("../../../docs/operations.md");
        let rows = document.lines().filter(|line| line.starts_with("| `ffclock_"));
        let first_cells = rows.filter_map(|row| row.split('|').nth(1));
        let named: Vec<&str> = first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        assert_eq!(named.len(), ALL.len(), "{named:?}");
        for name in named {
            assert!(ALL.iter().any(|family| family.sample() == name), "docs/operations.md explains {name}");
        }
    }

    /// OpenMetrics: the name of a family ends with its unit, and two families have two names.
    #[test]
    fn names_end_with_their_unit_and_are_unique() {
        for (index, family) in ALL.iter().enumerate() {
            let ending = family.name.rsplit('_').next().filter(|ending| ["seconds", "ppm"].contains(ending));
            assert_eq!(ending.unwrap_or_default(), family.unit, "{}", family.name);
            assert!(family.help.ends_with('.'), "{}", family.name);
            assert!(ALL[..index].iter().all(|other| other.name != family.name), "{} stands twice", family.name);
        }
    }
}

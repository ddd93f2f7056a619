//! What the network does in a run, and when.

use crate::failure::Failure;
use ffclock_units::Span;

/// What happens to the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathChange {
    /// No packet passes any more.
    Cut,
    /// They pass again.
    Join,
}

impl PathChange {
    /// In words, for the log of a run.
    pub(super) fn words(self) -> &'static str {
        match self {
            PathChange::Cut => "the server is cut off",
            PathChange::Join => "the server is back",
        }
    }
}

/// A plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct LivePlan {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The polling interval of all, as a power of two [s].
    pub(super) poll_log2: i32,
    /// Who runs where none is named; empty: all that are not for special runs.
    pub(super) contestants: &'static [&'static str],
    /// The parts of a run that are judged by themselves.
    pub(super) phases: &'static [Phase],
    /// The timetable, in shares of the whole run, in order.
    pub(super) timetable: &'static [(f64, PathChange)],
    pub(super) path: LivePath,
    /// The share of the run from which on a second server answers, of the same LAN, beside the one behind the path.
    pub(super) second_server: Option<f64>,
    /// What burns on the host during the whole run, beside what `--load` names.
    pub(super) load: &'static [Load],
}

/// A part of a run with one condition of the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// Where it begins and ends, in shares of the whole run.
    pub(super) shares: [f64; 2],
    /// The spread that is asked of [`JUDGED`], over the smallest of those that are not of ffclock.
    pub(super) goal: f64,
}

/// Whose spread the goals of phases are about.
pub(super) const JUDGED: &str = "ffclockd-ptp";

/// The phases of the plan for PTP. Those who follow a change late have the begin of the run, and some time after the
/// congestion, which belong to no phase. The route changes in the middle of the last one.
const PTP_PHASES: &[Phase] = &[
    Phase { name: "quiet", shares: [0.25, 0.45], goal: 0.6 },
    Phase { name: "congested", shares: [0.45, 0.65], goal: 0.5 },
    Phase { name: "route change", shares: [0.7, 1.0], goal: 0.05 },
];
const ROUTE_CHANGE: f64 = 0.85;

/// Transfers that come again and again, from the begin of a run on, with a pause after each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Transfers {
    /// From the begin of one to that of the next [s].
    every_s: f64,
    /// How long each lasts [s].
    lasts_s: f64,
}

/// What lies between the server and a contestant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LivePath {
    /// A pair of devices.
    Direct,
    /// A router with the path of a scenario of the simulator, and when that comes under another law.
    Scenario { text: &'static str, transfers: Option<Transfers> },
    /// A router, and from half of the run on a route to the server that is longer by 0.9 ms.
    Shift,
    /// A router with the conditions of [`PTP_PHASES`].
    Phases,
    /// A router, and from half of the run on each reply is held back by up to 4 ms, as by a slow capture at the host.
    Capture,
}

/// A path with the transfers of scenarios/paper/congestion.toml.
const CONGESTION: LivePath = LivePath::Scenario {
    text: include_str!("../../../../scenarios/paper/congestion.toml"),
    transfers: Some(Transfers { every_s: 430.0, lasts_s: 420.0 }),
};
/// A path under one law.
const FIVE_HOPS: LivePath =
    LivePath::Scenario { text: include_str!("../../../../scenarios/near-16.toml"), transfers: None };

impl LivePath {
    /// When a run of this length comes under another law, its begin included [s].
    pub(super) fn changes(self, length_s: f64) -> Vec<f64> {
        let shares = |shares: &[f64]| shares.iter().map(|share| share * length_s).collect();
        match self {
            LivePath::Direct | LivePath::Scenario { transfers: None, .. } => shares(&[0.0]),
            LivePath::Shift | LivePath::Capture => shares(&[0.0, 0.5]),
            LivePath::Phases => shares(&[0.0, PTP_PHASES[1].shares[0], PTP_PHASES[1].shares[1], ROUTE_CHANGE]),
            LivePath::Scenario { transfers: Some(Transfers { every_s, lasts_s }), .. } => {
                let begins = (0..).map(|period| f64::from(period) * every_s).take_while(|begin| *begin < length_s);
                begins.flat_map(|begin| [begin, begin + lasts_s]).filter(|at| *at < length_s).collect()
            }
        }
    }
}

/// What takes the host's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Load {
    /// A busy loop for each processor
    Cpu,
    /// Writing 64 MiB again and again, each time to the disk
    Disk,
}

impl Load {
    /// The directory of all burners within that of a run, and the file there that the disk's writes.
    pub(super) const DIRECTORY: &str = "load";
    pub(super) const FILE: &str = "burnt";

    /// The shell command of one burner, whose directory is `$0`, and how many there are. Once the file is taken away, a
    /// write that was just beginning does not make it again.
    pub(super) fn burner(self) -> (&'static str, usize) {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        match self {
            Load::Cpu => ("while :; do :; done", processors),
            Load::Disk => (
                ": >\"$0/burnt\"
while :; do setpriv --pdeathsig KILL dd if=/dev/zero of=\"$0/burnt\" bs=1M count=64 conv=fsync,nocreat 2>/dev/null; done",
                1,
            ),
        }
    }
}

impl LivePlan {
    const fn quiet(name: &'static str, about: &'static str, poll_log2: i32) -> Self {
        let path = LivePath::Direct;
        let (contestants, phases, timetable, load): (_, _, _, &[Load]) = (&[], &[], &[], &[]);
        LivePlan { name, about, poll_log2, contestants, phases, timetable, path, second_server: None, load }
    }
}

/// All plans.
pub(super) const PLANS: &[LivePlan] = &[
    LivePlan::quiet("quiet-1", "direct links, a request every second", 0),
    LivePlan::quiet("quiet-16", "direct links, a request every 16 s", 4),
    LivePlan::quiet("quiet-64", "direct links, a request every 64 s", 6),
    LivePlan::quiet("quiet-256", "direct links, a request every 256 s", 8),
    LivePlan {
        timetable: &[(0.5, PathChange::Cut), (0.8, PathChange::Join)],
        ..LivePlan::quiet(
            "cut-16",
            "a request every 16 s, and the server cut off from one half to four fifths of the run",
            4,
        )
    },
    LivePlan {
        timetable: &[(0.1, PathChange::Cut), (0.95, PathChange::Join)],
        ..LivePlan::quiet(
            "outage-16",
            "a request every 16 s, and the server cut off from one tenth to nineteen twentieths of the run",
            4,
        )
    },
    LivePlan {
        path: CONGESTION,
        ..LivePlan::quiet("congested-16", "a router with transfers of 30 Mbit/s and pauses, a request every 16 s", 4)
    },
    LivePlan {
        path: LivePath::Shift,
        ..LivePlan::quiet("shift-16", "a router, the way to the server 0.9 ms longer from one half of the run on", 4)
    },
    LivePlan {
        path: LivePath::Capture,
        ..LivePlan::quiet(
            "capture-16",
            "a router that holds back each reply from one half of the run on, a request every 16 s",
            4,
        )
    },
    LivePlan {
        path: FIVE_HOPS,
        second_server: Some(0.5),
        contestants: &[
            "ffclockd-learned",
            "ffclockd-tuned",
            "chronyd-default",
            "chronyd-relaxed",
            "ntpd-tuned",
            "ntpd-relaxed",
        ],
        ..LivePlan::quiet(
            "servers-16",
            "a server five hops away by a router, and from one half of the run on one of the LAN beside it",
            4,
        )
    },
    LivePlan {
        load: &[Load::Cpu, Load::Disk],
        ..LivePlan::quiet("stress-16", "direct links, the host's processors and disk busy, a request every 16 s", 4)
    },
    LivePlan {
        path: LivePath::Phases,
        phases: PTP_PHASES,
        contestants: &[
            JUDGED,
            "ptp4l-default",
            "ptp4l-tuned",
            "ptpd-default",
            "ptpd-tuned",
            "ffclock-then-ffclockd",
            "ffclock-then-ptp4l",
        ],
        ..LivePlan::quiet("ptp-1", "PTP by a router: quiet, with transfers, and a way that becomes 0.9 ms longer", 0)
    },
];

impl LivePlan {
    /// The plan of this name.
    pub(super) fn named(name: &str) -> Result<Self, Failure> {
        let names = || PLANS.iter().map(|plan| plan.name).collect::<Vec<_>>().join(", ");
        let found = PLANS.iter().find(|plan| plan.name == name).copied();
        found.ok_or_else(|| Failure::usage(format!("there is no plan {name:?}; there are {}", names())))
    }

    /// The same with this polling interval, where one is given.
    pub(super) fn polled(self, poll_log2: Option<i32>) -> Self {
        LivePlan { poll_log2: poll_log2.unwrap_or(self.poll_log2), ..self }
    }

    /// The polling interval [s].
    pub(super) fn poll_s(&self) -> f64 {
        2_f64.powi(self.poll_log2)
    }

    /// The scenario whose path lies between server and contestants, for a run of this length; none for direct links.
    pub(super) fn scenario(&self, length: Span) -> Option<String> {
        let at = |share: f64| format!("{} s", length.as_seconds() * share);
        let half = at(0.5);
        match self.path {
            LivePath::Direct => None,
            LivePath::Scenario { text, .. } => Some(text.to_owned()),
            LivePath::Shift => Some(include_str!("shift.toml").replace("{half}", &half)),
            LivePath::Phases => {
                let [begin, end] = PTP_PHASES[1].shares.map(at);
                let text = include_str!("phases.toml").replace("{begin}", &begin).replace("{end}", &end);
                Some(text.replace("{change}", &at(ROUTE_CHANGE)))
            }
            LivePath::Capture => Some(include_str!("capture.toml").replace("{half}", &half)),
        }
    }

    /// Whether the second server answers `watched` after the begin of a run of this length.
    pub(super) fn has_second_server_at(&self, watched: Span, length: Span) -> bool {
        self.second_server.is_some_and(|share| watched.as_seconds() >= share * length.as_seconds())
    }

    /// Whether packets pass `watched` after the begin of a run of this length.
    pub(super) fn state_at(&self, watched: Span, length: Span) -> PathChange {
        let share = watched.as_seconds() / length.as_seconds();
        let past = self.timetable.iter().take_while(|(at, _)| *at <= share);
        past.last().map_or(PathChange::Join, |(_, change)| *change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timetable_holds_wherever_a_session_begins() {
        let plan = LivePlan::named("cut-16").unwrap();
        let state = |seconds| plan.state_at(Span::from_secs(seconds), Span::from_secs(1000));
        let states = [0, 499, 500, 799, 800, 1000].map(state);
        use PathChange::{Cut, Join};
        assert_eq!(states, [Join, Join, Cut, Cut, Join, Join]);
        assert_eq!(LivePlan::named("quiet").unwrap_err().code, Failure::USAGE);
        let has_second = |name: &str, seconds| {
            let plan = LivePlan::named(name).unwrap();
            plan.has_second_server_at(Span::from_secs(seconds), Span::from_secs(1000))
        };
        assert_eq!([0, 499, 500, 1000].map(|seconds| has_second("servers-16", seconds)), [false, false, true, true]);
        assert!(!has_second("cut-16", 1000));
    }
}

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
    pub(super) poll_log2: u32,
    /// The timetable, in shares of the whole run, in order.
    pub(super) timetable: &'static [(f64, PathChange)],
}

/// All plans.
pub(super) const PLANS: &[LivePlan] = &[
    LivePlan { name: "quiet-1", about: "direct links, a request each second", poll_log2: 0, timetable: &[] },
    LivePlan { name: "quiet-16", about: "direct links, a request each 16 s", poll_log2: 4, timetable: &[] },
    LivePlan { name: "quiet-64", about: "direct links, a request each 64 s", poll_log2: 6, timetable: &[] },
    LivePlan {
        name: "cut-16",
        about: "a request each 16 s, and the server cut off from one half to four fifths of the run",
        poll_log2: 4,
        timetable: &[(0.5, PathChange::Cut), (0.8, PathChange::Join)],
    },
];

impl LivePlan {
    /// The plan of this name.
    pub(super) fn named(name: &str) -> Result<Self, Failure> {
        let names = || PLANS.iter().map(|plan| plan.name).collect::<Vec<_>>().join(", ");
        let found = PLANS.iter().find(|plan| plan.name == name).copied();
        found.ok_or_else(|| Failure::usage(format!("there is no plan {name:?}; there are {}", names())))
    }

    /// The polling interval [s].
    pub(super) fn poll_s(&self) -> u32 {
        1 << self.poll_log2
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
    }
}

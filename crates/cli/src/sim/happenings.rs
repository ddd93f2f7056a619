//! What a scenario does to its world and when, in words for a report.

use ffclock_sim::Scenario;
use ffclock_sim::scenario::{FaultSpec, Length};

/// Something that is done for a while.
pub(super) struct Happening {
    pub(super) begin_s: f64,
    pub(super) end_s: f64,
    pub(super) text: String,
}

/// Everything with a beginning in the scenario, in the order of its file.
pub(super) fn all(scenario: &Scenario) -> Vec<Happening> {
    let path = &scenario.path;
    let last = scenario.duration;
    let outages = path.outage.iter().map(|outage| happening(outage.at, outage.until, "server cut off"));
    let routes = path.route.iter().map(|route| happening(route.at, route.until.unwrap_or(last), "another route"));
    let steps = &scenario.oscillator.step;
    let steps = steps.iter().map(|step| happening(step.at, step.until.unwrap_or(last), "another rate"));
    let faults = scenario.server.fault.iter().filter_map(|fault| of_fault(fault, last));
    outages.chain(routes).chain(steps).chain(faults).collect()
}

fn of_fault(fault: &FaultSpec, last: Length) -> Option<Happening> {
    Some(match fault {
        FaultSpec::Wrong(wrong) => happening(wrong.at, wrong.until.unwrap_or(last), "server wrong"),
        FaultSpec::Drift(drift) => happening(drift.at, drift.until, "server drifts"),
        FaultSpec::Smear(smear) => happening(smear.at, last, "server smears"),
        FaultSpec::Claims(claims) => happening(claims.at, claims.until, "server claims a large error"),
        FaultSpec::Restart(restart) => happening(restart.at, restart.until, "server restarts"),
        FaultSpec::Leap(leap) => happening(leap.at, leap.at, "leap second announced"),
        FaultSpec::RateLimit(_) => return None,
    })
}

fn happening(begin: Length, end: Length, text: &str) -> Happening {
    Happening { begin_s: begin.seconds(), end_s: end.seconds(), text: text.to_owned() }
}

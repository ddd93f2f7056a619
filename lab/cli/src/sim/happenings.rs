//! What a scenario does to its world and when, in words for a report.

use ffclock_sim::Scenario;
use ffclock_sim::scenario::{
    Between, Directions, FaultSpec, IntermittentSpec, Length, Periodic, QueueSpec, ServerEntry, SharedSpec, When,
};
use ffclock_units::Span;

/// More pieces than this are one remark: a report would be shaded all over.
const PIECES_MAX: usize = 200;

/// What a report makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HappeningKind {
    /// The clock is not to be judged by what it shows meanwhile.
    Event,
    /// It is: there is a path and a server, and only more to cope with.
    Load,
}

impl HappeningKind {
    /// The name of its remarks in a series.
    pub(super) const fn name(self) -> &'static str {
        match self {
            HappeningKind::Event => "event",
            HappeningKind::Load => "load",
        }
    }
}

/// Something that is done for a while.
#[derive(Debug, PartialEq)]
pub(super) struct ReportedHappening {
    pub(super) begin_s: f64,
    pub(super) end_s: f64,
    pub(super) text: String,
    pub(super) kind: HappeningKind,
}

/// Everything with a beginning in the scenario. Spells of chance have none: when they are depends on the seed.
pub(super) fn all(scenario: &Scenario) -> Vec<ReportedHappening> {
    let last = scenario.duration;
    let servers = scenario.each_server();
    let is_only = scenario.servers.is_empty();
    let of_each = servers.iter().flat_map(|entry| {
        let mut all = of_server(entry, last);
        // The others go on, and so is the clock judged.
        let name = |one: &mut ReportedHappening| {
            (one.text, one.kind) = (format!("{}: {}", entry.name, one.text), HappeningKind::Load);
        };
        all.iter_mut().filter(|_| !is_only).for_each(name);
        all
    });
    let suspends = scenario.host.suspend.iter();
    let suspends = suspends.map(|suspend| happening(suspend.at, suspend.until, "host suspended"));
    let steps = &scenario.oscillator.step;
    let steps = steps.iter().map(|step| happening(step.at, step.until.unwrap_or(last), "another rate"));
    let shared = scenario.shared.iter().flat_map(|shared| of_shared(shared, last));
    let noises = scenario.host.noise.iter().flat_map(|noise| of_queue(noise, "host noise", last));
    of_each.chain(shared).chain(suspends).chain(steps).chain(noises).collect()
}

/// What happens on a part of the way that several servers share.
fn of_shared(shared: &SharedSpec, last: Length) -> Vec<ReportedHappening> {
    let outages = shared.outage.iter().map(|outage| happening(outage.at, outage.until, "servers cut off together"));
    let routes =
        shared.route.iter().map(|route| happening(route.at, route.until.unwrap_or(last), "another shared route"));
    let queues = shared.queue.iter().flat_map(|queue| of_queue(queue, congestion(queue.direction), last));
    outages.chain(routes).chain(queues).collect()
}

/// What happens to one server and on the path to it.
fn of_server(entry: &ServerEntry, last: Length) -> Vec<ReportedHappening> {
    let path = &entry.path;
    let joins = (entry.joins > Length::default()).then(|| happening(Length::default(), entry.joins, "not asked yet"));
    let leaves = entry.leaves.map(|leaves| happening(leaves, last, "no longer asked"));
    let outages = path.outage.iter().map(|outage| happening(outage.at, outage.until, "server cut off"));
    let links = path.intermittent.iter().flat_map(|link| of_link(link, last));
    let routes = path.route.iter().map(|route| happening(route.at, route.until.unwrap_or(last), "another route"));
    let flap = path.flap.iter().map(|_| load(Length::default(), Length::default(), "two routes by turns"));
    let faults = entry.server.fault.iter().filter_map(|fault| of_fault(fault, last));
    let queues = path.queue.iter().flat_map(|queue| of_queue(queue, congestion(queue.direction), last));
    let of_path = outages.chain(links).chain(routes).chain(flap).chain(faults).chain(queues);
    joins.into_iter().chain(leaves).chain(of_path).collect()
}

const fn congestion(direction: Directions) -> &'static str {
    match direction {
        Directions::Both => "congestion",
        Directions::Forward => "congestion on the way there",
        Directions::Backward => "congestion on the way back",
    }
}

/// The rest of each period, in which no packet passes.
fn of_link(link: &IntermittentSpec, last: Length) -> Vec<ReportedHappening> {
    let down = pieces(link.every, Between { at: link.up, until: link.every }, last);
    down.map_or_else(
        || vec![load(Length::default(), Length::default(), &format!("link away in each {}", link.every.0))],
        |down| down.into_iter().map(|(begin, end)| happening(begin, end, "link away")).collect(),
    )
}

fn of_queue(queue: &QueueSpec, text: &str, last: Length) -> Vec<ReportedHappening> {
    match queue.when {
        When::Always | When::Markov(_) | When::SelfSimilar(_) => Vec::new(),
        When::Between(between) => vec![load(between.at, between.until, text)],
        When::Periodic(Periodic { every, lasts }) => {
            let on = pieces(every, Between { at: Length::default(), until: lasts }, last);
            on.map_or_else(
                || vec![load(Length::default(), Length::default(), &format!("{text} in each {}", every.0))],
                |on| on.into_iter().map(|(begin, end)| load(begin, end, text)).collect(),
            )
        }
    }
}

/// A part of each period as long as the world lasts; none if there are too many.
fn pieces(every: Length, part: Between, last: Length) -> Option<Vec<(Length, Length)>> {
    let mut found = Vec::new();
    let mut begin = Span::ZERO;
    while begin + part.at.0 < last.0 {
        if found.len() == PIECES_MAX {
            return None;
        }
        if part.at < part.until {
            found.push((Length(begin + part.at.0), Length((begin + part.until.0).min(last.0))));
        }
        begin += every.0;
    }
    Some(found)
}

fn of_fault(fault: &FaultSpec, last: Length) -> Option<ReportedHappening> {
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

fn happening(begin: Length, end: Length, text: &str) -> ReportedHappening {
    ReportedHappening {
        begin_s: begin.seconds(),
        end_s: end.seconds(),
        text: text.to_owned(),
        kind: HappeningKind::Event,
    }
}

fn load(begin: Length, end: Length, text: &str) -> ReportedHappening {
    ReportedHappening { kind: HappeningKind::Load, ..happening(begin, end, text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(lines: &str) -> Vec<(f64, f64, String, HappeningKind)> {
        let text = format!("extends = \"lan-16\"\nabout = \"x\"\nfrom = \"0 s\"\n{lines}");
        let scenario = Scenario::parse("x", &text).unwrap();
        all(&scenario).into_iter().map(|one| (one.begin_s, one.end_s, one.text, one.kind)).collect()
    }

    fn event(begin_s: f64, end_s: f64, text: &str) -> (f64, f64, String, HappeningKind) {
        (begin_s, end_s, text.to_owned(), HappeningKind::Event)
    }

    fn load(begin_s: f64, end_s: f64, text: &str) -> (f64, f64, String, HappeningKind) {
        (begin_s, end_s, text.to_owned(), HappeningKind::Load)
    }

    #[test]
    fn a_sleeping_host_and_a_link_that_comes_and_goes_are_events() {
        let suspend = "[host]\nsuspend = [{ at = \"1 h\", until = \"2 h\", counter = \"stops\" }]";
        assert_eq!(listed(suspend), [event(3600.0, 7200.0, "host suspended")]);
        let link = "duration = \"2.5 h\"\n[path]\nintermittent = { every = \"1 h\", up = \"10 min\" }";
        let away = |hour: f64| event(3600.0 * hour + 600.0, 3600.0 * (hour + 1.0).min(2.5), "link away");
        assert_eq!(listed(link), [away(0.0), away(1.0), away(2.0)]);
        let always = "[path]\nintermittent = { every = \"1 h\", up = \"1 h\" }";
        assert_eq!(listed(always), []);
    }

    #[test]
    fn what_happens_to_one_of_several_servers_bears_its_name_and_is_a_load() {
        let lines = "[[server]]\nname = \"a\"\njoins = \"1 h\"\n\
                     [[server]]\nname = \"b\"\nfault = [{ wrong = { at = \"2 h\", until = \"3 h\", by = \"1 ms\" } }]\n\
                     [[shared]]\noutage = [{ at = \"4 h\", until = \"5 h\" }]";
        let expected = [
            load(0.0, 3600.0, "a: not asked yet"),
            load(7200.0, 10800.0, "b: server wrong"),
            event(14400.0, 18000.0, "servers cut off together"),
        ];
        assert_eq!(listed(lines), expected);
    }

    #[test]
    fn congestion_and_flapping_are_loads() {
        let queue = |when: &str| {
            listed(&format!(
                "duration = \"3 h\"\n[path]\nqueue = [{{ mean = \"1 ms\", direction = \"forward\", when = {when} }}]"
            ))
        };
        let there = "congestion on the way there";
        assert_eq!(queue("{ between = { at = \"1 h\", until = \"2 h\" } }"), [load(3600.0, 7200.0, there)]);
        let periodic = queue("{ periodic = { every = \"2 h\", lasts = \"30 min\" } }");
        assert_eq!(periodic, [load(0.0, 1800.0, there), load(7200.0, 9000.0, there)]);
        let often = queue("{ periodic = { every = \"10 s\", lasts = \"1 s\" } }");
        assert_eq!(often, [load(0.0, 0.0, "congestion on the way there in each 10 s")]);
        assert_eq!(queue("{ markov = { calm = \"1 h\", busy = \"1 h\" } }"), []);
        let flap = listed("[path]\nflap = { share = 0.5, forward = \"1 us\", backward = \"1 us\" }");
        assert_eq!(flap, [load(0.0, 0.0, "two routes by turns")]);
    }
}

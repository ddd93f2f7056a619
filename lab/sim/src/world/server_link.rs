//! One server of a world, the path to it, and the conversation with it.

use super::{begin, mono};
use crate::path::Path;
use crate::scenario::{Scenario, ServerEntry, stream};
use crate::server::{Server, label};
use ffclock_source::{PollPlace, Source, SourceConfig};
use ffclock_units::{Counter, Direction, LeapTable, Span};

pub(super) struct ServerLink {
    pub(super) name: String,
    path: Path,
    /// The parts of the way that it shares with others, by number.
    pub(super) shared: Vec<usize>,
    pub(super) server: Server,
    /// `None` while it is not configured.
    pub(super) source: Option<Source>,
    pub(super) announced_timeout: Option<Span>,
    /// The latest request: its stamp, and when it was on the wire.
    pub(super) sent: Option<(Counter, Span)>,
    config: SourceConfig,
    /// Its place in polls that are chosen; fixed ones begin with its phase.
    place: PollPlace,
    phase: Span,
    pub(super) joins: Span,
    pub(super) leaves: Option<Span>,
    /// Requests of conversations that have ended.
    asked: u64,
    pub(super) exchanges: u64,
}

impl ServerLink {
    /// Those of a scenario whose chance is drawn.
    pub(super) fn all(scenario: &Scenario, seed: u64) -> Vec<Self> {
        let entries = scenario.each_server();
        entries.iter().enumerate().map(|(index, entry)| Self::new(scenario, (index, entry), seed)).collect()
    }

    fn new(scenario: &Scenario, (index, entry): (usize, &ServerEntry), seed: u64) -> Self {
        let poll = entry.poll.unwrap_or(scenario.poll).0;
        let shared = scenario.shared.iter().enumerate().filter(|(_, shared)| shared.holds(&entry.name));
        ServerLink {
            name: entry.name.clone(),
            path: Path::new(&entry.path, (seed, &stream("path", index))),
            shared: shared.map(|(number, _)| number).collect(),
            server: Server::new(&entry.server, begin(), (seed, &stream("server", index))),
            source: None,
            announced_timeout: None,
            sent: None,
            config: SourceConfig {
                poll,
                poll_min: scenario.poll_min.0,
                poll_max: scenario.poll_max.0,
                burst_count: scenario.burst,
                ..SourceConfig::default()
            },
            place: PollPlace::new(index as u32, scenario.each_server().len() as u32),
            phase: scenario.phase(index),
            joins: entry.joins.0,
            leaves: entry.leaves.map(|leaves| leaves.0),
            asked: 0,
            exchanges: 0,
        }
    }

    /// Begins a conversation.
    pub(super) fn begin(&mut self, now: Span) {
        self.end();
        let first = now + self.phase;
        let pivot = label(LeapTable::built_in().utc_from_tai(begin() + first));
        self.source = Some(Source::new(self.config.clone(), LeapTable::built_in(), pivot, mono(first)));
    }

    /// Asks the server at this poll.
    pub(super) fn choose_poll(&mut self, wanted: Span) {
        if let Some(source) = &mut self.source {
            source.set_place(self.place);
            source.choose_poll(Some(wanted));
        }
    }

    /// Ends the conversation.
    pub(super) fn end(&mut self) {
        let asked = self.source.take().map_or(0, |source| source.statistics().sent);
        self.asked += asked;
        (self.sent, self.announced_timeout) = (None, None);
    }

    /// Requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.asked + self.source.as_ref().map_or(0, |source| source.statistics().sent)
    }

    /// Forward minimum delay minus backward minimum delay, without the host's part.
    pub(super) fn asymmetry(&self) -> Span {
        self.path.asymmetry()
    }

    /// When the copies of a packet arrive that leaves at `at`; `shared` are all parts of ways that servers share.
    pub(super) fn travel(&mut self, shared: &mut [Path], direction: Direction, at: Span) -> [Option<Span>; 2] {
        let mut arrivals = self.path.travel(direction, at);
        for number in &self.shared {
            let Some(part) = shared.get_mut(*number) else { continue };
            arrivals = arrivals.map(|arrival| arrival.and_then(|at| part.travel(direction, at)[0]));
        }
        arrivals
    }
}

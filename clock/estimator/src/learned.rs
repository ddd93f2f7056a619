//! The learned filter: each direction is evidence of its own, queueing is one-sided and its density is learned.
//!
//! A bank of filters, each with another model of the oscillator, predicts the delays of both packets of an exchange and
//! is scored by its predictions; their weighted mean is the clock. The filter only measures: the guard decides what is
//! let in and what is proven, and is asked for four things: the prior of the rate, twice whether a time is within the
//! proof, and whether it could be with more wander. `docs/algorithm/learned.md` has the equations.

mod ambiguity;
mod departure;
mod difference_rate;
mod learning;
mod lone_packet;
mod path;
mod path_change;
mod recent;
mod reinitialise;
mod stages;
mod start;
mod state;
#[cfg(test)]
pub mod tests;

use crate::bank::density::Components;
use crate::bank::group::{Begin, Evident};
use crate::bank::measurement::{MICRO, Measurement};
use crate::bank::model;
use crate::bank::revision::Revision;
use crate::bank::{Bank, Blend, Densities, ModelSet};
use crate::frame::{Frame, Point, Slope};
use crate::guard::{Entry, Guard};
use crate::tuning::learned::YOUNG;
use crate::{ClassicConfig, Events, LearnedConfig};
use alloc::vec::Vec;
pub use departure::Lead;
use difference_rate::DifferenceRate;
use ffclock_units::{Counter, Direction, Exchange, Period};
use path::ServerPath;
pub use path::ServerTime;
use recent::Recent;
use start::Start;
pub use state::State;

/// The filter. After [`Filter::new`] no memory is allocated, but for another list of servers.
#[derive(Clone, Debug)]
pub struct Filter {
    config: LearnedConfig,
    nominal: Period,
    half_asymmetry: f64,
    step_patience: f64,
    set: ModelSet,
    /// What the densities of all paths are made of; it never changes, so they share it.
    components: Components,
    paths: Vec<ServerPath>,
    bank: Bank,
    /// Scratch space in which hypotheses are tried.
    scratch: Bank,
    recent: Recent,
    start: Start,
    now: Option<Now>,
    /// How far the published time is ahead of theta: the weighted mean of the servers' own times, us.
    ahead: f64,
    /// How many servers the vote believes.
    believed: usize,
    shifts: Shifts,
    revisions: Revisions,
}

/// How often floors moved, of either way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shifts {
    pub up: u64,
    pub down: u64,
}

/// An exchange, and what the filter is given beside it.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub server: usize,
    pub exchange: &'a Exchange,
    /// What it is evidence for.
    pub evident: Evident,
    pub guard: &'a Guard,
    /// How the exchange enters the filter.
    pub entry: Entry,
    /// The counter's rate by other means, s/s: for a filter that has lost track.
    pub fallback_rate: f64,
}

/// An exchange in the frame of the time before it.
#[derive(Clone, Copy, Debug)]
struct Placed {
    now: Now,
    point: Point,
}

/// What an exchange made of the filter.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub events: Events,
    /// The error that the exchange alone ascribes to the clock as it was predicted, s; NaN where nothing was.
    pub offset: f64,
    pub revisions: Revisions,
    /// The filter explains its exchanges, and its time has been outside what is proven for long: evidence against what
    /// the proof assumes.
    pub doubts_proof: bool,
}

/// Corrections to earlier exchanges that the last one caused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Revisions {
    /// A new beginning of the time.
    pub began: bool,
    pub list: [Option<Revision>; MOST_REVISIONS],
}

/// The revisions that one exchange can make: a floor that is met rarely, and a change of each way.
const MOST_REVISIONS: usize = 1 + Direction::BOTH.len();

impl Revisions {
    fn note(&mut self, revision: Revision) {
        let free = self.list.iter_mut().find(|cell| cell.is_none());
        debug_assert!(free.is_some(), "no room for {revision:?}");
        if let Some(cell) = free {
            *cell = Some(revision);
        }
    }
}

/// What exists from the first exchange on.
#[derive(Clone, Copy, Debug)]
struct Now {
    /// What was believed of the rate when the filter began.
    prior: Slope,
    /// The frame, through the published time at the last exchange.
    frame: Frame,
    /// The end of the last exchange that was used.
    counter: Counter,
    blend: Blend,
    /// The difference clock's.
    difference: DifferenceRate,
    /// Seconds until `blend.deviation_later`.
    later: f64,
    /// The time between exchanges, s, smoothed.
    poll: f64,
    /// Exchanges that the present time rests on.
    past: u64,
    /// Exchanges in a row that no model explained.
    astray: u32,
    /// Exchanges in a row after which the time lay outside what is proven.
    outside: u32,
    /// It has been there for so long that one of the two is wrong, and it is the proof.
    doubts_proof: bool,
}

impl Filter {
    /// A filter of `servers` without history. `classic` holds the options of the paths and the servers; `nominal` is
    /// the period that the counter is sold with.
    pub fn new(config: LearnedConfig, classic: &ClassicConfig, nominal: Period, servers: usize) -> Self {
        let families = [config.edges || !config.humps, config.humps];
        let set = ModelSet { servers, models: model::models(&config), families };
        let nothing = Begin { server: 0, theta: 0.0, rate: 0.0, rate_variance: 1.0, floors: [0.0; 2], variance: 1.0 };
        let bank = Bank::begin(&nothing, &set);
        let components = Components::new();
        let half_asymmetry = 0.5 * classic.asymmetry.as_seconds() / MICRO;
        Filter {
            half_asymmetry,
            step_patience: classic.step_patience.as_seconds(),
            paths: (0..servers).map(|_| ServerPath::new(&config, &components, half_asymmetry)).collect(),
            components,
            recent: Recent::new(&set),
            start: Start::new(servers),
            now: None,
            ahead: 0.0,
            believed: 0,
            shifts: Shifts::default(),
            revisions: Revisions::default(),
            config,
            nominal,
            set,
            scratch: bank.clone(),
            bank,
        }
    }

    /// Goes on with another list of servers. `origins` has the present number of each, or `None` of a new one, which
    /// has to join.
    pub fn renumber(&mut self, origins: &[Option<usize>]) {
        self.set.servers = origins.len();
        self.bank = self.bank.renumbered(origins);
        self.scratch = self.bank.clone();
        self.recent = Recent::new(&self.set);
        self.start = Start::new(origins.len());
        let mut before: Vec<Option<ServerPath>> = self.paths.drain(..).map(Some).collect();
        let mut path = |origin: &Option<usize>| {
            let known = origin.and_then(|origin| before.get_mut(origin)?.take());
            known.unwrap_or_else(|| ServerPath::new(&self.config, &self.components, self.half_asymmetry))
        };
        self.paths = origins.iter().map(&mut path).collect();
        if self.paths.len() > 1 {
            self.paths.iter_mut().for_each(|path| path.learning.coarsen());
        }
    }

    /// The bytes that its parts occupy beside itself.
    pub fn bytes(&self) -> usize {
        let paths: usize = self.paths.iter().map(ServerPath::bytes).sum();
        paths
            + self.components.bytes()
            + self.start.bytes()
            + self.recent.bytes()
            + self.bank.bytes()
            + self.scratch.bytes()
    }

    /// What is known of a server's queueing now.
    pub fn densities(&self, server: usize) -> Densities<'_> {
        self.paths[server].learning.densities()
    }

    /// Forgets the time; the next exchange begins it.
    pub fn forget(&mut self) {
        self.now = None;
        self.paths.iter_mut().for_each(ServerPath::leave);
    }

    /// The stated asymmetry of a server's path is that of a filter of this server alone.
    pub fn adopt_asymmetry(&mut self, server: usize, own: &Filter) {
        self.paths[server].half_asymmetry = own.half_asymmetry;
    }

    /// Takes over what a filter of this server alone knows of its path and of its time.
    pub fn adopt_path(&mut self, server: usize, own: &Filter) {
        let (Some(now), Some(state), [path]) = (self.now, own.state(), own.paths.as_slice()) else { return };
        let height = now.frame.height(state.counter, state.time) / MICRO;
        let ahead = height - now.blend.rate * now.frame.position(state.counter);
        let [forward, backward] = own.bank.floors(&own.set, 0).floors;
        let variance = (state.noise / MICRO) * (state.noise / MICRO);
        // What packets that do not queue at all would show now.
        let edges = [forward + ahead, backward - ahead].map(|delay| Measurement { delay, trip: 0.0, noise: 0.0 });
        self.bank.for_groups(|group| group.begin_floors(server, &edges, 2.0 * variance));
        self.start.end();
        self.recent.clear();
        self.paths[server].adopt(path, ServerTime { ahead: ahead - now.blend.theta, variance });
        self.paths[server].learning.coarsen();
        self.follow_servers();
    }

    /// Whether no other server has a part in the clock.
    fn is_alone(&self, server: usize) -> bool {
        self.paths.iter().enumerate().all(|(other, path)| other == server || !path.has_joined())
    }

    /// Takes an exchange that the guard let in, or that only another filter suspects.
    pub fn measure(&mut self, input: &Input<'_>) -> Measured {
        debug_assert!(input.server < self.paths.len());
        self.revisions = Revisions::default();
        let point = self.now.map(|now| now.frame.place(input.exchange));
        let offset = self.now.zip(point).map_or(f64::NAN, |(now, point)| {
            now.blend.rate * MICRO * point.middle - (point.height() - self.paths[input.server].half_asymmetry * MICRO)
        });
        if self.is_alone(input.server) {
            let is_young = self.now.is_some_and(|now| now.past < YOUNG);
            let is_misled = self.now.is_some_and(|now| now.prior != input.guard.prior());
            let is_over = match input.entry {
                // The rate that a young filter began with proved wrong, and all that it has found rests on that.
                Entry::First | Entry::Agreeing | Entry::Stretching => is_young && is_misled,
                Entry::Step(_) => is_young,
                Entry::Restart => true,
            };
            if is_over {
                self.now = None;
            }
        } else if !input.entry.continues() {
            self.paths[input.server].leave();
        }
        let mut events = Events::NONE;
        match self.now.zip(point) {
            Some((now, point)) => self.pass(input, Placed { now, point }, &mut events),
            None => self.begin(input, &mut events),
        }
        let doubts_proof = self.now.is_some_and(|now| now.doubts_proof);
        Measured { events, offset, revisions: self.revisions, doubts_proof }
    }

    /// Where the filter begins with an exchange in its own frame.
    fn beginning(&self, input: &Input<'_>, frame: &Frame) -> Begin {
        self.begin_at(input.server, &frame.place(input.exchange), input.guard.prior())
    }

    /// Where a filter begins with an exchange, given what is known of the rate.
    pub fn begin_at(&self, server: usize, point: &Point, prior: Slope) -> Begin {
        Begin::at(server, point, self.paths[server].half_asymmetry, prior)
    }
}

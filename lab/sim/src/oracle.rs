//! Oracles: how well a clock could do that knows the laws of its world.
//!
//! An oracle sees the stamps that all clocks see. It also knows what no clock can know: the Allan deviation levels of
//! the oscillator, the laws of all delays and of their spells, the floors of both ways at each time (so it has no bias
//! by the path's asymmetry), and what was announced to happen: changes of route, faults of the server, steps of
//! temperature. It does not know the skew, the phases of waves, when spells of congestion are, or any noise. The causal
//! oracle sees the packets so far, the smoother past and future.
//!
//! Both give the mean of the phase given what they see: no estimate has a smaller mean square error. Their methods are
//! in `particles.rs` and `propagation.rs`; tests hold them against cases with an answer in closed form and against sums
//! over all possibilities.

mod causal;
mod density;
pub(crate) mod dynamics;
mod evidence;
mod knowledge;
mod particles;
mod propagation;

use crate::account::{ClockAccount, ReadingTime};
use crate::clock::Read;
use crate::oscillator::announced_phase;
use crate::random::Random;
use crate::result::{ClockResult, OracleRatio};
use crate::scenario::Scenario;
use crate::server::announced_error;
use causal::CausalOracle;
use dynamics::{Dynamics, MICRO};
use evidence::ObservedExchange;
use ffclock_units::{Counter, Direction, Exchange, Moment, Period, Span, Tai};
use knowledge::WayLaws;
use propagation::{PhaseEdge, PhaseNode, Setting, smooth};

/// The names of the oracles in results.
pub const ORACLES: [&str; 2] = ["oracle", "smoother"];

/// One note, taken while the world runs.
#[derive(Clone, Copy, Debug)]
enum Note {
    Exchange(ObservedExchange),
    /// A look at the clocks; how far the counter is off, as far as it is not announced [us].
    Look(ReadingTime, f64),
    /// The counter stopped or restarted.
    Break,
}

/// Where counter and true time began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeOrigin {
    pub(crate) counter: Counter,
    pub(crate) time: Moment<Tai>,
}

/// Notes what an oracle may know.
#[derive(Debug)]
pub(crate) struct OracleWitness<'a> {
    scenario: &'a Scenario,
    nominal: Period,
    origin: TimeOrigin,
    notes: Vec<Note>,
}

/// When the packets of an exchange were stamped here, in true time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrueStamps {
    pub(crate) sent: Span,
    pub(crate) received: Span,
}

impl<'a> OracleWitness<'a> {
    pub(crate) fn new(scenario: &'a Scenario, origin: TimeOrigin) -> Self {
        OracleWitness { scenario, nominal: scenario.counter.nominal(), origin, notes: Vec::new() }
    }

    /// How far the counter is ahead of `time`, without what is announced [us].
    fn ahead(&self, counter: Counter, time: Moment<Tai>, at: Span) -> f64 {
        let shown = self.nominal * (counter - self.origin.counter);
        let announced = announced_phase(&self.scenario.oscillator, at.as_seconds());
        ((shown - (time - self.origin.time)).as_seconds() - announced) * MICRO
    }

    pub(crate) fn exchange(&mut self, exchange: &Exchange, passage: TrueStamps) {
        let served = passage.sent + (passage.received - passage.sent).halved();
        let error = announced_error(&self.scenario.server, served.as_seconds()) * MICRO;
        let floor = |direction, at| knowledge::floor(self.scenario, direction, at);
        let lower = self.ahead(exchange.sent.counter, exchange.server_in, passage.sent)
            + error
            + floor(Direction::Outgoing, passage.sent);
        let upper = self.ahead(exchange.received.counter, exchange.server_out, passage.received) + error
            - floor(Direction::Incoming, served);
        let at = passage.received.as_seconds();
        let trip = (passage.received - passage.sent).as_seconds();
        self.notes.push(Note::Exchange(ObservedExchange { at, trip, lower, upper }));
    }

    pub(crate) fn look(&mut self, look: ReadingTime) {
        // The counter steps down to a whole tick: half of one is missing on average.
        let half = 0.5 * knowledge::tick(self.scenario);
        self.notes.push(Note::Look(look, self.ahead(look.counter, look.truth, look.at) + half));
    }

    pub(crate) fn counter_broke(&mut self) {
        self.notes.push(Note::Break);
    }

    /// The figures of the oracles of these names.
    pub(crate) fn judge(self, oracles: &[&str], seed: u64) -> Vec<ClockResult> {
        let dynamics = Dynamics::of(&self.scenario.oscillator);
        let ways = [Direction::Outgoing, Direction::Incoming].map(|direction| WayLaws::of(self.scenario, direction));
        let judge = |name: &&str| {
            let causal = *name == ORACLES[0];
            if causal { self.causal(&dynamics, &ways, seed) } else { self.smoothed(&dynamics, &ways) }.result()
        };
        oracles.iter().map(judge).collect()
    }

    fn causal(&self, dynamics: &Dynamics, ways: &[WayLaws; 2], seed: u64) -> ClockAccount {
        let mut causal = CausalOracle::new(dynamics, ways, Random::named(seed, "oracle"));
        let mut account = ClockAccount::new(ORACLES[0], self.scenario, Span::ZERO);
        for note in &self.notes {
            match *note {
                Note::Exchange(observed) => causal.observe(observed),
                Note::Look(look, ahead) => {
                    let phase = causal.phase(look.at.as_seconds());
                    account.note(look, phase.map(|phase| read(look, ahead - phase)));
                }
                Note::Break => causal.lose_phase(),
            }
        }
        account
    }

    /// Each piece of time between breaks of the counter by itself.
    fn smoothed(&self, dynamics: &Dynamics, ways: &[WayLaws; 2]) -> ClockAccount {
        let mut account = ClockAccount::new(ORACLES[1], self.scenario, Span::ZERO);
        for part in self.notes.split(|note| matches!(note, Note::Break)) {
            let exchanges = part.iter().filter_map(|note| match note {
                Note::Exchange(observed) => Some(*observed),
                _ => None,
            });
            let packets: Vec<PhaseNode> = exchanges.flat_map(nodes).collect();
            let looks: Vec<(ReadingTime, f64)> = part.iter().filter_map(looked).collect();
            let Some(first) = packets.first() else {
                looks.iter().for_each(|(look, _)| account.note(*look, None));
                continue;
            };
            let begin = looks.first().map_or(first.at, |(look, _)| look.at.as_seconds().min(first.at));
            let prior = dynamics.prior(begin, first.packet.as_ref().map_or(0.0, |packet| packet.edge));
            let times: Vec<f64> = looks.iter().map(|(look, _)| look.at.as_seconds()).collect();
            let beliefs = smooth(Setting { dynamics, ways, prior: &prior }, &packets, &times);
            for ((look, ahead), belief) in looks.into_iter().zip(beliefs) {
                account.note(look, Some(read(look, ahead - belief.mean)));
            }
        }
        account
    }
}

fn read(look: ReadingTime, error: f64) -> Read {
    Read { time: look.truth + Span::from_seconds(error / MICRO), claims: None }
}

fn looked(note: &Note) -> Option<(ReadingTime, f64)> {
    match *note {
        Note::Look(look, ahead) => Some((look, ahead)),
        _ => None,
    }
}

/// The packets of an exchange.
fn nodes(observed: ObservedExchange) -> [PhaseNode; 2] {
    let sent = PhaseEdge { way: 0, edge: observed.lower };
    let received = PhaseEdge { way: 1, edge: observed.upper };
    [(observed.at - observed.trip, sent), (observed.at, received)]
        .map(|(at, packet)| PhaseNode { at, packet: Some(packet) })
}

/// Our error over that of each oracle, for every clock that is none.
pub(crate) fn ratios(clocks: &[ClockResult]) -> Vec<OracleRatio> {
    let find = |name: &str| clocks.iter().find(|clock| clock.name == name);
    let (causal, smoother) = (find(ORACLES[0]), find(ORACLES[1]));
    let mut ratios = Vec::new();
    if causal.is_none() && smoother.is_none() {
        return ratios;
    }
    for clock in clocks.iter().filter(|clock| !ORACLES.contains(&clock.name.as_str())) {
        for (index, ours) in clock.windows.iter().enumerate() {
            for figure in ["iqr", "net-p99", "net-max"] {
                let over = |oracle: Option<&ClockResult>| {
                    Some(ours.figure(figure)? / oracle?.windows.get(index)?.figure(figure)?)
                };
                ratios.push(OracleRatio {
                    clock: clock.name.clone(),
                    window: ours.name.clone(),
                    figure: figure.to_owned(),
                    over_causal: over(causal),
                    over_smoother: over(smoother),
                });
            }
        }
    }
    ratios
}

#[cfg(test)]
mod tests;

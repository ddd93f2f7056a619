//! A master of PTP whose messages are stamped by hardware at both ends.

use super::{Completed, Happening};
use crate::agenda::Agenda;
use crate::path::Path;
use crate::random::Random;
use crate::scenario::{PtpSpec, Scenario};
use crate::world::begin;
use ffclock_ptp::{ExchangePairing, PtpObservation};
use ffclock_trace::Truth;
use ffclock_units::{
    Bound, Counter, Direction, Moment, ServerIdentity, ServerQuality, Span, Stamp, StampLocation, Tai, Ticks,
};

/// Syncs leave within this of their time [s]: the timer of the program that sends them.
const SYNC_JITTER_S: f64 = 1e-3;
/// No exchange is refused for the master's claim.
const ROOT_DISTANCE_MAX: Bound = Bound::of(Span::from_secs(1));

/// What happens to its messages.
pub(super) enum MasterEvent {
    /// A Sync leaves.
    SyncLeaves,
    /// A Sync is stamped here: it left the master at, and arrived at.
    SyncStamped(Moment<Tai>, Span),
    /// A Delay_Req is stamped here, which leaves at.
    RequestStamped(Span),
    /// The master's answer to a Delay_Req has come.
    RequestAnswered(HeardMessage),
}

/// A message that both ends have stamped.
#[derive(Clone, Copy)]
pub(super) struct HeardMessage {
    pub(super) observation: PtpObservation,
    /// When it truly passed our end.
    truly: Span,
}

/// The master, its path and the requests to it.
pub(super) struct SimulatedMaster {
    spec: PtpSpec,
    interval: Span,
    step: Ticks,
    claim: Bound,
    path: Path,
    stamps: Random,
    times: Random,
    pairing: ExchangePairing,
    syncs: i64,
    /// The newest Delay_Req, and when it truly left.
    request: Option<(Counter, Span)>,
    pub(super) requests: u64,
}

impl SimulatedMaster {
    pub(super) fn new(scenario: &Scenario, seed: u64) -> Option<Self> {
        let (spec, nominal) = (scenario.ptp?, scenario.counter.nominal());
        Some(SimulatedMaster {
            spec,
            interval: scenario.poll.0,
            step: nominal.ticks_in(spec.step.0),
            claim: Bound::of(scenario.server.root_dispersion.0),
            path: Path::new(&scenario.path, (seed, "path")),
            stamps: Random::named(seed, "stamps"),
            times: Random::named(seed, "messages"),
            pairing: ExchangePairing::new(nominal, ROOT_DISTANCE_MAX),
            syncs: 0,
            request: None,
            requests: 0,
        })
    }

    pub(super) fn begin(&mut self, agenda: &mut Agenda<Happening>) {
        self.plan_sync(agenda);
        self.plan_request(self.interval, agenda);
    }

    fn plan_sync(&mut self, agenda: &mut Agenda<Happening>) {
        self.syncs += 1;
        let due = Span::from_units(self.interval.units() * i128::from(self.syncs));
        let at = due + Span::from_seconds(SYNC_JITTER_S * self.times.uniform());
        agenda.enter(at, Happening::Master(MasterEvent::SyncLeaves));
    }

    /// A request follows the last one by up to twice the interval (9.5.11.2), as ours and those of ptp4l do.
    fn plan_request(&mut self, after: Span, agenda: &mut Agenda<Happening>) {
        let departure = after + Span::from_seconds(2.0 * self.interval.as_seconds() * self.times.positive());
        let stamped = departure + self.noise();
        agenda.enter(stamped, Happening::Master(MasterEvent::RequestStamped(departure)));
    }

    fn noise(&mut self) -> Span {
        Span::from_seconds(self.spec.noise.seconds() * self.stamps.normal())
    }

    /// The master's stamp of a message that passed it at `at`.
    fn their_stamp(&mut self, at: Span) -> Moment<Tai> {
        let (seen, step) = (at + self.noise(), self.spec.step.0.units().max(1));
        begin() + Span::from_units(seen.units() - seen.units().rem_euclid(step))
    }

    /// Our stamp where the counter stands at this: its last whole step, like the master's, so that what both cut off is
    /// the same on average. The range around it holds the step.
    fn our_stamp(&self, counter: Counter) -> Stamp {
        let step = self.step.raw().unsigned_abs().max(1);
        let counter = Counter::from_raw(counter.raw() - counter.raw() % step);
        Stamp { counter, width: self.step + self.step, location: StampLocation::Hardware }
    }

    /// Goes on at an event, where the counter of our end stands at `counter`; gives the message that it completes.
    pub(super) fn happen(
        &mut self,
        event: MasterEvent,
        (now, counter): (Span, Counter),
        agenda: &mut Agenda<Happening>,
    ) -> Option<HeardMessage> {
        match event {
            MasterEvent::SyncLeaves => {
                let left = self.their_stamp(now);
                for arrival in self.path.travel(Direction::Incoming, now).into_iter().flatten() {
                    let stamped = arrival + self.noise();
                    agenda.enter(stamped, Happening::Master(MasterEvent::SyncStamped(left, arrival)));
                }
                self.plan_sync(agenda);
                None
            }
            MasterEvent::SyncStamped(left, arrival) => {
                let (direction, ours) = (Direction::Incoming, self.our_stamp(counter));
                Some(HeardMessage { observation: PtpObservation { direction, ours, theirs: left }, truly: arrival })
            }
            MasterEvent::RequestStamped(departure) => {
                self.send_request(departure, counter, agenda);
                None
            }
            MasterEvent::RequestAnswered(message) => Some(message),
        }
    }

    fn send_request(&mut self, departure: Span, counter: Counter, agenda: &mut Agenda<Happening>) {
        self.requests += 1;
        // The copies of a duplicated message: the master answers the first.
        if let [Some(arrival), _] = self.path.travel(Direction::Outgoing, departure) {
            let (ours, theirs) = (self.our_stamp(counter), self.their_stamp(arrival));
            let observation = PtpObservation { direction: Direction::Outgoing, ours, theirs };
            let message = HeardMessage { observation, truly: departure };
            if let [Some(answered), _] = self.path.travel(Direction::Incoming, arrival) {
                agenda.enter(answered, Happening::Master(MasterEvent::RequestAnswered(message)));
            }
        }
        self.plan_request(departure, agenda);
    }

    /// The exchange that a message completes.
    pub(super) fn pair(&mut self, message: &HeardMessage) -> Option<Completed> {
        let observation = message.observation;
        if observation.direction == Direction::Outgoing {
            self.request = Some((observation.ours.counter, message.truly));
        }
        let identity = ServerIdentity { stratum: 1, reference_id: u32::from_be_bytes(*b"PTP\0") };
        let server = ServerQuality { identity, root_distance: self.claim, ..ServerQuality::default() };
        let exchange = self.pairing.observe(observation, server).ok().flatten()?;
        let sent = self.request.filter(|request| request.0 == exchange.sent.counter).map(|request| begin() + request.1);
        Some(Completed { exchange, truth: Truth { sent, received: begin() + message.truly } })
    }
}

//! Worlds in which no server is asked: the Syncs of a master of PTP with hardware stamps, and pulses of a reference at
//! this host.
//!
//! What is heard becomes exchanges by the code of the product (`ffclock_ptp`, `ffclock_reference`), and feed-forward
//! clocks take these as from any server. The servos of ptp4l take the same Syncs and delay measurements one by one.
//!
//! In a world of PTP the counter is the clock of the card, so a stamp has no error but its noise and its step. What it
//! takes to carry a card's stamp over to the processor's counter (`ffclock_phc`) is left out, for our clock and for the
//! servos, which steer the card.

mod master;
mod optimum;
mod pulses;

use crate::account::{ClockAccount, ReadingTime};
use crate::agenda::Agenda;
use crate::clock::{FeedForward, Read, Timekeeper};
use crate::counter::SimulatedCounter;
use crate::feedback::{ClockStart, Linreg, OffsetServo, Pi, Ptp4l, Ptpd, StampProcessing};
use crate::oscillator::Oscillator;
use crate::random::Random;
use crate::result::ClockResult;
use crate::scenario::{PtpStamps, Scenario};
use crate::world::{Cast, RunOutcome, ShownReading, Sinks, begin, reading_interval};
use ffclock_estimator::{Classic, ClassicConfig, Learned};
use ffclock_ptp::PtpObservation;
use ffclock_reference::Sample;
use ffclock_trace::{ServerIndex, TraceRow, Truth};
use ffclock_units::{Counter, CounterEpoch, Exchange, Span};
use master::{MasterEvent, SimulatedMaster};
use optimum::Optimum;
use pulses::PulseReceiver;

/// The servos of ptp4l that a master of PTP is followed with, beside our clocks.
pub(crate) const SERVOS: [&str; 2] = ["ptp4l", "linreg"];
/// The second with raw, weighted offsets, as its manual has it for software stamps.
const LINREG_RAW: &str = "linreg-raw";
/// The best that any clock could do.
pub(crate) const OPTIMUM: &str = "optimum";
const OF_MASTER: [&str; 5] = ["classic", "learned", SERVOS[0], SERVOS[1], OPTIMUM];
/// Of a master whose messages are stamped by the kernel; what would be best there is not worked out.
const OF_MASTER_IN_SOFTWARE: [&str; 6] = ["classic", "learned", SERVOS[0], SERVOS[1], LINREG_RAW, "ptpd"];
const OF_PULSES: [&str; 3] = ["classic", "learned", OPTIMUM];

/// Whether a clock of such worlds alone has this name.
pub(crate) fn is_name(name: &str) -> bool {
    SERVOS.contains(&name) || name == LINREG_RAW || name == OPTIMUM
}

/// The clocks of such a world; `None` of a world of servers.
pub(crate) fn names_in(scenario: &Scenario) -> Option<&'static [&'static str]> {
    let of_pulses = scenario.pulses.map(|_| OF_PULSES.as_slice());
    let of_master = |stamps| match stamps {
        PtpStamps::Hardware => OF_MASTER.as_slice(),
        PtpStamps::Software => OF_MASTER_IN_SOFTWARE.as_slice(),
    };
    scenario.ptp.map(|ptp| of_master(ptp.stamps)).or(of_pulses)
}

/// What a clock can hear.
#[derive(Clone, Copy)]
enum Heard<'a> {
    /// A Sync, or a Delay_Req that has its answer.
    Message(&'a PtpObservation),
    /// A pulse that has its number.
    Pulse(&'a Sample),
    Exchange(&'a Exchange),
}

/// A clock that listens.
trait Listener {
    fn hear(&mut self, heard: Heard<'_>);
    fn read(&mut self, counter: Counter) -> Option<Read>;
    fn restarts(&self) -> Option<u64> {
        None
    }
}

impl Listener for FeedForward {
    fn hear(&mut self, heard: Heard<'_>) {
        if let Heard::Exchange(exchange) = heard {
            self.exchange(exchange);
        }
    }

    fn read(&mut self, counter: Counter) -> Option<Read> {
        Timekeeper::read(self, counter)
    }

    fn restarts(&self) -> Option<u64> {
        Timekeeper::restarts(self)
    }
}

impl<S: OffsetServo> Listener for Ptp4l<S> {
    fn hear(&mut self, heard: Heard<'_>) {
        if let Heard::Message(observation) = heard {
            self.observe(observation);
        }
    }

    fn read(&mut self, counter: Counter) -> Option<Read> {
        Some(Read { time: Ptp4l::read(self, counter)?, claims: None })
    }
}

impl Listener for Ptpd {
    fn hear(&mut self, heard: Heard<'_>) {
        if let Heard::Message(observation) = heard {
            self.observe(observation);
        }
    }

    fn read(&mut self, counter: Counter) -> Option<Read> {
        Some(Read { time: Ptpd::read(self, counter)?, claims: None })
    }
}

/// The servo of ptp4l by the kind of stamps.
fn pi(scenario: &Scenario) -> Pi {
    match scenario.ptp.map(|ptp| ptp.stamps).unwrap_or_default() {
        PtpStamps::Hardware => Pi::for_hardware_stamps(),
        PtpStamps::Software => Pi::linuxptp(),
    }
}

/// A clock by its name.
fn listener(name: &str, scenario: &Scenario, cast: &Cast<'_>) -> Option<Box<dyn Listener>> {
    let (nominal, start) = (scenario.counter.nominal(), ClockStart::of(scenario));
    let (memory, frequency) = (start.memory(), start.frequency());
    let linreg = || Ptp4l::new(nominal, Linreg::new(scenario.poll.seconds()).started(frequency));
    Some(match name {
        "classic" => Box::new(FeedForward::new(Box::new(Classic::new(ClassicConfig::default(), nominal, memory)))),
        "learned" => {
            let learned = Learned::new(cast.learned.clone(), ClassicConfig::default(), nominal, memory);
            Box::new(FeedForward::new(Box::new(learned)))
        }
        "ptp4l" => Box::new(Ptp4l::new(nominal, pi(scenario).started(frequency)).started(&start)),
        "ptpd" => Box::new(Ptpd::new(nominal, scenario.poll.seconds(), &start)),
        OPTIMUM => Box::new(Optimum::new(scenario)),
        "linreg" => Box::new(linreg().started(&start)),
        LINREG_RAW => Box::new(linreg().started(&start).processing(StampProcessing::RawWeight)),
        _ => return None,
    })
}

/// What happens.
enum Happening {
    Reading,
    Master(MasterEvent),
    /// A pulse is stamped; the second that it begins.
    Pulse(Span),
}

/// What is heard.
enum Origin {
    Master(Box<SimulatedMaster>),
    Pulses(Box<PulseReceiver>),
}

/// An exchange that is complete.
struct Completed {
    exchange: Exchange,
    truth: Truth,
}

struct AccountedListener {
    clock: Box<dyn Listener>,
    account: ClockAccount,
}

/// One such world.
pub(crate) struct SignalWorld<'a> {
    scenario: &'a Scenario,
    agenda: Agenda<Happening>,
    counter: SimulatedCounter,
    origin: Origin,
    readings: Random,
    clocks: Vec<AccountedListener>,
    /// Rows of the trace so far, each an exchange.
    exchanges: u64,
}

impl<'a> SignalWorld<'a> {
    /// The world of a scenario; `None` if its clocks ask servers.
    pub(crate) fn of(scenario: &'a Scenario, seed: u64, cast: &Cast<'_>) -> Option<Self> {
        let names = names_in(scenario)?;
        let of_pulses = || Some(Origin::Pulses(Box::new(PulseReceiver::new(scenario, seed)?)));
        let origin =
            SimulatedMaster::new(scenario, seed).map(|master| Origin::Master(Box::new(master))).or_else(of_pulses)?;
        let accounted = |name: &str| {
            let clock = listener(name, scenario, cast)?;
            Some(AccountedListener { clock, account: ClockAccount::new(name, scenario, asymmetry(scenario)) })
        };
        let cast = cast.clocks.iter().filter(|name| names.contains(name));
        Some(SignalWorld {
            agenda: Agenda::new(),
            counter: SimulatedCounter::new(scenario.counter, Oscillator::new(&scenario.oscillator, seed)),
            origin,
            readings: Random::named(seed, "readings"),
            clocks: cast.filter_map(|name| accounted(name)).collect(),
            exchanges: 0,
            scenario,
        })
    }

    /// Lives through it.
    pub(crate) fn live(mut self, mut sinks: Sinks<'_>) -> RunOutcome {
        match &mut self.origin {
            Origin::Master(master) => master.begin(&mut self.agenda),
            Origin::Pulses(receiver) => receiver.begin(&mut self.agenda),
        }
        self.plan_reading(Span::ZERO);
        while let Some((now, happening)) = self.agenda.next() {
            if now >= self.scenario.duration.0 {
                break;
            }
            if let Some(completed) = self.happen(now, happening, &mut sinks) {
                self.complete(&completed, &mut sinks);
            }
        }
        let requests = match &self.origin {
            Origin::Master(master) => master.requests,
            Origin::Pulses(receiver) => receiver.pulses,
        };
        RunOutcome {
            clocks: self.clocks.into_iter().map(AccountedListener::result).collect(),
            servers: Vec::new(),
            requests,
            exchanges: self.exchanges,
            asymmetry: asymmetry(self.scenario),
        }
    }

    fn happen(&mut self, now: Span, happening: Happening, sinks: &mut Sinks<'_>) -> Option<Completed> {
        match (happening, &mut self.origin) {
            (Happening::Reading, _) => {
                self.read(now, sinks);
                None
            }
            (Happening::Pulse(second), Origin::Pulses(receiver)) => {
                receiver.plan_after(second, &mut self.agenda);
                let sample = receiver.take(now, self.counter.read(now))?;
                self.clocks.iter_mut().for_each(|one| one.clock.hear(Heard::Pulse(&sample)));
                receiver.pair(sample, second)
            }
            (Happening::Master(event), Origin::Master(master)) => {
                let counter = self.counter.read(now);
                let message = master.happen(event, (now, counter), &mut self.agenda)?;
                self.clocks.iter_mut().for_each(|one| one.clock.hear(Heard::Message(&message.observation)));
                master.pair(&message)
            }
            _ => None,
        }
    }

    fn complete(&mut self, completed: &Completed, sinks: &mut Sinks<'_>) {
        self.clocks.iter_mut().for_each(|one| one.clock.hear(Heard::Exchange(&completed.exchange)));
        if let Some(sink) = &mut sinks.rows {
            let (epoch, server) = (CounterEpoch::from_raw(0), ServerIndex(0));
            let (exchange, truth) = (Some(completed.exchange), Some(completed.truth));
            sink(&TraceRow { sequence: self.exchanges, epoch, exchange, truth, server });
        }
        self.exchanges += 1;
    }

    fn plan_reading(&mut self, now: Span) {
        let interval = reading_interval(self.scenario, &mut self.readings);
        self.agenda.enter(now + interval, Happening::Reading);
    }

    fn read(&mut self, now: Span, sinks: &mut Sinks<'_>) {
        let look = ReadingTime { at: now, truth: begin() + now, counter: self.counter.read(now) };
        for one in &mut self.clocks {
            let read = one.clock.read(look.counter);
            if let (Some(sink), Some(read)) = (&mut sinks.samples, read) {
                sink(&ShownReading::of(one.account.name(), look, read));
            }
            one.account.note(look, read);
        }
        self.plan_reading(now);
    }
}

impl AccountedListener {
    fn result(self) -> ClockResult {
        ClockResult { restarts: self.clock.restarts(), ..self.account.result() }
    }
}

/// Forward minimum delay minus backward minimum delay; pulses travel one way, and their delay is known.
fn asymmetry(scenario: &Scenario) -> Span {
    scenario.path.forward.0 - scenario.path.backward.0
}

#[cfg(test)]
mod tests;

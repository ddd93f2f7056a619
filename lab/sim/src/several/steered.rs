//! Daemons that steer a system clock by several servers.

use super::polls::{PollPlan, PollTimes};
use super::{Contact, Contender, Credence, ServerChange};
use crate::clock::Read;
use crate::feedback::{OffsetSample, Steered, SystemClock};
use ffclock_units::{Counter, Moment, Period, Tai};

/// Steers a system clock by several servers.
pub(crate) trait ManyServo: Clone {
    /// Takes a measurement of a server.
    fn sample(&mut self, server: usize, sample: &OffsetSample, clock: &mut SystemClock);

    /// No answer came.
    fn lost(&mut self, server: usize);

    /// A server answers, does not answer any more, or is not asked any more.
    fn change(&mut self, server: usize, change: ServerChange);

    /// A second has passed.
    fn second(&mut self, _counter: Counter, _clock: &mut SystemClock) {}

    /// What it thinks of a server.
    fn credence(&self, server: usize) -> Credence;

    /// How many times the world's poll is doubled for this server.
    fn doublings(&self, server: usize) -> u32;

    /// At most this number of doublings from now on.
    fn limit_doublings(&mut self, most: u32);
}

/// A system clock with the daemon that steers it.
pub(crate) struct DisciplinedByMany<S> {
    servo: S,
    /// As it begins.
    fresh: S,
    steered: Steered,
    /// By server, the stamp of its latest request.
    sent: Vec<Option<(Counter, Moment<Tai>)>>,
    plan: PollPlan,
}

impl<S: ManyServo> DisciplinedByMany<S> {
    pub(crate) fn new(nominal: Period, servo: S, servers: usize, times: PollTimes) -> Self {
        let plan = PollPlan::new(times, nominal, servers);
        let sent = vec![None; servers];
        DisciplinedByMany { fresh: servo.clone(), servo, steered: Steered::new(nominal), sent, plan }
    }

    fn send(&mut self, server: usize, counter: Counter) {
        self.servo.limit_doublings(self.plan.most_doublings(counter));
        self.plan.sent(server, counter, self.servo.doublings(server));
        let stamp = self.steered.read(counter).filter(|_| self.plan.is_asked(server));
        self.sent.iter_mut().skip(server).take(1).for_each(|sent| *sent = stamp.map(|time| (counter, time)));
    }

    fn advance(&mut self, counter: Counter) {
        let servo = &mut self.servo;
        self.steered.advance(counter, |counter, clock| servo.second(counter, clock));
    }
}

impl<S: ManyServo> Contender for DisciplinedByMany<S> {
    fn hear(&mut self, server: usize, contact: Contact) {
        match contact {
            Contact::Sent(counter) => {
                self.advance(counter);
                self.send(server, counter);
            }
            Contact::Exchange(exchange) => {
                self.advance(exchange.received.counter);
                self.steered.begin(exchange);
                let sample = self.steered.sample(exchange, self.sent.get(server).copied().flatten());
                if let (Some(sample), Some(clock)) = (sample, self.steered.clock()) {
                    self.servo.sample(server, &sample, clock);
                }
            }
            Contact::Lost(counter) => {
                self.advance(counter);
                if self.plan.is_asked(server) {
                    self.servo.lost(server);
                }
            }
            Contact::Change(change, _) => self.servo.change(server, change),
        }
    }

    /// As the clocks of one server: they start from nothing.
    fn broke(&mut self) {
        self.servo = self.fresh.clone();
        self.steered.stop();
        self.sent.fill(None);
    }

    fn read(&mut self, counter: Counter) -> Option<Read> {
        self.advance(counter);
        Some(Read { time: self.steered.read(counter)?, claims: None })
    }

    fn credence(&self, server: usize) -> Option<Credence> {
        Some(self.servo.credence(server))
    }
}

//! One port of the grandmaster: its sockets, its state machine, and the thread that drives them.

use super::admission::Admission;
use super::shortfalls::Shortfalls;
use super::sockets::{NO_CARD, PtpSender, PtpSockets, passage_of};
use super::stated::{ClaimOptions, StatedClock, claim_of};
use crate::policy::{Policy, PolicyBoard};
use ffclock_control::serve::PtpPortReport;
use ffclock_counter::{CounterId, nominal};
use ffclock_ptp::{
    Channel, Grandmaster, GrandmasterClaim, MESSAGE_BYTES_MAX, Master, PtpEvent, PtpRejection, PtpTicket,
};
use ffclock_sys::{BestStamp, Interest, Received, SocketEvent, Stamper, mono_now, poll};
use ffclock_units::{Moment, Mono, Period, Span, StampLocation, Ticks};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The claim is made again this often: so soon it is known that the page is no longer renewed.
const CLAIM_EVERY: Span = Span::from_millis(100);
/// How long the thread waits at most before it looks whether it is to end.
const PATIENCE: Span = Span::from_millis(250);
/// The most messages taken from a socket before what is due is sent.
const MOST_EVENTS: usize = 64;
/// How long messages may have waited and still get the kernel's stamp.
const LONGEST_WAIT: Span = Span::from_secs(1);
/// Followers believe an announcement for this number of its intervals.
const BELIEVED_INTERVALS: i128 = 3;

/// What a port is made of.
pub(super) struct PortParts<'a> {
    pub(super) sockets: PtpSockets,
    pub(super) grandmaster: Grandmaster,
    pub(super) page: &'a Path,
    pub(super) board: Arc<PolicyBoard>,
    /// What the port is, and where its state and its counts are put.
    pub(super) report: Arc<Mutex<PtpPortReport>>,
    pub(super) announce_interval: Span,
    pub(super) table_bytes: usize,
}

/// One port.
pub(super) struct PortWorker {
    sockets: PtpSockets,
    grandmaster: Grandmaster,
    clock: StatedClock,
    stamper: Stamper,
    board: Arc<PolicyBoard>,
    policy: Arc<Policy>,
    generation: u64,
    admission: Admission,
    name: String,
    report: Arc<Mutex<PtpPortReport>>,
    /// For how long a claim is believed.
    believed_for: Span,
    claim_due: Moment<Mono>,
    counts: PortCounts,
    shortfalls: Shortfalls,
    buffer: [u8; MESSAGE_BYTES_MAX + 1],
}

/// What the state machine does not count.
#[derive(Clone, Copy, Debug, Default)]
struct PortCounts {
    refused_sending: u64,
    without_time: u64,
    unstamped: u64,
    /// Messages that the network card was to stamp, and another stamp served.
    not_by_card: u64,
}

impl PortWorker {
    /// # Errors
    /// There are no random numbers.
    pub(super) fn new(parts: PortParts<'_>) -> io::Result<Self> {
        let policy = parts.board.read();
        let name = parts.report.lock().unwrap_or_else(PoisonError::into_inner).port.clone();
        let mut worker = PortWorker {
            sockets: parts.sockets,
            grandmaster: parts.grandmaster,
            clock: StatedClock::new(parts.page),
            stamper: stamper_of(CounterId::MonotonicRaw, None)?,
            policy,
            generation: 0,
            board: parts.board,
            admission: Admission::new(parts.table_bytes)?,
            name,
            report: parts.report,
            believed_for: Span::from_units(parts.announce_interval.units() * BELIEVED_INTERVALS),
            claim_due: mono_now(),
            counts: PortCounts::default(),
            shortfalls: Shortfalls::default(),
            buffer: [0; MESSAGE_BYTES_MAX + 1],
        };
        worker.use_card();
        Ok(worker)
    }

    /// Takes the stamps of the network card, if those are wanted.
    fn use_card(&mut self) {
        match self.sockets.use_card(&mut self.stamper) {
            Ok(None) => {}
            Ok(Some(card)) => tracing::debug!(port = self.name, %card, "stamps of the network card"),
            Err(error) => tracing::warn!(port = self.name, %error, "{NO_CARD}"),
        }
    }

    /// Serves until `stop` is set, and then takes leave.
    ///
    /// # Errors
    /// A socket fails.
    pub(super) fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.look();
            // A wider claim leaves before all that rests on it.
            self.send_due(mono_now());
            let is_busy = self.receive()?;
            let now = mono_now();
            while let Some((ticket, best)) = self.sockets.overdue(now) {
                self.note_sent(ticket, best);
            }
            self.send_due(now);
            if !is_busy {
                self.wait(now)?;
            }
        }
        let now = mono_now();
        self.grandmaster.set_claim(GrandmasterClaim::NONE, now);
        self.drain(now);
        Ok(())
    }

    fn send_due(&mut self, now: Moment<Mono>) {
        self.grandmaster.handle_timeout(now);
        self.drain(now);
    }

    fn wait(&self, now: Moment<Mono>) -> io::Result<()> {
        let due = [self.grandmaster.poll_timeout(), self.sockets.deadline(), Some(self.claim_due)];
        let until = due.into_iter().flatten().fold(now + PATIENCE, Ord::min);
        let mut interests = self.sockets.descriptors().map(Interest::readable);
        poll(&mut interests, Some(until)).map(drop)
    }

    /// Takes the latest publication and makes the claim of it: of each, and where it is time for it.
    fn look(&mut self) {
        let is_new = self.clock.look();
        if let Some(counter) = self.clock.counter_id().filter(|counter| *counter != self.stamper.counter().0) {
            let period = self.clock.snapshot().and_then(|snapshot| Some(snapshot.estimate()?.period));
            // Of a counter that cannot be had there is no time either.
            if let Ok(stamper) = stamper_of(counter, period) {
                self.stamper = stamper;
                self.sockets.waiting().clear();
                self.use_card();
            }
        }
        let now = mono_now();
        let is_due = now >= self.claim_due;
        if is_due {
            self.claim_due = now + CLAIM_EVERY;
            self.board.renew(&mut self.policy, &mut self.generation);
        }
        if is_due || is_new {
            self.claim(now);
        }
        if is_due {
            self.publish_report();
            for change in self.stamper.take_card_changes() {
                tracing::warn!(port = self.name, %change, "another program changed the clock of a network card");
            }
        }
    }

    fn claim(&mut self, now: Moment<Mono>) {
        let ptp = self.policy.ptp;
        let (bound, bound_max) = (self.policy.face.bound, self.policy.face.bound_max);
        let options = ClaimOptions { ptp, bound, bound_max };
        let counter = ffclock_counter::try_read(self.stamper.counter().0).ok();
        let claim = counter.zip(self.clock.snapshot()).map_or(GrandmasterClaim::NONE, |(now, snapshot)| {
            let period = snapshot.estimate().map_or(self.stamper.counter().1, |estimate| estimate.period);
            let until = now + Ticks::from_raw((self.believed_for.as_seconds() / period.as_seconds()) as i64);
            claim_of(snapshot, [now, until], &options)
        });
        if !claim.is_known() {
            self.clock.renew();
        }
        let from = self.grandmaster.claim().quality.class.0;
        self.grandmaster.set_priorities(ptp.priorities);
        self.grandmaster.set_claim(claim, now);
        let to = self.grandmaster.claim().quality.class.0;
        if from != to {
            tracing::info!(port = self.name, from, to, "the clock class of the grandmaster changes");
        }
    }

    /// Takes over what the sockets have. Whether there may be more.
    fn receive(&mut self) -> io::Result<bool> {
        let mut is_busy = false;
        for channel in [Channel::Event, Channel::General] {
            let mut taken = 0;
            while taken < MOST_EVENTS {
                let place = (&mut self.buffer[..], &mut self.stamper);
                match self.sockets.next_event(channel, place)? {
                    Some(SocketEvent::Transmitted(transmitted)) => {
                        if let Some(ticket) = self.sockets.waiting().redeem(&transmitted) {
                            self.note_sent(ticket, transmitted.best);
                        }
                    }
                    Some(SocketEvent::Received(received)) => self.take(&received),
                    // A client that has gone; its grants run out.
                    Some(SocketEvent::Unreachable(_)) => {}
                    None => break,
                }
                taken += 1;
            }
            is_busy |= taken == MOST_EVENTS;
        }
        Ok(is_busy)
    }

    fn take(&mut self, received: &Received) {
        let now = mono_now();
        self.take_in(received, now);
        self.drain(now);
    }

    /// What is to be sent for it stays with the grandmaster.
    fn take_in(&mut self, received: &Received, now: Moment<Mono>) {
        let octets = self.buffer.get(..received.length).unwrap_or(&self.buffer);
        let from = PtpSender::of(received);
        if !self.admission.admits((octets, from), now, &self.policy) {
            return;
        }
        let arrived = self.clock.arrival(&received.best.stamp);
        // A choice among masters needs no time of ours; everything that is answered does.
        if arrived.is_none() && !Admission::is_announce(octets) {
            self.counts.without_time += 1;
            return;
        }
        let is_timed = Admission::is_timed(octets);
        let arrived = (arrived.unwrap_or(Moment::from_origin(Span::ZERO)), passage_of(received));
        self.grandmaster.handle_message(octets, arrived, now);
        if is_timed {
            self.note_stamp(&received.best);
        }
    }

    /// The stamp of a message that left has come.
    fn note_sent(&mut self, ticket: PtpTicket, best: BestStamp) {
        self.note_departure(ticket, best);
        self.drain(mono_now());
    }

    /// A message left; without a time of ours nothing can be said about it.
    fn note_departure(&mut self, ticket: PtpTicket, best: BestStamp) {
        self.note_stamp(&best);
        match self.clock.departure(&best.stamp) {
            Some(left) => self.grandmaster.handle_sent(ticket, left),
            None => self.counts.without_time += 1,
        }
    }

    /// How a message was stamped whose time counts.
    fn note_stamp(&mut self, best: &BestStamp) {
        self.counts.unstamped += u64::from(best.stamp.location == StampLocation::User);
        let Some(reason) = best.shortfall.filter(|_| self.sockets.is_in_hardware()) else { return };
        self.counts.not_by_card += 1;
        if self.shortfalls.is_news(reason, mono_now()) {
            tracing::warn!(port = self.name, %reason, "a stamp of the network card does not serve: the kernel's does");
        }
    }

    /// Sends and says everything that the grandmaster has to send and to say.
    fn drain(&mut self, now: Moment<Mono>) {
        while let Some(transmit) = self.grandmaster.poll_transmit() {
            match self.sockets.send(transmit, (&mut self.stamper, now)) {
                // Where the kernel does not stamp.
                Ok(Some((ticket, best))) => self.note_departure(ticket, best),
                Ok(None) => {}
                Err(error) => {
                    self.counts.refused_sending += 1;
                    tracing::debug!(port = self.name, %error, "a message of PTP was not sent");
                }
            }
        }
        while let Some(event) = self.grandmaster.poll_event() {
            self.say(event);
        }
    }

    fn say(&self, event: PtpEvent) {
        match event {
            PtpEvent::Yielded(Master { port, announcement }) => {
                let class = announcement.quality.class.0;
                tracing::info!(port = self.name, master = %port, class, "a better master of PTP speaks: silent");
            }
            PtpEvent::Serving => tracing::info!(port = self.name, "serving PTP"),
            PtpEvent::Rejected(reason) => tracing::trace!(port = self.name, %reason, "a message was turned away"),
            other => tracing::debug!(port = self.name, event = ?other, "unicast"),
        }
    }

    fn publish_report(&self) {
        let (grandmaster, admission) = (&self.grandmaster, self.admission.counts());
        let (claim, statistics) = (grandmaster.claim(), grandmaster.statistics());
        let state = match (claim.is_known(), grandmaster.yielded_to()) {
            (false, _) => "silent",
            (true, Some(_)) => "passive",
            (true, None) => "serving",
        };
        let counts = [
            ("received", statistics.received),
            ("sent", statistics.sent),
            ("denied", admission.denied),
            ("limited", admission.limited),
            ("leaked", admission.leaked),
            ("without_time", self.counts.without_time),
            ("unstamped", self.counts.unstamped),
            ("not_by_card", self.counts.not_by_card),
            ("send_failed", self.counts.refused_sending),
        ];
        let rejected = PtpRejection::ALL.iter().map(|reason| (reason.name(), statistics.rejected(*reason)));
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.state = state.to_owned();
        report.better_master = grandmaster.yielded_to().map(|master| master.port.to_string());
        report.clock_class = claim.quality.class.0;
        report.clock_accuracy_s = claim.quality.accuracy.as_bound().map(|bound| bound.as_seconds());
        report.grants = grandmaster.grants();
        report.kernel_dropped = self.sockets.dropped();
        report.counts = counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        report.rejected =
            rejected.filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect();
    }
}

/// Stamps by this counter, of this period or else of its nominal one.
fn stamper_of(counter: CounterId, period: Option<Period>) -> io::Result<Stamper> {
    let period = match period {
        Some(period) => period,
        None => nominal(counter).map_err(io::Error::other)?.period,
    };
    let mut stamper = Stamper::new(counter, period);
    stamper.remember_for(LONGEST_WAIT);
    Ok(stamper)
}

#[cfg(test)]
mod tests;

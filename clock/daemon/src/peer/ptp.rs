//! A server of PTP: follows the best master of a domain, or one master that is asked by unicast, and makes exchanges
//! of its Sync messages and of our requests.
//!
//! The protocol is `ffclock_ptp`'s [`Follower`], which has no servo. Another master is another server: nothing of an
//! exchange with the last one is used with it, and the estimate of the last one serves until the first exchange with
//! it. While there is none, the clock is in holdover.

mod card;
mod link;
#[cfg(test)]
mod tests;

use super::feed::{Counterpart, Feed, Note};
use super::{Beginning, Context, EARLIEST_PRESENT, Environment};
use crate::config::{DelayChoice, DeviceStamps, MessageInterval, PtpPlace, ServerConfig, StampChoice, TimescaleChoice};
use crate::leaps::Vote;
use ffclock_control::protocol::{PtpReport, SourceReport};
use ffclock_ptp::{
    ArbitraryTimescale, Channel, ClaimHistory, ClaimRules, ClockClass, ClockIdentity, DelayMechanism, Delivery,
    ExchangePairing, Follower, FollowerConfig, MESSAGE_BYTES_MAX, Master, NetworkAddress, PortIdentity, PtpEvent,
    PtpObservation, PtpRejection,
};
use ffclock_source::{LeapWatch, Reachability};
use ffclock_sys::{SocketEvent, StampQuality};
use ffclock_units::{Bound, Exchange, LeapTable, Moment, Mono, Period, ServerQuality, Span};
use link::PtpLink;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

/// The most packets taken from a socket at once: a flood on it must not keep the daemon from everything else.
const MOST_EVENTS: usize = 64;
/// Sockets that cannot be had are tried again after this time.
const OPEN_AGAIN: Span = Span::from_secs(5);
/// While no master is heard, the sockets are made again every so often: the device may be another one by now.
const REOPEN: Span = Span::from_secs(30);
/// A message may come by this time later than an announcement that left the master after it.
const REORDERED: Span = Span::from_secs(1);
/// Without an exchange for so long, and for this number of times between two, the server counts as silent.
const SILENT_AFTER: Span = Span::from_secs(16);
const SILENT_EXCHANGES: i128 = 8;
/// Exchanges are expected this often at least, however far apart a master moves them: two of the rarest Syncs.
const RAREST: Span = Span::from_secs(128);

/// What was counted since the start.
#[derive(Clone, Debug, Default)]
struct Counts {
    sent: u64,
    exchanges: u64,
    rejected: BTreeMap<&'static str, u64>,
}

/// One server of PTP.
pub(super) struct Ptp {
    server: ServerConfig,
    stamps: StampChoice,
    device_stamps: DeviceStamps,
    /// Why no network card stamps, once that was said.
    card_missing: Option<String>,
    own: PortIdentity,
    leaps: LeapTable,
    leap_watch: LeapWatch,
    follower: Follower,
    pairing: ExchangePairing,
    link: Option<PtpLink>,
    /// When to open it, or to open it again if nothing is heard.
    open_at: Moment<Mono>,
    /// The master that is followed, or was last.
    master: Option<Master>,
    /// What that claimed, and when.
    claims: ClaimHistory,
    /// What is not judged before all is read that came until then.
    observations: Vec<PtpObservation>,
    exchanges: Vec<Exchange>,
    notes: Vec<Note>,
    standing: Reachability,
    /// When it was last opened, or gave an exchange.
    alive: Moment<Mono>,
    /// The mean time between two exchanges.
    interval: Span,
    counts: Counts,
}

impl Ptp {
    pub(super) fn new(server: &ServerConfig, environment: &Environment, now: Moment<Mono>) -> Self {
        let own = own_port(now);
        let mut follower = follower(server, environment.nominal, (own, now));
        follower.set_leaps(environment.leaps);
        let MessageInterval(slowest) = server.ptp.sync_interval;
        let interval = MessageInterval(slowest.max(server.ptp.delay_interval.0)).as_span();
        Ptp {
            stamps: environment.stamps,
            device_stamps: environment.device_stamps,
            card_missing: None,
            own,
            leaps: environment.leaps,
            leap_watch: LeapWatch::default(),
            follower,
            pairing: ExchangePairing::new(environment.nominal, server.source.root_distance_max),
            link: None,
            open_at: now,
            master: None,
            claims: ClaimHistory::default(),
            observations: Vec::new(),
            exchanges: Vec::new(),
            notes: Vec::new(),
            standing: Reachability::Untried,
            alive: now,
            interval,
            counts: Counts::default(),
            server: server.clone(),
        }
    }

    fn open(&mut self, context: &mut Context) {
        self.open_at = context.now + OPEN_AGAIN;
        let mut link = match PtpLink::open(&self.server, self.stamps) {
            Ok(link) => link,
            Err(why) => {
                self.link = None;
                return self.notes.push(Note::warning("masters of PTP cannot be heard", why));
            }
        };
        match context.calibrator.shifts(link.local_address()) {
            Ok(shifts) => link.calibrate(shifts),
            Err(reason) => self.notes.push(Note::warning("the host's delays are not known", reason)),
        }
        self.use_hardware(&mut link, &mut context.stamper);
        if self.standing == Reachability::Untried && self.master.is_none() {
            self.alive = context.now;
            self.notes.push(Note::notice("listening for masters of PTP", link.place()));
            if link.quality() == StampQuality::Refused {
                let kind = "the kernel refuses to stamp packets: user space stamps them";
                self.notes.push(Note::warning(kind, ""));
            }
        }
        self.open_at = context.now + REOPEN;
        self.link = Some(link);
    }

    /// Takes over what the sockets have. Whether that was all.
    fn receive(&mut self, context: &mut Context) -> bool {
        let mut is_all = true;
        let mut buffer = [0; MESSAGE_BYTES_MAX + 1];
        for channel in [Channel::Event, Channel::General] {
            for number in 1..=MOST_EVENTS {
                let Some(link) = &mut self.link else { return true };
                match link.next_event(channel, (&mut buffer, &mut context.stamper)) {
                    Ok(Some(SocketEvent::Transmitted(transmitted))) => {
                        if let Some(ticket) = link.redeem(&transmitted) {
                            self.note_sent((ticket, transmitted.best));
                        }
                    }
                    Ok(Some(SocketEvent::Received(received))) => {
                        let octets = buffer.get(..received.length).unwrap_or(&buffer);
                        if card::is_timed(octets) {
                            self.note_shortfall(received.best.shortfall);
                        }
                        let received = (received.best.stamp, link::passage(&received));
                        self.follower.handle_message_from(octets, received, context.now);
                    }
                    Ok(Some(SocketEvent::Unreachable(error))) => {
                        self.notes.push(Note::detail("packets do not arrive", error.kind));
                    }
                    Ok(None) => break,
                    Err(error) => {
                        (self.link, self.open_at) = (None, context.now + OPEN_AGAIN);
                        self.notes.push(Note::warning("cannot receive", error));
                        return true;
                    }
                }
                is_all &= number < MOST_EVENTS;
                self.drain(context);
            }
        }
        is_all
    }

    /// Does what is due.
    fn advance(&mut self, context: &mut Context) {
        while let Some(left) = self.link.as_mut().and_then(|link| link.overdue(context.now)) {
            self.note_sent(left);
        }
        // The number spreads the requests of many clocks, and is no secret.
        let random = ffclock_sys::random_nonce().unwrap_or_default();
        self.follower.handle_timeout(context.now, random);
        self.drain(context);
    }

    /// Takes everything that the follower has to say.
    fn drain(&mut self, context: &mut Context) {
        while let Some(transmit) = self.follower.poll_transmit() {
            let Some(link) = &mut self.link else { continue };
            self.counts.sent += 1;
            match link.send(transmit, (&mut context.stamper, context.now)) {
                Ok(left) => left.into_iter().for_each(|left| self.note_sent(left)),
                Err(error) => self.notes.push(Note::warning("cannot send", error)),
            }
        }
        while let Some(event) = self.follower.poll_event() {
            self.take(event);
        }
    }

    fn take(&mut self, event: PtpEvent) {
        match event {
            PtpEvent::Observation(observation) => self.observations.push(observation),
            PtpEvent::Rejected(reason) => self.reject(reason),
            PtpEvent::MasterChosen(master) => self.choose(master),
            PtpEvent::MasterChanged(master, arrived) => {
                self.claims.note(self.claim_of(&master), arrived);
                let before = self.master.replace(master);
                let is_same = before.is_some_and(|before| described(&before) == described(&master));
                if !is_same {
                    let kind = "the master says something else about itself";
                    self.notes.push(Note::notice(kind, described(&master)).lasting());
                }
            }
            PtpEvent::MasterLost(port) => {
                self.observations.clear();
                self.pairing.restart();
                self.standing = Reachability::Unreachable;
                let kind = "the master is gone, and there is no other";
                self.notes.push(Note::warning(kind, port_text(port)).lasting());
            }
            PtpEvent::UtcOffsetDiffers(says, ours) => {
                let detail = format!("it says {says} s, and {ours} s is known here");
                self.notes.push(Note::warning("the master has another TAI - UTC", detail));
            }
            PtpEvent::Denied(service) => {
                self.notes.push(Note::warning("the master refuses unicast messages", format!("{service:?}")));
            }
            PtpEvent::Cancelled(service) => {
                self.notes.push(Note::notice("the master ends its unicast messages", format!("{service:?}")));
            }
            PtpEvent::Unanswered(service) => {
                self.notes.push(Note::detail("no answer to a request for unicast messages", format!("{service:?}")));
            }
            PtpEvent::LinkDelay(delay) => self.observations.extend(delay.observation()),
            // Unicast that is granted shows in its messages, and no grandmaster is here.
            PtpEvent::Granted(..) | PtpEvent::Yielded(_) | PtpEvent::Serving => {}
        }
    }

    /// Nothing of the last master is used with this one: no request to the one is paired with a Sync of the other, and
    /// no exchange of the one that still waits is taken for one of the other.
    fn choose(&mut self, master: Master) {
        self.observations.clear();
        self.claims.begin(self.claim_of(&master));
        self.pairing.restart();
        if self.master.is_some_and(|last| last.port != master.port) {
            self.exchanges.clear();
            self.leap_watch = LeapWatch::default();
        }
        self.master = Some(master);
        self.notes.push(Note::notice("this master is the best and is followed", described(&master)).lasting());
    }

    fn claim_of(&self, master: &Master) -> ServerQuality {
        master.server_quality(&self.follower.config().claims)
    }

    /// Makes exchanges of what was observed, each as wrong as the master claimed when its messages passed.
    fn judge(&mut self, now: Moment<Mono>) {
        let reordered = self.follower.config().period.ticks_in(REORDERED);
        for observation in std::mem::take(&mut self.observations) {
            let claim = self.claims.since(observation.ours.counter - reordered);
            let paired = claim.ok_or(PtpRejection::GrandmasterChange);
            match paired.and_then(|claim| self.pairing.observe(observation, claim)) {
                Ok(exchange) => exchange.into_iter().for_each(|exchange| self.keep(exchange, now)),
                Err(reason) => self.reject(reason),
            }
        }
    }

    fn keep(&mut self, exchange: Exchange, now: Moment<Mono>) {
        self.note_stamps(&exchange);
        // What it returns is news; what holds is asked for.
        let label = self.leaps.utc_from_tai(exchange.server_out).since_origin();
        self.leap_watch.observe(exchange.server.leap, Moment::from_origin(label));
        self.exchanges.push(exchange);
        self.counts.exchanges += 1;
        if self.standing == Reachability::Reachable {
            let change = Span::from_units((now - self.alive - self.interval).units() / 8);
            self.interval = (self.interval + change).min(RAREST);
        } else {
            self.standing = Reachability::Reachable;
            self.notes.push(Note::notice("the master gives time", ""));
        }
        self.alive = now;
    }

    fn reject(&mut self, reason: PtpRejection) {
        let count = self.counts.rejected.entry(reason.name()).or_default();
        *count += 1;
        let is_first = *count == 1;
        self.notes.push(if is_first {
            let detail = format!("{reason}; so far {}", self.rejections());
            // A second reason may come at once, and is news too. The reasons are a closed list.
            Note::notice("messages of PTP are turned away", detail).part(reason.name())
        } else {
            Note::detail("packet turned away", reason)
        });
    }

    /// How many were turned away, by reason.
    fn rejections(&self) -> String {
        let reasons = self.counts.rejected.iter().map(|(reason, count)| format!("{reason} {count}"));
        reasons.collect::<Vec<_>>().join(", ")
    }

    /// When the server counts as silent.
    fn silent_at(&self) -> Moment<Mono> {
        let usual = self.interval.max(self.follower.sync_interval());
        self.alive + SILENT_AFTER.max(Span::from_units(usual.units() * SILENT_EXCHANGES))
    }

    fn watch_silence(&mut self, now: Moment<Mono>) {
        if now < self.silent_at() || self.standing == Reachability::Unreachable {
            return;
        }
        self.standing = Reachability::Unreachable;
        let reasons = self.rejections();
        let detail = if reasons.is_empty() { reasons } else { format!("turned away so far: {reasons}") };
        let kind = match self.follower.master() {
            Some(_) => "the master gives no time that can be used",
            None => "no master of PTP is heard",
        };
        self.notes.push(Note::warning(kind, detail));
    }
}

impl Feed for Ptp {
    fn descriptors(&self) -> [Option<BorrowedFd<'_>>; 2] {
        self.link.as_ref().map_or([None, None], PtpLink::descriptors)
    }

    fn next(&self) -> Moment<Mono> {
        let is_silent = self.standing == Reachability::Unreachable;
        let opening = (self.link.is_none() || is_silent).then_some(self.open_at);
        let silence = (!is_silent).then(|| self.silent_at());
        let stamps = self.link.as_ref().and_then(PtpLink::deadline);
        let due = [opening, silence, stamps, self.follower.poll_timeout()];
        due.into_iter().flatten().min().unwrap_or(self.open_at)
    }

    fn poll(&self) -> Span {
        self.interval
    }

    fn standing(&self) -> Reachability {
        self.standing
    }

    fn is_open(&self) -> bool {
        self.link.is_some()
    }

    fn quality(&self) -> StampQuality {
        self.link.as_ref().map_or(StampQuality::AsWanted, PtpLink::quality)
    }

    fn counterpart(&self) -> Option<Counterpart> {
        self.master.map(|master| Counterpart::Master(master.port, self.server.ptp.domain))
    }

    fn leap_vote(&self) -> Option<Vote> {
        Some(Vote::of(self.leap_watch.announced()))
    }

    fn set_leaps(&mut self, leaps: LeapTable) {
        self.leaps = leaps;
        self.follower.set_leaps(leaps);
    }

    /// Every option of the conversation makes another server.
    fn reconfigure(&mut self, server: &ServerConfig) {
        self.server = server.clone();
    }

    fn begin_epoch(&mut self, beginning: &Beginning, now: Moment<Mono>) {
        let environment = &beginning.environment;
        self.follower = follower(&self.server, environment.nominal, (self.own, now));
        self.set_leaps(environment.leaps);
        self.pairing = ExchangePairing::new(environment.nominal, self.server.source.root_distance_max);
        self.observations.clear();
        self.exchanges.clear();
        // Packets that wait were stamped before the break.
        (self.link, self.open_at, self.alive) = (None, now, now);
        self.standing = Reachability::Untried;
    }

    fn collect(&mut self, context: &mut Context) {
        let is_silent = self.standing == Reachability::Unreachable;
        if context.now >= self.open_at && (self.link.is_none() || is_silent) {
            self.open(context);
        }
        let is_all = self.receive(context);
        self.advance(context);
        // With more to read than that, an announcement may still wait; a flood does not hold up the clock.
        if is_all || self.observations.len() >= MOST_EVENTS {
            self.judge(context.now);
        }
        self.watch_silence(context.now);
    }

    fn take_exchanges(&mut self) -> Vec<Exchange> {
        std::mem::take(&mut self.exchanges)
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn report(&self, report: SourceReport) -> SourceReport {
        let followed = self.follower.master();
        let announced = followed.map(|master| master.announcement);
        let count = |reason: PtpRejection| self.counts.rejected.get(reason.name()).copied().unwrap_or_default();
        let counted = self.counts.rejected.iter().map(|(reason, count)| ((*reason).to_owned(), *count));
        SourceReport {
            address: self.link.as_ref().map(|link| link.place().to_owned()),
            poll_s: self.interval.as_seconds(),
            sent: self.counts.sent,
            exchanges: self.counts.exchanges,
            lost: count(PtpRejection::ResponseMissing),
            rejected: counted.collect(),
            ptp: Some(PtpReport {
                domain: self.server.ptp.domain,
                master: followed.map(|master| port_text(master.port)),
                grandmaster: announced.map(|announced| announced.grandmaster.to_string()),
                clock_class: announced.map(|announced| announced.quality.class.0),
                steps_removed: announced.map(|announced| announced.steps_removed),
            }),
            ..report
        }
    }
}

/// A port of a clock that is no other's: identities made from the address of a device are those of other programs on
/// this host, whose responses would be taken for ours. The second-lowest bit of the first octet says that it was made
/// up here (EUI-64, locally administered).
fn own_port(now: Moment<Mono>) -> PortIdentity {
    let made_up = ffclock_sys::random_nonce().unwrap_or(now.since_origin().units() as u64);
    let [first, rest @ ..] = made_up.to_be_bytes();
    let [b, c, d, e, f, g, h] = rest;
    let clock = ClockIdentity::from_octets([first & !1 | 2, b, c, d, e, f, g, h]);
    PortIdentity { clock, port: 1 }
}

/// A follower for a counter of this period.
fn follower(server: &ServerConfig, nominal: Period, (own, now): (PortIdentity, Moment<Mono>)) -> Follower {
    let usual = FollowerConfig::of(nominal);
    let options = &server.ptp;
    let config = FollowerConfig {
        domain: u8::try_from(options.domain).unwrap_or(u8::MAX),
        delivery: match server.ptp_place() {
            PtpPlace::Group(_) | PtpPlace::Frames => match options.delay_mechanism {
                DelayChoice::Hybrid => Delivery::Hybrid,
                DelayChoice::EndToEnd | DelayChoice::Peer => Delivery::Multicast,
            },
            PtpPlace::Master(IpAddr::V4(ip)) => Delivery::Unicast(NetworkAddress(ip.to_ipv6_mapped().octets())),
            PtpPlace::Master(IpAddr::V6(ip)) => Delivery::Unicast(NetworkAddress(ip.octets())),
        },
        mechanism: match options.delay_mechanism {
            DelayChoice::Peer => DelayMechanism::PeerToPeer,
            DelayChoice::EndToEnd | DelayChoice::Hybrid => DelayMechanism::EndToEnd,
        },
        arbitrary: match options.arbitrary_timescale {
            TimescaleChoice::Refuse => ArbitraryTimescale::Refuse,
            TimescaleChoice::Utc => ArbitraryTimescale::Utc,
        },
        grandmaster: options.grandmaster.0,
        clock_class_max: ClockClass(u8::try_from(options.clock_class_max).unwrap_or(u8::MAX)),
        steps_removed_max: options.steps_removed_max,
        // On either scale: they are half a minute apart.
        earliest: Moment::from_origin(EARLIEST_PRESENT.since_origin()),
        log_announce_interval: options.announce_interval.0,
        log_sync_interval: options.sync_interval.0,
        log_delay_interval: options.delay_interval.0,
        reply_timeout: server.source.reply_timeout,
        claims: ClaimRules {
            accuracy_unclaimed: options.accuracy_unclaimed.value().copied().unwrap_or(Bound::UNKNOWN),
            ..usual.claims
        },
        ..usual
    };
    Follower::new(config, own, now)
}

/// As linuxptp prints it.
fn port_text(port: PortIdentity) -> String {
    format!("{}-{}", port.clock, port.port)
}

fn described(master: &Master) -> String {
    let announced = &master.announcement;
    let accuracy = announced.quality.accuracy.as_bound();
    let accuracy = accuracy.map_or_else(|| "no accuracy claimed".to_owned(), |bound| format!("accuracy {bound}"));
    let (grandmaster, class) = (announced.grandmaster, announced.quality.class.0);
    let steps = announced.steps_removed;
    format!(
        "port {}, grandmaster {grandmaster}, class {class}, {accuracy}, {steps} boundary clocks away",
        port_text(master.port)
    )
}

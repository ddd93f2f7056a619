//! One rank: a machine, a UDP socket, a log in memory.

mod meeting;
mod recorder;
mod sending;

use super::alarm::Alarm;
use super::control::{self, ANSWER, FromCoordinator, FromRank, Go, LogHeader};
use super::injector::Injector;
use super::packet::{Stay, WirePacket};
use super::page_clock::PageClock;
use super::post::{Held, Mail, Post, socket_error};
use super::priority::raise_priority;
use super::stamping::StampingCounter;
use super::{LiveError, RankPlace, Replies, Settings};
use ffclock_counter::CounterId;
use ffclock_sys::{Interest, Received, mono_now, poll};
use ffclock_theta::algorithm::{Process, RoundSwitch, Switches};
use ffclock_theta::log::RoundTrip;
use ffclock_theta::record::{self, Event, ProcessId, Round, WayIn};
use ffclock_units::{Counter, Moment, Mono, Span};
use recorder::EventRecorder;
use std::hint::spin_loop;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// The options of a rank.
#[derive(Clone, Debug)]
pub struct RankOptions {
    /// Its rank, and the number of ranks.
    pub place: RankPlace,
    /// The settings that all agree on.
    pub settings: Settings,
    /// Where rank 0 is met: HOST:PORT.
    pub rendezvous: String,
    /// How long it tries to meet rank 0.
    pub patience: Span,
    /// The requested real-time priority, 1 to 99.
    pub priority: Option<u8>,
    /// The name of its host; by default the one that the kernel gives.
    pub host: Option<String>,
    /// The counter that stamps events. Ranks of a machine that are compared without pages must take the same. By
    /// default the one that the named page is about, or else what the checks of the CPU counter decide.
    pub counter: Option<CounterId>,
    /// The page to compare hosts by; by default the machine's, and only where there are several machines.
    pub page: Option<PathBuf>,
    /// The largest number of events it keeps, and of round trips; 2^25 at most. Further ones are only counted.
    pub events_max: u32,
}

/// After the end of a run, this long without a message means that none is in transit.
const SILENCE: Span = Span::from_millis(50);
/// What comes later is ignored, so that the log is handed over within the patience of rank 0.
const SILENCE_AWAITED: Span = Span::from_secs(6);
/// The number of packets and stamps taken before anything else is looked at: at D = 0 a process may never find its
/// socket empty.
const TAKEN_AT_ONCE: usize = 64;

/// Takes part in a run until the coordinator ends it, and hands the log over.
///
/// # Errors
/// When rank 0 cannot be met or is gone, or a socket fails.
pub fn run_rank(options: &RankOptions) -> Result<(), LiveError> {
    let priority = raise_priority(options.priority);
    let mut rank = Rank::meet(options)?;
    rank.header.priority = priority;
    rank.take_part()?;
    rank.page.look();
    rank.hand_over()
}

/// The process, or a second one that runs under its name.
struct LiveMachine {
    process: Process,
    /// For which deadline the alarm is set.
    armed: Option<u64>,
    /// When the quorum was complete that the alarm was set for.
    quorum_at: Counter,
    has_started: bool,
}

/// The process itself among the machines.
const OWN: usize = 0;

struct Rank {
    own: ProcessId,
    settings: Settings,
    go: Go,
    /// The process, and its twin if it has one.
    machines: Vec<LiveMachine>,
    injector: Injector,
    post: Post,
    page: PageClock,
    counter: StampingCounter,
    control: TcpStream,
    commands: BufReader<TcpStream>,
    alarm: Alarm,
    /// The counter at the start.
    started: u64,
    recorder: EventRecorder,
    header: LogHeader,
    /// When to give up waiting for rank 0.
    over: Moment<Mono>,
    has_reported: bool,
    /// The coordinator has said stop: the rank records what comes and sends no messages, which would cause others
    /// forever.
    is_stopping: bool,
}

impl Rank {
    fn counter(&self) -> Counter {
        self.counter.read()
    }

    /// Picoseconds since the start.
    fn since_start(&self, at: Counter) -> u64 {
        (at.raw().saturating_sub(self.started) as f64 * self.counter.period.as_seconds() * 1e12) as u64
    }

    /// The counter at a number of picoseconds after the start.
    fn counter_at(&self, picoseconds: u64) -> u64 {
        self.started.saturating_add((picoseconds as f64 * 1e-12 / self.counter.period.as_seconds()) as u64)
    }

    /// Until the coordinator says stop; then until nothing comes any more.
    fn take_part(&mut self) -> Result<(), LiveError> {
        self.started = self.counter().raw();
        if self.injector.starts() > 0 {
            self.alarm.set(self.counter_at(self.injector.starts()));
        }
        while !self.wait_for_stop()? {
            self.take_in()?;
            self.report_if_done()?;
        }
        self.is_stopping = true;
        let mut quiet_since = mono_now();
        let awaited_until = quiet_since + SILENCE_AWAITED;
        while mono_now() < (quiet_since + SILENCE).min(awaited_until) {
            let perceived = self.header.perceived + self.header.replies_perceived;
            let mut interests = [Interest::readable(self.post.as_fd())];
            poll(&mut interests, Some(quiet_since + SILENCE)).map_err(socket_error)?;
            self.take_in()?;
            if self.header.perceived + self.header.replies_perceived > perceived {
                quiet_since = mono_now();
            }
        }
        self.header.round = self.machines[OWN].process.round();
        Ok(())
    }

    /// Does what is due, and waits for a message, the timer or the coordinator. Whether the coordinator has said stop.
    fn wait_for_stop(&mut self) -> Result<bool, LiveError> {
        self.do_what_is_due()?;
        let mut interests = [
            Interest::readable(self.post.as_fd()),
            Interest::readable(self.control.as_fd()),
            Interest::readable(self.alarm.bell.as_fd()),
        ];
        poll(&mut interests, Some(self.over)).map_err(LiveError::network("waiting"))?;
        let [_, word, bell] = interests.map(|interest| interest.is_readable());
        if bell {
            self.alarm.silence();
            self.do_what_is_due()?;
        }
        if word {
            let FromCoordinator::Stop = control::read(&mut self.commands).map_err(|error| refused("rank 0", &error))?;
        } else if mono_now() >= self.over {
            let (limit, more) = (self.go.limit_ns as f64 * 1e-9, ANSWER.as_secs());
            let why = format!("it hangs: the limit of {limit} s is over for {more} s, and it did not say stop");
            return Err(refused("rank 0", &LiveError::Protocol(why)));
        }
        Ok(word)
    }

    /// Starts, ends of D, what was held, looks at the clock.
    fn do_what_is_due(&mut self) -> Result<(), LiveError> {
        let now = self.counter();
        let since_start = self.since_start(now);
        self.page.look_if_due(now.raw());
        while let Some(held) = self.post.release(now.raw()) {
            match held {
                Held::Message { receiver, round, copies } => self.hand_over_copies(receiver, round, copies)?,
                Held::ForTwin { sender, round } if !self.injector.is_down(since_start) => {
                    let heard = self.machines[1].process.receive(sender, round, now.raw());
                    self.react(1, heard, now)?;
                }
                Held::ForTwin { .. } => (),
            }
        }
        if self.injector.is_down(since_start) {
            return Ok(());
        }
        for which in 0..self.machines.len() {
            let machine = &mut self.machines[which];
            let switches = if machine.has_started {
                if machine.process.deadline().is_none_or(|deadline| deadline > now.raw()) {
                    continue;
                }
                let decided = machine.quorum_at.raw();
                machine.process.wake(now.raw()).decided_at(decided)
            } else {
                machine.has_started = true;
                machine.process.start(now.raw())
            };
            self.react(which, switches, now)?;
        }
        Ok(())
    }

    fn report_if_done(&mut self) -> Result<(), LiveError> {
        if !self.has_reported && self.machines[OWN].process.round() > self.settings.rounds {
            self.has_reported = true;
            control::write(&self.control, &FromRank::Done)?;
        }
        Ok(())
    }

    /// What has come to the socket, or the first of it.
    fn take_in(&mut self) -> Result<(), LiveError> {
        for _ in 0..TAKEN_AT_ONCE {
            let Some(mail) = self.post.next()? else { break };
            match mail {
                Mail::Packet(received, packet) => self.open(&received, packet)?,
                Mail::Stamp { receiver, round, at: Some(at) } => {
                    self.recorder.event(Event::Transmission { process: self.own, receiver, round, at });
                }
                Mail::Stamp { at: None, .. } => self.header.unstamped += 1,
                Mail::Unreachable => self.header.refused += 1,
            }
        }
        Ok(())
    }

    /// The network says who sent a packet; one that claims to be from another is a forgery.
    fn open(&mut self, received: &Received, packet: Option<WirePacket>) -> Result<(), LiveError> {
        let from = |packet: &WirePacket| self.go.addresses.get(packet.sender as usize) == Some(&received.from);
        let Some(packet) = packet.filter(|packet| packet.run == self.go.run && from(packet)) else {
            self.header.refused += 1;
            return Ok(());
        };
        if self.injector.is_down(self.since_start(received.user.counter)) {
            self.injector.done.missed += 1;
            return Ok(());
        }
        match packet.reply {
            Some(stay) => self.returned(received, packet, stay),
            None => self.perceive(received, packet)?,
        }
        Ok(())
    }

    fn returned(&mut self, received: &Received, packet: WirePacket, stay: Stay) {
        self.header.replies_perceived += 1;
        self.recorder.trip(RoundTrip {
            sender: self.own,
            receiver: ProcessId(packet.sender),
            round: Round(packet.round),
            returned: received.best.stamp.counter,
            perceived_after: stay.perceived,
            replied_after: stay.replied,
        });
    }

    fn perceive(&mut self, received: &Received, packet: WirePacket) -> Result<(), LiveError> {
        let begun = self.counter();
        let heard = self.machines[OWN].process.receive(packet.sender, packet.round, begun.raw());
        let kernel = received.kernel.ok().map(|stamp| stamp.counter);
        self.header.perceived += 1;
        self.header.unstamped += u64::from(kernel.is_none());
        self.be_slow(received.user.counter);
        let at = self.counter();
        let way_in = WayIn { kernel, received: Some(received.user.counter) };
        let (sender, round) = (ProcessId(packet.sender), Round(packet.round));
        self.recorder.event(Event::Perception { process: self.own, sender, round, at, way_in });
        if self.injector.has_twin() {
            let lag = self.injector.twin_lag();
            let later = self.counter_at(self.since_start(at) + lag);
            self.post.hold(later, Held::ForTwin { sender: packet.sender, round: packet.round });
            self.alarm.set(later);
        }
        self.react(OWN, heard.decided_at(at.raw()), at)?;
        if self.settings.replies == Replies::RoundTrips { self.reply(received, packet, at) } else { Ok(()) }
    }

    /// On a slow host processing takes longer.
    fn be_slow(&mut self, received: Counter) {
        let taken = self.counter().raw().saturating_sub(received.raw());
        let factor = self.injector.slowness(self.since_start(received));
        let until = received.raw().saturating_add((taken as f64 * factor) as u64);
        while self.counter().raw() < until {
            spin_loop();
        }
    }

    /// Does what a machine wants: records its switches, broadcasts, sets the timer. Of a twin nothing is recorded.
    fn react(&mut self, which: usize, switches: Switches, at: Counter) -> Result<(), LiveError> {
        let mut switched_at = at;
        for RoundSwitch { from, to, decided, rule } in switches {
            if which == OWN {
                let (from, to, at, decided) = (Round(from), Round(to), switched_at, Counter::from_raw(decided));
                self.recorder.event(Event::Switch(record::SwitchEvent {
                    process: self.own,
                    from,
                    to,
                    at,
                    decided,
                    rule,
                }));
            }
            if !self.is_stopping {
                self.broadcast_up_to(which, to)?;
            }
            switched_at = self.counter();
        }
        if self.is_stopping {
            return Ok(());
        }
        // After a start without a switch there is round 1.
        self.broadcast_up_to(which, u64::MAX)?;
        let machine = &mut self.machines[which];
        let deadline = machine.process.deadline();
        if deadline != machine.armed {
            machine.armed = deadline;
            machine.quorum_at = at;
            deadline.into_iter().for_each(|deadline| self.alarm.set(deadline));
        }
        Ok(())
    }

    fn hand_over(mut self) -> Result<(), LiveError> {
        self.header.unstamped += self.post.outstanding();
        self.header.dropped = self.post.dropped().unwrap_or(0);
        self.injector.done.never_released = self.post.never_released();
        self.header.injected = self.injector.done;
        self.header.started = self.started;
        self.header.no_clock = self.page.trouble.take();
        self.header.clock = std::mem::take(&mut self.page.words);
        self.header.unrecorded = self.recorder.lost();
        self.header.bytes = self.recorder.bytes();
        control::write(&self.control, &FromRank::Log(Box::new(self.header)))?;
        for part in self.recorder.packed() {
            self.control.write_all(&part).map_err(LiveError::network("handing the log over"))?;
        }
        Ok(())
    }
}

fn refused(by: &str, error: &LiveError) -> LiveError {
    LiveError::Protocol(format!("{by}: {error}"))
}

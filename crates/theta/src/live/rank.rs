//! One rank: a machine, a UDP socket, a log in memory.

use super::control::{self, ClockWord, FromCoordinator, FromRank, Go, Hello, LogHeader};
use super::packet::{self, Packet};
use super::store::{EVENT_BYTES, pack};
use super::{LiveError, Place, Settings};
use crate::algorithm::{Process, Switch};
use crate::record::{self, Event, ProcessId, Round, WayIn};
use ffclock_client::Clock;
use ffclock_counter::{Choice, CounterKind, choose, nominal, read_ordered};
use ffclock_sys::{
    Interest, Mapper, Received, SendId, SocketEvent, StampMode, StampedSocket, SystemPairs, mono_now, poll,
};
use ffclock_units::{Counter, Period, Span};
use std::collections::VecDeque;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// How a rank is run.
#[derive(Clone, Debug)]
pub struct RankOptions {
    /// Which one it is.
    pub place: Place,
    /// What all agree on.
    pub settings: Settings,
    /// Where rank 0 is met: HOST:PORT.
    pub rendezvous: String,
    /// How long it tries to meet rank 0.
    pub patience: Span,
    /// The real-time priority that is wished for, 1 to 99.
    pub priority: Option<u8>,
}

/// More events are counted, not kept: about 2 GiB.
const EVENTS_MAX: usize = 1 << 25;
/// So many packets may wait for their transmit stamp.
const UNSTAMPED_MAX: usize = 1 << 14;
/// After the end of a run, this long without a message means that none is in transit.
const SILENCE: Span = Span::from_nanos(50_000_000);
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Takes part in a run until the coordinator ends it, and hands the log over.
///
/// # Errors
/// When rank 0 cannot be met or is gone, or a socket fails.
pub fn run_rank(options: &RankOptions) -> Result<(), LiveError> {
    let priority = raise_priority(options.priority);
    let mut rank = Rank::meet(options)?;
    rank.header.priority = priority;
    rank.look_at_clock();
    rank.take_part()?;
    rank.look_at_clock();
    rank.hand_over()
}

/// Asks for first-in-first-out scheduling and says what became of it.
fn raise_priority(priority: Option<u8>) -> String {
    let Some(priority) = priority else { return "normal".to_owned() };
    let (number, process) = (priority.to_string(), std::process::id().to_string());
    match Command::new("chrt").args(["-f", "-p", &number, &process]).output() {
        Ok(output) if output.status.success() => format!("fifo {priority}"),
        Ok(output) => format!("normal, because: {}", String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => format!("normal, because chrt: {error}"),
    }
}

/// Says what is wrong with a socket.
fn socket_error(error: std::io::Error) -> LiveError {
    LiveError::network("the socket of the messages")(error)
}

struct Rank {
    own: ProcessId,
    settings: Settings,
    go: Go,
    machine: Process,
    socket: StampedSocket,
    mapper: Mapper<SystemPairs>,
    kind: CounterKind,
    control: TcpStream,
    commands: BufReader<TcpStream>,
    alarm: Alarm,
    /// For which deadline the alarm is set.
    armed: Option<u64>,
    /// When the quorum was complete that the alarm was set for.
    quorum_at: Counter,
    events: Vec<Event>,
    header: LogHeader,
    /// Packets whose transmit stamp has not come yet.
    unstamped: VecDeque<(SendId, ProcessId, Round)>,
    has_told: bool,
}

impl Rank {
    /// Connects to rank 0, tells where we are, and waits until all are there.
    fn meet(options: &RankOptions) -> Result<Self, LiveError> {
        let control = connect(&options.rendezvous, options.patience)?;
        let own_address = control.local_addr().map_err(LiveError::network("our own address"))?;
        let socket = StampedSocket::bind((own_address.ip(), 0).into(), StampMode::Kernel).map_err(socket_error)?;
        let kind = choose(Choice::Auto).kind;
        let period = nominal(kind).map_err(|error| LiveError::Settings(error.to_string()))?.period;
        let hello = Hello {
            rank: options.place.rank,
            settings: options.settings.clone(),
            address: socket.local_address().map_err(socket_error)?,
            host: text_of("/proc/sys/kernel/hostname"),
            machine: text_of("/proc/sys/kernel/random/boot_id"),
            counter: kind.name().to_owned(),
        };
        control::write(&control, &hello)?;
        let mut commands = BufReader::new(control.try_clone().map_err(LiveError::network("a second handle"))?);
        let go: Go = control::read(&mut commands).map_err(|error| refused(&options.rendezvous, &error))?;
        if go.addresses.len() != options.settings.processes as usize {
            return Err(LiveError::Protocol("rank 0 names too few addresses".to_owned()));
        }
        Ok(Rank {
            own: ProcessId(options.place.rank),
            machine: Process::new(
                options.settings.quorum()?,
                options.settings.form,
                ticks_in(options.settings.delay_ns, period),
            ),
            settings: options.settings.clone(),
            go,
            socket,
            mapper: Mapper::system(kind, period),
            kind,
            control,
            commands,
            alarm: Alarm::start(kind, period).map_err(LiveError::network("a timer"))?,
            armed: None,
            quorum_at: Counter::from_raw(0),
            events: Vec::with_capacity(1 << 16),
            header: LogHeader { period_s: period.as_seconds(), ..LogHeader::default() },
            unstamped: VecDeque::new(),
            has_told: false,
        })
    }

    fn counter(&self) -> Counter {
        read_ordered(self.kind)
    }

    fn record(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX { self.events.push(event) } else { self.header.unstamped += 1 }
    }

    /// Until the coordinator says stop; then until nothing comes any more.
    fn take_part(&mut self) -> Result<(), LiveError> {
        let now = self.counter();
        let switch = self.machine.start(now.raw());
        self.react(switch, now)?;
        while !self.is_told_to_stop()? {
            self.take_in()?;
            self.tell_if_done()?;
        }
        let mut quiet_since = mono_now();
        while mono_now() < quiet_since + SILENCE {
            let perceived = self.header.perceived;
            let mut interests = [Interest::readable(self.socket.as_fd())];
            poll(&mut interests, Some(quiet_since + SILENCE)).map_err(socket_error)?;
            self.take_in()?;
            if self.header.perceived > perceived {
                quiet_since = mono_now();
            }
        }
        self.header.round = self.machine.round();
        Ok(())
    }

    /// Waits for a message, the timer or a word of the coordinator; whether the word has come.
    fn is_told_to_stop(&mut self) -> Result<bool, LiveError> {
        let mut interests = [
            Interest::readable(self.socket.as_fd()),
            Interest::readable(self.control.as_fd()),
            Interest::readable(self.alarm.bell.as_fd()),
        ];
        poll(&mut interests, None).map_err(LiveError::network("waiting"))?;
        let [_, word, bell] = interests.map(|interest| interest.is_readable());
        if bell {
            self.alarm.silence();
            let now = self.counter();
            let switch = self.machine.wake(now.raw());
            let decided = self.quorum_at.raw();
            self.react(switch.map(|switch| Switch { decided, ..switch }), now)?;
        }
        if word {
            let FromCoordinator::Stop = control::read(&mut self.commands).map_err(|error| refused("rank 0", &error))?;
        }
        Ok(word)
    }

    fn tell_if_done(&mut self) -> Result<(), LiveError> {
        if !self.has_told && self.machine.round() > self.settings.rounds {
            self.has_told = true;
            control::write(&self.control, &FromRank::Done)?;
        }
        Ok(())
    }

    /// Everything that has come to the socket.
    fn take_in(&mut self) -> Result<(), LiveError> {
        let mut buffer = [0; packet::LENGTH + 1];
        while let Some(event) = self.socket.next_event(&mut buffer, &mut self.mapper).map_err(socket_error)? {
            match event {
                SocketEvent::Received(received) => {
                    self.perceive(&received, &buffer[..received.length.min(buffer.len())])?
                }
                SocketEvent::Transmitted(stamped) => {
                    self.note_transmission(stamped.id, stamped.stamp.ok().map(|stamp| stamp.counter))
                }
                SocketEvent::Unreachable(_) => self.header.refused += 1,
            }
        }
        Ok(())
    }

    fn perceive(&mut self, received: &Received, bytes: &[u8]) -> Result<(), LiveError> {
        // The network says who sent it; a packet that claims to be from another one is a forgery.
        let sender = |packet: &Packet| self.go.addresses.get(packet.sender as usize) == Some(&received.from);
        let Some(packet) = Packet::decode(bytes).filter(|packet| packet.run == self.go.run && sender(packet)) else {
            self.header.refused += 1;
            return Ok(());
        };
        let decided = self.counter();
        let switch = self.machine.receive(packet.sender, packet.round, decided.raw());
        let kernel = received.kernel.ok().map(|stamp| stamp.counter);
        self.header.perceived += 1;
        self.header.unstamped += u64::from(kernel.is_none());
        let at = self.counter();
        let way_in = WayIn { kernel, received: Some(received.user.counter) };
        let (sender, round) = (ProcessId(packet.sender), Round(packet.round));
        self.record(Event::Perception { process: self.own, sender, round, at, way_in });
        self.react(switch.map(|switch| Switch { decided: at.raw(), ..switch }), at)
    }

    /// Does what the machine wants: records its switch, broadcasts, sets the timer.
    fn react(&mut self, switch: Option<Switch>, at: Counter) -> Result<(), LiveError> {
        if let Some(Switch { from, to, decided, rule }) = switch {
            let decided = Counter::from_raw(decided);
            let (from, to) = (Round(from), Round(to));
            self.record(Event::Switch(record::Switch { process: self.own, from, to, at, decided, rule }));
        }
        while let Some(round) = self.machine.poll_transmit().filter(|&round| round <= self.settings.rounds) {
            self.broadcast(round)?;
        }
        let deadline = self.machine.deadline();
        if deadline != self.armed {
            self.armed = deadline;
            self.quorum_at = at;
            deadline.into_iter().for_each(|deadline| self.alarm.set(deadline));
        }
        Ok(())
    }

    fn broadcast(&mut self, round: u64) -> Result<(), LiveError> {
        let bytes = Packet { run: self.go.run, sender: self.own.0, round }.encode();
        let at = self.counter();
        self.record(Event::Broadcast { process: self.own, round: Round(round), at });
        for receiver in 0..self.settings.processes {
            let to = self.go.addresses[receiver as usize];
            let sent = self.socket.send_to(&bytes, to, &mut self.mapper).map_err(socket_error)?;
            self.header.sent += 1;
            self.unstamped.push_back((sent.id, ProcessId(receiver), Round(round)));
        }
        while self.unstamped.len() > UNSTAMPED_MAX {
            self.unstamped.pop_front();
            self.header.unstamped += 1;
        }
        Ok(())
    }

    fn note_transmission(&mut self, id: SendId, at: Option<Counter>) {
        let Some(place) = self.unstamped.iter().position(|(waiting, _, _)| *waiting == id) else { return };
        let Some((_, receiver, round)) = self.unstamped.remove(place) else { return };
        match at {
            Some(at) => self.record(Event::Transmission { process: self.own, receiver, round, at }),
            None => self.header.unstamped += 1,
        }
    }

    /// What the page of this host says now, if there is one that may be believed.
    fn look_at_clock(&mut self) {
        let Ok(clock) = Clock::open() else { return };
        let stamp = clock.stamp();
        let Ok(reading) = clock.at(stamp) else { return };
        let picoseconds = |span: Span| span.as_nanos() * 1000;
        self.header.clock.push(ClockWord {
            counter: stamp.counter().raw(),
            time_ps: picoseconds(reading.time.since_origin()),
            // Nanoseconds are rounded: one more on either side.
            bound_ps: u64::try_from(picoseconds(reading.bound.as_span()) + 2000).unwrap_or(u64::MAX),
            drift_ppt: 1_000_000,
        });
    }

    fn hand_over(mut self) -> Result<(), LiveError> {
        self.header.unstamped += self.unstamped.len() as u64;
        self.header.bytes = (self.events.len() * EVENT_BYTES) as u64;
        control::write(&self.control, &FromRank::Log(Box::new(self.header)))?;
        for part in self.events.chunks(1 << 14) {
            self.control.write_all(&pack(part)).map_err(LiveError::network("handing the log over"))?;
        }
        Ok(())
    }
}

fn refused(whom: &str, error: &LiveError) -> LiveError {
    LiveError::Protocol(format!("{whom}: {error}"))
}

fn ticks_in(nanoseconds: u64, period: Period) -> u64 {
    u64::try_from(period.ticks_in(Span::from_nanos(nanoseconds.into())).raw()).unwrap_or(0)
}

/// A line that the kernel shows.
fn text_of(path: &str) -> String {
    std::fs::read_to_string(Path::new(path)).unwrap_or_default().trim().to_owned()
}

/// Tries until rank 0 is there.
fn connect(rendezvous: &str, patience: Span) -> Result<TcpStream, LiveError> {
    let deadline = mono_now() + patience;
    loop {
        let error = match try_connect(rendezvous) {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if mono_now() >= deadline {
            return Err(LiveError::network(format!("meeting rank 0 at {rendezvous}"))(error));
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
}

fn try_connect(rendezvous: &str) -> std::io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = rendezvous.to_socket_addrs()?.collect();
    let stream = TcpStream::connect(addresses.as_slice())?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Rings a bell that `poll` hears, more finely than in milliseconds.
struct Alarm {
    /// Counter values at which to ring.
    orders: Sender<u64>,
    bell: UnixStream,
}

impl Alarm {
    fn start(kind: CounterKind, period: Period) -> std::io::Result<Self> {
        let (bell, hammer) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        let (orders, received) = channel::<u64>();
        std::thread::spawn(move || {
            for deadline in received {
                let rest = deadline.saturating_sub(read_ordered(kind).raw());
                std::thread::sleep(Duration::from_secs_f64(rest as f64 * period.as_seconds()));
                if (&hammer).write_all(&[1]).is_err() {
                    return;
                }
            }
        });
        Ok(Alarm { orders, bell })
    }

    fn set(&self, deadline: u64) {
        // The thread ends with the process only.
        let _ = self.orders.send(deadline);
    }

    fn silence(&mut self) {
        let mut rings = [0; 64];
        while matches!(self.bell.read(&mut rings), Ok(read) if read == rings.len()) {}
    }
}

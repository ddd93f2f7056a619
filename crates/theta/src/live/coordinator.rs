//! Rank 0's other half: brings the ranks together, notices when one dies, gathers their logs and writes them as one.

use super::control::{self, ClockWord, FromCoordinator, FromRank, Go, Hello, LogHeader};
use super::store::{EVENT_BYTES, unpack};
use super::{LiveError, Settings};
use crate::log::{EventWriter, LogWriter};
use crate::record::{ClockSample, Host, HostId, Origin, ProcessId, Run};
use ffclock_sys::{Interest, mono_now, poll, random_nonce};
use ffclock_units::{Counter, Moment, Mono, Period, Rate, Span};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// A larger log of one rank is refused.
const LOG_BYTES_MAX: u64 = 4 << 30;
/// How long a rank may take to say what it has to say at once.
const ANSWER: Duration = Duration::from_secs(10);
/// How long the last f ranks may take after the others.
const LAG: Duration = Duration::from_secs(3);
/// How long a rank may take to hand over its log.
const HAND_OVER: Duration = Duration::from_secs(120);

/// Waits for the ranks at an address.
pub struct Coordinator {
    listener: TcpListener,
    settings: Settings,
    patience: Span,
    limit: Span,
}

/// What a rank left.
struct RankLog {
    header: LogHeader,
    bytes: Vec<u8>,
}

/// What was gathered from all ranks.
pub struct Gathered {
    settings: Settings,
    hellos: Vec<Hello>,
    logs: Vec<Option<RankLog>>,
    failures: Vec<String>,
}

/// Counts of a live run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveSummary {
    /// Messages sent, one for each receiver.
    pub sent: u64,
    /// Messages perceived; what is missing was lost on the way or still in transit at the end.
    pub perceived: u64,
    /// Packets that were no messages of this run.
    pub refused: u64,
    /// Kernel stamps that did not come or could not be trusted.
    pub unstamped: u64,
    /// The least round that a rank came to.
    pub least_round: u64,
    /// What became of the wish for real-time priorities, by rank.
    pub priorities: Vec<String>,
    /// What went wrong; the results are partial unless this is empty.
    pub failures: Vec<String>,
}

type News = (u32, Result<FromRankNews, String>);

enum FromRankNews {
    Done,
    Log(RankLog),
}

impl Coordinator {
    /// Listens at `address`. Ranks may take `patience` to come; the run itself may take `limit`.
    ///
    /// # Errors
    /// When the address is taken or not ours, or the settings make no sense.
    pub fn bind(address: SocketAddr, settings: Settings, (patience, limit): (Span, Span)) -> Result<Self, LiveError> {
        settings.quorum()?;
        let listener = TcpListener::bind(address).map_err(LiveError::network(format!("listening at {address}")))?;
        listener.set_nonblocking(true).map_err(LiveError::network("listening"))?;
        Ok(Coordinator { listener, settings, patience, limit })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn address(&self) -> Result<SocketAddr, LiveError> {
        self.listener.local_addr().map_err(LiveError::network("listening"))
    }

    /// Lets the ranks run and gathers what they leave.
    ///
    /// # Errors
    /// When ranks stay away or disagree about the settings. What happens later is told in the result.
    pub fn gather(self) -> Result<Gathered, LiveError> {
        let mut ranks = self.meet()?;
        let hellos: Vec<Hello> = ranks.iter().map(|(hello, _)| hello.clone()).collect();
        let run = random_nonce().map_err(LiveError::network("choosing a number for the run"))?;
        let go = Go { run, addresses: hellos.iter().map(|hello| hello.address).collect() };
        let (sender, news) = channel();
        let mut streams = Vec::new();
        for (rank, (_, reader)) in ranks.drain(..).enumerate() {
            let stream = reader.get_ref().try_clone().map_err(LiveError::network("a second handle"))?;
            control::write(&stream, &go)?;
            let sender = sender.clone();
            std::thread::spawn(move || listen(rank as u32, reader, &sender));
            streams.push(stream);
        }
        drop(sender);
        Ok(self.follow(hellos, &streams, &news))
    }

    /// One connection for each rank, in their order.
    fn meet(&self) -> Result<Vec<(Hello, BufReader<TcpStream>)>, LiveError> {
        let deadline = mono_now() + self.patience;
        let mut ranks: BTreeMap<u32, (Hello, BufReader<TcpStream>)> = BTreeMap::new();
        while ranks.len() < self.settings.processes as usize {
            let Some(stream) = self.accept(deadline)? else { return Err(self.missing(&ranks)) };
            // Whoever is no rank of ours is not listened to.
            let Ok((hello, reader)) = greet(stream) else { continue };
            self.judge(&hello)?;
            if ranks.contains_key(&hello.rank) {
                return Err(LiveError::Protocol(format!("two processes say that they are rank {}", hello.rank)));
            }
            ranks.insert(hello.rank, (hello, reader));
        }
        Ok(ranks.into_values().collect())
    }

    fn missing(&self, ranks: &BTreeMap<u32, (Hello, BufReader<TcpStream>)>) -> LiveError {
        let size = self.settings.processes;
        LiveError::Missing {
            came: ranks.len(),
            size,
            address: self.address().map_or_else(|_| "?".to_owned(), |address| address.to_string()),
            seconds: self.patience.as_seconds() as u64,
            missing: (0..size).filter(|rank| !ranks.contains_key(rank)).collect(),
        }
    }

    fn accept(&self, deadline: Moment<Mono>) -> Result<Option<TcpStream>, LiveError> {
        let error = "waiting for the ranks";
        loop {
            if let Ok((stream, _)) = self.listener.accept() {
                stream.set_nonblocking(false).map_err(LiveError::network(error))?;
                return Ok(Some(stream));
            }
            if mono_now() >= deadline {
                return Ok(None);
            }
            poll(&mut [Interest::readable(self.listener.as_fd())], Some(deadline))
                .map_err(LiveError::network(error))?;
        }
    }

    fn judge(&self, hello: &Hello) -> Result<(), LiveError> {
        if hello.rank >= self.settings.processes {
            return Err(LiveError::Protocol(format!("there is no rank {} of {}", hello.rank, self.settings.processes)));
        }
        if hello.settings != self.settings {
            let (theirs, ours) = (&hello.settings, &self.settings);
            return Err(LiveError::Protocol(format!(
                "rank {} was started with {theirs:?}, rank 0 with {ours:?}",
                hello.rank
            )));
        }
        Ok(())
    }

    /// Until all are done, one has died, or time is up; then stops all and takes their logs.
    fn follow(&self, hellos: Vec<Hello>, streams: &[TcpStream], news: &Receiver<News>) -> Gathered {
        let size = streams.len();
        let mut gathered = Gathered {
            settings: self.settings.clone(),
            hellos,
            logs: (0..size).map(|_| None).collect(),
            failures: Vec::new(),
        };
        let deadline = mono_now() + self.limit;
        let mut done = 0;
        // Where packets were lost, up to f may lag for ever: what they miss is not sent again. The counts tell what was lost.
        let enough = size - self.settings.tolerated as usize;
        while done < size && gathered.failures.is_empty() {
            let patience = if done < enough { until(deadline) } else { until(deadline).min(LAG) };
            match news.recv_timeout(patience) {
                Err(RecvTimeoutError::Timeout) if done >= enough => break,
                Ok((_, Ok(FromRankNews::Done))) => done += 1,
                Ok((rank, news)) => gathered.take(rank, news),
                Err(_) => gathered.failures.push(format!("only {done} of {size} ranks came to the last round in time")),
            }
        }
        for stream in streams {
            // Whoever is not there any more is told about by its own thread.
            let _ = control::write(stream, &FromCoordinator::Stop);
        }
        let deadline = mono_now() + Span::from_secs(HAND_OVER.as_secs() as i64);
        while let Ok((rank, news)) = news.recv_timeout(until(deadline)) {
            gathered.take(rank, news);
        }
        gathered
    }
}

fn until(deadline: Moment<Mono>) -> Duration {
    Duration::from_nanos(u64::try_from((deadline - mono_now()).as_nanos()).unwrap_or(0))
}

fn greet(stream: TcpStream) -> Result<(Hello, BufReader<TcpStream>), LiveError> {
    stream.set_read_timeout(Some(ANSWER)).map_err(LiveError::network("greeting"))?;
    let mut reader = BufReader::new(stream);
    let hello = control::read(&mut reader)?;
    reader.get_ref().set_read_timeout(None).map_err(LiveError::network("greeting"))?;
    Ok((hello, reader))
}

/// Passes on what a rank says, until it has handed over its log or is gone.
fn listen(rank: u32, mut reader: BufReader<TcpStream>, news: &Sender<News>) {
    loop {
        let said = control::read(&mut reader).and_then(|word| match word {
            FromRank::Done => Ok(FromRankNews::Done),
            FromRank::Log(header) => take_log(*header, &mut reader).map(FromRankNews::Log),
        });
        let is_last = !matches!(said, Ok(FromRankNews::Done));
        let sent = news.send((rank, said.map_err(|error| error.to_string())));
        if is_last || sent.is_err() {
            return;
        }
    }
}

fn take_log(header: LogHeader, reader: &mut BufReader<TcpStream>) -> Result<RankLog, LiveError> {
    if header.bytes > LOG_BYTES_MAX {
        return Err(LiveError::Protocol(format!("its log has {} bytes", header.bytes)));
    }
    let mut bytes = Vec::new();
    reader.by_ref().take(header.bytes).read_to_end(&mut bytes).map_err(LiveError::network("taking a log"))?;
    if bytes.len() as u64 != header.bytes {
        return Err(LiveError::Protocol("its log was cut off".to_owned()));
    }
    Ok(RankLog { header, bytes })
}

impl Gathered {
    fn take(&mut self, rank: u32, news: Result<FromRankNews, String>) {
        match news {
            Ok(FromRankNews::Log(log)) => self.logs[rank as usize] = Some(log),
            Ok(FromRankNews::Done) => (),
            Err(why) => self.failures.push(format!("rank {rank} on {}: {why}", self.hellos[rank as usize].host)),
        }
    }

    /// Counts of all ranks.
    pub fn summary(&self) -> LiveSummary {
        let headers = || self.logs.iter().flatten().map(|log| &log.header);
        LiveSummary {
            sent: headers().map(|header| header.sent).sum(),
            perceived: headers().map(|header| header.perceived).sum(),
            refused: headers().map(|header| header.refused).sum(),
            unstamped: headers().map(|header| header.unstamped).sum(),
            least_round: headers().map(|header| header.round).min().unwrap_or(0),
            priorities: headers().map(|header| header.priority.clone()).collect(),
            failures: self.failures.clone(),
        }
    }

    /// Writes what came as one log; it is marked as incomplete if something went wrong.
    ///
    /// # Errors
    /// When the disk refuses, or the hosts have no clock in common.
    pub fn write(&self, directory: &Path) -> Result<(), LiveError> {
        let hosts = self.hosts();
        let samples = self.samples(&hosts)?;
        let mut writer = LogWriter::create(directory, &self.description(&hosts))?;
        for (rank, log) in self.logs.iter().enumerate() {
            let Some(log) = log else { continue };
            let mut events = EventWriter::create(directory, &format!("rank{rank}"))?;
            for event in log.bytes.chunks(EVENT_BYTES).filter_map(|bytes| unpack(ProcessId(rank as u32), bytes)) {
                events.append(&event)?;
            }
            events.finish()?;
        }
        samples.into_iter().for_each(|sample| writer.clock(sample));
        if self.failures.is_empty() {
            writer.finish()?
        } else {
            writer.finish_partial()?
        }
        Ok(())
    }

    /// The number of each rank's host: ranks that read the same counter are on the same.
    fn hosts(&self) -> Vec<u32> {
        let mut known: Vec<(&str, &str)> = Vec::new();
        let mut hosts = Vec::new();
        for hello in &self.hellos {
            let key = (hello.machine.as_str(), hello.counter.as_str());
            let host = known.iter().position(|&other| other == key).unwrap_or(known.len());
            if host == known.len() {
                known.push(key);
            }
            hosts.push(host as u32);
        }
        hosts
    }

    /// What the hosts' clocks said. One host needs none: all its processes read the same counter, and offsets are 0.
    fn samples(&self, hosts: &[u32]) -> Result<Vec<ClockSample>, LiveError> {
        let count = hosts.iter().max().map_or(0, |most| most + 1);
        let of_host = |host: u32| {
            let ranks = hosts.iter().zip(&self.logs).filter(move |(number, _)| **number == host);
            ranks.filter_map(|(_, log)| log.as_ref())
        };
        if count == 1 {
            return Ok(of_host(0).next().and_then(sole_clock).into_iter().collect());
        }
        let words = |host| of_host(host).find(|log| !log.header.clock.is_empty());
        let origin = (0..count).filter_map(words).flat_map(|log| &log.header.clock).map(|word| word.time_ps).min();
        let mut samples = Vec::new();
        for host in 0..count {
            let Some(log) = words(host) else {
                let name = hosts.iter().position(|&number| number == host).map(|rank| &self.hellos[rank].host);
                let name = name.map_or("?", String::as_str);
                return Err(LiveError::Settings(format!(
                    "host {name} publishes no time to compare with the other hosts': start ffclockd on it and wait for `ffclock wait`"
                )));
            };
            let sample = |word: &ClockWord| sample_of(HostId(host), word, origin.unwrap_or(0), log.header.period_s);
            samples.extend(log.header.clock.iter().filter_map(sample));
        }
        Ok(samples)
    }

    fn description(&self, hosts: &[u32]) -> Run {
        let count = hosts.iter().max().map_or(0, |most| most + 1);
        let hello_of = |host| hosts.iter().position(|&number| number == host).map(|rank| &self.hellos[rank]);
        let host = |hello: &Hello| Host { name: hello.host.clone(), counter: hello.counter.clone() };
        let priorities = self.summary().priorities.join("; ");
        let mut settings = BTreeMap::from([("priorities".to_owned(), priorities)]);
        if !self.failures.is_empty() {
            settings.insert("failures".to_owned(), self.failures.join("; "));
        }
        Run {
            origin: Origin::Live,
            form: self.settings.form.into(),
            processes: self.settings.processes,
            tolerated: self.settings.tolerated,
            delay_ps: self.settings.delay_ns.saturating_mul(1000),
            delay_min_ps: 0,
            disorder_ps: 0,
            hosts: (0..count).filter_map(hello_of).map(host).collect(),
            host_of: hosts.iter().map(|&host| HostId(host)).collect(),
            faults: Vec::new(),
            settings,
            unrecorded: 0,
        }
    }
}

/// The clock of the only host: its counter, from the first event on.
fn sole_clock(log: &RankLog) -> Option<ClockSample> {
    let first = log.bytes.chunks(EVENT_BYTES).find_map(|bytes| unpack(ProcessId(0), bytes))?;
    let word = ClockWord { counter: first.at().raw(), time_ps: 0, bound_ps: 0, drift_ppt: 0 };
    sample_of(HostId(0), &word, 0, log.header.period_s)
}

fn sample_of(host: HostId, word: &ClockWord, origin: i128, period_s: f64) -> Option<ClockSample> {
    Some(ClockSample {
        host,
        counter: Counter::from_raw(word.counter),
        time_ps: i64::try_from(word.time_ps - origin).ok()?,
        bound_ps: word.bound_ps,
        period: Period::from_seconds(period_s)?,
        drift_bound: Rate::from_fraction(word.drift_ppt as f64 * 1e-12),
    })
}

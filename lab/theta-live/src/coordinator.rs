//! The coordinating half of rank 0: brings the ranks together, notices when one dies or hangs, and gathers their logs.

mod doorway;

use super::clocks::Hosts;
use super::control::{self, ANSWER, FromCoordinator, FromRank, Go, Hello, LogHeader};
use super::gathered::{Company, Gathered, RankLog};
use super::priority::{above, raise_priority};
use super::{LiveError, Settings};
use doorway::Doorway;
use ffclock_sys::{mono_now, random_nonce};
use ffclock_units::{Moment, Mono, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// A larger log of one rank is refused.
const LOG_BYTES_MAX: u64 = 4 << 30;
/// How long the last f ranks may take after the others.
const LAG: Duration = Duration::from_secs(3);
/// How long a rank may take to hand over its log, once it has begun to.
const HAND_OVER: Span = Span::from_secs(120);

/// How long a run may take.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// How long ranks may take to come.
    pub patience: Span,
    /// How long the run itself may take.
    pub limit: Span,
}

/// Waits for the ranks at an address.
pub struct Coordinator {
    listener: TcpListener,
    settings: Settings,
    patience: Span,
    limit: Span,
    priority: Option<u8>,
}

type News = (u32, Result<FromRankNews, String>);

enum FromRankNews {
    Done,
    /// Its log is on the way.
    Begins,
    Log(Box<RankLog>),
}

impl Coordinator {
    /// Listens at `address`.
    ///
    /// # Errors
    /// When the address is taken or not ours, or the settings make no sense.
    pub fn bind(address: SocketAddr, settings: Settings, deadlines: Deadlines) -> Result<Self, LiveError> {
        settings.quorum()?;
        let Deadlines { patience, limit } = deadlines;
        let listener = TcpListener::bind(address).map_err(LiveError::network(format!("listening at {address}")))?;
        listener.set_nonblocking(true).map_err(LiveError::network("listening"))?;
        // How many hosts there are shows when all have come.
        settings.check_faults(settings.processes)?;
        Ok(Coordinator { listener, settings, patience, limit, priority: None })
    }

    /// Sets the real-time priority of the algorithm. The control of the run gets a higher one, as in the paper.
    pub fn above(mut self, algorithm: Option<u8>) -> Self {
        self.priority = above(algorithm);
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn address(&self) -> Result<SocketAddr, LiveError> {
        self.listener.local_addr().map_err(LiveError::network("listening"))
    }

    /// Lets the ranks run and gathers their logs.
    ///
    /// # Errors
    /// When ranks stay away or disagree about the settings. What happens later is in the result.
    pub fn gather(self) -> Result<Gathered, LiveError> {
        let priority = raise_priority(self.priority);
        let mut ranks = self.meet()?;
        let hellos: Vec<Hello> = ranks.iter().map(|(hello, _)| hello.clone()).collect();
        let hosts = Hosts::of(&hellos)?;
        let plan = self.settings.plan(hosts.count())?;
        let run = random_nonce().map_err(LiveError::network("choosing a number for the run"))?;
        let addresses = hellos.iter().map(|hello| hello.address).collect();
        let limit_ns = u64::try_from(self.limit.as_nanos()).unwrap_or(u64::MAX);
        let go = Go { run, addresses, host_of: hosts.host_of.clone(), limit_ns };
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
        let mut gathered = Gathered::new(self.settings.clone(), Company { hellos, hosts, plan }, priority);
        self.follow(&mut gathered, &streams, &news);
        take_logs(&mut gathered, &streams, &news);
        Ok(gathered)
    }

    /// One connection for each rank, in their order.
    fn meet(&self) -> Result<Vec<(Hello, BufReader<TcpStream>)>, LiveError> {
        let deadline = mono_now() + self.patience;
        let mut ranks: BTreeMap<u32, (Hello, BufReader<TcpStream>)> = BTreeMap::new();
        let mut doorway = Doorway::new(&self.listener);
        while ranks.len() < self.settings.processes as usize {
            let arrived = doorway.next(deadline)?;
            if arrived.is_empty() {
                return Err(self.missing(&ranks));
            }
            for (hello, reader) in arrived {
                self.judge(&hello)?;
                if ranks.contains_key(&hello.rank) {
                    return Err(LiveError::Protocol(format!("two processes say that they are rank {}", hello.rank)));
                }
                ranks.insert(hello.rank, (hello, reader));
            }
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

    /// Until all correct ones are done, one has died, or time is up.
    fn follow(&self, gathered: &mut Gathered, streams: &[TcpStream], news: &Receiver<News>) {
        let deadline = mono_now() + self.limit;
        let mut waited_for: BTreeSet<u32> =
            (0..streams.len() as u32).filter(|&rank| gathered.is_correct(rank)).collect();
        let correct = waited_for.len();
        // Where packets were lost, up to f ranks may lag forever: what they miss is not sent again. The counts show
        // the losses.
        let may_lag = (self.settings.tolerated as usize).min(correct - 1);
        while !waited_for.is_empty() && gathered.failures.is_empty() {
            let is_enough = waited_for.len() <= may_lag;
            let patience = if is_enough { until(deadline).min(LAG) } else { until(deadline) };
            match news.recv_timeout(patience) {
                Err(RecvTimeoutError::Timeout) if is_enough => break,
                Ok((rank, Ok(FromRankNews::Done))) => drop(waited_for.remove(&rank)),
                Ok((_, Ok(FromRankNews::Begins))) => (),
                Ok((rank, Ok(FromRankNews::Log(log)))) => gathered.take(rank, Ok(*log)),
                Ok((rank, Err(why))) => gathered.take(rank, Err(why)),
                Err(_) => gathered.failures.push(format!(
                    "the limit is over: of {correct} correct ranks these did not come to the last round: {}",
                    numbers(&waited_for)
                )),
            }
        }
        gathered.lagging = waited_for.into_iter().collect();
    }
}

/// Stops all and takes their logs. A rank that does not begin to hand its log over soon has died or hangs.
fn take_logs(gathered: &mut Gathered, streams: &[TcpStream], news: &Receiver<News>) {
    for stream in streams {
        // Of a rank that is gone, its own thread brings the news.
        let _ = control::write(stream, &FromCoordinator::Stop);
    }
    let mut silent: BTreeSet<u32> = (0..streams.len() as u32).filter(|&rank| !gathered.has_ended(rank)).collect();
    let begun = mono_now();
    while gathered.is_waiting() {
        let deadline = begun + if silent.is_empty() { HAND_OVER } else { Span::from_secs(ANSWER.as_secs() as i64) };
        match news.recv_timeout(until(deadline)) {
            Ok((rank, Ok(FromRankNews::Log(log)))) => gathered.take(rank, Ok(*log)),
            Ok((rank, Ok(_))) => drop(silent.remove(&rank)),
            Ok((rank, Err(why))) => {
                silent.remove(&rank);
                gathered.take(rank, Err(why));
            }
            Err(RecvTimeoutError::Timeout) if !silent.is_empty() => {
                let why = format!("it hangs: it does not hand over its log within {} s", ANSWER.as_secs());
                std::mem::take(&mut silent).into_iter().for_each(|rank| gathered.take(rank, Err(why.clone())));
            }
            Err(_) => return gathered.give_up(),
        }
    }
}

fn numbers(ranks: &BTreeSet<u32>) -> String {
    ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn until(deadline: Moment<Mono>) -> Duration {
    Duration::from_nanos(u64::try_from((deadline - mono_now()).as_nanos()).unwrap_or(0))
}

/// Passes on what a rank says, until it has handed over its log or is gone.
fn listen(rank: u32, mut reader: BufReader<TcpStream>, news: &Sender<News>) {
    loop {
        let said = control::read(&mut reader).and_then(|word| match word {
            FromRank::Done => Ok(FromRankNews::Done),
            FromRank::Log(header) => {
                // The receiver is gone only where the run has been given up.
                let _ = news.send((rank, Ok(FromRankNews::Begins)));
                take_log(*header, &mut reader).map(|log| FromRankNews::Log(Box::new(log)))
            }
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

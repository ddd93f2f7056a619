//! How a rank meets rank 0.

use super::recorder::EventRecorder;
use super::{LiveMachine, Rank, RankOptions, refused};
use crate::LiveError;
use crate::alarm::Alarm;
use crate::control::{self, ANSWER, Go, Hello, LogHeader};
use crate::injector::{InjectedRank, Injector};
use crate::page_clock::PageClock;
use crate::post::Post;
use crate::stamping::StampingCounter;
use ffclock_counter::{Choice, CounterId, choose, nominal};
use ffclock_sys::mono_now;
use ffclock_theta::algorithm::Process;
use ffclock_theta::record::ProcessId;
use ffclock_units::{Counter, Period, Span};
use std::io::BufReader;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

const BETWEEN_TRIES: Duration = Duration::from_millis(50);

impl Rank {
    /// Connects to rank 0, introduces itself, and waits until all ranks are there.
    pub(super) fn meet(options: &RankOptions) -> Result<Self, LiveError> {
        let (page, counter) = find_page(options)?;
        let control = connect(&options.rendezvous, options.patience)?;
        let own_address = control.local_addr().map_err(LiveError::network("our own address"))?;
        let post = Post::open(own_address.ip(), counter)?;
        let hello = hello(options, &post, &page)?;
        control::write(&control, &hello)?;
        let mut commands = BufReader::new(control.try_clone().map_err(LiveError::network("a second handle"))?);
        let go = wait_for_go(&mut commands, options)?;
        let size = options.settings.processes as usize;
        if go.addresses.len() != size || go.host_of.len() != size {
            return Err(LiveError::Protocol("rank 0 names too few addresses".to_owned()));
        }
        let (injector, machines) = machines(options, &go, counter.period)?;
        let over = mono_now() + Span::from_nanos(go.limit_ns.into()) + Span::from_secs(ANSWER.as_secs() as i64);
        let header = LogHeader {
            period_s: counter.period.as_seconds(),
            buffer_bytes: post.buffer_bytes as u64,
            ..LogHeader::default()
        };
        Ok(Rank {
            own: ProcessId(options.place.rank),
            settings: options.settings.clone(),
            go,
            machines,
            injector,
            post,
            page,
            counter,
            control,
            commands,
            alarm: Alarm::start(counter).map_err(LiveError::network("a timer"))?,
            started: counter.read().raw(),
            recorder: EventRecorder::new(options.events_max as usize),
            header,
            over,
            has_reported: false,
            is_stopping: false,
        })
    }
}

/// The page that was named, as soon as it gives a time, or else the page of the machine if there is one; and the
/// counter. Where a page was named and no counter, events are stamped with the counter that the page is about.
fn find_page(options: &RankOptions) -> Result<(PageClock, StampingCounter), LiveError> {
    // Within the patience of rank 0, so that the reason is reported.
    let deadline = mono_now() + Span::from_units(options.patience.units() / 10 * 9);
    let named = options.page.as_deref();
    let counter = options.counter.or_else(|| named.is_none().then(|| choose(Choice::Auto).kind));
    loop {
        let trouble = match counter.map_or_else(|| PageClock::counter_at(named), Ok).and_then(|kind| open(named, kind))
        {
            Ok(found) => return Ok(found),
            Err(trouble) => trouble,
        };
        match named {
            Some(path) if mono_now() >= deadline => {
                let (path, seconds) = (path.display(), options.patience.as_seconds());
                let why = format!(
                    "the page {path} gave no time within {seconds} s: {trouble}; is its ffclockd running and synchronised?"
                );
                return Err(LiveError::Settings(why));
            }
            Some(_) => std::thread::sleep(BETWEEN_TRIES),
            None => return Err(LiveError::Settings(trouble)),
        }
    }
}

/// A page that was named has something to say.
fn open(named: Option<&Path>, kind: CounterId) -> Result<(PageClock, StampingCounter), String> {
    let period = nominal(kind).map_err(|error| error.to_string())?.period;
    let counter = StampingCounter { kind, period };
    let mut page = PageClock::open(named, counter);
    match page.trouble.take_if(|_| named.is_some() && page.words.is_empty()) {
        Some(trouble) => Err(trouble),
        None => Ok((page, counter)),
    }
}

/// The introduction to rank 0.
fn hello(options: &RankOptions, post: &Post, page: &PageClock) -> Result<Hello, LiveError> {
    Ok(Hello {
        rank: options.place.rank,
        settings: options.settings.clone(),
        address: post.address()?,
        host: options.host.clone().unwrap_or_else(|| text_of("/proc/sys/kernel/hostname")),
        machine: ffclock_counter::boot_id(),
        counter: page.kind().name().to_owned(),
        page: options.page.as_ref().map(|page| page.display().to_string()).unwrap_or_default(),
        no_page: page.trouble.clone().filter(|_| page.words.is_empty()),
    })
}

/// The faults of this rank, and its machines: the process, and its twin if it has one.
fn machines(options: &RankOptions, go: &Go, period: Period) -> Result<(Injector, Vec<LiveMachine>), LiveError> {
    let hosts = go.host_of.iter().max().map_or(1, |most| most.saturating_add(1));
    let own = options.place.rank;
    let injector = Injector::new(
        options.settings.plan(hosts)?,
        InjectedRank { rank: own, host: go.host_of[own as usize] },
        go.run,
    );
    let quorum = options.settings.quorum()?;
    let machine = || LiveMachine {
        process: Process::new(quorum, options.settings.form, ticks_in(options.settings.delay_ns, period)),
        armed: None,
        quorum_at: Counter::from_raw(0),
        has_started: false,
    };
    let machines = (0..=usize::from(injector.has_twin())).map(|_| machine()).collect();
    Ok((injector, machines))
}

/// Rank 0 may have begun to wait for the others as late as we have found it, and then has as much patience.
fn wait_for_go(commands: &mut BufReader<TcpStream>, options: &RankOptions) -> Result<Go, LiveError> {
    let patience = duration(options.patience).max(Duration::from_millis(1)) * 2;
    commands.get_ref().set_read_timeout(Some(patience)).map_err(LiveError::network("waiting for rank 0"))?;
    let said = control::ControlLine::default().read(commands);
    commands.get_ref().set_read_timeout(None).map_err(LiveError::network("waiting for rank 0"))?;
    let late = || {
        let seconds = patience.as_secs_f64();
        let why = "is that rank 0, and have all ranks been started?";
        LiveError::Protocol(format!("it took our connection, and said nothing within {seconds} s: {why}"))
    };
    said.and_then(|go| go.ok_or_else(late)).map_err(|error| refused(&options.rendezvous, &error))
}

/// Tries until rank 0 is there.
fn connect(rendezvous: &str, patience: Span) -> Result<TcpStream, LiveError> {
    let deadline = mono_now() + patience;
    loop {
        // A host that is not there answers nothing, and the kernel would go on asking for two minutes.
        let rest = duration(deadline - mono_now()).max(BETWEEN_TRIES);
        let error = match try_connect(rendezvous, rest) {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if mono_now() >= deadline {
            return Err(error);
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
}

fn try_connect(rendezvous: &str, rest: Duration) -> Result<TcpStream, LiveError> {
    let meeting = || LiveError::network(format!("meeting rank 0 at {rendezvous}"));
    let mut error = std::io::Error::from(std::io::ErrorKind::NotFound);
    for address in rendezvous.to_socket_addrs().map_err(meeting())? {
        match TcpStream::connect_timeout(&address, rest) {
            Ok(stream) => return control::prepare(&stream).map(|()| stream),
            Err(refused) => error = refused,
        }
    }
    Err(meeting()(error))
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(0))
}

/// A line that the kernel shows.
fn text_of(path: &str) -> String {
    std::fs::read_to_string(Path::new(path)).unwrap_or_default().trim().to_owned()
}

fn ticks_in(nanoseconds: u64, period: Period) -> u64 {
    u64::try_from(period.ticks_in(Span::from_nanos(nanoseconds.into())).raw()).unwrap_or(0)
}

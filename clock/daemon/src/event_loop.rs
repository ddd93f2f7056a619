//! The only loop that waits: blocking `poll(2)` over signals, sockets and the resolver, with the earliest deadline as
//! its timeout.
//!
//! Tens of sockets need no more, and a network simulator that stands between a program and its C library can drive the
//! unmodified daemon (see the notes on the event loop in ARCHITECTURE.md).

use crate::control;
use crate::keeper::{Keeper, StartError, about};
use crate::peer::Peer;
use ffclock_service::{Answering, ControlSocket, Listener, Rights};
use ffclock_sys::Interest;
use ffclock_sys::{CancelOnSetTimer, Notice, Signal, Signals, notify};
use ffclock_units::{Moment, Mono, Span};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::Path;

/// What woke the loop up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wake {
    Signal,
    ClockSet,
    Resolver,
    Establisher,
    Server(usize),
    /// A client of the control socket or of the metrics.
    Visitors,
}

/// The inputs of the daemon other than its own conversations with servers.
struct Listeners {
    signals: Signals,
    clock_set: Option<CancelOnSetTimer>,
    control: Option<ControlSocket>,
    metrics: Option<Listener<TcpListener>>,
    watchdog: Option<Watchdog>,
}

/// A service manager that wants regular signs of life.
struct Watchdog {
    every: Span,
    next: Moment<Mono>,
}

/// Runs until a signal ends it.
pub(crate) fn run(mut keeper: Keeper<'_>, config: &crate::config::DaemonConfig) -> Result<(), StartError> {
    let mut listeners = Listeners::open(config)?;
    notify_manager(Notice::Ready);
    loop {
        let woken = listeners.wait(&keeper)?;
        let now = ffclock_sys::mono_now();
        keeper.wake(now);
        listeners.keep_control(now, &mut keeper);
        let visited = woken.contains(&Wake::Visitors);
        for wake in woken {
            match wake {
                Wake::Signal => {
                    if listeners.take_signals(&mut keeper) {
                        notify_manager(Notice::Stopping);
                        keeper.stop();
                        return Ok(());
                    }
                }
                Wake::ClockSet => listeners.note_clock_set(&mut keeper),
                Wake::Resolver => keeper.resolved(),
                Wake::Establisher => keeper.established(),
                Wake::Server(server) => keeper.readable(server),
                Wake::Visitors => {}
            }
        }
        if visited || listeners.is_due(now) {
            listeners.serve(now, &mut keeper);
        }
        keeper.timeout();
        listeners.feed_watchdog(now);
    }
}

impl Listeners {
    fn open(config: &crate::config::DaemonConfig) -> Result<Self, StartError> {
        let control = config.control.value().map(|path| listen_for_control(path.as_path())).transpose()?;
        let metrics = config.metrics.value().map(|address| listen_for_metrics(address.address())).transpose()?;
        Ok(Listeners {
            signals: Signals::install().map_err(about("signals"))?,
            clock_set: CancelOnSetTimer::new().ok(),
            control,
            metrics,
            watchdog: ffclock_sys::watchdog_interval().map(|every| Watchdog { every, next: ffclock_sys::mono_now() }),
        })
    }

    /// Makes the control socket again if its file is not in its place: no client finds the old one any more.
    fn keep_control(&mut self, now: Moment<Mono>, keeper: &mut Keeper<'_>) {
        let Some(control) = &mut self.control else { return };
        if !control.is_missed(now) {
            return;
        }
        let journal = &mut keeper.context.journal;
        let path = control.path().to_owned();
        match listen_for_control(&path) {
            Ok(again) => {
                self.control = Some(again);
                let kind = "the control socket was removed or replaced: it is made again";
                journal.warn(kind, &path.display().to_string());
            }
            Err(error) => {
                let kind = "the control socket was removed or replaced, and cannot be made again";
                journal.warn(kind, &error.to_string());
            }
        }
    }

    fn feed_watchdog(&mut self, now: Moment<Mono>) {
        if let Some(watchdog) = self.watchdog.as_mut().filter(|watchdog| now >= watchdog.next) {
            watchdog.next = now + watchdog.every;
            notify_manager(Notice::Watchdog);
        }
    }

    fn wait(&self, keeper: &Keeper<'_>) -> Result<Vec<Wake>, StartError> {
        let mut waiting = Waiting::default();
        waiting.add(Interest::readable(self.signals.as_fd()), Wake::Signal);
        waiting.add(Interest::readable(keeper.resolver.descriptor()), Wake::Resolver);
        waiting.add(Interest::readable(keeper.establisher.descriptor()), Wake::Establisher);
        if let Some(timer) = &self.clock_set {
            waiting.add(Interest::readable(timer.as_fd()), Wake::ClockSet);
        }
        for (server, descriptors) in keeper.peers.iter().map(Peer::descriptors).enumerate() {
            for descriptor in descriptors.into_iter().flatten() {
                waiting.add(Interest::readable(descriptor), Wake::Server(server));
            }
        }
        if let Some(control) = &self.control {
            control.listener().interests(&mut |interest| waiting.add(interest, Wake::Visitors));
        }
        if let Some(metrics) = &self.metrics {
            metrics.interests(&mut |interest| waiting.add(interest, Wake::Visitors));
        }
        let watchdog = self.watchdog.as_ref().map(|watchdog| watchdog.next);
        let others = watchdog.into_iter().chain(self.next_timeout());
        waiting.until(others.fold(keeper.next_timeout(), Moment::min))
    }

    /// When the clients must be served even if none of them is ready.
    fn next_timeout(&self) -> Option<Moment<Mono>> {
        let control = self.control.as_ref().and_then(|control| control.listener().next_timeout());
        let metrics = self.metrics.as_ref().and_then(Listener::next_timeout);
        control.into_iter().chain(metrics).min()
    }

    fn is_due(&self, now: Moment<Mono>) -> bool {
        self.next_timeout().is_some_and(|due| due <= now)
    }

    fn serve(&mut self, now: Moment<Mono>, keeper: &mut Keeper<'_>) {
        if let Some(control) = &mut self.control {
            control.listener_mut().serve(now, keeper);
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.serve(now, keeper);
        }
    }

    /// Returns whether to stop.
    fn take_signals(&mut self, keeper: &mut Keeper<'_>) -> bool {
        let mut stop = false;
        while let Some(signal) = self.signals.take() {
            match signal {
                Signal::Hangup => {
                    notify_manager(Notice::Reloading);
                    // The keeper has logged any error; the old configuration then stays in force.
                    let _ = control::Reporter::reload(keeper);
                    notify_manager(Notice::Ready);
                }
                Signal::Terminate | Signal::Interrupt => stop = true,
            }
        }
        stop
    }

    fn note_clock_set(&mut self, keeper: &mut Keeper<'_>) {
        match self.clock_set.as_mut().map(CancelOnSetTimer::was_set) {
            Some(Ok(true)) => {
                keeper.context.journal.notice("the system clock was set", "it changes nothing here");
            }
            // A timer that cannot be read would wake the loop again and again.
            Some(Err(_)) => self.clock_set = None,
            Some(Ok(false)) | None => {}
        }
    }
}

/// The descriptors that are waited for, and the meaning of each.
#[derive(Default)]
struct Waiting<'a> {
    interests: Vec<Interest<'a>>,
    wakes: Vec<Wake>,
}

impl<'a> Waiting<'a> {
    fn add(&mut self, interest: Interest<'a>, wake: Wake) {
        self.interests.push(interest);
        self.wakes.push(wake);
    }

    /// The inputs that are ready; none if the deadline came first.
    fn until(mut self, deadline: Moment<Mono>) -> Result<Vec<Wake>, StartError> {
        ffclock_sys::poll(&mut self.interests, Some(deadline)).map_err(about("poll"))?;
        let pairs = self.interests.iter().zip(self.wakes);
        let mut ready: Vec<Wake> = pairs.filter(|(interest, _)| interest.is_ready()).map(|(_, wake)| wake).collect();
        ready.dedup();
        Ok(ready)
    }
}

/// Without a service manager there is nothing to notify, and a failure to notify is no reason to stop.
fn notify_manager(notice: Notice<'_>) {
    if let Err(error) = notify(notice) {
        tracing::warn!(%error, "the service manager cannot be notified");
    }
}

fn listen_for_control(path: &Path) -> Result<ControlSocket, StartError> {
    ControlSocket::bind(path, "ffclockd").map_err(about(format!("control socket {}", path.display())))
}

fn listen_for_metrics(address: std::net::SocketAddr) -> Result<Listener<TcpListener>, StartError> {
    Listener::for_metrics(address).map_err(about(format!("metrics on {address}")))
}

impl Answering for Keeper<'_> {
    fn answer_line(&mut self, line: &[u8], rights: Rights) -> String {
        control::answer_line(line, rights, self)
    }

    fn metrics(&mut self) -> String {
        control::exposition(&control::Reporter::status(self))
    }

    fn page(&self) -> Option<&'static str> {
        Some(control::LIVE_PAGE)
    }

    fn state(&mut self) -> Option<String> {
        Some(control::state(self))
    }
}

//! The program's loop: a look each poll, signals and the service manager in between.

use crate::law::Action;
use crate::options::SteerConfig;
use crate::sight::{Eyes, Lost, Sighting};
use crate::steerer::{Done, DryKernel, HostKernel, Kernel, SteerEvent, Steerer};
use ffclock_sys::{Interest, Notice, Signal, Signals, mono_now, notify, poll, watchdog_interval};
use ffclock_units::{Moment, Mono, Span};
use std::io;
use std::os::fd::AsFd;

/// How the follower ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By a signal, or it has done once what it was to do.
    Done,
    /// It was to act once, and the page gave no reason to.
    Lost(Lost),
    /// Another program steers the clock.
    Withdrawn,
}

/// Which run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Nothing is changed; what would be is shown.
    pub is_dry: bool,
    /// The clock is steered once.
    pub is_once: bool,
}

/// How long a run that acts once waits for a page to act on.
const PATIENCE: Span = Span::from_secs(60);
/// The service manager gets a line this often at most.
const STATUS_EVERY: Span = Span::from_secs(10);

/// Steers until a signal ends it. `show` prints what a dry run, or one that acts once, finds.
///
/// # Errors
/// The kernel refuses to be steered; signals cannot be had.
pub fn run(config: &SteerConfig, manner: Manner, show: &mut dyn FnMut(&str)) -> io::Result<End> {
    if manner.is_dry {
        show("dry run: what is said here would be done, and nothing is");
        Follower::new(config, DryKernel::of_host()?)?.follow(manner, show)
    } else {
        Follower::new(config, HostKernel::with_right()?)?.follow(manner, show)
    }
}

struct Follower<K: Kernel> {
    steerer: Steerer<K>,
    eyes: Eyes,
    signals: Signals,
    poll: Span,
    /// Why there was nothing to steer by at the last look.
    lost: Option<Lost>,
    manager: Manager,
}

impl<K: Kernel> Follower<K> {
    fn new(config: &SteerConfig, kernel: K) -> io::Result<Self> {
        Ok(Follower {
            steerer: Steerer::new(kernel, config),
            eyes: Eyes::new(config),
            signals: Signals::install()?,
            poll: config.poll,
            lost: None,
            manager: Manager { watchdog: watchdog_interval(), next_sign: mono_now(), next_status: mono_now() },
        })
    }

    fn follow(mut self, manner: Manner, show: &mut dyn FnMut(&str)) -> io::Result<End> {
        let begin = mono_now();
        send(Notice::Ready);
        let mut next = begin;
        loop {
            let sighting = self.eyes.look();
            let done = self.steerer.act(&sighting)?;
            self.report(&sighting, &done);
            self.manager.inform(&sighting, &done);
            if manner.is_dry || manner.is_once {
                show_all(&sighting, &done, show);
            }
            if done.has_withdrawn {
                send(Notice::Stopping);
                return Ok(End::Withdrawn);
            }
            if let Some(end) = once(manner, &done, sighting, mono_now() - begin) {
                self.steerer.end()?;
                return Ok(end);
            }
            next = (next + self.poll).max(mono_now());
            if self.wait(next)? {
                send(Notice::Stopping);
                self.steerer.end()?;
                return Ok(End::Done);
            }
        }
    }

    /// Waits for the next look; true where a signal ends the run.
    fn wait(&mut self, until: Moment<Mono>) -> io::Result<bool> {
        while mono_now() < until {
            poll(&mut [Interest::readable(self.signals.as_fd())], Some(until))?;
            while let Some(signal) = self.signals.take() {
                match signal {
                    Signal::Terminate | Signal::Interrupt => return Ok(true),
                    Signal::Hangup => tracing::warn!("a new configuration takes a restart"),
                }
            }
        }
        Ok(false)
    }

    fn report(&mut self, sighting: &Sighting, done: &Done) {
        for event in &done.events {
            match event {
                SteerEvent::Contended(_) => tracing::error!("{}", words(event)),
                SteerEvent::Coasting | SteerEvent::Interrupted(_) => tracing::warn!("{}", words(event)),
                SteerEvent::Taken(_) | SteerEvent::Stepped(_) | SteerEvent::Synchronised => {
                    tracing::info!("{}", words(event));
                }
            }
        }
        let lost = sighting.look.as_ref().err();
        if self.lost.as_ref() != lost {
            if let Some(lost) = lost {
                tracing::info!("waiting: {lost}");
            }
            self.lost = lost.cloned();
        }
        tracing::debug!("{}", line(sighting, done));
    }
}

/// The end of a run that acts once.
fn once(manner: Manner, done: &Done, sighting: Sighting, passed: Span) -> Option<End> {
    match (done.action, sighting.look) {
        _ if !manner.is_once => None,
        (Action::Steer(_), _) => Some(End::Done),
        // Nothing moves in a dry run: after the step there is the same offset again.
        (Action::Step(_), _) if manner.is_dry => Some(End::Done),
        (_, Err(lost)) if passed > PATIENCE => Some(End::Lost(lost)),
        (Action::Keep, Ok((look, _))) if passed > PATIENCE => Some(End::Lost(Lost::Unsynchronised(look.status))),
        _ => None,
    }
}

/// The service manager.
struct Manager {
    watchdog: Option<Span>,
    next_sign: Moment<Mono>,
    next_status: Moment<Mono>,
}

impl Manager {
    fn inform(&mut self, sighting: &Sighting, done: &Done) {
        let now = mono_now();
        if now >= self.next_status || !done.events.is_empty() {
            self.next_status = now + STATUS_EVERY;
            send(Notice::Status(&line(sighting, done)));
        }
        if let Some(every) = self.watchdog.filter(|_| now >= self.next_sign) {
            self.next_sign = now + every;
            send(Notice::Watchdog);
        }
    }
}

/// Without a service manager there is nothing to notify, and a failure to notify is no reason to stop.
fn send(notice: Notice<'_>) {
    if let Err(error) = notify(notice) {
        tracing::warn!(%error, "the service manager cannot be notified");
    }
}

fn show_all(sighting: &Sighting, done: &Done, show: &mut dyn FnMut(&str)) {
    for event in &done.events {
        show(&words(event));
    }
    // Why it waits is in the log.
    if sighting.look.is_ok() {
        show(&line(sighting, done));
    }
}

fn words(event: &SteerEvent) -> String {
    match event {
        SteerEvent::Interrupted(what) => format!("the machine was {what}: the clock is taken again"),
        SteerEvent::Contended(what) => format!("another program steers the kernel's clock: {what}"),
        SteerEvent::Taken(frequency) => format!("the kernel's clock is taken; its frequency was {frequency}"),
        SteerEvent::Stepped(by) => format!("the kernel's clock is stepped by {:+.6} s", by.as_seconds()),
        SteerEvent::Synchronised => "the kernel's clock is called synchronised".to_owned(),
        SteerEvent::Coasting => {
            "the page is lost: the kernel's clock runs on at its last rate, and is called unsynchronised".to_owned()
        }
    }
}

/// One look, and what follows, in a line. The sign is that of the change which the kernel's clock needs.
fn line(sighting: &Sighting, done: &Done) -> String {
    let (look, _) = match &sighting.look {
        Ok(look) => look,
        Err(lost) => return format!("waiting: {lost}"),
    };
    let seen = format!("offset {:+.3} us, {}", look.offset.as_seconds() * 1e6, look.status.name());
    match done.action {
        Action::Keep => format!("{seen}, nothing is changed"),
        Action::Step(by) => format!("{seen}, step {:+.6} s", by.as_seconds()),
        Action::Coast(frequency) => format!("{seen}, frequency {frequency}, unsynchronised"),
        Action::Steer(steering) => {
            let [largest, estimated] = steering.errors_us;
            format!("{seen}, frequency {}, largest error {largest} us, estimated {estimated} us", steering.frequency)
        }
    }
}

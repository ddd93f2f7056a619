//! Keeps the time: owns the servers' clocks, chooses among them, publishes, and notices when the counter's run is broken.
//!
//! Everything that waits (sockets, timers, signals) is in `event_loop.rs`; this is what happens when one of them wakes up.

use crate::config::{Config, DaemonConfig, ServerConfig};
use crate::control::Reporter;
use crate::control::report::{ClockReport, CounterReport, SourceReport, StatusReport};
use crate::journal::Journal;
use crate::memory::RateStore;
use crate::peer::{Context, Ground, Peer};
use crate::resolve::{Resolved, Resolver};
use crate::selection::{Candidate, select};
use ffclock_counter::{Chosen, Continuity, Nominal};
use ffclock_page::{BootId, CounterId, Publication, Reader, Writer};
use ffclock_sys::{Mapper, SharedPage};
use ffclock_trace::{Recorder, TraceHeader};
use ffclock_units::{Counter, CounterEpoch, Estimate, LeapTable, Moment, Mono, Reading, Span, Status};
use std::path::Path;

/// The longest time between two signs of life in the page.
const HEARTBEAT: Span = Span::from_secs(16);
/// How often the rate is written to disk.
const SAVING: Span = Span::from_secs(3600);

/// Reads the configuration again.
pub(crate) type ReadConfig<'a> = &'a dyn Fn() -> Result<Config, String>;

/// The clock of this host.
pub(crate) struct Keeper<'a> {
    config: DaemonConfig,
    read_config: ReadConfig<'a>,
    chosen: Chosen,
    nominal: Nominal,
    continuity: Continuity,
    epoch: CounterEpoch,
    epoch_begin: Counter,
    pub(crate) peers: Vec<Peer>,
    pub(crate) resolver: Resolver,
    writer: Writer<SharedPage>,
    published: Option<Publication>,
    selected: Option<usize>,
    leaps: LeapTable,
    store: Option<RateStore>,
    next_heartbeat: Moment<Mono>,
    next_saving: Moment<Mono>,
    pub(crate) context: Context,
}

/// Why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The counter cannot be used.
    #[error("the counter cannot be used: {0}")]
    Counter(#[from] ffclock_counter::NominalError),
    /// A file or socket cannot be made.
    #[error("{what}: {error}")]
    Resource {
        /// Which.
        what: String,
        /// Why.
        error: std::io::Error,
    },
}

/// Names the resource that an error is about.
pub(crate) fn about(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> StartError {
    move |error| StartError::Resource { what: what.to_string(), error }
}

impl<'a> Keeper<'a> {
    pub(crate) fn start(config: Config, read_config: ReadConfig<'a>) -> Result<Self, StartError> {
        let now = ffclock_sys::mono_now();
        let chosen = ffclock_counter::choose(config.daemon.counter.0);
        let nominal = ffclock_counter::nominal(chosen.kind)?;
        let boot = crate::memory::boot_id();
        let path = config.daemon.page.as_path();
        let page = SharedPage::create(path).map_err(|error| about(path.display())(std::io::Error::other(error)))?;
        let epoch = epoch_after(&page);
        let store = config.daemon.state.value().map(|state| RateStore::new(state.as_path(), chosen.kind.name(), &boot));
        let mut keeper = Keeper {
            read_config,
            continuity: Continuity::start(chosen.kind, nominal),
            epoch,
            epoch_begin: ffclock_counter::read_ordered(chosen.kind),
            peers: Vec::new(),
            resolver: Resolver::new().map_err(about("resolver"))?,
            writer: Writer::open(page, BootId::parse(&boot)),
            published: None,
            selected: None,
            leaps: LeapTable::built_in(),
            store,
            next_heartbeat: now,
            next_saving: now + SAVING,
            context: Context { mapper: Mapper::system(chosen.kind, nominal.period), journal: Journal::new(now), now },
            config: config.daemon,
            chosen,
            nominal,
        };
        tracing::info!(counter = keeper.chosen.kind.name(), reason = %keeper.chosen.reason, "keeping time");
        for server in config.servers {
            keeper.add_server(server);
        }
        Ok(keeper)
    }

    /// When something is to be done even if no packet comes.
    pub(crate) fn next_timeout(&self) -> Moment<Mono> {
        let servers = self.peers.iter().filter_map(Peer::next_timeout);
        servers.chain([self.next_heartbeat]).min().unwrap_or(self.next_heartbeat)
    }

    /// The event loop woke up: everything that follows happens at `now`. A broken counter is noticed before anything is computed
    /// with its readings.
    pub(crate) fn wake(&mut self, now: Moment<Mono>) {
        self.context.now = now;
        self.context.journal.set_now(now);
        if let Err(broken) = self.continuity.observe() {
            self.begin_epoch(&broken.to_string());
        }
    }

    /// Lets every server do what is due, publishes when it is time for a sign of life.
    pub(crate) fn timeout(&mut self) {
        let now = self.context.now;
        let mut changed = false;
        for peer in &mut self.peers {
            changed |= peer.timeout(&mut self.context);
        }
        self.look_up_names();
        if changed || now >= self.next_heartbeat {
            self.publish();
        }
        if now >= self.next_saving {
            self.next_saving = now + SAVING;
            self.save();
        }
    }

    /// A server's socket has something.
    pub(crate) fn readable(&mut self, server: usize) {
        let changed = self.peers.get_mut(server).is_some_and(|peer| peer.readable(&mut self.context));
        if changed {
            self.adopt_leaps();
            self.publish();
        }
    }

    /// A look-up has ended.
    pub(crate) fn resolved(&mut self) {
        let Some(Resolved { name, outcome }) = self.resolver.take() else { return };
        match outcome {
            Ok(addresses) => {
                for peer in self.peers.iter_mut().filter(|peer| peer.name() == name) {
                    peer.resolved(addresses.clone(), &mut self.context);
                }
            }
            Err(error) => self.context.journal.warn("name look-up failed", &format!("{name}: {error}")),
        }
    }

    /// Stops in good order: what is known of the rate and what was recorded reach the disk, readers see that nobody watches.
    pub(crate) fn stop(&mut self) {
        self.save();
        for peer in &mut self.peers {
            peer.flush_record(&mut self.context);
        }
        self.writer.retire(Status::FreeRunning);
        tracing::info!("stopped");
    }

    fn add_server(&mut self, server: ServerConfig) {
        let ground = Ground {
            nominal: self.nominal.period,
            stamps: self.config.stamps,
            leaps: self.leaps,
            remembered: self.remembered(),
        };
        let recorder = self.recorder(&server);
        let mut peer = Peer::new(server, ground, recorder, (self.epoch, self.context.now));
        peer.look_up(&self.resolver, &mut self.context);
        self.peers.push(peer);
    }

    fn remembered(&mut self) -> Option<ffclock_estimator::RateMemory> {
        let store = self.store.as_ref()?;
        store.load(self.nominal.period).unwrap_or_else(|error| {
            self.context.journal.warn("the remembered rate cannot be read", &error.to_string());
            None
        })
    }

    fn recorder(&mut self, server: &ServerConfig) -> Option<Recorder> {
        let directory = self.config.record.value()?;
        match start_recording(directory.as_path(), server, &self.chosen, &self.nominal) {
            Ok(recorder) => Some(recorder),
            Err(error) => {
                self.context.journal.warn("cannot record", &format!("{directory}: {error}"));
                None
            }
        }
    }

    fn look_up_names(&mut self) {
        for peer in &mut self.peers {
            if peer.wants_look_up(self.context.now) {
                peer.look_up(&self.resolver, &mut self.context);
            }
        }
    }

    fn begin_epoch(&mut self, why: &str) {
        self.epoch = self.epoch.next();
        self.epoch_begin = ffclock_counter::read_ordered(self.chosen.kind);
        self.writer.retire(Status::Unsynchronised);
        self.published = None;
        self.selected = None;
        self.context.journal.warn("the counter's epoch ended", why);
        for peer in &mut self.peers {
            peer.restart(self.epoch, self.context.now);
        }
    }

    fn adopt_leaps(&mut self) {
        let announced = self.selected.and_then(|selected| self.peers.get(selected)).and_then(Peer::announced);
        let leaps = announced.map_or(LeapTable::built_in(), LeapTable::with);
        // An announcement is withdrawn after the leap; the table keeps it, or TAI would lose its second again.
        if announced.is_none() || leaps == self.leaps {
            return;
        }
        self.leaps = leaps;
        self.context.journal.notice("a leap second is announced", "");
        for peer in &mut self.peers {
            peer.set_leaps(leaps);
        }
    }

    fn publish(&mut self) {
        self.next_heartbeat = self.context.now + HEARTBEAT.min(self.config.valid_for.halved().halved());
        let counter = ffclock_counter::read_ordered(self.chosen.kind);
        let candidates: Vec<Candidate> = self.candidates(counter);
        let selected = select(&candidates, self.selected);
        if selected != self.selected {
            self.tell_selection(selected);
            self.selected = selected;
        }
        let Some((peer, estimate)) = self.selected_estimate() else { return };
        let publication = Publication {
            counter_id: counter_id(self.chosen.kind),
            epoch: self.epoch,
            epoch_begin: self.epoch_begin,
            leap: self.leaps.step_around(estimate.time),
            valid_until: counter + estimate.period.ticks_in(self.config.valid_for),
            server: peer.server_identity(),
            estimate,
        };
        self.writer.publish(&publication);
        self.published = Some(publication);
    }

    fn selected_estimate(&self) -> Option<(&Peer, Estimate)> {
        let peer = self.peers.get(self.selected?)?;
        Some((peer, peer.estimate()?))
    }

    fn candidates(&self, counter: Counter) -> Vec<Candidate> {
        let clocks = self.peers.iter().enumerate();
        let estimates = clocks.filter_map(|(server, peer)| Some((server, peer.estimate()?)));
        let candidate = |(server, estimate): (usize, Estimate)| {
            let age = estimate.period * (counter - estimate.counter);
            Candidate { server, bound: estimate.bound.grown(age, estimate.bound_growth), status: estimate.status }
        };
        estimates.map(candidate).collect()
    }

    fn tell_selection(&mut self, selected: Option<usize>) {
        match selected.and_then(|selected| self.peers.get(selected)) {
            Some(peer) => self.context.journal.notice("published from now on", peer.name()),
            None => self.context.journal.warn("no server has an estimate", ""),
        }
    }

    fn save(&mut self) {
        let selected = self.selected.and_then(|selected| self.peers.get(selected));
        let (Some(store), Some(memory)) = (&self.store, selected.and_then(Peer::memory)) else { return };
        if let Err(error) = store.save(memory) {
            self.context.journal.warn("the rate cannot be remembered", &error.to_string());
        }
        for peer in &mut self.peers {
            peer.flush_record(&mut self.context);
        }
    }

    fn clock_report(&self, counter: Counter) -> Option<ClockReport> {
        let publication = self.published.as_ref()?;
        let estimate = &publication.estimate;
        let reading = reading_of(estimate, &self.leaps, counter);
        let system_clock = ffclock_sys::system_utc_now();
        let tai = self.leaps.tai_from_utc(reading.time);
        Some(ClockReport {
            status: reading.status.name().to_owned(),
            utc_ns: reading.time.since_origin().as_nanos() as i64,
            system_clock_behind_s: (reading.time - system_clock).as_seconds(),
            bound_s: reading.bound.as_seconds(),
            uncertainty_s: reading.uncertainty.as_seconds(),
            period_s: estimate.difference_period.as_seconds(),
            rate_ppm: estimate.difference_period.relative_to(self.nominal.period).as_ppm(),
            rate_bound_ppm: estimate.difference_bound.as_rate().as_ppm(),
            tai_offset_s: (tai.whole_seconds() - reading.time.whole_seconds()) as i32,
            leap: self.leaps.announced().map(|leap| (leap.utc_second, leap.change)),
        })
    }

    fn source_reports(&self, counter: Counter) -> Vec<SourceReport> {
        let published = self.published.map(|publication| reading_of(&publication.estimate, &self.leaps, counter));
        let report = |(server, peer): (usize, &Peer)| {
            let mut report = peer.report();
            report.selected = self.selected == Some(server);
            if let Some(own) = peer.estimate().map(|estimate| reading_of(&estimate, &self.leaps, counter)) {
                report.bound_s = Some(own.bound.as_seconds());
                report.uncertainty_s = Some(own.uncertainty.as_seconds());
                report.offset_s = published.map(|published| (own.time - published.time).as_seconds());
            }
            report
        };
        self.peers.iter().enumerate().map(report).collect()
    }

    /// Takes over what can be changed while running, and says what cannot.
    fn take_over(&mut self, config: Config) {
        if config.daemon != self.config {
            self.context
                .journal
                .warn("changes outside [[server]], [source] and [estimator] take effect with the next start", "");
        }
        let mut before = std::mem::take(&mut self.peers);
        let published = self.selected.and_then(|selected| before.get(selected)).map(|peer| peer.name().to_owned());
        for server in config.servers {
            match before.iter().position(|peer| peer.config().address == server.address) {
                Some(position) => {
                    let mut peer = before.remove(position);
                    peer.reconfigure(server);
                    self.peers.push(peer);
                }
                None => self.add_server(server),
            }
        }
        self.selected = self.peers.iter().position(|peer| Some(peer.name()) == published.as_deref());
        self.context.journal.notice("the configuration was read again", "");
        self.publish();
    }
}

impl Reporter for Keeper<'_> {
    fn status(&self) -> StatusReport {
        let counter = ffclock_counter::read_ordered(self.chosen.kind);
        StatusReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.context.journal.uptime_s(),
            counter: CounterReport {
                name: self.chosen.kind.name().to_owned(),
                reason: self.chosen.reason.clone(),
                nominal_hz: self.nominal.period.as_hertz(),
                epoch: self.epoch.raw(),
            },
            stamps: self.config.stamps.to_string(),
            page: self.config.page.to_string(),
            clock: self.clock_report(counter),
            selected: self.selected.and_then(|selected| self.peers.get(selected)).map(|peer| peer.name().to_owned()),
            sources: self.source_reports(counter),
            events: self.context.journal.latest(),
        }
    }

    fn reload(&mut self) -> Result<(), String> {
        match (self.read_config)() {
            Ok(config) => {
                self.take_over(config);
                Ok(())
            }
            Err(error) => {
                self.context.journal.warn("the new configuration is refused; the old one stays in force", &error);
                Err(error)
            }
        }
    }
}

/// The clock of an estimate at a reading.
fn reading_of(estimate: &Estimate, leaps: &LeapTable, counter: Counter) -> Reading {
    let age = estimate.period * (counter - estimate.counter);
    Reading {
        time: leaps.utc_from_tai(estimate.time + age),
        uncertainty: estimate.uncertainty.grown(age, estimate.uncertainty_growth),
        bound: estimate.bound.grown(age, estimate.bound_growth),
        status: estimate.status,
    }
}

/// The epoch after the one in which the page was last written. Nobody watched the counter in between.
fn epoch_after(page: &SharedPage) -> CounterEpoch {
    let last = Reader::new(page.words()).snapshot().map(|snapshot| snapshot.epoch());
    last.map_or(CounterEpoch::from_raw(1), CounterEpoch::next)
}

fn counter_id(kind: ffclock_counter::CounterKind) -> CounterId {
    match kind {
        ffclock_counter::CounterKind::MonotonicRaw => CounterId::MonotonicRaw,
        ffclock_counter::CounterKind::Tsc if cfg!(target_arch = "aarch64") => CounterId::ArmVirtual,
        ffclock_counter::CounterKind::Tsc => CounterId::Tsc,
    }
}

fn start_recording(
    directory: &Path,
    server: &ServerConfig,
    chosen: &Chosen,
    nominal: &Nominal,
) -> std::io::Result<Recorder> {
    std::fs::create_dir_all(directory)?;
    let created = ffclock_sys::system_utc_now();
    let name = format!("{}-{}", server.address.address, server.address.port).replace([':', '%'], "_");
    let path = directory.join(format!("{name}-{}.fftrace", created.since_origin().as_nanos()));
    let header = TraceHeader {
        counter: Some(chosen.kind.name().to_owned()),
        nominal: Some(nominal.period),
        created: Some(created),
        truth: false,
        metadata: vec![("server.0".to_owned(), name)],
    };
    Recorder::create(path, &header)
}

//! Keeps the time: owns the servers' clocks, chooses among them, publishes, and notices breaks in the counter's run.
//!
//! Everything that waits (sockets, timers, signals) is in `event_loop.rs`; this module acts when one of them wakes up.

mod common_clock;
mod driving;
mod electing;
mod election_log;
mod leap_seconds;
mod numbering;
mod one_vote;
mod page_file;
mod polling;
mod pools;
mod protecting;
mod remembering;
mod reporting;
mod stamping;
#[cfg(test)]
mod tests;

use crate::calibrator::Calibrator;
use crate::config::{Config, DaemonConfig, ServerConfig, StampChoice};
use crate::establish::Establisher;
use crate::host_counter::{self, Host, HostCounter, ThisHost};
use crate::journal::{Journal, Weight};
use crate::kernel_clock::KernelClockDriver;
use crate::peer::{Beginning, Context, Environment, Pace, Peer};
use crate::resolve::{Resolved, Resolver};
use crate::slowdowns::Slowdowns;
use electing::{Election, Published};
use ffclock_counter::Break;
use ffclock_page::{BootId, HistoryWriter, Publication, Reader, Writer};
use ffclock_sys::{PageFileError, SharedHistory, SharedPage, Stamper};
use ffclock_trace::{Recorder, TraceHeader};
use ffclock_units::{CounterEpoch, GrowingBound, LeapAnnouncement, LeapTable, Moment, Mono, Span, Status};
use polling::Polling;
use pools::Pools;
use remembering::nominal_error;
use std::path::Path;

/// The longest time between two signs of life in the page: longer than the usual poll, whose exchanges are signs of
/// life as well.
const HEARTBEAT: Span = Span::from_secs(20);
/// How often the rate is written to disk.
const SAVING: Span = Span::from_secs(3600);
/// The first time is sooner: even a daemon that is killed in its first hour has learnt something.
const FIRST_SAVING: Span = Span::from_secs(300);
/// Breaks in closer succession than this mean that something is wrong with the counter itself.
const BREAKS_APART: Span = Span::from_secs(16);

/// How often the counter of another CPU is compared: the thread goes there and back, which takes some microseconds.
const CPUS_APART: Span = Span::from_secs(60);

/// Reads the configuration again.
pub(crate) type ReadConfig<'a> = &'a dyn Fn() -> Result<Config, String>;

/// The clock of this host.
pub(crate) struct Keeper<'a> {
    config: DaemonConfig,
    read_config: ReadConfig<'a>,
    host_counter: HostCounter,
    boot: String,
    pub(crate) peers: Vec<Peer>,
    pub(crate) resolver: Resolver,
    pub(crate) establisher: Establisher,
    writer: Writer<SharedPage>,
    /// The lines of the past for old stamps; `None` where there is no room for them.
    history: Option<HistoryWriter<SharedHistory>>,
    kernel_clock: Option<KernelClockDriver>,
    published: Option<Publication>,
    /// The strict bound of what is published.
    strict: GrowingBound,
    election: Election,
    polling: Polling,
    pools: Pools,
    leaps: LeapTable,
    /// The leap second that the log announces.
    logged_leap: Option<LeapAnnouncement>,
    last_break: Option<Moment<Mono>>,
    next_heartbeat: Moment<Mono>,
    next_saving: Moment<Mono>,
    next_cpus: Moment<Mono>,
    /// The page is not made again before this.
    next_page: Moment<Mono>,
    /// The history is not made again before this.
    next_history: Moment<Mono>,
    pub(crate) context: Context,
}

/// Why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The counter cannot be used.
    #[error("the counter cannot be used: {0}")]
    Counter(#[from] ffclock_counter::NominalError),
    /// The page cannot be made.
    #[error("the page cannot be made: {0}")]
    Page(#[from] PageFileError),
    /// A file or socket cannot be made.
    #[error("{what}: {error}")]
    Resource {
        /// The file or socket.
        what: String,
        /// The error of the system.
        error: std::io::Error,
    },
}

/// Names the resource that an error is about.
pub(crate) fn about(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> StartError {
    move |error| StartError::Resource { what: what.to_string(), error }
}

impl<'a> Keeper<'a> {
    /// The keeper of this host's time.
    ///
    /// # Errors
    /// A required resource could not be made.
    pub(crate) fn start(config: Config, read_config: ReadConfig<'a>) -> Result<Self, StartError> {
        Self::start_on(Box::new(ThisHost), config, read_config)
    }

    fn start_on(host: Box<dyn Host>, config: Config, read_config: ReadConfig<'a>) -> Result<Self, StartError> {
        let now = ffclock_sys::mono_now();
        let boot = ffclock_counter::boot_id();
        let page = SharedPage::create(config.daemon.page.as_path())?;
        let kernel_clock = driving::driver(host.as_ref(), &config.daemon, now)?;
        let resolver = Resolver::new(host.look_up()).map_err(about("resolver"))?;
        let epoch = epoch_after(&page).map_err(about("random numbers"))?;
        let host_counter = HostCounter::start(host, driving::choice(&config.daemon), epoch)?;
        let host_counter = host_counter.in_machine(host_counter::vm_clock(&config.daemon));
        let stamper = Stamper::new(host_counter.kind(), host_counter.nominal.period);
        let mut keeper = Keeper {
            read_config,
            peers: Vec::new(),
            resolver,
            establisher: Establisher::new().map_err(about("establisher"))?,
            writer: Writer::open(page, BootId::parse(&boot)),
            history: None,
            kernel_clock,
            published: None,
            strict: GrowingBound::UNKNOWN,
            election: Election::new(config.vote, Span::ZERO),
            polling: Polling::new(config.polls, &config.servers),
            pools: Pools::default(),
            leaps: LeapTable::built_in(),
            logged_leap: LeapTable::built_in().announced(),
            last_break: None,
            next_heartbeat: now,
            next_saving: now + FIRST_SAVING,
            next_cpus: now + CPUS_APART,
            next_page: now,
            next_history: now,
            context: Context {
                published: None,
                numbers: None,
                rate: None,
                slowdowns: Slowdowns::default(),
                stamper,
                calibrator: Calibrator::new(&config.daemon, host_counter.nominal.period),
                journal: Journal::new(now),
                ensemble: None,
                is_upset: false,
                now,
            },
            config: config.daemon,
            host_counter,
            boot,
        };
        let chosen = &keeper.host_counter.chosen;
        let page = &keeper.config.page;
        tracing::info!(counter = chosen.kind.name(), reason = %chosen.reason, %page, "keeping time");
        keeper.keep_page();
        keeper.check_store();
        keeper.context.rate = keeper.remembered(nominal_error(config.servers.iter()));
        keeper.pools.reconfigure(&config.servers, now);
        for server in config.servers {
            keeper.add_server(server);
        }
        keeper.begin_common_clock();
        keeper.arrange_polls();
        if keeper.config.stamps.is_at_driver() {
            keeper.renew_stamper();
        }
        Ok(keeper)
    }

    /// The time of the next action even if no packet comes.
    pub(crate) fn next_timeout(&self) -> Moment<Mono> {
        let servers = self.peers.iter().filter_map(Peer::next_timeout);
        let kernel = self.kernel_clock.as_ref().map(KernelClockDriver::due);
        let pools = self.next_pool_look_up();
        servers.chain(kernel).chain(pools).chain([self.next_heartbeat]).min().unwrap_or(self.next_heartbeat)
    }

    /// The event loop woke up: everything that follows happens at `now`. A broken counter is noticed before its
    /// readings are used.
    pub(crate) fn wake(&mut self, now: Moment<Mono>) {
        self.context.now = now;
        self.context.journal.set_now(now);
        self.keep_page();
        self.watch_counter();
        if now >= self.next_cpus {
            self.next_cpus = now + CPUS_APART;
            self.watch_cpus();
        }
    }

    /// Lets every server do what is due, and publishes when a sign of life is due.
    pub(crate) fn timeout(&mut self) {
        let now = self.context.now;
        let mut changed = false;
        for server in 0..self.peers.len() {
            if self.peers.get(server).is_some_and(|peer| peer.is_due(now)) {
                // Replies that came while the daemon was delayed count before the request is given up.
                changed |= self.take_in(server);
                changed |= self.peers.get_mut(server).is_some_and(|peer| peer.ask(server, &mut self.context));
            }
        }
        self.look_up_names();
        self.keep_pools();
        if changed || now >= self.next_heartbeat {
            self.publish();
        }
        if changed {
            self.adapt_polls();
        }
        self.drive_kernel();
        self.write_records();
        if now >= self.next_saving {
            self.next_saving = now + SAVING;
            self.save();
        }
    }

    /// A server's socket is readable.
    pub(crate) fn readable(&mut self, server: usize) {
        if self.take_in(server) {
            self.publish();
            self.adapt_polls();
        }
        self.write_records();
    }

    /// A look-up has ended.
    pub(crate) fn resolved(&mut self) {
        let Some(Resolved { name, outcome }) = self.resolver.take() else { return };
        match outcome {
            Ok(addresses) => {
                if self.pools.resolved(&name, &addresses) {
                    return self.keep_pools();
                }
                for peer in self.peers.iter_mut().filter(|peer| peer.name() == name) {
                    peer.resolved(addresses.clone(), &mut self.context);
                }
            }
            Err(error) => self.context.journal.warn("name look-up failed", &format!("{name}: {error}")),
        }
    }

    /// Stops in good order: the rate and the recorded exchanges are written to disk, and readers see that the page is
    /// no longer renewed.
    pub(crate) fn stop(&mut self) {
        self.save();
        self.writer.retire(Status::Holdover);
        self.let_kernel_go();
        tracing::info!("stopped");
    }

    /// Takes over what a server sent, and computes with it only if the counter ran undisturbed until now: a break while
    /// packets were stamped must not end in an exchange. Returns whether an estimate changed.
    fn take_in(&mut self, server: usize) -> bool {
        let Some(peer) = self.peers.get_mut(server) else { return false };
        peer.receive(&mut self.context);
        self.log_card_changes();
        self.watch_counter();
        let changed = self.peers.get_mut(server).is_some_and(|peer| peer.digest(server, &mut self.context));
        if self.context.slowdowns.take_news() {
            self.peers.iter_mut().for_each(|peer| peer.heed_slowdowns(&self.context));
        }
        changed
    }

    fn watch_counter(&mut self) {
        if let Err(broken) = self.host_counter.observe() {
            self.begin_epoch(&broken);
        }
    }

    fn watch_cpus(&mut self) {
        if let Err(broken) = self.host_counter.compare_cpus() {
            self.begin_epoch(&broken);
        }
    }

    fn begin_epoch(&mut self, broken: &Break) {
        // Before anything else: from here on the page must not give a time.
        self.writer.retire(Status::Unsynchronised);
        self.let_kernel_go();
        let kind = self.host_counter.kind();
        let past = self.host_counter.begin_epoch(broken);
        self.published = None;
        (self.context.published, self.context.numbers) = (None, None);
        self.context.journal.warn("the counter's epoch ended", &broken.to_string());
        // Mappings of the old stamper belong to counter readings before the break.
        self.renew_stamper();
        self.context.calibrator = Calibrator::new(&self.config, self.host_counter.nominal.period);
        self.hurry_polls();
        let pace = self.pace();
        self.election.begin_epoch(self.longest_delay(pace));
        let nominal_error = nominal_error(self.peers.iter().map(Peer::config));
        self.context.rate = self.context.rate.and_then(|rate| past.of(rate, nominal_error));
        let beginning = Beginning { environment: self.environment(), remembered: self.context.rate, pace };
        for peer in &mut self.peers {
            peer.begin_epoch(&beginning, &mut self.context);
        }
        self.begin_common_clock();
        if self.host_counter.kind() != kind {
            self.context.journal.warn("time is kept with another counter from now on", self.host_counter.kind().name());
            self.restart_recordings();
        }
    }

    /// When to ask after a break at this moment.
    fn pace(&mut self) -> Pace {
        let before = self.last_break.replace(self.context.now);
        if before.is_some_and(|before| self.context.now - before < BREAKS_APART) { Pace::Poll } else { Pace::AtOnce }
    }

    /// How long the requests after a break wait.
    fn longest_delay(&self, pace: Pace) -> Span {
        let polls = self.peers.iter().map(Peer::poll_interval);
        match pace {
            Pace::AtOnce => Span::ZERO,
            Pace::Poll => polls.max().unwrap_or_default(),
        }
    }

    fn environment(&self) -> Environment {
        Environment {
            nominal: self.host_counter.nominal.period,
            epoch: self.host_counter.epoch,
            stamps: self.config.stamps,
            device_stamps: self.config.device_stamps,
            leaps: self.leaps,
        }
    }

    fn add_server(&mut self, server: ServerConfig) {
        let recorder = self.recorder(&server);
        let mut peer = Peer::new(server, self.environment(), self.context.rate, self.context.now);
        peer.record_into(recorder);
        self.give_key(&mut peer);
        if peer.is_found_by_name() {
            peer.look_up(&mut self.resolver, &mut self.context);
        }
        self.peers.push(peer);
    }

    fn recorder(&mut self, server: &ServerConfig) -> Option<Recorder> {
        let directory = self.config.record.value()?;
        match self.start_recording(directory.as_path(), server) {
            Ok(recorder) => Some(recorder),
            Err(error) => {
                self.context.journal.warn("cannot record", &format!("{directory}: {error}"));
                None
            }
        }
    }

    fn start_recording(&self, directory: &Path, server: &ServerConfig) -> std::io::Result<Recorder> {
        std::fs::create_dir_all(directory)?;
        let created = ffclock_sys::system_utc_now();
        let slot = server.slot.map(|slot| format!("-{slot}")).unwrap_or_default();
        let name = match (&server.reference, server.is_ptp()) {
            (Some(_), _) | (_, true) => server.name().replace(['/', ':', '%'], "-"),
            (None, false) => {
                format!("{}-{}{slot}", server.address.address, server.address.port).replace([':', '%'], "_")
            }
        };
        let path = directory.join(format!("{name}-{}.fftrace", created.since_origin().as_nanos()));
        let metadata = vec![
            ("server.0".to_owned(), name),
            // Calibrated stamps are moved from where they were taken, and those of the driver need no calibration: a
            // measurement of the host by this trace must know.
            ("asymmetry".to_owned(), self.config.asymmetry.to_string()),
            ("stamps".to_owned(), self.config.stamps.to_string()),
        ];
        let header = TraceHeader {
            counter: Some(self.host_counter.kind().name().to_owned()),
            nominal: Some(self.host_counter.nominal.period),
            remembered: self.context.rate,
            created: Some(created),
            truth: false,
            metadata,
        };
        Recorder::create(path, &header)
    }

    /// A trace belongs to one counter.
    fn restart_recordings(&mut self) {
        let mut peers = std::mem::take(&mut self.peers);
        for peer in &mut peers {
            peer.flush_record(&mut self.context);
            let recorder = self.recorder(peer.config());
            peer.record_into(recorder);
        }
        self.peers = peers;
    }

    /// Called after the page is written: a slow disk must not delay the clock.
    fn write_records(&mut self) {
        for peer in &mut self.peers {
            peer.write_record(&mut self.context);
        }
    }

    fn look_up_names(&mut self) {
        self.establish_keys();
        for peer in &mut self.peers {
            if peer.is_found_by_name() && peer.wants_look_up(self.context.now) {
                peer.look_up(&mut self.resolver, &mut self.context);
            }
        }
    }

    fn publish(&mut self) {
        let valid_for = self.config.valid_for;
        self.next_heartbeat = self.context.now + HEARTBEAT.min(Span::from_units(valid_for.units() / 3));
        let counter = self.host_counter.read();
        // A reading of an epoch whose break is still unnoticed must not date the validity of this epoch's estimates.
        self.watch_counter();
        let Some(Published { server, estimate, voted }) = self.elect(counter) else { return };
        self.learn_rate();
        self.adopt_leaps(self.leaps.utc_from_tai(estimate.at(counter).time));
        self.log_leap();
        let publication = Publication {
            counter_id: self.host_counter.kind(),
            epoch: self.host_counter.epoch,
            epoch_begin: self.host_counter.begin,
            leap: self.leaps.step_around(estimate.time),
            valid_until: counter + estimate.period.ticks_in(valid_for),
            server,
            estimate,
        };
        self.keep_page();
        self.keep_line(&publication);
        self.context.published = Some(estimate);
        self.writer.publish_voted(&publication, &voted);
        (self.published, self.strict) = (Some(publication), voted.strict);
    }

    /// Applies what can be changed while running, and reports what cannot.
    fn take_over(&mut self, config: Config) {
        let journal = &mut self.context.journal;
        if config.daemon != self.config {
            let kind = "changes outside [[server]], [source], [estimator], the vote and the polls take effect with the next start";
            journal.insist(Weight::Warning, kind, "");
        }
        self.election.set_rules(config.vote);
        let mut before = std::mem::take(&mut self.peers);
        let origin = |server: &ServerConfig| before.iter().position(|peer| peer.config().is_same_server(server));
        let origins: Vec<Option<usize>> = config.servers.iter().map(origin).collect();
        let (mut kept, wanted) = (0, config.servers.len());
        let followed =
            self.election.selected().and_then(|selected| before.get(selected)).map(|peer| peer.name().to_owned());
        for server in config.servers {
            match before.iter().position(|peer| peer.config().is_same_server(&server)) {
                Some(position) => {
                    let mut peer = before.remove(position);
                    peer.reconfigure(server, &mut self.context);
                    self.give_key(&mut peer);
                    self.peers.push(peer);
                    kept += 1;
                }
                None => self.add_server(server),
            }
        }
        for mut gone in before {
            gone.flush_record(&mut self.context);
            self.context.journal.insist(Weight::Notice, "no longer asked", gone.name());
        }
        self.regroup_common_clock(&origins);
        let servers: Vec<ServerConfig> = self.peers.iter().map(|peer| peer.config().clone()).collect();
        self.polling.reconfigure(config.polls, &servers);
        self.pools.reconfigure(&servers, self.context.now);
        self.arrange_polls();
        if kept < wanted {
            self.election.wait_for_added(self.context.now);
        }
        self.election.follow(self.peers.iter().position(|peer| Some(peer.name()) == followed.as_deref()));
        if self.config.stamps == StampChoice::Module {
            // The stamper stamps the packets of the servers' ports.
            self.renew_stamper();
        }
        self.context.journal.insist(Weight::Notice, "the configuration was read again", "");
        self.publish();
    }
}

/// The epoch after the one in which the page was last written: the counter was not watched in between. Without such a
/// page a number that no earlier boot or page has had, so that none of their stamps is taken for one of this page. It
/// leaves room to count on, below 2^53 where JSON is exact.
fn epoch_after(page: &SharedPage) -> std::io::Result<CounterEpoch> {
    match Reader::new(page.words()).snapshot() {
        Ok(last) => Ok(last.epoch().next()),
        Err(_) => Ok(CounterEpoch::from_raw((ffclock_sys::random_nonce()? >> 32).max(1))),
    }
}

//! The algorithm in virtual time, with the truth known: links, load, queues, clocks and faults of all kinds, from one
//! seed.
//!
//! The processes are [`Process`](crate::algorithm::Process), the machine that runs live. A run depends on the [`Spec`]
//! and the seed only. The log that it writes is of the same format as a live one, with the clocks' errors in it and
//! the truth beside it. `docs/theta-run.md` explains the models.

mod adversary;
mod calendar;
mod clocks;
mod collected;
mod engine;
mod law;
mod links;
mod load;
mod messages;
mod network;
mod observer;
mod outcome;
mod recorded;
mod redrawn;
mod sink;
mod spec;
#[cfg(test)]
mod tests;

pub use collected::CollectedEvents;
pub use law::MessageDelayLaw;
pub use observer::{Observer, Perceived, Unobserved};
pub use outcome::SimulationOutcome;
pub use redrawn::{LinkDelays, RedrawnRun};
pub use spec::{ClockSpec, LinkSpec, LoadKind, LoadSpec, Pattern, ReceiverSpec, Spec, SpecialLink};

use crate::algorithm::{AlgorithmForm, Quorum};
use crate::faults::FaultPlan;
use crate::length::picoseconds;
use crate::log::{LogError, LogWriter};
use crate::record::{HostId, LogOrigin, RunDescription, RunHost};
use clocks::SimulatedClocks;
use engine::SimulationEngine;
use law::Sampler;
use links::Links;
use load::HostLoads;
use std::collections::BTreeMap;
use std::path::Path;
use thiserror::Error;

/// Why a simulation cannot run.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// The file is no scenario.
    #[error("scenario: {0}")]
    Syntax(String),
    /// The scenario is impossible.
    #[error("scenario: {0}")]
    Sense(String),
    /// Heavy tails or long holds have filled what messages are numbered with.
    #[error("more than {most} broadcasts are in transit at once: take shorter delays or fewer processes")]
    TooManyMessages {
        /// How many there may be.
        most: usize,
    },
    /// The log could not be written.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl Spec {
    /// The scenario that `text` describes.
    ///
    /// # Errors
    /// [`SimulationError::Syntax`] with the line of a key that is not known or a value without its unit.
    pub fn parse(text: &str) -> Result<Self, SimulationError> {
        toml::from_str(text).map_err(|error| SimulationError::Syntax(error.to_string().trim_end().to_owned()))
    }
}

/// A scenario, checked and with its laws loaded.
struct PreparedScenario {
    quorum: Quorum,
    form: AlgorithmForm,
    delay: u64,
    rounds: u64,
    start_spread: u64,
    gap: u64,
    hosts: u32,
    links: Links,
    self_reception: Sampler,
    service: Sampler,
    plan: FaultPlan,
    load: LoadSpec,
    receiver: ReceiverSpec,
}

impl PreparedScenario {
    /// Processes are spread over the hosts in turn.
    fn host_of(&self, process: u32) -> u32 {
        process % self.hosts
    }

    fn load(&self, seed: u64) -> Result<HostLoads, SimulationError> {
        HostLoads::new(&self.load, &self.receiver, self.hosts as usize, seed).map_err(SimulationError::Sense)
    }

    fn new(spec: &Spec, directory: &Path) -> Result<Self, String> {
        let length =
            |name: &str, value| picoseconds(value).ok_or_else(|| format!("{name} must lie between 0 s and 1000 s"));
        let quorum = Quorum::new(spec.n, spec.f).map_err(|error| error.to_string())?;
        let hosts = spec.hosts.unwrap_or(spec.n);
        if !(1..=spec.n).contains(&hosts) {
            return Err(format!("hosts = {hosts} must lie between 1 and n = {}", spec.n));
        }
        let plan = FaultPlan::new(&spec.faults, spec.n, hosts)?;
        if spec.n as usize + plan.twins.len() > calendar::MACHINES_MAX {
            return Err("too many processes and duplicate identities".to_owned());
        }
        let load = &mut |file: &str| recorded::delays(&directory.join(file));
        Ok(PreparedScenario {
            quorum,
            form: spec.form,
            delay: length("delay", spec.delay)?,
            rounds: spec.rounds,
            start_spread: length("start_spread", spec.start_spread)?,
            gap: length("link.gap", spec.link.gap)?,
            hosts,
            links: Links::new(&spec.link, spec.n, load)?,
            self_reception: Links::of_self(&spec.self_reception, load)?,
            service: Sampler::new(&spec.receiver.service, load).map_err(|why| format!("receiver.service: {why}"))?,
            plan,
            load: spec.load.clone(),
            receiver: spec.receiver.clone(),
        })
    }
}

/// A simulation, ready to run.
pub struct Simulation {
    parts: PreparedScenario,
    clocks: SimulatedClocks,
    seed: u64,
}

impl Simulation {
    /// Prepares a scenario. Files of recorded delays are relative to `directory`.
    ///
    /// # Errors
    /// [`SimulationError::Sense`] for an impossible scenario, such as n < 3f + 1.
    pub fn new(spec: &Spec, directory: &Path, seed: u64) -> Result<Self, SimulationError> {
        let parts = PreparedScenario::new(spec, directory).map_err(SimulationError::Sense)?;
        parts.load(seed)?;
        let clocks = SimulatedClocks::new(&spec.clock, &parts.plan.clocks, seed).map_err(SimulationError::Sense)?;
        Ok(Simulation { parts, clocks, seed })
    }

    /// Runs without a log. `watch` receives the number of messages from time to time.
    ///
    /// # Errors
    /// [`SimulationError::TooManyMessages`].
    pub fn run(
        &self,
        observer: &mut impl Observer,
        watch: &mut dyn FnMut(u64),
    ) -> Result<SimulationOutcome, SimulationError> {
        SimulationEngine::new(&self.parts, self.seed, observer)?.run(watch)
    }

    /// Runs and writes a log into `directory`, which must not hold one yet.
    ///
    /// # Errors
    /// As [`Simulation::run`], and [`SimulationError::Log`].
    pub fn run_to_log(
        &self,
        directory: &Path,
        watch: &mut dyn FnMut(u64),
    ) -> Result<SimulationOutcome, SimulationError> {
        let writer = LogWriter::create(directory, &self.description())?;
        let host_of = |process| self.parts.host_of(process);
        let mut sink = sink::LogSink::new(writer, &self.clocks, &host_of);
        let outcome = self.run(&mut sink, watch)?;
        sink.finish(outcome.end_ps)?;
        Ok(outcome)
    }

    /// The description of the run for its log.
    pub fn description(&self) -> RunDescription {
        let parts = &self.parts;
        let host = |number| RunHost { name: format!("host{number}"), counter: "simulated".to_owned() };
        RunDescription {
            origin: LogOrigin::Simulated,
            form: parts.form.into(),
            processes: parts.quorum.processes(),
            tolerated: parts.quorum.faulty(),
            delay_ps: parts.delay,
            delay_min_ps: parts.links.least(),
            disorder_ps: 0,
            hosts: (0..parts.hosts).map(host).collect(),
            host_of: (0..parts.quorum.processes()).map(|process| HostId(parts.host_of(process))).collect(),
            faults: parts.plan.recorded.clone(),
            settings: BTreeMap::from([("seed".to_owned(), self.seed.to_string())]),
            unrecorded: 0,
        }
    }
}

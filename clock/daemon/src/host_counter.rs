//! The counter that time is kept with: which one it is, since when it has run undisturbed, and what remains of its past
//! after a break.
//!
//! A break (suspend, jump, standstill, another clocksource, a disruption of the virtual machine) ends an epoch. At most
//! the rate outlives it, and only after a suspend or a disruption: a counter that jumps or stands still is not what it
//! was taken for, and the kernel's raw clock has another rate with another clocksource. A crystal that slept may have
//! become cold, and after a disruption the counter may be that of another machine, so the rate is believed less. If the
//! daemon may choose the counter, a changed clocksource is a reason to choose again, since the kernel gives up a
//! clocksource that it found unsteady.

use crate::config::DaemonConfig;
use crate::kernel_clock::KernelClock;
use crate::memory::OVER_A_REST;
use crate::resolve::{LookUp, of_system};
use ffclock_counter::ffcounter::ModuleCounter;
use ffclock_counter::{Break, Choice, Chosen, Continuity, CounterId, HostReadings, Nominal, NominalError};
use ffclock_counter::{CpuDisagreement, CpuRound, Observation, Readings, Trust};
use ffclock_sys::{SharedVmClock, VmClockError, places};
use ffclock_units::{Counter, CounterEpoch, MachineMark, Rate, RateMemory};
use std::path::Path;

/// The machine's account of its counters; a test substitutes its own.
pub(crate) trait Host {
    /// The counter to use.
    fn choose(&self, choice: Choice) -> Chosen;
    /// The nominal length of its tick.
    ///
    /// # Errors
    /// The counter does not run steadily.
    fn nominal(&self, kind: CounterId) -> Result<Nominal, NominalError>;
    /// The readings that show whether its run was broken.
    fn witnesses(&self, kind: CounterId) -> Box<dyn Readings>;
    /// The comparison of the counters of its CPUs; `None` where there is nothing to compare.
    fn cpus(&self, kind: CounterId) -> Option<Box<dyn Cpus>>;
    /// The kernel's feed-forward clock; `None` where no kernel of this kind can have one.
    fn kernel_clock(&self) -> Option<Box<dyn KernelClock>>;
    /// How it finds the addresses of names.
    fn look_up(&self) -> LookUp {
        of_system()
    }
}

/// The CPUs of a machine, each with a counter of its own.
pub(crate) trait Cpus {
    /// Compares one of them with another, a different one each time.
    fn look(&mut self) -> Option<CpuDisagreement>;
}

impl Cpus for CpuRound {
    fn look(&mut self) -> Option<CpuDisagreement> {
        // A daemon that may not move to other CPUs got that error from the choice at its start.
        CpuRound::look(self).ok().flatten()
    }
}

/// The machine that the daemon runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThisHost;

impl Host for ThisHost {
    fn choose(&self, choice: Choice) -> Chosen {
        ffclock_counter::choose(choice)
    }

    fn nominal(&self, kind: CounterId) -> Result<Nominal, NominalError> {
        ffclock_counter::nominal(kind)
    }

    fn witnesses(&self, kind: CounterId) -> Box<dyn Readings> {
        Box::new(HostReadings::new(kind))
    }

    /// The kernel's clocks, and counters outside the CPUs, are the same for all CPUs.
    fn cpus(&self, kind: CounterId) -> Option<Box<dyn Cpus>> {
        let round = kind.is_per_cpu().then(|| CpuRound::start(kind).ok()).flatten()?;
        Some(Box::new(round))
    }

    #[cfg(target_os = "freebsd")]
    fn kernel_clock(&self) -> Option<Box<dyn KernelClock>> {
        Some(Box::new(crate::kernel_clock::ThisKernel))
    }

    #[cfg(target_os = "linux")]
    fn kernel_clock(&self) -> Option<Box<dyn KernelClock>> {
        None
    }
}

/// The readings of any [`Host`].
struct Witnesses(Box<dyn Readings>);

impl Readings for Witnesses {
    fn observe(&mut self) -> Observation {
        self.0.observe()
    }

    fn clocksource(&mut self) -> Option<String> {
        self.0.clocksource()
    }

    fn stated_epoch(&mut self) -> Result<Option<u32>, String> {
        self.0.stated_epoch()
    }

    fn trust(&mut self) -> Option<Trust> {
        self.0.trust()
    }
}

/// The VMClock of the machine that this is, if it has one that may be read. Without it the daemon does its work.
pub(crate) fn vm_clock(config: &DaemonConfig) -> Option<SharedVmClock> {
    let path = config.vm_clock.value()?.as_path();
    match SharedVmClock::open(path) {
        Ok(clock) => {
            tracing::info!(path = %path.display(), marker = %clock.mark(), "watching the virtual machine");
            Some(clock)
        }
        Err(VmClockError::Missing(_)) if path == Path::new(places::VM_CLOCK) => None,
        Err(error) => {
            tracing::warn!(%error, "snapshots and migrations of this machine will be noticed late");
            None
        }
    }
}

/// The virtual machine that the daemon runs in.
struct Machine {
    clock: SharedVmClock,
    mark: MachineMark,
}

impl Machine {
    fn observe(&mut self) -> Result<(), Break> {
        let to = self.clock.mark();
        let from = std::mem::replace(&mut self.mark, to);
        if from == to { Ok(()) } else { Err(Break::Disrupted { from, to }) }
    }
}

/// What remains of a counter's past after a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    /// Its rate, but for what a rest can change of it.
    Rested,
    /// The rate of what may have been another machine: as far as both keep to the nominal one.
    OtherMachine,
    /// Nothing is known any longer.
    Nothing,
}

impl Past {
    /// What remains of a remembered rate, where every rate is within `nominal_error` of the nominal one.
    pub(crate) fn of(self, memory: RateMemory, nominal_error: Rate) -> Option<RateMemory> {
        let moved = match self {
            Past::Rested => OVER_A_REST,
            Past::OtherMachine => nominal_error + nominal_error,
            Past::Nothing => return None,
        };
        Some(RateMemory { bound: memory.bound + moved, ..memory })
    }
}

/// The counter in use, in its present epoch.
pub(crate) struct HostCounter {
    host: Box<dyn Host>,
    choice: Choice,
    pub(crate) chosen: Chosen,
    pub(crate) nominal: Nominal,
    continuity: Continuity<Witnesses>,
    cpus: Option<Box<dyn Cpus>>,
    machine: Option<Machine>,
    pub(crate) epoch: CounterEpoch,
    /// A reading at or after the beginning of the epoch.
    pub(crate) begin: Counter,
}

impl HostCounter {
    /// Chooses a counter; its epoch begins now.
    ///
    /// # Errors
    /// The counter does not run steadily.
    pub(crate) fn start(host: Box<dyn Host>, choice: Choice, epoch: CounterEpoch) -> Result<Self, NominalError> {
        let chosen = host.choose(choice);
        let nominal = host.nominal(chosen.kind)?;
        let continuity = watch(host.as_ref(), &chosen, nominal);
        let begin = ffclock_counter::read_ordered(chosen.kind);
        let cpus = host.cpus(chosen.kind);
        Ok(HostCounter { host, choice, chosen, nominal, continuity, cpus, machine: None, epoch, begin })
    }

    /// The same in a virtual machine whose VMClock is watched.
    pub(crate) fn in_machine(self, clock: Option<SharedVmClock>) -> Self {
        let machine = clock.map(|clock| Machine { mark: clock.mark(), clock });
        HostCounter { machine, ..self }
    }

    /// The mark of the virtual machine in this epoch, where it is watched.
    pub(crate) fn machine_mark(&self) -> Option<MachineMark> {
        self.machine.as_ref().map(|machine| machine.mark)
    }

    /// The counter in use.
    pub(crate) fn kind(&self) -> CounterId {
        self.chosen.kind
    }

    /// Reads the counter.
    pub(crate) fn read(&self) -> Counter {
        ffclock_counter::read_ordered(self.chosen.kind)
    }

    /// The kernel's present clocksource, if it can be read.
    pub(crate) fn clocksource(&self) -> Option<String> {
        self.host.witnesses(self.chosen.kind).clocksource()
    }

    /// Checks that it has run undisturbed since the last call.
    ///
    /// # Errors
    /// The break, if there was one.
    pub(crate) fn observe(&mut self) -> Result<(), Break> {
        let run = self.continuity.observe();
        // A disruption explains whatever the counter did, and comes to light by the marker even where it did nothing.
        self.machine.as_mut().map_or(Ok(()), Machine::observe)?;
        run
    }

    /// Checks that the counters of two CPUs agree, of other CPUs each time.
    ///
    /// # Errors
    /// The counters do not agree.
    pub(crate) fn compare_cpus(&mut self) -> Result<(), Break> {
        self.cpus.as_mut().and_then(|cpus| cpus.look()).map_or(Ok(()), |seen| Err(Break::CpusDisagree(seen)))
    }

    /// Begins a new epoch after `broken`, with another counter if there is reason to choose again. Returns what remains
    /// of the past.
    pub(crate) fn begin_epoch(&mut self, broken: &Break) -> Past {
        let counter_is_doubtful = matches!(
            broken,
            Break::ClocksourceChanged { .. }
                | Break::CounterVanished { .. }
                | Break::CpusDisagree(_)
                | Break::TrustLost { .. }
        );
        if counter_is_doubtful && self.is_open() {
            self.choose_again();
        }
        self.epoch = self.epoch.next();
        self.begin = self.read();
        match broken {
            Break::Suspended { .. } => Past::Rested,
            Break::Disrupted { .. } => Past::OtherMachine,
            _ => Past::Nothing,
        }
    }

    /// Whether the same choice may mean another counter now: the kernel's active counter is the one that it keeps time
    /// with.
    fn is_open(&self) -> bool {
        matches!(self.choice, Choice::Auto | Choice::Fixed(CounterId::Module(ModuleCounter::Active)))
    }

    /// A counter that cannot be measured is no better than the one in use.
    fn choose_again(&mut self) {
        let chosen = self.host.choose(self.choice);
        let Ok(nominal) = self.host.nominal(chosen.kind) else { return };
        self.continuity = watch(self.host.as_ref(), &chosen, nominal);
        self.cpus = self.host.cpus(chosen.kind);
        (self.chosen, self.nominal) = (chosen, nominal);
    }
}

fn watch(host: &dyn Host, chosen: &Chosen, nominal: Nominal) -> Continuity<Witnesses> {
    Continuity::with_readings(Witnesses(host.witnesses(chosen.kind)), chosen.kind, nominal)
}

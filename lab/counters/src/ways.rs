//! The ways to read a counter or a clock.

use crate::ffi;
use crate::posix_clock::PosixClock;
use ffclock_counter::ffcounter::{CounterPage, Ffcounter, FfcounterError, ModuleCounter, Sample, layout};
use ffclock_counter::{CounterId, read_ordered, read_unordered};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug)]
enum ReadingMethod {
    Nothing,
    Plain,
    Ordered,
    #[cfg(target_arch = "x86_64")]
    Rdtscp,
    EmptySystemCall,
    Vdso(PosixClock),
    SystemCall(PosixClock),
    Device(Arc<File>),
    Module(Arc<Ffcounter>, ModuleCounter),
    ModulePage(Arc<CounterPage>, Arc<Ffcounter>, ModuleCounter),
    Kernel(Arc<Ffcounter>, ModuleCounter, Inside),
    /// What a test says.
    #[cfg(test)]
    Scripted(Script),
}

#[cfg(test)]
pub(crate) type Script = Arc<std::sync::Mutex<std::collections::VecDeque<Result<Stated, Unread>>>>;

/// A reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stated {
    /// What the counter shows.
    pub value: u64,
    /// The epoch that it states: earlier values of another one have nothing to do with this. `None` for one that knows
    /// none.
    pub epoch: Option<u32>,
}

/// Why a counter cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It is gone.
    #[error("its device was removed, or its module unloaded. Load it again, or leave it out with --only")]
    Gone,
    /// The machine sleeps or wakes.
    #[error("a suspend is under way. Measure again when it is over")]
    Asleep,
    /// It can be read, but not in this way now.
    #[error(
        "its page is closed, after a suspend or since the counter is another one. Measure again, or leave it out with --only"
    )]
    Closed,
}

/// What of a reading inside the kernel is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    /// The register of the counter alone.
    Register,
    /// The whole interface of the module: register, mask, sum.
    Interface,
}

/// The cost of one reading, as the kernel measured it with the TSC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelTicks {
    /// Of the measurement itself: two readings of the TSC with nothing between them.
    pub(crate) own: u64,
    /// Of what was measured, that cost included.
    pub(crate) bracket: u64,
}

/// One way to read one counter or clock.
#[derive(Clone, Debug)]
pub struct CounterWay {
    counter: String,
    access: &'static str,
    hertz: f64,
    reader: ReadingMethod,
}

/// Something done with a reading as a plain function, so that which one it is was decided before and does not enter
/// what is timed.
pub trait ReadingTask {
    /// What comes of it.
    type Output;
    /// Does it. `read` gives `None` where the counter cannot be read (any more).
    fn run<F: FnMut() -> Option<u64>>(self, read: F) -> Self::Output;
}

impl CounterWay {
    /// Reads nothing: what is left is the cost of the instrument itself.
    pub fn nothing() -> Self {
        CounterWay {
            counter: "nothing".to_owned(),
            access: "the instrument itself",
            hertz: 1e9,
            reader: ReadingMethod::Nothing,
        }
    }

    /// A clock whose device is gone.
    #[cfg(test)]
    pub(crate) fn vanished() -> Self {
        let device = Arc::new(File::open("/dev/null").expect("every Linux has it"));
        CounterWay {
            counter: "ptp7".to_owned(),
            access: "clock_gettime",
            hertz: 1e9,
            reader: ReadingMethod::Device(device),
        }
    }

    /// A counter that shows what a test says, then vanishes.
    #[cfg(test)]
    pub(crate) fn scripted(readings: Vec<Result<Stated, Unread>>) -> Self {
        let script = Arc::new(std::sync::Mutex::new(readings.into()));
        CounterWay {
            counter: "module:hpet".to_owned(),
            access: "ioctl",
            hertz: 1e9,
            reader: ReadingMethod::Scripted(script),
        }
    }

    /// What is read.
    pub fn counter(&self) -> &str {
        &self.counter
    }

    /// How it is read: the instruction or the system call.
    pub fn access(&self) -> &'static str {
        self.access
    }

    /// Counter and access.
    pub fn name(&self) -> String {
        format!("{} {}", self.counter, self.access)
    }

    /// Whether this is the CPU's counter, by which everything is timed.
    pub fn is_base(&self) -> bool {
        self.counter == CPU.0
    }

    /// Nominal ticks per second.
    pub fn hertz(&self) -> f64 {
        self.hertz
    }

    /// Hands the reading to `work`.
    pub fn with<W: ReadingTask>(&self, work: W) -> W::Output {
        match &self.reader {
            ReadingMethod::Nothing => work.run(|| Some(0)),
            ReadingMethod::Plain => work.run(|| Some(read_unordered(CounterId::CPU).raw())),
            ReadingMethod::Ordered => work.run(|| Some(read_ordered(CounterId::CPU).raw())),
            #[cfg(target_arch = "x86_64")]
            ReadingMethod::Rdtscp => work.run(|| Some(ffclock_counter::read_rdtscp().raw())),
            ReadingMethod::EmptySystemCall => work.run(ffi::empty_system_call),
            ReadingMethod::Vdso(clock) => by_clock(*clock, work),
            ReadingMethod::SystemCall(clock) => work.run(|| ffi::read_clock_by_system_call(*clock)),
            ReadingMethod::Device(device) => work.run(|| ffi::read_device_clock(device)),
            ReadingMethod::Module(module, counter) | ReadingMethod::Kernel(module, counter, _) => {
                work.run(|| module.read(*counter).ok().map(|sample| sample.value))
            }
            ReadingMethod::ModulePage(page, ..) => work.run(|| page.read().map(|reading| reading.counter.raw())),
            #[cfg(test)]
            ReadingMethod::Scripted(_) => work.run(|| self.read_stated().ok().map(|stated| stated.value)),
        }
    }

    /// For a way inside the kernel: what one reading cost there, or `None` inside where it cannot be read.
    pub(crate) fn kernel_ticks(&self) -> Option<Option<KernelTicks>> {
        let ReadingMethod::Kernel(module, counter, inside) = &self.reader else { return None };
        let measure = || {
            let [first, second, third, fourth] = module.measure_latency(*counter).ok()?.tsc;
            let bracket = match inside {
                Inside::Register => third.checked_sub(second)?,
                Inside::Interface => fourth.checked_sub(third)?,
            };
            Some(KernelTicks { own: second.checked_sub(first)?, bracket })
        };
        Some(measure())
    }

    /// Reads once, with the epoch. A page that is closed is no reason to have none: its counter can be asked through
    /// the device.
    ///
    /// # Errors
    /// Why the counter cannot be read.
    pub fn read_stated(&self) -> Result<Stated, Unread> {
        match &self.reader {
            ReadingMethod::Module(module, counter) | ReadingMethod::Kernel(module, counter, _) => {
                of_module(module, *counter)
            }
            ReadingMethod::ModulePage(page, module, counter) => match page.read() {
                Some(reading) => Ok(Stated { value: reading.counter.raw(), epoch: Some(reading.epoch) }),
                None => of_module(module, *counter),
            },
            #[cfg(test)]
            ReadingMethod::Scripted(script) => {
                script.lock().map_or(None, |mut readings| readings.pop_front()).unwrap_or(Err(Unread::Gone))
            }
            _ => self.read().map(|value| Stated { value, epoch: None }).ok_or(Unread::Gone),
        }
    }

    /// Why a reading that was just tried gave nothing.
    pub fn why_unread(&self) -> Unread {
        self.read_stated().err().unwrap_or(Unread::Closed)
    }

    /// Reads once; `None` where the counter cannot be read.
    pub fn read(&self) -> Option<u64> {
        struct Once;
        impl ReadingTask for Once {
            type Output = Option<u64>;
            fn run<F: FnMut() -> Option<u64>>(self, mut read: F) -> Option<u64> {
                read()
            }
        }
        self.with(Once)
    }
}

fn of_module(module: &Ffcounter, counter: ModuleCounter) -> Result<Stated, Unread> {
    match module.read(counter) {
        Ok(sample) => Ok(Stated { value: sample.value, epoch: Some(sample.epoch) }),
        Err(FfcounterError::Asleep(_)) => Err(Unread::Asleep),
        Err(_) => Err(Unread::Gone),
    }
}

fn by_clock<W: ReadingTask>(clock: PosixClock, work: W) -> W::Output {
    work.run(|| ffi::read_clock(clock))
}

/// The names of the CPU's counter and of the ways to read it.
#[cfg(target_arch = "x86_64")]
const CPU: (&str, &str, &str) = ("tsc", "rdtsc", "lfence;rdtsc");
#[cfg(target_arch = "aarch64")]
const CPU: (&str, &str, &str) = ("cntvct", "mrs", "isb;mrs");

/// The CPU's counter, with each instruction that reads it. `hertz`: its nominal frequency.
pub fn cpu_ways(hertz: f64) -> Vec<CounterWay> {
    let way = |access, reader| CounterWay { counter: CPU.0.to_owned(), access, hertz, reader };
    let ways = vec![way(CPU.1, ReadingMethod::Plain), way(CPU.2, ReadingMethod::Ordered)];
    #[cfg(target_arch = "x86_64")]
    let ways =
        ways.into_iter().chain(ffclock_counter::has_rdtscp().then(|| way("rdtscp", ReadingMethod::Rdtscp))).collect();
    ways
}

/// An empty system call, to compare those with that do something.
pub fn empty_system_call() -> CounterWay {
    CounterWay {
        counter: "none".to_owned(),
        access: "empty system call",
        hertz: 1e9,
        reader: ReadingMethod::EmptySystemCall,
    }
}

/// A clock of POSIX through the vDSO.
pub fn vdso(clock: PosixClock) -> CounterWay {
    CounterWay { counter: clock.name().to_owned(), access: "vDSO", hertz: 1e9, reader: ReadingMethod::Vdso(clock) }
}

/// A clock of POSIX through a system call.
pub fn system_call(clock: PosixClock) -> CounterWay {
    CounterWay {
        counter: clock.name().to_owned(),
        access: "system call",
        hertz: 1e9,
        reader: ReadingMethod::SystemCall(clock),
    }
}

/// A PTP hardware clock.
///
/// # Errors
/// The device cannot be opened, or is no clock.
pub fn ptp_clock(path: &Path) -> io::Result<CounterWay> {
    let device = Arc::new(File::open(path)?);
    if ffi::read_device_clock(&device).is_none() {
        return Err(io::Error::other("it is no PTP hardware clock, or cannot be read"));
    }
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    Ok(CounterWay { counter: name, access: "clock_gettime", hertz: 1e9, reader: ReadingMethod::Device(device) })
}

/// The devices in /dev whose name is `prefix` and a number, in order.
pub fn devices(prefix: &str) -> Vec<PathBuf> {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().and_then(|name| name.strip_prefix(prefix)).is_some_and(is_number))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// A counter of the module through a system call, without one where that is possible, and inside the kernel.
fn module_ways(module: &Arc<Ffcounter>, counter: ModuleCounter, sample: &Sample) -> Vec<CounterWay> {
    let way =
        |access, reader| CounterWay { counter: format!("module:{counter}"), access, hertz: sample.hertz(), reader };
    let page = sample.has(layout::PAGE).then(|| module.page(counter).ok()).flatten();
    let page = page.map(|page| way("page", ReadingMethod::ModulePage(Arc::new(page), module.clone(), counter)));
    let kernel = |access, inside| way(access, ReadingMethod::Kernel(module.clone(), counter, inside));
    let mut ways = vec![way("ioctl", ReadingMethod::Module(module.clone(), counter))];
    ways.extend(page);
    ways.extend([kernel("kernel register", Inside::Register), kernel("kernel interface", Inside::Interface)]);
    ways
}

/// The counters of an open module, each with every way to read it.
pub fn every_module_way(module: Ffcounter) -> Vec<CounterWay> {
    let module = Arc::new(module);
    module.counters().iter().flat_map(|(counter, sample)| module_ways(&module, *counter, sample)).collect()
}

/// One way for each counter of `ways`, the first, which is the cheapest; not what shows the last tick only or no
/// counter at all.
pub fn one_for_each_counter(ways: Vec<CounterWay>) -> Vec<CounterWay> {
    let mut seen = BTreeSet::new();
    let counts = |way: &CounterWay| {
        !way.counter().ends_with("coarse") && way.counter() != "none" && way.kernel_ticks().is_none()
    };
    ways.into_iter().filter(|way| counts(way) && seen.insert(way.counter().to_owned())).collect()
}

/// Every way that this host has; `hertz` of the CPU's counter.
pub fn every_way(hertz: f64) -> Vec<CounterWay> {
    let mut ways = cpu_ways(hertz);
    ways.extend(PosixClock::ALL.map(vdso));
    ways.extend(PosixClock::ALL.map(system_call));
    ways.push(empty_system_call());
    ways.extend(devices("ptp").iter().filter_map(|path| ptp_clock(path).ok()));
    ways.extend(Ffcounter::open().map(every_module_way).unwrap_or_default());
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_reads_and_what_counts_goes_forward() {
        for way in every_way(1e9) {
            let (first, second) = (way.read().unwrap(), way.read().unwrap());
            assert!(first <= second, "{}: {first} then {second}", way.name());
        }
        assert_eq!(CounterWay::nothing().read(), Some(0));
    }

    #[test]
    fn each_counter_is_taken_once() {
        let names: Vec<String> =
            one_for_each_counter(every_way(1e9)).iter().map(|way| way.counter().to_owned()).collect();
        let once: BTreeSet<&String> = names.iter().collect();
        assert_eq!(once.len(), names.len(), "{names:?}");
        assert!(names.contains(&"monotonic-raw".to_owned()) && !names.contains(&"none".to_owned()), "{names:?}");
    }

    #[test]
    fn a_file_is_no_hardware_clock() {
        let error = ptp_clock(Path::new("/dev/null")).unwrap_err();
        assert!(error.to_string().contains("no PTP hardware clock"), "{error}");
        assert!(ptp_clock(Path::new("/nonexistent/ptp9")).is_err());
    }

    #[test]
    fn devices_are_those_with_a_number() {
        assert!(devices("nul").is_empty());
    }
}

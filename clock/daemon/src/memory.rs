//! The rate of the counter, remembered across restarts: one small file for each counter.
//!
//! The wander that the data showed is remembered with it, and only ever becomes larger: an operator who knows better
//! removes the file.
//!
//! A remembered rate becomes a bound, so it is believed only as far as the counter is certainly the same. The kernel's
//! raw clock has another rate after each boot and with each clocksource. The CPU's counter keeps its crystal over a
//! boot but not its temperature, and a guest may be started on another machine, or moved to one while it runs.

use ffclock_counter::{CounterId, is_guest};
use ffclock_units::{MachineMark, Period, Rate, RateMemory, Span};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The version of the format on disk. The first had neither a version nor a wander, the second no machine; both are
/// still read.
const VERSION: u32 = 3;

/// The format on disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(default = "first_version")]
    version: u32,
    counter: String,
    boot: String,
    clocksource: Option<String>,
    /// What the machine's VMClock showed, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    /// How long the machine had been suspended since it was started, where the kernel says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suspended_s: Option<f64>,
    mantissa: u64,
    shift: u8,
    bound_ppm: f64,
    /// The wander that the data showed, where it is larger than the configured one was.
    #[serde(default)]
    wander_ppm: Option<f64>,
}

const fn first_version() -> u32 {
    1
}

/// The counter, boot, clocksource and machine that a rate belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// Which counter it is.
    pub counter: CounterId,
    /// The identifier of the boot; empty where the kernel has none.
    pub boot: String,
    /// The kernel's clocksource.
    pub clocksource: Option<String>,
    /// The mark of the virtual machine, where it is watched.
    pub machine: Option<MachineMark>,
    /// How long the machine has been suspended since it was started, where the kernel says it.
    pub suspended: Option<Span>,
}

/// The version alone: a later format may have any other fields.
#[derive(Deserialize)]
struct Version {
    #[serde(default = "first_version")]
    version: u32,
}

impl Stored {
    /// Its wander, if it makes sense.
    fn wander(&self) -> Option<Rate> {
        let wander = self.wander_ppm.map(Rate::from_ppm);
        wander.filter(|wander| wander.as_fraction() > 0.0 && *wander < FARTHEST)
    }
}

/// Where the rate of one counter is kept.
pub struct RateStore {
    path: PathBuf,
    now: Circumstances,
}

/// A remembered rate farther than this from the nominal one belongs to another machine.
const FARTHEST: Rate = Rate::from_ppm(1000.0);
/// How far a crystal can have moved while the machine was off or asleep: it may have become cold, and has aged.
pub(crate) const OVER_A_REST: Rate = Rate::from_ppm(20.0);
/// A shorter suspend cools nothing, and is no longer than reading the clocks may take.
const SHORTEST_REST: Span = Span::from_secs(1);

impl RateStore {
    /// The store below `directory` for the present circumstances.
    pub fn new(directory: &Path, now: Circumstances) -> Self {
        RateStore { path: directory.join(format!("rate-{}.json", now.counter.name().replace(':', "-"))), now }
    }

    /// Checks that a rate could be stored here; makes the directory.
    ///
    /// # Errors
    /// The directory or a file in it cannot be written.
    pub(crate) fn check(&self) -> io::Result<()> {
        let probe = self.path.with_extension("probe");
        self.make_directory()?;
        fs::write(&probe, "")?;
        fs::remove_file(&probe)
    }

    /// The stored rate, if it belongs to this counter.
    ///
    /// # Errors
    /// The file cannot be read or makes no sense; a missing file is not an error.
    pub fn load(&self, nominal: Period) -> io::Result<Option<RateMemory>> {
        let Some(stored) = self.stored()? else { return Ok(None) };
        let period =
            Period::from_parts(stored.mantissa, stored.shift).ok_or_else(|| io::Error::other("no such period"))?;
        let bound = Rate::from_ppm(stored.bound_ppm);
        let this_counter = stored.counter == self.now.counter.name() && period.relative_to(nominal).abs() < FARTHEST;
        let sane = bound.as_fraction() > 0.0 && bound < FARTHEST;
        let aged = self.aging(&stored).filter(|_| this_counter && sane);
        Ok(aged.map(|aging| RateMemory { period, bound: bound + aging, wander: stored.wander() }))
    }

    /// What the file says.
    fn stored(&self) -> io::Result<Option<Stored>> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let version: Version = serde_json::from_slice(&text).map_err(io::Error::other)?;
        if !(1..=VERSION).contains(&version.version) {
            return Err(io::Error::other(format!("its format is version {}, which is not known", version.version)));
        }
        serde_json::from_slice(&text).map(Some).map_err(io::Error::other)
    }

    /// The larger of this wander and the one that is stored of the same counter: another server, or a run that was too
    /// short to see it, is no evidence against it.
    fn largest_wander(&self, wander: Option<Rate>) -> Option<Rate> {
        self.wander().into_iter().chain(wander).max_by(|one, other| one.as_fraction().total_cmp(&other.as_fraction()))
    }

    /// The wander that was stored of this counter. It holds where the rate does not: over a boot the crystal is the
    /// same, and a larger one than is true makes no bound too narrow.
    pub(crate) fn wander(&self) -> Option<Rate> {
        let stored = self.stored().ok().flatten().filter(|stored| stored.counter == self.now.counter.name());
        stored.and_then(|stored| stored.wander())
    }

    /// How far the rate can have moved since it was stored; `None` where no limit is known: a machine that was moved
    /// has another counter within the same boot.
    fn aging(&self, stored: &Stored) -> Option<Rate> {
        if stored.machine != self.machine() {
            return None;
        }
        let this_boot = !self.now.boot.is_empty() && stored.boot == self.now.boot;
        let since = if self.was_suspended_since(stored) { OVER_A_REST } else { Rate::ZERO };
        match self.now.counter {
            CounterId::MonotonicRaw => (this_boot && stored.clocksource == self.now.clocksource).then_some(since),
            _ if this_boot => Some(since),
            CounterId::Tsc | CounterId::ArmVirtual | CounterId::Module(_) => (!is_guest()).then_some(OVER_A_REST),
        }
    }

    /// Whether the machine was suspended since, in this boot.
    fn was_suspended_since(&self, stored: &Stored) -> bool {
        let suspended = stored.suspended_s.zip(self.now.suspended);
        suspended.is_some_and(|(then, now)| now.as_seconds() - then > SHORTEST_REST.as_seconds())
    }

    fn machine(&self) -> Option<String> {
        self.now.machine.map(|mark| mark.to_string())
    }

    /// Stores a rate. The file is replaced as a whole or not at all; after a power failure at that moment it is
    /// not believed.
    ///
    /// # Errors
    /// The directory or the file cannot be written.
    pub fn save(&self, memory: RateMemory) -> io::Result<()> {
        let stored = Stored {
            version: VERSION,
            counter: self.now.counter.name().to_owned(),
            boot: self.now.boot.clone(),
            clocksource: self.now.clocksource.clone(),
            machine: self.machine(),
            suspended_s: self.now.suspended.map(Span::as_seconds),
            mantissa: memory.period.mantissa(),
            shift: memory.period.shift(),
            bound_ppm: memory.bound.as_ppm(),
            wander_ppm: self.largest_wander(memory.wander).map(Rate::as_ppm),
        };
        self.make_directory()?;
        let fresh = self.path.with_extension("new");
        let text = serde_json::to_vec(&stored).map_err(io::Error::other)?;
        let written = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, &self.path));
        if written.is_err() {
            // A full disk leaves an empty file.
            let _ = fs::remove_file(&fresh);
        }
        written
    }

    fn make_directory(&self) -> io::Result<()> {
        self.path.parent().map_or(Ok(()), fs::create_dir_all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ffclock-memory-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn memory() -> RateMemory {
        RateMemory { period: Period::from_hertz(2.9e9).unwrap(), bound: Rate::from_ppm(0.75), wander: None }
    }

    fn store(directory: &Path, counter: CounterId, boot: &str, clocksource: &str) -> RateStore {
        let (boot, clocksource) = (boot.to_owned(), Some(clocksource.to_owned()));
        RateStore::new(directory, Circumstances { counter, boot, clocksource, machine: None, suspended: None })
    }

    #[test]
    fn what_was_kept_comes_back_exactly() {
        let directory = scratch("round-trip");
        let store = store(&directory, CounterId::CPU, "boot-1", "tsc");
        store.check().unwrap();
        assert_eq!(store.load(memory().period).unwrap(), None);
        store.save(memory()).unwrap();
        assert_eq!(store.load(memory().period).unwrap(), Some(memory()));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_learned_wander_is_kept_and_never_becomes_smaller() {
        let directory = scratch("wander");
        let store = store(&directory, CounterId::CPU, "boot-1", "tsc");
        let wander = |store: &RateStore| store.load(memory().period).unwrap().unwrap().wander;
        for (learned, kept) in [(None, None), (Some(2.0), Some(2.0)), (None, Some(2.0)), (Some(1.5), Some(2.0))] {
            store.save(RateMemory { wander: learned.map(Rate::from_ppm), ..memory() }).unwrap();
            assert_eq!(wander(&store), kept.map(Rate::from_ppm));
        }
        let path = directory.join("rate-tsc.json");
        let text = fs::read_to_string(&path).unwrap();
        for nonsense in ["-2.0", "0.0", "1e9"] {
            fs::write(&path, text.replace("\"wander_ppm\":2.0", &format!("\"wander_ppm\":{nonsense}"))).unwrap();
            assert_eq!(wander(&store), None, "{nonsense}");
        }
        fs::write(&path, text.replace("\"version\":3", "\"version\":4,\"more\":1")).unwrap();
        let error = store.load(memory().period).unwrap_err().to_string();
        assert!(error.contains("version 4"), "{error}");
        fs::write(&path, text.replace("\"version\":3", "\"version\":2")).unwrap();
        assert_eq!(wander(&store), Some(Rate::from_ppm(2.0)), "the second format");
        let first = text.replace("\"version\":3,", "").replace(",\"wander_ppm\":2.0", "");
        assert!(!first.contains("wander") && !first.contains("version"), "{first}");
        fs::write(&path, first).unwrap();
        assert_eq!(store.load(memory().period).unwrap(), Some(memory()), "the first format");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn over_a_boot_a_crystal_is_believed_less_and_a_guest_not_at_all() {
        let directory = scratch("boot");
        store(&directory, CounterId::CPU, "boot-1", "tsc").save(memory()).unwrap();
        let later = store(&directory, CounterId::CPU, "boot-2", "tsc").load(memory().period).unwrap();
        match later {
            Some(later) => assert!(!is_guest() && later.bound > Rate::from_ppm(20.0), "{later:?}"),
            None => assert!(is_guest()),
        }
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_raw_clock_has_another_rate_after_each_boot_and_with_each_clocksource() {
        let directory = scratch("raw");
        let raw = |boot: &str, clocksource: &str| store(&directory, CounterId::MonotonicRaw, boot, clocksource);
        raw("boot-1", "tsc").save(memory()).unwrap();
        assert_eq!(raw("boot-1", "tsc").load(memory().period).unwrap(), Some(memory()));
        assert_eq!(raw("boot-2", "tsc").load(memory().period).unwrap(), None);
        let wander = Some(Rate::from_ppm(3.0));
        raw("boot-1", "tsc").save(RateMemory { wander, ..memory() }).unwrap();
        assert_eq!(raw("boot-2", "tsc").wander(), wander, "the crystal is the same");
        assert_eq!(raw("boot-1", "hpet").load(memory().period).unwrap(), None);
        raw("", "tsc").save(memory()).unwrap();
        assert_eq!(raw("", "tsc").load(memory().period).unwrap(), None, "which boot is not known");
        fs::remove_dir_all(directory).unwrap();
    }

    /// The boot goes on in a guest that was moved, and the counter is another one.
    #[test]
    fn a_machine_that_was_moved_within_a_boot_has_another_rate() {
        let directory = scratch("moved");
        let of = |machine: Option<MachineMark>| {
            let unmarked = store(&directory, CounterId::CPU, "boot-1", "tsc");
            RateStore { now: Circumstances { machine, ..unmarked.now }, ..unmarked }
        };
        let [before, after] = [7, 8].map(|marker| Some(MachineMark::of_disruption(marker)));
        of(before).save(memory()).unwrap();
        assert_eq!(of(before).load(memory().period).unwrap(), Some(memory()));
        assert_eq!(of(after).load(memory().period).unwrap(), None);
        assert_eq!(of(None).load(memory().period).unwrap(), None, "it is not known whether it was moved");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn over_a_suspend_a_crystal_is_believed_less() {
        let directory = scratch("suspend");
        for counter in [CounterId::CPU, CounterId::MonotonicRaw] {
            let of = |seconds: Option<i64>| {
                let plain = store(&directory, counter, "boot-1", "tsc");
                let suspended = seconds.map(Span::from_secs);
                RateStore { now: Circumstances { suspended, ..plain.now }, ..plain }
            };
            of(Some(100)).save(memory()).unwrap();
            let bound = |seconds| of(seconds).load(memory().period).unwrap().unwrap().bound.as_ppm();
            assert_eq!([Some(100), None].map(bound), [0.75; 2]);
            assert_eq!(bound(Some(700)), 20.75);
        }
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn another_counter_and_nonsense_are_not_believed() {
        let directory = scratch("nonsense");
        let store = store(&directory, CounterId::CPU, "boot-1", "tsc");
        store.save(memory()).unwrap();
        assert_eq!(store.load(Period::from_hertz(2.8e9).unwrap()).unwrap(), None);
        for damage in
            ["", "{}", "{\"counter\":\"tsc\",\"boot\":\"\",\"mantissa\":1,\"shift\":1,\"bound_ppm\":1}", "\u{0}"]
        {
            fs::write(directory.join("rate-tsc.json"), damage).unwrap();
            assert!(store.load(memory().period).is_err(), "{damage:?}");
        }
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_rate_that_cannot_be_stored_leaves_nothing_behind() {
        let directory = scratch("left-behind");
        fs::create_dir_all(directory.join("rate-tsc.json/in-the-way")).unwrap();
        assert!(store(&directory, CounterId::CPU, "boot-1", "tsc").save(memory()).is_err());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_place_where_nothing_can_be_written_is_reported_at_once() {
        let file = scratch("file");
        fs::write(&file, "").unwrap();
        assert!(store(&file.join("below"), CounterId::CPU, "boot-1", "tsc").check().is_err());
        fs::remove_file(file).unwrap();
    }
}

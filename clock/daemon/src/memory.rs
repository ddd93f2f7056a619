//! The rate of the counter, remembered across restarts: one small file for each counter.
//!
//! The wander that the data showed is remembered with it, and only ever becomes larger: an operator who knows better
//! removes the file.
//!
//! A remembered rate becomes a bound, so it is believed only as far as the counter is certainly the same. The kernel's
//! raw clock has another rate after each boot and with each clocksource. The CPU's counter keeps its crystal over a
//! boot but not its temperature, and a guest may be started on another machine.

use ffclock_counter::{CounterId, is_guest};
use ffclock_estimator::RateMemory;
use ffclock_units::{Period, Rate};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The version of the format on disk. The first had neither a version nor a wander, and is still read.
const VERSION: u32 = 2;

/// The format on disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(default = "first_version")]
    version: u32,
    counter: String,
    boot: String,
    clocksource: Option<String>,
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

/// The counter, boot and clocksource that a rate belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// Which counter it is.
    pub counter: CounterId,
    /// The identifier of the boot; empty where the kernel has none.
    pub boot: String,
    /// The kernel's clocksource.
    pub clocksource: Option<String>,
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
/// How far a crystal can have moved since an earlier boot: it may have been started cold, and has aged.
const OVER_A_BOOT: Rate = Rate::from_ppm(20.0);

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
        let stored = self.stored().ok().flatten().filter(|stored| stored.counter == self.now.counter.name());
        let stored = stored.and_then(|stored| stored.wander());
        stored.into_iter().chain(wander).max_by(|one, other| one.as_fraction().total_cmp(&other.as_fraction()))
    }

    /// How far the rate can have moved since it was stored; `None` where no limit is known.
    fn aging(&self, stored: &Stored) -> Option<Rate> {
        let this_boot = !self.now.boot.is_empty() && stored.boot == self.now.boot;
        match self.now.counter {
            CounterId::MonotonicRaw => (this_boot && stored.clocksource == self.now.clocksource).then_some(Rate::ZERO),
            _ if this_boot => Some(Rate::ZERO),
            CounterId::Tsc | CounterId::ArmVirtual | CounterId::Module(_) => (!is_guest()).then_some(OVER_A_BOOT),
        }
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
        RateStore::new(directory, Circumstances { counter, boot, clocksource })
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
        fs::write(&path, text.replace("\"version\":2", "\"version\":3,\"more\":1")).unwrap();
        let error = store.load(memory().period).unwrap_err().to_string();
        assert!(error.contains("version 3"), "{error}");
        let first = text.replace("\"version\":2,", "").replace(",\"wander_ppm\":2.0", "");
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
        assert_eq!(raw("boot-1", "hpet").load(memory().period).unwrap(), None);
        raw("", "tsc").save(memory()).unwrap();
        assert_eq!(raw("", "tsc").load(memory().period).unwrap(), None, "which boot is not known");
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

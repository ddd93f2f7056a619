//! The rate of the counter, remembered across restarts: one small file for each counter.

use ffclock_estimator::RateMemory;
use ffclock_units::{Period, Rate};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The form on disk. The frequency is kept beside the period, so that a file for another counter is recognised.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    counter: String,
    boot: String,
    mantissa: u64,
    shift: u8,
    bound_ppm: f64,
}

/// Where the rate of one counter is kept.
pub(crate) struct RateStore {
    path: PathBuf,
    counter: &'static str,
    boot: String,
}

/// A remembered rate farther than this from the nominal one belongs to another machine.
const FARTHEST: Rate = Rate::from_ppm(1000.0);

impl RateStore {
    /// The store of the counter called `counter` below `directory`, in the boot called `boot`.
    pub(crate) fn new(directory: &Path, counter: &'static str, boot: &str) -> Self {
        RateStore { path: directory.join(format!("rate-{counter}.json")), counter, boot: boot.to_owned() }
    }

    /// What was remembered, if it is about this counter.
    ///
    /// The kernel's raw clock has another rate after each boot, so its memory ends with the boot.
    ///
    /// # Errors
    /// The file cannot be read or makes no sense; a missing file is not an error.
    pub(crate) fn load(&self, nominal: Period) -> io::Result<Option<RateMemory>> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let stored: Stored = serde_json::from_slice(&text).map_err(io::Error::other)?;
        let period =
            Period::from_parts(stored.mantissa, stored.shift).ok_or_else(|| io::Error::other("no such period"))?;
        let bound = Rate::from_ppm(stored.bound_ppm);
        let this_counter = stored.counter == self.counter && period.relative_to(nominal).abs() < FARTHEST;
        let this_boot = stored.boot == self.boot || self.counter == "tsc";
        let sane = bound.as_fraction() > 0.0 && bound < FARTHEST;
        Ok((this_counter && this_boot && sane).then_some(RateMemory { period, bound }))
    }

    /// Remembers a rate. The file is replaced whole or not at all.
    ///
    /// # Errors
    /// The directory or the file cannot be written.
    pub(crate) fn save(&self, memory: RateMemory) -> io::Result<()> {
        let stored = Stored {
            counter: self.counter.to_owned(),
            boot: self.boot.clone(),
            mantissa: memory.period.mantissa(),
            shift: memory.period.shift(),
            bound_ppm: memory.bound.as_ppm(),
        };
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let fresh = self.path.with_extension("new");
        fs::write(&fresh, serde_json::to_vec(&stored).map_err(io::Error::other)?)?;
        fs::rename(&fresh, &self.path)
    }
}

/// What names the present boot; empty where the kernel does not say.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
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
        RateMemory { period: Period::from_hertz(2.9e9).unwrap(), bound: Rate::from_ppm(0.75) }
    }

    #[test]
    fn what_was_kept_comes_back_exactly() {
        let directory = scratch("round-trip");
        let store = RateStore::new(&directory, "tsc", "boot-1");
        assert_eq!(store.load(memory().period).unwrap(), None);
        store.save(memory()).unwrap();
        assert_eq!(store.load(memory().period).unwrap(), Some(memory()));
        assert_eq!(RateStore::new(&directory, "tsc", "boot-2").load(memory().period).unwrap(), Some(memory()));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_raw_clock_has_another_rate_after_each_boot() {
        let directory = scratch("boots");
        RateStore::new(&directory, "monotonic-raw", "boot-1").save(memory()).unwrap();
        let later = RateStore::new(&directory, "monotonic-raw", "boot-2");
        assert_eq!(later.load(memory().period).unwrap(), None);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn another_counter_and_nonsense_are_not_believed() {
        let directory = scratch("nonsense");
        let store = RateStore::new(&directory, "tsc", "boot-1");
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
}

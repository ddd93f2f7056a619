//! Finding the page and making sure that it is one.

use ffclock_counter::ffcounter::FfcounterError;
use ffclock_counter::{CounterId, USABLE, try_read};
use ffclock_page::{BootId, PageError, ReadError, Reader, check_history};
use ffclock_sys::{PageFileError, SharedHistoryReader, SharedPageReader, history_beside, places};
use ffclock_units::Counter;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that names another page.
const VARIABLE: &str = "FFCLOCK_PAGE";
/// The variable that names another VMClock.
const VM_CLOCK_VARIABLE: &str = "FFCLOCK_VMCLOCK";
/// Where the daemon of the system publishes.
const SYSTEM: &str = places::PAGE;

/// Why the clock cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file is missing, forbidden or not of a page's size.
    #[error("{error}{}", remedy(.error))]
    File {
        /// What is wrong with it.
        #[from]
        error: PageFileError,
    },
    /// The file has a page's size, and yet is not a page for this reader.
    #[error("{path}: {error}{}", page_remedy(.error))]
    Page {
        /// The file.
        path: PathBuf,
        /// What is wrong with the page.
        error: PageError,
    },
    /// The page is about a counter of the kernel that this program cannot read.
    #[error("{path} is about the counter {counter}: {error}")]
    Counter {
        /// The file.
        path: PathBuf,
        /// The counter.
        counter: CounterId,
        /// Why it cannot be read.
        error: FfcounterError,
    },
}

fn page_remedy(error: &PageError) -> &'static str {
    match error {
        PageError::Empty => " (start ffclockd, or wait for it)",
        _ => "; restart ffclockd of the same version as this library to rewrite it",
    }
}

fn remedy(error: &PageFileError) -> &'static str {
    match error {
        PageFileError::Missing(_) => " (start ffclockd, or name its page in FFCLOCK_PAGE)",
        PageFileError::Permission(_) => " (its mode should be 0644, and its directory's 0755)",
        PageFileError::Size { .. } | PageFileError::NotAFile(_) | PageFileError::Foreign { .. } => {
            ": it is not a clock page (name ffclockd's own; `ffclock status` shows where that is)"
        }
        PageFileError::Hole(_) => " (make room there and restart ffclockd)",
        PageFileError::NoSpace { .. } | PageFileError::Busy(_) | PageFileError::Io { .. } => "",
    }
}

/// Where the page is looked for: `$FFCLOCK_PAGE`; else `/run/ffclock/page`, if it is there; else
/// `$XDG_RUNTIME_DIR/ffclock/page`, if it is there. A program that runs with more rights than its caller does not let
/// the caller's environment choose its clock.
pub fn default_page() -> PathBuf {
    choose_path(|name| if privileged() { None } else { env::var_os(name) }, Path::exists)
}

fn choose_path(variable: impl Fn(&str) -> Option<OsString>, exists: impl Fn(&Path) -> bool) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = set(VARIABLE) {
        return path;
    }
    let system = PathBuf::from(SYSTEM);
    match set("XDG_RUNTIME_DIR").map(|directory| directory.join(places::OF_USER).join(places::PAGE_NAME)) {
        Some(user) if !exists(&system) && exists(&user) => user,
        _ => system,
    }
}

/// Where the VMClock of this machine is: `$FFCLOCK_VMCLOCK`, else the kernel's device.
pub(crate) fn vm_clock() -> PathBuf {
    let named = if privileged() { None } else { env::var_os(VM_CLOCK_VARIABLE) };
    named.filter(|value| !value.is_empty()).map_or_else(|| places::VM_CLOCK.into(), PathBuf::from)
}

/// Whether the program was started with rights that its caller has not (set-user-ID and the like).
#[cfg(target_os = "freebsd")]
fn privileged() -> bool {
    // SAFETY: issetugid takes no pointers and always succeeds.
    unsafe { libc::issetugid() != 0 }
}

/// Whether the program was started with rights that its caller has not (set-user-ID and the like).
#[cfg(target_os = "linux")]
fn privileged() -> bool {
    // SAFETY: getauxval reads a value that the kernel gave to the process, and takes no pointer.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Maps the page at `path` and checks its header.
pub(crate) fn open_page(path: &Path) -> Result<SharedPageReader, OpenError> {
    let page = SharedPageReader::open(path).map_err(|error| match error {
        // Cut off to nothing, or made by a program that has not come further: ffclockd makes a page of it.
        PageFileError::Size { path, found: 0, .. } => OpenError::Page { path, error: PageError::Empty },
        error => OpenError::File { error },
    })?;
    match Reader::new(page.words()).check_header(BootId::parse(&ffclock_counter::boot_id())) {
        Ok(()) => Ok(page),
        Err(error) => Err(OpenError::Page { path: path.to_owned(), error }),
    }
}

/// Maps the history beside the page at `path`. Where there is none, as with a daemon of an earlier build, or one that
/// this reader cannot read, the page alone has to do.
pub(crate) fn open_history(path: &Path) -> Option<SharedHistoryReader> {
    let history = SharedHistoryReader::open(&history_beside(path)).ok()?;
    let boot = BootId::parse(&ffclock_counter::boot_id());
    check_history(history.words(), boot).ok().map(|()| history)
}

/// Whether the counter of a page can be read at all. One that is asleep wakes up again.
pub(crate) fn check_counter(path: &Path, counter: CounterId) -> Result<(), OpenError> {
    match try_read(counter) {
        Ok(_) | Err(FfcounterError::Asleep(_)) => Ok(()),
        Err(error) => Err(OpenError::Counter { path: path.to_owned(), counter, error }),
    }
}

/// Reads the counter of a page.
pub(crate) fn read_counter(counter: CounterId) -> Result<Counter, ReadError> {
    if !USABLE.contains(&counter) {
        return Err(ReadError::OtherCounter(counter));
    }
    try_read(counter).map_err(|error| ReadError::CounterUnreadable { counter, why: in_short(&error) })
}

/// A reading that fails allocates nothing.
fn in_short(error: &FfcounterError) -> &'static str {
    match error {
        FfcounterError::Missing(_) => {
            "/dev/ffcounter is not there: load the kernel module ffcounter (see docs/kernel.md)"
        }
        FfcounterError::Permission(_) => {
            "/dev/ffcounter may not be opened: run as root or as a member of the group that owns it (see docs/kernel.md)"
        }
        FfcounterError::Version { .. } => {
            "/dev/ffcounter speaks another version of its interface: build module and program from the same source"
        }
        FfcounterError::Foreign(_) => "machines of this kind have none",
        FfcounterError::NoCounter(_) => {
            "this machine no longer has one (`ffclock-lab counters` lists those that it has)"
        }
        FfcounterError::Asleep(_) => "it is asleep: a suspend is under way, and a new epoch follows it",
        FfcounterError::StampingDenied | FfcounterError::Io { .. } => {
            "/dev/ffcounter fails: `ffclock-lab counters` shows the error, and the kernel's log may say why"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)], present: &[&str]) -> PathBuf {
        let variable = |name: &str| variables.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into());
        choose_path(variable, |path| present.iter().any(|there| Path::new(there) == path))
    }

    #[test]
    fn the_page_is_looked_for_in_order() {
        let runtime = ("XDG_RUNTIME_DIR", "/run/user/1000");
        let user = "/run/user/1000/ffclock/page";
        assert_eq!(chosen(&[], &[]), Path::new(SYSTEM));
        assert_eq!(chosen(&[runtime], &[]), Path::new(SYSTEM));
        assert_eq!(chosen(&[runtime], &[user]), Path::new(user));
        assert_eq!(chosen(&[runtime], &[user, SYSTEM]), Path::new(SYSTEM));
        assert_eq!(chosen(&[runtime, (VARIABLE, "/x")], &[user, SYSTEM]), Path::new("/x"));
        assert_eq!(chosen(&[(VARIABLE, "")], &[SYSTEM]), Path::new(SYSTEM));
    }

    #[test]
    fn this_machine_reads_its_own_counters_only() {
        assert!(read_counter(CounterId::CPU).is_ok());
        let foreign = if CounterId::CPU == CounterId::Tsc { CounterId::ArmVirtual } else { CounterId::Tsc };
        assert_eq!(read_counter(foreign), Err(ReadError::OtherCounter(foreign)));
    }
}

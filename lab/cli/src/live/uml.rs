//! The interposer compared with a real kernel: a guest of user-mode Linux, whose `kernel/time/ntp.c` does what the
//! interposer models. Both do the same script at the same time (`discipline.rs`), and the same daemons follow the same
//! server in both (`daemon.rs`). The guest's clock is read where it lies, in the memory
//! of its kernel, as the interposer's is read in its file.

mod daemon;
mod discipline;
mod history;
mod recording;
mod timekeeper;

use super::interposer;
use crate::failure::Failure;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a guest may take to begin, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
/// The exit code of tests/uml/guest where no guest can be had.
const SKIPPED: i32 = 77;

/// A directory of a test, which is gone with this value.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("ffclock-live-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A guest that runs the plan of its directory; it ends with this value, and with the thread that booted it.
#[derive(Debug)]
pub(super) struct Guest {
    directory: PathBuf,
    process: Child,
}

impl Guest {
    /// Boots a guest with this plan; none where the machine cannot, for a reason that is printed.
    pub(super) fn boot(directory: &Path, plan: &str) -> Option<Guest> {
        Guest::boot_within(&[], (directory, plan), &[])
    }

    /// The same within what the `entering` command enters, with more words for tests/uml/guest.
    fn boot_within(entering: &[&str], of: (&Path, &str), words: &[String]) -> Option<Guest> {
        let (directory, plan) = of;
        fs::write(directory.join("plan"), plan).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/uml/guest").display().to_string();
        let mut starter = Command::new("setpriv");
        starter.args(["--pdeathsig", "KILL"]).args(entering).arg(script).arg(directory).arg("PRIORITY=10").args(words);
        let process = starter.stdout(Stdio::inherit()).spawn().unwrap();
        let mut guest = Guest { directory: directory.to_owned(), process };
        let begin = Instant::now();
        while !guest.has("began") {
            if let Some(status) = guest.process.try_wait().unwrap() {
                assert_eq!(status.code(), Some(SKIPPED), "the guest did not begin: {}", guest.console());
                return None;
            }
            assert!(begin.elapsed() < PATIENCE, "the guest did not begin: {}", guest.console());
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(guest)
    }

    fn has(&self, name: &str) -> bool {
        fs::metadata(self.directory.join(name)).is_ok_and(|about| about.len() > 0)
    }

    fn console(&self) -> String {
        fs::read_to_string(self.directory.join("console.log")).unwrap_or_default()
    }

    /// Whether its plan has been run.
    pub(super) fn is_done(&self) -> bool {
        self.has("ended")
    }

    /// Whether its kernel runs.
    fn runs(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// The process that is its kernel: the only child of the one that holds its process namespace.
    fn kernel(&self) -> u32 {
        let holder = self.process.id();
        let children = fs::read_to_string(format!("/proc/{holder}/task/{holder}/children")).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One comparison at a time: guests before all ordinary programs would let each other wait.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_guest_ends_with_the_test_that_booted_it_however_that_ends() {
    let _alone = alone();
    let directory = Scratch::new("ends");
    // To the kernel, the parent of a process is the thread that started it.
    let guest = std::thread::scope(|scope| scope.spawn(|| Guest::boot(&directory, "sleep 600\n")).join().unwrap());
    let Some(mut guest) = guest else { return };
    let begin = Instant::now();
    while guest.runs() {
        assert!(begin.elapsed() < PATIENCE, "the guest runs on without the one that booted it");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Compiles the program that does a script: one for a guest, which has no libraries, and one for the interposer.
fn build_performers(directory: &Path) -> Result<(), Failure> {
    let source = include_str!("uml/performer.c");
    interposer::compile(directory, ("performer-static", source), &["-static"])?;
    interposer::compile(directory, ("performer", source), &[]).map(|_| ())
}

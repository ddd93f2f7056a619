//! What stands between the server and the contestants where the links are not direct: a program of ours (`router.c`),
//! or a guest of user-mode Linux whose kernel delays what passes with netem.
//!
//! The guest has two cards for each link, bridged, with a netem on each. A card is a tap in the router's network, where
//! it is bridged with the device of that side. The guest follows its timetable by itself. It has no real-time priority
//! and waits in no loop.

use super::netem::Timetable;
use super::path_file::Route;
use crate::failure::Failure;
use ffclock_units::Span;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Which router a run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RouterKind {
    /// A program that lets each frame wait as long as the simulator's law says
    #[default]
    Own,
    /// A guest of user-mode Linux with netem
    Uml,
}

/// How long a guest may take to boot, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);
/// How long a guest may take to say what passed.
const ENDING: Duration = Duration::from_secs(5);

/// A router of one session, ready to be started.
pub(super) enum Router {
    Program(Route),
    Guest(GuestRoute),
}

/// What the guest needs.
pub(super) struct GuestRoute {
    directory: PathBuf,
    /// The script that boots a guest.
    boot: PathBuf,
    timetable: Timetable,
    watched: Span,
}

/// What a guest's programs are linked with, where this host has it, as a word for tests/uml/guest.
pub(super) const LIBRARIES: &str = "\"LIBRARIES=/usr/lib64 /usr/lib/x86_64-linux-gnu\"";

/// Fails where there is no script that boots a guest.
pub(super) fn boot_is_there(boot: &Path) -> Result<(), Failure> {
    match boot.exists() {
        true => Ok(()),
        false => Err(format!("{} is missing; name what boots a guest with --guest", boot.display()).into()),
    }
}

impl GuestRoute {
    /// Where the script that boots a guest is there; `watched` is what earlier sessions have.
    pub(super) fn prepare(directory: &Path, boot: &Path, timetable: Timetable, watched: Span) -> Result<Self, Failure> {
        boot_is_there(boot)?;
        let boot = std::path::absolute(boot)?;
        Ok(GuestRoute { directory: directory.to_owned(), boot, timetable, watched })
    }

    fn command(&self, links: usize) -> Vec<String> {
        let taps =
            (0..links).flat_map(|link| ["s", "c"].map(|side| format!("TAP={}", super::network::tap(side, link))));
        let words = [self.boot.display().to_string(), self.directory.display().to_string()];
        // The programs of this host, tc among them, and what they are linked with.
        let host = ["PROGRAMS=/usr/sbin", LIBRARIES].map(str::to_owned);
        // Before others where they all want a processor, but not at a priority that could keep them from theirs.
        let first = ["nice", "-n", "-10"].map(str::to_owned);
        first.into_iter().chain(words).chain(taps).chain(host).collect()
    }

    /// Writes the plan of the guest, and takes away what an earlier session left.
    fn write_plan(&self, links: usize) -> Result<(), Failure> {
        for name in ["began", "ended", "ready", "go", "leave", "passed"] {
            let file = self.directory.join(name);
            file.exists().then(|| fs::remove_file(&file)).transpose()?;
        }
        fs::write(self.directory.join("plan"), self.timetable.script(links, self.watched)).map_err(Failure::from)
    }

    fn has(&self, name: &str) -> bool {
        self.directory.join(name).exists()
    }

    /// Waits until it says so.
    fn wait_for(
        &self,
        name: &str,
        patience: Duration,
        mut check: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        while !self.has(name) {
            check()?;
            if begun.elapsed() > patience {
                return Err(format!("the guest that is the router is not {name}").into());
            }
            sleep(STEP);
        }
        Ok(())
    }
}

impl Router {
    /// The command of the router for this many links.
    pub(super) fn command(&self, links: usize) -> Result<Vec<String>, Failure> {
        match self {
            Router::Program(route) => Ok(route.command(links)),
            Router::Guest(guest) => guest.write_plan(links).map(|()| guest.command(links)),
        }
    }

    /// Whether each side of a link needs a tap.
    pub(super) fn needs_taps(&self) -> bool {
        matches!(self, Router::Guest(_))
    }

    /// Before it is started.
    pub(super) fn write_path(&self) -> Result<(), Failure> {
        match self {
            Router::Program(route) => route.write(),
            Router::Guest(_) => Ok(()),
        }
    }

    /// Once it is started: waits until packets pass. `check` fails when it has ended.
    pub(super) fn wait_until_ready(&self, check: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
        let Router::Guest(guest) = self else { return Ok(()) };
        let said = |failure| match self.said(&guest.directory) {
            said if said.is_empty() => failure,
            said => Failure::from(format!("{failure}: {said}")),
        };
        guest.wait_for("ready", PATIENCE, check).map_err(said)
    }

    /// Lets its timetable begin. Until then packets meet what the session begins with.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        match self {
            Router::Program(route) => route.begin(),
            Router::Guest(guest) => fs::write(guest.directory.join("go"), "").map_err(Failure::from),
        }
    }

    /// Lets it say what passed, and end.
    pub(super) fn leave(&self) {
        let Router::Guest(guest) = self else { return };
        if guest.has("ready") && fs::write(guest.directory.join("leave"), "").is_ok() {
            let _ = guest.wait_for("ended", ENDING, || Ok(()));
        }
    }

    /// What it said at its end.
    pub(super) fn said(&self, directory: &Path) -> String {
        let file = if self.needs_taps() { "passed" } else { "log" };
        fs::read_to_string(directory.join(file)).unwrap_or_default().trim().to_owned()
    }
}

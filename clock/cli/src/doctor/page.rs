//! The page and what stands around it: can programs read it, is it alive, may others write it.

use super::catalogue::{self as fault, Diagnosis};
use ffclock::{Clock, OpenError, PageError, ReadError};
use ffclock_sys::{PageFileError, history_beside};
use ffclock_units::Status;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// What is wrong with the page at `path`.
pub(crate) fn examine(path: &Path) -> Vec<Diagnosis> {
    let mut found = rights(path);
    match Clock::open_at(path) {
        Ok(clock) => found.extend(read(&clock, path)),
        Err(error) => found.push(unopened(&error)),
    }
    if path.exists() && !history_beside(path).exists() {
        found.push(fault::HISTORY_MISSING.seen(format!("{} is not there", history_beside(path).display())));
    }
    found
}

fn unopened(error: &OpenError) -> Diagnosis {
    let check = match error {
        OpenError::File { error: PageFileError::Missing(_) } => fault::PAGE_MISSING,
        OpenError::File { error: PageFileError::Permission(_) } => fault::PAGE_RIGHTS,
        OpenError::File { error: PageFileError::Hole(_) | PageFileError::NoSpace { .. } } => fault::PAGE_HOLE,
        OpenError::File { .. } | OpenError::Page { error: PageError::NotAPage, .. } => fault::PAGE_FOREIGN,
        OpenError::Page { error: PageError::Version(_) | PageError::Size(_), .. } => fault::PAGE_VERSION,
        OpenError::Page { error: PageError::OtherBoot, .. } => fault::PAGE_OTHER_BOOT,
        OpenError::Page { error: PageError::Empty, .. } => fault::CLOCK_UNSET,
        OpenError::Page { .. } => fault::PAGE_DAMAGED,
        OpenError::Counter { .. } => fault::PAGE_COUNTER,
    };
    check.seen(error.to_string())
}

/// What a reader of the page would be given.
fn read(clock: &Clock, path: &Path) -> Option<Diagnosis> {
    let check = match clock.now() {
        Ok(reading) if reading.status != Status::Unsynchronised => return None,
        Ok(reading) => {
            let seen = format!("{} has passed its date; its bound has grown to {}", path.display(), reading.bound);
            return Some(fault::PAGE_STALE.seen(seen));
        }
        Err(ReadError::NoEstimate | ReadError::Disrupted | ReadError::Page(PageError::Empty)) => fault::CLOCK_UNSET,
        Err(ReadError::OtherCounter(_) | ReadError::CounterUnreadable { .. }) => fault::PAGE_COUNTER,
        Err(_) => fault::PAGE_DAMAGED,
    };
    clock.now().err().map(|error| check.seen(format!("{}: {error}", path.display())))
}

/// Who may read and write the page, by its mode and that of its directory.
fn rights(path: &Path) -> Vec<Diagnosis> {
    let directory = path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let about = |path: &Path| std::fs::metadata(path).ok().map(|about| (path.display().to_string(), about));
    let page = about(path).filter(|(_, about)| about.is_file());
    let around = directory.and_then(about);
    let mut found = Vec::new();
    let writable = [(&page, 0o022), (&around, 0o022)].into_iter().filter_map(|(file, mask)| lax(file.as_ref(), mask));
    found.extend(writable.map(|seen| fault::PAGE_WRITABLE.seen(seen)));
    let hidden = [(&page, 0o004), (&around, 0o001)].into_iter().filter_map(|(file, mask)| closed(file.as_ref(), mask));
    found.extend(hidden.map(|seen| fault::PAGE_HIDDEN.seen(seen)));
    found
}

/// A file that others may change. In a directory with the sticky bit they may not replace what is not theirs.
fn lax(file: Option<&(String, Metadata)>, mask: u32) -> Option<String> {
    let (name, about) = file?;
    let mode = about.permissions().mode();
    let is_guarded = about.is_dir() && mode & 0o1000 != 0;
    (mode & mask != 0 && !is_guarded).then(|| described(name, about))
}

fn closed(file: Option<&(String, Metadata)>, mask: u32) -> Option<String> {
    let (name, about) = file?;
    (about.permissions().mode() & mask == 0).then(|| described(name, about))
}

fn described(name: &str, about: &Metadata) -> String {
    format!("{name} has the mode {:04o} and belongs to user {}", about.permissions().mode() & 0o7777, about.uid())
}

/// Whether two paths are one file.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    one == other || identity(one).is_some_and(|found| identity(other) == Some(found))
}

//! A tracing instance of our own: made, filled, read and removed.

use super::buffer::{BufferPage, Lost};
use super::format::{EventFormat, FormatError};
use crate::ffi;
use ffclock_counter::CounterId;
use ffclock_counter::ffcounter::ModuleCounter;
use ffclock_units::Counter;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Where tracefs is mounted, where it is.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Instances of ours are called by this and the number of their process.
const PREFIX: &str = "ffclock-";
/// A buffer for one event.
const SMALL_KILOBYTES: u32 = 8;
/// A page of the buffer is a page of memory, unless `buffer_subbuf_size_kb` was changed, which we never do.
const PAGE_BYTES: usize = 65_536;

/// Why the kernel cannot trace for us.
#[derive(Debug, Error)]
pub enum TraceUnavailable {
    /// There is no tracefs, or we may not look at it.
    #[error("no access to the kernel's tracing ({0}); run as root, or mount tracefs at {place} and run with CAP_DAC_OVERRIDE", place = PLACES[0])]
    NoTracefs(io::Error),
    /// The instance could not be made.
    #[error(
        "cannot make a tracing instance: {0}; tracefs belongs to root: run as root or with CAP_DAC_OVERRIDE, without a user namespace"
    )]
    NoInstance(io::Error),
    /// The kernel has no trace clock that is the counter in use.
    #[error("the kernel cannot stamp events with the counter {0}")]
    NoClock(CounterId),
    /// The kernel has no such event.
    #[error("the kernel has no event {event}: {error}")]
    NoEvent {
        /// The event, as `group/name`.
        event: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// The kernel describes an event in words that we do not understand.
    #[error("cannot understand the format of the event {event}: {error}")]
    Format {
        /// The event, as `group/name`.
        event: String,
        /// What is wrong.
        error: FormatError,
    },
    /// The kernel's event lacks a field that we need.
    #[error("the event {event} has no field {field} in this kernel")]
    NoField {
        /// The event, as `group/name`.
        event: String,
        /// The field.
        field: String,
    },
    /// A setting was refused.
    #[error("the kernel refuses the tracing setting {setting}: {error}")]
    Setting {
        /// File and value.
        setting: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// The events of a CPU cannot be read.
    #[error("cannot read the events of a CPU: {0}")]
    NoBuffer(io::Error),
}

/// One event, as it lies in the buffer.
#[derive(Clone, Copy, Debug)]
pub struct TraceEvent<'a> {
    /// When, by the counter that the instance was made for.
    pub counter: Counter,
    /// On which CPU.
    pub cpu: u16,
    /// Its bytes, which an [`EventFormat`] explains.
    pub bytes: &'a [u8],
}

impl TraceEvent<'_> {
    /// Which kind of event.
    pub fn id(&self) -> Option<u16> {
        self.bytes.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
    }
}

/// A tracing instance; removed when dropped.
#[derive(Debug)]
pub struct TraceInstance {
    root: PathBuf,
    buffers: Vec<(u16, File)>,
    scratch: Vec<u8>,
    /// The private mount, where tracefs is not mounted.
    _mount: Option<OwnedFd>,
}

impl TraceInstance {
    /// Makes an instance whose events are stamped with `counter`, with a buffer of `kilobytes` for each CPU. Removes
    /// instances that processes of ours left behind which ended without a chance to do it themselves.
    ///
    /// # Errors
    /// The kernel or its rights do not allow it; each error says what would help.
    pub fn create(counter: CounterId, kilobytes: u32) -> Result<Self, TraceUnavailable> {
        let clock = clock_name(counter).ok_or(TraceUnavailable::NoClock(counter))?;
        let (tracefs, mount) = find_tracefs().map_err(TraceUnavailable::NoTracefs)?;
        let instances = tracefs.join("instances");
        remove_orphans(&instances);
        let root = make_directory(&instances).map_err(TraceUnavailable::NoInstance)?;
        let mut instance = TraceInstance { root, buffers: Vec::new(), scratch: vec![0; PAGE_BYTES], _mount: mount };
        instance.set("trace_clock", clock).map_err(|_| TraceUnavailable::NoClock(counter))?;
        instance.set("buffer_size_kb", &kilobytes.to_string())?;
        instance.open_buffers().map_err(TraceUnavailable::NoBuffer)?;
        Ok(instance)
    }

    /// Traces the event `group/name` from now on, where `filter` (Documentation/trace/events.rst, "Event filtering") is
    /// true.
    ///
    /// # Errors
    /// There is no such event, or the kernel does not take the filter.
    pub fn enable(&mut self, event: &str, filter: &str) -> Result<EventFormat, TraceUnavailable> {
        let directory = Path::new("events").join(event);
        let text = fs::read_to_string(self.root.join(&directory).join("format"))
            .map_err(|error| TraceUnavailable::NoEvent { event: event.to_owned(), error })?;
        let format =
            EventFormat::parse(&text).map_err(|error| TraceUnavailable::Format { event: event.to_owned(), error })?;
        if !filter.is_empty() {
            self.set(directory.join("filter"), filter)?;
        }
        self.set(directory.join("enable"), "1")?;
        Ok(format)
    }

    /// Traces the event `group/name` no longer.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn disable(&mut self, event: &str) -> Result<(), TraceUnavailable> {
        self.set(Path::new("events").join(event).join("enable"), "0")
    }

    /// Hands over all events that are waiting, those of one CPU after those of another and in order of time for each.
    /// Returns how many were lost since the last call.
    ///
    /// # Errors
    /// The buffer cannot be read.
    pub fn drain(&mut self, mut take: impl FnMut(TraceEvent<'_>)) -> io::Result<Lost> {
        let mut lost = Lost::None;
        for (cpu, buffer) in &mut self.buffers {
            loop {
                let length = match buffer.read(&mut self.scratch) {
                    Ok(0) => break,
                    Ok(length) => length,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                let Some(page) = self.scratch.get(..length).and_then(BufferPage::new) else { break };
                lost = lost.and(page.lost());
                for (time, bytes) in page {
                    take(TraceEvent { counter: Counter::from_raw(time), cpu: *cpu, bytes });
                }
            }
        }
        Ok(lost)
    }

    /// The number by which events know the calling thread; `None` where the kernel does not say. It is that of the
    /// first process namespace, which a thread in another one (a container) cannot learn otherwise: an event of its own
    /// shows it. Events that wait are discarded, so this comes before anything is enabled.
    pub fn own_thread(&mut self) -> Option<u64> {
        let text = fs::read_to_string(self.root.join("events/ftrace/print/format")).ok()?;
        let format = EventFormat::parse(&text).ok()?;
        let field = format.field("common_pid")?;
        self.set("trace_marker", "who writes this?").ok()?;
        let mut found = None;
        let is_ours = |event: &TraceEvent<'_>| event.id() == Some(format.id());
        self.drain(|event| found = if is_ours(&event) { field.number(event.bytes) } else { found }).ok()?;
        found
    }

    /// Its directory in tracefs.
    pub fn path(&self) -> &Path {
        &self.root
    }

    fn open_buffers(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(self.root.join("per_cpu"))? {
            let path = entry?.path();
            let Some(cpu) = number_after(&path, "cpu") else { continue };
            let file =
                OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path.join("trace_pipe_raw"))?;
            self.buffers.push((cpu, file));
        }
        self.buffers.sort_by_key(|(cpu, _)| *cpu);
        Ok(())
    }

    fn set(&self, file: impl AsRef<Path>, value: &str) -> Result<(), TraceUnavailable> {
        let file = file.as_ref();
        let written = OpenOptions::new().write(true).open(self.root.join(file));
        written
            .and_then(|mut file| file.write_all(value.as_bytes()))
            .map_err(|error| TraceUnavailable::Setting { setting: format!("{} = {value}", file.display()), error })
    }
}

impl Drop for TraceInstance {
    fn drop(&mut self) {
        // An instance whose files are open cannot be removed.
        self.buffers.clear();
        // What cannot be removed now is removed by the next instance that is made.
        let _ = fs::remove_dir(&self.root);
    }
}

impl Lost {
    fn and(self, other: Lost) -> Lost {
        match (self, other) {
            (Lost::None, other) | (other, Lost::None) => other,
            (Lost::Counted(one), Lost::Counted(two)) => Lost::Counted(one.saturating_add(two)),
            _ => Lost::Some,
        }
    }
}

/// The trace clock that is this counter, raw.
fn clock_name(counter: CounterId) -> Option<&'static str> {
    match counter {
        CounterId::Tsc | CounterId::Module(ModuleCounter::Tsc) => Some("x86-tsc"),
        CounterId::MonotonicRaw => Some("mono_raw"),
        CounterId::ArmVirtual | CounterId::Module(_) => None,
    }
}

/// The number by which tracing events know the calling thread, as [`TraceInstance::own_thread`] finds it; where the
/// kernel does not trace for us, the thread's own, which is the same outside process namespaces.
pub fn thread_in_events() -> u64 {
    let instance = TraceInstance::create(CounterId::MonotonicRaw, SMALL_KILOBYTES).ok();
    let seen = instance.and_then(|mut instance| instance.own_thread());
    seen.unwrap_or_else(|| u64::from(ffi::own_thread().unsigned_abs()))
}

fn find_tracefs() -> io::Result<(PathBuf, Option<OwnedFd>)> {
    let mounted = PLACES.map(PathBuf::from).into_iter().find(|place| place.join("instances").is_dir());
    if let Some(place) = mounted {
        return Ok((place, None));
    }
    let mount = ffi::mount_privately(c"tracefs")?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
    Ok((path, Some(mount)))
}

/// One process may have several instances.
fn make_directory(instances: &Path) -> io::Result<PathBuf> {
    let name = format!("{PREFIX}{}", std::process::id());
    let mut result = Err(io::ErrorKind::AlreadyExists.into());
    for number in 0..64 {
        let path = instances.join(format!("{name}-{number}"));
        result = fs::create_dir(&path).map(|()| path);
        if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            continue;
        }
        break;
    }
    result
}

/// Removes instances of processes that have ended. One that is in use, by a process that cannot be seen from here, is
/// busy and stays.
fn remove_orphans(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_orphan = owner(&path).is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists());
        if is_orphan {
            let _ = fs::remove_dir(&path);
        }
    }
}

fn owner(instance: &Path) -> Option<u32> {
    instance.file_name()?.to_str()?.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

fn number_after(path: &Path, prefix: &str) -> Option<u16> {
    path.file_name()?.to_str()?.strip_prefix(prefix)?.parse().ok()
}

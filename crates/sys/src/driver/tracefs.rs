//! Packets as the kernel's own tracepoints see them, on a stock kernel: an instance of tracefs of our own, whose clock is the raw TSC.
//!
//! The instance is called after this process and removed when it is dropped; one that a killed process left behind is removed by the next.

use super::ring::{EventFormat, raw_events};
use super::{Passage, Side};
use crate::ffi;
use ffclock_units::Counter;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PREFIX: &str = "ffclock-";
const SENDING: &str = "events/net/net_dev_start_xmit";
const RECEIVING: &str = "events/net/netif_receive_skb";
/// A page of the buffer; larger ones do not exist on x86.
const PAGE: usize = 4096;
/// Pages read from one CPU in one go.
const MOST_PAGES: usize = 64;
/// The shortest and longest packet of interest, IP header included: UDP payloads of 48 to 1024 bytes.
const LENGTHS: (usize, usize) = (76, 1072);

/// An instance of tracefs with our events.
#[derive(Debug)]
pub(super) struct TraceInstance {
    /// Before the directory, which cannot be removed while one is open.
    pipes: Vec<File>,
    sending: EventFormat,
    receiving: EventFormat,
    _directory: Directory,
}

/// Goes away with what is in it.
#[derive(Debug)]
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // A reader elsewhere may hold it; the next process that starts tries again.
        let _ = fs::remove_dir(&self.0);
    }
}

fn explained(path: &Path, error: &io::Error) -> io::Error {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => " (run as root, or give this user tracefs: mount -o remount,gid=...)",
        io::ErrorKind::NotFound => " (mount tracefs on /sys/kernel/tracing; the kernel needs CONFIG_TRACING)",
        _ => "",
    };
    io::Error::new(error.kind(), format!("{}: {error}{remedy}", path.display()))
}

fn write(directory: &Path, file: &str, text: &str) -> io::Result<()> {
    let path = directory.join(file);
    fs::write(&path, text).map_err(|error| explained(&path, &error))
}

fn root() -> io::Result<&'static Path> {
    let found = ROOTS.into_iter().map(Path::new).find(|root| root.join("instances").is_dir());
    found.ok_or_else(|| explained(Path::new(ROOTS[0]), &io::ErrorKind::NotFound.into()))
}

/// Removes instances whose process is gone.
fn remove_stale(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl TraceInstance {
    /// Makes an instance that sees what the calling thread sends and what this host receives.
    pub(super) fn start() -> io::Result<Self> {
        let instances = root()?.join("instances");
        remove_stale(&instances);
        let thread = ffi::own_thread();
        let directory = Directory(instances.join(format!("{PREFIX}{}-{thread}", std::process::id())));
        fs::create_dir(&directory.0).map_err(|error| explained(&directory.0, &error))?;
        let place = directory.0.as_path();
        write(place, "trace_clock", "x86-tsc")?;
        write(place, "buffer_size_kb", "128")?;
        let (shortest, longest) = LENGTHS;
        let sending = enable(place, SENDING, &format!("common_pid == {thread}"))?;
        let receiving = enable(place, RECEIVING, &format!("len >= {shortest} && len <= {longest}"))?;
        let pipes = open_pipes(place)?;
        Ok(TraceInstance { pipes, sending, receiving, _directory: directory })
    }

    /// What passed since the last call.
    pub(super) fn drain(&mut self, tell: &mut dyn FnMut(Passage)) {
        let mut page = [0; PAGE];
        for pipe in &mut self.pipes {
            for _ in 0..MOST_PAGES {
                let Ok(length @ 1..) = pipe.read(&mut page) else { break };
                for event in raw_events(page.get(..length).unwrap_or_default()) {
                    passage(&self.sending, &self.receiving, event.fields, event.time).into_iter().for_each(&mut *tell);
                }
            }
        }
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &Path {
        &self._directory.0
    }
}

fn passage(sending: &EventFormat, receiving: &EventFormat, fields: &[u8], time: u64) -> Option<Passage> {
    let (side, length) = match sending.length_in(fields) {
        Some(length) => (Side::Sent, length),
        None => (Side::Received, receiving.length_in(fields)?),
    };
    Some(Passage { counter: Counter::from_raw(time), side, ip_length: usize::try_from(length).ok()? })
}

fn enable(place: &Path, event: &str, filter: &str) -> io::Result<EventFormat> {
    let path = place.join(event).join("format");
    let text = fs::read_to_string(&path).map_err(|error| explained(&path, &error))?;
    let format =
        EventFormat::parse(&text).ok_or_else(|| io::Error::other(format!("{}: not understood", path.display())))?;
    write(place, &format!("{event}/filter"), filter)?;
    write(place, &format!("{event}/enable"), "1")?;
    Ok(format)
}

fn open_pipes(place: &Path) -> io::Result<Vec<File>> {
    let directory = place.join("per_cpu");
    let entries = fs::read_dir(&directory).map_err(|error| explained(&directory, &error))?;
    entries
        .map(|entry| {
            let path = entry?.path().join("trace_pipe_raw");
            let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
            opened.map_err(|error| explained(&path, &error))
        })
        .collect()
}

//! What a bug report needs, in one archive (tar, POSIX.1-1988 ustar): the findings, the daemon's state, its
//! configuration, its log and the recordings of the last day. Keys are never in it.

use super::host::{HostFiles, ask_program};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Recordings beyond this are left out [bytes].
const LONGEST_RECORDINGS: u64 = 64 << 20;
const DAY: Duration = Duration::from_secs(86_400);
const BLOCK: usize = 512;

/// An archive that grows by files.
pub(crate) struct Bundle<W: Write> {
    out: W,
    made: SystemTime,
}

impl<W: Write> Bundle<W> {
    /// An empty archive whose files bear this time.
    pub(crate) fn new(out: W, made: SystemTime) -> Self {
        Bundle { out, made }
    }

    /// Adds a file. The name has at most 99 bytes; a longer one loses its end.
    pub(crate) fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let seconds = self.made.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        self.out.write_all(&header(name, content.len() as u64, seconds))?;
        self.out.write_all(content)?;
        self.out.write_all(&[0; BLOCK][..content.len().wrapping_neg() % BLOCK])
    }

    /// Ends it: two empty blocks.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()
    }
}

/// The header of a regular file (ustar, section 10.1.1).
fn header(name: &str, bytes: u64, seconds: u64) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, value: &[u8]| header[at..at + value.len()].copy_from_slice(value);
    put(0, &name.as_bytes()[..name.len().min(99)]);
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{bytes:011o}\0").as_bytes());
    put(136, format!("{seconds:011o}\0").as_bytes());
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Adds what the host shows: its kernel, processor and clocksource, the page, the log of the last day.
pub(crate) fn add_host<W: Write>(bundle: &mut Bundle<W>, files: &HostFiles, page: &Path) -> io::Result<()> {
    let facts = [
        "/proc/version",
        "/proc/cmdline",
        "/proc/cpuinfo",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "/etc/os-release",
    ];
    for path in facts {
        if let Some(text) = files.read(path) {
            bundle.add(&format!("host{path}"), text.as_bytes())?;
        }
    }
    if let Some(bytes) = bytes_of(page, 1 << 16) {
        bundle.add("page", &bytes)?;
    }
    // Newest first: of a long log the end is what matters.
    let log =
        ["--unit=ffclockd", "--since=-1d", "--lines=20000", "--reverse", "--no-pager", "--output=short-iso-precise"];
    match ask_program("journalctl", &log) {
        Some(answer) => bundle.add("log.txt", answer.text.as_bytes()),
        None => Ok(()),
    }
}

/// Adds the recordings in this directory that grew within the last day, newest first, as far as there is room.
pub(crate) fn add_recordings<W: Write>(bundle: &mut Bundle<W>, directory: &Path) -> io::Result<()> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    let mut recent: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok().filter(|about| about.is_file())?, entry.path())))
        .filter_map(|(about, path)| Some((about.modified().ok()?.elapsed().unwrap_or_default(), about.len(), path)))
        .filter(|(age, _, _)| *age < DAY)
        .collect();
    recent.sort();
    let mut room = LONGEST_RECORDINGS;
    for (_, length, path) in recent {
        let Some(left) = room.checked_sub(length) else { break };
        if let (Some(bytes), Some(name)) = (bytes_of(&path, length), path.file_name()) {
            bundle.add(&format!("recordings/{}", name.to_string_lossy()), &bytes)?;
        }
        room = left;
    }
    Ok(())
}

fn bytes_of(path: &Path, most: u64) -> Option<Vec<u8>> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_adds_up() {
        let header = header("findings.json", 8, 0);
        let sum: u32 = header
            .iter()
            .enumerate()
            .map(|(at, &byte)| u32::from(if (148..156).contains(&at) { b' ' } else { byte }))
            .sum();
        assert_eq!(&header[148..154], format!("{sum:06o}").as_bytes());
        let mut archive = Vec::new();
        let mut bundle = Bundle::new(&mut archive, SystemTime::UNIX_EPOCH);
        bundle.add("findings.json", b"12345678").unwrap();
        bundle.add("empty", b"").unwrap();
        bundle.end().unwrap();
        assert_eq!(archive.len(), 5 * BLOCK, "two headers, one block of content, two of the end");
    }
}

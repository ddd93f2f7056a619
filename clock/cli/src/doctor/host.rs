//! What the doctor reads of a host: files below one root, processes, and the answers of other programs.
//!
//! Everything is bounded: files in size, programs in time. A file that cannot be read is a fact that is not known, and
//! never a finding by itself.

use rustix::fs::StatVfs;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Files of /proc and configurations are shorter.
const LONGEST_FILE: u64 = 1 << 20;
/// How long another program may take. The doctor asks two, and has to end within five seconds.
const PATIENCE: Duration = Duration::from_millis(1500);

/// A host, or a system that is mounted below a directory.
pub(crate) struct HostFiles {
    root: PathBuf,
}

/// A process of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostProcess {
    /// Its number.
    pub(crate) pid: u32,
    /// Its name, as the kernel keeps it: 15 characters at most.
    pub(crate) name: String,
    /// The user that it runs as.
    pub(crate) user: Option<u32>,
    /// How much it yields to others; positive is a low priority.
    pub(crate) nice: i64,
}

/// What another program answered.
pub(crate) struct ProgramAnswer {
    /// Whether it ended well.
    pub(crate) is_well: bool,
    /// What it printed, standard output first.
    pub(crate) text: String,
}

impl HostFiles {
    /// The host below this directory.
    pub(crate) fn below(root: &Path) -> Self {
        HostFiles { root: root.to_owned() }
    }

    /// Where a path of the host is for us.
    pub(crate) fn place(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The beginning of a file; `None` where it cannot be read. A queue or a device is not opened.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let path = self.place(path);
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(LONGEST_FILE).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What a path is.
    pub(crate) fn about(&self, path: impl AsRef<Path>) -> Option<Metadata> {
        fs::metadata(self.place(path)).ok()
    }

    /// Whether this is the system of a container, by the files that Docker, Podman and systemd put there.
    pub(crate) fn is_container(&self) -> bool {
        ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"].iter().any(|sign| self.about(sign).is_some())
    }

    /// The room in the file system of a path, or of the nearest directory above it.
    pub(crate) fn room(&self, path: impl AsRef<Path>) -> Option<StatVfs> {
        let path = self.place(path);
        let there = path.ancestors().find(|above| above.exists())?;
        rustix::fs::statvfs(there).ok()
    }

    /// The processes that /proc shows, but for those of containers, which have a second number in their own namespace.
    pub(crate) fn processes(&self) -> Vec<HostProcess> {
        let Ok(entries) = fs::read_dir(self.place("/proc")) else { return Vec::new() };
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut processes: Vec<HostProcess> = numbers.filter_map(|pid| self.process(pid)).collect();
        processes.sort_by_key(|process| process.pid);
        processes
    }

    fn process(&self, pid: u32) -> Option<HostProcess> {
        let status = self.read(format!("/proc/{pid}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line[name.len()..].split_ascii_whitespace().next().map(str::to_owned)
        };
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        if numbers.split_ascii_whitespace().count() > 1 {
            return None;
        }
        let user = field("Uid:").and_then(|user| user.parse().ok());
        let name = field("Name:")?;
        let nice = self.read(format!("/proc/{pid}/stat")).and_then(|stat| nice_of(&stat)).unwrap_or(0);
        Some(HostProcess { pid, name, user, nice })
    }
}

/// The field `nice` of /proc/PID/stat (proc(5)). The name before it may contain anything.
fn nice_of(stat: &str) -> Option<i64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(16)?.parse().ok()
}

/// What a program answers; `None` where it is not there or does not end in time.
pub(crate) fn ask_program(program: &str, arguments: &[&str]) -> Option<ProgramAnswer> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let deadline = Instant::now() + PATIENCE;
    let pipes = (child.stdout.take()?, child.stderr.take()?);
    let reader = std::thread::spawn(move || {
        let mut octets = Vec::new();
        let _ = pipes.0.take(LONGEST_FILE).read_to_end(&mut octets);
        let _ = pipes.1.take(LONGEST_FILE).read_to_end(&mut octets);
        // Cut off, it may end within a character.
        String::from_utf8_lossy(&octets).into_owned()
    });
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                return Some(ProgramAnswer { is_well: status.success(), text: reader.join().ok()? });
            }
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// Where `ffclockd` is: in PATH, or beside this program.
pub(crate) fn daemon_program() -> Option<PathBuf> {
    const NAME: &str = "ffclockd";
    let in_path = std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path).map(|directory| directory.join(NAME)).find(|file| file.is_file())
    });
    let beside = || std::env::current_exe().ok().map(|own| own.with_file_name(NAME)).filter(|file| file.is_file());
    in_path.or_else(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_move_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 25 5 1 0 100 1 1";
        assert_eq!(nice_of(stat), Some(5));
    }

    #[test]
    fn a_program_that_does_not_end_is_given_up() {
        let begin = Instant::now();
        assert!(ask_program("sleep", &["60"]).is_none());
        assert!(begin.elapsed() < Duration::from_secs(20));
        assert!(ask_program("/nowhere/ffclockd", &[]).is_none());
        let answer = ask_program("sh", &["-c", "echo out; echo err >&2; exit 1"]).unwrap();
        assert!(!answer.is_well && answer.text == "out\nerr\n", "{}", answer.text);
        let long = ask_program("sh", &["-c", "printf x; yes \u{e9} | tr -d '\\n' | head -c 3000000"]).unwrap();
        assert_eq!(
            long.text.chars().count(),
            1 + (LONGEST_FILE as usize - 1).div_ceil(2),
            "cut off within a character"
        );
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let host = HostFiles::below(Path::new("/"));
        assert_eq!(host.read("/dev/zero"), None);
        assert_eq!(host.place("/proc/version"), Path::new("/proc/version"));
        assert!(host.processes().iter().any(|process| process.pid == std::process::id()));
        assert!(host.room("/not/there").is_some());
    }
}

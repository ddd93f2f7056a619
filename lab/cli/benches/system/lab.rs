//! Programs under measurement: where they are, how they are started and ended, what the kernel says of them.

use std::error::Error;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The laboratory's command of the same build.
pub(crate) const FFCLOCK_LAB: &str = env!("CARGO_BIN_EXE_ffclock-lab");
/// The wrapper around the unpacked chronyd, which takes the right to set the clock from it.
const CHRONYD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/peers/chronyd");

/// A directory for one part, removed in the end.
pub(crate) struct Lab {
    directory: PathBuf,
}

impl Lab {
    pub(crate) fn new(part: &str) -> Result<Self, Box<dyn Error>> {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{part}-{}", std::process::id()));
        // chronyd works in no directory that others may write to.
        fs::DirBuilder::new().recursive(true).mode(0o750).create(&directory)?;
        Ok(Lab { directory })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Starts `ffclockd` with its page, its control socket and its log under `name`. It asks the server on loopback at
    /// `port`.
    pub(crate) fn start_daemon(&self, name: &str, port: u16, poll: &str) -> Result<Program, Box<dyn Error>> {
        let directory = self.directory.display();
        let text = format!(
            "page = \"{directory}/{name}.page\"\ncontrol = \"{directory}/{name}.control\"\nstate = \"off\"\n\n\
             [[server]]\naddress = \"127.0.0.1\"\nport = {port}\npoll = \"{poll}\"\n"
        );
        let configuration = self.path(&format!("{name}.toml"));
        fs::write(&configuration, text)?;
        let daemon = beside("ffclockd", "ffclock-daemon")?;
        self.start(name, &[&daemon.display().to_string(), "--config", &configuration.display().to_string()])
    }

    /// Starts a chronyd that serves the system clock's time on loopback, without ever touching that clock.
    pub(crate) fn start_chronyd_server(&self, port: u16) -> Result<Program, Box<dyn Error>> {
        self.start_chronyd("server", &format!("local stratum 1\nallow 127.0.0.1\nbindaddress 127.0.0.1\nport {port}\n"))
    }

    /// Starts a chronyd that asks the server on loopback at `port` each second, again without touching the system
    /// clock.
    pub(crate) fn start_chronyd_client(&self, port: u16) -> Result<Program, Box<dyn Error>> {
        self.start_chronyd("client", &format!("server 127.0.0.1 port {port} minpoll 0 maxpoll 0\nport 0\n"))
    }

    fn start_chronyd(&self, role: &str, text: &str) -> Result<Program, Box<dyn Error>> {
        if !Path::new(CHRONYD).exists() {
            return Err("tools/peers/chronyd is missing".into());
        }
        let run = self.path(&format!("chrony-{role}"));
        fs::DirBuilder::new().mode(0o750).create(&run)?;
        let (configuration, run) = (run.join("chrony.conf"), run.display());
        fs::write(&configuration, format!("{text}cmdport 0\npidfile {run}/pid\nbindcmdaddress {run}/socket\n"))?;
        let configuration = configuration.display().to_string();
        // -U: it keeps the user that started it, and needs no more rights.
        let user = Command::new("id").arg("-un").output()?.stdout;
        let user = String::from_utf8(user)?;
        self.start(&format!("chronyd-{role}"), &[CHRONYD, "-x", "-d", "-U", "-u", user.trim(), "-f", &configuration])
    }

    /// Starts the embedded reference server.
    pub(crate) fn start_reference_server(&self, port: u16) -> Result<Program, Box<dyn Error>> {
        self.start("reference", &[FFCLOCK_LAB, "lab", "server", "--listen", &format!("127.0.0.1:{port}")])
    }

    /// The program dies with this process, whatever happens to it.
    fn start(&self, name: &str, command: &[&str]) -> Result<Program, Box<dyn Error>> {
        let log = self.path(&format!("{name}.log"));
        let output = fs::File::create(&log)?;
        let errors = output.try_clone()?;
        let mut starter = Command::new("setpriv");
        starter.args(["--pdeathsig", "KILL"]).args(command).stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = starter.spawn().map_err(|error| format!("setpriv, to start {name}: {error}"))?;
        Ok(Program { child, name: name.to_owned(), log })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // What is left is below the build directory and disturbs nothing.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A program of the product, which is built into the same place.
pub(crate) fn beside(program: &str, package: &str) -> Result<PathBuf, String> {
    let path = Path::new(FFCLOCK_LAB).with_file_name(program);
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{} is missing: cargo build --release -p {package}", path.display()))
    }
}

/// A port of loopback without a listener at present.
pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A program that runs until it is dropped.
pub(crate) struct Program {
    child: Child,
    name: String,
    log: PathBuf,
}

/// What the kernel has counted for a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) resident_mib: f64,
    /// How often it went to sleep of its own accord, and so was woken up.
    pub(crate) sleeps: f64,
}

impl Program {
    /// Fails, with the end of its log, when the program has ended.
    pub(crate) fn check_alive(&mut self) -> Result<(), Box<dyn Error>> {
        let Some(status) = self.child.try_wait()? else { return Ok(()) };
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(5).collect();
        Err(format!("{} ended: {status}: {}", self.name, tail.join(" | ")).into())
    }

    /// Of the process and all its threads.
    pub(crate) fn usage(&self) -> Result<Usage, Box<dyn Error>> {
        let pid = self.child.id();
        let mut sleeps = 0.0;
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            sleeps += status_field(&task?.path().join("status"), "voluntary_ctxt_switches:")?;
        }
        let resident = status_field(Path::new(&format!("/proc/{pid}/status")), "VmRSS:")?;
        Ok(Usage { resident_mib: resident / 1024.0, sleeps })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only when the program has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number out of a status file of /proc; sizes are in KiB.
pub(crate) fn status_field(path: &Path, name: &str) -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    value.ok_or_else(|| format!("{} has no {name}", path.display()).into())
}

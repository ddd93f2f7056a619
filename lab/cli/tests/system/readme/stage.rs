//! Where the commands of the documents run: a server with a known truth and a daemon on loopback, and a directory like
//! the checkout.

use crate::{fresh_directory, programs, root};
use std::fs::{self, File};
use std::net::UdpSocket;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server, the daemon and the directory.
pub struct Stage {
    directory: PathBuf,
    checkout: PathBuf,
    _server: Running,
    _daemon: Running,
}

/// How long the commands of one block may take [s].
const PATIENCE: &str = "60";

/// What of the checkout is not to be found in the directory: commands would write into it.
const HIDDEN: [&str; 4] = ["target", "out", ".git", ".venv"];

impl Stage {
    pub fn set() -> Stage {
        let directory = fresh_directory("readme");
        let checkout = directory.join("checkout");
        fs::create_dir(&checkout).unwrap();
        for entry in fs::read_dir(root()).unwrap().map(Result::unwrap) {
            if !HIDDEN.iter().any(|name| entry.file_name() == *name) {
                symlink(entry.path(), checkout.join(entry.file_name())).unwrap();
            }
        }
        symlink(root().join("tests/golden/quiet-lan/trace.csv.gz"), checkout.join("trace.csv.gz")).unwrap();
        let port = free_port();
        let server = start(&directory, "ffclock-lab", &["lab", "server", "--listen", &format!("127.0.0.1:{port}")]);
        let config = directory.join("ffclockd.toml");
        fs::write(&config, configuration(&directory, port)).unwrap();
        let daemon = start(&directory, "ffclockd", &["--config", config.to_str().unwrap()]);
        Stage { directory, checkout, _server: server, _daemon: daemon }
    }

    /// Runs a script; returns what it printed if it ended well.
    pub fn run(&self, script: &str, place: &str) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        let ended = Command::new("timeout")
            .args([PATIENCE, "bash", "-euo", "pipefail", "-c", script])
            .current_dir(&self.checkout)
            .env("PATH", format!("{}:{path}", programs::directory().display()))
            .env("FFCLOCK_PAGE", self.directory.join("page"))
            .env("XDG_RUNTIME_DIR", &self.directory)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let [printed, complaints] = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        let daemon = fs::read_to_string(self.directory.join("ffclockd.log")).unwrap();
        let story = format!("{script}\n\n{printed}\n{complaints}\nffclockd says:\n{daemon}");
        assert!(ended.status.success(), "{place}: {}\n{story}", ended.status);
        printed + &complaints
    }
}

fn configuration(directory: &Path, port: u16) -> String {
    let directory = directory.display();
    format!(
        "page = \"{directory}/page\"\ncontrol = \"{directory}/control\"\nstate = \"off\"\n\n\
         [[server]]\naddress = \"127.0.0.1\"\nport = {port}\npoll = \"125 ms\"\n"
    )
}

/// A port that is free at this moment.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start(directory: &Path, program: &str, arguments: &[&str]) -> Running {
    let log = File::create(directory.join(format!("{program}.log"))).unwrap();
    let errors = log.try_clone().unwrap();
    let mut command = Command::new(programs::directory().join(program));
    command.args(arguments).stdin(Stdio::null()).stdout(log).stderr(errors);
    Running(command.spawn().unwrap())
}

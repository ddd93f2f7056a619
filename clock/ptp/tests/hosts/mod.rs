//! Two hosts for tests with other programs that speak PTP: network namespaces without names, joined by a pair of
//! devices, that end with the processes in them. The tests of `ffclock-daemon`, `ffclock-serve` and `ffclock-lab` use
//! this file as well.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Our end of the pair of devices ours0 and theirs0, and theirs.
pub const OURS: &str = "10.81.0.1";
pub const THEIRS: &str = "10.81.0.2";
/// Set for a process that runs on a host of its own.
const ON_HOST: &str = "FFCLOCK_PTP_HOST";

/// A program of tools/peers, which is kept from setting the clock.
fn peer(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers").join(name)
}

fn succeeds(program: impl AsRef<OsStr>, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether the test goes on: on a host of its own, with this peer.
pub fn is_on_a_host(test: &str, program: &str) -> bool {
    if std::env::var_os(ON_HOST).is_none() && !succeeds(peer(program), &["--version"]) {
        println!("SKIP: {program} does not start here (tools/setup peers says why)");
        return false;
    }
    is_on_own_host(test)
}

/// Whether the test goes on: on a host of its own. Outside of one it is run again inside, and must succeed there.
pub fn is_on_own_host(test: &str) -> bool {
    if std::env::var_os(ON_HOST).is_some() {
        return true;
    }
    if !succeeds("unshare", &["--net", "ip", "link", "add", "ours0", "type", "veth", "peer", "name", "ours1"]) {
        println!("SKIP: no network namespace may be made here, so {test} was left out");
        return false;
    }
    let mut again = Command::new("setpriv");
    again.args(["--pdeathsig", "KILL", "unshare", "--net", "--"]);
    again.arg(std::env::current_exe().expect("a path")).args(["--exact", test, "--nocapture"]).env(ON_HOST, "1");
    let ended = again.output().expect("setpriv");
    let said = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    said.lines().filter(|line| line.starts_with("SKIP: ") || line.starts_with("figure: ")).for_each(|line| {
        println!("{line}");
    });
    false
}

/// Ended when dropped.
pub struct Process(pub Child);

impl Process {
    /// Starts a command that says what it says to `said`.
    pub fn start(mut command: Command, said: Stdio) -> Process {
        Process(command.stdin(Stdio::null()).stdout(said).spawn().expect("setpriv"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `ip` on this host.
pub fn ip(arguments: &str) {
    let words: Vec<_> = arguments.split(' ').collect();
    assert!(succeeds("ip", &words), "ip {arguments}");
}

/// The other host, at the end of a pair of devices.
pub struct Other {
    holder: Process,
    /// For files of the programs there.
    pub scratch: PathBuf,
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

impl Other {
    /// Joins this process's namespace and a new one.
    pub fn join() -> Other {
        let mut holding = Command::new("setpriv");
        holding.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "1000"]);
        let holder = Process::start(holding, Stdio::null());
        let its = format!("/proc/{}/ns/net", holder.0.id());
        let own = std::fs::read_link("/proc/self/ns/net").expect("/proc");
        while std::fs::read_link(&its).is_ok_and(|network| network == own) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let scratch = std::env::temp_dir().join(format!("ffclock-ptp-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).expect("a directory");
        let other = Other { holder, scratch };
        ip("link set lo up");
        other.run("ip link set lo up");
        other.connect(0, [OURS, THEIRS]);
        other
    }

    /// A pair of devices of this number between both hosts, with these addresses.
    pub fn connect(&self, number: usize, [ours, theirs]: [&str; 2]) {
        ip(&format!("link add ours{number} type veth peer name theirs{number} netns {}", self.holder.0.id()));
        ip(&format!("address add {ours}/24 dev ours{number}"));
        ip(&format!("link set ours{number} up"));
        self.run(&format!("ip address add {theirs}/24 dev theirs{number} && ip link set theirs{number} up"));
    }

    /// Runs a command of the shell there.
    pub fn run(&self, command: &str) {
        let inside = self.holder.0.id().to_string();
        assert!(succeeds("nsenter", &["--net", "--target", &inside, "--", "sh", "-c", command]), "{command}");
    }

    /// A peer, or the program at an absolute path, there, without options.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        let inside = self.holder.0.id().to_string();
        command.args(["--pdeathsig", "KILL", "nsenter", "--net", "--target", &inside, "--"]).arg(peer(program));
        command
    }

    /// ptp4l there, with stamps of the kernel, four Syncs a second, these options and this configuration.
    pub fn ptp4l(&self, options: &str, configuration: &str) -> Command {
        let number = std::fs::read_dir(&self.scratch).expect("the directory").count();
        let file = self.scratch.join(format!("{number}.conf"));
        std::fs::write(&file, format!("[global]\n{configuration}")).expect("a file");
        let mut command = self.command("ptp4l");
        command.args(["-S", "-m", "--free_running", "1", "--uds_address"]);
        command.arg(self.scratch.join(format!("{number}.uds"))).arg("-f").arg(file);
        if !options.contains("-i ") {
            command.args(["-i", "theirs0"]);
        }
        command.args(options.split_whitespace());
        command.args("--logSyncInterval -2 --logAnnounceInterval -1 --logMinDelayReqInterval -2".split(' '));
        command
    }
}

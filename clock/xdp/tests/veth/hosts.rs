//! Two hosts: network namespaces without names, joined by a pair of devices, that end with the processes in them.

use ffclock_xdp::{FastPath, FastPathError, FastPathPlace, XdpHook};
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

pub(crate) const DEVICE: &str = "server0";
const PEER: &str = "client0";
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
pub(crate) const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd79, 0, 0, 0, 0, 0, 0, 1);
pub(crate) const PORT: u16 = 123;
/// Set for a process that runs on a host of its own.
const ON_HOST: &str = "FFCLOCK_XDP_HOST";

/// Runs this program again with these arguments, as the server's host; what it printed, and whether it succeeded.
pub(crate) fn again_as_server(arguments: &[&str]) -> (String, bool) {
    let myself = std::env::current_exe().expect("a path");
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--net", "--mount", "--"]).arg(myself).args(arguments);
    let output = command.env(ON_HOST, "server").output().expect("it starts");
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&said).into_owned(), output.status.success())
}

/// As whom this process runs; `None` outside of the hosts.
pub(crate) fn role() -> Option<String> {
    std::env::var(ON_HOST).ok()
}

/// Why there can be no hosts here, if so.
pub(crate) fn hindrance() -> Option<String> {
    let tried = Command::new("unshare").args(["--net", "--mount", "--", "ip", "link"]).output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("no network namespaces: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Some(format!("no network namespaces: {error}")),
    }
}

/// The client's host; this process runs on the server's.
pub(crate) struct Client {
    holder: Child,
    /// A program that serves nothing: with one, the client's device takes what the server's sends by XDP.
    _pass: FastPath,
}

impl Client {
    /// Joins this process's namespace and a new one. An error where the kernel allows no program.
    pub(crate) fn join() -> Result<Client, FastPathError> {
        run("mount", &["-t", "sysfs", "sysfs", "/sys"]);
        run("ip", &["link", "set", "lo", "up"]);
        run("ip", &["link", "add", DEVICE, "type", "veth", "peer", "name", PEER]);
        let pass = FastPath::open(&place(PEER, XdpHook::Native))?;
        let mut holding = Command::new("setpriv");
        holding.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "1000"]).stdin(Stdio::null());
        let client = Client { holder: holding.spawn().expect("setpriv"), _pass: pass };
        let own = fs::read_link("/proc/self/ns/net").expect("/proc");
        let its = format!("/proc/{}/ns/net", client.holder.id());
        while fs::read_link(&its).is_ok_and(|network| network == own) {
            sleep(Duration::from_millis(5));
        }
        run("ip", &["link", "set", PEER, "netns", &client.holder.id().to_string()]);
        up(&["ip"], DEVICE, "1");
        let entering = client.entering();
        up(&entering.iter().map(String::as_str).chain(["ip"]).collect::<Vec<_>>(), PEER, "2");
        Ok(client)
    }

    fn entering(&self) -> Vec<String> {
        ["nsenter", "--net", "--target", &self.holder.id().to_string(), "--"].map(str::to_owned).into()
    }

    /// A command line that runs what is added to it on the client's host.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).args(self.entering()).env(ON_HOST, "client");
        command
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn up(ip: &[&str], device: &str, last: &str) {
    let go = |arguments: &[&str]| run(ip[0], &[&ip[1..], arguments].concat());
    go(&["address", "add", &format!("10.79.0.{last}/24"), "dev", device]);
    go(&["address", "add", &format!("fd79::{last}/64"), "dev", device, "nodad"]);
    go(&["link", "set", device, "up"]);
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("it starts");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    said
}

pub(crate) fn place(device: &str, hook: XdpHook) -> FastPathPlace {
    FastPathPlace { device: device.to_owned(), hook, port: PORT, addresses_remembered: 65_536 }
}

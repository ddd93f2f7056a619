//! The way to the echo server: over the network that there is, or over a link of the instrument's own.

use super::echo::PORT;
use crate::failure::Failure;
use crate::lab::link::{self, SERVER_ADDRESS};
use crate::lab::worker::{Task, Worker, WorkerNetwork, WorkerRights, run};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The group of test packets, of those that stay within an organisation.
const GROUP: &str = "239.255.87.77";
/// The echo server listens by then.
const ECHO_START: Duration = Duration::from_millis(300);

/// How requests are addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addressing {
    /// To the server's own address.
    Unicast,
    /// To a group that the server has joined.
    Multicast,
}

/// Where packets go, and what was made for it.
pub(super) struct TestPath {
    pub(super) to: SocketAddr,
    pub(super) device: String,
    /// The other end of the link, where it is ours.
    pub(super) far_device: Option<String>,
    /// What it is, for people.
    pub(super) description: String,
    _echo: Option<EchoWorker>,
}

/// An echo server of our own, ended when dropped, and its log.
struct EchoWorker {
    _worker: Worker,
    log: PathBuf,
}

impl Drop for EchoWorker {
    fn drop(&mut self) {
        // What is left behind lies in the directory for temporary files.
        let _ = std::fs::remove_file(&self.log);
    }
}

impl TestPath {
    /// To an echo server on the network that there is.
    pub(super) fn to(address: SocketAddr, device: Option<&str>) -> Result<TestPath, Failure> {
        let device = device.map_or_else(|| device_towards(address.ip()), |device| Ok(device.to_owned()))?;
        let description = format!("to {address} over {device}");
        Ok(TestPath { to: address, device, far_device: None, description, _echo: None })
    }

    /// To an echo server in a network namespace of its own, over a virtual Ethernet link. This process moves into
    /// another namespace, so that nothing of the host's network is touched; both end with their processes.
    pub(super) fn own(addressing: Addressing) -> Result<TestPath, Failure> {
        let permitted = ffclock_probe::enter_own_network();
        permitted.map_err(|error| format!("cannot make a network namespace: {error}; run as root, or use --to"))?;
        let program = std::env::current_exe()?.display().to_string();
        let listen = format!("0.0.0.0:{PORT}");
        let mut command = vec![program.as_str(), "probe", "echo", "--listen", &listen];
        if addressing == Addressing::Multicast {
            command.extend(["--multicast", GROUP]);
        }
        let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
        let log = std::env::temp_dir().join(format!("ffclock-echo-{}.log", std::process::id()));
        let task = Task { name: "the echo server", command: &command, log: &log, rights: WorkerRights::None };
        let mut worker = Worker::prepare(&task, WorkerNetwork::Own)?;
        let (server, own) = (worker.pid(), std::process::id());
        link::join_processes(server, own)?;
        let (far_device, device) = (link::server_end(server), link::client_end(own));
        if addressing == Addressing::Multicast {
            for (pid, device) in [(server, &far_device), (own, &device)] {
                link::inside(&pid.to_string(), &["ip", "route", "add", GROUP, "dev", device])?;
            }
        }
        worker.release()?;
        std::thread::sleep(ECHO_START);
        worker.check_alive()?;
        let address = if addressing == Addressing::Multicast { GROUP } else { SERVER_ADDRESS };
        Ok(TestPath {
            to: SocketAddr::new(address.parse().map_err(|_| "no address".to_owned())?, PORT),
            device,
            far_device: Some(far_device),
            description: "between two network namespaces joined by veth".to_owned(),
            _echo: Some(EchoWorker { _worker: worker, log }),
        })
    }
}

/// The device that packets to `address` leave by.
pub(super) fn device_towards(address: IpAddr) -> Result<String, Failure> {
    let output = Command::new("ip").args(["-oneline", "route", "get", &address.to_string()]).output();
    let output = output.map_err(|error| format!("ip: {error}; name the device with --device"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace().skip_while(|word| *word != "dev");
    let device = words.nth(1).map(str::to_owned);
    device.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("there is no way to {address} ({}); name the device with --device", said.trim()).into()
    })
}

/// Brings up the loopback of our own namespace, for loads that need one.
pub(super) fn raise_loopback() -> Result<(), Failure> {
    run("ip", &["link", "set", "lo", "up"])
}

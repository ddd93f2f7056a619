//! The server of the experiment: a process of our own on loopback.

use crate::failure::Failure;
use crate::lab::truth::{Truth, as_arguments};
use crate::lab::worker::{Task, Worker, WorkerNetwork, WorkerRights};
use ffclock_counters::beside::BracketedReading;
use ffclock_counters::clocks::packets::{Exchanged, RequestStream};
use ffclock_counters::ways::CounterWay;
use ffclock_sys::mono_now;
use ffclock_units::{Period, Span};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

/// The server listens by then.
const PATIENCE: Span = Span::from_secs(5);

/// The stream of requests, and the server that answers it.
pub(super) struct Served {
    server: Worker,
    packets: RequestStream,
    log: PathBuf,
}

impl Served {
    /// Starts the server and finds that it answers.
    pub(super) fn begin(truth: &Truth, period: Period, ways: Vec<CounterWay>) -> Result<Self, Failure> {
        let address = free_address()?;
        let ourselves = std::env::current_exe()?.display().to_string();
        let listen = ["lab", "server", "--listen"].map(str::to_owned);
        let words = std::iter::once(ourselves).chain(listen).chain([address.to_string()]).chain(as_arguments(truth));
        let command: Vec<String> = words.collect();
        let log = std::env::temp_dir().join(format!("ffclock-counters-server-{}.log", std::process::id()));
        let task = Task { name: "the server", command: &command, log: &log, rights: WorkerRights::None };
        let mut server = Worker::prepare(&task, WorkerNetwork::Shared)?;
        server.release()?;
        let mut served = Served { server, packets: RequestStream::connect(address, period, ways)?, log };
        served.wait_for_server()?;
        Ok(served)
    }

    fn wait_for_server(&mut self) -> Result<(), Failure> {
        let deadline = mono_now() + PATIENCE;
        while mono_now() < deadline {
            if self.exchange()?.is_some() {
                return Ok(());
            }
        }
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        Err(format!("the server does not answer on loopback: {}", crate::text::printable(said.trim())).into())
    }

    /// The stream of requests.
    pub(super) fn packets(&self) -> &RequestStream {
        &self.packets
    }

    /// One request and its reply; `None` when none came in time.
    pub(super) fn exchange(&mut self) -> Result<Option<Exchanged>, Failure> {
        self.server.check_alive()?;
        self.packets.exchange().map_err(|error| error.to_string().into())
    }

    /// Every counter beside the base now.
    pub(super) fn beside_base(&mut self) -> Result<Vec<BracketedReading>, Failure> {
        self.packets.beside_base().map_err(|error| error.to_string().into())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The server is ours and has answered: its log is no longer of use.
        let _ = std::fs::remove_file(&self.log);
    }
}

/// A port that is free now. If another program takes it before the server does, the server says so.
fn free_address() -> Result<SocketAddr, Failure> {
    Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

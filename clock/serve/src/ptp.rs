//! PTP: a grandmaster on network devices, beside the server of NTP and from the same page.
//!
//! What the messages say and when they are sent is the work of [`ffclock_ptp::Grandmaster`]. Here are
//! its sockets, its time and its claim (`stated`), and who may ask (`admission`). Each device and family is a port
//! of one clock, with a thread of its own. A port never follows: to a better master it gives way, and is silent.

mod admission;
mod options;
mod shortfalls;
mod sockets;
mod stated;
mod worker;

pub use options::{PtpConfig, PtpFamily, PtpPolicy};

use crate::policy::PolicyBoard;
use ffclock_control::serve::PtpPortReport;
use ffclock_ptp::{ClockIdentity, Grandmaster, PortIdentity};
use ffclock_sys::{DeviceAddress, mono_now};
use sockets::{PtpPlace, PtpSockets};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use worker::{PortParts, PortWorker};

/// The sockets, which take a right that the server gives up before it serves.
pub(crate) struct PtpParts {
    ports: Vec<(PtpPlace, PtpSockets)>,
    identity: ClockIdentity,
}

impl PtpParts {
    /// Opens the sockets; `None` where PTP is not served.
    ///
    /// # Errors
    /// One of them cannot be had; the text says why.
    pub(crate) fn open(config: &PtpConfig) -> Result<Option<Self>, String> {
        let Some(first) = config.interfaces.as_slice().first() else { return Ok(None) };
        let hardware = config.hardware();
        let opened = |place: PtpPlace| PtpSockets::open(&place, hardware).map(|sockets| (place, sockets));
        let ports = places(config).into_iter().map(opened).collect::<Result<Vec<_>, String>>()?;
        let identity = config.identity.0.unwrap_or_else(|| identity_of(first.as_str()));
        for (place, _) in &ports {
            tracing::info!(port = %place.name(), %identity, domain = config.domain, "a port of PTP");
        }
        Ok(Some(PtpParts { ports, identity }))
    }
}

/// Where PTP is served: each device with each family.
fn places(config: &PtpConfig) -> Vec<PtpPlace> {
    let devices = config.interfaces.as_slice().iter().map(|device| device.as_str());
    let six = |device| PtpPlace::ipv6(device, config.multicast_scope);
    let of = |device| match config.family {
        PtpFamily::Ipv4 => vec![PtpPlace::ipv4(device)],
        PtpFamily::Ipv6 => vec![six(device)],
        PtpFamily::Both => vec![PtpPlace::ipv4(device), six(device)],
        PtpFamily::Ethernet => vec![PtpPlace::ethernet(device)],
    };
    devices.flat_map(of).collect()
}

/// An identity made from the address of a device; of one without an address, from a random number, because two clocks
/// of one identity do not hear each other. Its second-lowest bit says that it was made up here: other programs on this
/// host have the one that the standard makes of the address.
fn identity_of(device: &str) -> ClockIdentity {
    let address = ffclock_sys::hardware_address(device);
    address.map_or_else(made_up_identity, identity_from)
}

fn identity_from([a, b, c, d, e, f]: DeviceAddress) -> ClockIdentity {
    ClockIdentity::from_octets([a | 2, b, c, 0xff, 0xc1, d, e, f])
}

fn made_up_identity() -> ClockIdentity {
    let number = ffclock_sys::random_nonce().unwrap_or(mono_now().since_origin().units() as u64);
    let [first, rest @ ..] = number.to_be_bytes();
    let [b, c, d, e, f, g, h] = rest;
    ClockIdentity::from_octets([first & !1 | 2, b, c, d, e, f, g, h])
}

/// What the ports share with the rest of the server.
pub(crate) struct PtpShared<'a> {
    pub(crate) page: &'a Path,
    pub(crate) board: Arc<PolicyBoard>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) table_bytes: usize,
}

/// The running ports.
#[derive(Default)]
pub(crate) struct PtpService {
    config: PtpConfig,
    reports: Vec<Arc<Mutex<PtpPortReport>>>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl PtpService {
    /// Starts a thread for each port.
    ///
    /// # Errors
    /// A thread does not start, or there are no random numbers.
    pub(crate) fn start(parts: Option<PtpParts>, config: PtpConfig, shared: &PtpShared<'_>) -> io::Result<Self> {
        let mut service = PtpService { config, ..PtpService::default() };
        let Some(PtpParts { ports, identity }) = parts else { return Ok(service) };
        let table_bytes = shared.table_bytes / ports.len().max(1);
        for ((place, sockets), number) in ports.into_iter().zip(1..) {
            let own = PortIdentity { clock: identity, port: number };
            let report = PtpPortReport {
                port: place.name(),
                identity: own.to_string(),
                domain: service.config.domain,
                state: "silent".to_owned(),
                ..PtpPortReport::default()
            };
            let report = Arc::new(Mutex::new(report));
            service.reports.push(Arc::clone(&report));
            let mut worker = PortWorker::new(PortParts {
                sockets,
                grandmaster: Grandmaster::new(service.config.grandmaster(), own, mono_now()),
                page: shared.page,
                board: Arc::clone(&shared.board),
                report,
                announce_interval: service.config.announce_interval.as_span(),
                table_bytes,
            })?;
            let stop = Arc::clone(&shared.stop);
            let thread = thread::Builder::new().name(format!("ptp-{number}"));
            service.threads.push(thread.spawn(move || worker.run(&stop))?);
        }
        Ok(service)
    }

    /// Whether a thread has ended, which it does by itself only where its socket fails.
    pub(crate) fn has_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Waits for the threads, once they are to stop.
    ///
    /// # Errors
    /// A socket had failed.
    pub(crate) fn join(self) -> io::Result<()> {
        let ended = |thread: JoinHandle<_>| thread.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        self.threads.into_iter().try_for_each(ended)
    }

    /// Whether a new configuration takes a restart. What does not, is in the policy.
    pub(crate) fn needs_restart(&self, new: &PtpConfig) -> bool {
        !self.config.is_same_service(new)
    }

    /// The state of each port.
    pub(crate) fn report(&self) -> Vec<PtpPortReport> {
        let copied = |report: &Arc<Mutex<PtpPortReport>>| report.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.reports.iter().map(copied).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_made_up_of_the_address_and_says_so() {
        assert_eq!(identity_from([0xb0, 0x68, 0xb8, 0xd9, 0x2b, 0x01]).to_string(), "b268b8.ffc1.d92b01");
        let without = ["lo", "nowhere9"].map(identity_of);
        assert_ne!(without[0], without[1], "devices without an address");
        assert!(without.iter().all(|identity| identity.octets()[0] & 3 == 2));
    }

    #[test]
    fn every_device_and_family_is_a_port() {
        let mut config = PtpConfig::default();
        assert!(places(&config).is_empty());
        config.set("interfaces", "eth0, eth1").unwrap();
        config.set("family", "both").unwrap();
        let names: Vec<String> = places(&config).iter().map(PtpPlace::name).collect();
        assert_eq!(names, ["eth0/ipv4", "eth0/ipv6", "eth1/ipv4", "eth1/ipv6"]);
        config.set("family", "ethernet").unwrap();
        assert_eq!(places(&config).first().map(PtpPlace::name).as_deref(), Some("eth0/ethernet"));
    }
}

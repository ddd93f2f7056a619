//! Heavy traffic between two namespaces, and a program that captures every packet of it: the network stress of the
//! papers.

use crate::failure::Failure;
use crate::lab::link::server_end;
use crate::lab::worker::run;
use rustix::net::{AddressFamily, RecvFlags, SocketType, eth, recv, socket};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Arguments of `ffclock-lab lab flood`.
#[derive(clap::Args)]
pub(crate) struct FloodArgs {
    /// Where the packets go.
    #[arg(long, value_name = "ADDRESS:PORT")]
    to: SocketAddr,
}

/// Arguments of `ffclock-lab lab capture`.
#[derive(clap::Args)]
pub(crate) struct CaptureArgs {
    /// The port that takes the packets, so that the kernel answers none of them with an error.
    #[arg(long, value_name = "PORT")]
    port: u16,
}

/// Fills an Ethernet frame.
const PAYLOAD: usize = 1_472;
/// The link may need a moment; packets that find it down are tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// Sends as fast as the link takes it, until it is killed.
pub(super) fn flood(args: &FloodArgs) -> Result<(), Failure> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let payload = [0x5a; PAYLOAD];
    loop {
        if socket.send_to(&payload, args.to).is_err() {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Captures every packet of every interface, one at a time, until it is killed.
pub(super) fn capture(args: &CaptureArgs) -> Result<(), Failure> {
    // It is never read: what it cannot hold is dropped, as on a busy host.
    let _sink = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, args.port))?;
    run("ip", &["link", "set", "dev", &server_end(std::process::id()), "promisc", "on"])?;
    let tap = socket(AddressFamily::PACKET, SocketType::RAW, Some(eth::ALL)).map_err(std::io::Error::from)?;
    let mut frame = [0_u8; 2_048];
    loop {
        recv(&tap, &mut frame, RecvFlags::empty()).map_err(std::io::Error::from)?;
    }
}

//! The checks that need packets.

use super::{Found, Outcome, open, read, room};
use ffclock_counter::ffcounter::{Ffcounter, ModuleCounter, PacketStamp, layout};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

fn text(error: impl ToString) -> String {
    error.to_string()
}

fn word(stamp: &PacketStamp) -> u64 {
    u64::from_be_bytes(core::array::from_fn(|at| stamp.head[at]))
}

/// Every packet of the chosen port is stamped on its way out and on its way in, within the sender's own bracket, and
/// can be known again; packets of other ports are not.
pub(crate) fn stamps() -> Outcome {
    let (one, other, stranger) = (bind()?, bind()?, bind()?);
    let device = open()?;
    let port = one.local_addr().map_err(text)?.port();
    device.stamp_ports(ModuleCounter::Tsc, &[port]).map_err(text)?;
    let mut all = Vec::new();
    let mut brackets = Vec::new();
    for packet in 0..100_u64 {
        let before = read(&device, ModuleCounter::Tsc)?.value;
        one.send_to(&[packet.to_be_bytes(); 6].concat(), other.local_addr().map_err(text)?).map_err(text)?;
        stranger.send_to(&[0; 48], stranger.local_addr().map_err(text)?).map_err(text)?;
        other.recv(&mut [0; 64]).map_err(text)?;
        brackets.push((before, read(&device, ModuleCounter::Tsc)?.value));
        all.extend_from_slice(device.read_stamps(&mut room()).map_err(text)?);
    }
    Found(all.len() == 200).or_fail(|| format!("{} stamps of 100 packets on two sides", all.len()))?;
    for (two, (before, after)) in all.chunks(2).zip(&brackets) {
        Found(word(&two[0]) == word(&two[1])).or_fail(|| "the halves of a packet are mixed up".to_owned())?;
        Found(two[0].direction == layout::SENT && two[1].direction == layout::RECEIVED)
            .or_fail(|| "wrong order".to_owned())?;
        let in_order = *before <= two[0].value && two[0].value <= two[1].value && two[1].value <= *after;
        Found(in_order).or_fail(|| format!("{before} {} {} {after}", two[0].value, two[1].value))?;
        Found(two.iter().all(|stamp| stamp.source_port == port.to_be() && stamp.length == 48 && stamp.lost == 0))
            .or_fail(|| format!("{:?}", two[0]))?;
    }
    overflow(&device, &one, &other)?;
    let mut more = room();
    device.stamp_ports(ModuleCounter::Tsc, &[]).map_err(text)?;
    one.send_to(&[9; 48], other.local_addr().map_err(text)?).map_err(text)?;
    thread::sleep(Duration::from_millis(20));
    let after_end = device.read_stamps(&mut more).map_err(text)?.len();
    // One packet's receiving half may have come between the two readings above.
    Found(after_end <= 1).or_fail(|| format!("{after_end} stamps although none were asked for"))
}

/// A full ring keeps the newest and counts the others; an empty one says so.
fn overflow(device: &Ffcounter, one: &UdpSocket, other: &UdpSocket) -> Outcome {
    for packet in 0..300_u64 {
        one.send_to(&[packet.to_be_bytes(); 6].concat(), other.local_addr().map_err(text)?).map_err(text)?;
    }
    let mut more = room();
    let kept = device.read_stamps(&mut more).map_err(text)?;
    let (count, words) = (kept.len(), [kept.first(), kept.last()].map(|stamp| stamp.map(word)));
    let lost = kept.last().map_or(0, |stamp| stamp.lost);
    Found(count == 256 && lost == 600 - 256 && words == [Some(172), Some(299)])
        .or_fail(|| format!("a full ring kept {count} of 600, from packet {words:?}, and reported {lost} lost"))?;
    let mut same = File::from(device.as_fd().try_clone_to_owned().map_err(text)?);
    let empty = same.read(&mut [0; 4096]).map_err(|error| error.raw_os_error());
    Found(empty == Err(Some(EAGAIN))).or_fail(|| format!("a read with nothing waiting gave {empty:?}"))
}

/// Of a daemon whose stamps are to be taken at the driver, at least `least` were, and most: it keeps time as well
/// without any, so only its status shows it.
pub(crate) fn stamped(control: &str, least: f64) -> Outcome {
    let status = status(control)?;
    let stamps = status.split_once("\"stamps\":\"").and_then(|(_, rest)| rest.split('"').next()).unwrap_or("nothing");
    println!("FIGURE clock.stamps {stamps}");
    let before = |words: &str| -> Option<f64> { stamps.split_once(words)?.0.rsplit([' ', '(']).next()?.parse().ok() };
    let (at_driver, by_socket) = (before(" at the driver").unwrap_or(0.0), before(" by the socket").unwrap_or(0.0));
    Found(at_driver >= least && at_driver > by_socket).or_fail(|| format!("the status says of the stamps: {stamps}"))
}

/// The status of a daemon holds this text.
pub(crate) fn said(control: &str, wanted: &str) -> Outcome {
    let status = status(control)?;
    Found(status.contains(wanted)).or_fail(|| status)
}

pub(crate) fn status(control: &str) -> Result<String, String> {
    let mut daemon = UnixStream::connect(control).map_err(text)?;
    daemon.write_all(b"{\"command\":\"status\"}\n").map_err(text)?;
    let mut status = String::new();
    BufReader::new(daemon).read_line(&mut status).map_err(text)?;
    Ok(status)
}

/// As the kernel numbers it (asm-generic/errno-base.h).
const EAGAIN: i32 = 11;

fn bind() -> Result<UdpSocket, String> {
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(text)?;
    socket.set_read_timeout(Some(Duration::from_secs(5))).map_err(text)?;
    Ok(socket)
}

//! Which program has the port, and which stamps it can be using, as far as the kernel says.
//!
//! A copy of its socket's descriptor (`pidfd_getfd`) has the socket's options; `/proc` lists its packet sockets and
//! clock devices. The kernel does not say whether the program reads a clock in user space, what it asks for packet by
//! packet in control messages, and what it does with the stamps that it gets.

use crate::ffi;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;

/// A program with sockets of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServiceProgram {
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its sockets.
    pub sockets: Vec<Socket>,
    /// How many packet sockets (taps) it has.
    pub taps: usize,
    /// Clock devices that it has open: PTP hardware clocks, PPS.
    pub clocks: Vec<String>,
}

/// One of its sockets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Socket {
    /// Its descriptor in the program.
    pub descriptor: i32,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end, where it is connected.
    pub remote: Option<SocketAddr>,
    /// The stamps that it asks the kernel for, or why that is not known.
    pub stamps: Result<Vec<String>, String>,
}

/// A socket of `/proc/net/udp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listed {
    local: SocketAddr,
    remote: Option<SocketAddr>,
    inode: u64,
}

/// Options that ask for stamps on all packets that are received: both forms of each, for 32-bit and for 64-bit times.
const RECEIVE_OPTIONS: [(i32, &str); 4] = [
    (29, "SO_TIMESTAMP: receive, software, us"),
    (63, "SO_TIMESTAMP: receive, software, us"),
    (35, "SO_TIMESTAMPNS: receive, software, ns"),
    (64, "SO_TIMESTAMPNS: receive, software, ns"),
];
const SO_TIMESTAMPING: [i32; 2] = [37, 65];

/// The programs that have a socket with `port` at either end in this network namespace, or the one with this `pid`.
pub fn find(port: u16, pid: Option<u32>) -> Vec<ServiceProgram> {
    let sockets: Vec<Listed> = ["udp", "udp6"].into_iter().flat_map(|table| listed(table, pid)).collect();
    let ours = sockets.into_iter().filter(|socket| {
        pid.is_some() && socket.local.port() != 0
            || socket.local.port() == port
            || socket.remote.is_some_and(|remote| remote.port() == port)
    });
    let by_inode: BTreeMap<u64, Listed> = ours.map(|socket| (socket.inode, socket)).collect();
    let taps = packet_sockets(pid);
    let found = |pid| program(pid, &by_inode, &taps);
    match pid {
        // The program that was named is listed even if its socket is gone.
        Some(named) => vec![found(named)],
        None => processes().into_iter().map(found).filter(|program| !program.sockets.is_empty()).collect(),
    }
}

/// The threads of these programs.
pub fn threads(programs: &[ServiceProgram]) -> BTreeSet<u32> {
    let of = |program: &ServiceProgram| numbered(Path::new(&format!("/proc/{}/task", program.pid)));
    programs.iter().flat_map(of).collect()
}

/// The process of a thread; `None` when it has ended.
pub fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

/// All threads of the program that this one is of.
pub(super) fn siblings(thread: u32) -> BTreeSet<u32> {
    if !sees_kernel_numbers() {
        return BTreeSet::from([thread]);
    }
    let process = process_of(thread).unwrap_or(thread);
    let mut threads: BTreeSet<u32> = numbered(Path::new(&format!("/proc/{process}/task"))).into_iter().collect();
    threads.insert(thread);
    threads
}

/// Whether system calls can be attributed to programs: in a process namespace of our own, the numbers that we know are
/// not the kernel's.
pub fn sees_kernel_numbers() -> bool {
    // PROC_PID_INIT_INO of <linux/proc_ns.h>.
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link == Path::new("pid:[4026531836]"))
}

fn processes() -> Vec<u32> {
    numbered(Path::new("/proc"))
}

fn numbered(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn net(table: &str, pid: Option<u32>) -> String {
    let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default()
}

fn listed(table: &str, pid: Option<u32>) -> Vec<Listed> {
    net(table, pid).lines().skip(1).filter_map(listed_line).collect()
}

/// A line of `/proc/net/udp`: number, local, remote, state, queues, timer, retransmissions, user, timeout, inode.
fn listed_line(line: &str) -> Option<Listed> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (local, remote) = (end(words.get(1)?)?, end(words.get(2)?)?);
    let remote = (remote.port() != 0).then_some(remote);
    Some(Listed { local, remote, inode: words.get(9)?.parse().ok()? })
}

/// An address as `/proc` writes it: words of the machine's byte order in hexadecimal, and the port.
fn end(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            IpAddr::from(<[u8; 16]>::try_from(words.concat()).ok()?)
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

/// The inodes of `/proc/net/packet`, the last word of each line.
fn packet_sockets(pid: Option<u32>) -> BTreeSet<u64> {
    let text = net("packet", pid);
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next_back()?.parse().ok()).collect()
}

/// What a process has open: of `sockets` and of `taps` those that are its own, and devices with a clock.
fn program(pid: u32, sockets: &BTreeMap<u64, Listed>, taps: &BTreeSet<u64>) -> ServiceProgram {
    let (mut own, mut own_taps, mut clocks) = (Vec::new(), 0, BTreeSet::new());
    for descriptor in numbered(Path::new(&format!("/proc/{pid}/fd"))) {
        let Ok(target) = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")) else { continue };
        let target = target.to_string_lossy();
        if target.starts_with("/dev/ptp") || target.starts_with("/dev/pps") {
            clocks.insert(target.clone().into_owned());
        }
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')?.parse::<u64>().ok());
        let Some(inode) = inode else { continue };
        own_taps += usize::from(taps.contains(&inode));
        if let Some(Listed { local, remote, .. }) = sockets.get(&inode) {
            let descriptor = descriptor as i32;
            own.push(Socket { descriptor, local: *local, remote: *remote, stamps: stamps(pid, descriptor) });
        }
    }
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned();
    own.sort_by_key(|socket| socket.descriptor);
    ServiceProgram { pid, name, sockets: own, taps: own_taps, clocks: clocks.into_iter().collect() }
}

/// What a socket asks for.
fn stamps(pid: u32, descriptor: i32) -> Result<Vec<String>, String> {
    let socket = ffi::descriptor_of(pid, descriptor).map_err(|error| {
        format!("its options cannot be looked at: {error} (needs Linux 5.6 and the right to trace the program)")
    })?;
    let option = |option| ffi::socket_option(socket.as_fd(), option).unwrap_or(0);
    let mut asked: Vec<String> = RECEIVE_OPTIONS
        .iter()
        .filter(|(number, _)| option(*number) != 0)
        .map(|(_, words)| (*words).to_owned())
        .collect();
    asked.extend(SO_TIMESTAMPING.iter().flat_map(|number| timestamping_words(option(*number))));
    Ok(asked)
}

/// What the flags of `SO_TIMESTAMPING` come to (Documentation/networking/timestamping.rst): a stamp is made where
/// generation is asked for, and handed over where reporting is.
fn timestamping_words(flags: u32) -> Vec<String> {
    let has = |flag: u32| flags & flag != 0;
    let (tx_hardware, tx_software, rx_hardware, rx_software) = (has(1), has(2), has(4), has(8));
    let (software, raw_hardware, scheduled, acknowledged) = (has(16), has(64), has(256), has(512));
    let words = [
        (rx_software && software, "receive, software"),
        (rx_hardware && raw_hardware, "receive, hardware"),
        (tx_software && software, "transmit, software"),
        (tx_hardware && raw_hardware, "transmit, hardware"),
        (scheduled && software, "transmit, when it enters the packet scheduler"),
        (acknowledged && software, "transmit, when it is acknowledged"),
        (software && !(rx_software || tx_software), "software stamps that another program asked for"),
        (raw_hardware && !(rx_hardware || tx_hardware), "hardware stamps that another program asked for"),
    ];
    words.iter().filter(|(is, _)| *is).map(|(_, words)| format!("SO_TIMESTAMPING: {words}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    #[test]
    fn lines_of_proc_are_read() {
        let line =
            "  457: 0100007F:007B 0200A8C0:1F90 01 00000000:00000000 00:00000000 00000000     0        0 31337 2 0 0";
        let socket = listed_line(line).unwrap();
        assert_eq!(socket.local, "127.0.0.1:123".parse().unwrap());
        assert_eq!((socket.remote, socket.inode), (Some("192.168.0.2:8080".parse().unwrap()), 31337));
        let line =
            "  9: 00000000000000000000000001000000:007B 00000000000000000000000000000000:0000 07 0:0 0:0 0 0 0 5 2 0 0";
        let socket = listed_line(line).unwrap();
        assert_eq!((socket.local, socket.remote), ("[::1]:123".parse().unwrap(), None));
        assert_eq!(listed_line("nonsense"), None);
        assert_eq!(end("0100007F"), None);
    }

    #[test]
    fn flags_come_to_what_is_reported() {
        assert_eq!(timestamping_words(8 | 16), ["SO_TIMESTAMPING: receive, software"]);
        assert_eq!(timestamping_words(2 | 8 | 16).len(), 2);
        // Made, but not handed over.
        assert!(timestamping_words(2 | 8).is_empty());
        assert_eq!(timestamping_words(1 | 4 | 64).len(), 2);
        assert_eq!(timestamping_words(16), ["SO_TIMESTAMPING: software stamps that another program asked for"]);
    }

    #[test]
    fn our_own_socket_is_found_with_its_options() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let found = find(port, None);
        let us = found.iter().find(|program| program.pid == std::process::id()).expect("it is ours");
        assert_eq!(us.sockets.len(), 1);
        assert_eq!((us.sockets[0].descriptor, us.sockets[0].local.port()), (socket.as_raw_fd(), port));
        match &us.sockets[0].stamps {
            Ok(stamps) => assert!(stamps.is_empty(), "{stamps:?}"),
            Err(reason) => println!("SKIP: {reason}"),
        }
        assert!(threads(&found).contains(&std::process::id()));
        assert_eq!(process_of(std::process::id()), Some(std::process::id()));
        assert!(siblings(std::process::id()).is_superset(&threads(std::slice::from_ref(us))));
        assert!(find(port, Some(1)).iter().all(|program| program.pid == 1));
    }
}

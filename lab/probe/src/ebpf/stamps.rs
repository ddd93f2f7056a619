//! Loads the programs, attaches them and takes what they hand over.

use super::attach::{self, AtTc};
use super::permission::{explain, hindrance};
use super::place::{PassageDecoder, read};
use super::skeleton::{OpenStampsSkel, StampsSkel, StampsSkelBuilder, types};
use super::{Opened, ProgramScope, SitePassage};
use crate::plan::QueueHook;
use crate::ring::device_index;
use crate::site::{Site, Sites};
use core::mem::MaybeUninit;
use ffclock_units::Direction;
use libbpf_rs::btf::{Btf, types::Typedef};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, RingBuffer, RingBufferBuilder};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

/// Programs at tracepoints of their own name, and the site.
const TRACEPOINTS: [(&str, Site); 9] = [
    ("net_dev_queue", Site::QueueOut),
    ("net_dev_start_xmit", Site::DriverOut),
    ("net_dev_xmit", Site::DoneOut),
    ("napi_gro_receive_entry", Site::DriverIn),
    ("netif_rx_entry", Site::DriverIn),
    ("netif_receive_skb_entry", Site::DriverIn),
    ("netif_receive_skb", Site::StackIn),
    ("skb_copy_datagram_iovec", Site::CopyIn),
    ("sock_recv_length", Site::ReadIn),
];
const FENTRY: &str = "socket_queue_fentry";
const KPROBE: &str = "socket_queue_kprobe";
const TC_OUT: &str = "tc_out";
const TC_IN: &str = "tc_in";
const XDP: &str = "xdp_in";
/// Programs of other kinds, which a kernel may refuse one by one: what it is for people, and the site.
const OTHERS: [(&str, &str, Site); 5] = [
    (FENTRY, "fentry at the socket's queue", Site::QueueIn),
    (KPROBE, "a kprobe at the socket's queue", Site::QueueIn),
    (TC_OUT, "tc egress", Site::TcOut),
    (TC_IN, "tc ingress", Site::TcIn),
    (XDP, "XDP", Site::XdpIn),
];

type TakenPassages = Arc<Mutex<Vec<types::passage>>>;

/// The programs at their places. Dropped, they are gone.
pub struct EbpfStamps {
    // They are dropped in this order: what hands over, what takes, and the programs to which both belong.
    _links: Vec<Link>,
    _at_tc: Vec<AtTc>,
    ring: RingBuffer<'static>,
    skeleton: StampsSkel<'static>,
    taken: TakenPassages,
    decoder: PassageDecoder,
}

impl core::fmt::Debug for EbpfStamps {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_struct("Stamps").field("decoder", &self.decoder).finish_non_exhaustive()
    }
}

impl EbpfStamps {
    /// Loads and attaches what the scope asks for. What this kernel does not have or allow is left out and named.
    ///
    /// # Errors
    /// The kernel allows none of it; says why, and what would help.
    pub fn open(scope: &ProgramScope<'_>) -> Result<Opened, String> {
        if let Some(reason) = hindrance() {
            return Err(reason);
        }
        libbpf_rs::set_print(None);
        let (mut programs, mut missing) = traced(scope.sites)?;
        let others = OTHERS.iter().filter(|(_, _, site)| scope.sites.contains(*site)).map(|(name, ..)| *name);
        programs.extend(others.filter(|name| *name != FENTRY || scope.queue_hook == QueueHook::Fentry));
        let (skeleton, device) = load_possible(scope, &mut programs, &mut missing)?;
        let taken = TakenPassages::default();
        let ring = ring(&skeleton, &taken).map_err(|error| explain(&error))?;
        let (mut links, mut at_tc) = (Vec::new(), Vec::new());
        for name in &programs {
            // One place in the socket's queue, and fentry costs less.
            if *name == KPROBE && links.iter().any(|(name, _)| *name == FENTRY) {
                continue;
            }
            match attach_one(&skeleton, name, device) {
                Ok(Attached::Link(link)) => links.push((*name, link)),
                Ok(Attached::AtTc(attached)) => at_tc.push(attached),
                Err(reason) => missing.push(format!("eBPF, {}: {reason}", words(name))),
            }
        }
        if links.is_empty() && at_tc.is_empty() {
            return Err(missing.join("; "));
        }
        let decoder = PassageDecoder::new(scope.lengths);
        let links = links.into_iter().map(|(_, link)| link).collect();
        Ok((EbpfStamps { _links: links, _at_tc: at_tc, ring, skeleton, taken, decoder }, missing))
    }

    /// Hands over what has happened since the last call.
    ///
    /// # Errors
    /// The kernel's buffer cannot be read.
    pub fn drain(&mut self, mut take: impl FnMut(SitePassage)) -> io::Result<()> {
        self.ring.consume().map_err(|error| io::Error::other(error.to_string()))?;
        let taken = core::mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner));
        for passage in &taken {
            if let Some(passage) = self.decoder.decode(passage) {
                take(passage);
            }
        }
        Ok(())
    }

    /// How many passages the buffer could not take until now.
    pub fn lost(&self) -> u64 {
        self.skeleton.maps.bss_data.as_ref().map_or(0, |data| data.lost)
    }
}

/// What a program is for people.
fn words(name: &str) -> &str {
    OTHERS.iter().find(|(other, ..)| *other == name).map_or(name, |(_, words, _)| words)
}

/// The tracepoints that are wanted and that this kernel has.
fn traced(sites: Sites) -> Result<(Vec<&'static str>, Vec<String>), String> {
    let types = Btf::from_vmlinux().map_err(|error| explain(&error))?;
    let has = |name: &str| types.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}")).is_some();
    // The driver's end knows its packet from the driver's beginning.
    let is_wanted = |site| sites.contains(site) || (site == Site::DriverOut && sites.contains(Site::DoneOut));
    let wanted = TRACEPOINTS.iter().filter(|(_, site)| is_wanted(*site)).map(|(name, _)| *name);
    let (there, not_there): (Vec<_>, Vec<_>) = wanted.partition(|name| has(name));
    let missing = not_there.iter().map(|name| format!("eBPF, {name}: this kernel has no such tracepoint"));
    Ok((there, missing.collect()))
}

/// Loads these programs and no others. Also returns the index of the device.
fn load(scope: &ProgramScope<'_>, programs: &[&str]) -> Result<(StampsSkel<'static>, u32), String> {
    // What is opened is dropped with the skeleton. The two words that hold it are leaked.
    let room = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = StampsSkelBuilder::default().open(room).map_err(|error| explain(&error))?;
    let device = configure(&mut open, scope).map_err(|error| format!("{}: {error}", scope.device))?;
    open.maps.passages.set_max_entries(scope.buffer_bytes).map_err(|error| explain(&error))?;
    for mut program in open.open_object_mut().progs_mut() {
        let is_chosen = programs.iter().any(|name| program.name() == *name);
        program.set_autoload(is_chosen);
    }
    let skeleton = open.load().map_err(|error| explain(&error))?;
    Ok((skeleton, device))
}

/// One program that is refused makes all be refused: then each of the kinds that a kernel may refuse is tried alone,
/// and left out with the reason where it is the one.
fn load_possible(
    scope: &ProgramScope<'_>,
    programs: &mut Vec<&'static str>,
    missing: &mut Vec<String>,
) -> Result<(StampsSkel<'static>, u32), String> {
    if let Ok(loaded) = load(scope, programs) {
        return Ok(loaded);
    }
    for (name, words, _) in OTHERS {
        if !programs.contains(&name) {
            continue;
        }
        if let Err(reason) = load(scope, &[name]) {
            programs.retain(|other| *other != name);
            missing.push(format!("eBPF, {words}: {reason}"));
        }
    }
    load(scope, programs)
}

/// Writes what the programs look for, and returns the index of the device.
fn configure(open: &mut OpenStampsSkel<'_>, scope: &ProgramScope<'_>) -> io::Result<u32> {
    let device = device_index(scope.device)?;
    let network = std::fs::metadata("/proc/thread-self/ns/net")?.ino();
    let (shortest, longest) = scope.lengths.range();
    let data = open.maps.rodata_data.as_deref_mut().ok_or(io::ErrorKind::NotFound)?;
    let wanted = &mut data.wanted;
    wanted.run = scope.run;
    (wanted.device, wanted.network) = (device, u32::try_from(network).unwrap_or(0));
    (wanted.server_port, wanted.own_port) = (scope.server_port, scope.own_port);
    (wanted.shortest, wanted.longest) = (shortest as u16, longest as u16);
    Ok(device)
}

fn ring(skeleton: &StampsSkel<'_>, taken: &TakenPassages) -> libbpf_rs::Result<RingBuffer<'static>> {
    let taken = Arc::clone(taken);
    let take = move |bytes: &[u8]| {
        taken.lock().unwrap_or_else(PoisonError::into_inner).extend(read(bytes));
        0
    };
    let mut builder = RingBufferBuilder::new();
    builder.add(&skeleton.maps.passages, take)?;
    builder.build()
}

/// A program at its place.
enum Attached {
    Link(Link),
    AtTc(AtTc),
}

fn attach_one(skeleton: &StampsSkel<'_>, name: &str, device: u32) -> Result<Attached, String> {
    let mut programs = skeleton.object().progs_mut();
    let program = programs.find(|program| program.name() == name).ok_or("there is no such program")?;
    let at_tc = |direction| attach::attach(program.as_fd(), device, direction).map(Attached::AtTc);
    let link = match name {
        TC_OUT => return at_tc(Direction::Outgoing),
        TC_IN => return at_tc(Direction::Incoming),
        XDP => program.attach_xdp(device as i32),
        _ => program.attach(),
    };
    link.map(Attached::Link).map_err(|error| explain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ebpf::BUFFER_BYTES;
    use crate::payload::{LONGEST, Lengths, TestPacketId};
    use std::net::UdpSocket;

    const PACKETS: u64 = 400;

    /// Sends over loopback without taking anything; how many passages were there to take then, and how many were lost.
    /// `None` where the kernel allows no programs.
    fn taken_and_lost(buffer_bytes: u32) -> Option<(u64, u64)> {
        let (server, client) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
        client.connect(server.local_addr().unwrap()).unwrap();
        let (run, lengths) = (0x5eed, Lengths::from(64));
        let scope = ProgramScope {
            device: "lo",
            run,
            server_port: port(&server),
            own_port: port(&client),
            lengths,
            sites: Sites::of(&[Site::DriverOut]),
            queue_hook: QueueHook::Kprobe,
            buffer_bytes,
        };
        let mut stamps = match EbpfStamps::open(&scope) {
            Ok((stamps, _)) => stamps,
            Err(reason) => {
                println!("SKIP: eBPF: {reason}");
                return None;
            }
        };
        let mut buffer = [0; LONGEST];
        for sequence in 0..PACKETS {
            let identity = TestPacketId { run, sequence, direction: Direction::Outgoing };
            client.send(identity.write(lengths, &mut buffer)).unwrap();
        }
        let mut taken = 0;
        stamps.drain(|_| taken += 1).unwrap();
        Some((taken, stamps.lost()))
    }

    #[test]
    fn stamps_that_find_no_room_are_counted() {
        let Some((taken, lost)) = taken_and_lost(BUFFER_BYTES) else { return };
        assert_eq!((taken, lost), (PACKETS, 0));
        let (taken, lost) = taken_and_lost(4096).unwrap();
        assert!(taken > 0 && lost > 0, "{taken} taken, {lost} lost");
        assert_eq!(taken + lost, PACKETS, "{taken} taken, {lost} lost");
    }
}

//! The program and its maps.

use super::skeleton::{ResponderSkel, ResponderSkelBuilder};
use crate::rules::mapped;
use crate::{FastCounts, FastOutcome, FastPathError, FastPathPlace, Rules, Verdict};
use core::mem::MaybeUninit;
use ffclock_units::Span;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// The key of the one entry of a map.
const ONLY: [u8; 4] = [0; 4];
/// The words of a line that is none.
const NO_LINE: [u64; 10] = [0; 10];

/// The loaded program, wherever it is attached.
pub(super) struct Responder {
    skeleton: ResponderSkel<'static>,
    rules: RuleWords,
    networks: Vec<Vec<u8>>,
    served: Vec<[u8; 16]>,
}

impl core::fmt::Debug for Responder {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_struct("Responder").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// `struct rules` of the program.
#[derive(Clone, Copy, Debug, Default)]
struct RuleWords {
    interval_ns: u64,
    burst_ns: u64,
    verdict: u32,
    has_networks: u32,
    passes_interleaved: u32,
    line: u32,
    leak: u32,
    kiss: u32,
}

impl RuleWords {
    fn bytes(self) -> Vec<u8> {
        let halves = [self.verdict, self.has_networks, self.passes_interleaved, self.line, self.leak, self.kiss];
        let long = [self.interval_ns, self.burst_ns].into_iter().flat_map(u64::to_ne_bytes);
        long.chain(halves.into_iter().flat_map(u32::to_ne_bytes)).collect()
    }
}

/// `enum verdict` of the program.
const fn code(verdict: Verdict) -> u32 {
    match verdict {
        Verdict::Answer => 0,
        Verdict::Pass => 1,
        Verdict::Drop => 2,
    }
}

impl Responder {
    /// Loads the program with room for the addresses that the limit remembers.
    pub(super) fn load(place: &FastPathPlace) -> Result<Self, FastPathError> {
        libbpf_rs::set_print(None);
        // What is opened is dropped with the skeleton. The two words that hold it are leaked.
        let room = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = ResponderSkelBuilder::default().open(room).map_err(refused)?;
        let constants = open.maps.rodata_data.as_deref_mut();
        constants.ok_or_else(|| FastPathError::Refused("the program has no constants".to_owned()))?.port =
            place.port.to_be();
        open.maps.buckets.set_max_entries(place.addresses_remembered.max(1)).map_err(refused)?;
        let skeleton = open.load().map_err(refused)?;
        let mut responder =
            Responder { skeleton, rules: RuleWords::default(), networks: Vec::new(), served: Vec::new() };
        responder.withdraw()?;
        responder.rule(&Rules::default())?;
        Ok(responder)
    }

    pub(super) fn program(&self) -> BorrowedFd<'_> {
        self.skeleton.progs.responder.as_fd()
    }

    /// Frames through the program without a device.
    #[cfg(test)]
    pub(super) fn test_run<'data>(
        &self,
        input: libbpf_rs::ProgramInput<'data>,
    ) -> libbpf_rs::Result<libbpf_rs::ProgramOutput<'data>> {
        self.skeleton.progs.responder.test_run(input)
    }

    pub(super) fn serve(&mut self, addresses: &[IpAddr]) -> Result<(), FastPathError> {
        let wanted: Vec<[u8; 16]> = addresses.iter().map(|address| mapped(*address)).collect();
        let served = &self.skeleton.maps.served;
        for address in &wanted {
            served.update(address, &1_u32.to_ne_bytes(), MapFlags::ANY).map_err(refused)?;
        }
        for gone in self.served.iter().filter(|address| !wanted.contains(address)) {
            served.delete(gone).map_err(refused)?;
        }
        self.served = wanted;
        Ok(())
    }

    pub(super) fn rule(&mut self, rules: &Rules) -> Result<(), FastPathError> {
        let limit = rules.limit.filter(|limit| limit.interval > Span::ZERO);
        let interval_ns = limit.map_or(0, |limit| u64::try_from(limit.interval.as_nanos()).unwrap_or(u64::MAX >> 33));
        let ahead = limit.map_or(0, |limit| u64::from(limit.burst.saturating_sub(1)));
        self.list_networks(rules)?;
        self.rules = RuleWords {
            interval_ns,
            burst_ns: interval_ns.saturating_mul(ahead).min(u64::MAX >> 2),
            verdict: code(rules.otherwise),
            has_networks: u32::from(!rules.networks.is_empty()),
            passes_interleaved: u32::from(rules.leaves_interleaved),
            line: self.rules.line,
            leak: limit.map_or(0, |limit| limit.leak),
            kiss: rules.kiss,
        };
        self.write_rules()
    }

    fn list_networks(&mut self, rules: &Rules) -> Result<(), FastPathError> {
        if rules.networks.len() > Rules::NETWORKS_MAX {
            return Err(FastPathError::Refused(format!("more than {} networks in the lists", Rules::NETWORKS_MAX)));
        }
        let networks = &self.skeleton.maps.networks;
        let mut keys = Vec::new();
        for (prefix, address, verdict) in rules.mapped_networks() {
            let key = [prefix.to_ne_bytes().as_slice(), &address].concat();
            networks.update(&key, &code(verdict).to_ne_bytes(), MapFlags::ANY).map_err(refused)?;
            keys.push(key);
        }
        keys.sort_unstable();
        for gone in self.networks.iter().filter(|key| keys.binary_search(key).is_err()) {
            networks.delete(gone).map_err(refused)?;
        }
        keys.dedup();
        self.networks = keys;
        Ok(())
    }

    fn write_rules(&self) -> Result<(), FastPathError> {
        self.skeleton.maps.rules.update(&ONLY, &self.rules.bytes(), MapFlags::ANY).map_err(refused)
    }

    /// Fills the line that does not hold, then lets it hold.
    pub(super) fn publish(&mut self, words: &[u64; 10]) -> Result<(), FastPathError> {
        let next = self.rules.line ^ 1;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.skeleton.maps.lines.update(&next.to_ne_bytes(), &bytes, MapFlags::ANY).map_err(refused)?;
        self.rules.line = next;
        self.write_rules()
    }

    pub(super) fn withdraw(&mut self) -> Result<(), FastPathError> {
        self.publish(&NO_LINE)
    }

    pub(super) fn counts(&self) -> Result<FastCounts, FastPathError> {
        let mut counts = FastCounts::default();
        for outcome in FastOutcome::ALL {
            let key = (outcome as u32).to_ne_bytes();
            let values = self.skeleton.maps.counts.lookup_percpu(&key, MapFlags::ANY).map_err(refused)?;
            for value in values.unwrap_or_default() {
                counts.add(outcome, value.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes)));
            }
        }
        Ok(counts)
    }
}

/// The kernel's error in one line, with a remedy where there is one. Without rights it is EPERM; EACCES means that the
/// kernel's verifier refuses the program, which is a fault of ours.
fn refused(error: libbpf_rs::Error) -> FastPathError {
    let text = format!("{error:#}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    FastPathError::Refused(match text.contains("(os error 1)") {
        true => format!("{text}: it takes CAP_BPF and CAP_NET_ADMIN, and Linux 6.0"),
        false => text,
    })
}

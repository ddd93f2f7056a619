//! What a reload may change, in the hands of every thread: a thread looks at one number per batch to see whether there
//! is a new policy, and takes it between two batches. No packet is lost, and no lock is held while packets wait.

use crate::access::{AccessList, bits_of};
use crate::face::FaceOptions;
use crate::limit::LimitOptions;
use crate::options::WhenUnsynchronised;
use crate::ptp::PtpPolicy;
use ffclock_nts::CookieKeys;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How requests are judged and answered.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What replies claim.
    pub face: FaceOptions,
    /// Who is served.
    pub access: AccessList,
    /// How often.
    pub limit: LimitOptions,
    /// One of this number of requests beyond the limit is answered.
    pub leak: u64,
    /// Whether there are refusals.
    pub kiss: bool,
    /// Whether clients may interleave. The driver leaves their requests to the sockets, which know when replies left.
    pub interleaved: bool,
    /// What a grandmaster of PTP claims.
    pub ptp: PtpPolicy,
    /// What to do while not synchronised.
    pub unsynchronised: WhenUnsynchronised,
    /// The servers that are followed, with the reference identifier of each: a request from one of them gets a reply
    /// that says so, whichever of them is published, so that it never follows us in turn.
    pub followed: Vec<(u128, u32)>,
    /// The keys of NTS cookies; without them every request is an ordinary one.
    pub cookies: Option<Arc<CookieKeys>>,
}

impl Policy {
    /// The reference identifier by which a followed server recognises itself; `None` for everyone else.
    pub fn loop_reference(&self, ip: IpAddr) -> Option<u32> {
        if self.followed.is_empty() {
            return None;
        }
        let bits = bits_of(ip);
        self.followed.iter().find(|entry| entry.0 == bits).map(|entry| entry.1)
    }
}

/// The policy in force.
#[derive(Debug)]
pub struct PolicyBoard {
    generation: AtomicU64,
    policy: Mutex<Arc<Policy>>,
}

impl PolicyBoard {
    /// With a first policy.
    pub fn new(policy: Policy) -> Self {
        PolicyBoard { generation: AtomicU64::new(1), policy: Mutex::new(Arc::new(policy)) }
    }

    /// The policy in force.
    pub fn read(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts one in force that `change` makes of the present one.
    pub fn change(&self, change: impl FnOnce(&Policy) -> Policy) {
        let mut policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        *policy = Arc::new(change(&policy));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Renews `own` where there is a newer policy than the one of `generation`.
    pub fn renew(&self, own: &mut Arc<Policy>, generation: &mut u64) {
        let newest = self.generation.load(Ordering::Acquire);
        if *generation != newest {
            (*own, *generation) = (self.read(), newest);
        }
    }
}

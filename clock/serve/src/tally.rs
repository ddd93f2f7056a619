//! What a thread counts. It alone writes its tally, and a report reads it, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the enumeration of what is counted, with the name and the help of each.
macro_rules! counted {
    ($($(#[doc = $help:literal])+ $name:ident = $key:literal;)+) => {
        /// Something that is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counted { $($(#[doc = $help])+ $name,)+ }

        impl Counted {
            /// All of them, with the name of each.
            pub const ALL: &'static [(Counted, &'static str)] = &[$((Counted::$name, $key)),+];
        }
    };
}

counted! {
    /// Datagrams that came.
    Received = "received";
    /// Replies that claim a time.
    Answered = "answered";
    /// Replies that say that the server is not synchronised.
    Unsynchronised = "unsynchronised";
    /// Replies in the interleaved mode, which say when the reply before left.
    Interleaved = "interleaved";
    /// Refusals because of the rate.
    KissRate = "kiss_rate";
    /// Refusals because of the networks.
    KissDeny = "kiss_deny";
    /// Requests beyond the rate that got no answer.
    Limited = "limited";
    /// Requests beyond the rate that were answered nevertheless.
    Leaked = "leaked";
    /// Requests from networks that are not served.
    Denied = "denied";
    /// Requests that got no answer because the server is not synchronised.
    Silent = "silent";
    /// Datagrams shorter than a header.
    Truncated = "truncated";
    /// Datagrams longer than any request.
    TooLong = "too_long";
    /// Datagrams of a version other than 1 to 4.
    Version = "version";
    /// Datagrams that are no request: replies, broadcasts, control messages.
    NotRequest = "not_request";
    /// Requests protected by NTS that were answered; among the answered ones.
    NtsAnswered = "nts_answered";
    /// Protected requests whose cookie is unknown or too old: refused with NTSN.
    NtsCookie = "nts_cookie";
    /// Protected requests whose authenticator does not fit: refused with NTSN.
    NtsUnauthentic = "nts_unauthentic";
    /// Protected requests of another form than the standard's.
    NtsMalformed = "nts_malformed";
    /// Requests from a port or an address that no reply can reach.
    Unreachable = "unreachable";
    /// Requests to a group of hosts, by multicast or broadcast.
    ToGroup = "to_group";
    /// Replies that the kernel did not take.
    SendFailed = "send_failed";
    /// Requests without a stamp of the kernel, or with one that cannot be true: they were stamped when they were read.
    Unstamped = "unstamped";
}

/// The counts of one thread.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Tally([AtomicU64; Counted::ALL.len()]);

impl Tally {
    /// Counts `more` of them. Only the thread that owns the tally may.
    pub fn add(&self, what: Counted, more: u64) {
        let place = &self.0[what as usize];
        place.store(place.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// How many there were.
    pub fn count(&self, what: Counted) -> u64 {
        self.0[what as usize].load(Ordering::Relaxed)
    }
}

/// How many there were in all threads.
pub fn total<'a>(tallies: impl Iterator<Item = &'a Tally>, what: Counted) -> u64 {
    tallies.fold(0, |sum, tally| sum.wrapping_add(tally.count(what)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_stands_in_the_document() {
        let document = include_str!("../../../docs/control.md");
        for (_, name) in Counted::ALL {
            assert!(document.contains(&format!("`{name}`")), "docs/control.md does not explain `{name}`");
        }
    }

    #[test]
    fn counts_of_threads_are_summed() {
        let tallies = [Tally::default(), Tally::default()];
        tallies[0].add(Counted::Received, 2);
        tallies[1].add(Counted::Received, 3);
        tallies[1].add(Counted::Unstamped, 1);
        assert_eq!(
            [Counted::Received, Counted::Unstamped, Counted::Limited].map(|what| total(tallies.iter(), what)),
            [5, 1, 0]
        );
    }
}

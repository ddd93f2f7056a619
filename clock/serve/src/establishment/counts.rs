//! How connections for key establishment ended, counted by reason.

use core::sync::atomic::{AtomicU64, Ordering};

/// How a connection for key establishment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client has its keys and cookies.
    Established,
    /// The request was answered with an error record (RFC 8915, section 4.1.3).
    Refused,
    /// The client did not ask for this protocol by ALPN (RFC 8915, section 4).
    OtherProtocol,
    /// An older TLS, or no algorithm in common.
    Incompatible,
    /// The client broke TLS, or sent an alert.
    TlsFault,
    /// The client sent more than any request needs.
    TooLong,
    /// The time for one establishment was over.
    Late,
    /// The client left before its answer.
    Left,
    /// All places were taken and a new client needed the oldest one's.
    Displaced,
    /// Its address had too many connections already.
    AddressFull,
    /// Its address began too many establishments.
    Limited,
    /// Its network is not served.
    Denied,
    /// Neither protocol nor algorithm in common, which the answer says.
    NothingInCommon,
}

impl Ending {
    /// All of them, in the order of their declaration.
    pub const ALL: [Ending; 13] = [
        Ending::Established,
        Ending::Refused,
        Ending::OtherProtocol,
        Ending::Incompatible,
        Ending::TlsFault,
        Ending::TooLong,
        Ending::Late,
        Ending::Left,
        Ending::Displaced,
        Ending::AddressFull,
        Ending::Limited,
        Ending::Denied,
        Ending::NothingInCommon,
    ];

    /// Its name in status and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Established => "established",
            Ending::Refused => "refused",
            Ending::OtherProtocol => "other_protocol",
            Ending::Incompatible => "incompatible",
            Ending::TlsFault => "tls_fault",
            Ending::TooLong => "too_long",
            Ending::Late => "late",
            Ending::Left => "left",
            Ending::Displaced => "displaced",
            Ending::AddressFull => "address_full",
            Ending::Limited => "limited",
            Ending::Denied => "denied",
            Ending::NothingInCommon => "nothing_in_common",
        }
    }
}

/// A counter for each [`Ending`], shared by all threads.
#[derive(Debug, Default)]
pub struct EndingCounts([AtomicU64; Ending::ALL.len()]);

impl EndingCounts {
    /// Counts one.
    pub(super) fn count(&self, ending: Ending) {
        self.0[ending as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many connections ended so.
    pub fn of(&self, ending: Ending) -> u64 {
        self.0[ending as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ending_has_a_counter_and_a_name_of_its_own() {
        let counts = EndingCounts::default();
        for (index, ending) in Ending::ALL.into_iter().enumerate() {
            assert_eq!(ending as usize, index);
            assert!(Ending::ALL[..index].iter().all(|other| other.name() != ending.name()));
            counts.count(ending);
            assert_eq!(counts.of(ending), 1);
        }
    }
}

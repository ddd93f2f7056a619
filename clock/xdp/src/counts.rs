//! Packets to the served port, by outcome.

/// The outcome of a packet. The order is that of `enum outcome` in `bpf/responder.bpf.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOutcome {
    /// Answered in the driver.
    Replied,
    /// Answered in the driver although its address asks too often.
    Leaked,
    /// Refused in the driver: its address asks too often.
    KissRate,
    /// Refused in the driver: its network is denied.
    KissDeny,
    /// Dropped: its address asks too often.
    Limited,
    /// Dropped: its network is denied.
    Denied,
    /// Passed on: to an address that is not served.
    PassedAddress,
    /// Passed on: not exactly a header of NTP; extension fields, NTS, control messages.
    PassedForm,
    /// Passed on: not a client's request of version 3 or 4.
    PassedMode,
    /// Passed on: its source cannot be answered.
    PassedSource,
    /// Passed on: a checksum is wrong.
    PassedChecksum,
    /// Passed on: it may ask for the interleaved mode (RFC 9769).
    PassedInterleaved,
    /// Passed on: its network is for the sockets to judge.
    PassedNetwork,
    /// Passed on: there was no line, or it was too old.
    PassedStale,
    /// Passed on: the line was being written.
    PassedTorn,
}

impl FastOutcome {
    /// All of them, in their order.
    pub const ALL: [FastOutcome; 15] = [
        FastOutcome::Replied,
        FastOutcome::Leaked,
        FastOutcome::KissRate,
        FastOutcome::KissDeny,
        FastOutcome::Limited,
        FastOutcome::Denied,
        FastOutcome::PassedAddress,
        FastOutcome::PassedForm,
        FastOutcome::PassedMode,
        FastOutcome::PassedSource,
        FastOutcome::PassedChecksum,
        FastOutcome::PassedInterleaved,
        FastOutcome::PassedNetwork,
        FastOutcome::PassedStale,
        FastOutcome::PassedTorn,
    ];

    /// Its name in status and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            FastOutcome::Replied => "replied",
            FastOutcome::Leaked => "leaked",
            FastOutcome::KissRate => "kiss_rate",
            FastOutcome::KissDeny => "kiss_deny",
            FastOutcome::Limited => "limited",
            FastOutcome::Denied => "denied",
            FastOutcome::PassedAddress => "passed_address",
            FastOutcome::PassedForm => "passed_form",
            FastOutcome::PassedMode => "passed_mode",
            FastOutcome::PassedSource => "passed_source",
            FastOutcome::PassedChecksum => "passed_checksum",
            FastOutcome::PassedInterleaved => "passed_interleaved",
            FastOutcome::PassedNetwork => "passed_network",
            FastOutcome::PassedStale => "passed_stale",
            FastOutcome::PassedTorn => "passed_torn",
        }
    }
}

/// How many packets had which outcome since the program was attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FastCounts([u64; FastOutcome::ALL.len()]);

impl FastCounts {
    /// Packets with this outcome.
    pub const fn of(&self, outcome: FastOutcome) -> u64 {
        self.0[outcome as usize]
    }

    /// Packets to the served port that went on to the network stack, for whatever reason.
    pub fn passed(&self) -> u64 {
        self.0.iter().skip(FastOutcome::PassedAddress as usize).sum()
    }

    /// Each outcome with its packets.
    pub fn iter(&self) -> impl Iterator<Item = (FastOutcome, u64)> {
        FastOutcome::ALL.into_iter().zip(self.0)
    }

    /// Counts packets.
    #[cfg(any(feature = "ebpf", test))]
    pub(crate) fn add(&mut self, outcome: FastOutcome, packets: u64) {
        self.0[outcome as usize] += packets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_stand_in_their_order_and_have_names_of_their_own() {
        let mut names: Vec<&str> = FastOutcome::ALL.map(FastOutcome::name).into();
        assert!(FastOutcome::ALL.iter().enumerate().all(|(place, outcome)| *outcome as usize == place));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FastOutcome::ALL.len());
    }

    #[test]
    fn what_was_passed_on_is_neither_answered_nor_dropped() {
        let mut counts = FastCounts::default();
        for (packets, outcome) in (1..).zip(FastOutcome::ALL) {
            counts.add(outcome, packets);
        }
        let all: u64 = counts.iter().map(|(_, packets)| packets).sum();
        let others: u64 = FastOutcome::ALL.iter().take(6).map(|one| counts.of(*one)).sum();
        assert_eq!((counts.passed(), others), (all - others, 21));
    }
}

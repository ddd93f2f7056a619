//! The rules of Figure 1, one by one, and the machine under nonsense.

use super::*;
use crate::record::SwitchRule;
use proptest::prelude::*;

fn process(n: u32, f: u32, form: AlgorithmForm, delay: u64) -> Process {
    let mut process = Process::new(Quorum::new(n, f).unwrap(), form, delay);
    assert!(process.start(0).is_empty());
    process
}

/// The only switch, or none; two would be one too many.
fn only(switches: Switches) -> Option<RoundSwitch> {
    let mut switches = switches.into_iter();
    let first = switches.next();
    assert_eq!(switches.next(), None);
    first
}

fn drained(process: &mut Process) -> Vec<u64> {
    std::iter::from_fn(|| process.poll_transmit()).collect()
}

/// Line 3: "send (init, 1) to all [once]".
#[test]
fn a_process_sends_round_one_once() {
    let mut process = process(4, 1, AlgorithmForm::Repaired, 0);
    assert_eq!(drained(&mut process), [1]);
    assert_eq!(only(process.start(5)), None);
    assert_eq!(drained(&mut process), [0u64; 0]);
}

/// Line 12: "if received (init, k) from at least n - f distinct processes".
#[test]
fn a_quorum_of_distinct_senders_advances() {
    let mut process = process(4, 1, AlgorithmForm::Repaired, 0);
    drained(&mut process);
    assert_eq!(only(process.receive(0, 1, 1)), None);
    assert_eq!(only(process.receive(1, 1, 2)), None);
    assert_eq!(only(process.receive(1, 1, 3)), None, "a duplicate does not count");
    assert_eq!(
        only(process.receive(3, 1, 4)),
        Some(RoundSwitch { from: 1, to: 2, decided: 4, rule: SwitchRule::Advance })
    );
    assert_eq!(drained(&mut process), [2]);
    assert_eq!(only(process.receive(2, 1, 5)), None, "a late message of a round that has passed");
}

/// Line 6: "if received (init, l) from at least f + 1 distinct processes with l >= k", and the repair.
#[test]
fn a_jump_sends_the_skipped_rounds_or_only_the_last() {
    for (form, sent) in [(AlgorithmForm::Repaired, vec![2, 3, 4]), (AlgorithmForm::Printed, vec![4])] {
        let mut process = process(4, 1, form, 0);
        drained(&mut process);
        assert_eq!(only(process.receive(2, 4, 1)), None);
        assert_eq!(
            only(process.receive(3, 4, 2)),
            Some(RoundSwitch { from: 1, to: 4, decided: 2, rule: SwitchRule::CatchUp })
        );
        assert_eq!(drained(&mut process), sent, "{form:?}");
        assert_eq!(process.count(4), 2, "what was counted for the new round stays counted");
    }
}

/// Line 13: "delay(D)".
#[test]
fn the_delay_runs_from_the_quorum_and_a_jump_ends_it() {
    let mut process = process(4, 1, AlgorithmForm::Repaired, 100);
    for sender in 0..3 {
        assert_eq!(only(process.receive(sender, 1, 10 + u64::from(sender))), None);
    }
    assert_eq!(process.deadline(), Some(112));
    assert_eq!(only(process.receive(3, 1, 50)), None);
    assert_eq!(process.deadline(), Some(112), "a further message does not restart the delay");
    assert_eq!(only(process.wake(111)), None);
    assert_eq!(only(process.wake(112)), Some(RoundSwitch { from: 1, to: 2, decided: 12, rule: SwitchRule::Advance }));
    for sender in 0..3 {
        process.receive(sender, 2, 120);
    }
    assert_eq!(process.deadline(), Some(220));
    process.receive(0, 3, 130);
    assert_eq!(
        only(process.receive(1, 3, 131)),
        Some(RoundSwitch { from: 2, to: 3, decided: 131, rule: SwitchRule::CatchUp })
    );
    assert_eq!(process.deadline(), None);
    assert_eq!(only(process.wake(220)), None);
}

#[test]
fn messages_before_the_start_count() {
    let mut process = Process::new(Quorum::new(4, 1).unwrap(), AlgorithmForm::Repaired, 0);
    for (sender, round) in [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2)] {
        assert_eq!(only(process.receive(sender, round, 0)), None);
    }
    assert_eq!(only(process.start(7)), Some(RoundSwitch { from: 1, to: 2, decided: 7, rule: SwitchRule::CatchUp }));
    assert_eq!(drained(&mut process), [1, 2]);
}

/// Two switches, and each is reported: an advance goes one round.
#[test]
fn a_catch_up_and_an_advance_at_once_are_two_switches() {
    let mut process = Process::new(Quorum::new(4, 1).unwrap(), AlgorithmForm::Repaired, 0);
    for (sender, round) in [(0, 5), (1, 5), (2, 5), (1, 6)] {
        process.receive(sender, round, 0);
    }
    let switches: Vec<RoundSwitch> = process.start(7).into_iter().collect();
    let caught_up = RoundSwitch { from: 1, to: 5, decided: 7, rule: SwitchRule::CatchUp };
    let advanced = RoundSwitch { from: 5, to: 6, decided: 7, rule: SwitchRule::Advance };
    assert_eq!(switches, [caught_up, advanced]);
    assert_eq!(std::iter::from_fn(|| process.poll_transmit_up_to(5)).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(drained(&mut process), [6]);
}

#[test]
fn one_process_alone_goes_on() {
    let mut process = process(1, 0, AlgorithmForm::Repaired, 0);
    for round in 1..100 {
        assert_eq!(drained(&mut process), [round]);
        let advanced = RoundSwitch { from: round, to: round + 1, decided: round, rule: SwitchRule::Advance };
        assert_eq!(only(process.receive(0, round, round)), Some(advanced));
    }
}

/// Rounds far ahead are kept as the newest of each sender: a process that lags by more than the window still catches
/// up.
#[test]
fn a_process_far_behind_catches_up() {
    let mut process = process(4, 1, AlgorithmForm::Repaired, 0);
    drained(&mut process);
    assert_eq!(only(process.receive(1, 1_000_000, 1)), None);
    let caught_up = RoundSwitch { from: 1, to: 999_000, decided: 2, rule: SwitchRule::CatchUp };
    assert_eq!(only(process.receive(2, 999_000, 2)), Some(caught_up));
    assert_eq!(drained(&mut process).len(), 998_999);
    process.receive(1, 999_000, 3);
    let advanced = RoundSwitch { from: 999_000, to: 999_001, decided: 4, rule: SwitchRule::Advance };
    assert_eq!(only(process.receive(0, 999_000, 4)), Some(advanced));
}

/// Receives and, as the network would, gives each own broadcast back; the rounds come in the order in which they were
/// sent.
fn hear_oneself(process: &mut Process, own: u32) {
    while let Some(round) = process.poll_transmit() {
        process.receive(own, round, 0);
    }
}

/// n = 4, f = 1, C silent: A and B went on with C's help to round 70, more rounds than a window has, before P started.
#[test]
fn rounds_beyond_the_window_before_the_start_are_not_lost() {
    let mut process = Process::new(Quorum::new(4, 1).unwrap(), AlgorithmForm::Repaired, 0);
    for sender in [0, 1] {
        for round in 1..=70 {
            process.receive(sender, round, 0);
        }
    }
    process.start(0);
    hear_oneself(&mut process, 3);
    assert_eq!(process.round(), 71, "P completes the quorum of 70");
}

/// The same after the start, one sender after the other.
#[test]
fn rounds_beyond_the_window_of_one_sender_are_not_lost() {
    let mut process = Process::new(Quorum::new(4, 1).unwrap(), AlgorithmForm::Repaired, 0);
    process.start(0);
    for (sender, last) in [(0, 70), (1, 69)] {
        for round in 1..=last {
            process.receive(sender, round, 0);
        }
    }
    hear_oneself(&mut process, 3);
    assert_eq!(process.round(), 70, "A, B and P have sent 69");
}

#[test]
fn one_faulty_process_alone_moves_nobody() {
    let mut process = process(4, 1, AlgorithmForm::Repaired, 0);
    for round in [2, 3, 100, 1 << 40, u64::MAX, 0, 1] {
        assert_eq!(only(process.receive(3, round, 0)), None);
    }
    assert_eq!(only(process.receive(4, 1, 0)), None, "a sender that does not exist");
    assert_eq!(only(process.receive(u32::MAX, 2, 0)), None);
    assert_eq!(process.round(), 1);
}

#[test]
fn sizes_are_checked() {
    assert!(Quorum::new(4, 1).is_ok() && Quorum::new(1, 0).is_ok() && Quorum::new(10_000, 3_333).is_ok());
    let message = Quorum::new(6, 2).unwrap_err().to_string();
    assert!(message.contains("n must be at least 3f + 1 = 7"), "{message}");
    assert_eq!(Quorum::new(0, 0), Err(QuorumError::Empty));
    assert!(Quorum::new(u32::MAX, u32::MAX).is_err());
    assert_eq!(Quorum::new(20_000, 0), Err(QuorumError::TooManyProcesses { processes: 20_000 }));
}

/// The rules, written down as sets without a window: what the machine must equal as long as no process is further
/// ahead than the window.
#[derive(Default)]
struct Oracle {
    received: std::collections::BTreeSet<(u64, u32)>,
    round: u64,
}

impl Oracle {
    fn count(&self, round: u64) -> usize {
        self.received.range((round, 0)..=(round, u32::MAX)).count()
    }

    fn receive(&mut self, sender: u32, round: u64, quorum: Quorum) -> u64 {
        self.received.insert((round, sender));
        let highest = self.received.last().expect("one was inserted").0;
        for later in (self.round + 1..=highest).rev() {
            if self.count(later) >= quorum.catch_up() as usize {
                self.round = later;
            }
        }
        if self.count(self.round) >= quorum.advance() as usize {
            self.round += 1;
        }
        self.round
    }
}

proptest! {
    /// Each sender sends all rounds up to some one, they come in any order, some before the start: in the end a
    /// machine with the shortest windows stands where the rules without a window put it.
    #[test]
    fn a_short_window_ends_where_the_rules_on_sets_do(
        f in 0u32..4,
        more in 1u32..4,
        window in 1usize..5,
        last in proptest::collection::vec(0u64..30, 13),
        start in 0usize..200,
        seed in any::<u64>(),
    ) {
        let quorum = Quorum::new(3 * f + more, f).unwrap();
        let mut messages: Vec<(u32, u64)> =
            (0..quorum.processes()).flat_map(|sender| (1..=last[sender as usize]).map(move |round| (sender, round))).collect();
        let mut random = ffclock_sim::Random::new(seed);
        let mut process = Process::new(quorum, AlgorithmForm::Repaired, 0).remembering(window);
        let mut oracle = Oracle { round: 1, ..Oracle::default() };
        let mut received = 0;
        while !messages.is_empty() {
            if received == start {
                process.start(0);
            }
            let place = random.bits() as usize % messages.len();
            let (sender, round) = messages.swap_remove(place);
            process.receive(sender, round, 0);
            oracle.receive(sender, round, quorum);
            received += 1;
        }
        process.start(0);
        prop_assert_eq!(process.round(), oracle.round);
        prop_assert_eq!(drained(&mut process), (1..=process.round()).collect::<Vec<_>>());
    }

    #[test]
    fn the_machine_equals_the_rules_on_sets(
        f in 0u32..4,
        more in 1u32..4,
        messages in proptest::collection::vec((0u32..13, 0u64..12), 0..400),
    ) {
        let quorum = Quorum::new(3 * f + more, f).unwrap();
        let mut process = Process::new(quorum, AlgorithmForm::Repaired, 0);
        process.start(0);
        let mut oracle = Oracle { round: 1, ..Oracle::default() };
        let mut sent = drained(&mut process);
        for (sender, ahead) in messages {
            let (sender, round) = (sender % quorum.processes(), process.round().saturating_sub(2) + ahead);
            process.receive(sender, round, 0);
            prop_assert_eq!(process.round(), oracle.receive(sender, round, quorum));
            sent.extend(drained(&mut process));
        }
        prop_assert_eq!(sent, (1..=process.round()).collect::<Vec<_>>());
    }

    #[test]
    fn nonsense_never_moves_the_clock_back(messages in proptest::collection::vec((any::<u32>(), any::<u64>(), any::<u64>()), 0..200)) {
        let mut process = Process::new(Quorum::new(4, 1).unwrap(), AlgorithmForm::Printed, 7);
        process.start(0);
        let mut round = 1;
        for (sender, number, now) in messages {
            process.receive(sender % 5, number, now);
            process.wake(now);
            prop_assert!(process.round() >= round);
            round = process.round();
        }
    }
}

//! One process: the two rules of Figure 1 over a tally of messages.

use super::Quorum;
use super::tally::{Recording, SenderWindow};
use crate::record::{self, SwitchRule};
use serde::{Deserialize, Serialize};

/// Which algorithm a process runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlgorithmForm {
    /// Every round that is jumped over is sent: does not stop.
    #[default]
    Repaired,
    /// Figure 1 as printed: only the round landed on is sent. Known to be bad from f = 2 on; kept so that checkers can
    /// show that they find it.
    Printed,
}

impl From<AlgorithmForm> for record::RecordedForm {
    fn from(form: AlgorithmForm) -> Self {
        match form {
            AlgorithmForm::Repaired => record::RecordedForm::Repaired,
            AlgorithmForm::Printed => record::RecordedForm::Printed,
        }
    }
}

/// A process went to a later round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoundSwitch {
    /// The round it left.
    pub from: u64,
    /// The round it is in now.
    pub to: u64,
    /// When the rule's condition was found to hold: before the delay D.
    pub decided: u64,
    /// The rule that applied.
    pub rule: SwitchRule,
}

/// What one input makes a process do: mostly nothing, or a switch, or a catch-up and an advance from the round caught
/// up to. There is no third: after a catch-up to the highest round that f + 1 have sent, at most f have sent a later
/// one, which is less than an advance from it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Switches([Option<RoundSwitch>; 2]);

impl Switches {
    /// Whether the process stays where it is.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    /// The same switches, decided at another time.
    pub fn decided_at(self, decided: u64) -> Self {
        Switches(self.0.map(|switch| switch.map(|switch| RoundSwitch { decided, ..switch })))
    }

    fn push(&mut self, switch: RoundSwitch) {
        debug_assert!(self.0[1].is_none(), "a third switch at once: {self:?}, {switch:?}");
        self.0[usize::from(self.0[0].is_some())] = Some(switch);
    }
}

impl IntoIterator for Switches {
    type Item = RoundSwitch;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<RoundSwitch>, 2>>;

    /// In the order in which they happen.
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}

/// A correct process. Times are in any unit, as long as it is always the same; they serve the delay D only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    quorum: Quorum,
    form: AlgorithmForm,
    /// The paper's D, between a quorum and the advance.
    delay: u64,
    /// The paper's k: the round, and the clock's value.
    round: u64,
    /// The next round to be sent; everything up to `round` is due.
    unsent: u64,
    /// When the round that has its quorum ends.
    deadline: Option<u64>,
    tally: SenderWindow,
}

impl Process {
    /// A process that has not started: it is in round 1 and has sent nothing.
    pub fn new(quorum: Quorum, form: AlgorithmForm, delay: u64) -> Self {
        let tally = SenderWindow::new(quorum.processes(), form);
        Process { quorum, form, delay, round: 0, unsent: 1, deadline: None, tally }
    }

    /// The same with a window of `rounds`, rounded up to a power of two, instead of up to 64: tests reach the end of a
    /// small window soon.
    pub fn remembering(self, rounds: usize) -> Self {
        Process { tally: SenderWindow::with_window(self.quorum.processes(), self.form, rounds), ..self }
    }

    /// Begins round 1 (Figure 1, line 3). Messages that came before count.
    pub fn start(&mut self, now: u64) -> Switches {
        if self.round > 0 {
            return Switches::default();
        }
        self.round = 1;
        self.settle(now, Switches::default(), RuleScope::Everywhere)
    }

    /// Takes (init, `round`) from `sender`, which the caller has authenticated. A message that is old, known or from
    /// an unknown sender changes nothing.
    pub fn receive(&mut self, sender: u32, round: u64, now: u64) -> Switches {
        let recorded = self.tally.record(sender, round);
        let mut switches = Switches::default();
        if self.round == 0 {
            return switches;
        }
        match recorded {
            Recording::Counted(count) if round > self.round && count >= self.quorum.catch_up() => {
                let look = self.switch(&mut switches, round, SwitchRule::CatchUp, now);
                self.settle(now, switches, look)
            }
            Recording::Counted(count) if round == self.round && count >= self.quorum.advance() => {
                self.settle(now, switches, RuleScope::Here)
            }
            Recording::Beyond => self.settle(now, switches, RuleScope::Everywhere),
            Recording::Counted(_) | Recording::Nothing => switches,
        }
    }

    /// Lets time pass: to be called at [`Self::deadline`] or later.
    pub fn wake(&mut self, now: u64) -> Switches {
        self.settle(now, Switches::default(), RuleScope::Here)
    }

    /// When to call [`Self::wake`], if no message comes before.
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// The next round to broadcast to all, this process included: (init, k) once for each k.
    pub fn poll_transmit(&mut self) -> Option<u64> {
        self.poll_transmit_up_to(u64::MAX)
    }

    /// The same for rounds up to `limit`: what belongs to the first of two switches goes out before the second.
    pub fn poll_transmit_up_to(&mut self, limit: u64) -> Option<u64> {
        let round = self.unsent;
        (round <= self.round.min(limit)).then(|| {
            self.unsent = round.saturating_add(1);
            round
        })
    }

    /// The round k, which is the clock's value; 0 before the start.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// How many processes have sent `round` as far as this one knows: 0 for rounds that have passed.
    pub fn count(&self, round: u64) -> u32 {
        self.tally.count(round)
    }

    /// Whether this process has counted (init, `round`) of `sender`, for rounds that have not passed.
    pub fn has_from(&self, sender: u32, round: u64) -> bool {
        self.tally.has(sender, round)
    }

    /// The sizes it runs with.
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// The highest later round to which the catch-up rule leads.
    #[cold]
    fn catch_up_target(&self) -> Option<u64> {
        let enough = self.quorum.catch_up();
        self.tally.reached_beyond(enough).or_else(|| self.tally.highest_with(enough, self.round))
    }

    fn switch(&mut self, switches: &mut Switches, to: u64, rule: SwitchRule, decided: u64) -> RuleScope {
        let from = std::mem::replace(&mut self.round, to);
        if rule == SwitchRule::CatchUp && self.form == AlgorithmForm::Printed {
            self.unsent = to;
        }
        self.deadline = None;
        let others_came_in = self.tally.forget_before(to);
        debug_assert_eq!(self.tally.first(), to);
        switches.push(RoundSwitch { from, to, decided, rule });
        if others_came_in { RuleScope::Everywhere } else { RuleScope::Here }
    }

    /// Applies the rules until none applies: the quorum of the present round starts the delay D, and its end ends the
    /// round.
    fn settle(&mut self, now: u64, mut switches: Switches, mut look: RuleScope) -> Switches {
        loop {
            if look == RuleScope::Everywhere
                && let Some(target) = self.catch_up_target()
            {
                look = self.switch(&mut switches, target, SwitchRule::CatchUp, now);
                continue;
            }
            if self.deadline.is_none() && self.tally.count(self.round) >= self.quorum.advance() {
                self.deadline = Some(now.saturating_add(self.delay));
            }
            let Some(deadline) = self.deadline.filter(|&deadline| deadline <= now) else { return switches };
            let decided = deadline.saturating_sub(self.delay);
            look = self.switch(&mut switches, self.round.saturating_add(1), SwitchRule::Advance, decided);
        }
    }
}

/// Where a rule may have begun to apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RuleScope {
    /// In the present round.
    Here,
    /// In any.
    Everywhere,
}

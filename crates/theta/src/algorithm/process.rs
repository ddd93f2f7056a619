//! One process: the two rules of Figure 1 over a tally of messages.

use super::Quorum;
use super::tally::{Recorded, Tally};
use crate::record::{self, SwitchRule};
use serde::{Deserialize, Serialize};

/// Which algorithm a process runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Every round that is jumped over is sent: does not stop.
    #[default]
    Repaired,
    /// Figure 1 as printed: only the round landed on is sent. Known to be bad from f = 2 on; kept so that checkers can show that they find it.
    Printed,
}

impl From<Form> for record::Form {
    fn from(form: Form) -> Self {
        match form {
            Form::Repaired => record::Form::Repaired,
            Form::Printed => record::Form::Printed,
        }
    }
}

/// A process went to a later round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Switch {
    /// The round it left.
    pub from: u64,
    /// The round it is in now.
    pub to: u64,
    /// When the rule's condition was found to hold: before the delay D.
    pub decided: u64,
    /// The rule that applied (the last, if two did at once).
    pub rule: SwitchRule,
}

/// A correct process. Times are in any unit, as long as it is always the same; they serve the delay D only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    quorum: Quorum,
    form: Form,
    /// The paper's D, between a quorum and the advance.
    delay: u64,
    /// The paper's k: the round, and the clock's value.
    round: u64,
    /// The next round to be sent; everything up to `round` is due.
    unsent: u64,
    /// When the round that has its quorum ends.
    deadline: Option<u64>,
    tally: Tally,
}

impl Process {
    /// A process that has not started: it is in round 1 and has sent nothing.
    pub fn new(quorum: Quorum, form: Form, delay: u64) -> Self {
        let tally = Tally::new(quorum.processes());
        Process { quorum, form, delay, round: 0, unsent: 1, deadline: None, tally }
    }

    /// Begins round 1 (Figure 1, line 3). Messages that came before count.
    pub fn start(&mut self, now: u64) -> Option<Switch> {
        if self.round > 0 {
            return None;
        }
        self.round = 1;
        let target = self.tally.highest_with(self.quorum.catch_up(), 1);
        let caught_up = target.map(|target| self.switch(target, SwitchRule::CatchUp, now));
        self.after_rule(caught_up, now)
    }

    /// Takes (init, `round`) from `sender`, whom the caller has made sure of. What is old, known or from nobody changes nothing.
    pub fn receive(&mut self, sender: u32, round: u64, now: u64) -> Option<Switch> {
        let recorded = self.tally.record(sender, round);
        if self.round == 0 {
            return None;
        }
        match recorded {
            Recorded::Counted(count) if round > self.round && count >= self.quorum.catch_up() => {
                let caught_up = self.switch(round, SwitchRule::CatchUp, now);
                self.after_rule(Some(caught_up), now)
            }
            Recorded::Counted(count) if round == self.round && count >= self.quorum.advance() => {
                self.after_rule(None, now)
            }
            Recorded::Beyond => self.catch_up_beyond(now),
            Recorded::Counted(_) | Recorded::Nothing => None,
        }
    }

    /// Lets time pass: to be called at [`Self::deadline`] or later.
    pub fn wake(&mut self, now: u64) -> Option<Switch> {
        let deadline = self.deadline.take_if(|deadline| *deadline <= now)?;
        let advanced =
            self.switch(self.round.saturating_add(1), SwitchRule::Advance, deadline.saturating_sub(self.delay));
        self.after_rule(Some(advanced), now)
    }

    /// When to call [`Self::wake`], if no message comes before.
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// The next round to broadcast to all, this process included: (init, k) once for each k.
    pub fn poll_transmit(&mut self) -> Option<u64> {
        let round = self.unsent;
        (round <= self.round).then(|| {
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

    #[cold]
    fn catch_up_beyond(&mut self, now: u64) -> Option<Switch> {
        let target = self.tally.reached_beyond(self.quorum.catch_up())?;
        let caught_up = self.switch(target, SwitchRule::CatchUp, now);
        self.after_rule(Some(caught_up), now)
    }

    fn switch(&mut self, to: u64, rule: SwitchRule, decided: u64) -> Switch {
        let from = std::mem::replace(&mut self.round, to);
        if rule == SwitchRule::CatchUp && self.form == Form::Printed {
            self.unsent = to;
        }
        self.deadline = None;
        self.tally.forget_before(to);
        debug_assert_eq!(self.tally.first(), to);
        Switch { from, to, decided, rule }
    }

    /// Applies what else has become possible: the quorum of the present round starts the delay D, and without delay ends the round.
    fn after_rule(&mut self, last: Option<Switch>, now: u64) -> Option<Switch> {
        if self.deadline.is_none() && self.tally.count(self.round) >= self.quorum.advance() {
            self.deadline = Some(now.saturating_add(self.delay));
        }
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return last;
        }
        let advanced = self.wake(now)?;
        Some(Switch { from: last.map_or(advanced.from, |last| last.from), ..advanced })
    }
}

//! Working on sends and switches in the order of time, as soon as nothing earlier can come.

use super::super::ratio::Ratio;
use super::super::tally::{Tally, smaller};
use super::super::window::NEVER;
use super::{Certainty, Pass, Send, Stamping, Wanted};
use crate::record::{Origin, ProcessId};

/// Whether to wait for what is outstanding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// A send waits until all correct processes have perceived it.
    Wait,
    /// What has not been perceived by now never was.
    GiveUp,
}

/// What comes next in time.
enum Next {
    Send,
    Turns,
    Nothing,
}

impl Pass {
    /// Ends the pass: what is outstanding stays so.
    pub fn finish(self) -> Tally {
        self.finish_shard().0
    }

    /// The same, with what it knows of what was not read.
    pub(in super::super) fn finish_shard(mut self) -> (Tally, Certainty) {
        for process in std::mem::take(&mut self.holders) {
            self.release_hold(process, i64::MIN);
        }
        self.watermark_ps = i64::MAX;
        while self.step(Patience::GiveUp) {}
        while !self.window.is_empty() {
            self.retire();
        }
        (self.tally.settled(), self.certainty)
    }

    pub(super) fn release(&mut self) {
        while self.step(Patience::Wait) {}
        while self.oldest_is_done() {
            self.retire();
        }
    }

    /// Gives the oldest round up, whatever is outstanding in it.
    pub(super) fn give_up_oldest(&mut self) {
        while self.window.front().is_some_and(|round| round.unreleased > 0) && self.step(Patience::GiveUp) {}
        self.look_for_forgeries();
        self.window.give_up();
    }

    fn next(&self) -> Next {
        match (self.sends.first(), self.turns.first()) {
            (None, None) => Next::Nothing,
            (Some(_), None) => Next::Send,
            (None, Some(_)) => Next::Turns,
            (Some(&(sent, _)), Some(&(turned, _))) => {
                let send_first = match self.options.stamping {
                    Stamping::AfterBroadcast => sent <= turned,
                    Stamping::BeforeBroadcast => sent < turned,
                };
                if send_first { Next::Send } else { Next::Turns }
            }
        }
    }

    /// Works on what comes next in time; false if that must wait.
    fn step(&mut self, patience: Patience) -> bool {
        // What was sent after a held switch must not be in transit at it, and what was in transit must not be forgotten.
        let watermark = self.watermark_ps.min(self.held_ps);
        if patience == Patience::GiveUp {
            self.release_holds_before_next();
        }
        match self.next() {
            Next::Nothing => false,
            Next::Send => {
                let may = |&(at, send): &(i64, Send)| at <= watermark && self.is_complete(&send);
                if patience == Patience::Wait && !self.sends.first().is_some_and(may) {
                    return false;
                }
                if let Some((at, send)) = self.sends.pop() {
                    self.release_send(at, &send);
                }
                true
            }
            Next::Turns => {
                let &(at, _) = self.turns.first().expect("a switch comes next");
                if at >= watermark && watermark != i64::MAX && patience == Patience::Wait {
                    return false;
                }
                self.release_turns();
                true
            }
        }
    }

    /// Holds that are older than what is given up will not see their broadcasts.
    fn release_holds_before_next(&mut self) {
        let next = self.sends.first().map(|&(at, _)| at).into_iter().chain(self.turns.first().map(|&(at, _)| at)).min();
        let is_before = |pass: &Self, holder: usize| {
            pass.positions[holder].held.is_some_and(|turn| next.is_some_and(|next| turn.at_ps < next))
        };
        while let Some(holder) = self.holders.iter().copied().find(|&holder| is_before(self, holder)) {
            self.release_hold(holder, i64::MIN);
        }
    }

    fn is_complete(&self, send: &Send) -> bool {
        self.window.round(send.round).is_none_or(|messages| messages.arrived(send.sender) >= self.listeners)
    }

    fn oldest_is_done(&self) -> bool {
        let oldest = self.window.oldest();
        let imported = self.origin == Origin::Imported;
        let left = |(position, &correct): (&super::Position, &bool)| {
            let (sent, reached) = (position.sent, position.reached);
            // In an imported log the client only switches, and the servers only send.
            let place = if imported { sent.max(reached) } else { sent.min(reached) };
            !correct || place > oldest
        };
        self.window.front().is_some_and(|round| round.unreleased == 0)
            && self.positions.iter().zip(&self.correct).all(left)
    }

    fn retire(&mut self) {
        self.look_for_forgeries();
        self.window.retire();
    }

    /// Messages of the oldest round that were perceived and never sent.
    fn look_for_forgeries(&mut self) {
        let Some(round) = self.window.front() else { return };
        for sender in (0..self.correct.len()).filter(|&sender| self.correct[sender] && round.sent(sender) == NEVER) {
            let forged = round.arrived(sender);
            let last = round.perceived(sender).iter().copied().max().filter(|&last| last != NEVER);
            self.certainty.unsent_ps = self.certainty.unsent_ps.max(last);
            let first = round.perceived(sender).iter().copied().filter(|&at| at != NEVER).min();
            if forged > 0 && first.is_some_and(|first| self.options.range.holds(first)) {
                self.tally.counts.forged += u64::from(forged);
                let number = self.window.oldest();
                let words = || {
                    format!("round {number} was perceived {forged} times from process {sender}, which never sent it")
                };
                self.tally.unsent[sender].count(u64::from(forged), words);
            }
        }
    }

    fn release_send(&mut self, at: i64, send: &Send) {
        let last = self.follow_at_once(at, send).unwrap_or_else(|| self.follow_each(at, send));
        if let Some(end) = last {
            self.longest.push(end - at, end);
            self.longest_since_first = self.longest_since_first.max(Some(end - at));
        }
        if self.options.theta == Wanted::Yes && self.options.range.holds(at) {
            let ratio = self.longest.at(at).zip(self.shortest.at(at)).and_then(|(long, short)| Ratio::of(long, short));
            self.tally.theta = self.tally.theta.max(ratio);
        }
        self.advance_clock(at, send);
    }

    /// Counts the messages of a broadcast of which nothing more is asked than the shortest and the longest delay, and where nothing is
    /// amiss; when the last of them was perceived.
    fn follow_at_once(&mut self, at: i64, send: &Send) -> Option<Option<i64>> {
        if self.options.theta == Wanted::Yes || self.options.delays == Wanted::Yes {
            return None;
        }
        let listeners = self.listeners as usize;
        let messages = self.window.open(send.round)?;
        let perceived = messages.perceived(send.sender);
        let (first, last) =
            perceived.iter().fold((i64::MAX, NEVER), |(first, last), &at| (first.min(at), last.max(at)));
        // Never is the earliest of all times, so whatever is missing ends here too. What reaches into the range from before is rare.
        if first <= at
            || listeners != perceived.len()
            || (at <= self.options.range.after_ps && last > self.options.range.after_ps)
        {
            return None;
        }
        let count = perceived.len() as u64;
        messages.unreleased -= 1;
        if self.options.range.holds(at) {
            self.tally.counts.messages += count;
            self.tally.delay_min_ps = smaller(self.tally.delay_min_ps, Some(first - at));
            self.tally.delay_max_ps = self.tally.delay_max_ps.max(Some(last - at));
        }
        Some(Some(last))
    }

    /// Counts the messages of a broadcast one by one; when the last of them was perceived.
    fn follow_each(&mut self, at: i64, send: &Send) -> Option<i64> {
        let messages = self.window.open(send.round)?;
        messages.unreleased -= 1;
        let mut last = None;
        let in_range = self.options.range.holds(at);
        for (receiver, &end) in messages.perceived(send.sender).iter().enumerate() {
            if !self.listens[receiver] {
                continue;
            }
            let delay = end.saturating_sub(at);
            if end != NEVER && delay > 0 {
                last = last.max(Some(end));
                if self.options.theta == Wanted::Yes {
                    self.shortest.push(delay, end);
                }
                if self.options.range.holds_transit(at, end) {
                    self.tally.delay_min_ps = smaller(self.tally.delay_min_ps, Some(delay));
                    self.tally.delay_max_ps = self.tally.delay_max_ps.max(Some(delay));
                }
            }
            if in_range {
                count_message(&mut self.tally, delay, (end != NEVER).then_some((send.sender, receiver)));
            }
        }
        last
    }

    /// The sender's clock shows the round it sent; how far apart the clocks of correct processes are now.
    fn advance_clock(&mut self, at: i64, send: &Send) {
        if send.first_of_process {
            let position = &mut self.positions[send.sender];
            position.reached = position.reached.max(send.round);
            self.frontier = self.frontier.max(send.round);
        }
        // It sends these because it has jumped over them, and was in none of them.
        if send.round < self.positions[send.sender].began_in {
            return;
        }
        let before = std::mem::replace(&mut self.rounds_in[send.sender], send.round);
        if before >= send.round {
            self.rounds_in[send.sender] = before;
        } else if before == 0 || send.round > self.round_max {
            // Only who begins or leads can be farther from another than anybody was.
            self.round_max = self.round_max.max(send.round);
            let lowest = self.rounds_in.iter().copied().filter(|&round| round > 0).min().unwrap_or(self.round_max);
            if self.options.range.holds(at) {
                let spread_max = &mut self.tally.conformance.spread_max;
                *spread_max = (*spread_max).max(self.round_max - lowest);
            }
        }
    }
}

/// Counts a message from one process to another, or one that never arrived.
fn count_message(tally: &mut Tally, delay: i64, link: Option<(usize, usize)>) {
    let Some((sender, receiver)) = link else {
        tally.counts.unperceived += 1;
        return;
    };
    if delay <= 0 {
        tally.counts.not_positive += 1;
        let link = (delay, ProcessId(sender as u32), ProcessId(receiver as u32));
        tally.worst_not_positive = Some(tally.worst_not_positive.map_or(link, |worst| worst.min(link)));
        return;
    }
    tally.counts.messages += 1;
    if let Some(delays) = &mut tally.delays {
        delays.all.count(delay as u64);
    }
}

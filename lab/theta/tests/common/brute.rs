//! The definitions of docs/theta.md word by word, without any thought of speed.

use super::generator::Generated;
use ffclock_theta::analysis::{Ratio, SwitchStamping, TimeRange};
use ffclock_theta::record::{Event, SwitchEvent, SwitchRule};
use ffclock_units::Counter;
use std::collections::{BTreeMap, BTreeSet};

/// A message between correct processes.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub sender: u32,
    pub receiver: u32,
    pub round: u64,
    pub sent: i64,
    pub perceived: i64,
}

impl Message {
    pub fn delay(&self) -> i64 {
        self.perceived - self.sent
    }
}

/// What was seen at switches.
#[derive(Debug, Default, PartialEq)]
pub struct AtSwitches {
    pub times: u64,
    pub idle: u64,
    pub at_most_one: u64,
    pub omega: Option<Ratio>,
    /// Of tau+ over tau_r- + D.
    pub omega_with_delay: Option<Ratio>,
    pub relevant_min: Option<i64>,
    pub relevant_max: Option<i64>,
}

/// What the definitions give.
#[derive(Debug, Default, PartialEq)]
pub struct Truth {
    pub messages: u64,
    pub delay_max: Option<i64>,
    pub delay_min: Option<i64>,
    pub theta: Option<Ratio>,
    pub throughout: Option<Ratio>,
    pub first: AtSwitches,
    pub all: AtSwitches,
    /// How many delays were counted with each rank, from 1.
    pub contributions: Vec<u64>,
    pub contributed_delays: Vec<i64>,
}

type Sends = BTreeMap<(u32, u64), i64>;
type Perceptions = BTreeMap<(u32, u32, u64), i64>;

struct Facts<'a> {
    generated: &'a Generated,
    correct: Vec<bool>,
    sends: Sends,
    perceptions: Perceptions,
    messages: Vec<Message>,
    /// Times of switches with those who switch.
    switches: BTreeMap<i64, Vec<SwitchEvent>>,
    stamping: SwitchStamping,
}

fn facts(generated: &Generated, stamping: SwitchStamping) -> Facts<'_> {
    let correct = generated.run.correct();
    let (mut sends, mut perceptions) = (Sends::new(), Perceptions::new());
    for event in &generated.events {
        let at = time(generated, event.process().0, event.at());
        match *event {
            Event::Broadcast { process, round, .. } => drop(sends.entry((process.0, round.0)).or_insert(at)),
            Event::Perception { process, sender, round, .. } => {
                perceptions.entry((sender.0, process.0, round.0)).or_insert(at);
            }
            _ => {}
        }
    }
    let is_correct = |process: u32| correct[process as usize];
    let between_correct =
        perceptions.iter().filter(|&(&(sender, receiver, _), _)| is_correct(sender) && is_correct(receiver));
    let message = |(&(sender, receiver, round), &perceived): (&(u32, u32, u64), &i64)| {
        let &sent = sends.get(&(sender, round))?;
        Some(Message { sender, receiver, round, sent, perceived })
    };
    // What arrives before it is sent, or at once, is left out of everything.
    let messages = between_correct.filter_map(message).filter(|message| message.delay() > 0).collect();
    let mut switches = BTreeMap::<i64, Vec<SwitchEvent>>::new();
    for event in &generated.events {
        if let Event::Switch(switch) = event {
            let stamp = time(generated, switch.process.0, switch.at);
            let sent = sends.get(&(switch.process.0, switch.to.0)).copied().unwrap_or(stamp);
            let at = if stamping == SwitchStamping::AfterBroadcast { stamp.max(sent) } else { stamp };
            switches.entry(at).or_default().push(*switch);
        }
    }
    Facts { generated, correct, sends, perceptions, messages, switches, stamping }
}

fn time(generated: &Generated, process: u32, counter: Counter) -> i64 {
    counter.raw().wrapping_sub(generated.offsets[process as usize]) as i64 * generated.tick_ps as i64
}

/// g_r = (tau+ / tau_r-) / Omega.
pub fn g_r(truth: &Truth, seen: &AtSwitches) -> Option<f64> {
    Some(truth.delay_max? as f64 / seen.relevant_min? as f64 / seen.omega?.as_f64())
}

impl Facts<'_> {
    fn in_transit(&self, at: i64) -> impl Iterator<Item = &Message> {
        let sent = move |message: &&Message| match self.stamping {
            SwitchStamping::AfterBroadcast => message.sent <= at,
            SwitchStamping::BeforeBroadcast => message.sent < at,
        };
        self.messages.iter().filter(sent).filter(move |message| at < message.perceived)
    }

    /// Delays of correct messages that made the process advance, sorted.
    fn contributors(&self, switch: &SwitchEvent) -> Vec<i64> {
        let decided = time(self.generated, switch.process.0, switch.decided);
        let mut delays = Vec::new();
        for sender in (0..self.correct.len() as u32).filter(|&sender| self.correct[sender as usize]) {
            let perceived = self.perceptions.get(&(sender, switch.process.0, switch.from.0));
            let sent = self.sends.get(&(sender, switch.from.0));
            if let (Some(&perceived), Some(&sent)) = (perceived, sent)
                && (sent + 1..=decided).contains(&perceived)
            {
                delays.push(perceived - sent);
            }
        }
        delays.sort_unstable();
        delays.truncate(self.generated.run.advance_threshold() as usize);
        delays
    }

    /// tau_r- at a time of switches.
    fn relevant(&self, switches: &[SwitchEvent]) -> Option<i64> {
        let advances = switches.iter().filter(|switch| switch.rule == SwitchRule::Advance);
        advances.filter_map(|switch| self.contributors(switch).last().copied()).max()
    }

    /// It can only rise when a message is sent, or when the range begins.
    fn theta(&self, range: TimeRange) -> Option<Ratio> {
        let sends = self.messages.iter().map(|message| message.sent);
        let times: BTreeSet<i64> = sends.chain([range.after_ps.saturating_add(1)]).collect();
        times.into_iter().filter(|&at| range.holds(at)).filter_map(|at| self.theta_at(at)).max()
    }

    fn theta_at(&self, at: i64) -> Option<Ratio> {
        let transit = self.messages.iter().filter(|message| message.sent <= at && at < message.perceived);
        let delays: Vec<_> = transit.map(Message::delay).collect();
        Ratio::of(*delays.iter().max()?, *delays.iter().min()?)
    }
}

/// Theta over every single time of `range`, which is short.
pub fn theta_within(generated: &Generated, range: TimeRange) -> Option<Ratio> {
    let facts = facts(generated, SwitchStamping::AfterBroadcast);
    (range.after_ps + 1..=range.until_ps).filter_map(|at| facts.theta_at(at)).max()
}

/// No smaller than 1, as where nothing is in transit.
fn ratio_of(longest: Option<i64>, under: i64) -> Ratio {
    longest.and_then(|longest| Ratio::of(longest, under)).map_or(Ratio::ONE, |ratio| ratio.max(Ratio::ONE))
}

fn see(seen: &mut AtSwitches, longest: Option<i64>, relevant: i64, wait: i64) {
    let ratio = ratio_of(longest, relevant);
    seen.times += 1;
    seen.idle += u64::from(longest.is_none());
    seen.at_most_one += u64::from(ratio == Ratio::ONE);
    seen.omega = seen.omega.max(Some(ratio));
    seen.omega_with_delay = seen.omega_with_delay.max(Some(ratio_of(longest, relevant + wait)));
    seen.relevant_min = seen.relevant_min.into_iter().chain([relevant]).min();
    seen.relevant_max = seen.relevant_max.max(Some(relevant));
}

pub fn truth(generated: &Generated, stamping: SwitchStamping) -> Truth {
    truth_within(generated, stamping, TimeRange::ALL)
}

/// The same of a trimmed run: switches and messages outside the range do not count, but what reaches into it is in
/// transit there.
pub fn truth_within(generated: &Generated, stamping: SwitchStamping, range: TimeRange) -> Truth {
    let facts = facts(generated, stamping);
    let begin = range.after_ps.saturating_add(1);
    let reaching = || {
        facts
            .messages
            .iter()
            .filter(move |one| begin <= range.until_ps && one.sent <= range.until_ps && begin < one.perceived)
    };
    let mut truth = Truth {
        messages: facts.messages.iter().filter(|message| range.holds(message.sent)).count() as u64,
        delay_max: reaching().map(Message::delay).max(),
        delay_min: reaching().map(Message::delay).min(),
        theta: facts.theta(range),
        contributions: vec![0; generated.run.advance_threshold() as usize],
        ..Truth::default()
    };
    let (mut frontier, mut last_first, wait) = (1, i64::MIN, generated.run.delay_ps as i64);
    for (&at, switches) in &facts.switches {
        let longest = facts.in_transit(at).map(Message::delay).max();
        let reached = switches.iter().map(|switch| switch.to.0).max().expect("a process switches");
        if let Some(relevant) = facts.relevant(switches).filter(|_| range.holds(at)) {
            see(&mut truth.all, longest, relevant, wait);
            if reached > frontier {
                see(&mut truth.first, longest, relevant, wait);
                let since = facts.messages.iter().filter(|message| last_first < message.perceived);
                let since = since.filter(|message| started_by(&facts, message, at));
                let longest = since.map(Message::delay).max();
                truth.throughout = truth.throughout.max(Some(ratio_of(longest, relevant)));
            }
        }
        if reached > frontier {
            (frontier, last_first) = (reached, at);
        }
        let advances = switches.iter().filter(|switch| switch.rule == SwitchRule::Advance && range.holds(at));
        for switch in advances {
            for (rank, delay) in facts.contributors(switch).into_iter().enumerate() {
                truth.contributions[rank] += 1;
                truth.contributed_delays.push(delay);
            }
        }
    }
    truth.contributed_delays.sort_unstable();
    truth
}

/// Whether the message had been sent at that time.
fn started_by(facts: &Facts<'_>, message: &Message, at: i64) -> bool {
    match facts.stamping {
        SwitchStamping::AfterBroadcast => message.sent <= at,
        SwitchStamping::BeforeBroadcast => message.sent < at,
    }
}

//! Events as columns, as in a file and as in the analysis.

use crate::record::{Event, ProcessId, Round, SwitchEvent, SwitchRule, WayIn};
use ffclock_units::Counter;

/// A column with gaps: which rows have a value, and the values of those that have.
#[derive(Clone, Debug, Default)]
pub struct Optional {
    /// 1 where the row has a value, 0 where not.
    pub present: Vec<i16>,
    /// The values, without gaps.
    pub values: Vec<i64>,
}

impl Optional {
    fn push(&mut self, value: Option<i64>) {
        self.present.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn clear(&mut self) {
        self.present.clear();
        self.values.clear();
    }
}

/// A batch of events, a column for each field. Counters and rounds are unsigned and kept as the same 64 bits.
#[derive(Clone, Debug, Default)]
pub struct EventColumns {
    /// The kind of event, see [`kind`].
    pub kind: Vec<i32>,
    /// The process at which it happened.
    pub process: Vec<i32>,
    /// The other process: the sender of a perception, the receiver of a transmission, otherwise -1.
    pub peer: Vec<i32>,
    /// The round that the message carries, or that the process switched to.
    pub round: Vec<i64>,
    /// The counter.
    pub at: Vec<i64>,
    /// The round that the process left; switches only.
    pub from_round: Optional,
    /// The counter when the rule's condition held; switches only.
    pub decided: Optional,
    /// The kernel's receive stamp; perceptions, where taken.
    pub kernel: Optional,
    /// When the receive call returned; perceptions, where taken.
    pub received: Optional,
}

/// The values of the column `kind`.
pub mod kind {
    /// A broadcast event.
    pub const BROADCAST: i32 = 0;
    /// A packet handed to the device.
    pub const TRANSMISSION: i32 = 1;
    /// A perception event.
    pub const PERCEPTION: i32 = 2;
    /// A switch by the advance rule.
    pub const ADVANCE: i32 = 3;
    /// A switch by the catch-up rule.
    pub const CATCH_UP: i32 = 4;
}

/// No other process takes part.
const NO_PEER: i32 = -1;

impl EventColumns {
    /// The number of events.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Forgets the events and keeps the memory.
    pub fn clear(&mut self) {
        for column in [&mut self.kind, &mut self.process, &mut self.peer] {
            column.clear();
        }
        self.round.clear();
        self.at.clear();
        for column in [&mut self.from_round, &mut self.decided, &mut self.kernel, &mut self.received] {
            column.clear();
        }
    }

    /// Appends an event.
    pub fn push(&mut self, event: &Event) {
        let (kind, peer, round) = match event {
            Event::Broadcast { round, .. } => (kind::BROADCAST, NO_PEER, round),
            Event::Transmission { receiver, round, .. } => (kind::TRANSMISSION, receiver.0 as i32, round),
            Event::Perception { sender, round, .. } => (kind::PERCEPTION, sender.0 as i32, round),
            Event::Switch(SwitchEvent { rule: SwitchRule::Advance, to, .. }) => (kind::ADVANCE, NO_PEER, to),
            Event::Switch(SwitchEvent { rule: SwitchRule::CatchUp, to, .. }) => (kind::CATCH_UP, NO_PEER, to),
        };
        self.kind.push(kind);
        self.process.push(event.process().0 as i32);
        self.peer.push(peer);
        self.round.push(round.0 as i64);
        self.at.push(event.at().raw() as i64);
        self.push_optional(event);
    }

    fn push_optional(&mut self, event: &Event) {
        let bits = |counter: Counter| counter.raw() as i64;
        let (switch, way_in) = match event {
            Event::Switch(switch) => (Some(switch), WayIn::default()),
            Event::Perception { way_in, .. } => (None, *way_in),
            Event::Broadcast { .. } | Event::Transmission { .. } => (None, WayIn::default()),
        };
        self.from_round.push(switch.map(|switch| switch.from.0 as i64));
        self.decided.push(switch.map(|switch| bits(switch.decided)));
        self.kernel.push(way_in.kernel.map(bits));
        self.received.push(way_in.received.map(bits));
    }

    /// The events of this batch in order; an invalid row is an error with the reason.
    pub fn events(&self) -> impl Iterator<Item = Result<Event, String>> + '_ {
        let mut from_rounds = Gaps::of(&self.from_round);
        let mut decisions = Gaps::of(&self.decided);
        let mut kernels = Gaps::of(&self.kernel);
        let mut receptions = Gaps::of(&self.received);
        (0..self.len()).map(move |row| {
            let extra = Extra {
                from_round: from_rounds.next(row),
                decided: decisions.next(row),
                way_in: WayIn { kernel: kernels.next(row).map(counter), received: receptions.next(row).map(counter) },
            };
            self.event(row, &extra)
        })
    }

    fn event(&self, row: usize, extra: &Extra) -> Result<Event, String> {
        let process = id("process", self.process[row])?;
        let peer = || id("peer", self.peer[row]);
        let round = Round(self.round[row] as u64);
        let at = counter(self.at[row]);
        let switch = |rule| {
            let from = Round(extra.from_round.ok_or("a switch needs from_round")? as u64);
            let decided = counter(extra.decided.ok_or("a switch needs decided")?);
            Ok(Event::Switch(SwitchEvent { process, from, to: round, at, decided, rule }))
        };
        match self.kind[row] {
            kind::BROADCAST => Ok(Event::Broadcast { process, round, at }),
            kind::TRANSMISSION => Ok(Event::Transmission { process, receiver: peer()?, round, at }),
            kind::PERCEPTION => Ok(Event::Perception { process, sender: peer()?, round, at, way_in: extra.way_in }),
            kind::ADVANCE => switch(SwitchRule::Advance),
            kind::CATCH_UP => switch(SwitchRule::CatchUp),
            other => Err(format!("kind {other} is unknown; 0 to 4 are known")),
        }
    }
}

/// The optional fields of a row.
struct Extra {
    from_round: Option<i64>,
    decided: Option<i64>,
    way_in: WayIn,
}

/// Walks along a column with gaps. A column that was not read has no rows, and no value in any.
struct Gaps<'a> {
    column: &'a Optional,
    next_value: usize,
}

impl<'a> Gaps<'a> {
    fn of(column: &'a Optional) -> Self {
        Gaps { column, next_value: 0 }
    }

    fn next(&mut self, row: usize) -> Option<i64> {
        if self.column.present.get(row).copied().unwrap_or(0) == 0 {
            return None;
        }
        self.next_value += 1;
        self.column.values.get(self.next_value - 1).copied()
    }
}

fn counter(bits: i64) -> Counter {
    Counter::from_raw(bits as u64)
}

fn id(column: &str, value: i32) -> Result<ProcessId, String> {
    u32::try_from(value).map(ProcessId).map_err(|_| format!("{column} {value} is no process"))
}

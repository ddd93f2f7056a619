//! Logs of any length in which the algorithm's rules hold, for measuring: rounds without faults, delays with a heavy
//! tail.

use ffclock_theta::record::{
    ClockSample, Event, HostId, LogOrigin, ProcessId, RecordedForm, Round, RunDescription, RunHost, SwitchEvent,
    SwitchRule, WayIn,
};
use ffclock_units::{Counter, Period, Rate};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The run: n processes, each on a host of its own, counters in picoseconds.
pub fn run(processes: u32) -> RunDescription {
    RunDescription {
        origin: LogOrigin::Simulated,
        form: RecordedForm::Repaired,
        processes,
        tolerated: (processes - 1) / 3,
        delay_ps: 0,
        delay_min_ps: 0,
        disorder_ps: 0,
        hosts: (0..processes)
            .map(|host| RunHost { name: format!("h{host}"), counter: "simulated".to_owned() })
            .collect(),
        host_of: (0..processes).map(HostId).collect(),
        faults: vec![],
        settings: BTreeMap::new(),
        unrecorded: 0,
    }
}

/// The clock of each host: the truth.
pub fn clocks(processes: u32) -> Vec<ClockSample> {
    let sample = |host| ClockSample {
        host: HostId(host),
        counter: Counter::from_raw(0),
        time_ps: 0,
        bound_ps: 0,
        period: Period::from_seconds(1e-12).expect("a picosecond"),
        drift_bound: Rate::from_ppm(0.0),
    };
    (0..processes).map(sample).collect()
}

/// Events in the order of time, round after round.
pub struct Synthetic {
    processes: u64,
    threshold: usize,
    state: u64,
    round: u64,
    /// When each process sends its message of the round.
    sends: Vec<u64>,
    /// Events that may not be the next ones yet: (time, order at the process, event).
    ahead: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Vec<Event>,
    free: Vec<usize>,
    number: u64,
}

impl Synthetic {
    pub fn new(processes: u32) -> Self {
        let threshold = run(processes).advance_threshold() as usize;
        let sends = (0..u64::from(processes)).map(|process| 1_000_000 + process * 100).collect();
        Synthetic {
            processes: u64::from(processes),
            threshold,
            state: 0x9e37_79b9_7f4a_7c15,
            round: 1,
            sends,
            ahead: BinaryHeap::new(),
            events: vec![],
            free: vec![],
            number: 0,
        }
    }

    fn random(&mut self) -> u64 {
        // xorshift64 (Marsaglia 2003)
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// 20 us and more, with a tail that falls with the third power.
    fn delay(&mut self) -> u64 {
        let uniform = ((self.random() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (20e6 * uniform.powf(-1.0 / 3.0)) as u64
    }

    fn plan(&mut self, at: u64, event: Event) {
        self.number += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.events[slot] = event;
                slot
            }
            None => {
                self.events.push(event);
                self.events.len() - 1
            }
        };
        self.ahead.push(Reverse((at, self.number, slot)));
    }

    /// Plans all events of a round, and says when the next round's messages are sent.
    fn play_round(&mut self) {
        let round = Round(self.round);
        let mut arrivals = vec![vec![]; self.processes as usize];
        for sender in 0..self.processes as usize {
            let sent = self.sends[sender];
            let process = ProcessId(sender as u32);
            self.plan(sent, Event::Broadcast { process, round, at: Counter::from_raw(sent) });
            for (receiver, arrivals) in arrivals.iter_mut().enumerate() {
                let at = sent + self.delay();
                arrivals.push(at);
                let (process, sender) = (ProcessId(receiver as u32), ProcessId(sender as u32));
                let way_in = WayIn::default();
                self.plan(at, Event::Perception { process, sender, round, at: Counter::from_raw(at), way_in });
            }
        }
        for (process, mut arrivals) in arrivals.into_iter().enumerate() {
            arrivals.sort_unstable();
            // Not before its own last round began.
            let at = arrivals[self.threshold - 1].max(self.sends[process] + 1000);
            let (counter, to) = (Counter::from_raw(at), Round(round.0 + 1));
            let process_id = ProcessId(process as u32);
            let switch = SwitchEvent {
                process: process_id,
                from: round,
                to,
                at: counter,
                decided: counter,
                rule: SwitchRule::Advance,
            };
            self.plan(at, Event::Switch(switch));
            self.sends[process] = at + 1000;
        }
        self.round += 1;
    }
}

impl Iterator for Synthetic {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            let next_send = self.sends.iter().copied().min().unwrap_or(0);
            if let Some(&Reverse((at, ..))) = self.ahead.peek()
                && at < next_send
            {
                let Reverse((.., slot)) = self.ahead.pop()?;
                self.free.push(slot);
                return Some(self.events[slot]);
            }
            self.play_round();
        }
    }
}

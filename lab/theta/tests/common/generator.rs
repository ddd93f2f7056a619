//! Random small runs of the repaired algorithm, with many equal times.

use ffclock_theta::record::{
    ClockSample, Event, FaultKind, HostId, LogOrigin, ProcessId, RecordedForm, Round, RunDescription, RunFault,
    RunHost, SwitchEvent, SwitchRule, WayIn,
};
use ffclock_units::{Counter, Period, Rate};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub fn one_in(&mut self, chances: u64) -> bool {
        chances > 0 && self.below(chances) == 0
    }
}

/// What a run is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub processes: u32,
    pub tolerated: u32,
    pub byzantine: u32,
    pub rounds: u64,
    /// Delays lie in `delay_min ..= delay_min + delay_spread`.
    pub delay_min: u64,
    pub delay_spread: u64,
    pub wait: u64,
    /// One message in this many is lost; 0: none.
    pub loss: u64,
    /// One message in this many is perceived twice; 0: none.
    pub duplication: u64,
    pub disorder: u64,
}

impl Shape {
    pub fn random(random: &mut Random) -> Self {
        let tolerated = random.below(3) as u32;
        let processes = 3 * tolerated + 1 + random.below(3) as u32;
        let lossy = random.one_in(4);
        Shape {
            processes,
            tolerated,
            byzantine: random.below(u64::from(tolerated) + 1) as u32,
            rounds: 3 + random.below(30),
            delay_min: 1 + random.below(3),
            delay_spread: [2, 5, 20, 200][random.below(4) as usize],
            wait: [0, 0, 1, 7, 50][random.below(5) as usize],
            loss: if lossy { 50 } else { 0 },
            duplication: if random.one_in(3) { 10 } else { 0 },
            disorder: 4,
        }
    }
}

/// A run with its log in memory; times are picoseconds, and the counter of each host shows them from an origin of its
/// own.
pub struct Generated {
    pub run: RunDescription,
    pub events: Vec<Event>,
    pub clocks: Vec<ClockSample>,
    pub offsets: Vec<u64>,
    /// Of all counters.
    pub tick_ps: u64,
}

impl Generated {
    /// The same run, with counters that show whole ticks only.
    pub fn coarse(mut self, tick_ps: u64) -> Self {
        let offsets = self.offsets.clone();
        let coarse = |process: ProcessId, at: &mut Counter| {
            let offset = offsets[process.index()];
            *at = Counter::from_raw(offset.wrapping_add(at.raw().wrapping_sub(offset) / tick_ps));
        };
        for event in &mut self.events {
            match event {
                Event::Broadcast { process, at, .. } => coarse(*process, at),
                Event::Perception { process, at, .. } => coarse(*process, at),
                Event::Switch(SwitchEvent { process, at, decided, .. }) => {
                    coarse(*process, at);
                    coarse(*process, decided);
                }
                Event::Transmission { .. } => {}
            }
        }
        let period = Period::from_seconds(1e-12 * tick_ps as f64).expect("some picoseconds");
        self.clocks.iter_mut().for_each(|sample| sample.period = period);
        Generated { tick_ps, ..self }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Arrival { receiver: u32, sender: u32, round: u64 },
    Waited { process: u32, round: u64, decided: u64 },
}

#[derive(Default)]
struct Process {
    round: u64,
    received: BTreeMap<u64, BTreeSet<u32>>,
    waiting: bool,
}

struct World<'a> {
    shape: Shape,
    random: &'a mut Random,
    now: u64,
    agenda: BinaryHeap<Reverse<(u64, u64, What)>>,
    number: u64,
    processes: Vec<Process>,
    events: Vec<Event>,
    offsets: Vec<u64>,
}

pub fn generate(shape: Shape, random: &mut Random) -> Generated {
    let n = shape.processes;
    let offsets: Vec<u64> = (0..n).map(|_| random.next()).collect();
    let processes = (0..n).map(|_| Process { round: 1, ..Process::default() }).collect();
    let mut world =
        World { shape, random, now: 0, agenda: BinaryHeap::new(), number: 0, processes, events: vec![], offsets };
    for process in world.correct() {
        world.now = world.random.below(4);
        world.broadcast(process, 1);
    }
    while let Some(Reverse((at, _, what))) = world.agenda.pop() {
        world.now = world.now.max(at);
        world.happen(what);
    }
    let World { events, offsets, .. } = world;
    Generated { run: run(&shape), clocks: clocks(&offsets), events, offsets, tick_ps: 1 }
}

fn run(shape: &Shape) -> RunDescription {
    let n = shape.processes;
    let byzantine = |process| RunFault {
        kind: FaultKind::TwoFaced,
        process: Some(ProcessId(process)),
        receiver: None,
        host: None,
        from_ps: None,
        until_ps: None,
    };
    RunDescription {
        origin: LogOrigin::Simulated,
        form: RecordedForm::Repaired,
        processes: n,
        tolerated: shape.tolerated,
        delay_ps: shape.wait,
        delay_min_ps: 0,
        disorder_ps: shape.disorder,
        hosts: (0..n).map(|host| RunHost { name: format!("h{host}"), counter: "simulated".to_owned() }).collect(),
        host_of: (0..n).map(HostId).collect(),
        faults: (n - shape.byzantine..n).map(byzantine).collect(),
        settings: BTreeMap::new(),
        unrecorded: 0,
    }
}

fn clocks(offsets: &[u64]) -> Vec<ClockSample> {
    let period = Period::from_seconds(1e-12).expect("a picosecond");
    let sample = |(host, &offset): (usize, &u64)| ClockSample {
        host: HostId(host as u32),
        counter: Counter::from_raw(offset),
        time_ps: 0,
        bound_ps: 0,
        period,
        drift_bound: Rate::from_ppm(0.0),
    };
    offsets.iter().enumerate().map(sample).collect()
}

impl World<'_> {
    fn correct(&self) -> std::ops::Range<u32> {
        0..self.shape.processes - self.shape.byzantine
    }

    fn counter(&self, process: u32, at: u64) -> Counter {
        Counter::from_raw(self.offsets[process as usize].wrapping_add(at))
    }

    fn plan(&mut self, at: u64, what: What) {
        self.number += 1;
        self.agenda.push(Reverse((at, self.number, what)));
    }

    fn broadcast(&mut self, process: u32, round: u64) {
        let at = self.now + self.random.below(2);
        // As the simulator and live ranks do: the last switch is not followed by a broadcast.
        if round > self.shape.rounds {
            return;
        }
        self.events.push(Event::Broadcast {
            process: ProcessId(process),
            round: Round(round),
            at: self.counter(process, at),
        });
        for receiver in self.correct() {
            let delay = self.shape.delay_min + self.random.below(self.shape.delay_spread + 1);
            if !self.random.one_in(self.shape.loss) {
                self.plan(at + delay, What::Arrival { receiver, sender: process, round });
            }
            if self.random.one_in(self.shape.duplication) {
                self.plan(at + delay + 3, What::Arrival { receiver, sender: process, round });
            }
        }
        for liar in self.correct().end..self.shape.processes {
            let receiver = self.random.below(u64::from(self.correct().end)) as u32;
            let round = (round + self.random.below(4)).saturating_sub(1);
            let arrival = at + self.random.below(10);
            self.plan(arrival, What::Arrival { receiver, sender: liar, round });
        }
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Arrival { receiver, sender, round } => {
                let at = self.counter(receiver, self.now);
                let (process, sender_id) = (ProcessId(receiver), ProcessId(sender));
                let way_in = WayIn::default();
                self.events.push(Event::Perception { process, sender: sender_id, round: Round(round), at, way_in });
                self.processes[receiver as usize].received.entry(round).or_default().insert(sender);
                self.apply_rules(receiver);
            }
            What::Waited { process, round, decided } => {
                self.processes[process as usize].waiting = false;
                if self.processes[process as usize].round == round {
                    self.switch(process, round + 1, decided, SwitchRule::Advance);
                }
                self.apply_rules(process);
            }
        }
    }

    fn apply_rules(&mut self, process: u32) {
        loop {
            let state = &self.processes[process as usize];
            let enough = |needed: u32| move |&(_, senders): &(&u64, &BTreeSet<u32>)| senders.len() >= needed as usize;
            let later = state
                .received
                .range(state.round + 1..)
                .filter(enough(self.shape.tolerated + 1))
                .map(|(&round, _)| round)
                .max();
            if let Some(round) = later {
                self.switch(process, round, self.now, SwitchRule::CatchUp);
                continue;
            }
            let here = state.received.get(&state.round).map_or(0, BTreeSet::len);
            if here < (self.shape.processes - self.shape.tolerated) as usize || state.waiting {
                return;
            }
            let round = state.round;
            if self.shape.wait > 0 {
                self.processes[process as usize].waiting = true;
                let (at, decided) = (self.now + self.shape.wait, self.now);
                return self.plan(at, What::Waited { process, round, decided });
            }
            self.switch(process, round + 1, self.now, SwitchRule::Advance);
        }
    }

    fn switch(&mut self, process: u32, to: u64, decided: u64, rule: SwitchRule) {
        let from = std::mem::replace(&mut self.processes[process as usize].round, to);
        let (at, decided) = (self.counter(process, self.now), self.counter(process, decided));
        let (from_round, to_round) = (Round(from), Round(to));
        self.events.push(Event::Switch(SwitchEvent {
            process: ProcessId(process),
            from: from_round,
            to: to_round,
            at,
            decided,
            rule,
        }));
        for round in from + 1..=to {
            self.broadcast(process, round);
        }
    }
}

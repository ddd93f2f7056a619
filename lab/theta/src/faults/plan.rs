//! The faults of a run, checked and sorted by what they act on.

use super::PlannedFault;
use crate::length::picoseconds;
use crate::record::{FaultKind, HostId, ProcessId, RunFault};
use ffclock_sim::Random;

/// A time from `from` on and before `until`, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultWindow {
    /// The first picosecond that belongs to it.
    pub from: u64,
    /// The first one after it.
    pub until: u64,
}

impl FaultWindow {
    /// Whether `at` lies in it.
    pub fn holds(self, at: u64) -> bool {
        (self.from..self.until).contains(&at)
    }
}

/// What a faulty process does when a correct one would broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// It sends nothing.
    Silence,
    /// It sends different rounds to different receivers.
    TwoFaced,
    /// It also sends rounds that it has not reached.
    Early,
    /// It also sends rounds that it has left.
    Replay,
}

/// How many rounds ahead a process sends whose fault is to send early.
pub const EARLY_ROUNDS: u64 = 2;

/// What a two-faced process sends to a receiver in place of `round`: offsets to add to it. All two-faced processes of
/// a run draw from the same `conspiracy`, because they do most harm together.
pub fn lies(conspiracy: u64, receiver: u32, round: u64) -> &'static [u64] {
    match Random::new(conspiracy ^ round << 16 ^ u64::from(receiver)).bits() % 8 {
        0..4 => &[],
        4 => &[0],
        5 => &[1],
        6 => &[0, 1],
        _ => &[0, 1, 2],
    }
}

/// A fault of the messages on some links.
#[derive(Clone, Debug)]
pub struct LinkFault {
    /// When it acts.
    pub window: FaultWindow,
    /// The probability for each message.
    pub probability: f64,
    /// What it does to a message.
    pub effect: LinkEffect,
    from: Option<u32>,
    to: Option<u32>,
    /// A partition: only messages between the group and the others are concerned.
    group: Option<Vec<bool>>,
}

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEffect {
    /// It is lost.
    Lose,
    /// It arrives twice.
    Duplicate,
    /// It is held back, for this many picoseconds.
    Hold(u64),
    /// It is held back until the window ends.
    HoldToEnd,
}

/// The passage of a message through a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPassage {
    /// How often it arrives.
    pub copies: u64,
    /// The earliest time at which it is sent.
    pub from: u64,
}

impl LinkFault {
    /// Whether it acts on a message that process `from` sends to process `to` at this time.
    pub fn concerns(&self, from: u32, to: u32, at: u64) -> bool {
        let crosses = self.group.as_ref().is_none_or(|group| group[from as usize] != group[to as usize]);
        crosses
            && self.from.is_none_or(|only| only == from)
            && self.to.is_none_or(|only| only == to)
            && self.window.holds(at)
    }
}

/// What a clock does beyond its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockFault {
    /// When it acts.
    pub window: FaultWindow,
    /// A step for the time of the window, in picoseconds.
    pub step: f64,
    /// A drift during the window, in seconds per second.
    pub rate: f64,
}

impl ClockFault {
    /// What the fault adds to the clock's error, in picoseconds, at a time of the run in picoseconds.
    pub fn error(&self, at: u64) -> f64 {
        let FaultWindow { from, until } = self.window;
        if at < from {
            return 0.0;
        }
        let step = if at < until { self.step } else { 0.0 };
        step + self.rate * (at.min(until) - from) as f64
    }

    /// The largest absolute error that it adds up to a time of the run in picoseconds.
    pub(crate) fn worst(&self, end: u64) -> f64 {
        let FaultWindow { from, until } = self.window;
        let errors = [from, until - 1, until].map(|at| self.error(at.min(end)).abs());
        errors.into_iter().fold(0.0, f64::max)
    }
}

/// All faults of a run, by what they act on.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    /// By process: what it does instead of broadcasting.
    pub misbehaviours: Vec<Vec<(FaultWindow, Misbehaviour)>>,
    /// By process: when it stops for good.
    pub crashes: Vec<u64>,
    /// By process: when it starts, if it starts late.
    pub starts: Vec<Option<u64>>,
    /// Processes whose identity a second process uses.
    pub twins: Vec<u32>,
    /// Faults of links.
    pub links: Vec<LinkFault>,
    /// By host: when it is slower, and by which factor.
    pub slow: Vec<Vec<(FaultWindow, f64)>>,
    /// By host: faults of its clock.
    pub clocks: Vec<Vec<ClockFault>>,
    /// The faults as the log records them.
    pub recorded: Vec<RunFault>,
}

impl FaultPlan {
    /// The plan of `specs` for a run of `processes` on `hosts`.
    ///
    /// # Errors
    /// Names the fault and what is wrong with it.
    pub fn new(specs: &[PlannedFault], processes: u32, hosts: u32) -> Result<Self, String> {
        let (n, h) = (processes as usize, hosts as usize);
        let mut plan = FaultPlan {
            misbehaviours: vec![Vec::new(); n],
            crashes: vec![u64::MAX; n],
            starts: vec![None; n],
            slow: vec![Vec::new(); h],
            clocks: vec![Vec::new(); h],
            ..FaultPlan::default()
        };
        for (number, spec) in specs.iter().enumerate() {
            let reader = SpecReader { spec, processes, hosts };
            reader.add_to(&mut plan).map_err(|why| format!("fault {} ({:?}): {why}", number + 1, spec.kind))?;
        }
        Ok(plan)
    }

    /// What a process does at a time instead of broadcasting.
    pub fn misbehaviour(&self, process: usize, at: u64) -> Option<Misbehaviour> {
        let now = |(window, _): &&(FaultWindow, Misbehaviour)| window.holds(at);
        self.misbehaviours[process].iter().find(now).map(|(_, misbehaviour)| *misbehaviour)
    }

    /// By which factor a host is slower at a time; 1 without a fault.
    pub fn slowness(&self, host: usize, at: u64) -> f64 {
        self.slow[host].iter().filter(|(window, _)| window.holds(at)).map(|(_, factor)| factor).product()
    }

    /// What the faults of links do to a message from one process to another; `chance` decides where they are probable.
    pub fn pass(&self, [from, to]: [u32; 2], at: u64, chance: &mut Random) -> LinkPassage {
        let mut passage = LinkPassage { copies: 1, from: at };
        for fault in self.links.iter().filter(|fault| fault.concerns(from, to, at)) {
            if !chance.chance(fault.probability) {
                continue;
            }
            match fault.effect {
                LinkEffect::Lose => passage.copies = 0,
                LinkEffect::Duplicate => passage.copies *= 2,
                LinkEffect::Hold(hold) => passage.from = passage.from.saturating_add(hold),
                LinkEffect::HoldToEnd => passage.from = passage.from.max(fault.window.until),
            }
        }
        passage
    }

    /// Which processes are correct, by index.
    pub fn correct(&self) -> Vec<bool> {
        let mut correct = vec![true; self.crashes.len()];
        let faulty = self.recorded.iter().filter(|fault| fault.kind.makes_process_faulty());
        faulty.filter_map(|fault| fault.process).for_each(|process| correct[process.index()] = false);
        correct
    }
}

struct SpecReader<'a> {
    spec: &'a PlannedFault,
    processes: u32,
    hosts: u32,
}

impl SpecReader<'_> {
    fn add_to(&self, plan: &mut FaultPlan) -> Result<(), String> {
        self.refuse_strange_keys()?;
        let window = self.window()?;
        match self.spec.kind {
            FaultKind::Crash => plan.crashes[self.process()?] = window.from,
            FaultKind::LateStart => plan.starts[self.process()?] = Some(window.from),
            FaultKind::DuplicateIdentity => plan.twins.push(self.process()? as u32),
            FaultKind::Silence => plan.misbehaviours[self.process()?].push((window, Misbehaviour::Silence)),
            FaultKind::TwoFaced => plan.misbehaviours[self.process()?].push((window, Misbehaviour::TwoFaced)),
            FaultKind::EarlyMessages => plan.misbehaviours[self.process()?].push((window, Misbehaviour::Early)),
            FaultKind::Replay => plan.misbehaviours[self.process()?].push((window, Misbehaviour::Replay)),
            FaultKind::LinkLoss | FaultKind::LinkDuplication | FaultKind::LinkHold | FaultKind::Partition => {
                plan.links.push(self.link(window)?);
            }
            FaultKind::SlowHost => plan.slow[self.host()?].push((window, self.factor()?)),
            FaultKind::ClockStep => plan.clocks[self.host()?].push(self.step(window)?),
            FaultKind::ClockDrift => plan.clocks[self.host()?].push(self.drift(window)?),
        }
        plan.recorded.push(self.as_recorded(window));
        Ok(())
    }

    /// A key that has no meaning for this kind of fault is most likely a mistake.
    fn refuse_strange_keys(&self) -> Result<(), String> {
        use FaultKind::{ClockDrift, ClockStep, LinkDuplication, LinkHold, LinkLoss, Partition, SlowHost};
        let PlannedFault { kind, process, receiver, host, group, probability, hold, factor, step, rate, .. } =
            self.spec;
        let on_link = matches!(kind, LinkLoss | LinkDuplication | LinkHold);
        let on_host = matches!(kind, SlowHost | ClockStep | ClockDrift);
        let keys = [
            ("process", process.is_some(), !on_host && *kind != Partition),
            ("receiver", receiver.is_some(), on_link),
            ("host", host.is_some(), on_host),
            ("group", group.is_some(), *kind == Partition),
            ("probability", probability.is_some(), on_link || *kind == Partition),
            ("hold", hold.is_some(), *kind == LinkHold),
            ("factor", factor.is_some(), *kind == SlowHost),
            ("step", step.is_some(), *kind == ClockStep),
            ("rate", rate.is_some(), *kind == ClockDrift),
        ];
        match keys.iter().find(|(_, is_there, has_meaning)| *is_there && !has_meaning) {
            Some((name, _, _)) => Err(format!("the key {name} means nothing here")),
            None => Ok(()),
        }
    }

    fn window(&self) -> Result<FaultWindow, String> {
        let time = |name: &str, value, default| match value {
            None => Ok(default),
            Some(value) => picoseconds(value).ok_or_else(|| format!("{name} must lie between 0 s and 1000 s")),
        };
        let window =
            FaultWindow { from: time("from", self.spec.from, 0)?, until: time("until", self.spec.until, u64::MAX)? };
        if window.from < window.until { Ok(window) } else { Err("it ends before it begins".to_owned()) }
    }

    fn known(name: &str, number: u32, count: u32) -> Result<u32, String> {
        if number < count {
            Ok(number)
        } else {
            Err(format!("there is no {name} {number}: they are 0 to {}", count - 1))
        }
    }

    fn process(&self) -> Result<usize, String> {
        let number = self.spec.process.ok_or("the key process is missing")?;
        Self::known("process", number, self.processes).map(|number| number as usize)
    }

    fn host(&self) -> Result<usize, String> {
        let number = self.spec.host.ok_or("the key host is missing")?;
        Self::known("host", number, self.hosts).map(|number| number as usize)
    }

    fn probability(&self, default: f64) -> Result<f64, String> {
        let probability = self.spec.probability.unwrap_or(default);
        if (0.0..=1.0).contains(&probability) {
            Ok(probability)
        } else {
            Err("probability must lie between 0 and 1".to_owned())
        }
    }

    fn factor(&self) -> Result<f64, String> {
        let factor = self.spec.factor.ok_or("the key factor is missing")?;
        if (0.0..=1e6).contains(&factor) { Ok(factor) } else { Err("factor must lie between 0 and 1e6".to_owned()) }
    }

    fn step(&self, window: FaultWindow) -> Result<ClockFault, String> {
        let step = self.spec.step.ok_or("the key step is missing")?.seconds() * 1e12;
        if step.abs() > 1e15 {
            Err("step must lie within 1000 s".to_owned())
        } else {
            Ok(ClockFault { window, step, rate: 0.0 })
        }
    }

    fn drift(&self, window: FaultWindow) -> Result<ClockFault, String> {
        let rate = self.spec.rate.ok_or("the key rate is missing")?.fraction();
        if rate.abs() > 0.01 {
            Err("rate must lie within 10000 ppm".to_owned())
        } else {
            Ok(ClockFault { window, step: 0.0, rate })
        }
    }

    fn link(&self, window: FaultWindow) -> Result<LinkFault, String> {
        let end =
            |process: Option<u32>| process.map(|number| Self::known("process", number, self.processes)).transpose();
        let effect = match self.spec.kind {
            FaultKind::LinkLoss => LinkEffect::Lose,
            FaultKind::LinkDuplication => LinkEffect::Duplicate,
            FaultKind::LinkHold => {
                let hold = self.spec.hold.ok_or("the key hold is missing")?;
                LinkEffect::Hold(picoseconds(hold).ok_or("hold must lie between 0 s and 1000 s")?)
            }
            _ if window.until == u64::MAX => return Err("the key until is missing".to_owned()),
            _ => LinkEffect::HoldToEnd,
        };
        let (from, to) = (end(self.spec.process)?, end(self.spec.receiver)?);
        Ok(LinkFault { window, from, to, group: self.group()?, probability: self.probability(1.0)?, effect })
    }

    fn group(&self) -> Result<Option<Vec<bool>>, String> {
        let Some(members) = &self.spec.group else {
            let is_missing = self.spec.kind == FaultKind::Partition;
            return if is_missing { Err("the key group is missing".to_owned()) } else { Ok(None) };
        };
        let mut group = vec![false; self.processes as usize];
        for &member in members {
            group[Self::known("process", member, self.processes)? as usize] = true;
        }
        Ok(Some(group))
    }

    fn as_recorded(&self, window: FaultWindow) -> RunFault {
        RunFault {
            kind: self.spec.kind,
            process: self.spec.process.map(ProcessId),
            receiver: self.spec.receiver.map(ProcessId),
            host: self.spec.host.map(HostId),
            from_ps: self.spec.from.is_some().then_some(window.from as i64),
            until_ps: self.spec.until.is_some().then_some(window.until as i64),
        }
    }
}

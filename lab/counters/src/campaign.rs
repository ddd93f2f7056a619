//! The course of a measurement: quiet and stressed phases in turn, as in the papers, with a round of readings at even
//! intervals.

use crate::named;
use core::fmt;
use core::ops::ControlFlow;
use core::str::FromStr;
use ffclock_sys::mono_now;
use ffclock_units::{Moment, Mono, Span};
use serde::{Deserialize, Serialize};

named! {
    /// What a host is stressed with.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Load {
        /// Every CPU computes (the papers: over 95 % of a CPU).
        Cpu = "cpu",
        /// Packet capture under heavy traffic (the papers: tcpdump on a full hub).
        Network = "network",
        /// Every CPU works on more memory than its caches hold.
        Memory = "memory",
        /// Files are written and read.
        Io = "io",
        /// Programs enter and leave the kernel all the time (the latencies paper's SC).
        Syscall = "syscall",
        /// UDP packets over loopback (the latencies paper's IP).
        Ip = "ip",
        /// Timers interrupt the CPUs.
        Interrupt = "interrupt",
        /// Every CPU computes and rests in turn, so that the machine warms and cools.
        TemperatureCycle = "temperature-cycle",
    }
}

/// A text names no load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a load is cpu, network, memory, io, syscall, ip, interrupt or temperature-cycle")]
pub struct UnknownLoad;

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Load {
    type Err = UnknownLoad;
    fn from_str(text: &str) -> Result<Self, UnknownLoad> {
        Load::ALL.into_iter().find(|load| load.name() == text).ok_or(UnknownLoad)
    }
}

/// A part of a campaign under the same conditions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignPhase {
    /// Counted from 0.
    pub number: usize,
    /// What the host is stressed with; `None` when it is left in peace.
    pub load: Option<Load>,
    /// When it begins, seconds after the campaign.
    pub begin_s: f64,
    /// How long it lasts, seconds.
    pub length_s: f64,
}

impl CampaignPhase {
    /// For people.
    pub fn name(&self) -> &'static str {
        self.load.map_or("quiet", Load::name)
    }
}

/// The phases: quiet, and after each load quiet again. Without loads one quiet phase.
pub fn schedule(loads: &[Load], length: Span) -> Vec<CampaignPhase> {
    let stressed = loads.iter().flat_map(|&load| [Some(load), None]);
    let length_s = length.as_seconds();
    let phase = |(number, load)| CampaignPhase { number, load, begin_s: number as f64 * length_s, length_s };
    core::iter::once(None).chain(stressed).enumerate().map(phase).collect()
}

/// Who makes the conditions of each phase and keeps the time.
pub trait Surroundings {
    /// Why the conditions cannot be had.
    type Error;

    /// Brings about the conditions of a phase; those of the one before end.
    ///
    /// # Errors
    /// They cannot be had.
    fn enter(&mut self, phase: &CampaignPhase) -> Result<(), Self::Error>;

    /// Waits until `deadline`; `share` of the whole campaign is done. Breaks to end the campaign early.
    ///
    /// # Errors
    /// The conditions of the phase are gone.
    fn wait(&mut self, deadline: Moment<Mono>, share: f64) -> Result<ControlFlow<()>, Self::Error>;
}

/// The result of a campaign. What was measured before an error is worth as much as ever.
#[derive(Debug)]
pub struct CampaignCourse<E> {
    /// The phases as they really were: one begins when its conditions are there, and the last one may have been cut
    /// short.
    pub phases: Vec<CampaignPhase>,
    /// Those errors of the surroundings and of the rounds that ended it.
    pub ended: Result<(), E>,
}

/// Works through `phases`, with a round every `every`. `round` gets the phase and the seconds since the beginning.
pub fn run<S: Surroundings>(
    phases: &[CampaignPhase],
    every: Span,
    surroundings: &mut S,
    mut round: impl FnMut(&CampaignPhase, f64) -> Result<(), S::Error>,
) -> CampaignCourse<S::Error> {
    let begin = mono_now();
    let passed = || (mono_now() - begin).as_seconds();
    let total: f64 = phases.iter().map(|phase| phase.length_s).sum();
    let mut done: Vec<CampaignPhase> = Vec::new();
    for phase in phases {
        if let Err(error) = surroundings.enter(phase) {
            return CampaignCourse { phases: done, ended: Err(error) };
        }
        let mut phase = CampaignPhase { begin_s: passed(), ..*phase };
        let before: f64 = done.iter().map(|phase| phase.length_s).sum();
        let share = || ((before + passed() - phase.begin_s) / total).clamp(0.0, 1.0);
        let length = Span::from_seconds(phase.length_s);
        let wait = |deadline| surroundings.wait(deadline, share());
        let ended = work_through(length, every, wait, || round(&phase, passed()));
        phase.length_s = passed() - phase.begin_s;
        done.push(phase);
        match ended {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => break,
            Err(error) => return CampaignCourse { phases: done, ended: Err(error) },
        }
    }
    CampaignCourse { phases: done, ended: Ok(()) }
}

/// The rounds of one phase.
fn work_through<E>(
    length: Span,
    every: Span,
    mut wait: impl FnMut(Moment<Mono>) -> Result<ControlFlow<()>, E>,
    mut round: impl FnMut() -> Result<(), E>,
) -> Result<ControlFlow<()>, E> {
    let mut next = mono_now();
    let end = next + length;
    loop {
        round()?;
        next = following(next, every);
        if wait(next.min(end))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if next >= end {
            return Ok(ControlFlow::Continue(()));
        }
    }
}

/// The next round on the grid that still lies ahead: one that took too long costs those that it covered.
fn following(last: Moment<Mono>, every: Span) -> Moment<Mono> {
    let next = last + every;
    let late = mono_now() - next;
    if late <= Span::ZERO {
        return next;
    }
    let missed = (late.as_seconds() / every.as_seconds()).ceil();
    next + Span::from_seconds(missed * every.as_seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Notes {
        entered: Vec<&'static str>,
        waits: usize,
        stop_after: usize,
    }

    impl Surroundings for Notes {
        type Error = ();
        fn enter(&mut self, phase: &CampaignPhase) -> Result<(), ()> {
            self.entered.push(phase.name());
            Ok(())
        }
        fn wait(&mut self, deadline: Moment<Mono>, share: f64) -> Result<ControlFlow<()>, ()> {
            assert!((0.0..=1.0).contains(&share));
            self.waits += 1;
            while mono_now() < deadline {
                std::hint::spin_loop();
            }
            Ok(if self.waits == self.stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        }
    }

    #[test]
    fn quiet_and_stressed_phases_take_turns() {
        let phases = schedule(&[Load::Cpu, Load::Network], Span::from_millis(4));
        let mut notes = Notes::default();
        let mut rounds = Vec::new();
        let done = run(&phases, Span::from_millis(1), &mut notes, |phase, at| {
            rounds.push((phase.number, at));
            Ok(())
        });
        done.ended.unwrap();
        let done = done.phases;
        assert!(done.is_sorted_by_key(|phase| phase.begin_s) && done.iter().all(|phase| phase.length_s >= 0.004));
        assert_eq!(notes.entered, ["quiet", "cpu", "quiet", "network", "quiet"]);
        assert!(rounds.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
        assert!((0..5).all(|number| rounds.iter().any(|round| round.0 == number)), "{rounds:?}");
    }

    #[test]
    fn a_campaign_may_end_early() {
        let mut notes = Notes { stop_after: 3, ..Notes::default() };
        let phases = schedule(&[], Span::from_secs(60));
        let mut rounds = 0;
        let done = run(&phases, Span::from_millis(1), &mut notes, |_, _| {
            rounds += 1;
            Ok(())
        });
        done.ended.unwrap();
        assert_eq!((rounds, done.phases.len()), (3, 1));
        assert!(done.phases[0].length_s < 60.0);
    }

    #[test]
    fn an_error_ends_a_campaign_and_what_was_before_is_kept() {
        let phases = schedule(&[Load::Cpu], Span::from_millis(4));
        let done =
            run(
                &phases,
                Span::from_millis(1),
                &mut Notes::default(),
                |phase, _| {
                    if phase.number == 1 { Err(()) } else { Ok(()) }
                },
            );
        assert_eq!((done.ended, done.phases.len()), (Err(()), 2));
        assert!(done.phases[0].length_s >= 0.004 && done.phases[1].length_s < 0.004, "{:?}", done.phases);
    }

    #[test]
    fn loads_have_names_that_parse_back() {
        for load in Load::ALL {
            assert_eq!(load.to_string().parse(), Ok(load));
            assert_eq!(serde_json::to_string(&load).unwrap(), format!("\"{load}\""));
        }
        assert_eq!("tea".parse::<Load>(), Err(UnknownLoad));
    }
}

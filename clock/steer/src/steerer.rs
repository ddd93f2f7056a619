//! Carries out what the law says, and notices other programs that steer.

use crate::contention::{Foreign, OnContention, foreign};
use crate::law::{Action, Law, Steering};
use crate::leap::Calendar;
use crate::options::SteerConfig;
use crate::sight::{Interruption, Sighting};
use ffclock_sys::{
    KernelClockChange, KernelClockState, KernelFlags, KernelFrequency, change_kernel_clock, kernel_clock_state,
    step_kernel_clock, take_kernel_clock,
};
use ffclock_units::Span;
use std::io;

/// The kernel's clock, or what stands in for it.
pub trait Kernel {
    /// What it says of itself.
    ///
    /// # Errors
    /// It cannot be asked.
    fn state(&mut self) -> io::Result<KernelClockState>;

    /// Ends what earlier programs left in progress.
    ///
    /// # Errors
    /// It refuses.
    fn take(&mut self) -> io::Result<KernelClockState>;

    /// Changes it.
    ///
    /// # Errors
    /// It refuses.
    fn change(&mut self, change: &KernelClockChange) -> io::Result<KernelClockState>;

    /// Steps it.
    ///
    /// # Errors
    /// It refuses.
    fn step(&mut self, by: Span) -> io::Result<KernelClockState>;
}

/// The clock of this host.
#[derive(Clone, Copy, Debug)]
pub struct HostKernel(());

impl HostKernel {
    /// The right to steer it.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_SYS_TIME.
    pub fn with_right() -> io::Result<Self> {
        // The frequency that it has: a change that changes nothing, and that takes the right.
        let frequency = Some(kernel_clock_state()?.frequency);
        change_kernel_clock(&KernelClockChange { frequency, ..KernelClockChange::default() })?;
        Ok(HostKernel(()))
    }
}

impl Kernel for HostKernel {
    fn state(&mut self) -> io::Result<KernelClockState> {
        kernel_clock_state()
    }

    fn take(&mut self) -> io::Result<KernelClockState> {
        take_kernel_clock()
    }

    fn change(&mut self, change: &KernelClockChange) -> io::Result<KernelClockState> {
        change_kernel_clock(change)
    }

    fn step(&mut self, by: Span) -> io::Result<KernelClockState> {
        step_kernel_clock(by)
    }
}

/// Remembers what it is asked to do, and does nothing. What other programs do to the clock of this host, it sees.
#[derive(Clone, Copy, Debug)]
pub struct DryKernel {
    /// The clock as it would be.
    state: KernelClockState,
    /// That of this host at the last look.
    host: KernelClockState,
}

impl DryKernel {
    /// As the clock of this host is.
    ///
    /// # Errors
    /// It cannot be asked.
    pub fn of_host() -> io::Result<Self> {
        kernel_clock_state().map(DryKernel::of)
    }

    const fn of(host: KernelClockState) -> Self {
        DryKernel { state: host, host }
    }

    /// What another program has done to the clock of this host happens to this one.
    fn follow(&mut self, now: KernelClockState) {
        let was = std::mem::replace(&mut self.host, now);
        let state = &mut self.state;
        match foreign(&was, &now) {
            None => {}
            Some(Foreign::Set | Foreign::Errors) => {
                (state.max_error_us, state.estimated_error_us) = (now.max_error_us, now.estimated_error_us);
            }
            Some(Foreign::Frequency) => state.frequency = now.frequency,
            Some(Foreign::Tick) => state.tick_us = now.tick_us,
            // What an earlier program has left is slewed on here, and would have been ended.
            Some(Foreign::Offset) if has_less_to_slew(&now, &was) => {}
            Some(Foreign::Offset) => (state.offset, state.slewing_us) = (now.offset, now.slewing_us),
            Some(Foreign::Flags) => state.flags = now.flags,
        }
    }
}

fn has_less_to_slew(now: &KernelClockState, was: &KernelClockState) -> bool {
    now.offset.abs() <= was.offset.abs() && now.slewing_us.abs() <= was.slewing_us.abs()
}

impl Kernel for DryKernel {
    fn state(&mut self) -> io::Result<KernelClockState> {
        self.follow(kernel_clock_state()?);
        Ok(self.state)
    }

    fn take(&mut self) -> io::Result<KernelClockState> {
        self.host = kernel_clock_state()?;
        let (tick_us, flags) = (KernelClockState::TICK_US, KernelFlags::UNSYNCHRONISED);
        self.state = KernelClockState { tick_us, flags, offset: 0, slewing_us: 0, ..self.host };
        Ok(self.state)
    }

    fn change(&mut self, change: &KernelClockChange) -> io::Result<KernelClockState> {
        self.state.frequency = change.frequency.unwrap_or(self.state.frequency);
        self.state.flags = change.flags.unwrap_or(self.state.flags);
        self.state.tai_offset_s = change.tai_offset_s.unwrap_or(self.state.tai_offset_s);
        if let Some(errors) = change.errors_us {
            [self.state.max_error_us, self.state.estimated_error_us] = errors;
        }
        Ok(self.state)
    }

    fn step(&mut self, _: Span) -> io::Result<KernelClockState> {
        Ok(self.state)
    }
}

/// Something that the operator may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteerEvent {
    /// The machine slept, or was restored: all begins again.
    Interrupted(Interruption),
    /// Another program steers as well.
    Contended(Foreign),
    /// The clock was taken, with this frequency.
    Taken(KernelFrequency),
    /// The clock was stepped.
    Stepped(Span),
    /// The clock is called synchronised from now on.
    Synchronised,
    /// The page is lost; the clock runs on.
    Coasting,
}

/// What was done about one look.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// What the law said.
    pub action: Action,
    /// What is worth a line.
    pub events: Vec<SteerEvent>,
    /// Whether the clock is left to another program: nothing may be done from here on.
    pub has_withdrawn: bool,
}

/// The law, and the kernel's clock.
pub struct Steerer<K: Kernel> {
    kernel: K,
    law: Law,
    contention: OnContention,
    /// What our last call left; `None` where the clock is to be taken first.
    ours: Option<KernelClockState>,
}

impl<K: Kernel> Steerer<K> {
    /// Nothing is changed before the first look at a synchronised page.
    pub fn new(kernel: K, config: &SteerConfig) -> Self {
        Steerer { kernel, law: Law::new(config.law()), contention: config.contention, ours: None }
    }

    /// Acts on a look.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn act(&mut self, sighting: &Sighting) -> io::Result<Done> {
        let mut done = Done { action: Action::Keep, events: Vec::new(), has_withdrawn: false };
        if let Some(interruption) = sighting.interruption {
            self.begin_again()?;
            done.events.push(SteerEvent::Interrupted(interruption));
        } else if let Some(what) = self.find_foreign()? {
            done.events.push(SteerEvent::Contended(what));
            done.has_withdrawn = self.contention == OnContention::Withdraw;
            if done.has_withdrawn {
                self.end_slew()?;
            }
            self.ours = None;
        }
        let calendar = sighting.look.as_ref().ok().map(|(_, calendar)| calendar);
        if done.has_withdrawn {
            return Ok(done);
        }
        if calendar.is_some_and(|calendar| calendar.is_near) {
            self.end_slew()?;
            return Ok(done);
        }
        done.action = self.law.decide(sighting.look.as_ref().ok().map(|(look, _)| look));
        self.carry_out(&mut done, calendar)?;
        Ok(done)
    }

    /// Ends: the clock runs on at the rate of the page, without a slew. Its largest error grows from here on, and the
    /// kernel calls it unsynchronised in the end. Where a run ends otherwise, by an error or a panic, dropping this
    /// does the same.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn end(&mut self) -> io::Result<()> {
        self.end_slew()
    }

    /// Takes the slew away, and changes nothing else; a frequency of another program stays as it is.
    fn end_slew(&mut self) -> io::Result<()> {
        let (Some(ours), Some(rest)) = (self.ours, self.law.rest()) else { return Ok(()) };
        if ours.frequency != rest && self.kernel.state()?.frequency == ours.frequency {
            self.change(KernelClockChange { frequency: Some(rest), ..KernelClockChange::default() })?;
        }
        Ok(())
    }

    /// The machine slept or was restored. The kernel set its clock when it woke, and a tool of the hypervisor may set
    /// it after a restore: neither is a program that steers, and how well they did is not known before the page is
    /// there again.
    fn begin_again(&mut self) -> io::Result<()> {
        if self.ours.is_some() {
            let (frequency, flags) = (self.law.rest(), Some(KernelFlags::UNSYNCHRONISED));
            self.change(KernelClockChange { frequency, flags, ..KernelClockChange::default() })?;
        }
        self.ours = None;
        self.law.begin_again();
        Ok(())
    }

    fn find_foreign(&mut self) -> io::Result<Option<Foreign>> {
        let Some(ours) = self.ours else { return Ok(None) };
        Ok(foreign(&ours, &self.kernel.state()?))
    }

    fn carry_out(&mut self, done: &mut Done, calendar: Option<&Calendar>) -> io::Result<()> {
        if done.action != Action::Keep && self.ours.is_none() {
            let taken = self.kernel.take()?;
            self.ours = Some(taken);
            done.events.push(SteerEvent::Taken(taken.frequency));
        }
        match done.action {
            Action::Keep => Ok(()),
            Action::Step(by) => {
                self.ours = Some(self.kernel.step(by)?);
                done.events.push(SteerEvent::Stepped(by));
                Ok(())
            }
            Action::Steer(steering) => self.steer(&steering, calendar, &mut done.events),
            Action::Coast(frequency) => {
                done.events.push(SteerEvent::Coasting);
                // A leap second that was announced comes all the same.
                let announced = KernelFlags::INSERT.with(KernelFlags::DELETE);
                let known = self.ours.map_or(KernelFlags::none(), |ours| ours.flags.common(announced));
                let flags = Some(known.with(KernelFlags::UNSYNCHRONISED));
                self.change(KernelClockChange { frequency: Some(frequency), flags, ..KernelClockChange::default() })
            }
        }
    }

    fn steer(
        &mut self,
        steering: &Steering,
        calendar: Option<&Calendar>,
        events: &mut Vec<SteerEvent>,
    ) -> io::Result<()> {
        let was = self.ours.is_some_and(|ours| !ours.flags.has(KernelFlags::UNSYNCHRONISED));
        if steering.is_synchronised && !was {
            events.push(SteerEvent::Synchronised);
        }
        let announced = calendar.map_or(KernelFlags::none(), |calendar| calendar.flags);
        let bad = if steering.is_synchronised { KernelFlags::none() } else { KernelFlags::UNSYNCHRONISED };
        let known = self.ours.map(|ours| ours.tai_offset_s);
        self.change(KernelClockChange {
            frequency: Some(steering.frequency),
            flags: Some(announced.with(bad)),
            errors_us: Some(steering.errors_us),
            tai_offset_s: calendar.map(|calendar| calendar.tai_offset_s).filter(|tai| known != Some(*tai)),
        })
    }

    fn change(&mut self, change: KernelClockChange) -> io::Result<()> {
        self.ours = Some(self.kernel.change(&change)?);
        Ok(())
    }
}

impl<K: Kernel> Drop for Steerer<K> {
    fn drop(&mut self) {
        // A slew that runs on takes the clock away by seconds a day. Where the kernel refuses, nothing more can be
        // done.
        let _ = self.end_slew();
    }
}

#[cfg(test)]
#[path = "steerer_tests.rs"]
mod tests;

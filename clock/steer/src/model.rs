//! The kernel's clock in virtual time, for tests: as kernel/time/ntp.c keeps frequency, errors and flags.

use crate::leap::Calendar;
use crate::steerer::Kernel;
use ffclock_sys::{KernelClockChange, KernelClockState, KernelFlags, KernelFrequency};
use ffclock_units::{LeapStep, Moment, Span};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// The clock, which a test and the steerer hold both.
#[derive(Clone, Debug)]
pub struct Model(Rc<RefCell<Shared>>);

#[derive(Debug)]
struct Shared {
    state: KernelClockState,
    /// What the clock shows minus the true time [s].
    error: f64,
    /// How much faster it runs at the frequency 0, as a fraction.
    base: f64,
    calls: usize,
}

impl Model {
    pub fn new(error: f64, base_ppm: f64) -> Self {
        let limit = KernelClockState::ERROR_LIMIT_US;
        let state = KernelClockState {
            frequency: KernelFrequency::ZERO,
            tick_us: KernelClockState::TICK_US,
            flags: KernelFlags::UNSYNCHRONISED,
            offset: 0,
            slewing_us: 0,
            max_error_us: limit,
            estimated_error_us: limit,
            tai_offset_s: 0,
        };
        Model(Rc::new(RefCell::new(Shared { state, error, base: base_ppm * 1e-6, calls: 0 })))
    }

    pub fn pass(&self, seconds: f64) {
        let mut model = self.0.borrow_mut();
        let factor = (1.0 + model.base) * (1.0 + model.state.frequency.as_rate().as_fraction());
        model.error += (factor - 1.0) * seconds;
        model.state.max_error_us += (500.0 * seconds) as i64;
        if model.state.max_error_us > KernelClockState::ERROR_LIMIT_US {
            model.state.max_error_us = KernelClockState::ERROR_LIMIT_US;
            model.state.flags = model.state.flags.with(KernelFlags::UNSYNCHRONISED);
        }
    }

    /// What the clock shows minus the true time [s].
    pub fn error(&self) -> f64 {
        self.0.borrow().error
    }

    /// How many calls have changed it.
    pub fn calls(&self) -> usize {
        self.0.borrow().calls
    }

    pub fn shown(&self) -> KernelClockState {
        self.0.borrow().state
    }

    /// Another program's hand.
    pub fn disturb(&self, change: impl FnOnce(&mut KernelClockState)) {
        change(&mut self.0.borrow_mut().state);
    }

    /// Another program sets it.
    pub fn set_by(&self, seconds: f64) {
        let mut model = self.0.borrow_mut();
        model.error += seconds;
        model.clear();
    }

    /// The machine is stopped, and the clock with it, which does not notice.
    pub fn stand_still(&self, seconds: f64) {
        self.0.borrow_mut().error -= seconds;
    }

    fn acted(&self) -> io::Result<KernelClockState> {
        let mut model = self.0.borrow_mut();
        model.calls += 1;
        Ok(model.state)
    }
}

impl Shared {
    /// `ntp_clear`.
    fn clear(&mut self) {
        self.state.flags = self.state.flags.with(KernelFlags::UNSYNCHRONISED);
        self.state.max_error_us = KernelClockState::ERROR_LIMIT_US;
        self.state.estimated_error_us = KernelClockState::ERROR_LIMIT_US;
    }
}

impl Kernel for Model {
    fn state(&mut self) -> io::Result<KernelClockState> {
        Ok(self.shown())
    }

    fn take(&mut self) -> io::Result<KernelClockState> {
        self.disturb(|state| {
            (state.tick_us, state.offset, state.slewing_us) = (KernelClockState::TICK_US, 0, 0);
            state.flags = KernelFlags::UNSYNCHRONISED;
        });
        self.acted()
    }

    fn change(&mut self, change: &KernelClockChange) -> io::Result<KernelClockState> {
        self.disturb(|state| {
            state.frequency = change.frequency.unwrap_or(state.frequency);
            state.flags = change.flags.unwrap_or(state.flags);
            state.tai_offset_s = change.tai_offset_s.unwrap_or(state.tai_offset_s);
            if let Some(errors) = change.errors_us {
                [state.max_error_us, state.estimated_error_us] = errors;
            }
        });
        self.acted()
    }

    fn step(&mut self, by: Span) -> io::Result<KernelClockState> {
        self.set_by(by.as_seconds());
        self.acted()
    }
}

/// A day without a leap second.
pub fn plain_day() -> Calendar {
    let moment = Span::from_secs(1_900_000_000);
    let leap = LeapStep { before: 36, after: 37, at: 1_483_228_836 };
    Calendar::at((Moment::from_origin(moment), Moment::from_origin(moment)), leap, crate::leap::LeapMode::Kernel)
}

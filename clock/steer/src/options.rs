//! The options of the follower, each declared once.

use crate::contention::OnContention;
use crate::law::LawOptions;
use crate::leap::LeapMode;
use ffclock_service::{FilePath, Switchable};
use ffclock_sys::places;
use ffclock_units::{Bound, Rate, Span};

ffclock_units::options! {
    /// Options of the follower.
    pub struct SteerConfig {
        /// The page that ffclockd publishes.
        page: FilePath = FilePath::fixed(places::PAGE);
        /// The time between two looks at the page and at the kernel's clock.
        poll: Span = Span::from_secs(1), Span::from_millis(100) => Span::from_secs(16);
        /// An offset of the kernel's clock falls to 37 % of itself in this time. At least two polls.
        time_constant: Span = Span::from_secs(4), Span::from_millis(200) => Span::from_secs(3600);
        /// The most that the kernel's clock is slewed by. Together with its own error in rate it is never steered by
        /// more than 500 ppm, which is the kernel's limit.
        slew_max: Rate = Rate::from_ppm(200.0), Rate::from_ppm(1.0) => Rate::from_ppm(500.0);
        /// At the start, and after a suspend or a restore of the machine, a larger offset is taken away by one step.
        /// `off`: every offset is slewed, 1 s in 83 min with the usual `slew_max`.
        step_at_start: Switchable<Bound> = Switchable::Off;
        /// How a leap second comes into the kernel's clock: `kernel` has the kernel insert it or leave it out; `smear`
        /// spreads it from noon to noon of UTC; `slew` slews it once it has happened.
        leap: LeapMode = LeapMode::Kernel;
        /// What to do where another program steers or sets the kernel's clock: `withdraw` leaves the clock to it and
        /// ends with exit code 3; `continue` reports it and takes the clock back.
        contention: OnContention = OnContention::Withdraw;
    }
}

impl SteerConfig {
    /// What the law is to know of them.
    pub fn law(&self) -> LawOptions {
        LawOptions {
            time_constant: self.time_constant,
            slew_max: self.slew_max,
            step_beyond: self.step_at_start.value().copied(),
        }
    }
}

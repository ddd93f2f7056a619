//! What shows that the wander is larger than assumed, and what follows from it.
//!
//! There are three signs: an exchange that agrees only if the rate moved more (the interval would run empty), an
//! interval narrower than packets can make it, and a filter that explains its exchanges while its time stays outside
//! the interval. Each of them makes the assumed wander larger, up to a limit, and it never becomes smaller again. The
//! interval then begins with what the exchange proves alone, which no wander enters. With one server an
//! oscillator that wanders and a server that drifts look alike: the bound then grows with whichever it is.

use super::Guard;
use crate::frame::Point;
use crate::guard::proof::{Widening, alone};
use crate::interval::Interval;
use crate::{Event, Events};
use ffclock_units::{Exchange, Moment, Rate, Tai};

impl Guard {
    /// The wander that the bound assumes: what was configured, or more where the data showed more.
    pub fn wander(&self) -> Rate {
        Rate::from_fraction(self.assumptions.wander)
    }

    /// An exchange agrees only if the rate moved more than assumed.
    pub(super) fn stretch(&mut self, point: &Point) {
        let room = self.assumptions.wander_room();
        let widening = Widening { room, learned: self.assumptions.learn_wander() };
        self.proof.add_with_more_wander(point, widening, &self.assumptions);
    }

    /// Looks at how narrow the interval has become with an exchange that was just let in. A stated asymmetry narrows it
    /// beyond what packets do.
    pub(super) fn check_width(&mut self, point: &Point, events: &mut Events) {
        self.shortest.add(point);
        let (room, width) = (self.assumptions.wander_room(), self.proof.height().width());
        let is_too_narrow = self.shortest.is_too_narrow(point.x, width, room);
        if is_too_narrow && room > 0.0 && self.assumptions.half_asymmetry_error.is_none() {
            self.reopen(point);
            events.add(Event::WanderExceeded);
        }
    }

    /// Whether it could be `time` at the end of `exchange` if the wander were larger than assumed: it may still be, and
    /// the exchange alone allows that time.
    pub fn could_be_with_more_wander(&self, exchange: &Exchange, time: Moment<Tai>) -> bool {
        self.now.is_some_and(|now| {
            let (own, height) =
                (self.alone(&now.frame.place(exchange)), now.frame.height(exchange.received.counter, time));
            self.assumptions.wander_room() > 0.0 && own.contains(height)
        })
    }

    /// What an exchange proves alone.
    fn alone(&self, point: &Point) -> Interval {
        alone(point, self.proof.rates().widened(self.assumptions.wander_room()))
    }

    /// A filter that explains its exchanges holds the proof to be wrong. `exchange` is the last one; the result says
    /// whether it was let in here too, so that the proof begins again with it.
    pub fn doubt_wander(&mut self, exchange: &Exchange) -> bool {
        let present = self.now.filter(|now| now.counter == exchange.received.counter);
        if let Some(now) = present {
            self.reopen(&now.frame.place(exchange));
        }
        present.is_some()
    }

    fn reopen(&mut self, point: &Point) {
        let learned = self.assumptions.learn_wander();
        self.proof.reopen(point, learned, &self.assumptions);
    }
}

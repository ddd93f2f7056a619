//! A clock that ptp4l steers: the offset of each Sync by the median of the newest delays, and a servo.
//!
//! Source: linuxptp, manual page ptp4l(8) (`tsproc_mode filter`, `delay_filter moving_median` of 10). The delay is made
//! when a Delay_Resp has come, of the newest Sync (t1, t2) and of the request (t3, t4):
//! ((t2 - t3) * ratio + (t4 - t1)) / 2. There, ratio is the master's rate over the clock's as the servo knows it. The
//! offset of a Sync is t2 - t1 minus the median of the newest ten delays; before there is one, nothing is steered.

use super::pi::DelayFilter;
use super::{OffsetServo, SteeringTime, SystemClock};
use ffclock_ptp::PtpObservation;
use ffclock_units::{Counter, Direction, Moment, Period, Tai};

/// The newest Sync: left the master at, came here at, by the clock of that time.
type SyncTimes = (Moment<Tai>, Moment<Tai>);

/// The clock.
#[derive(Clone, Debug)]
pub(crate) struct Ptp4l<S> {
    servo: S,
    nominal: Period,
    /// From the first Sync on, which sets it; where uncorrected time begins.
    running: Option<(SystemClock, Counter)>,
    sync: Option<SyncTimes>,
    filter: DelayFilter,
    delay: Option<f64>,
}

impl<S: OffsetServo> Ptp4l<S> {
    pub(crate) fn new(nominal: Period, servo: S) -> Self {
        Ptp4l { servo, nominal, running: None, sync: None, filter: DelayFilter::median(), delay: None }
    }

    pub(crate) fn observe(&mut self, observation: &PtpObservation) {
        match observation.direction {
            Direction::Incoming => self.take_sync(observation),
            Direction::Outgoing => self.take_delay(observation),
        }
    }

    pub(crate) fn read(&self, counter: Counter) -> Option<Moment<Tai>> {
        self.running.as_ref().map(|(clock, _)| clock.read(counter))
    }

    fn take_delay(&mut self, request: &PtpObservation) {
        let (Some((clock, _)), Some((left, came))) = (&self.running, self.sync) else { return };
        let (since_request, since_sync) = (came - clock.read(request.ours.counter), request.theirs - left);
        let delay = (since_request.as_seconds() * self.servo.rate_ratio() + since_sync.as_seconds()) / 2.0;
        self.delay = Some(self.filter.update(delay));
    }

    fn take_sync(&mut self, sync: &PtpObservation) {
        let (counter, nominal) = (sync.ours.counter, self.nominal);
        let (clock, origin) =
            self.running.get_or_insert_with(|| (SystemClock::new(nominal, counter, sync.theirs), counter));
        let came = clock.read(counter);
        if let Some(delay) = self.delay {
            let raw_time = (nominal * (counter - *origin)).as_seconds();
            let offset = (came - sync.theirs).as_seconds() - delay;
            self.servo.steer(offset, SteeringTime { counter, raw_time }, clock);
        }
        self.sync = Some((sync.theirs, came));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Span, Stamp, StampLocation, Ticks};

    /// Notes the offsets that it is given, and changes nothing.
    #[derive(Clone, Debug, Default)]
    struct Notebook(Vec<f64>);

    impl OffsetServo for Notebook {
        fn steer(&mut self, offset: f64, _: SteeringTime, _: &mut SystemClock) {
            self.0.push(offset);
        }

        fn rate_ratio(&self) -> f64 {
            0.5
        }
    }

    fn observed(direction: Direction, ours_ns: u64, theirs_ns: i128) -> PtpObservation {
        let counter = Counter::from_raw(ours_ns);
        let ours = Stamp { counter, width: Ticks::ZERO, location: StampLocation::Kernel };
        PtpObservation { direction, ours, theirs: Moment::from_origin(Span::from_nanos(theirs_ns)) }
    }

    #[test]
    fn an_offset_is_a_sync_minus_the_median_of_the_delays() {
        let mut clock = Ptp4l::new(Period::from_hertz(1e9).unwrap(), Notebook::default());
        clock.observe(&observed(Direction::Outgoing, 500, 700));
        clock.observe(&observed(Direction::Incoming, 1000, 1000));
        assert_eq!((clock.delay, clock.servo.0.len()), (None, 0), "no delay without a Sync, no offset without a delay");
        // ((1000 - 2000) * 0.5 + (2700 - 1000)) / 2 = 600 ns, then 650 ns and 1600 ns.
        for (ours, theirs) in [(2000, 2700), (2000, 2800), (2000, 4700)] {
            clock.observe(&observed(Direction::Outgoing, ours, theirs));
        }
        assert!((clock.delay.unwrap() - 650e-9).abs() < 1e-15, "{:?}", clock.delay);
        clock.observe(&observed(Direction::Incoming, 11_000, 10_000));
        assert!((clock.servo.0[0] - 350e-9).abs() < 1e-15, "{:?}", clock.servo.0);
    }
}

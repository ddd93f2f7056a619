//! A clock that ptp4l steers: the offset of each Sync by the median of the newest delays, and a servo.
//!
//! Source: linuxptp, manual page ptp4l(8) (`tsproc_mode filter`, `delay_filter moving_median` of 10). The delay is made
//! when a Delay_Resp has come, of the newest Sync (t1, t2) and of the request (t3, t4):
//! ((t2 - t3) * ratio + (t4 - t1)) / 2. There, ratio is the master's rate over the clock's as the servo knows it. The
//! offset of a Sync is t2 - t1 minus the median of the newest ten delays; before there is one, nothing is steered. In
//! the mode `raw_weight` it is t2 - t1 minus the delay of this Sync and the newest request, and its weight that median
//! over that delay, at most 1. A step of the clock makes earlier stamps void, not the median of the delays (clock.c:
//! `tsproc_reset(tsproc, 0)`).

use super::pi::DelayFilter;
use super::{ClockStart, Correction, OffsetServo, SteeringTime, SystemClock};
use ffclock_ptp::PtpObservation;
use ffclock_units::{Counter, Direction, Moment, Period, Tai};

/// The newest Sync: left the master at, came here at, by the clock of that time.
type SyncTimes = (Moment<Tai>, Moment<Tai>);

/// How stamps become offsets (`tsproc_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum StampProcessing {
    #[default]
    Filter,
    RawWeight,
}

/// The clock.
#[derive(Clone, Debug)]
pub(crate) struct Ptp4l<S> {
    processing: StampProcessing,
    servo: S,
    nominal: Period,
    /// From the first Sync on, which sets it; where uncorrected time begins.
    running: Option<(SystemClock, Counter)>,
    sync: Option<SyncTimes>,
    /// The newest request that has its answer: left here, by the clock of that time, and came to the master.
    request: Option<(Moment<Tai>, Moment<Tai>)>,
    filter: DelayFilter,
    delay: Option<f64>,
}

impl<S: OffsetServo> Ptp4l<S> {
    pub(crate) fn new(nominal: Period, servo: S) -> Self {
        let (processing, filter) = (StampProcessing::Filter, DelayFilter::median());
        Ptp4l { processing, servo, nominal, running: None, sync: None, request: None, filter, delay: None }
    }

    /// The same with this processing of stamps.
    pub(crate) fn processing(self, processing: StampProcessing) -> Self {
        Ptp4l { processing, ..self }
    }

    /// The same with the system clock that an earlier run left, where one did.
    pub(crate) fn started(self, start: &ClockStart) -> Self {
        Ptp4l { running: start.clock().map(|(clock, (counter, _))| (clock, counter)), ..self }
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

    /// The delay by a Sync and a request.
    fn raw_delay(&self, (left, came): SyncTimes, (sent, arrived): (Moment<Tai>, Moment<Tai>)) -> f64 {
        ((came - sent).as_seconds() * self.servo.rate_ratio() + (arrived - left).as_seconds()) / 2.0
    }

    fn take_delay(&mut self, request: &PtpObservation) {
        let (Some((clock, _)), Some(sync)) = (&self.running, self.sync) else { return };
        let request = (clock.read(request.ours.counter), request.theirs);
        let delay = self.raw_delay(sync, request);
        self.request = Some(request);
        self.delay = Some(self.filter.update(delay));
    }

    /// The delay that counts for a Sync, and the weight of its offset; nothing before there is a delay.
    fn judge(&self, sync: SyncTimes) -> Option<(f64, f64)> {
        let filtered = self.delay?;
        match self.processing {
            StampProcessing::Filter => Some((filtered, 1.0)),
            StampProcessing::RawWeight => {
                let raw = self.raw_delay(sync, self.request?);
                let is_sane = raw > 0.0 && filtered > 0.0;
                Some((raw, if is_sane { (filtered / raw).min(1.0) } else { 1.0 }))
            }
        }
    }

    fn take_sync(&mut self, sync: &PtpObservation) {
        let (counter, nominal) = (sync.ours.counter, self.nominal);
        let (clock, origin) =
            self.running.get_or_insert_with(|| (SystemClock::new(nominal, counter, sync.theirs), counter));
        let (came, origin) = (clock.read(counter), *origin);
        let times = (sync.theirs, came);
        let judged = self.judge(times);
        self.sync = Some(times);
        if let (Some((delay, weight)), Some((clock, _))) = (judged, &mut self.running) {
            let raw_time = (nominal * (counter - origin)).as_seconds();
            let offset = (came - sync.theirs).as_seconds() - delay;
            let correction = self.servo.steer(offset, SteeringTime { counter, raw_time, weight }, clock);
            if correction == Correction::Step {
                (self.sync, self.request) = (None, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::observed;
    use super::*;

    /// Notes the offsets that it is given, and changes nothing.
    #[derive(Clone, Debug, Default)]
    struct Notebook(Vec<f64>, Vec<f64>);

    impl OffsetServo for Notebook {
        fn steer(&mut self, offset: f64, now: SteeringTime, _: &mut SystemClock) -> Correction {
            self.0.push(offset);
            self.1.push(now.weight);
            Correction::Frequency
        }

        fn rate_ratio(&self) -> f64 {
            0.5
        }
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

    /// Steps once, and notes the offsets.
    #[derive(Clone, Debug, Default)]
    struct Stepper(Vec<f64>);

    impl OffsetServo for Stepper {
        fn steer(&mut self, offset: f64, now: SteeringTime, clock: &mut SystemClock) -> Correction {
            self.0.push(offset);
            if self.0.len() > 1 {
                return Correction::Frequency;
            }
            clock.step(now.counter, -offset);
            Correction::Step
        }
    }

    #[test]
    fn a_step_makes_the_stamps_before_it_void_and_not_the_median() {
        let mut clock = Ptp4l::new(Period::from_hertz(1e9).unwrap(), Stepper::default());
        clock.observe(&observed(Direction::Incoming, 1000, 1000));
        // ((1000 - 2000) + (3400 - 1000)) / 2 = 700 ns.
        clock.observe(&observed(Direction::Outgoing, 2000, 3400));
        // 50 us - 700 ns off: stepped back by that, so that it shows the master's time plus 700 ns.
        clock.observe(&observed(Direction::Incoming, 60_000, 10_000));
        assert!((clock.servo.0[0] - 49_300e-9).abs() < 1e-15, "{:?}", clock.servo.0);
        // With the way of the Sync before the step, this would be a delay of 25 us.
        clock.observe(&observed(Direction::Outgoing, 61_000, 13_100));
        assert!((clock.delay.unwrap() - 700e-9).abs() < 1e-15, "{:?}", clock.delay);
        clock.observe(&observed(Direction::Incoming, 70_000, 20_000));
        assert!(clock.servo.0[1].abs() < 1e-15, "the median still holds: {:?}", clock.servo.0);
    }

    #[test]
    fn a_raw_offset_is_by_its_own_delay_and_weighs_what_the_median_is_over_it() {
        let notebook = Ptp4l::new(Period::from_hertz(1e9).unwrap(), Notebook::default());
        let mut clock = notebook.processing(StampProcessing::RawWeight);
        clock.observe(&observed(Direction::Incoming, 1000, 1000));
        clock.observe(&observed(Direction::Outgoing, 2000, 2700));
        // ((11000 - 2000) * 0.5 + (2700 - 6000)) / 2 = 600 ns, as the median, and then 1600 ns.
        clock.observe(&observed(Direction::Incoming, 11_000, 6_000));
        clock.observe(&observed(Direction::Incoming, 15_000, 6_000));
        let (offsets, weights) = (&clock.servo.0, &clock.servo.1);
        assert!((offsets[0] - 4400e-9).abs() < 1e-15 && (offsets[1] - 7400e-9).abs() < 1e-15, "{offsets:?}");
        assert!((weights[0] - 1.0).abs() < 1e-9 && (weights[1] - 0.375).abs() < 1e-9, "{weights:?}");
    }
}

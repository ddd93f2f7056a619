//! A clock that ptpd 2 steers by the messages of PTP as they come.
//!
//! Sources: K. Correll, N. Barendt, M. Branicky, "Design considerations for software only implementations of the IEEE
//! 1588 precision time protocol", 2005 (both filters and the servo), and ptpd2.conf(5) with its defaults
//! (`servo:kp` 0.1, `servo:ki` 0.001 for each second, by `servo:dt_method` constant; `servo:delayfilter_stiffness` 6,
//! `clock:max_offset_ppm` 500, `clock:drift_handling` preserve). The delay is half the sum of the newest Sync's way and
//! of the Delay_Req's, whatever the clock did between the two; a negative one is ignored. Left out: the filters of
//! outliers, which are off by default.

use super::start::ClockStart;
use super::{PTPD_INTEGRAL, PTPD_PROPORTIONAL, PTPD_STEP_S, PTPD_STIFFNESS, SystemClock};
use ffclock_ptp::PtpObservation;
use ffclock_units::{Counter, Direction, Moment, Period, Span, Tai};

/// The accumulated drift goes no further [s/s].
const DRIFT_MAX: f64 = 500e-6;

/// The clock. Offsets inside are clock minus master, as in its sources.
#[derive(Clone, Debug)]
pub(crate) struct Ptpd {
    nominal: Period,
    /// Between two Syncs [s].
    interval: f64,
    /// From the first Sync on, which sets it, unless an earlier run left one.
    clock: Option<SystemClock>,
    /// The way of the newest Sync by this clock [s].
    sync: Option<f64>,
    delay: StiffFilter,
    /// The offset before the last average [s].
    offset: f64,
    drift: f64,
}

/// The filter of delays: at first an average, then ever stiffer, and of pairs of measurements.
#[derive(Clone, Copy, Debug, Default)]
struct StiffFilter {
    value: f64,
    before: f64,
    updates: f64,
}

impl StiffFilter {
    fn update(&mut self, measured: f64) {
        self.updates = (self.updates + 1.0).min(PTPD_STIFFNESS);
        let pair = (measured + self.before) / 2.0;
        self.value += (pair - self.value) / self.updates;
        self.before = measured;
    }
}

impl Ptpd {
    /// For Syncs at this interval [s].
    pub(crate) fn new(nominal: Period, interval: f64, start: &ClockStart) -> Self {
        Ptpd {
            nominal,
            interval,
            clock: start.clock().map(|(clock, _)| clock),
            sync: None,
            delay: StiffFilter::default(),
            offset: 0.0,
            drift: -start.frequency().unwrap_or_default(),
        }
    }

    pub(crate) fn read(&self, counter: Counter) -> Option<Moment<Tai>> {
        self.clock.as_ref().map(|clock| clock.read(counter))
    }

    pub(crate) fn observe(&mut self, observation: &PtpObservation) {
        let (counter, theirs) = (observation.ours.counter, observation.theirs);
        match observation.direction {
            Direction::Incoming => {
                let nominal = self.nominal;
                let clock = self.clock.get_or_insert_with(|| SystemClock::new(nominal, counter, theirs));
                let way = clock.read(counter) - theirs;
                self.take_sync(way, counter);
            }
            Direction::Outgoing => {
                if let Some(ours) = self.read(counter) {
                    self.take_delay(theirs - ours);
                }
            }
        }
    }

    fn take_delay(&mut self, request: Span) {
        let Some(sync) = self.sync else { return };
        let delay = (sync + request.as_seconds()) / 2.0;
        if delay >= 0.0 {
            self.delay.update(delay);
        }
    }

    fn take_sync(&mut self, way: Span, counter: Counter) {
        let Some(clock) = &mut self.clock else { return };
        let way = way.as_seconds();
        self.sync = Some(way);
        let offset = way - self.delay.value;
        if offset.abs() > PTPD_STEP_S {
            clock.step(counter, -offset);
            (self.offset, self.sync, self.delay) = (0.0, None, StiffFilter::default());
            return;
        }
        let average = (offset + std::mem::replace(&mut self.offset, offset)) / 2.0;
        self.drift = (self.drift + PTPD_INTEGRAL * self.interval * average).clamp(-DRIFT_MAX, DRIFT_MAX);
        clock.set_frequency(counter, -(PTPD_PROPORTIONAL * average + self.drift));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::observed;
    use super::*;

    #[test]
    fn offsets_and_delays_are_averaged_in_pairs_and_a_negative_delay_is_ignored() {
        let nothing = ClockStart::none(Period::from_hertz(1e9).unwrap());
        let mut clock = Ptpd::new(Period::from_hertz(1e9).unwrap(), 2.0, &nothing);
        clock.observe(&observed(Direction::Outgoing, 500, 700));
        clock.observe(&observed(Direction::Incoming, 0, 0));
        assert_eq!((clock.sync, clock.delay.updates), (Some(0.0), 0.0), "no delay without a Sync");
        // The first average has half of the first delay: (0 + 2000) / 2 / 2 = 500 ns.
        clock.observe(&observed(Direction::Outgoing, 1000, 3000));
        assert!((clock.delay.value - 500e-9).abs() < 1e-15, "{:?}", clock.delay);
        clock.observe(&observed(Direction::Outgoing, 3000, 2000));
        assert!((clock.delay.value - 500e-9).abs() < 1e-15, "a negative one: {:?}", clock.delay);
        // (4500 - 500) / 2 with the 0 before it: a correction of 2000 ns * (0.1 + 2 * 0.001) each second.
        clock.observe(&observed(Direction::Incoming, 14_500, 10_000));
        assert!((clock.offset - 4e-6).abs() < 1e-15 && (clock.drift - 4e-9).abs() < 1e-15, "{clock:?}");
        let shown = clock.read(Counter::from_raw(1_000_014_500)).unwrap().since_origin().as_nanos();
        assert_eq!(shown, 1_000_014_500 - 204);
    }
}

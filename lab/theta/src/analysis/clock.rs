//! Counter values to times of the run.

use super::AnalysisError;
use crate::record::{ClockSample, RunDescription};
use ffclock_units::Counter;

/// Binary places of a slope below the picosecond.
const SLOPE_PLACES: u32 = 40;
/// Ticks longer than this do not fit a slope, and measure no delay.
const TICK_PS_MAX: f64 = 8e6;

/// 53 days from the origin of the run. Differences of two times then fit too; times beyond are clamped to it.
const TIME_PS_MAX: i64 = (1 << 62) - 1;

/// A piece of a host's clock: a straight line over a range of its counter.
#[derive(Clone, Copy, Debug)]
struct ClockSegment {
    anchor: u64,
    /// The range, as distances from the anchor: from here on ...
    first: i64,
    /// ... up to here, exclusively.
    end: i64,
    time_ps: i64,
    /// Picoseconds a tick, with [`SLOPE_PLACES`] binary places.
    slope: i64,
}

/// The part of a [`ClockSegment`] on which nothing can leave the range of times, so nothing need be put back into it.
#[derive(Clone, Copy, Debug)]
struct SafeSegment(ClockSegment);

impl SafeSegment {
    #[inline]
    fn time_ps(&self, counter: Counter) -> Option<i64> {
        let ClockSegment { anchor, time_ps, slope, .. } = self.0;
        let distance = counter.raw().wrapping_sub(anchor) as i64;
        let since = || ((i128::from(distance) * i128::from(slope)) >> SLOPE_PLACES) as i64;
        self.0.holds(distance).then(|| time_ps + since())
    }
}

impl ClockSegment {
    fn line(&self) -> SafeSegment {
        let room = i128::from(TIME_PS_MAX) - i128::from(self.time_ps).abs() - 1;
        let reach = (room.max(0) << SLOPE_PLACES) / i128::from(self.slope).abs().max(1);
        let reach = i64::try_from(reach).unwrap_or(i64::MAX);
        SafeSegment(ClockSegment { first: self.first.max(-reach), end: self.end.min(reach), ..*self })
    }

    fn holds(&self, distance: i64) -> bool {
        (self.first..self.end).contains(&distance)
    }

    fn time(&self, distance: i64) -> i64 {
        let since = (i128::from(distance) * i128::from(self.slope)) >> SLOPE_PLACES;
        (i128::from(self.time_ps) + since).clamp(-i128::from(TIME_PS_MAX), i128::from(TIME_PS_MAX)) as i64
    }
}

/// The clock of one host: straight between its samples, by its period outside them.
#[derive(Clone, Debug)]
pub struct SampledClock {
    segments: Vec<ClockSegment>,
    /// The segment that was used last: counters come almost in order.
    current: usize,
}

impl SampledClock {
    /// The clock that `samples` describe, in the order of the counter.
    ///
    /// # Errors
    /// Says what is wrong with them.
    pub fn new(samples: &[ClockSample]) -> Result<Self, String> {
        if samples.iter().any(|sample| sample.time_ps.unsigned_abs() > TIME_PS_MAX as u64) {
            return Err("has clock samples more than 53 days from the origin of the run".to_owned());
        }
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return Err("has no clock sample".to_owned());
        };
        let mut segments = vec![line(first, i64::MIN, 0)?];
        for pair in samples.windows(2) {
            segments.push(chord(&pair[0], &pair[1])?);
        }
        segments.push(line(last, 0, i64::MAX)?);
        Ok(SampledClock { segments, current: 0 })
    }

    /// The time when the counter showed `counter`, in picoseconds since the origin of the run.
    #[inline]
    pub fn time_ps(&mut self, counter: Counter) -> i64 {
        let segment = &self.segments[self.current];
        let distance = counter.raw().wrapping_sub(segment.anchor) as i64;
        if segment.holds(distance) { segment.time(distance) } else { self.search(counter) }
    }

    /// The counter at a time, on the last segment that has begun by then.
    fn counter_at(&self, time_ps: i64) -> Option<Counter> {
        let begun = self.segments.iter().skip(1).rposition(|segment| segment.time_ps <= time_ps);
        let segment = &self.segments[begun.map_or(0, |place| place + 1)];
        let since = i128::from(time_ps) - i128::from(segment.time_ps);
        let ticks = (since << SLOPE_PLACES).checked_div(i128::from(segment.slope)).unwrap_or(0);
        let up = i128::from(segment.time(i64::try_from(ticks).ok()?) < time_ps);
        let distance = i64::try_from(ticks + up).ok()?;
        Some(Counter::from_raw(segment.anchor.wrapping_add(distance as u64)))
    }

    fn line(&self) -> SafeSegment {
        self.segments[self.current].line()
    }

    fn search(&mut self, counter: Counter) -> i64 {
        let after = |segment: &ClockSegment| counter.raw().wrapping_sub(segment.anchor) as i64 >= segment.first;
        self.current = self.segments.partition_point(after).saturating_sub(1);
        let segment = &self.segments[self.current];
        segment.time(counter.raw().wrapping_sub(segment.anchor) as i64)
    }
}

fn line(sample: &ClockSample, first: i64, end: i64) -> Result<ClockSegment, String> {
    let tick_ps = sample.period.as_seconds() * 1e12;
    if tick_ps > TICK_PS_MAX {
        return Err(format!("has a counter with ticks of {tick_ps} ps: too coarse to measure delays"));
    }
    let slope = (tick_ps * (1u64 << SLOPE_PLACES) as f64).round() as i64;
    Ok(ClockSegment { anchor: sample.counter.raw(), first, end, time_ps: sample.time_ps, slope })
}

fn chord(from: &ClockSample, to: &ClockSample) -> Result<ClockSegment, String> {
    let ticks = (to.counter - from.counter).raw();
    if ticks <= 0 {
        return Err("has clock samples out of the order of its counter".to_owned());
    }
    if ticks == 1 {
        // A step: the counter never shows anything in between.
        return Ok(ClockSegment { anchor: from.counter.raw(), first: 0, end: 1, time_ps: from.time_ps, slope: 0 });
    }
    let rise = i128::from(to.time_ps) - i128::from(from.time_ps);
    let slope = i64::try_from((rise << SLOPE_PLACES) / i128::from(ticks));
    let slope = slope.map_err(|_| "has clock samples that contradict each other by more than any drift".to_owned())?;
    Ok(ClockSegment { anchor: from.counter.raw(), first: 0, end: ticks, time_ps: from.time_ps, slope })
}

/// The clocks of all hosts of a run, asked by process.
#[derive(Clone, Debug)]
pub struct Clocks {
    hosts: Vec<SampledClock>,
    host_of: Vec<usize>,
    /// The segment that each process used last: nearly always it uses the same again.
    lines: Vec<SafeSegment>,
}

impl Clocks {
    /// The clocks of the hosts of `run`, from `samples` in any order of hosts.
    ///
    /// # Errors
    /// [`AnalysisError::Clock`] names the host that has no samples or impossible ones.
    pub fn new(run: &RunDescription, samples: &[ClockSample]) -> Result<Self, AnalysisError> {
        let mut by_host = vec![Vec::new(); run.hosts.len()];
        for sample in samples {
            if let Some(of_host) = by_host.get_mut(sample.host.index()) {
                of_host.push(*sample);
            }
        }
        let clock = |(samples, host): (&Vec<ClockSample>, &crate::record::RunHost)| {
            SampledClock::new(samples).map_err(|fault| AnalysisError::Clock { host: host.name.clone(), fault })
        };
        let hosts = by_host.iter().zip(&run.hosts).map(clock).collect::<Result<_, _>>()?;
        let hosts: Vec<SampledClock> = hosts;
        let host_of: Vec<usize> = run.host_of.iter().map(|host| host.index()).collect();
        let lines = host_of.iter().map(|&host| hosts[host].line()).collect();
        Ok(Clocks { hosts, host_of, lines })
    }

    /// The time when the counter of the host of `process` showed `counter`, in picoseconds since the origin of the run.
    #[inline]
    pub fn time_ps(&mut self, process: usize, counter: Counter) -> i64 {
        self.lines[process].time_ps(counter).unwrap_or_else(|| self.search(process, counter))
    }

    #[cold]
    fn search(&mut self, process: usize, counter: Counter) -> i64 {
        let clock = &mut self.hosts[self.host_of[process]];
        let time_ps = clock.time_ps(counter);
        self.lines[process] = clock.line();
        time_ps
    }

    /// What the counter of the host of `process` showed at `time_ps`, to a tick: the first value whose time is no
    /// earlier. `None` for a time that no counter near its samples has.
    pub fn counter_at(&self, process: usize, time_ps: i64) -> Option<Counter> {
        self.hosts[*self.host_of.get(process)?].counter_at(time_ps)
    }

    /// The same from a row of a log; `None` for a process that the run does not have.
    pub(super) fn known_time_ps(&mut self, process: i32, at: i64) -> Option<i64> {
        let &host = self.host_of.get(usize::try_from(process).ok()?)?;
        Some(self.hosts[host].time_ps(Counter::from_raw(at as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::HostId;
    use ffclock_units::{Period, Rate};

    fn sample(counter: u64, time_ps: i64) -> ClockSample {
        let period = Period::from_seconds(1e-9).expect("a nanosecond");
        ClockSample {
            host: HostId(0),
            counter: Counter::from_raw(counter),
            time_ps,
            bound_ps: 0,
            period,
            drift_bound: Rate::from_ppm(0.0),
        }
    }

    #[test]
    fn between_samples_the_clock_is_straight() {
        let mut clock = SampledClock::new(&[sample(100, 0), sample(200, 300_000)]).expect("in order");
        assert_eq!(clock.time_ps(Counter::from_raw(150)), 150_000);
        assert_eq!(clock.time_ps(Counter::from_raw(90)), -10_000, "before the first sample the period holds");
        assert_eq!(clock.time_ps(Counter::from_raw(210)), 310_000, "after the last one too");
        assert_eq!(clock.time_ps(Counter::from_raw(100)), 0);
    }

    #[test]
    fn a_time_leads_back_to_its_counter() {
        let mut clock = SampledClock::new(&[sample(100, 0), sample(200, 300_000)]).expect("in order");
        for counter in [90, 100, 101, 150, 199, 200, 210].map(Counter::from_raw) {
            let time_ps = clock.time_ps(counter);
            assert_eq!(clock.counter_at(time_ps), Some(counter));
        }
    }

    #[test]
    fn samples_a_tick_apart_are_a_step() {
        let samples =
            [sample(100, 0), sample(199, 99_000), sample(200, 5_000_000_100_000), sample(300, 5_000_000_200_000)];
        let mut clock = SampledClock::new(&samples).expect("in order");
        let shown = [199, 200, 250].map(|counter| clock.time_ps(Counter::from_raw(counter)));
        assert_eq!(shown, [99_000, 5_000_000_100_000, 5_000_000_150_000]);
    }

    #[test]
    fn a_run_asks_each_process_by_the_clock_of_its_host() {
        let run = run_of_two();
        let other = |host, mut sample: ClockSample| {
            sample.host = HostId(host);
            sample
        };
        let samples = [other(1, sample(0, 5)), other(0, sample(100, 0)), other(0, sample(200, 300_000))];
        let mut clocks = Clocks::new(&run, &samples).expect("both have samples");
        let mut host = SampledClock::new(&samples[1..]).expect("in order");
        let far =
            [1 << 40, u64::MAX, 1 << 63, (1 << 52) / 1000, (1 << 62) / 1000, (1 << 62) / 1000 + 100_000, 90, 150, 250];
        for counter in far.map(Counter::from_raw) {
            assert_eq!(clocks.time_ps(0, counter), host.time_ps(counter), "{counter:?}");
            assert_eq!(clocks.time_ps(1, Counter::from_raw(7)), 7005);
        }
    }

    fn run_of_two() -> RunDescription {
        let host = |name: &str| crate::record::RunHost { name: name.to_owned(), counter: "simulated".to_owned() };
        RunDescription {
            origin: crate::record::LogOrigin::Simulated,
            form: crate::record::RecordedForm::Repaired,
            processes: 2,
            tolerated: 0,
            delay_ps: 0,
            delay_min_ps: 0,
            disorder_ps: 0,
            hosts: vec![host("a"), host("b")],
            host_of: vec![HostId(0), HostId(1)],
            faults: vec![],
            settings: std::collections::BTreeMap::new(),
            unrecorded: 0,
        }
    }

    #[test]
    fn a_counter_may_turn_over() {
        let mut clock = SampledClock::new(&[sample(u64::MAX - 9, 0)]).expect("one sample");
        assert_eq!(clock.time_ps(Counter::from_raw(10)), 20_000);
    }

    #[test]
    fn impossible_samples_are_refused() {
        assert!(SampledClock::new(&[]).is_err());
        assert!(SampledClock::new(&[sample(5, 0), sample(5, 1)]).is_err());
        assert!(SampledClock::new(&[sample(5, i64::MIN), sample(6, i64::MAX)]).is_err());
    }
}

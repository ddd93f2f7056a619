//! The time that the host of this virtual machine gives in the page of its VMClock.
//!
//! A line of the page is a reading of the counter that both share, the time then and its largest error: a sample
//! without any reading of our own, and exact to the host's bound. Each line counts once, and only if it was written
//! since the page was opened, which is again in each epoch of our counter. A host that has stopped is a silent
//! reference, and its line does not grow old here.

use super::inputs::{Input, TORN_AGAIN};
use super::{Finding, Note, Reference, Said};
use crate::peer::Context;
use ffclock_counter::{CounterId, read_ordered};
use ffclock_sys::{SharedVmClock, VmClockLine, VmClockRefused};
use ffclock_units::{Span, Stamp, StampLocation, Ticks};
use std::io;
use std::path::{Path, PathBuf};

/// A line of the host that is older by our counter is of another counter, or of a host that has stopped. Lines further
/// apart form no pair anyway.
const OLDEST: Span = Span::from_secs(8);
/// How far the counters of two CPUs may be apart: a line read before our counter is not after it otherwise.
const AHEAD: Span = Span::from_micros(10);

const NOT_THERE: &str = "the file was removed, replaced or cut off";

/// The page, and what was read last.
#[derive(Debug)]
pub(super) struct Machine {
    clock: SharedVmClock,
    path: PathBuf,
    counter: CounterId,
    last: Option<(u32, u64)>,
}

impl Machine {
    /// Opens a page for the counter that time is kept with. The error is in words.
    pub(super) fn open(path: &Path, counter: CounterId) -> Result<Self, String> {
        let clock = SharedVmClock::open_for_time(path).map_err(|error| error.to_string())?;
        let found = clock.line();
        match found {
            Ok((_, line)) if line.counter_id != counter => Err(other_counter(&line, counter)),
            Err(VmClockRefused::UnknownCounter) => Err("its time is for a counter that is not known here".to_owned()),
            Err(VmClockRefused::NoTime) => {
                Err("its host gives no time there, only the mark of a disruption (vm_clock)".to_owned())
            }
            // What is not there now may come.
            _ => {
                let last = found.ok().map(|(sequence, line)| (sequence, line.marker));
                Ok(Machine { clock, path: path.to_owned(), counter, last })
            }
        }
    }
}

fn other_counter(line: &VmClockLine, counter: CounterId) -> String {
    format!("its time is for the counter {}, and time is kept with {counter}", line.counter_id)
}

impl Reference {
    pub(super) fn read_machine(&mut self, context: &Context) -> io::Result<Option<Finding>> {
        let Input::Machine(machine) = &mut self.input else { return Ok(None) };
        // A file that was cut off must not be looked into, and one that was replaced says nothing any more.
        if !machine.clock.is_at(&machine.path) {
            return Err(io::Error::other(NOT_THERE));
        }
        let (sequence, line) = match machine.clock.line() {
            Ok(found) => found,
            Err(refused) => {
                self.look_again(context.now);
                if refused == VmClockRefused::Torn {
                    self.next = context.now + TORN_AGAIN;
                }
                self.refuse(refused.name());
                return Ok(None);
            }
        };
        if line.counter_id != machine.counter {
            return Err(io::Error::other(other_counter(&line, machine.counter)));
        }
        let before = machine.last.replace((sequence, line.marker));
        if before == Some((sequence, line.marker)) {
            self.look_again(context.now);
            return Ok(None);
        }
        // Read after the line: what the host wrote is in the past.
        let age = self.nominal * (read_ordered(machine.counter) - line.counter);
        if let Some((_, marker)) = before.filter(|(_, marker)| *marker != line.marker) {
            self.pair_anew();
            let detail = format!("its marker was {marker} and is {}", line.marker);
            self.notes.push(Note::warning("the host says that the counter was disrupted", detail));
        }
        self.next = context.now + self.poll;
        Ok(self.of_our_counter(age).then(|| Finding {
            stamp: Stamp { counter: line.counter, width: Ticks::ZERO, location: StampLocation::Hardware },
            said: Said::Time(line.time),
            claim: line.bound.0,
            leap: line.leap.announced(),
        }))
    }

    /// Whether a line of this age by our counter can be of it.
    fn of_our_counter(&mut self, age: Span) -> bool {
        if age < -AHEAD {
            let kind = "the host's counter is not the one of this machine";
            let detail = format!("it is {:.6} s ahead of ours", -age.as_seconds());
            self.notes.push(Note::warning(kind, detail));
            self.refuse("in-the-future");
        } else if age > OLDEST {
            self.refuse("too-old");
        }
        (-AHEAD..=OLDEST).contains(&age)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{context_with, kinds, reference, run};
    use super::*;
    use crate::peer::feed::Feed;
    use ffclock_sys::{VmClockFile, VmClockLeap};
    use ffclock_units::{Bound, Counter, GrowthRate, Moment, Period, Rate, StandardUncertainty, Status};

    const BOUND: Span = Span::from_micros(30);

    /// Measured once: a second measurement would give another clock.
    fn period() -> Period {
        static MEASURED: std::sync::OnceLock<Period> = std::sync::OnceLock::new();
        *MEASURED.get_or_init(|| ffclock_counter::nominal(CounterId::CPU).unwrap().period)
    }

    /// A line of a host whose clock is right and began with its counter.
    fn line(counter: Counter) -> VmClockLine {
        VmClockLine {
            marker: 1,
            counter_id: CounterId::CPU,
            counter,
            time: Moment::from_origin(Span::from_secs(1_800_000_000)) + period() * (counter - Counter::from_raw(0)),
            period: period(),
            uncertainty: (StandardUncertainty::ZERO, GrowthRate::default()),
            bound: (Bound::of(BOUND), GrowthRate::of(Rate::from_ppm(1.0))),
            tai_offset: 37,
            leap: VmClockLeap::None,
            status: Status::Synchronised,
        }
    }

    struct Host(PathBuf, VmClockFile);

    impl Host {
        fn start(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ffclockd-host-{name}-{}", std::process::id()));
            let _ = std::fs::remove_file(&path);
            let host = Host(path.clone(), VmClockFile::create(&path).unwrap());
            host.write(|line| line);
            host
        }

        fn write(&self, change: impl Fn(VmClockLine) -> VmClockLine) {
            assert!(self.1.give(&change(line(read_ordered(CounterId::CPU)))));
        }

        fn reference(&self) -> Box<Reference> {
            reference(&format!("input = \"vmclock:{}\"\nerror = \"1 us\"", self.0.display()))
        }
    }

    impl Drop for Host {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    const MOMENT: Span = Span::from_millis(60);

    #[test]
    fn lines_of_the_host_become_exchanges_with_its_bound_and_each_counts_once() {
        let host = Host::start("lines");
        let (mut reference, mut context) = (host.reference(), context_with(CounterId::CPU, period()));
        assert_eq!(run(&mut reference, &mut context, MOMENT).len(), 0, "what was there at the opening");
        let mut exchanges = Vec::new();
        for _ in 0..4 {
            host.write(|line| line);
            reference.next = context.now;
            exchanges.extend(run(&mut reference, &mut context, MOMENT));
        }
        let [first, second] = &exchanges[..] else { panic!("{exchanges:?} {:?}", reference.take_notes()) };
        for exchange in [first, second] {
            let (sent, received) = (exchange.sent.counter, exchange.received.counter);
            assert!((line(sent).time - exchange.server_in).abs() < Span::from_nanos(10));
            assert!((line(received).time - exchange.server_out).abs() < Span::from_nanos(10));
            let claim = exchange.server.root_distance.as_span() - BOUND - Span::from_micros(1);
            assert!(!claim.is_negative() && claim < Span::from_nanos(2), "what both state: {claim}");
        }
        assert!(second.sent.counter.is_after(first.received.counter));
        assert_eq!(reference.standing(), ffclock_source::Reachability::Reachable);
    }

    #[test]
    fn lines_from_before_and_after_a_disruption_form_no_pair() {
        let host = Host::start("disruption");
        let (mut reference, mut context) = (host.reference(), context_with(CounterId::CPU, period()));
        run(&mut reference, &mut context, MOMENT);
        let mut exchanges = Vec::new();
        for marker in [1, 2, 2] {
            host.write(|line| VmClockLine { marker, ..line });
            reference.next = context.now;
            exchanges.push(run(&mut reference, &mut context, MOMENT).len());
        }
        assert_eq!(exchanges, [0, 0, 1]);
        assert!(kinds(&reference.take_notes()).contains(&"the host says that the counter was disrupted"));
    }

    #[test]
    fn a_page_of_another_counter_is_refused_with_the_reason() {
        let host = Host::start("other");
        let (mut reference, mut context) = (host.reference(), context_with(CounterId::CPU, period()));
        run(&mut reference, &mut context, MOMENT);
        reference.take_notes();
        for (away, reason) in [(5, "in-the-future"), (-9, "too-old")] {
            host.write(|line| VmClockLine { counter: line.counter + period().ticks_in(Span::from_secs(away)), ..line });
            reference.next = context.now;
            assert!(run(&mut reference, &mut context, MOMENT).is_empty());
            assert_eq!(reference.counts.refused.get(reason), Some(&1), "{:?}", reference.counts.refused);
        }
        assert!(kinds(&reference.take_notes()).contains(&"the host's counter is not the one of this machine"));

        let mut raw = context_with(CounterId::MonotonicRaw, Period::from_hertz(1e9).unwrap());
        let mut refused = host.reference();
        run(&mut refused, &mut raw, MOMENT);
        let notes = refused.take_notes();
        assert!(notes.iter().any(|note| note.detail.contains("time is kept with monotonic-raw")), "{notes:?}");
        host.1.withhold();
        reference.next = context.now;
        run(&mut reference, &mut context, MOMENT);
        assert!(reference.counts.refused.contains_key("unsynchronised"));
        std::fs::remove_file(&host.0).unwrap();
        drop(Host::start("other"));
        reference.next = context.now;
        run(&mut reference, &mut context, MOMENT);
        assert!(!reference.is_open(), "the page that it was is not in its place: {:?}", reference.take_notes());
    }
}

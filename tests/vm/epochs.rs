//! The checks of epochs: within one the values lie on the line of their counter, whatever the host does to the guest
//! meanwhile.

use super::{Found, Outcome, choose_clocksource, open, read, tsc};
use ffclock_counter::ffcounter::{Ffcounter, ModuleCounter, Sample};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The clocksource is switched while two threads read the active counter: each change is a new epoch, and within one
/// epoch the values lie on the line of its counter.
pub(crate) fn switch() -> Outcome {
    let is_over = AtomicBool::new(false);
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| follow_switches(&is_over))).collect();
        let mut switched = Ok(());
        for round in 0..45 {
            switched = switched.and_then(|()| choose_clocksource(["hpet", "acpi_pm", "tsc"][round % 3]));
            thread::sleep(Duration::from_millis(70));
        }
        is_over.store(true, Ordering::Release);
        let readers =
            readers.into_iter().map(|reader| reader.join().unwrap_or_else(|_| Err("a reader panicked".to_owned())));
        readers.chain([switched]).collect()
    });
    outcomes.into_iter().collect()
}

fn follow_switches(is_over: &AtomicBool) -> Outcome {
    let mut epochs = Epochs::of(ModuleCounter::Active)?;
    while !is_over.load(Ordering::Acquire) {
        epochs.look()?;
    }
    let seen = epochs.begun.len();
    println!("FIGURE switch.epochs_seen {seen} in {} readings", epochs.readings);
    Found(seen > 20).or_fail(|| format!("only {seen} epochs for 45 switches"))
}

/// The host stops the guest now and then, for longer than the ACPI timer takes for half a turn: that counter has a new
/// epoch each time, and no value that is off by a turn; the HPET, which turns more slowly, goes on.
pub(crate) fn paused(seconds: f64) -> Outcome {
    let (pm, hpet) = (Epochs::of(ModuleCounter::AcpiPm)?, Epochs::of(ModuleCounter::Hpet)?);
    // For the host, which waits to stop us.
    println!("GUEST paused: ready");
    let [pm, hpet] = thread::scope(|scope| {
        [pm, hpet]
            .map(|epochs| scope.spawn(move || epochs.follow_for(seconds)))
            .map(|reader| reader.join().unwrap_or_else(|_| Err("a reader panicked".to_owned())))
    });
    let (pm, hpet) = (pm?, hpet?);
    println!("FIGURE paused.longest_s {:.3} without a reading", pm.longest_gap);
    println!("FIGURE paused.epochs_seen acpi_pm {}, hpet {}", pm.begun.len(), hpet.begun.len());
    Found(pm.longest_gap > HALF_TURN).or_fail(|| "this guest was not stopped".to_owned())?;
    Found(pm.begun.len() >= 2).or_fail(|| "the ACPI timer has no new epoch".to_owned())?;
    Found(hpet.begun.len() == 1).or_fail(|| "the HPET has a new epoch, and lost nothing".to_owned())?;
    // A reader that still knows the previous epoch must not take the new values for values of it.
    let firsts: Vec<u64> = pm.begun.values().map(|beginning| beginning.sample.value).collect();
    Found(firsts.windows(2).all(|two| two[1].wrapping_sub(two[0]) >= 1 << 47))
        .or_fail(|| format!("epochs of the ACPI timer begin at {firsts:?}"))
}

/// Half a turn of the ACPI timer [s].
const HALF_TURN: f64 = (1_u32 << 23) as f64 / 3_579_545.0;

/// Where an epoch was seen first.
#[derive(Debug)]
struct Beginning {
    sample: Sample,
    before: u64,
    after: u64,
}

/// The rate of the TSC against the HPET, whose frequency is certain: what the guest's kernel measured at boot may be
/// far off, on a busy host by a multiple.
fn measured_hertz(device: &Ffcounter) -> Result<f64, String> {
    let (begin, first) = read_together(device)?;
    thread::sleep(Duration::from_millis(300));
    let (end, last) = read_together(device)?;
    Ok((end - begin) / ((last.value - first.value) as f64 / last.hertz()))
}

/// The HPET and the TSC at the middle of its reading, from the quickest of a few: a guest that its host holds up
/// between the two would measure a rate that is wrong by that time.
fn read_together(device: &Ffcounter) -> Result<(f64, Sample), String> {
    let mut quickest: Option<(u64, u64, Sample)> = None;
    for _ in 0..50 {
        let before = tsc();
        let sample = read(device, ModuleCounter::Hpet)?;
        let took = tsc() - before;
        if quickest.as_ref().is_none_or(|(least, ..)| took < *least) {
            quickest = Some((took, before, sample));
        }
    }
    let (took, before, sample) = quickest.ok_or("no reading")?;
    Ok((before as f64 + 0.5 * took as f64, sample))
}

/// A counter followed through its epochs, beside the TSC.
#[derive(Debug)]
struct Epochs {
    device: Ffcounter,
    counter: ModuleCounter,
    tsc_hertz: f64,
    begun: BTreeMap<u32, Beginning>,
    last_epoch: u32,
    readings: u64,
    last_tsc: u64,
    longest_gap: f64,
}

impl Epochs {
    fn of(counter: ModuleCounter) -> Result<Self, String> {
        let device = open()?;
        let tsc_hertz = measured_hertz(&device)?;
        let begun = BTreeMap::new();
        Ok(Epochs { device, counter, tsc_hertz, begun, last_epoch: 0, readings: 0, last_tsc: tsc(), longest_gap: 0.0 })
    }

    fn follow_for(mut self, seconds: f64) -> Result<Self, String> {
        let begin = tsc();
        while self.seconds(begin, tsc()) < seconds {
            self.look()?;
        }
        Ok(self)
    }

    fn seconds(&self, from: u64, to: u64) -> f64 {
        to.wrapping_sub(from) as i64 as f64 / self.tsc_hertz
    }

    /// Reads it once. Within an epoch the value must lie where the TSC says.
    fn look(&mut self) -> Outcome {
        let before = tsc();
        let sample = read(&self.device, self.counter)?;
        let after = tsc();
        Found(sample.epoch >= self.last_epoch)
            .or_fail(|| format!("from epoch {} back to {}", self.last_epoch, sample.epoch))?;
        self.longest_gap = self.longest_gap.max(self.seconds(self.last_tsc, after));
        (self.last_epoch, self.last_tsc) = (sample.epoch, after);
        self.readings += 1;
        let first = self.begun.entry(sample.epoch).or_insert(Beginning { sample, before, after });
        let (first_sample, first_before, first_after) = (first.sample, first.before, first.after);
        Found(first_sample.underlying == sample.underlying)
            .or_fail(|| "another counter in the same epoch".to_owned())?;
        let is_tsc = sample.underlying == u32::from(ModuleCounter::Tsc.code());
        let hertz = if is_tsc { self.tsc_hertz } else { sample.hertz() };
        let counted = sample.value.wrapping_sub(first_sample.value) as i64 as f64 / hertz;
        let (least, most) = (self.seconds(first_after, before), self.seconds(first_before, after));
        // The emulator makes the TSC and the other counters of different clocks of the host, which a busy host reads up
        // to 0.12 ms apart. And its TSC never falls behind a reading of the other CPU: what the host's CPUs differ by,
        // tens of ns, is added at each such meeting, and two CPUs that do nothing but read make it some percent fast
        // (0.6 and 2.1 seen). What is looked for, a mixed counter or a lost turn, is seconds.
        let slack = 1e-3 + most * 0.05;
        let (first_width, width) = (self.seconds(first_before, first_after), self.seconds(before, after));
        Found(counted >= least - slack && counted <= most + slack).or_fail(|| {
            format!(
                "{}, epoch {}: {counted} s counted, {least} to {most} s passed, with readings of {first_width} and {width} s",
                self.counter, sample.epoch
            )
        })
    }
}

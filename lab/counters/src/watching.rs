//! Whether counters stay trustworthy: the evidence when one jumps, stalls, runs backwards on some CPU, or loses the
//! kernel's trust.
//!
//! Three looks: each counter against another clock of the kernel (`Continuity`, which the daemon uses too), the
//! kernel's own opinion (its list of clocksources), and every CPU's counter against the others, by a thread that goes
//! from CPU to CPU ([`CpuRound`], which the daemon uses too).

use ffclock_counter::ffcounter::Ffcounter;
use ffclock_counter::{Break, Continuity, CounterId, CpuRound, NominalError, USABLE, available_clocksources, nominal};
use ffclock_counter::{HostReadings, Readings};
use serde::Serialize;
use std::io;

/// Something that a counter must not do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterFault {
    /// Seconds since the beginning.
    pub t: f64,
    /// Which counter.
    pub counter: String,
    /// What happened: `suspended`, `jumped`, `stalled`, `clocksource-changed`, `vanished`, `epoch-ended`,
    /// `disagrees-between-cpus`, `trust-lost`, `trust-gained`.
    pub kind: &'static str,
    /// The evidence.
    pub evidence: String,
}

/// Why a counter cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum CounterWatchError {
    /// It does not even run steadily at the beginning.
    #[error("{counter} cannot be watched: {error}. Use `ffclock-lab counters` to see which counters run")]
    Unsteady {
        /// The counter.
        counter: CounterId,
        /// Why it has no frequency.
        error: NominalError,
    },
    /// The thread cannot go to other CPUs.
    #[error("the CPUs cannot be compared: {0}")]
    Cpus(#[from] io::Error),
}

/// Watches the counters of this host.
pub struct CounterWatcher<R = HostReadings> {
    counters: Vec<(CounterId, Continuity<R>)>,
    cpus: Vec<CpuRound>,
    trusted: Option<Vec<String>>,
}

impl CounterWatcher {
    /// Begins to watch the CPU's counter, the kernel's raw clock, and the counters of the module where it is loaded.
    ///
    /// # Errors
    /// [`CounterWatchError`].
    pub fn start() -> Result<Self, CounterWatchError> {
        let watched = present().into_iter().map(|counter| {
            let nominal = nominal(counter).map_err(|error| CounterWatchError::Unsteady { counter, error })?;
            Ok::<_, CounterWatchError>((counter, Continuity::start(counter, nominal)))
        });
        let counters = watched.collect::<Result<Vec<_>, CounterWatchError>>()?;
        let each = counters.iter().map(|(counter, _)| *counter).filter(|counter| counter.is_per_cpu());
        let cpus = each.map(CpuRound::start).collect::<io::Result<Vec<CpuRound>>>()?;
        Ok(CounterWatcher { counters, cpus, trusted: available_clocksources() })
    }
}

impl<R: Readings> CounterWatcher<R> {
    /// Looks once; everything that was found since the last look. `t`: seconds since the beginning.
    ///
    /// # Errors
    /// The thread cannot go to other CPUs any more.
    pub fn look(&mut self, t: f64) -> Result<Vec<CounterFault>, CounterWatchError> {
        let mut found: Vec<CounterFault> = Vec::new();
        for (counter, continuity) in &mut self.counters {
            let broken = continuity.observe().err();
            // For the CPU's counter the kernel's list says so, below.
            let is_listed = |broken: &Break| *counter == CounterId::CPU && matches!(broken, Break::TrustLost { .. });
            found.extend(broken.filter(|broken| !is_listed(broken)).map(|broken| of_break(t, *counter, &broken)));
        }
        for cpus in &mut self.cpus {
            let seen = cpus.look()?;
            found.extend(seen.map(|seen| of_break(t, cpus.kind(), &Break::CpusDisagree(seen))));
        }
        found.extend(self.compare_trust(t, available_clocksources()));
        Ok(found)
    }

    fn compare_trust(&mut self, t: f64, now: Option<Vec<String>>) -> Vec<CounterFault> {
        // Where the list cannot be read once, the one before still counts.
        let (Some(before), Some(now)) = (self.trusted.clone(), now) else { return Vec::new() };
        let found = changes(t, &before, &now);
        self.trusted = Some(now);
        found
    }
}

const DISAGREES: &str = "disagrees-between-cpus";
const TRUST_LOST: &str = "trust-lost";

fn of_break(t: f64, counter: CounterId, broken: &Break) -> CounterFault {
    let kind = match broken {
        Break::Suspended { .. } => "suspended",
        Break::CounterJumped { .. } => "jumped",
        Break::CounterStalled { .. } => "stalled",
        Break::ClocksourceChanged { .. } => "clocksource-changed",
        Break::CpusDisagree(_) => DISAGREES,
        Break::TrustLost { .. } => TRUST_LOST,
        Break::CounterVanished { .. } => "vanished",
        Break::EpochEnded { .. } => "epoch-ended",
        Break::Disrupted { .. } => "disrupted",
    };
    CounterFault { t, counter: counter.name().to_owned(), kind, evidence: broken.to_string() }
}

fn present() -> Vec<CounterId> {
    let module = Ffcounter::open().map(|module| module.counters()).unwrap_or_default();
    let named = module.into_iter().map(|(counter, _)| CounterId::Module(counter));
    let watched = named.filter(|counter| USABLE.contains(counter));
    [CounterId::CPU, CounterId::MonotonicRaw].into_iter().chain(watched).collect()
}

/// The kernel takes a counter that it found unsteady off its list.
fn changes(t: f64, before: &[String], now: &[String]) -> Vec<CounterFault> {
    let missing_from = |list: &[String], name: &String| !list.contains(name);
    let lost = before.iter().filter(|name| missing_from(now, name)).map(|name| {
        let evidence =
            format!("the kernel does not offer {name} as a clocksource any more; it offers {}", now.join(" "));
        CounterFault { t, counter: name.clone(), kind: TRUST_LOST, evidence }
    });
    let gained = now.iter().filter(|name| missing_from(before, name)).map(|name| {
        let evidence = format!("the kernel offers {name} as a clocksource now");
        CounterFault { t, counter: name.clone(), kind: "trust-gained", evidence }
    });
    lost.chain(gained).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_counter::{Nominal, NominalSource, Observation};
    use ffclock_units::{Counter, Period, Rate, Span, Ticks};

    /// A host that shows what it is given, in turn.
    struct Script(Vec<(u64, i64)>);

    impl Readings for Script {
        fn observe(&mut self) -> Observation {
            let (counter, seconds) = self.0.remove(0);
            let counter = Counter::from_raw(counter);
            Observation { counter, width: Ticks::from_raw(50), witness: Span::from_secs(seconds), suspended: None }
        }
        fn clocksource(&mut self) -> Option<String> {
            None
        }
    }

    fn watcher(script: &[(u64, i64)]) -> CounterWatcher<Script> {
        let period = Period::from_hertz(1e9).unwrap();
        let nominal = Nominal { period, error: Rate::from_ppm(100.0), source: NominalSource::Crystal };
        let continuity = Continuity::with_readings(Script(script.to_vec()), CounterId::CPU, nominal);
        CounterWatcher {
            counters: vec![(CounterId::CPU, continuity)],
            cpus: Vec::new(),
            trusted: available_clocksources(),
        }
    }

    #[test]
    fn jumps_stalls_and_backward_runs_are_found_with_the_evidence() {
        let second = 1_000_000_000;
        for (shown, kind, evidence) in [
            (3 * second, "jumped", "jumped by 1 s"),
            (second, "stalled", "stood still for 1 s"),
            (second / 2, "jumped", "jumped by -1.5 s"),
        ] {
            let mut watcher = watcher(&[(0, 0), (second, 1), (shown, 2), (shown + second, 3)]);
            assert_eq!(watcher.look(1.0).unwrap(), []);
            let found = watcher.look(2.0).unwrap();
            assert_eq!((found.len(), found[0].kind, found[0].t), (1, kind, 2.0), "{found:?}");
            assert!(found[0].evidence.contains(evidence), "{found:?}");
            assert_eq!(watcher.look(3.0).unwrap(), [], "a new run begins after the break");
        }
    }

    #[test]
    fn a_counter_off_the_kernels_list_has_lost_its_trust() {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let found = changes(5.0, &list("tsc hpet acpi_pm"), &list("hpet acpi_pm"));
        assert_eq!((found.len(), found[0].kind, found[0].counter.as_str()), (1, "trust-lost", "tsc"));
        assert!(found[0].evidence.contains("it offers hpet acpi_pm"), "{found:?}");
        assert_eq!(changes(5.0, &list("hpet"), &list("hpet kvm-clock"))[0].kind, "trust-gained");
        let mut watcher = CounterWatcher { trusted: Some(list("tsc")), ..watcher(&[(0, 0)]) };
        assert!(watcher.compare_trust(1.0, None).is_empty());
        assert_eq!(watcher.compare_trust(1.0, Some(list("hpet"))).len(), 2);
        assert!(watcher.compare_trust(2.0, Some(list("hpet"))).is_empty(), "found once");
    }

    #[test]
    fn this_hosts_counters_can_be_watched() {
        let mut watcher = CounterWatcher::start().unwrap();
        assert!(watcher.look(0.0).is_ok() && watcher.look(0.1).is_ok());
    }
}

//! The hosts of a live run and their clocks: which ranks read the same counter, the samples of the pages, and whether
//! a clock contradicts itself.
//!
//! Ranks that read the same counter need no clock between them: offsets are 0, even where they play different hosts.
//! Otherwise each host is compared by its page. A run is short against what a page's estimate is good for, so the last
//! look at it makes one straight line for the whole run; steps of the absolute clock from one estimate to the next do
//! not enter. In longer runs there is a sample a minute, and what two estimates may differ by counts as drift.

use super::LiveError;
use super::control::{ClockWord, Hello, LogHeader};
use ffclock_theta::faults::FaultPlan;
use ffclock_theta::record::{ClockSample, HostId, RunHost};
use ffclock_units::{Counter, Period, Rate};

/// Between two samples of a long run, in picoseconds.
const SAMPLE_PS: i128 = 60_000_000_000_000;
/// Of a counter that all share, between two words about a clock that lies on purpose: seconds.
const WORD_S: f64 = 0.1;
/// Rounding of counters and periods, in picoseconds.
const ROUNDING_PS: i128 = 100;

/// The first and the last counter of a rank's events.
#[derive(Clone, Copy, Debug)]
pub(super) struct CounterSpan {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// What a rank's log says about its clock, and when its events happened.
pub(super) struct StampedLog {
    pub(super) header: LogHeader,
    pub(super) span: CounterSpan,
}

/// The hosts of all ranks.
pub(super) struct Hosts {
    /// The number of each rank's host.
    pub(super) host_of: Vec<u32>,
    pub(super) hosts: Vec<RunHost>,
    /// By host: the number of what its times are read from, counter and page.
    domains: Vec<usize>,
}

impl Hosts {
    /// Ranks of the same machine, counter, page and name are on the same host.
    ///
    /// # Errors
    /// Where several counters must be compared and a host has no page to do it by.
    pub(super) fn of(hellos: &[Hello]) -> Result<Self, LiveError> {
        let mut keys: Vec<(&str, Domain<'_>)> = Vec::new();
        let mut known: Vec<Domain<'_>> = Vec::new();
        let mut found = Hosts { host_of: Vec::new(), hosts: Vec::new(), domains: Vec::new() };
        for hello in hellos {
            let domain = Domain { machine: &hello.machine, counter: &hello.counter, page: &hello.page };
            let key = (hello.host.as_str(), domain);
            let host = keys.iter().position(|&other| other == key).unwrap_or(keys.len());
            if host == keys.len() {
                keys.push(key);
                found.hosts.push(RunHost { name: hello.host.clone(), counter: hello.counter.clone() });
                found.domains.push(known.iter().position(|&other| other == domain).unwrap_or(known.len()));
                if found.domains[host] == known.len() {
                    known.push(domain);
                }
            }
            found.host_of.push(host as u32);
        }
        if let Some((one, other)) = at_odds(hellos) {
            return Err(LiveError::Settings(two_counters(one, other)));
        }
        let without = hellos.iter().find(|hello| hello.no_page.is_some()).filter(|_| known.len() > 1);
        match without {
            Some(hello) => Err(LiveError::Settings(no_time(&hello.host, hello.no_page.as_deref()))),
            None => Ok(found),
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// Whether all read the same counter.
    pub(super) fn share_a_counter(&self) -> bool {
        self.domains.iter().all(|&domain| domain == 0)
    }

    /// The clocks of the hosts, and what is wrong with them. By rank its log, if there is one.
    pub(super) fn clocks(&self, logs: &[Option<StampedLog>], plan: &FaultPlan) -> ClockFindings {
        let mut clocks = ClockFindings::default();
        let said: Vec<Vec<ClockWord>> = (0..self.hosts.len()).map(|host| self.words(host, logs, plan)).collect();
        let origin = said.iter().flatten().map(|word| word.time_ps).min().unwrap_or(0);
        for (host, words) in said.iter().enumerate() {
            let name = &self.hosts[host].name;
            let Some(last) = words.last() else {
                let ranks = logs.iter().zip(&self.host_of).filter(|(_, on)| **on == host as u32);
                let why = ranks.filter_map(|(log, _)| log.as_ref()?.header.no_clock.as_deref()).next();
                clocks.faults.push(no_time(name, why));
                continue;
            };
            let contradiction = contradiction(words).map(|(at_ps, by_ps)| {
                let (at, by) = ((at_ps - origin) as f64 * 1e-12, by_ps as f64 * 1e-6);
                format!(
                    "the clock of host {name} broke its bound at {at:.3} s: it moved {by:.3} us further than it may"
                )
            });
            // A clock that contradicts itself is recorded in full.
            let chosen = if contradiction.is_some() { words.clone() } else { sparse(words, *last) };
            clocks.faults.extend(contradiction);
            let drift = drift(&chosen);
            clocks
                .samples
                .extend(chosen.iter().filter_map(|word| sample(host, word, SampleReference { origin, drift })));
        }
        clocks
    }

    /// The samples of the clock of a host, with its injected faults.
    fn words(&self, host: usize, logs: &[Option<StampedLog>], plan: &FaultPlan) -> Vec<ClockWord> {
        let of_domain = |rank: &usize| self.domains[self.host_of[*rank] as usize] == self.domains[host];
        let ranks: Vec<usize> = (0..logs.len()).filter(|rank| logs[*rank].is_some() && of_domain(rank)).collect();
        let best = ranks.iter().max_by_key(|&&rank| logs[rank].as_ref().map_or(0, |log| log.header.clock.len()));
        let Some(log) = best.and_then(|&rank| logs[rank].as_ref()) else { return vec![] };
        let log = &log.header;
        let faults = plan.clocks.get(host).map_or(&[][..], Vec::as_slice);
        // Each rank starts by itself; nothing happens before the first has.
        let started =
            ranks.iter().filter_map(|&rank| Some(logs[rank].as_ref()?.header.started)).min().unwrap_or(log.started);
        let mut words = if self.share_a_counter() {
            let spans = || ranks.iter().filter_map(|&rank| Some(logs[rank].as_ref()?.span));
            let first = spans().map(|span| span.first).min().unwrap_or(log.started);
            let last = spans().map(|span| span.last).max().unwrap_or(first);
            counter_alone(CounterSpan { first, last: if faults.is_empty() { first } else { last } }, log.period_s)
        } else {
            log.clock.clone()
        };
        for word in &mut words {
            let at = (word.counter.saturating_sub(started) as f64 * log.period_s * 1e12) as u64;
            word.time_ps += faults.iter().map(|fault| fault.error(at)).sum::<f64>().round() as i128;
            let rates = faults.iter().filter(|fault| fault.window.holds(at)).map(|fault| fault.rate);
            word.period_s *= 1.0 + rates.sum::<f64>();
        }
        words
    }
}

/// The source of the times of a host.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Domain<'a> {
    machine: &'a str,
    counter: &'a str,
    page: &'a str,
}

/// Two ranks that could read the same counter and do not. This happens when the check of the CPU counter fails for one
/// of them on a busy machine.
fn at_odds(hellos: &[Hello]) -> Option<(&Hello, &Hello)> {
    let (one, others) = hellos.split_first()?;
    let is_beside = |other: &&Hello| (&other.machine, &other.page) == (&one.machine, &one.page);
    let other = others.iter().filter(is_beside).find(|other| other.counter != one.counter);
    other.map(|other| (one, other)).or_else(|| at_odds(others))
}

fn two_counters(one: &Hello, other: &Hello) -> String {
    format!(
        "ranks {} and {} are on the same machine and stamp by different counters, {} and {}: start all with --counter {}",
        one.rank, other.rank, one.counter, other.counter, one.counter
    )
}

/// The samples for the log, and the faults that make it partial.
#[derive(Default)]
pub(super) struct ClockFindings {
    pub(super) samples: Vec<ClockSample>,
    pub(super) faults: Vec<String>,
}

fn no_time(host: &str, why: Option<&str>) -> String {
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    format!(
        "host {host} publishes no time to compare with the other hosts'{why}: start ffclockd on it and wait for `ffclock wait`, or name its page with --page"
    )
}

/// A clock that is the counter alone.
fn counter_alone(CounterSpan { first, last }: CounterSpan, period_s: f64) -> Vec<ClockWord> {
    let step = ((WORD_S / period_s) as u64).max(1);
    let count = (last - first.min(last)) / step + 1;
    let word = |index: u64| ClockWord {
        counter: first + index * step,
        time_ps: (index as f64 * step as f64 * period_s * 1e12).round() as i128,
        bound_ps: 0,
        drift_ppt: 0,
        period_s,
    };
    (0..count).map(word).collect()
}

/// How much further the clock has moved at `to` than its sample `from` allows; not positive if it keeps its promise.
fn excess(from: &ClockWord, to: &ClockWord) -> i128 {
    let passed = to.counter.wrapping_sub(from.counter) as i64 as f64 * from.period_s * 1e12;
    let drift = passed.abs() * from.drift_ppt as f64 * 1e-12;
    let moved = to.time_ps - from.time_ps - passed.round() as i128;
    moved.abs() - i128::from(from.bound_ps) - i128::from(to.bound_ps) - drift.ceil() as i128 - ROUNDING_PS
}

/// The time at which a clock contradicted itself, and the excess over its bounds: two of its samples cannot both be
/// within their bounds of the truth.
fn contradiction(words: &[ClockWord]) -> Option<(i128, i128)> {
    let neighbours = words.windows(2).map(|pair| (&pair[0], &pair[1]));
    let ends = words.first().zip(words.last());
    let (_, to, by) =
        neighbours.chain(ends).map(|(from, to)| (from, to, excess(from, to))).max_by_key(|seen| seen.2)?;
    (by > 0).then_some((to.time_ps, by))
}

/// The last sample, and before it one in each [`SAMPLE_PS`].
fn sparse(words: &[ClockWord], last: ClockWord) -> Vec<ClockWord> {
    let mut chosen = vec![last];
    for &word in words.iter().rev() {
        if chosen.last().is_some_and(|later| later.time_ps - word.time_ps >= SAMPLE_PS) {
            chosen.push(word);
        }
    }
    chosen.reverse();
    chosen
}

/// The bound on the drift of a clock through these samples: that of the page, and what two estimates may differ.
fn drift(words: &[ClockWord]) -> f64 {
    let own = words.iter().map(|word| word.drift_ppt).max().unwrap_or(0) as f64 * 1e-12;
    let between = words.windows(2).map(|pair| {
        let lasted = (pair[1].time_ps - pair[0].time_ps).max(1) as f64;
        (pair[0].bound_ps + pair[1].bound_ps) as f64 / lasted
    });
    own + between.fold(0.0, f64::max)
}

/// What all samples of a host's clock refer to.
struct SampleReference {
    origin: i128,
    drift: f64,
}

fn sample(host: usize, word: &ClockWord, SampleReference { origin, drift }: SampleReference) -> Option<ClockSample> {
    Some(ClockSample {
        host: HostId(host as u32),
        counter: Counter::from_raw(word.counter),
        time_ps: i64::try_from(word.time_ps - origin).ok()?,
        bound_ps: word.bound_ps,
        period: Period::from_seconds(word.period_s)?,
        drift_bound: Rate::from_fraction(drift.min(0.5)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Replies, Settings};

    fn hello(host: &str, page: &str, no_page: Option<&str>) -> Hello {
        let settings = Settings {
            processes: 4,
            tolerated: 1,
            form: ffclock_theta::algorithm::AlgorithmForm::Repaired,
            rounds: 1,
            delay_ns: 0,
            replies: Replies::None,
            faults: vec![],
        };
        Hello {
            rank: 0,
            settings,
            address: ([127, 0, 0, 1], 1).into(),
            host: host.to_owned(),
            machine: "m".to_owned(),
            counter: "tsc".to_owned(),
            page: page.to_owned(),
            no_page: no_page.map(str::to_owned),
        }
    }

    fn word(at_us: u64, error_us: i128, bound_us: u64) -> ClockWord {
        let time_ps = (i128::from(at_us) + error_us) * 1_000_000;
        ClockWord {
            counter: at_us * 1000,
            time_ps,
            bound_ps: bound_us * 1_000_000,
            drift_ppt: 1_000_000,
            period_s: 1e-9,
        }
    }

    fn log(clock: Vec<ClockWord>) -> Option<StampedLog> {
        stamped(clock, 0, 1)
    }

    fn stamped(clock: Vec<ClockWord>, first: u64, last: u64) -> Option<StampedLog> {
        let header = LogHeader { period_s: 1e-9, clock, ..LogHeader::default() };
        Some(StampedLog { header, span: CounterSpan { first, last } })
    }

    fn plan(faults: &[&str]) -> FaultPlan {
        let specs: Vec<_> = faults.iter().map(|text| text.parse().unwrap()).collect();
        FaultPlan::new(&specs, 4, 4).unwrap()
    }

    #[test]
    fn hosts_differ_by_name_or_page() {
        let hosts = Hosts::of(&[hello("a", "", None), hello("b", "", None), hello("a", "", None)]).unwrap();
        assert_eq!((hosts.host_of.clone(), hosts.share_a_counter()), (vec![0, 1, 0], true));
        let hosts = Hosts::of(&[hello("a", "p", None), hello("a", "q", None)]).unwrap();
        assert_eq!((hosts.count(), hosts.share_a_counter()), (2, false));
    }

    #[test]
    fn a_host_without_a_page_is_named_before_the_run() {
        let Err(error) = Hosts::of(&[hello("a", "p", None), hello("b", "", Some("no such file"))]) else { panic!() };
        let error = error.to_string();
        assert!(error.contains("host b") && error.contains("no such file") && error.contains("ffclockd"), "{error}");
        // One counter needs no page.
        assert!(Hosts::of(&[hello("a", "", Some("x")), hello("b", "", Some("x"))]).is_ok());
    }

    #[test]
    fn ranks_of_a_machine_that_chose_different_counters_get_advice() {
        let other = Hello { rank: 6, counter: "monotonic-raw".to_owned(), ..hello("b", "", Some("no such file")) };
        let hellos = [hello("a", "", Some("no such file")), other.clone()];
        let Err(error) = Hosts::of(&hellos) else { panic!() };
        let error = error.to_string();
        assert!(error.contains("ranks 0 and 6") && error.contains("--counter tsc"), "{error}");
        // With pages each may have its own.
        assert!(Hosts::of(&[hello("a", "p", None), Hello { page: "q".to_owned(), no_page: None, ..other }]).is_ok());
    }

    #[test]
    fn a_shared_counter_is_every_hosts_clock() {
        let hosts = Hosts::of(&[hello("a", "", None), hello("b", "", None)]).unwrap();
        let clocks = hosts.clocks(&[stamped(vec![], 5_000, 9_000), stamped(vec![], 4_000, 9_500)], &plan(&[]));
        assert_eq!(clocks.faults, [""; 0]);
        let seen: Vec<_> = clocks.samples.iter().map(|s| (s.host.0, s.counter.raw(), s.time_ps, s.bound_ps)).collect();
        assert_eq!(seen, [(0, 4_000, 0, 0), (1, 4_000, 0, 0)]);
    }

    #[test]
    fn the_last_look_makes_one_line() {
        let hosts = Hosts::of(&[hello("a", "p", None), hello("b", "q", None)]).unwrap();
        let words = vec![word(0, 3, 10), word(1_000_000, -2, 10)];
        let clocks = hosts.clocks(&[log(words), log(vec![word(0, 0, 10)])], &plan(&[]));
        assert_eq!((clocks.faults.len(), clocks.samples.len()), (0, 2), "{:?}", clocks.faults);
        assert_eq!(clocks.samples[0].counter.raw(), 1_000_000_000);
        assert!((clocks.samples[0].drift_bound.as_fraction() - 1e-6).abs() < 1e-12);
    }

    #[test]
    fn a_long_run_has_a_sample_a_minute() {
        let words: Vec<_> = (0..=300).map(|second| word(second * 1_000_000, 0, 60)).collect();
        let chosen = sparse(&words, *words.last().unwrap());
        assert_eq!(chosen.len(), 6);
        assert!((drift(&chosen) - (1e-6 + 2e-6)).abs() < 1e-12, "{}", drift(&chosen));
    }

    #[test]
    fn a_clock_that_steps_or_drifts_during_the_run_is_named() {
        let hosts = Hosts::of(&[hello("a", "p", None), hello("b", "q", None)]).unwrap();
        let honest = || log((0..10).map(|i| word(i * 100_000, 0, 10)).collect());
        for fault in [
            "kind = \"clock-step\", host = 1, step = \"200 us\", from = \"450 ms\"",
            "kind = \"clock-drift\", host = 1, rate = \"1000 ppm\", from = \"450 ms\"",
        ] {
            let clocks = hosts.clocks(&[honest(), honest()], &plan(&[fault]));
            assert_eq!(clocks.faults.len(), 1, "{fault}");
            assert!(clocks.faults[0].contains("the clock of host b broke its bound"), "{:?}", clocks.faults);
        }
        let within = "kind = \"clock-step\", host = 1, step = \"15 us\", from = \"450 ms\"";
        assert_eq!(hosts.clocks(&[honest(), honest()], &plan(&[within])).faults, [""; 0]);
    }

    #[test]
    fn a_page_that_went_away_is_named() {
        let hosts = Hosts::of(&[hello("a", "p", None), hello("b", "q", None)]).unwrap();
        let mut gone = log(vec![]);
        gone.iter_mut().for_each(|log| log.header.no_clock = Some("not synchronised".to_owned()));
        let clocks = hosts.clocks(&[log(vec![word(0, 0, 1)]), gone], &plan(&[]));
        assert!(clocks.faults[0].contains("host b") && clocks.faults[0].contains("not synchronised"));
    }
}

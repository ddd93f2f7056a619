//! The corrections of the hosts' clocks: how far apart they can be.

use super::closure::{Contradiction, Differences};
use super::gather::{ClockStamp, GatheredMessage};
use crate::record::{ClockSample, RunDescription};
use std::fmt;

/// More entries of all epochs' bounds together are avoided by longer epochs.
const ENTRIES_MAX: i64 = 1 << 25;

/// Bounds on `correction = true time - clock` for each pair of hosts and each epoch.
pub struct Corrections {
    first_ps: i64,
    epoch_ps: i64,
    drifts: Vec<f64>,
    ticks_ps: Vec<i64>,
    /// Node 0 is the truth, node h + 1 is host h.
    epochs: Vec<Differences>,
}

/// A clock that did not keep its bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lie {
    /// Where it showed: in the epoch that begins here, picoseconds since the origin of the run.
    pub at_ps: i64,
    /// The hosts of which each alone explains everything when its clock is believed nothing. One: it was that one.
    pub suspects: Vec<String>,
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at_ps as f64 * 1e-12;
        let suspects = self.suspects.join(", ");
        match self.suspects.len() {
            0 => {
                write!(f, "clocks broke their bounds at {at:.3} s, and no single host explains it: more than one lied")?
            }
            1 => write!(f, "the clock of host {suspects} broke its bound at {at:.3} s")?,
            _ => write!(f, "a clock broke its bound at {at:.3} s: one of {suspects}")?,
        }
        f.write_str("; no bounds on delays can be given until its samples are corrected or its bound is widened")
    }
}

/// Constraints before any has been drawn from another.
struct ClockEvidence<'a> {
    run: &'a RunDescription,
    first_ps: i64,
    epoch_ps: i64,
    drifts: Vec<f64>,
    /// The length of a tick: a reading of the counter says that its time has come, and that the next has not.
    ticks_ps: Vec<i64>,
    samples: Vec<Vec<ClockSample>>,
    /// From messages, by epoch.
    messages: Vec<Differences>,
}

impl Corrections {
    /// The corrections that the clocks' promises and the messages between hosts leave possible.
    ///
    /// # Errors
    /// A [`Lie`] if there are none.
    pub(super) fn new(
        run: &RunDescription,
        clocks: &[ClockSample],
        crossings: &[GatheredMessage],
        epoch_ps: u64,
    ) -> Result<Self, Lie> {
        let evidence = ClockEvidence::new(run, clocks, crossings, epoch_ps);
        let epochs = evidence.close(None).map_err(|epoch| evidence.lie(epoch))?;
        let ClockEvidence { first_ps, epoch_ps, drifts, ticks_ps, .. } = evidence;
        Ok(Corrections { first_ps, epoch_ps, drifts, ticks_ps, epochs })
    }

    /// The same without the last host, for whose part in it all bounds are tight already.
    pub(super) fn without_last(mut self) -> Self {
        self.drifts.pop();
        self.ticks_ps.pop();
        self.epochs.iter_mut().for_each(|epoch| *epoch = epoch.without_last());
        self
    }

    /// The least and the most picoseconds that pass in truth from `from` to `to`.
    pub(super) fn between(&self, from: ClockStamp, to: ClockStamp) -> (i64, i64) {
        let raw = to.clock_ps.saturating_sub(from.clock_ps);
        if from.host == to.host {
            // The same clock: only its rate and its tick can be wrong, never its order. Within one tick the order is
            // the one in which the host took the stamps: a switch comes after what its host sent at the same reading.
            let slack = up(self.drifts[from.host] * raw.unsigned_abs() as f64).saturating_add(self.ticks_ps[from.host]);
            let (least, most) = (raw.saturating_sub(slack), raw.saturating_add(slack));
            return match raw.signum() {
                0 => (0, most),
                1 => (least.max(1), most),
                _ => (least, most.min(-1)),
            };
        }
        let epoch = epoch_of(self.first_ps, self.epoch_ps, from.clock_ps).min(self.epochs.len() - 1);
        let middle = middle(self.first_ps, self.epoch_ps, epoch);
        let slack = slack(&self.drifts, from, middle).saturating_add(slack(&self.drifts, to, middle));
        let differences = &self.epochs[epoch];
        let least = raw.saturating_sub(differences.most(to.host + 1, from.host + 1)).saturating_sub(slack);
        let most = raw.saturating_add(differences.most(from.host + 1, to.host + 1)).saturating_add(slack);
        (least.saturating_sub(self.ticks_ps[from.host]), most.saturating_add(self.ticks_ps[to.host]))
    }

    /// The earliest and the latest true time of a stamp, in picoseconds since the origin of the run.
    pub(super) fn truth(&self, stamp: ClockStamp) -> (i64, i64) {
        let ClockStamp { clock_ps, host } = stamp;
        let epoch = epoch_of(self.first_ps, self.epoch_ps, clock_ps).min(self.epochs.len() - 1);
        let slack = slack(&self.drifts, stamp, middle(self.first_ps, self.epoch_ps, epoch));
        let differences = &self.epochs[epoch];
        let earliest = clock_ps.saturating_sub(differences.most(host + 1, 0)).saturating_sub(slack);
        let latest = clock_ps.saturating_add(differences.most(0, host + 1)).saturating_add(slack);
        (earliest, latest.saturating_add(self.ticks_ps[host]))
    }

    /// Half the widest range of a difference of two clocks, in picoseconds; 0 for a single host.
    pub fn half_width_max_ps(&self) -> i64 {
        let hosts = self.drifts.len();
        let widths = self.epochs.iter().flat_map(|epoch| {
            let pairs = (1..=hosts).flat_map(move |a| (1..a).map(move |b| (a, b)));
            pairs.map(|(a, b)| epoch.most(a, b).saturating_add(epoch.most(b, a)) / 2)
        });
        widths.max().unwrap_or(0)
    }

    /// A time in each epoch.
    pub(super) fn edges_ps(&self) -> impl Iterator<Item = i64> {
        (0..self.epochs.len()).map(|epoch| middle(self.first_ps, self.epoch_ps, epoch))
    }

    /// How many epochs there are.
    pub fn epochs(&self) -> usize {
        self.epochs.len()
    }
}

fn epoch_of(first_ps: i64, epoch_ps: i64, clock_ps: i64) -> usize {
    usize::try_from(clock_ps.saturating_sub(first_ps) / epoch_ps).unwrap_or(0)
}

fn middle(first_ps: i64, epoch_ps: i64, epoch: usize) -> i64 {
    first_ps.saturating_add(epoch_ps.saturating_mul(epoch as i64)).saturating_add(epoch_ps / 2)
}

/// How far the correction may be from what it was in the middle of the epoch.
fn slack(drifts: &[f64], stamp: ClockStamp, middle: i64) -> i64 {
    // Clocks are rounded to picoseconds.
    up(drifts[stamp.host] * stamp.clock_ps.saturating_sub(middle).unsigned_abs() as f64).saturating_add(1)
}

fn up(picoseconds: f64) -> i64 {
    picoseconds.ceil() as i64
}

impl<'a> ClockEvidence<'a> {
    fn new(run: &'a RunDescription, clocks: &[ClockSample], crossings: &[GatheredMessage], epoch_ps: u64) -> Self {
        let hosts = run.hosts.len();
        let of_host = |host: usize| clocks.iter().filter(move |sample| sample.host.index() == host);
        let drift = |host| of_host(host).map(|sample| sample.drift_bound.as_fraction()).fold(0.0, f64::max);
        let tick_ps = |host| of_host(host).map(|sample| up(sample.period.as_seconds() * 1e12)).fold(0, i64::max);
        let times = || crossings.iter().flat_map(|message| [message.sent.clock_ps, message.perceived.clock_ps]);
        let (first_ps, last_ps) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let lasted = last_ps.saturating_sub(first_ps);
        let epochs_max = (ENTRIES_MAX / ((hosts + 1) * (hosts + 1)) as i64).max(1);
        let longest_ps = i64::try_from(epoch_ps).unwrap_or(i64::MAX).max(lasted / epochs_max + 1);
        // Epochs of equal length that end with the run: drift counts from their middle, which must not lie outside it.
        let epoch_ps = lasted / (lasted / longest_ps + 1) + 1;
        let epochs = epoch_of(first_ps, epoch_ps, last_ps) + 1;
        let mut evidence = ClockEvidence {
            run,
            first_ps,
            epoch_ps,
            drifts: (0..hosts).map(drift).collect(),
            ticks_ps: (0..hosts).map(tick_ps).collect(),
            samples: (0..hosts).map(|host| of_host(host).copied().collect()).collect(),
            messages: vec![Differences::unbounded(hosts + 1); epochs],
        };
        crossings.iter().for_each(|message| evidence.add(message));
        evidence
    }

    /// A message is not perceived before it was sent, nor earlier than the fastest possible one:
    /// `correction[sender] - correction[receiver] <= clock at perception + tick - clock at broadcast - fastest`.
    fn add(&mut self, GatheredMessage { sent, perceived, .. }: &GatheredMessage) {
        let epoch = epoch_of(self.first_ps, self.epoch_ps, sent.clock_ps);
        let middle = middle(self.first_ps, self.epoch_ps, epoch);
        let slack = slack(&self.drifts, *sent, middle).saturating_add(slack(&self.drifts, *perceived, middle));
        let slack = slack.saturating_add(self.ticks_ps[perceived.host]);
        let fastest = i64::try_from(self.run.delay_min_ps).unwrap_or(i64::MAX);
        let most = perceived.clock_ps.saturating_sub(sent.clock_ps).saturating_sub(fastest).saturating_add(slack);
        if let Some(differences) = self.messages.get_mut(epoch) {
            differences.limit(perceived.host + 1, sent.host + 1, most);
        }
    }

    /// The promise of a host's clock in the middle of an epoch: the larger bound of the samples around it, grown since
    /// the nearer one.
    fn promise(&self, host: usize, epoch: usize) -> i64 {
        let middle = middle(self.first_ps, self.epoch_ps, epoch);
        let samples = &self.samples[host];
        let after = samples.partition_point(|sample| sample.time_ps <= middle);
        let around = [after.checked_sub(1), Some(after)].into_iter().flatten().filter_map(|index| samples.get(index));
        let (mut bound, mut age) = (0, i64::MAX);
        for sample in around {
            bound = sample.bound_ps.max(bound);
            age = age.min(middle.saturating_sub(sample.time_ps).saturating_abs());
        }
        i64::try_from(bound).unwrap_or(i64::MAX).saturating_add(up(self.drifts[host] * age as f64))
    }

    fn of_epoch(&self, epoch: usize, disbelieved: Option<usize>) -> Differences {
        let hosts = self.drifts.len();
        let mut differences = self.messages[epoch].clone();
        if let Some(host) = disbelieved {
            differences.forget(host + 1);
        }
        for host in (0..hosts).filter(|&host| Some(host) != disbelieved) {
            let promise = self.promise(host, epoch);
            differences.limit(0, host + 1, promise);
            differences.limit(host + 1, 0, promise);
        }
        differences
    }

    /// The tightest bounds of all epochs: forward, backward, and both met. The epoch of a contradiction.
    fn close(&self, disbelieved: Option<usize>) -> Result<Vec<Differences>, usize> {
        let moved: Vec<i64> =
            std::iter::once(0).chain(self.drifts.iter().map(|drift| up(drift * self.epoch_ps as f64))).collect();
        let last = self.messages.len() - 1;
        let chain = |order: &mut dyn Iterator<Item = usize>| {
            let mut closed: Vec<Differences> = Vec::with_capacity(last + 1);
            for epoch in order {
                let mut here = self.of_epoch(epoch, disbelieved);
                if let Some(before) = closed.last() {
                    here.meet(&before.loosened(&moved));
                }
                here.close().map_err(|Contradiction| epoch)?;
                closed.push(here);
            }
            Ok::<_, usize>(closed)
        };
        let mut forward = chain(&mut (0..=last))?;
        let mut backward = chain(&mut (0..=last).rev())?;
        backward.reverse();
        for (epoch, (here, also)) in forward.iter_mut().zip(&backward).enumerate() {
            here.meet(also);
            here.close().map_err(|Contradiction| epoch)?;
        }
        Ok(forward)
    }

    fn lie(&self, epoch: usize) -> Lie {
        let explains = |&host: &usize| self.close(Some(host)).is_ok();
        let suspects = (0..self.drifts.len()).filter(explains).map(|host| self.run.hosts[host].name.clone()).collect();
        Lie { at_ps: self.first_ps.saturating_add(self.epoch_ps.saturating_mul(epoch as i64)), suspects }
    }
}

//! The counter's rate, remembered across restarts of the daemon, breaks of the counter and changes of servers.
//!
//! Only a server that the vote believes, and that is not suspect, teaches it: the rate of a falseticker's clock is not
//! the counter's.

use super::Keeper;
use crate::config::ServerConfig;
use crate::memory::{Circumstances, RateStore};
use crate::peer::Peer;
use ffclock_counter::read_suspended;
use ffclock_units::{Rate, RateMemory};

impl Keeper<'_> {
    fn store(&mut self) -> Option<RateStore> {
        let directory = self.config.state.value()?;
        let circumstances = Circumstances {
            counter: self.host_counter.kind(),
            boot: self.boot.clone(),
            clocksource: self.host_counter.clocksource(),
            machine: self.host_counter.machine_mark(),
            suspended: read_suspended().map(|(_, at_most)| at_most),
        };
        Some(RateStore::new(directory.as_path(), circumstances))
    }

    /// Reports at once, and not after hours, that the rate will not be remembered.
    pub(super) fn check_store(&mut self) {
        if let Some(Err(error)) = self.store().map(|store| store.check()) {
            self.context.journal.warn("the rate will not be remembered", &error.to_string());
        }
    }

    /// The rate that an earlier run of the daemon stored, or the wander alone, where every rate within `nominal_error`
    /// of the nominal one is possible. Later on what this run knows counts alone: what was stored before a break of the
    /// counter may be true no more.
    pub(super) fn remembered(&mut self, nominal_error: Rate) -> Option<RateMemory> {
        let store = self.store()?;
        let period = self.host_counter.nominal.period;
        let memory = store.load(period).unwrap_or_else(|error| {
            self.context.journal.warn("the remembered rate cannot be read", &error.to_string());
            None
        });
        let wander_alone = || Some(RateMemory { period, bound: nominal_error, wander: Some(store.wander()?) });
        let memory = memory.or_else(wander_alone);
        if let Some(wander) = memory.and_then(|memory| memory.wander) {
            let kind = "in an earlier run the counter's rate moved by more than the configured wander";
            self.context.journal.notice(kind, &format!("by {:.3} ppm at most", wander.as_ppm()));
        }
        memory
    }

    /// Learns the rate from the servers that are believed, as far as they are.
    pub(super) fn learn_rate(&mut self) {
        self.context.rate = self.believed_rate().or(self.context.rate);
    }

    /// Forgets the rate where a believed server shows that it is another than was remembered, so that no server begins
    /// with it again. Whether one does.
    pub(super) fn forget_false_rate(&mut self) -> bool {
        let election = &self.election;
        let believed = self.peers.iter_mut().enumerate().filter(|(server, _)| election.is_truechimer(*server));
        // Each is asked: what it has shown is shown once.
        let is_false = believed.fold(false, |is_false, (_, peer)| peer.take_false_memory() || is_false);
        if is_false {
            self.context.rate = None;
        }
        is_false
    }

    /// What a server that is believed knows of the rate: the followed one, or the one that knows it best. They are all
    /// about one oscillator, so the largest wander that any of them saw counts.
    pub(super) fn believed_rate(&self) -> Option<RateMemory> {
        let teaches = |server: &usize| {
            let is_suspect = self.member(*server).is_some_and(|member| member.is_suspect);
            self.election.is_truechimer(*server) && !is_suspect
        };
        let memory = |server: usize| self.peers.get(server).and_then(Peer::memory);
        let known: Vec<RateMemory> = (0..self.peers.len()).filter(teaches).filter_map(memory).collect();
        let followed = self.election.selected().filter(teaches).and_then(memory);
        let best = || known.iter().copied().min_by(|one, other| size(one.bound).total_cmp(&size(other.bound)));
        let wander = known.iter().filter_map(|memory| memory.wander);
        let wander = wander.max_by(|one, other| size(*one).total_cmp(&size(*other)));
        Some(RateMemory { wander, ..followed.or_else(best)? })
    }

    pub(super) fn save(&mut self) {
        for peer in &mut self.peers {
            peer.flush_record(&mut self.context);
        }
        let memory = self.believed_rate();
        let (Some(store), Some(memory)) = (self.store(), memory) else { return };
        if let Err(error) = store.save(memory) {
            self.context.journal.warn("the rate cannot be remembered", &error.to_string());
        }
    }
}

/// How far the counter's rate can be from the nominal one, by the options of these servers.
pub(super) fn nominal_error<'s>(servers: impl Iterator<Item = &'s ServerConfig>) -> Rate {
    let errors = servers.map(|server| server.estimator.options.nominal_error);
    errors.max_by(|one, other| size(*one).total_cmp(&size(*other))).unwrap_or(Rate::ZERO)
}

fn size(rate: Rate) -> f64 {
    rate.abs().as_fraction()
}

//! Keys: those of files, and those that are established.

use super::Keeper;
use crate::config::{KeyChoice, NtsBootstrap};
use crate::key_file::read_key;
use crate::peer::{EARLIEST_PRESENT, Peer};
use ffclock_units::{Moment, Utc};

impl Keeper<'_> {
    /// Reads the symmetric key of a server that has one.
    pub(super) fn give_key(&mut self, peer: &mut Peer) {
        let KeyChoice(Some(number)) = peer.config().protection.key else { return };
        let key = match self.config.keys.value() {
            Some(path) => read_key(path.as_path(), number),
            None => Err("the option `keys` takes effect with the next start".to_owned()),
        };
        peer.use_key(key, &mut self.context);
    }

    /// Starts the establishments that are due.
    pub(super) fn establish_keys(&mut self) {
        let now = self.context.now;
        for server in 0..self.peers.len() {
            let judged_at = self.judged_at();
            let Some(peer) = self.peers.get_mut(server).filter(|peer| peer.is_nts()) else { continue };
            if peer.wants_look_up(now) {
                peer.establish(&mut self.establisher, judged_at, &mut self.context);
            }
        }
    }

    /// An establishment has ended.
    pub(crate) fn established(&mut self) {
        let Some(establishment) = self.establisher.take() else { return };
        let is_wanted = |peer: &&mut Peer| {
            peer.is_nts() && peer.name() == establishment.name() && establishment.order.is_of(peer.config())
        };
        if let Some(peer) = self.peers.iter_mut().find(is_wanted) {
            peer.established(establishment.outcome, &mut self.context);
        }
    }

    /// The time that decides whether certificates are valid, or why there is none.
    fn judged_at(&self) -> Result<Moment<Utc>, &'static str> {
        match self.config.nts_bootstrap {
            NtsBootstrap::Refuse => {
                let now = ffclock_sys::system_utc_now();
                let is_set = now.since_origin() >= EARLIEST_PRESENT.since_origin();
                is_set
                    .then_some(now)
                    .ok_or("the system clock was never set, so certificates cannot be judged: see nts_bootstrap")
            }
            NtsBootstrap::Quorum => {
                let published = self.published.as_ref().ok_or("no quorum of servers without NTS gives a time yet")?;
                let now = published.estimate.at(self.host_counter.read()).time;
                Ok(self.leaps.utc_from_tai(now))
            }
        }
    }
}

//! Counters that are read repeatedly, as long as each stays in one epoch: values of two epochs have nothing to do with
//! each other, and a difference between them is no figure.

use crate::beside::{BracketedReading, narrowest};
use crate::ways::{CounterWay, Stated, Unread};

/// Why a counter cannot be followed any further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfollowed {
    /// It cannot be read.
    #[error("{name} cannot be read any more: {why}")]
    Unread {
        /// The name of the counter.
        name: String,
        /// What reading it gave.
        why: Unread,
    },
    /// Its values started again.
    #[error(
        "the epoch of {name} ended ({from} before, {to} now): a suspend, another clocksource, or a machine that stood still for too long. \
         What was measured before counts; measure again for more"
    )]
    EpochEnded {
        /// The name of the counter.
        name: String,
        /// Its epoch at first.
        from: u32,
        /// Its epoch now.
        to: u32,
    },
}

/// Some counters, each in the epoch of its first reading.
#[derive(Clone, Debug)]
pub struct Followed {
    ways: Vec<CounterWay>,
    epochs: Vec<Option<u32>>,
}

impl Followed {
    /// None of them has been read yet.
    pub fn new(ways: Vec<CounterWay>) -> Self {
        let epochs = vec![None; ways.len()];
        Followed { ways, epochs }
    }

    /// The counters.
    pub fn ways(&self) -> &[CounterWay] {
        &self.ways
    }

    /// Reads one of them, by its place.
    ///
    /// # Errors
    /// [`Unfollowed`].
    pub fn read(&mut self, place: usize) -> Result<u64, Unfollowed> {
        let way = &self.ways[place];
        check(way, &mut self.epochs[place], way.read_stated())
    }

    /// Reads all of them, each between two readings of the base.
    ///
    /// # Errors
    /// [`Unfollowed`].
    pub fn points(&mut self) -> Result<Vec<BracketedReading>, Unfollowed> {
        let each = self.ways.iter().zip(&mut self.epochs);
        each.map(|(way, epoch)| {
            let mut wrong = None;
            let point = narrowest(|| {
                let read = check(way, epoch, way.read_stated());
                read.map_err(|why| wrong = Some(why)).ok().map(i128::from)
            });
            match (point, wrong) {
                (Some(point), None) => Ok(point),
                (_, Some(why)) => Err(why),
                (None, None) => Err(Unfollowed::Unread { name: way.name(), why: way.why_unread() }),
            }
        })
        .collect()
    }
}

fn check(way: &CounterWay, epoch: &mut Option<u32>, read: Result<Stated, Unread>) -> Result<u64, Unfollowed> {
    let stated = read.map_err(|why| Unfollowed::Unread { name: way.name(), why })?;
    match (*epoch, stated.epoch) {
        (Some(from), Some(to)) if from != to => Err(Unfollowed::EpochEnded { name: way.name(), from, to }),
        (_, now) => {
            *epoch = now;
            Ok(stated.value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(value: u64, epoch: u32) -> Result<Stated, Unread> {
        Ok(Stated { value, epoch: Some(epoch) })
    }

    #[test]
    fn a_new_epoch_is_no_step_of_the_counter() {
        let mut readings = vec![stated(5, 3), stated(6, 3)];
        readings.extend(vec![stated(1 << 48, 4); 20]);
        let mut followed = Followed::new(vec![CounterWay::scripted(readings)]);
        assert_eq!((followed.read(0), followed.read(0)), (Ok(5), Ok(6)));
        let error = followed.points().unwrap_err().to_string();
        assert!(error.starts_with("the epoch of module:hpet ioctl ended (3 before, 4 now)"), "{error}");
    }

    #[test]
    fn a_sleeping_counter_is_not_a_removed_one() {
        let mut followed = Followed::new(vec![CounterWay::scripted(vec![Err(Unread::Asleep); 40])]);
        let error = followed.points().unwrap_err().to_string();
        assert!(error.contains("a suspend is under way") && !error.contains("removed"), "{error}");
        let mut gone = Followed::new(vec![CounterWay::vanished()]);
        let error = gone.points().unwrap_err().to_string();
        assert!(error.contains("ptp7 clock_gettime cannot be read any more: its device was removed"), "{error}");
    }

    #[test]
    fn values_of_one_epoch_are_points() {
        let mut followed = Followed::new(vec![CounterWay::scripted((0..40).map(|value| stated(value, 9)).collect())]);
        let [first, second] = [0, 1].map(|_| followed.points().unwrap()[0]);
        assert!(first.value < second.value && first.base < second.base);
    }
}

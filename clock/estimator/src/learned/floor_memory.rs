//! The memory of floors: the floor of an earlier path is recognised when it returns.
//!
//! In the ablation this part changes no figure by more than noise (docs/algorithm/learned.md); all of it is here, in
//! the two calls of `Filter` and in the option `floor_memory`, so that it can go in one step.

use crate::bank::density::Tabulated;
use crate::bank::revision::Change;
use crate::tuning::learned::{NEAR_FLOOR, REMEMBERED_FLOORS, REMEMBERED_VARIANCE};
use ffclock_units::Direction;

/// Floors that were left, for each way.
#[derive(Clone, Debug, Default)]
pub struct FloorMemory {
    floors: [[Option<f64>; REMEMBERED_FLOORS]; 2],
    next: [usize; 2],
}

impl FloorMemory {
    fn of(&self, way: Direction) -> &[Option<f64>; REMEMBERED_FLOORS] {
        &self.floors[way.index()]
    }

    fn find(&self, way: Direction, floor: f64, within: f64) -> Option<f64> {
        let distance = |known: &f64| (known - floor).abs();
        let known = self.of(way).iter().flatten().copied();
        known.filter(|known| distance(known) < within).min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    fn keep(&mut self, way: Direction, floor: f64, within: f64) {
        let near = |known: &&mut Option<f64>| known.is_some_and(|known| (known - floor).abs() < within);
        let (floors, next) = (&mut self.floors[way.index()], &mut self.next[way.index()]);
        if let Some(known) = floors.iter_mut().find(near) {
            *known = Some(floor);
        } else if let Some(cell) = floors.get_mut(*next) {
            *cell = Some(floor);
            *next = next.wrapping_add(1) % REMEMBERED_FLOORS;
        }
    }

    /// Forgets all floors: they were relative to another time.
    pub fn clear(&mut self) {
        *self = FloorMemory::default();
    }
}

/// Takes a remembered floor in place of a change to its neighbourhood, and remembers the one that is left.
pub fn recognise(change: Change, floor: f64, known: &mut FloorMemory, density: &Tabulated) -> Change {
    let within = NEAR_FLOOR * density.median;
    let found = known.find(change.way, floor + change.shift, within);
    known.keep(change.way, floor, within);
    found.map_or(change, |found| Change { shift: found - floor, variance: REMEMBERED_VARIANCE, ..change })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_recognised_within_three_medians() {
        let mut known = FloorMemory::default();
        known.keep(Direction::Outgoing, 100.0, NEAR_FLOOR);
        let moved = |shift: f64| {
            let change = Change { way: Direction::Outgoing, since: 4, shift, variance: 9.0 };
            recognise(change, 50.0, &mut known.clone(), &Tabulated::new())
        };
        assert_eq!((moved(52.9).shift, moved(52.9).variance), (50.0, REMEMBERED_VARIANCE));
        assert_eq!((moved(53.1).shift, moved(53.1).variance), (53.1, 9.0));
    }

    #[test]
    fn eight_floors_of_each_way_are_remembered() {
        let mut known = FloorMemory::default();
        (0..9).for_each(|floor| known.keep(Direction::Outgoing, 100.0 * f64::from(floor), 1.0));
        let found = |floor: f64| known.find(Direction::Outgoing, floor, 1.0);
        assert_eq!((found(0.0), found(100.0), found(800.0)), (None, Some(100.0), Some(800.0)));
    }
}

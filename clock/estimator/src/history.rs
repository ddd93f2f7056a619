//! The history: the best exchange of each stretch of time.
//!
//! Exchanges are kept in bins, one record a bin, and a record keeps the exchange with the smallest point error. Bins
//! start narrow and their width doubles, pairs merging into one, as the history grows, until the final width is
//! reached. So memory and work depend on the windows and not on the poll, sixteen polls a second cost no more than one
//! in sixteen, and the first second is already resolved. Columns are stored one after the other so that the loops over
//! them can use wide registers; a column is twice as long as the history, which slides in it, so that it is always in
//! one piece.

use crate::frame::Move;
use crate::tuning::{FIRST_WIDTH, OPEN_PART};
use alloc::vec;
use alloc::vec::Vec;

/// Sums and minima are kept in this many lanes, so that the compiler may use registers of any width with the same
/// result.
pub const LANES: usize = 4;

/// As many numbers.
pub type Row = [f64; LANES];

/// The smaller of two numbers, neither of them NaN; one instruction, unlike `f64::min`.
pub fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// What is kept of an exchange, in the frame's seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// The position of its middle.
    pub x: f64,
    /// The naive height there.
    pub y: f64,
    /// The net round trip and the blur of its stamps.
    pub cost: f64,
    /// The floor that the cost is compared with.
    pub floor: f64,
}

impl Record {
    /// The point error E.
    pub fn error(&self) -> f64 {
        self.cost - self.floor
    }
}

/// How a history took a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It opened a bin.
    Opened,
    /// It shares a bin with others.
    Shared,
}

/// How many bins of which width a history has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The final width of a bin, s.
    pub widest: f64,
    /// Widths double when more bins than this are filled.
    pub crowd: usize,
    /// How many bins there can be.
    pub capacity: usize,
}

/// Where a boundary that moves with time was found last, so that it is found again within a few steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor(usize);

/// Columns of records in the order of their positions.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub x: &'a [f64],
    pub y: &'a [f64],
    pub cost: &'a [f64],
    pub floor: &'a [f64],
}

/// The records.
#[derive(Clone, Debug)]
pub struct History {
    x: Vec<f64>,
    y: Vec<f64>,
    cost: Vec<f64>,
    floor: Vec<f64>,
    start: usize,
    end: usize,
    opened: f64,
    width: f64,
    shape: Shape,
}

impl History {
    pub fn new(shape: Shape) -> Self {
        let column = vec![0.0; shape.capacity.saturating_mul(2)];
        History {
            x: column.clone(),
            y: column.clone(),
            cost: column.clone(),
            floor: column,
            start: 0,
            end: 0,
            opened: 0.0,
            width: FIRST_WIDTH.min(shape.widest),
            shape,
        }
    }

    /// The bytes that the columns occupy.
    pub fn bytes(&self) -> usize {
        4 * self.x.capacity() * size_of::<f64>()
    }

    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
        self.width = FIRST_WIDTH.min(self.shape.widest);
    }

    pub fn len(&self) -> usize {
        debug_assert!(self.start <= self.end && self.end <= self.x.len(), "{}..{}", self.start, self.end);
        self.end.saturating_sub(self.start)
    }

    fn record(&self, index: usize) -> Option<Record> {
        let at = |column: &Vec<f64>| column.get(index).copied();
        Some(Record { x: at(&self.x)?, y: at(&self.y)?, cost: at(&self.cost)?, floor: at(&self.floor)? })
    }

    fn put(&mut self, index: usize, record: Record) {
        debug_assert!(index < self.x.len());
        let pairs = [
            (&mut self.x, record.x),
            (&mut self.y, record.y),
            (&mut self.cost, record.cost),
            (&mut self.floor, record.floor),
        ];
        for (column, value) in pairs {
            if let Some(cell) = column.get_mut(index) {
                *cell = value;
            }
        }
    }

    /// The newest record.
    pub fn newest(&self) -> Option<Record> {
        if self.len() == 0 { None } else { self.record(self.end.saturating_sub(1)) }
    }

    /// The oldest record.
    pub fn oldest(&self) -> Option<Record> {
        if self.len() == 0 { None } else { self.record(self.start) }
    }

    /// Takes a record that is newer than all others.
    pub fn add(&mut self, record: Record) -> Added {
        debug_assert!(self.len() <= self.shape.capacity && self.end <= self.x.len());
        if let Some(newest) = self.newest()
            && record.x - self.opened < OPEN_PART * self.width
        {
            if record.error() <= newest.error() {
                self.put(self.end.saturating_sub(1), record);
            }
            return Added::Shared;
        }
        self.make_room();
        self.put(self.end, record);
        self.end = self.end.saturating_add(1);
        self.opened = record.x;
        while self.len() > self.shape.crowd && self.width < self.shape.widest {
            self.widen();
        }
        Added::Opened
    }

    fn make_room(&mut self) {
        if self.len() >= self.shape.capacity {
            self.start = self.start.saturating_add(1);
        }
        if self.end < self.x.len() {
            return;
        }
        let kept = self.start..self.end;
        for column in [&mut self.x, &mut self.y, &mut self.cost, &mut self.floor] {
            column.copy_within(kept.clone(), 0);
        }
        (self.start, self.end) = (0, kept.len());
    }

    /// Doubles the width of the bins and merges those that now belong together.
    fn widen(&mut self) {
        self.width = (2.0 * self.width).min(self.shape.widest);
        let (mut write, mut opened) = (self.start, f64::NEG_INFINITY);
        for read in self.start..self.end {
            let Some(record) = self.record(read) else { break };
            if record.x - opened < OPEN_PART * self.width {
                debug_assert!(write > self.start, "the first record opens a bin");
                let last = write.saturating_sub(1);
                if self.record(last).is_some_and(|best| record.error() <= best.error()) {
                    self.put(last, record);
                }
            } else {
                opened = record.x;
                self.put(write, record);
                write = write.saturating_add(1);
            }
        }
        (self.end, self.opened) = (write, opened);
    }

    /// The records with positions from `x` on.
    pub fn since(&self, x: f64) -> View<'_> {
        let first = self.first_from(x);
        self.view(first, self.end)
    }

    /// The records with positions in `[from, to)`.
    pub fn between(&self, from: f64, to: f64) -> View<'_> {
        self.view(self.first_from(from), self.first_from(to))
    }

    /// The same as [`History::since`], for a position that is later every time.
    pub fn since_moving(&self, x: f64, cursor: &mut Cursor) -> View<'_> {
        self.view(self.seek(x, cursor), self.end)
    }

    /// The same as [`History::between`], for positions that are later every time.
    pub fn between_moving(&self, from: f64, from_cursor: &mut Cursor, to: f64, to_cursor: &mut Cursor) -> View<'_> {
        self.view(self.seek(from, from_cursor), self.seek(to, to_cursor))
    }

    fn seek(&self, x: f64, cursor: &mut Cursor) -> usize {
        let mut at = cursor.0.clamp(self.start, self.end);
        while at > self.start && self.x.get(at.saturating_sub(1)).is_some_and(|&before| before >= x) {
            at = at.saturating_sub(1);
        }
        while at < self.end && self.x.get(at).is_some_and(|&here| here < x) {
            at = at.saturating_add(1);
        }
        cursor.0 = at;
        at
    }

    fn view(&self, from: usize, to: usize) -> View<'_> {
        debug_assert!(self.start <= from && to <= self.end);
        View {
            x: self.x.get(from..to).unwrap_or(&[]),
            y: self.y.get(from..to).unwrap_or(&[]),
            cost: self.cost.get(from..to).unwrap_or(&[]),
            floor: self.floor.get(from..to).unwrap_or(&[]),
        }
    }

    fn first_from(&self, x: f64) -> usize {
        let filled = self.x.get(self.start..self.end).unwrap_or(&[]);
        self.start.saturating_add(filled.partition_point(|&position| position < x))
    }

    /// From here on no record is compared with a floor higher than `floor`.
    pub fn lower_floor(&mut self, floor: f64) {
        debug_assert!(self.len() <= self.shape.capacity);
        for cell in self.floor.get_mut(self.start..self.end).unwrap_or(&mut []) {
            *cell = cell.min(floor);
        }
    }

    /// Compares with `floor` the newest records, as far back as `since` and as long as they cost no less than it.
    pub fn raise_floor(&mut self, floor: f64, since: f64) {
        debug_assert!(self.len() <= self.shape.capacity);
        let range = self.start..self.end;
        let (Some(x), Some(cost)) = (self.x.get(range.clone()), self.cost.get(range.clone())) else { return };
        let Some(floors) = self.floor.get_mut(range) else { return };
        for ((&x, &cost), cell) in x.iter().zip(cost).zip(floors).rev() {
            if x < since || cost < floor {
                return;
            }
            *cell = floor;
        }
    }

    /// Follows a move of the frame.
    pub fn follow(&mut self, step: Move) {
        for (column, step) in [(&mut self.x, step.x_step), (&mut self.y, step.y_step)] {
            for cell in column.get_mut(self.start..self.end).unwrap_or(&mut []) {
                *cell -= step;
            }
        }
        self.opened -= step.x_step;
    }
}

impl View<'_> {
    /// Whether `wanted` records, or half of them all where bins are wide, cost no more than the cheapest and `margin`.
    pub fn has_witnesses(&self, margin: f64, wanted: usize) -> bool {
        let cheapest = self.cost.iter().fold(f64::INFINITY, |least, &cost| least.min(cost));
        let near = self.cost.iter().filter(|&&cost| cost <= cheapest + margin).count();
        near >= wanted.min(self.cost.len().div_ceil(2))
    }

    /// Every record of the view.
    pub fn iter(&self) -> impl Iterator<Item = Record> + '_ {
        let columns = self.x.iter().zip(self.y).zip(self.cost.iter().zip(self.floor));
        columns.map(|((&x, &y), (&cost, &floor))| Record { x, y, cost, floor })
    }

    /// The record with the smallest point error; of equals, the first.
    pub fn best(&self) -> Option<Record> {
        let at = place_of_best(self.cost, self.floor)?;
        Some(Record {
            x: *self.x.get(at)?,
            y: *self.y.get(at)?,
            cost: *self.cost.get(at)?,
            floor: *self.floor.get(at)?,
        })
    }
}

/// The place of the smallest point error in two columns; of equals, the first.
fn place_of_best(cost: &[f64], floor: &[f64]) -> Option<usize> {
    let (cost_rows, cost_rest) = cost.as_chunks::<LANES>();
    let (floor_rows, floor_rest) = floor.as_chunks::<LANES>();
    let mut smallest: Row = [f64::INFINITY; LANES];
    for (cost, floor) in cost_rows.iter().zip(floor_rows) {
        for ((&cost, &floor), smallest) in cost.iter().zip(floor).zip(&mut smallest) {
            *smallest = lesser(*smallest, cost - floor);
        }
    }
    let rest = cost_rest.iter().zip(floor_rest).map(|(cost, floor)| cost - floor);
    let least = smallest.into_iter().chain(rest).fold(f64::INFINITY, lesser);
    cost.iter().zip(floor).position(|(&cost, &floor)| cost - floor <= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { widest: 16.0, crowd: 64, capacity: 100 };

    fn record(x: f64, cost: f64) -> Record {
        Record { x, y: x * 1e-6, cost, floor: 0.0 }
    }

    #[test]
    fn every_poll_of_the_final_width_gets_a_bin_in_spite_of_jitter() {
        let mut history = History::new(SHAPE);
        for poll in 0..90 {
            let jitter = if poll % 2 == 0 { 0.7 } else { -0.7 };
            history.add(record(16.0 * poll as f64 + jitter, 1.0));
        }
        assert_eq!(history.len(), 90);
    }

    #[test]
    fn fast_polls_share_bins_and_the_best_stays() {
        let mut history = History::new(SHAPE);
        for poll in 0..20_000 {
            let cost = if poll % 64 == 7 { 1.0 } else { 2.0 };
            history.add(record(0.25 * poll as f64, cost));
        }
        assert_eq!(history.len(), 100);
        let costs: Vec<f64> = history.since(f64::NEG_INFINITY).iter().map(|record| record.cost).collect();
        let best = costs.iter().filter(|&&cost| cost == 1.0).count();
        assert!(best > 80, "{best}");
        let view = history.since(f64::NEG_INFINITY);
        assert!(view.x.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn widths_grow_only_as_the_history_does() {
        let mut history = History::new(SHAPE);
        for poll in 0..64 {
            history.add(record(0.125 * poll as f64, 1.0));
        }
        assert_eq!(history.len(), 64);
        history.add(record(8.0, 1.0));
        assert!((30..=40).contains(&history.len()), "{}", history.len());
    }

    #[test]
    fn a_raised_floor_reaches_back_to_the_shift_and_not_beyond() {
        let mut history = History::new(SHAPE);
        for poll in 0..10 {
            history.add(record(16.0 * poll as f64, if poll < 4 { 1.0 } else { 3.0 }));
        }
        history.raise_floor(3.0, 0.0);
        let floors: Vec<f64> = history.since(0.0).iter().map(|record| record.floor).collect();
        assert_eq!(floors, [0.0, 0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0]);
        history.lower_floor(2.0);
        assert_eq!(history.newest().unwrap().error(), 1.0);
        assert_eq!(history.between(0.0, 40.0).best().unwrap().x, 0.0);
    }

    #[test]
    fn a_cursor_finds_what_a_search_finds() {
        let mut history = History::new(SHAPE);
        let mut cursors = [Cursor::default(); 3];
        for poll in 0..1_000 {
            let now = 16.0 * poll as f64;
            history.add(record(now, 1.0));
            let [window, far, near] = &mut cursors;
            assert_eq!(history.since_moving(now - 320.0, window).x, history.since(now - 320.0).x);
            let moving = history.between_moving(now - 900.0, far, now - 700.0, near);
            assert_eq!(moving.x, history.between(now - 900.0, now - 700.0).x);
        }
    }

    #[test]
    fn following_the_frame_keeps_distances() {
        let mut history = History::new(SHAPE);
        history.add(record(100.0, 1.0));
        history.add(record(120.0, 1.0));
        history.follow(Move { x_step: 110.0, y_step: 0.5 });
        let (old, new) = (history.oldest().unwrap(), history.newest().unwrap());
        assert_eq!((old.x, new.x), (-10.0, 10.0));
        assert!((new.y - (120e-6 - 0.5)).abs() < 1e-15);
    }
}

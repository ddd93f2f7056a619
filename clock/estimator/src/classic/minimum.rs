//! The minimum over a sliding window of time, in constant memory and amortised constant time.
//!
//! The values that can still become the minimum are kept in increasing order (a monotone queue). Two of them are never
//! closer than a block; what would come closer is left out and its elder counts as seen that much later. The minimum
//! therefore lasts up to a block longer than the window, never shorter.

use alloc::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct MinimumEntry {
    opened: f64,
    newest: f64,
    value: f64,
}

/// How long a window is and how finely it slides, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinimumWindow {
    pub length: f64,
    pub block: f64,
}

/// A sliding minimum.
#[derive(Clone, Debug)]
pub struct SlidingMinimum {
    entries: VecDeque<MinimumEntry>,
    limit: usize,
}

impl SlidingMinimum {
    /// With room for `limit` values; a window should have fewer blocks.
    pub fn new(limit: usize) -> Self {
        SlidingMinimum { entries: VecDeque::with_capacity(limit), limit }
    }

    /// The bytes that the values occupy.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<MinimumEntry>()
    }

    /// Takes a value at `x`, the latest position so far, and returns the minimum over the window that ends there.
    pub fn add(&mut self, x: f64, value: f64, window: MinimumWindow) -> f64 {
        while self.entries.back().is_some_and(|entry| entry.value >= value) {
            self.entries.pop_back();
        }
        let full = self.entries.len() >= self.limit;
        match self.entries.back_mut() {
            Some(elder) if full || x - elder.opened < window.block => elder.newest = x,
            _ => self.entries.push_back(MinimumEntry { opened: x, newest: x, value }),
        }
        while self.entries.len() > 1 && self.entries.front().is_some_and(|entry| entry.newest < x - window.length) {
            self.entries.pop_front();
        }
        debug_assert!(!self.entries.is_empty() && self.entries.len() <= self.limit);
        self.entries.front().map_or(value, |entry| entry.value)
    }

    /// Forgets every value below `floor` and starts with `floor` at `x` if none is left.
    pub fn raise(&mut self, x: f64, floor: f64) {
        while self.entries.front().is_some_and(|entry| entry.value < floor) {
            self.entries.pop_front();
        }
        if self.entries.is_empty() {
            self.entries.push_back(MinimumEntry { opened: x, newest: x, value: floor });
        }
    }

    /// Follows a move of the frame by `step`.
    pub fn follow(&mut self, step: f64) {
        for entry in &mut self.entries {
            entry.opened -= step;
            entry.newest -= step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const WINDOW: MinimumWindow = MinimumWindow { length: 100.0, block: 5.0 };

    /// "Sliding minimum rescanned over the wrong range": the original once looked for the next minimum in the wrong
    /// part of its history. Compared here with the plain minimum over every window, at both ends of the tolerance.
    #[test]
    fn agrees_with_a_plain_scan_of_the_window() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut minimum = SlidingMinimum::new(64);
        let mut values: Vec<(f64, f64)> = Vec::new();
        for step in 0..3_000 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let x = step as f64 * 1.7;
            let value = 10.0 + (seed >> 40) as f64 / (1u64 << 24) as f64 + if step % 900 > 450 { 3.0 } else { 0.0 };
            values.push((x, value));
            let found = minimum.add(x, value, WINDOW);
            let over = |length: f64| {
                values.iter().filter(|(at, _)| *at >= x - length).map(|(_, value)| *value).fold(f64::INFINITY, f64::min)
            };
            assert!(found <= over(WINDOW.length - WINDOW.block) && found >= over(WINDOW.length + 2.0 * WINDOW.block));
            assert!(minimum.entries.len() <= 24);
        }
    }

    #[test]
    fn raising_forgets_what_is_lower() {
        let mut minimum = SlidingMinimum::new(8);
        for (step, value) in [1.0, 4.0, 5.0].into_iter().enumerate() {
            minimum.add(10.0 * step as f64, value, WINDOW);
        }
        minimum.raise(20.0, 4.5);
        assert_eq!(minimum.add(30.0, 9.0, WINDOW), 5.0);
        minimum.raise(30.0, 20.0);
        assert_eq!(minimum.add(31.0, 30.0, WINDOW), 20.0);
    }

    #[test]
    fn a_full_queue_keeps_the_minimum() {
        let mut minimum = SlidingMinimum::new(3);
        for step in 0..50 {
            assert_eq!(minimum.add(6.0 * step as f64, step as f64, MinimumWindow { length: 1e9, block: 5.0 }), 0.0);
        }
        assert_eq!(minimum.entries.len(), 3);
    }
}

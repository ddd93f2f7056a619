//! A symmetric matrix for each of four members side by side.

use super::lanes::Lanes;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// The covariances of four members. `p[row][column]` is the covariance of two parts of the state.
#[derive(Debug)]
pub struct Covariance {
    side: usize,
    /// Row after row.
    cells: Vec<Lanes>,
}

impl Covariance {
    /// Nothing is uncertain.
    pub fn zero(side: usize) -> Self {
        Covariance { side, cells: vec![Lanes::ZERO; side * side] }
    }

    pub fn cells(&self) -> &[Lanes] {
        &self.cells
    }

    pub fn rows(&self) -> impl Iterator<Item = &[Lanes]> {
        self.cells.chunks_exact(self.side)
    }

    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut [Lanes]> {
        self.cells.chunks_exact_mut(self.side)
    }

    /// Makes a part of the state certain and independent of all others.
    pub fn cut(&mut self, part: usize) {
        self[part].fill(Lanes::ZERO);
        self.rows_mut().for_each(|row| row[part] = Lanes::ZERO);
    }

    /// Copies what is above the diagonal to below it.
    pub fn symmetrise(&mut self) {
        for row in 1..self.side {
            for column in 0..row {
                self[row][column] = self[column][row];
            }
        }
    }

    /// Adds `scale * gain gain'`.
    pub fn add_square(&mut self, gain: &[Lanes], scale: Lanes) {
        for (row, (cells, gain_here)) in self.cells.chunks_exact_mut(self.side).zip(gain).enumerate() {
            let scaled = *gain_here * scale;
            for (cell, gain) in cells.iter_mut().zip(gain).skip(row) {
                *cell += scaled * *gain;
            }
        }
        self.symmetrise();
    }

    /// The cells on the diagonal and above it, row after row.
    pub fn upper(&self) -> impl Iterator<Item = &Lanes> {
        self.rows().enumerate().flat_map(|(row, cells)| cells.iter().skip(row))
    }

    /// Takes the cells on the diagonal and above it, row after row, from `upper`.
    pub fn restore(&mut self, mut upper: impl Iterator<Item = Lanes>) {
        for (row, cells) in self.cells.chunks_exact_mut(self.side).enumerate() {
            cells.iter_mut().skip(row).zip(upper.by_ref()).for_each(|(cell, value)| *cell = value);
        }
        self.symmetrise();
    }
}

/// A copy reuses the memory that is there.
impl Clone for Covariance {
    fn clone(&self) -> Self {
        Covariance { side: self.side, cells: self.cells.clone() }
    }

    fn clone_from(&mut self, source: &Self) {
        self.side = source.side;
        self.cells.clone_from(&source.cells);
    }
}

impl Index<usize> for Covariance {
    type Output = [Lanes];
    fn index(&self, row: usize) -> &[Lanes] {
        &self.cells[row * self.side..][..self.side]
    }
}

impl IndexMut<usize> for Covariance {
    fn index_mut(&mut self, row: usize) -> &mut [Lanes] {
        &mut self.cells[row * self.side..][..self.side]
    }
}

//! What the future says, for each of four members: the adjoint variables of Bryson and Frazier's smoother in Bierman's
//! form (G. J. Bierman, Fixed interval smoothing with discrete measurements, International Journal of Control 18,
//! 1973). No matrix is inverted.

use super::site::Action;
use crate::bank::group::{CYCLE, FREQUENCY, Group, QUADRATURE, RATE, Rotation, THETA, floor_of, states};
use crate::bank::lanes::Lanes;
use crate::bank::measurement::Measurement;
use crate::tuning::smooth::LEAST_SMOOTHED_VARIANCE;
use ffclock_units::Direction;

/// The parts of a state with one server.
pub const STATES: usize = states(1);

/// One number for each part of the state.
pub type Vector = [Lanes; STATES];

/// The sum of products.
pub fn dot(a: &[Lanes], b: &[Lanes]) -> Lanes {
    a.iter().zip(b).fold(Lanes::ZERO, |sum, (a, b)| sum + *a * *b)
}

/// A symmetric matrix times a vector.
pub fn times<'a>(rows: impl IntoIterator<Item = &'a [Lanes]>, vector: &Vector) -> Vector {
    let mut product = [Lanes::ZERO; STATES];
    product.iter_mut().zip(rows).for_each(|(cell, row)| *cell = dot(row, vector));
    product
}

/// How a packet's delay depends on the state.
pub fn row(way: Direction, measurement: &Measurement) -> Vector {
    let mut row = [Lanes::ZERO; STATES];
    match way {
        Direction::Outgoing => (row[THETA], row[RATE]) = (Lanes::all(1.0), Lanes::all(-measurement.trip)),
        Direction::Incoming => row[THETA] = Lanes::all(-1.0),
    }
    row[floor_of(0, way)] = Lanes::all(1.0);
    row
}

/// What a packet did to the state on the way forward.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    pub gain: Vector,
    pub action: Action,
}

/// The adjoint variables: with the filtered state x and covariance P, the smoothed state is `x - P slope` and its
/// covariance `P - P curvature P`.
#[derive(Clone, Debug)]
pub struct Adjoint {
    slope: Vector,
    curvature: [Vector; STATES],
}

impl Adjoint {
    /// Nothing is known of the future.
    pub const NONE: Adjoint = Adjoint { slope: [Lanes::ZERO; STATES], curvature: [[Lanes::ZERO; STATES]; STATES] };

    fn curvature(&self) -> impl Iterator<Item = &[Lanes]> {
        self.curvature.iter().map(Vector::as_slice)
    }

    /// Goes back over a packet with the row H: slope <- slope - H' (m + k g' slope), curvature <- (I - k H' g')
    /// curvature (I - k g H) + k H' H, with the gain g = P H', the move m and the shrinking k of the update.
    pub fn before(&mut self, row: &Vector, update: &Update) {
        let Update { gain, action: Action { move_by, shrink } } = update;
        let bent = times(self.curvature(), gain);
        let slope = *shrink * dot(gain, &self.slope) + *move_by;
        let whole = *shrink + *shrink * *shrink * dot(gain, &bent);
        for (index, weight) in row.iter().enumerate() {
            self.slope[index] -= *weight * slope;
        }
        for (i, line) in self.curvature.iter_mut().enumerate() {
            for (j, cell) in line.iter_mut().enumerate() {
                *cell += row[i] * row[j] * whole - *shrink * (row[i] * bent[j] + bent[i] * row[j]);
            }
        }
    }

    /// What comes after says nothing of a part of the state before: it was set to something else.
    pub fn forget(&mut self, part: usize) {
        self.slope[part] = Lanes::ZERO;
        for other in 0..STATES {
            self.curvature[part][other] = Lanes::ZERO;
            self.curvature[other][part] = Lanes::ZERO;
        }
    }

    /// Goes back over `interval` seconds, in which the cycle turned by `rotation`: slope <- F' slope, curvature <- F'
    /// curvature F.
    pub fn back(&mut self, interval: f64, rotation: &Rotation) {
        back(&mut self.slope, interval, rotation);
        for line in &mut self.curvature {
            back(line, interval, rotation);
        }
        for column in 0..STATES {
            let mut line: Vector = core::array::from_fn(|row| self.curvature[row][column]);
            back(&mut line, interval, rotation);
            for (row, value) in line.into_iter().enumerate() {
                self.curvature[row][column] = value;
            }
        }
    }

    /// The mean and the variance of `row` times the smoothed state.
    pub fn marginal(&self, group: &Group, row: &Vector) -> (Lanes, Lanes) {
        let through = times(group.p.rows(), row);
        let mean = dot(row, &group.x) - dot(&through, &self.slope);
        let variance = dot(row, &through) - dot(&through, &times(self.curvature(), &through));
        (mean, variance.map(|variance| variance.max(LEAST_SMOOTHED_VARIANCE)))
    }
}

/// A vector times F', the transpose of what the prediction does to a state.
fn back(vector: &mut Vector, interval: f64, rotation: &Rotation) {
    let [theta, rate, c1, c2, frequency, ..] = *vector;
    vector[RATE] = rate + Lanes::all(interval) * theta;
    vector[CYCLE] = rotation.along * theta + rotation.cosine * c1 - rotation.sine * c2;
    vector[QUADRATURE] = rotation.across * theta + rotation.sine * c1 + rotation.cosine * c2;
    vector[FREQUENCY] = frequency + rotation.theta * theta + rotation.cycle * c1 + rotation.quadrature * c2;
}

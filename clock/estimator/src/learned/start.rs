//! The start: what the first exchanges say together, with nothing assumed of how long packets queue.
//!
//! The bank carries normal densities from exchange to exchange. After the first few, queueing is known to orders of
//! magnitude only, and a normal density of it is as wide as the largest: started that way, a clock takes a minute to
//! learn what two exchanges already show. Here the scale of queueing is integrated out, and the moments of the whole
//! become the members' state after each of the first [`START`] exchanges.
//!
//! Packets of one way, at positions x and with delays z, lie above an edge `a + r x`: the floor and the time. If they
//! queue by a gamma law of shape k and of a scale of which nothing is known (density 1/scale: H. Jeffreys, Theory of
//! Probability, 1961, section 3.1), the edge's distance e below the lowest of them is as likely as
//! `product of q^(k-1) / (sum of q)^(n k)`, with `q = z - r x - a`. Given the rate r the ways are independent; sums
//! over e, r and the shapes give the moments. docs/algorithm/learned.md has the equations.

use crate::bank::BankExchange;
use crate::bank::group::{AdoptedState, Begin, MOST_SERVERS, RATE, THETA, floors_of, states};
use crate::bank::measurement::Measurement;
use crate::tuning::learned::{
    EDGE_NODES, FARTHEST, GRAIN, RATE_NODES, RATE_STEP, START, START_SHAPES, UNLIKELY, USUAL_PART, USUAL_WALK,
};
use alloc::vec;
use alloc::vec::Vec;
use ffclock_units::Direction;

/// What is unknown: the rate, and the edges of both ways of every server.
const UNKNOWNS: usize = 1 + 2 * MOST_SERVERS;

/// One number for each unknown.
type Unknowns = [f64; UNKNOWNS];

/// A packet: its way's edge is at most `delay - rate * position`.
#[derive(Clone, Copy, Debug)]
struct EdgePacket {
    edge: usize,
    position: f64,
    delay: f64,
}

/// The first exchanges of a clock.
#[derive(Clone, Debug)]
pub struct Start {
    packets: Vec<EdgePacket>,
    /// Exchanges with each server.
    counts: Vec<usize>,
    /// How far the edges of each server can lie below its lowest packets: half its shortest round trip, us.
    reaches: Vec<f64>,
    /// The factors of the shapes, by the number of packets.
    factors: [[f64; START_SHAPES.len()]; START],
    begin: Begin,
    half_asymmetry: f64,
    /// Since the first exchange, s.
    elapsed: f64,
    /// How far the origin of theta has moved since then, us.
    origin: f64,
    is_over: bool,
}

impl Start {
    /// Of a clock of `servers` that has not begun.
    pub fn new(servers: usize) -> Self {
        let begin = Begin { server: 0, theta: 0.0, rate: 0.0, rate_variance: 1.0, floors: [0.0; 2], variance: 1.0 };
        Start {
            packets: Vec::with_capacity(2 * START * servers),
            counts: vec![0; servers],
            reaches: vec![0.0; servers],
            factors: core::array::from_fn(|before| factors(before.saturating_add(1))),
            begin,
            half_asymmetry: 0.0,
            elapsed: 0.0,
            origin: 0.0,
            is_over: true,
        }
    }

    pub fn bytes(&self) -> usize {
        let packets = self.packets.capacity() * size_of::<EdgePacket>();
        packets + self.counts.capacity() * size_of::<usize>() + self.reaches.capacity() * size_of::<f64>()
    }

    /// A clock begins with an exchange; `half_asymmetry` of its server is known, us.
    pub fn begin(&mut self, begin: &Begin, measurements: &[Measurement; 2], half_asymmetry: f64) {
        self.packets.clear();
        self.counts.fill(0);
        (self.begin, self.half_asymmetry) = (*begin, half_asymmetry);
        (self.elapsed, self.origin, self.is_over) = (0.0, 0.0, false);
        self.push(begin.server, measurements);
    }

    /// From here on the bank goes on by itself.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Notes how far the origin of theta moved after the newest exchange.
    pub fn note_step(&mut self, step: f64) {
        self.origin += step;
    }

    /// Takes another exchange, of any server; one too many ends the start.
    pub fn take(&mut self, exchange: &BankExchange) {
        self.elapsed += exchange.interval;
        self.is_over |= self.counts.get(exchange.server).is_none_or(|count| *count >= START);
        if !self.is_over {
            self.push(exchange.server, &exchange.measurements);
        }
    }

    fn push(&mut self, server: usize, measurements: &[Measurement; 2]) {
        debug_assert!(server < self.counts.len());
        let (Some(count), Some(reach)) = (self.counts.get_mut(server), self.reaches.get_mut(server)) else { return };
        let [forward, backward] = measurements;
        let half = (0.5 * (forward.delay + backward.delay)).max(GRAIN);
        *reach = if *count == 0 { half } else { reach.min(half) };
        *count = count.saturating_add(1);
        for (way, measurement) in Direction::BOTH.into_iter().zip(measurements) {
            let edge = 2 * server + way.index();
            let position = sign(way) * (self.elapsed - measurement.trip);
            self.packets.push(EdgePacket { edge, position, delay: measurement.delay + sign(way) * self.origin });
        }
    }

    /// What all members believe after the exchanges so far; `None` once the start is over. It is over as soon as an
    /// ordinary oscillator may have wandered by more than the time is uncertain: a rate that is one number is no longer
    /// the truth then.
    pub fn belief(&mut self) -> Option<AdoptedState> {
        if self.is_over {
            return None;
        }
        let belief = self.place(&self.moments());
        let wander = USUAL_WALK * USUAL_WALK * self.elapsed * self.elapsed * self.elapsed / 3.0;
        self.is_over = !belief.is_sound() || wander > belief.p[THETA][THETA];
        (!self.is_over).then_some(belief)
    }

    /// What the packets of a way say of its edge, given the rate. `None` if there are none.
    fn edge(&self, edge: usize, rate: f64) -> Option<Edge> {
        let (mut heights, mut count) = ([0.0; START], 0_usize);
        let packets = self.packets.iter().filter(|packet| packet.edge == edge);
        for (height, packet) in heights.iter_mut().zip(packets) {
            *height = packet.delay - rate * packet.position;
            count = count.saturating_add(1);
        }
        let factors = self.factors.get(count.checked_sub(1)?)?;
        let reach = *self.reaches.get(edge / 2)?;
        Some(Edge::below(heights.get_mut(..count)?, reach, factors))
    }

    /// The logarithm of how likely a rate is, and what it makes of each unknown: the mean and the variance.
    fn given(&self, rate: f64) -> (f64, [Unknowns; 2]) {
        let off = rate - self.begin.rate;
        let mut log = -0.5 * off * off / self.begin.rate_variance;
        let (mut means, mut variances) = ([0.0; UNKNOWNS], [0.0; UNKNOWNS]);
        means[0] = rate;
        for (edge, (mean, variance)) in means.iter_mut().zip(&mut variances).skip(1).enumerate() {
            let Some(found) = self.edge(edge, rate) else { continue };
            log += found.log;
            (*mean, *variance) = (found.mean, found.variance);
        }
        (log, [means, variances])
    }

    /// The likeliest rate, nearly, and the distance within which the likelihood hardly changes, ppm.
    fn peak(&self) -> [f64; 2] {
        let prior = libm::sqrt(self.begin.rate_variance);
        let fine = (GRAIN / (self.packets.len() as f64 * self.elapsed)).min(0.5 * prior);
        let (mut rate, mut step) = (self.begin.rate, 0.5 * prior);
        let mut best = self.given(rate).0;
        while step > fine {
            let [slower, faster] = [rate - step, rate + step].map(|rate| (self.given(rate).0, rate));
            let other = if slower.0 > faster.0 { slower } else { faster };
            if other.0 > best {
                (best, rate) = other;
            } else {
                step *= 0.5;
            }
        }
        [rate, fine]
    }

    /// The moments of all unknowns: a sum over rates that lie close where it matters and reach far.
    fn moments(&self) -> StartMoments {
        let [peak, fine] = self.peak();
        let (top, [origin, _]) = self.given(peak);
        let mut moments = StartMoments::about(origin, 1 + 2 * self.counts.len());
        for (side, first) in [(1.0, 0), (-1.0, 1)] {
            for node in first..=RATE_NODES {
                let place = side * RATE_STEP * f64::from(node);
                let (log, [means, variances]) = self.given(peak + fine * libm::sinh(place));
                moments.add(libm::exp(log - top) * libm::cosh(place), &means, &variances);
                if log < top - UNLIKELY {
                    break;
                }
            }
        }
        moments
    }

    /// The state of the bank as sums of the unknowns. The floors of the server that the clock began with are equal but
    /// for its known asymmetry, which makes theta half the difference of its edges.
    fn place(&self, moments: &StartMoments) -> AdoptedState {
        let [forward, backward] = [1 + 2 * self.begin.server, 2 + 2 * self.begin.server];
        let mut belief = AdoptedState::new(self.elapsed);
        let mut rows = [[0.0; UNKNOWNS]; states(MOST_SERVERS)];
        rows[RATE][0] = 1.0;
        rows[THETA][0] = self.elapsed;
        (rows[THETA][forward], rows[THETA][backward]) = (0.5, -0.5);
        belief.x[THETA] = -self.half_asymmetry - self.origin;
        for (server, _) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            for (way, part) in Direction::BOTH.into_iter().zip(floors_of(server)) {
                rows[part][1 + 2 * server + way.index()] = 1.0;
                rows[part][forward] -= 0.5 * sign(way);
                rows[part][backward] += 0.5 * sign(way);
                belief.x[part] = sign(way) * self.half_asymmetry;
            }
        }
        moments.carry(&rows, &mut belief);
        belief
    }
}

/// How theta enters the delays of a way.
fn sign(way: Direction) -> f64 {
    match way {
        Direction::Outgoing => 1.0,
        Direction::Incoming => -1.0,
    }
}

/// The factors of the shapes for `count` packets: each shape's prior, and what makes its likelihood one of the packets:
/// `gamma(n k) / (gamma(k)^n n^(n k))`, the scale being measured by the mean of the packets' queueing.
fn factors(count: usize) -> [f64; START_SHAPES.len()] {
    let n = count as f64;
    let factor = |(shape, prior): (f64, f64)| {
        let all = n * shape;
        prior * libm::exp(libm::lgamma(all) - n * libm::lgamma(shape) - all * libm::log(n))
    };
    let mut shape = 0.5;
    START_SHAPES.map(|prior| {
        shape *= 2.0;
        factor((shape, prior))
    })
}

/// Where an edge is, given the rate.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The logarithm of the likelihood of its packets.
    log: f64,
    mean: f64,
    variance: f64,
}

impl Edge {
    /// The edge of packets of these heights, at most `reach` below the lowest. A packet that queued for far longer than
    /// most counts as one that queued for some times as long: tails are of another law.
    fn below(heights: &mut [f64], reach: f64, factors: &[f64; START_SHAPES.len()]) -> Self {
        debug_assert!(!heights.is_empty() && reach > 0.0);
        heights.sort_unstable_by(f64::total_cmp);
        let lowest = heights.first().copied().unwrap_or(0.0);
        let n = heights.len() as f64;
        let usual = heights.get((USUAL_PART * n) as usize).map_or(0.0, |height| height - lowest);
        heights.iter_mut().for_each(|height| *height = (*height - lowest).min(FARTHEST * usual));
        let mean = (GRAIN + heights.iter().sum::<f64>()) / n;
        let step = libm::log1p(reach / mean) / f64::from(EDGE_NODES);
        let (ratio, mut grown) = (libm::exp(step), libm::exp(0.5 * step));
        let [mut mass, mut first, mut second] = [0.0; 3];
        for _ in 0..EDGE_NODES {
            // Everything is in parts of the mean distance.
            let below = grown - 1.0;
            let [product, power] = heights
                .iter()
                .fold([1.0, 1.0], |[product, power], height| [product * (height / mean + below), power * grown]);
            let likelihood = grown * likelihood(product, 1.0 / power, factors);
            mass += likelihood;
            first += likelihood * below;
            second += likelihood * below * below;
            grown *= ratio;
        }
        let distance = first / mass;
        Edge {
            log: libm::log(mass * step) - (n - 1.0) * libm::log(mean),
            mean: lowest - distance * mean,
            variance: (second / mass - distance * distance).max(0.0) * mean * mean,
        }
    }
}

/// The sum of the shapes' likelihoods, of the shapes 1, 2, 4 and so on: with P the product of what the packets queued
/// and T the inverse power of its sum, that of shape k is `P^(k-1) T^k`, and of shape 2k P times the square of this.
fn likelihood(product: f64, power: f64, factors: &[f64; START_SHAPES.len()]) -> f64 {
    let mut shape = power;
    factors.iter().fold(0.0, |sum, factor| {
        let sum = sum + factor * shape;
        let more = shape * product;
        shape *= more;
        sum
    })
}

/// Weighted sums for the mean and the covariance of the unknowns.
struct StartMoments {
    /// How many unknowns there are.
    count: usize,
    /// What means are measured from, so that squares stay small.
    origin: Unknowns,
    weight: f64,
    sum: Unknowns,
    squares: [Unknowns; UNKNOWNS],
}

impl StartMoments {
    fn about(origin: Unknowns, count: usize) -> Self {
        StartMoments { count, origin, weight: 0.0, sum: [0.0; UNKNOWNS], squares: [[0.0; UNKNOWNS]; UNKNOWNS] }
    }

    fn add(&mut self, weight: f64, means: &Unknowns, variances: &Unknowns) {
        let off: Unknowns = core::array::from_fn(|part| means[part] - self.origin[part]);
        self.weight += weight;
        for (row, squares) in self.squares.iter_mut().enumerate().take(self.count) {
            self.sum[row] += weight * off[row];
            squares[row] += weight * variances[row];
            squares.iter_mut().zip(off).take(self.count).for_each(|(cell, other)| *cell += weight * off[row] * other);
        }
    }

    /// Adds sums of the unknowns to the parts of a state.
    fn carry(&self, rows: &[Unknowns; states(MOST_SERVERS)], belief: &mut AdoptedState) {
        let off = self.sum.map(|sum| sum / self.weight);
        let total = |row: &Unknowns, value: &dyn Fn(usize) -> f64| {
            row.iter().enumerate().take(self.count).map(|(part, row)| row * value(part)).sum::<f64>()
        };
        for (part, row) in rows.iter().enumerate() {
            belief.x[part] += total(row, &|unknown| self.origin[unknown] + off[unknown]);
            let carried: Unknowns = core::array::from_fn(|column| {
                total(row, &|unknown| self.squares[unknown][column] / self.weight - off[unknown] * off[column])
            });
            for (other, column) in rows.iter().enumerate() {
                belief.p[part][other] = total(column, &|unknown| carried[unknown]);
            }
        }
    }
}

#[cfg(test)]
mod tests;

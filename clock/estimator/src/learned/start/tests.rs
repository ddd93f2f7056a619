use super::*;
use crate::bank::FloorWalk;
use crate::bank::group::Evident;
use alloc::vec::Vec;

const FLOORS: [f64; 2] = [100.0, 100.0];
const TRIP: f64 = 2.2e-4;

/// The packets of an exchange at `time` of a counter that is slow by `rate`, ppm, and 5 us behind at time 0, in the
/// first frame.
fn packets(time: f64, rate: f64, queueing: [f64; 2]) -> [Measurement; 2] {
    let theta = 5.0 + rate * time;
    let forward = theta - rate * TRIP + FLOORS[0] + queueing[0];
    [
        Measurement { delay: forward, trip: TRIP, noise: 1e-6 },
        Measurement { delay: FLOORS[1] - theta + queueing[1], trip: 0.0, noise: 1e-6 },
    ]
}

fn first(rate_deviation: f64) -> Begin {
    Begin {
        server: 0,
        theta: 5.0,
        rate: 0.0,
        rate_variance: rate_deviation * rate_deviation,
        floors: FLOORS,
        variance: 1e4,
    }
}

/// A start of `servers` that begins with the first of exchanges every 2 s, and takes the others.
fn start(servers: usize, rate: f64, queueing: &[[f64; 2]]) -> Start {
    let mut start = Start::new(servers);
    for (number, queueing) in queueing.iter().enumerate() {
        let measurements = packets(2.0 * number as f64, rate, *queueing);
        if number == 0 {
            start.begin(&first(200.0), &measurements, 0.0);
        } else {
            let server = number % servers;
            start.take(&BankExchange {
                server,
                interval: 2.0,
                measurements,
                evident: Evident::All,
                holds_floors: false,
                walk: FloorWalk::NONE,
            });
        }
    }
    start
}

#[test]
fn two_exchanges_show_the_rate_to_their_queueing_over_the_interval() {
    let belief = start(1, 37.0, &[[4.0, 2.0], [1.0, 6.0]]).belief().expect("a start");
    let deviation = belief.p[RATE][RATE].sqrt();
    // The two naive times are off by 1 us and -2.5 us: 1.75 ppm over 2 s.
    assert!((belief.x[RATE] - 37.0).abs() < 2.0, "{}", belief.x[RATE]);
    assert!(deviation > 0.5 && deviation < 10.0, "{deviation}");
    assert!((belief.x[THETA] - 79.0).abs() < 5.0, "{}", belief.x[THETA]);
    assert!(belief.p[THETA][THETA].sqrt() < 15.0);
}

/// The posterior of three exchanges as a sum over all rates and both edges, by the formulas at the head of this module
/// and no moments in between.
#[test]
fn the_moments_are_those_of_the_whole_posterior() {
    let queueing = [[4.0, 2.0], [1.0, 6.0], [9.0, 3.0]];
    let belief = start(1, 2.0, &queueing).belief().expect("a start");
    let exchanges: Vec<_> =
        (0..3).map(|number| packets(2.0 * f64::from(number), 2.0, queueing[number as usize])).collect();
    let reach = exchanges.iter().map(|[forward, backward]| 0.5 * (forward.delay + backward.delay)).fold(1e9, f64::min);
    let shape_likelihood = |queued: &[f64]| -> f64 {
        let n = queued.len() as f64;
        let (sum, product) = (GRAIN + queued.iter().sum::<f64>(), queued.iter().product::<f64>());
        let of = |(index, prior): (usize, &f64)| {
            let k = f64::from(1 << index);
            let log = libm::lgamma(n * k) - n * libm::lgamma(k) - n * k * libm::log(sum);
            prior * libm::exp(log + (k - 1.0) * libm::log(product))
        };
        START_SHAPES.iter().enumerate().map(of).sum()
    };
    let (mut mass, mut sums, mut squares) = (0.0, [0.0; 2], [0.0; 2]);
    for step in -300..300 {
        let rate = 2.0 + 0.05 * f64::from(step);
        let heights = [0, 1].map(|way| -> Vec<f64> {
            let sign = if way == 0 { 1.0 } else { -1.0 };
            let line = |(number, packets): (usize, &[Measurement; 2])| {
                packets[way].delay - sign * rate * (2.0 * number as f64 - packets[way].trip)
            };
            exchanges.iter().enumerate().map(line).collect()
        });
        // The mass, mean and mean square of each way's edge.
        let edges = heights.map(|heights| {
            let lowest = heights.iter().copied().fold(f64::INFINITY, f64::min);
            let mut sums = [0.0; 3];
            for node in 0..400 {
                let below = reach * (f64::from(node) + 0.5) / 400.0;
                let queued: Vec<f64> = heights.iter().map(|height| height - lowest + below).collect();
                let likelihood = shape_likelihood(&queued);
                let edge = lowest - below;
                sums = core::array::from_fn(|power| sums[power] + likelihood * libm::pow(edge, power as f64));
            }
            sums
        });
        let [[a, a1, a2], [b, b1, b2]] = edges;
        let weight = a * b;
        // theta = (a - b)/2 at the beginning, and 4 s of the rate.
        let [a1, a2, b1, b2] = [a1 / a, a2 / a, b1 / b, b2 / b];
        let begin = 0.5 * (a1 - b1);
        let theta = begin + 4.0 * rate;
        let spread = 0.25 * (a2 - a1 * a1 + b2 - b1 * b1);
        mass += weight;
        sums = [sums[0] + weight * rate, sums[1] + weight * theta];
        squares = [squares[0] + weight * rate * rate, squares[1] + weight * (theta * theta + spread)];
    }
    for (part, (sum, square)) in [RATE, THETA].into_iter().zip(sums.into_iter().zip(squares)) {
        let (mean, deviation) = (sum / mass, (square / mass - sum * sum / (mass * mass)).sqrt());
        assert!((belief.x[part] - mean).abs() < 0.05 * deviation, "{part}: {} {mean} {deviation}", belief.x[part]);
        let found = belief.p[part][part].sqrt();
        assert!((found / deviation - 1.0).abs() < 0.05, "{part}: {found} {deviation}");
    }
}

#[test]
fn where_the_frame_went_does_not_matter() {
    let queueing = [[4.0, 2.0], [1.0, 6.0], [9.0, 3.0], [2.0, 2.0]];
    let still = start(1, 20.0, &queueing).belief().expect("a start");
    let mut moved = Start::new(1);
    let mut origin = 0.0;
    for (number, queueing) in queueing.into_iter().enumerate() {
        let [forward, backward] = packets(2.0 * number as f64, 20.0, queueing);
        let forward = Measurement { delay: forward.delay - origin, ..forward };
        let backward = Measurement { delay: backward.delay + origin, ..backward };
        let measurements = [forward, backward];
        if number == 0 {
            moved.begin(&first(200.0), &measurements, 0.0);
        } else {
            moved.take(&BankExchange {
                server: 0,
                interval: 2.0,
                measurements,
                evident: Evident::All,
                holds_floors: false,
                walk: FloorWalk::NONE,
            });
        }
        moved.note_step(7.0);
        origin += 7.0;
    }
    let moved = moved.belief().expect("a start");
    assert!((moved.x[THETA] + origin - still.x[THETA]).abs() < 1e-6, "{} {}", moved.x[THETA], still.x[THETA]);
    assert!((moved.x[RATE] - still.x[RATE]).abs() < 1e-9);
    assert!((moved.p[THETA][THETA] / still.p[THETA][THETA] - 1.0).abs() < 1e-6);
}

/// Each server brings edges of its own, and all share the rate.
#[test]
fn a_second_server_makes_the_rate_better_known() {
    let queueing = [[4.0, 2.0], [1.0, 6.0], [3.0, 3.0], [2.0, 2.0], [5.0, 1.0], [1.0, 4.0]];
    let both = start(2, 20.0, &queueing).belief().expect("a start");
    let alone: Vec<_> = queueing.iter().step_by(2).copied().collect();
    let mut one = Start::new(1);
    for (number, queueing) in alone.into_iter().enumerate() {
        let measurements = packets(4.0 * number as f64, 20.0, queueing);
        if number == 0 {
            one.begin(&first(200.0), &measurements, 0.0);
        } else {
            one.take(&BankExchange {
                server: 0,
                interval: 4.0,
                measurements,
                evident: Evident::All,
                holds_floors: false,
                walk: FloorWalk::NONE,
            });
        }
    }
    let one = one.belief().expect("a start");
    assert!(both.p[RATE][RATE] < 0.8 * one.p[RATE][RATE], "{} {}", both.p[RATE][RATE], one.p[RATE][RATE]);
    for part in [floors_of(0), floors_of(1)].into_iter().flatten() {
        assert!((both.x[part] - 100.0).abs() < 3.0 * both.p[part][part].sqrt(), "{part}: {}", both.x[part]);
        assert!(both.p[part][part] > 0.0);
    }
    let symmetric = (0..states(2)).all(|row| {
        (0..states(2)).all(|column| {
            both.p[row][column] == both.p[column][row] || (both.p[row][column] - both.p[column][row]).abs() < 1e-9
        })
    });
    assert!(symmetric);
}

#[test]
fn a_start_is_over_after_its_exchanges_or_when_an_oscillator_may_have_wandered() {
    let queueing: Vec<_> = (0..=START).map(|number| [(number % 5) as f64, (number % 3) as f64]).collect();
    assert!(start(1, 20.0, &queueing[..START]).belief().is_some());
    assert!(start(1, 20.0, &queueing).belief().is_none());
    let mut rare = Start::new(1);
    rare.begin(&first(200.0), &packets(0.0, 20.0, [1.0, 1.0]), 0.0);
    assert!(rare.belief().is_some());
    let measurements = packets(8_192.0, 20.0, [1.0, 1.0]);
    rare.take(&BankExchange {
        server: 0,
        interval: 8_192.0,
        measurements,
        evident: Evident::All,
        holds_floors: false,
        walk: FloorWalk::NONE,
    });
    assert!(rare.belief().is_none());
}

/// The first exchanges of many servers say nothing of the rate: only a second one of the same server does.
#[test]
fn one_exchange_with_each_of_many_servers_shows_no_rate() {
    let queueing: Vec<_> = (0..16).map(|number| [(number % 5) as f64, (number % 3) as f64]).collect();
    let belief = start(16, 20.0, &queueing).belief().expect("a start");
    let deviation = belief.p[RATE][RATE].sqrt();
    assert!((deviation - 200.0).abs() < 10.0 && belief.x[RATE].abs() < 10.0, "{} {deviation}", belief.x[RATE]);
}

/// One packet that queued for 30 ms is no evidence of the others' scale.
#[test]
fn a_packet_far_out_changes_little() {
    let mut queueing: Vec<_> = (0..8).map(|number| [(number * 5 % 8) as f64, (number * 3 % 8) as f64]).collect();
    let usual = start(1, 20.0, &queueing).belief().expect("a start");
    queueing[6][0] = 30e3;
    let belief = start(1, 20.0, &queueing).belief().expect("a start");
    let deviation = usual.p[THETA][THETA].sqrt();
    assert!((belief.x[THETA] - usual.x[THETA]).abs() < deviation, "{} {}", belief.x[THETA], usual.x[THETA]);
    assert!(belief.p[THETA][THETA].sqrt() < 2.0 * deviation, "{} {deviation}", belief.p[THETA][THETA].sqrt());
}

//! Generated exchanges for the replay: a quiet LAN, an oscillator that wanders a little, no two exchanges alike.

use ffclock_trace::{ServerIndex, TraceHeader, TraceRow, Truth};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Exchange, Moment, Period, ServerIdentity, ServerQuality, Span, Stamp, StampLocation,
    Tai, Ticks,
};

/// The counter's nominal frequency, a tick for a nanosecond; the true one is 50 ppm higher.
const HERTZ: f64 = 1e9;
const SKEW: f64 = 50e-6;
/// Largest deviation of the rate, over a day: weather.
const WANDER: f64 = 2e-8;
const DAY_NS: f64 = 86_400e9;
/// Shortest delay each way [ns].
const DELAY_NS: f64 = 140_000.0;
/// How long the server takes [ns].
const SERVER_NS: f64 = 10_000.0;
/// TAI of the first request [s].
const BEGIN_S: i64 = 1_700_000_037;
/// The counter then.
const FIRST_TICK: u64 = 5_000_000_000;

/// Endless exchanges at one poll.
pub(crate) struct Traffic {
    poll_ns: u64,
    number: u64,
    state: u64,
    truth: Reference,
}

/// Whether the rows carry reference times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reference {
    Without,
    With,
}

impl Traffic {
    pub(crate) fn new(poll_s: u64, truth: Reference) -> Self {
        Traffic { poll_ns: poll_s * 1_000_000_000, number: 0, state: 1, truth }
    }

    pub(crate) fn header(&self) -> TraceHeader {
        let truth = self.truth == Reference::With;
        TraceHeader { nominal: Period::from_hertz(HERTZ), truth, ..TraceHeader::default() }
    }

    /// Evenly distributed over (0, 1]: splitmix64 (Steele, Lea and Flood, OOPSLA 2014, figure 19).
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11).wrapping_add(1) as f64 / (1_u64 << 53) as f64
    }

    /// One way [ns]: the shortest delay, a little queueing, and in one packet of a hundred much of it.
    fn delay(&mut self) -> f64 {
        let queueing = if self.uniform() < 0.01 { 50_000.0 } else { 4_000.0 };
        DELAY_NS - queueing * self.uniform().ln()
    }

    /// The counter, `offset` ns after request `number` was due.
    fn stamp(&self, number: u64, offset: f64) -> Stamp {
        let due = number * self.poll_ns;
        let phase = std::f64::consts::TAU * due as f64 / DAY_NS;
        let wandered = WANDER * DAY_NS / std::f64::consts::TAU * (1.0 - phase.cos());
        // Whole nanoseconds stay integers: years of them do not fit into a float.
        let ahead = due as f64 * SKEW + wandered + offset * (1.0 + SKEW);
        Stamp {
            counter: Counter::from_raw(FIRST_TICK + due + ahead as u64),
            width: Ticks::from_raw(60),
            location: StampLocation::Kernel,
        }
    }

    fn moment(&self, number: u64, offset: f64) -> Moment<Tai> {
        let nanos = i128::from(number * self.poll_ns) + offset as i128;
        Moment::from_origin(Span::from_secs(BEGIN_S) + Span::from_nanos(nanos))
    }

    /// The next exchange.
    pub(crate) fn row(&mut self) -> TraceRow {
        let number = self.number;
        self.number += 1;
        let server_in = self.delay();
        let server_out = server_in + SERVER_NS;
        let received = server_out + self.delay();
        let server = ServerQuality {
            identity: ServerIdentity { stratum: 1, reference_id: u32::from_be_bytes(*b"GPS\0") },
            root_distance: Bound::of(Span::from_micros(30)),
            ..ServerQuality::default()
        };
        let exchange = Exchange {
            sent: self.stamp(number, 0.0),
            server_in: self.moment(number, server_in),
            server_out: self.moment(number, server_out),
            received: self.stamp(number, received),
            server,
        };
        let truth = Truth { sent: Some(self.moment(number, 0.0)), received: self.moment(number, received) };
        TraceRow {
            sequence: number,
            epoch: CounterEpoch::default(),
            exchange: Some(exchange),
            truth: (self.truth == Reference::With).then_some(truth),
            server: ServerIndex(0),
        }
    }
}

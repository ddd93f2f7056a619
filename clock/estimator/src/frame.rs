//! The frame: exact counter readings and server times become small floats, relative to a recent exchange.
//!
//! The line `L(T) = time + nominal period * (T - anchor)` is exact integer arithmetic. A counter reading becomes its
//! position `x` on the line, in seconds by the nominal period; a server time becomes its height `y` above the line. An
//! absolute time never enters a float, the unknown rate is the slope of the heights, and a round trip is measured in
//! ticks of constant length whatever the estimated period does.

use ffclock_units::{Counter, Exchange, Moment, Period, Span, Stamp, Tai};

/// The line that heights are measured from.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    nominal: Period,
    tick: f64,
    anchor: Counter,
    time: Moment<Tai>,
}

/// One exchange in a frame. Everything is in seconds, ticks being counted at their nominal length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The position of the last reception, Tf.
    pub x: f64,
    /// The position half way between sending and reception.
    pub middle: f64,
    /// The height of Tb over the line at Ta: the true height there plus the delay to the server.
    pub forward: f64,
    /// The height of Te over the line at Tf: the true height there minus the delay back.
    pub backward: f64,
    /// The length of the round trip.
    pub trip: f64,
    /// The round trip net of the server's residence.
    pub net: f64,
    /// Half the width of the sent stamp.
    pub sent_half: f64,
    /// Half the width of the received stamp.
    pub received_half: f64,
    /// The server's own claim of its largest error.
    pub root: f64,
}

impl Point {
    /// The naive height at `middle`: the two delays taken as equal.
    pub fn height(&self) -> f64 {
        0.5 * (self.forward + self.backward)
    }

    /// How far the widths of the stamps can move `height`.
    pub fn blur(&self) -> f64 {
        0.5 * (self.sent_half + self.received_half)
    }
}

/// How far a frame was moved, s: what was at `x` is at `x - x_step`, and what was at height `y` at `y - y_step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    pub x_step: f64,
    pub y_step: f64,
}

/// A rate as a slope of the heights in a frame, and its error, both relative to the nominal rate, s/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    pub rate: f64,
    pub error: f64,
}

impl Frame {
    /// A frame through the end of `exchange`.
    pub fn at(nominal: Period, exchange: &Exchange) -> Self {
        let (anchor, time) = (exchange.received.counter, exchange.server_out);
        Frame { nominal, tick: nominal.as_seconds(), anchor, time }
    }

    /// The position of a counter reading.
    pub fn position(&self, counter: Counter) -> f64 {
        (counter - self.anchor).as_f64() * self.tick
    }

    /// The length of the stamp's half width.
    fn half_width(&self, stamp: &Stamp) -> f64 {
        0.5 * stamp.width.abs().as_f64() * self.tick
    }

    /// The height of `time` over the line at `counter`.
    pub fn height(&self, counter: Counter, time: Moment<Tai>) -> f64 {
        (time - self.line(counter)).as_seconds()
    }

    fn line(&self, counter: Counter) -> Moment<Tai> {
        self.time + self.nominal * (counter - self.anchor)
    }

    /// The moment of height `y` over the line at `counter`.
    pub fn moment(&self, counter: Counter, y: f64) -> Moment<Tai> {
        self.line(counter) + Span::from_seconds(y)
    }

    /// Places an exchange in this frame.
    pub fn place(&self, exchange: &Exchange) -> Point {
        let (sent, received) = (exchange.sent.counter, exchange.received.counter);
        let trip = self.nominal * (received - sent);
        let x = self.position(received);
        Point {
            x,
            middle: 0.5 * (x + self.position(sent)),
            forward: self.height(sent, exchange.server_in),
            backward: self.height(received, exchange.server_out),
            trip: trip.as_seconds(),
            net: (trip - (exchange.server_out - exchange.server_in)).as_seconds(),
            sent_half: self.half_width(&exchange.sent),
            received_half: self.half_width(&exchange.received),
            root: exchange.server.root_distance.as_seconds(),
        }
    }

    /// Moves the anchor to height `y` at `counter`. Returns how far all positions and heights move.
    pub fn move_to(&mut self, counter: Counter, y: f64) -> Move {
        let y_span = Span::from_seconds(y);
        let moved = Move { x_step: self.position(counter), y_step: y_span.as_seconds() };
        self.time = self.line(counter) + y_span;
        self.anchor = counter;
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{ServerQuality, StampLocation, Ticks};

    fn stamp(counter: u64) -> Stamp {
        Stamp { counter: Counter::from_raw(counter), width: Ticks::from_raw(20), location: StampLocation::Unknown }
    }

    fn exchange(sent: u64, received: u64, server_micros: i64) -> Exchange {
        let server_in = Moment::from_origin(Span::from_micros(server_micros));
        Exchange {
            sent: stamp(sent),
            server_in,
            server_out: server_in + Span::from_micros(10),
            received: stamp(received),
            server: ServerQuality::default(),
        }
    }

    #[test]
    fn the_two_heights_are_one_net_round_trip_apart() {
        let nominal = Period::from_hertz(1e9).unwrap();
        let first = exchange(1_000, 201_000, 1_700_000_000_000_000);
        let frame = Frame::at(nominal, &first);
        let point = frame.place(&exchange(1_000_001_000, 1_000_201_000, 1_700_000_001_000_050));
        assert!((point.net - 190e-6).abs() < 1e-12);
        assert!((point.forward - point.backward - point.net).abs() < 1e-12);
        assert!((point.trip - 200e-6).abs() < 1e-12 && (point.x - 1.0).abs() < 1e-12);
        assert!((point.blur() - 10e-9).abs() < 1e-15);
    }

    #[test]
    fn moving_the_frame_moves_no_moment() {
        let nominal = Period::from_hertz(2.994e9).unwrap();
        let first = exchange(5_000, 900_000, 1_700_000_000_000_000);
        let mut frame = Frame::at(nominal, &first);
        let later = Counter::from_raw(300_000_000_000_000);
        let before = frame.moment(later, 0.001_25);
        let moved = frame.move_to(Counter::from_raw(200_000_000_000_000), 0.000_7);
        let after = frame.moment(later, 0.001_25 - moved.y_step);
        assert!((after - before).abs() < Span::from_nanos(1));
        assert!((frame.position(later) - 1e14 / 2.994e9).abs() < 1e-6);
    }
}

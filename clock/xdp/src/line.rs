//! The time over the kernel's boot-time clock: what the program in the driver serves.
//!
//! The program cannot read the counter that the page is about. It reads `CLOCK_BOOTTIME`, which another program may
//! slew. A line therefore holds for a fraction of a second, and its dispersion contains all that is uncertain about it:
//! - what the server itself states for both ends of the line;
//! - half the width of the bracket in which the pair (counter, boot-time clock) was read, and rounding;
//! - for its rate, the same of two pairs by the time between them;
//! - the slewing that may begin after it was made, by the time since: `slew` is the largest change of rate that is
//!   allowed for, against the mean since the pair before. `adjtimex` changes its frequency by up to 1000 ppm, from one
//!   end of its range to the other.
//!
//! Pairs show faster slewing (by `adjtimex`'s tick, say) when the next line is made; until then replies are wrong by
//! more than they state. Then there is no line until two in a row agree: [`NoLine::Slewed`].

use ffclock_counter::{ClockReading, CounterId, HostClock, read_narrowest};
use ffclock_units::{Counter, Rate, Span, Ticks};
use ffclock_wire::{LeapIndicator, Packet};

#[cfg(test)]
mod tests;

/// The most that a line may be old: the program multiplies within 64 bits.
const LONGEST_MAX_NS: u64 = 1 << 30;
/// As in the program: bits behind the point of a rate, beyond the 32 of a time.
const RATE_BITS: u32 = 30;
/// What reading and rounding add to a pair: the clock is truncated to nanoseconds, a time to 2^-32 s and then to an
/// even or odd number of these, and the kernel's two ways to read the clock round apart.
const ROUNDING: Span = Span::from_nanos(4);
/// Brackets tried for one pair.
const TRIES: usize = 5;
/// A second of the counter against a second of the boot-time clock: beyond this one of them did not run.
const RATE_ERROR_MAX: f64 = 0.01;
/// Largest stratum of a server that is synchronised (RFC 5905, figure 11).
const STRATUM_MAX: u8 = 15;
/// In units of 2^-32 s.
const TIME_SHIFT: u32 = 32;

/// The boot-time clock showed `shown` at some moment within `counter` +- `width` / 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootPair {
    /// The middle of the range.
    pub counter: Counter,
    /// The whole width of the range.
    pub width: Ticks,
    /// The boot-time clock, truncated to nanoseconds.
    pub shown: Span,
}

impl BootPair {
    /// Reads both clocks; `None` where the host has no boot-time clock.
    pub fn read(counter: CounterId) -> Option<Self> {
        let best = read_narrowest(counter, TRIES, || HostClock::Boottime.read());
        let shown = best.value.map(ClockReading::since_origin)?;
        Some(BootPair { counter: best.middle(), width: best.width(), shown })
    }
}

/// Why there is no line now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLine {
    /// The rate of the boot-time clock is known with the next pair.
    #[error("begins")]
    Begins,
    /// The server has no time to serve, or will have none before the line's end.
    #[error("the server is not synchronised")]
    Unsynchronised,
    /// What the server says besides the time changes before the line's end.
    #[error("a leap second or a smear is near")]
    Changes,
    /// The boot-time clock changed its rate by more than is allowed for.
    #[error("another program slews the kernel's clock by more than is allowed for")]
    Slewed,
}

/// The time and its error over the boot-time clock, from a reference on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    reference_ns: u64,
    time: u64,
    rate: u64,
    dispersion: u64,
    dispersion_rate: u64,
    longest_ns: u64,
    /// The first two words of a packet, and three more, as they lie there.
    header: [[u8; 4]; 5],
}

impl Line {
    /// As the program in the driver has it: `struct line` there, with its check.
    #[cfg(any(feature = "ebpf", test))]
    pub(crate) fn words(&self) -> [u64; 10] {
        let [first, delay, id, reference @ ..] = self.header.map(|word| u64::from(u32::from_ne_bytes(word)));
        let mut words = [
            self.reference_ns,
            self.time,
            self.rate,
            self.dispersion,
            self.dispersion_rate,
            self.longest_ns,
            first | delay << 32,
            id,
            reference[0] | reference[1] << 32,
            0,
        ];
        words[9] =
            words.iter().zip((1_u64..).step_by(2)).take(9).fold(0, |sum, (word, odd)| {
                sum.wrapping_add(word.wrapping_mul(odd.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            });
        words
    }
}

/// Makes one line after the other.
#[derive(Clone, Debug)]
pub struct LineMaker {
    slew: Rate,
    longest: Span,
    last: Option<BootPair>,
    /// Ticks for each nanosecond of the boot-time clock, as the last two pairs had it, and its largest error.
    rate: Option<(f64, f64)>,
}

impl LineMaker {
    /// For lines that are served for `longest` at most, a second or less. `slew` is the largest change of the boot-time
    /// clock's rate that they allow for.
    pub fn new(longest: Span, slew: Rate) -> Self {
        let longest = longest.clamp(Span::ZERO, Span::from_nanos(i128::from(LONGEST_MAX_NS)));
        LineMaker { slew, longest, last: None, rate: None }
    }

    /// The line from this pair on. `reply_at` is what the server would answer at a counter reading, with its transmit
    /// time and unrounded dispersion; all answers must come from the same snapshot.
    ///
    /// # Errors
    /// There is none that could be served; the last one must be withdrawn.
    pub fn make(&mut self, pair: BootPair, reply_at: impl Fn(Counter) -> Option<Packet>) -> Result<Line, NoLine> {
        let last = self.last.replace(pair).ok_or(NoLine::Begins)?;
        let (rate, rate_error) = self.measure(&last, &pair)?;
        let longest_ns = self.longest.as_nanos() as f64;
        let ahead = Ticks::from_raw((longest_ns * rate) as i64);
        let (begin, end) = reply_at(pair.counter).zip(reply_at(pair.counter + ahead)).ok_or(NoLine::Unsynchronised)?;
        if begin.leap == LeapIndicator::Unsynchronised || !(1..=STRATUM_MAX).contains(&begin.stratum) {
            return Err(NoLine::Unsynchronised);
        }
        if fixed_part(&begin) != fixed_part(&end) {
            return Err(NoLine::Changes);
        }
        let served = end.transmit.raw().wrapping_sub(begin.transmit.raw());
        // [2^-32 s per ns]
        let per_ns = served as f64 / longest_ns;
        let nominal = units_of(Span::from_secs(1)) / 1e9;
        if (per_ns / nominal - 1.0).abs() > RATE_ERROR_MAX {
            return Err(NoLine::Changes);
        }
        let per_tick = per_ns / rate;
        let pair_error = pair.width.as_f64() / 2.0 * per_tick + units_of(ROUNDING);
        let stated = units_of(begin.root_dispersion.as_span());
        let grows = (units_of(end.root_dispersion.as_span()) - stated).max(0.0) / longest_ns;
        Ok(Line {
            reference_ns: pair.shown.as_nanos() as u64,
            time: begin.transmit.raw(),
            rate: scaled(per_ns),
            dispersion: (stated + pair_error).ceil() as u64,
            dispersion_rate: scaled(grows + nominal * (self.slew.as_fraction() + rate_error)) + 1,
            longest_ns: self.longest.as_nanos() as u64,
            header: fixed_part(&begin),
        })
    }

    /// The rate of the counter against the boot-time clock between two pairs [ticks/ns], and its largest relative
    /// error.
    fn measure(&mut self, last: &BootPair, pair: &BootPair) -> Result<(f64, f64), NoLine> {
        let ticks = (pair.counter - last.counter).as_f64();
        let passed = pair.shown - last.shown;
        let passed_ns = passed.as_nanos() as f64;
        let before = self.rate.take();
        // After a pause, or suspend, the rate may have been anything.
        if passed_ns <= 0.0 || ticks <= 0.0 || passed > self.longest {
            return Err(NoLine::Begins);
        }
        let rate = ticks / passed_ns;
        let widths = (last.width.as_f64() + pair.width.as_f64()) / 2.0;
        let error = widths / ticks + ROUNDING.as_nanos() as f64 / passed_ns;
        self.rate = Some((rate, error));
        let has_slewed =
            |(other, its_error): (f64, f64)| (rate / other - 1.0).abs() > self.slew.as_fraction() + error + its_error;
        match before.is_some_and(has_slewed) {
            true => Err(NoLine::Slewed),
            false => Ok((rate, error)),
        }
    }
}

/// What a reply says besides its times and its dispersion.
fn fixed_part(packet: &Packet) -> [[u8; 4]; 5] {
    let bytes = packet.encode();
    let word = |place: usize| [bytes[place], bytes[place + 1], bytes[place + 2], bytes[place + 3]];
    let [first, stratum, _, precision] = word(0);
    [[first & 0xc0, stratum, 0, precision], word(4), word(12), word(16), word(20)]
}

/// In 2^-32 s.
fn units_of(span: Span) -> f64 {
    span.as_seconds() * (1_u64 << TIME_SHIFT) as f64
}

/// With [`RATE_BITS`] behind the point.
fn scaled(rate: f64) -> u64 {
    (rate * f64::from(1_u32 << RATE_BITS)) as u64
}

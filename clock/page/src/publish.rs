//! Writing a page: an estimate and its circumstances become words.
//!
//! Besides the estimate itself a slot holds words derived from it (the offset of UTC, the growth per tick, the window
//! in which nothing special happens), so that a reader has little left to compute. They are derived here and nowhere
//! else.

use crate::layout::{self, MISSING, SLOT_WORDS, UNKNOWN, UNKNOWN_NOISE, header, slot, state, vote};
use crate::words::{self, PAGE, PageWords};
use crate::{BootId, CounterId, Reader};
use ffclock_units::{
    Counter, CounterEpoch, Estimate, GrowingBound, GrowthRate, LeapStep, MachineMark, Period, ServerIdentity, Span,
    Status, Ticks,
};

/// Everything that a page says at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The counter that all counter readings here come from.
    pub counter_id: CounterId,
    /// The epoch of that counter, a number below 2^56. A change of the counter is a new epoch, too.
    pub epoch: CounterEpoch,
    /// A counter reading at or after the beginning of the epoch: earlier stamps are refused.
    pub epoch_begin: Counter,
    /// What is known about the counter.
    pub estimate: Estimate,
    /// The leap step around the present.
    pub leap: LeapStep,
    /// The writer means to publish again before this counter reading. Readings after it have the status
    /// [`Status::Unsynchronised`], because the counter is no longer watched.
    pub valid_until: Counter,
    /// The server that the estimate comes from.
    pub server: Option<ServerIdentity>,
}

/// How many servers stand behind a publication; no more than 255 each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoteCounts {
    /// How many servers decided: those with a vote, or the trusted ones of them where there are any.
    pub deciders: u8,
    /// How many of these may be false while the strict bound holds.
    pub tolerated: u8,
    /// How many servers are believed; 0 without a majority.
    pub believed: u8,
}

/// What a vote of several servers adds to a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VotedPart {
    /// The bound of the estimate that holds although as many servers are false as the vote tolerates.
    pub strict: GrowingBound,
    /// Who voted.
    pub counts: VoteCounts,
}

impl VotedPart {
    /// That of a clock with one server, believed as it is.
    pub const fn alone(estimate: &Estimate) -> Self {
        let counts = VoteCounts { deciders: 1, tolerated: 0, believed: 1 };
        VotedPart { strict: estimate.growing_bound(), counts }
    }
}

/// The one writer of a page.
#[derive(Debug)]
pub struct Writer<M> {
    memory: M,
    sequence: u64,
}

impl<M: AsRef<PageWords>> Writer<M> {
    /// Takes over a page, or makes one of any memory.
    ///
    /// What a page of the same `boot` says stays readable until the first publication, so that a restarted daemon is
    /// not noticed. Any other content is dropped; readers then see an empty page. At most one writer may have the page.
    pub fn open(memory: M, boot: Option<BootId>) -> Self {
        let page = memory.as_ref();
        let sequence = words::latest(page, PAGE);
        let wanted = header_words(boot);
        if !has_header(page, &wanted) {
            format(page, &wanted);
        }
        Writer { memory, sequence }
    }

    /// Writes the header again if it was damaged. Programs that have mapped the page no longer look at it and are not
    /// disturbed; others refuse the page until then. Returns whether it was damaged.
    pub fn repair_header(&mut self, boot: Option<BootId>) -> bool {
        let page = self.memory.as_ref();
        let wanted = header_words(boot);
        let is_damaged = !has_header(page, &wanted);
        if is_damaged {
            write_header(page, &wanted);
        }
        is_damaged
    }

    /// Shows readers the mark of the virtual machine that publications rest on from here on, or that none is watched. A
    /// publication that rests on another mark is withdrawn before.
    pub fn show_machine(&mut self, mark: Option<MachineMark>) {
        let shown = Reader::new(self.memory.as_ref()).machine();
        if shown == mark {
            return;
        }
        // A writer that begins to state a generation goes on with what an earlier one left.
        let still_holds = shown.is_none_or(|shown| mark.is_some_and(|mark| shown.holds_at(mark)));
        if !still_holds {
            self.retire(Status::Unsynchronised);
        }
        let page = self.memory.as_ref();
        let disruption = mark.map_or(0, |mark| mark.disruption);
        let generation = mark.and_then(|mark| mark.generation);
        // Who sees that none is watched, or a word of the new mark, sees the withdrawal.
        words::order_stores();
        words::store(page, header::MACHINE_WATCHED, 0);
        words::order_stores();
        words::store(page, header::MACHINE, disruption);
        words::store(page, header::GENERATION, generation.unwrap_or(0));
        let check = generation.map_or(0, |generation| layout::generation_check(disruption, generation));
        words::store(page, header::GENERATION_CHECK, check);
        words::order_stores();
        words::store(page, header::MACHINE_WATCHED, mark.is_some().into());
    }

    /// Makes `publication`, of a clock with one server, what readers see. Never waits.
    pub fn publish(&mut self, publication: &Publication) {
        self.publish_voted(publication, &VotedPart::alone(&publication.estimate));
    }

    /// Makes `publication` and what the servers' vote adds to it what readers see. Never waits.
    pub fn publish_voted(&mut self, publication: &Publication, voted: &VotedPart) {
        self.send(Slot::of(publication, voted));
    }

    /// Lowers the status of what was published last, and leaves the rest: the writer is about to stop, or knows no
    /// more.
    ///
    /// With [`Status::Unsynchronised`] readers get no more readings from it; that is for the end of the counter's
    /// epoch.
    pub fn retire(&mut self, status: Status) {
        if let Ok((sequence, last)) = words::read(self.memory.as_ref(), PAGE, &layout::WHOLE)
            && let Some(slot) = Slot::again(sequence, last)
        {
            self.send(slot.lowered(status));
        }
    }

    /// The memory that the page lies in.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    fn send(&mut self, slot: Slot) {
        self.sequence = words::next(self.sequence);
        let tag = slot.0[slot::TAG];
        words::publish(self.memory.as_ref(), PAGE, self.sequence, &slot.summed(self.sequence));
        words::store(self.memory.as_ref(), header::TAG, tag);
    }
}

/// The words of a page's header, up to its check word.
fn header_words(boot: Option<BootId>) -> [u64; header::CHECK + 1] {
    let boot = boot.map_or(u128::MAX, BootId::bits);
    let mut words = [layout::MAGIC, layout::VERSION, layout::PAGE_BYTES as u64, (boot >> 64) as u64, boot as u64, 0];
    let [covered @ .., check] = &mut words;
    *check = layout::sum(0, covered);
    words
}

fn has_header(page: &PageWords, header: &[u64]) -> bool {
    header.iter().enumerate().all(|(place, word)| words::load(page, place) == *word)
}

/// Empties the page. The magic number goes first and comes last: half a header is not a page.
fn format(page: &PageWords, header: &[u64]) {
    words::store(page, header::MAGIC, 0);
    words::order_stores();
    words::store(page, header::LATEST, 0);
    words::store(page, header::TAG, 0);
    write_header(page, header);
}

fn write_header(page: &PageWords, header: &[u64]) {
    for (place, word) in header.iter().enumerate().skip(1) {
        words::store(page, place, *word);
    }
    words::order_stores();
    words::store(page, header::MAGIC, layout::MAGIC);
}

/// The words of a slot, at the places that `layout::slot` names.
struct Slot([u64; SLOT_WORDS]);

impl Slot {
    fn of(publication: &Publication, voted: &VotedPart) -> Self {
        let mut slot = Slot([0; SLOT_WORDS]);
        slot.put_circumstances(publication);
        slot.put_estimate(&publication.estimate);
        slot.put_errors(&publication.estimate);
        slot.put_vote(voted, &publication.estimate);
        slot.0[slot::WINDOW] = window(publication, &slot);
        slot.0[slot::SHORT] = short(&publication.estimate);
        slot
    }

    /// The words of a slot as they were read back; `None` where they do not check.
    fn again(sequence: u64, words: [u64; SLOT_WORDS - 1]) -> Option<Self> {
        let mut slot = Slot([0; SLOT_WORDS]);
        slot.0.iter_mut().skip(1).zip(words).for_each(|(to, from)| *to = from);
        if slot.sum(sequence, &layout::ALL) != slot.0[slot::CHECK_ALL] {
            return None;
        }
        if slot.sum(sequence, &layout::STRICT) != slot.0[slot::CHECK_STRICT] {
            // An earlier writer said nothing of it, nor of the noise in the vote's word.
            (slot.0[slot::BOUND_STRICT], slot.0[slot::BOUND_STRICT_PER_TICK]) = (UNKNOWN, UNKNOWN);
        }
        if slot.sum(sequence, &layout::MORE) != slot.0[slot::CHECK_MORE] {
            (slot.0[slot::DIFFERENCE_UNCERTAINTY], slot.0[slot::SHORT]) = (slot.0[slot::DIFFERENCE_BOUND], 0);
        }
        Some(slot)
    }

    fn put_circumstances(&mut self, publication: &Publication) {
        let Publication { counter_id, epoch, epoch_begin, estimate, leap, valid_until, server } = publication;
        let offset = if estimate.time.whole_seconds() < leap.at { leap.before } else { leap.after };
        self.0[slot::STATE] = u64::from(status_code(estimate.status)) << state::STATUS
            | u64::from(estimate.period.shift()) << state::PERIOD_SHIFT
            | u64::from(estimate.difference_period.shift()) << state::DIFFERENCE_SHIFT
            | u64::from(offset as u32) << state::TAI_OFFSET;
        self.0[slot::UTC_SECONDS] = estimate.time.whole_seconds().wrapping_sub(offset.into()) as u64;
        self.0[slot::TAG] = layout::tag_of(*counter_id, *epoch);
        self.0[slot::EPOCH_BEGIN] = epoch_begin.raw();
        self.0[slot::VALID_UNTIL] = valid_until.raw();
        self.0[slot::LEAP_AT] = leap.at as u64;
        self.0[slot::LEAP_OFFSETS] = u64::from(leap.before as u32) | u64::from(leap.after as u32) << 32;
        self.0[slot::SERVER] =
            server.map_or(MISSING, |server| u64::from(server.stratum) << 32 | u64::from(server.reference_id));
    }

    fn put_estimate(&mut self, estimate: &Estimate) {
        self.0[slot::COUNTER] = estimate.counter.raw();
        self.0[slot::FRACTION] = estimate.time.since_origin().units() as u64;
        self.0[slot::PERIOD] = estimate.period.mantissa();
        self.0[slot::DIFFERENCE_PERIOD] = estimate.difference_period.mantissa();
        self.0[slot::DIFFERENCE_BOUND] = estimate.difference_bound.units();
        self.0[slot::DIFFERENCE_UNCERTAINTY] = estimate.difference_uncertainty.units();
    }

    fn put_errors(&mut self, estimate: &Estimate) {
        self.0[slot::BOUND_GROWTH] = estimate.bound_growth.units();
        self.0[slot::UNCERTAINTY_GROWTH] = estimate.uncertainty_growth.units();
        (self.0[slot::BOUND], self.0[slot::BOUND_PER_TICK]) =
            error_words(estimate.bound.as_span(), estimate.bound_growth, estimate.period);
        (self.0[slot::UNCERTAINTY], self.0[slot::UNCERTAINTY_PER_TICK]) =
            error_words(estimate.uncertainty.as_span(), estimate.uncertainty_growth, estimate.period);
    }

    fn put_vote(&mut self, VotedPart { strict, counts }: &VotedPart, estimate: &Estimate) {
        (self.0[slot::BOUND_STRICT], self.0[slot::BOUND_STRICT_PER_TICK]) =
            error_words(strict.bound.as_span(), strict.growth, estimate.period);
        self.0[slot::BOUND_STRICT_GROWTH] = strict.growth.units();
        self.0[slot::VOTE] = u64::from(counts.deciders) << vote::DECIDERS
            | u64::from(counts.tolerated) << vote::TOLERATED
            | u64::from(counts.believed) << vote::BELIEVED
            | noise_field(estimate) << vote::NOISE;
    }

    fn lowered(mut self, status: Status) -> Self {
        let old = (self.0[slot::STATE] >> state::STATUS) & 0xff;
        let lower = old.min(u64::from(status_code(status)));
        self.0[slot::STATE] = (self.0[slot::STATE] & !(0xff << state::STATUS)) | lower << state::STATUS;
        if status == Status::Unsynchronised {
            self.0[slot::WINDOW] = 0;
        }
        self
    }

    /// The words after the sequence, with their check words.
    fn summed(mut self, sequence: u64) -> [u64; SLOT_WORDS - 1] {
        self.0[slot::CHECK_ABSOLUTE] = self.sum(sequence, &layout::ABSOLUTE);
        self.0[slot::CHECK_DIFFERENCE] = self.sum(sequence, &layout::DIFFERENCE);
        self.0[slot::CHECK_ALL] = self.sum(sequence, &layout::ALL);
        self.0[slot::CHECK_STRICT] = self.sum(sequence, &layout::STRICT);
        self.0[slot::CHECK_MORE] = self.sum(sequence, &layout::MORE);
        let [_, payload @ ..] = self.0;
        payload
    }

    /// The sum over all words at `places` but the last, which is for the sum itself.
    fn sum<const N: usize>(&self, sequence: u64, places: &[usize; N]) -> u64 {
        debug_assert!(N > 0 && places.iter().all(|place| *place < SLOT_WORDS), "places of the layout");
        let words = places.map(|place| self.0.get(place).copied().unwrap_or_default());
        words.split_last().map_or(0, |(_, covered)| layout::sum(sequence, covered))
    }
}

/// The number that stands for a status in a page; never 0.
pub(crate) const fn status_code(status: Status) -> u8 {
    match status {
        Status::Unsynchronised => 1,
        Status::WarmingUp => 2,
        Status::Holdover => 3,
        Status::Synchronised => 4,
    }
}

/// An error figure and its growth per tick as words, both rounded up, and the figure by one unit more, because readers
/// round the growth down. What does not fit is not known.
fn error_words(error: Span, growth: GrowthRate, period: Period) -> (u64, u64) {
    debug_assert!(!error.is_negative(), "neither a bound nor an uncertainty has a sign");
    let per_tick = (u128::from(growth.units()) * u128::from(period.mantissa())) >> (32 + u32::from(period.shift()));
    let error = (error.units() as u128).div_ceil(1 << 32) + 1;
    match (u64::try_from(error), u64::try_from(per_tick + 1)) {
        (Ok(error), Ok(per_tick)) if growth.units() != u64::MAX => (error, per_tick),
        _ => (UNKNOWN, UNKNOWN),
    }
}

/// The noise for its field of the vote's word, rounded as the uncertainty is: never 0.
fn noise_field(estimate: &Estimate) -> u64 {
    let (noise, _) = error_words(estimate.noise.as_span(), estimate.uncertainty_growth, estimate.period);
    noise.min(UNKNOWN_NOISE)
}

/// How many ticks from the reference on the plain conversion holds: no leap second passes, the status stands, no sum
/// overflows.
fn window(publication: &Publication, slot: &Slot) -> u64 {
    let estimate = &publication.estimate;
    let known = slot.0[slot::BOUND].max(slot.0[slot::UNCERTAINTY]) < 1 << 63;
    let in_epoch = !publication.epoch_begin.is_after(estimate.counter);
    if !known || !in_epoch || estimate.status == Status::Unsynchronised {
        return 0;
    }
    let valid = (publication.valid_until - estimate.counter + Ticks::from_raw(1)).raw();
    let leap = Span::from_secs(publication.leap.at) - estimate.time.since_origin();
    let before_leap =
        if leap.is_negative() || leap == Span::ZERO { i64::MAX } else { safely_within(leap, estimate.period) };
    valid.min(before_leap).max(0) as u64
}

/// Up to this many ticks the difference clock is certainly the better one: its uncertainty is at most half the noise of
/// the time, and so less than that of two times; and its bound is at most that of the time. Where the time is worse
/// than usual, stamps of the past may have better ones: then nothing is certain.
fn short(estimate: &Estimate) -> u64 {
    if estimate.status != Status::Synchronised {
        return 0;
    }
    let over = |error: Span, rate: GrowthRate| error.as_seconds() / rate.as_rate().as_fraction();
    let by_uncertainty = 0.5 * over(estimate.noise.as_span(), estimate.difference_uncertainty);
    let by_bound = over(estimate.bound.as_span(), estimate.difference_bound);
    if by_uncertainty.is_nan() || by_bound.is_nan() {
        return 0;
    }
    let ticks = estimate.difference_period.ticks_in(Span::from_seconds(by_uncertainty.min(by_bound)));
    ticks.raw().max(0).unsigned_abs()
}

/// A number of ticks that certainly passes within `span`: what a float says, less more than its rounding.
fn safely_within(span: Span, period: Period) -> i64 {
    debug_assert!(!span.is_negative(), "less of it would be more");
    let ticks = period.ticks_in(span).raw();
    ticks - (ticks >> 40) - 2
}

//! The rounds that may still matter: when each message was sent, and when each receiver perceived it.

/// No such event. No clock shows this time.
pub(super) const NEVER: i64 = i64::MIN;

/// The messages of one round.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundMessages {
    /// A row for each sender, [`ROW_HEAD`] and a place for each receiver wide: when it sent, how many correct
    /// processes have perceived its message, and when each receiver did. All of a broadcast lies together.
    cells: Vec<i64>,
    /// How wide a row is.
    stride: usize,
    /// Messages that are sent and not released.
    pub(super) unreleased: u32,
}

/// When a message was sent and perceived, or [`NEVER`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) sent: i64,
    pub(super) perceived: i64,
}

/// Where a row has when its message was sent ...
const SENT: usize = 0;
/// ... how many correct processes have perceived it ...
const ARRIVED: usize = 1;
/// ... and, from here on, when each receiver has.
const ROW_HEAD: usize = 2;

/// Whether an event was the first of its kind in its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    New,
    Duplicate,
}

impl RoundMessages {
    fn new(processes: usize, receivers: usize) -> Self {
        let stride = receivers + ROW_HEAD;
        let mut messages = RoundMessages { cells: vec![NEVER; processes * stride], stride, unreleased: 0 };
        messages.clear();
        messages
    }

    fn move_origin(&mut self, by: i64) {
        for (place, cell) in self.cells.iter_mut().enumerate() {
            if place % self.stride != ARRIVED && *cell != NEVER {
                *cell = cell.saturating_sub(by).max(NEVER + 1);
            }
        }
    }

    fn clear(&mut self) {
        self.cells.fill(NEVER);
        self.cells.iter_mut().skip(ARRIVED).step_by(self.stride).for_each(|arrived| *arrived = 0);
        self.unreleased = 0;
    }

    pub(super) fn send(&mut self, sender: usize, at: i64) -> Novelty {
        let slot = &mut self.cells[sender * self.stride + SENT];
        if *slot != NEVER {
            return Novelty::Duplicate;
        }
        *slot = at;
        self.unreleased += 1;
        Novelty::New
    }

    /// `weight` is 1 for a correct receiver, 0 for another.
    #[inline]
    pub(super) fn perceive(&mut self, sender: usize, receiver: usize, at: i64, weight: u32) -> Novelty {
        let row = sender * self.stride;
        let slot = &mut self.cells[row + ROW_HEAD + receiver];
        if *slot != NEVER {
            return Novelty::Duplicate;
        }
        *slot = at;
        self.cells[row + ARRIVED] += i64::from(weight);
        Novelty::New
    }

    #[inline]
    pub(super) fn sent(&self, sender: usize) -> i64 {
        self.cells[sender * self.stride + SENT]
    }

    /// When each receiver perceived the message of `sender`.
    #[inline]
    pub(super) fn perceived(&self, sender: usize) -> &[i64] {
        &self.cells[sender * self.stride..][ROW_HEAD..self.stride]
    }

    /// The messages of all senders to `receiver`, in the order of senders.
    #[inline]
    pub(super) fn to(&self, receiver: usize) -> impl Iterator<Item = Times> {
        let column = ROW_HEAD + receiver;
        let mut rest = self.cells.as_slice();
        std::iter::from_fn(move || {
            let (row, others) = rest.split_at_checked(self.stride)?;
            rest = others;
            Some(Times { sent: *row.get(SENT)?, perceived: *row.get(column)? })
        })
    }

    #[inline]
    pub(super) fn arrived(&self, sender: usize) -> u32 {
        self.cells[sender * self.stride + ARRIVED] as u32
    }
}

/// Rounds in a row, from the oldest that may still matter.
#[derive(Clone, Debug)]
pub(super) struct RoundWindow {
    processes: usize,
    /// How many of them perceive, from the first on: all, unless the pass is watched.
    receivers: usize,
    oldest: u64,
    /// Rounds from here to the oldest were finished; of those before, some may not have been.
    finished_from: u64,
    /// How many rounds there are.
    length: u64,
    /// Round r lies at r modulo how many places there are, a power of two; places of no round are empty.
    places: Vec<RoundMessages>,
    spare: Vec<RoundMessages>,
    rounds_max: u64,
}

/// Where a round lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoundPlace {
    /// In the window, maybe after growing.
    Inside,
    /// Given up already.
    Past,
    /// So far ahead that older rounds must be given up first.
    Ahead,
}

impl RoundWindow {
    pub(super) fn new(processes: usize, rounds_max: u64) -> Self {
        RoundWindow {
            processes,
            receivers: processes,
            oldest: 0,
            finished_from: 0,
            length: 0,
            places: vec![RoundMessages::default()],
            spare: vec![],
            rounds_max: rounds_max.max(2),
        }
    }

    /// A window, still empty, in which only the first process perceives.
    pub(super) fn of_one_receiver(self, rounds_max: u64) -> Self {
        RoundWindow { receivers: 1, rounds_max: rounds_max.max(2), ..self }
    }

    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// The round after the newest.
    pub(super) fn end(&self) -> u64 {
        self.oldest + self.length
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// An empty window begins wherever the log does.
    pub(super) fn begin_at(&mut self, round: u64) {
        self.oldest = self.oldest.max(round);
        self.finished_from = self.oldest;
    }

    #[inline]
    pub(super) fn reach(&self, round: u64) -> RoundPlace {
        match round.checked_sub(self.oldest) {
            None => RoundPlace::Past,
            Some(ahead) if ahead < self.rounds_max => RoundPlace::Inside,
            Some(_) => RoundPlace::Ahead,
        }
    }

    /// Whether `round` can be what comes after the rounds in the window, rather than an arbitrary number.
    pub(super) fn may_follow(&self, round: u64) -> bool {
        round - self.oldest < self.rounds_max.saturating_add(self.length)
    }

    /// The messages of `round`; `None` unless it is inside.
    #[inline]
    pub(super) fn open(&mut self, round: u64) -> Option<&mut RoundMessages> {
        // A past round is far ahead in wrapping arithmetic.
        let ahead = round.wrapping_sub(self.oldest);
        if ahead >= self.length {
            if ahead >= self.rounds_max {
                return None;
            }
            self.extend(ahead + 1);
        }
        let place = self.place(round);
        self.places.get_mut(place)
    }

    #[cold]
    fn extend(&mut self, length: u64) {
        if length > self.places.len() as u64 {
            let wider = (length as usize).next_power_of_two();
            let mut places = vec![RoundMessages::default(); wider];
            for round in (0..self.length).map(|ahead| self.oldest + ahead) {
                let place = self.place(round);
                places[round as usize & (wider - 1)] = std::mem::take(&mut self.places[place]);
            }
            self.places = places;
        }
        for round in (self.length..length).map(|ahead| self.oldest + ahead) {
            let place = self.place(round);
            self.places[place] = self.spare.pop().unwrap_or_else(|| RoundMessages::new(self.processes, self.receivers));
        }
        self.length = length;
    }

    #[inline]
    fn place(&self, round: u64) -> usize {
        round as usize & (self.places.len() - 1)
    }

    #[inline]
    pub(super) fn round(&self, round: u64) -> Option<&RoundMessages> {
        let inside = round.wrapping_sub(self.oldest) < self.length;
        inside.then(|| &self.places[self.place(round)])
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&RoundMessages> {
        self.round(self.oldest)
    }

    /// Counts from an origin that is later.
    pub(super) fn move_origin(&mut self, by: i64) {
        self.places.iter_mut().for_each(|messages| messages.move_origin(by));
    }

    /// Whether `round` was retired with nothing outstanding.
    pub(super) fn was_finished(&self, round: u64) -> bool {
        (self.finished_from..self.oldest).contains(&round)
    }

    /// Drops the oldest round, with messages of it outstanding.
    pub(super) fn give_up(&mut self) {
        self.retire();
        self.finished_from = self.oldest;
    }

    /// Drops the oldest round, which is finished.
    pub(super) fn retire(&mut self) {
        if self.length > 0 {
            let place = self.place(self.oldest);
            let mut round = std::mem::take(&mut self.places[place]);
            round.clear();
            self.spare.push(round);
            self.length -= 1;
        }
        self.oldest += 1;
    }
}

//! The stamps of all packets of a run, and how the kernel's events find their packets.

use crate::events::PacketEvent;
use crate::payload::{Direction, LENGTHS};
use crate::site::Site;
use ffclock_units::{Counter, Ticks};

const SITES: usize = Site::ALL.len();
/// No stamp. A real one lies so far from the beginning of a run only after centuries.
const MISSING: i64 = i64::MIN;
/// No stamp of a run lies so far from its beginning, and the distance of two nearer ones fits into 64 bits.
pub(crate) const BEYOND: u64 = 1 << 62;

/// Ticks since the beginning of the run, by packet and site.
#[derive(Clone, Debug)]
pub struct PacketPassages {
    begin: Counter,
    rows: Vec<[i64; SITES]>,
    /// By code: replies in the order in which they came.
    replies: Vec<Vec<(i64, u64)>>,
}

/// A stamp further from the beginning of the run than any can be: here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond(pub Site);

/// Where an event was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// It is the first event of its packet at that site.
    First,
    /// An earlier event of the packet is noted at that site.
    Again,
    /// It belongs to no packet of the run.
    Nowhere,
}

impl Default for PacketPassages {
    /// No packets, and stamps that count from 0.
    fn default() -> Self {
        PacketPassages::new(Counter::from_raw(0))
    }
}

impl PacketPassages {
    /// No packets yet; no stamp lies before `begin`.
    pub fn new(begin: Counter) -> Self {
        PacketPassages { begin, rows: Vec::new(), replies: vec![Vec::new(); LENGTHS as usize] }
    }

    /// Appends a packet whose stamps are known in ticks since the beginning of the run, as a record has them.
    ///
    /// # Errors
    /// A stamp of 2^62 ticks or more; nothing is appended then.
    pub fn restore(&mut self, stamps: impl IntoIterator<Item = (Site, i64)>) -> Result<(), Beyond> {
        let mut row = [MISSING; SITES];
        for (site, ticks) in stamps {
            if ticks.unsigned_abs() >= BEYOND {
                return Err(Beyond(site));
            }
            row[site.index()] = ticks;
        }
        self.rows.push(row);
        Ok(())
    }

    /// How many packets were sent.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no packet was sent.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Begins the row of the next packet: user space is about to send it.
    pub fn send(&mut self, counter: Counter) {
        let mut row = [MISSING; SITES];
        row[Site::UserSend.index()] = self.ticks(counter);
        self.rows.push(row);
    }

    /// Notes a stamp of a packet that is known by its identity. The first one counts.
    pub fn note(&mut self, sequence: u64, site: Site, counter: Counter) -> Placement {
        let ticks = self.ticks(counter);
        let placed = self.place(sequence, site, ticks);
        if placed == Placement::First && site == Site::UserReceive {
            self.replies[(sequence % LENGTHS) as usize].push((ticks, sequence));
        }
        placed
    }

    /// Notes an event that is known by its code only: it belongs to the last request that left user space before it, or
    /// to the first reply that reached user space after it.
    pub fn note_event(&mut self, event: &PacketEvent) -> Placement {
        let ticks = self.ticks(event.counter);
        self.sequence_of(event).map_or(Placement::Nowhere, |sequence| self.place(sequence, event.site, ticks))
    }

    /// Which packet an event belongs to.
    pub fn sequence_of(&self, event: &PacketEvent) -> Option<u64> {
        let ticks = self.ticks(event.counter);
        match event.site.direction() {
            Direction::Outgoing => self.last_sent_before(ticks, event.code),
            Direction::Incoming => self.first_received_after(ticks, event.code),
        }
    }

    /// A reading of the counter as the stamps are kept.
    pub fn since_begin(&self, counter: Counter) -> Ticks {
        counter - self.begin
    }

    /// When a packet passed a site, since the beginning of the run.
    pub fn at(&self, sequence: usize, site: Site) -> Option<Ticks> {
        let ticks = *self.rows.get(sequence)?.get(site.index())?;
        (ticks != MISSING).then(|| Ticks::from_raw(ticks))
    }

    /// How many packets have a stamp of this site.
    pub fn count(&self, site: Site) -> usize {
        self.rows.iter().filter(|row| row[site.index()] != MISSING).count()
    }

    /// From one site to another, for every packet that has both.
    pub fn between(&self, from: Site, to: Site) -> impl Iterator<Item = (usize, Ticks)> {
        self.rows.iter().enumerate().filter_map(move |(sequence, row)| {
            let (from, to) = (row[from.index()], row[to.index()]);
            (from != MISSING && to != MISSING).then(|| (sequence, Ticks::from_raw(to) - Ticks::from_raw(from)))
        })
    }

    fn ticks(&self, counter: Counter) -> i64 {
        (counter - self.begin).raw()
    }

    fn place(&mut self, sequence: u64, site: Site, ticks: i64) -> Placement {
        let row = usize::try_from(sequence).ok().and_then(|sequence| self.rows.get_mut(sequence));
        let Some(place) = row.and_then(|row| row.get_mut(site.index())) else { return Placement::Nowhere };
        if *place != MISSING {
            // The drivers of some devices hand one packet over in two steps: the first one counts.
            *place = ticks.min(*place);
            return Placement::Again;
        }
        *place = ticks;
        Placement::First
    }

    fn last_sent_before(&self, ticks: i64, code: u64) -> Option<u64> {
        let sent = self.rows.partition_point(|row| row[Site::UserSend.index()] <= ticks) as u64;
        let last = sent.checked_sub(1)?;
        last.checked_sub((last % LENGTHS + LENGTHS - code) % LENGTHS)
    }

    fn first_received_after(&self, ticks: i64, code: u64) -> Option<u64> {
        let replies = self.replies.get(usize::try_from(code).ok()?)?;
        let (_, sequence) = *replies.get(replies.partition_point(|(received, _)| *received < ticks))?;
        // What came before the request left is another packet of the same length: another probe uses this device.
        let sent = self.rows.get(usize::try_from(sequence).ok()?)?[Site::UserSend.index()];
        (sent <= ticks).then_some(sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u64) -> Counter {
        Counter::from_raw(1_000_000 + ticks)
    }

    fn run(packets: u64) -> PacketPassages {
        let mut passages = PacketPassages::new(at(0));
        for sequence in 0..packets {
            passages.send(at(sequence * 100));
            passages.note(sequence, Site::UserReceive, at(sequence * 100 + 70));
        }
        passages
    }

    #[test]
    fn events_find_their_packets_by_time_and_code() {
        let mut passages = run(1000);
        for sequence in [0, 127, 128, 400, 999] {
            let code = sequence % LENGTHS;
            let out = PacketEvent { site: Site::DriverOut, counter: at(sequence * 100 + 10), code };
            let back = PacketEvent { site: Site::StackIn, counter: at(sequence * 100 + 60), code };
            assert_eq!((passages.note_event(&out), passages.note_event(&back)), (Placement::First, Placement::First));
            let row = sequence as usize;
            assert_eq!(passages.at(row, Site::DriverOut), Some(Ticks::from_raw(sequence as i64 * 100 + 10)));
            assert_eq!(passages.at(row, Site::StackIn), Some(Ticks::from_raw(sequence as i64 * 100 + 60)));
        }
        assert_eq!(passages.count(Site::DriverOut), 5);
    }

    #[test]
    fn an_event_before_the_first_packet_or_after_the_last_reply_belongs_to_no_packet() {
        let mut passages = run(3);
        let early = PacketEvent { site: Site::DriverOut, counter: at(5), code: 2 };
        let late = PacketEvent { site: Site::StackIn, counter: at(5000), code: 2 };
        assert_eq!((passages.note_event(&early), passages.note_event(&late)), (Placement::Nowhere, Placement::Nowhere));
    }

    #[test]
    fn what_came_before_the_request_left_belongs_to_another_packet() {
        let mut passages = PacketPassages::new(at(0));
        passages.send(at(500));
        passages.note(0, Site::UserReceive, at(900));
        let early = PacketEvent { site: Site::StackIn, counter: at(400), code: 0 };
        assert_eq!(passages.note_event(&early), Placement::Nowhere);
        let fitting = PacketEvent { site: Site::StackIn, counter: at(800), code: 0 };
        assert_eq!(passages.note_event(&fitting), Placement::First);
    }

    #[test]
    fn stamps_centuries_away_are_refused() {
        let mut passages = PacketPassages::default();
        let furthest = (1 << 62) - 1;
        for ticks in [1 << 62, -1 << 62, i64::MAX, i64::MIN] {
            let refused = passages.restore([(Site::UserSend, 0), (Site::TapIn, ticks)]);
            assert_eq!(refused, Err(Beyond(Site::TapIn)), "{ticks}");
        }
        assert_eq!(passages.restore([(Site::UserSend, -furthest), (Site::UserReceive, furthest)]), Ok(()));
        let delays: Vec<_> = passages.between(Site::UserSend, Site::UserReceive).collect();
        assert_eq!(delays, [(0, Ticks::from_raw(2 * furthest))]);
    }

    #[test]
    fn the_first_of_two_stamps_counts() {
        let mut passages = run(2);
        assert_eq!(passages.note(1, Site::TapIn, at(150)), Placement::First);
        assert_eq!(passages.note(1, Site::TapIn, at(140)), Placement::Again);
        assert_eq!(passages.at(1, Site::TapIn), Some(Ticks::from_raw(140)));
        assert_eq!(passages.note(7, Site::TapIn, at(140)), Placement::Nowhere);
        let delays: Vec<_> = passages.between(Site::TapIn, Site::UserReceive).collect();
        assert_eq!(delays, [(1, Ticks::from_raw(30))]);
    }
}

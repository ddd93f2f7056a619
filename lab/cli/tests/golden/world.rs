//! The worlds of the generated traces, in integers only, so that they are the same everywhere and owe nothing to the
//! code under test.
//!
//! True time runs in picoseconds since the beginning of a trace. An oscillator drives the counter, and its rate changes
//! each second; a segment says how requests, path, and server behave for a while. The truth of a row is the
//! true time of the counter reading when the reply was stamped: what delays the stamp belongs to the way back.

/// A time or a length of time in picoseconds.
pub type Ps = i128;
pub const US: Ps = 1_000_000;
pub const MS: Ps = 1_000 * US;
pub const SECOND: Ps = 1_000 * MS;
pub const HOUR: u64 = 3_600;

/// When the leap second of 2016 was over, in UTC seconds since 1970 (IERS Bulletin C 52).
pub const LEAP_END: i128 = 1_483_228_800;

/// A xorshift generator of 64 bits with the shifts 13, 7, 17 (Marsaglia, Xorshift RNGs, 2003).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..16 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From 0 to below `end`, evenly.
    fn below(&mut self, end: i128) -> i128 {
        (i128::from(self.next()) * end) >> 64
    }

    /// Nearly exponential, with this mean: even within each halving of the probability.
    fn exponential(&mut self, mean: Ps) -> Ps {
        let halvings = i128::from(self.next().trailing_zeros());
        (halvings * mean + self.below(mean)) * 2 / 3
    }

    /// Heavy-tailed: beyond `scale` times 2^n with the probability 4^-n, up to n = 7.
    fn heavy(&mut self, scale: Ps) -> Ps {
        let doublings = (self.next().trailing_zeros() / 2).min(7);
        (scale + self.below(scale)) << doublings
    }
}

/// What makes a counter count. Rates in 10^-15.
#[derive(Clone, Copy)]
pub struct Oscillator {
    pub hertz: i128,
    /// The constant deviation.
    pub skew: i128,
    /// The step of the random walk of the rate each second, up or down.
    pub walk: i128,
    /// Largest deviation and length in seconds of a triangular wave.
    pub wave: (i128, i128),
}

const UNIT_RATE: i128 = 1_000_000_000_000_000;
/// The walk is drawn back by this part of itself each second.
const PULL: i128 = 8_192;

impl Oscillator {
    /// The deviation by the wave in a second.
    fn waved(&self, second: i128) -> i128 {
        let (amplitude, length) = self.wave;
        let place = second % length;
        let up = if 2 * place < length { place } else { length - place };
        amplitude * (4 * up - length) / length
    }
}

/// A counter that runs.
struct Running {
    oscillator: Oscillator,
    random: Random,
    walked: i128,
    /// Ticks in 10^-15 at the beginning of each second so far.
    phases: Vec<i128>,
}

impl Running {
    fn new(oscillator: Oscillator, seed: u64) -> Self {
        Running { oscillator, random: Random::new(seed ^ 0x0c10_cc0c), walked: 0, phases: vec![0] }
    }

    /// The reading at a time since the beginning of the trace.
    fn at(&mut self, time: Ps) -> u64 {
        let second = (time / SECOND) as usize;
        while self.phases.len() < second + 2 {
            self.run_a_second();
        }
        let (begin, end) = (self.phases[second], self.phases[second + 1]);
        ((begin + (end - begin) * (time % SECOND) / SECOND) / UNIT_RATE) as u64
    }

    fn run_a_second(&mut self) {
        let Oscillator { hertz, skew, walk, .. } = self.oscillator;
        self.walked += if self.random.next() >> 63 == 0 { walk } else { -walk } - self.walked / PULL;
        let rate = UNIT_RATE + skew + self.walked + self.oscillator.waved(self.phases.len() as i128);
        self.phases.push(self.phases[self.phases.len() - 1] + hertz * rate);
    }
}

/// The way to the server and back.
#[derive(Clone, Copy)]
pub struct Path {
    pub forward: Ps,
    pub backward: Ps,
    /// The mean wait of an ordinary packet, each way.
    pub queueing: Ps,
    /// How many packets of a thousand meet heavy traffic, and how long they wait at least.
    pub heavy: (i128, Ps),
}

/// The server, and what it says about itself.
#[derive(Clone, Copy)]
pub struct Server {
    /// Server minus true time.
    pub ahead: Ps,
    pub stratum: u8,
    pub refid: &'static str,
    pub root_distance: Ps,
    pub leap: &'static str,
}

/// A stretch of time in which nothing changes.
#[derive(Clone, Copy)]
pub struct Segment {
    pub seconds: u64,
    pub poll: Ps,
    pub path: Path,
    pub server: Server,
    /// How many requests of a thousand get no reply.
    pub lost: i128,
    /// Another epoch is another counter.
    pub epoch: u64,
}

/// How a trace is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Whole nanoseconds, the truth of the reply alone, nothing about the server.
    Nanoseconds,
    /// Seconds with twelve decimals, and the truth of the request as well.
    Decimals,
    /// Whole nanoseconds and all that the server says, and the epoch.
    Everything,
}

/// Everything outside the estimator.
pub struct World {
    pub seed: u64,
    /// UTC at the beginning, in seconds since 1970.
    pub start: i128,
    pub oscillator: Oscillator,
    /// Remarks before the header.
    pub remarks: &'static str,
    pub form: Form,
    pub segments: Vec<Segment>,
}

/// The reply to a request. Times are UTC.
pub struct Reply {
    pub server_in: Ps,
    pub server_out: Ps,
    pub received: u64,
    pub true_received: Ps,
}

/// One request.
pub struct Row {
    pub sequence: u64,
    pub sent: u64,
    pub true_sent: Ps,
    pub reply: Option<Reply>,
    pub segment: Segment,
}

impl World {
    /// All requests.
    pub fn rows(&self) -> Vec<Row> {
        let mut random = Random::new(self.seed);
        let mut rows = Vec::new();
        let (mut counter, mut epoch) = (Running::new(self.oscillator, self.seed), 0);
        let mut begin = 0;
        for segment in &self.segments {
            if segment.epoch != epoch {
                epoch = segment.epoch;
                counter = Running::new(self.oscillator, self.seed + epoch);
            }
            let end = begin + Ps::from(segment.seconds) * SECOND;
            let mut next = begin;
            while next < end {
                let sent = next + random.below(segment.poll / 64);
                let sequence = rows.len() as u64;
                rows.push(self.row((&mut random, &mut counter), (sequence, sent), *segment));
                next += segment.poll;
            }
            begin = end;
        }
        rows
    }

    fn row(
        &self,
        (random, counter): (&mut Random, &mut Running),
        (sequence, sent): (u64, Ps),
        segment: Segment,
    ) -> Row {
        let Path { forward, backward, queueing, heavy } = segment.path;
        let mut delay = |floor: Ps| {
            let heavy_wait = if random.below(1_000) < heavy.0 { random.heavy(heavy.1) } else { 0 };
            floor + random.exponential(queueing) + heavy_wait
        };
        let server_in = sent + delay(forward);
        let back = delay(backward);
        let server_out = server_in + 12 * US + random.exponential(6 * US);
        let received = server_out + back;
        let lost = random.below(1_000) < segment.lost;
        let start = counter.at(sent);
        let stop = counter.at(received);
        let reply = Reply {
            server_in: self.utc(server_in + segment.server.ahead),
            server_out: self.utc(server_out + segment.server.ahead),
            received: stop,
            true_received: self.utc(received),
        };
        Row { sequence, sent: start, true_sent: self.utc(sent), reply: (!lost).then_some(reply), segment }
    }

    /// UTC at a time of the trace. UTC of the leap second itself cannot be distinguished from the second before it, so
    /// no world has exchanges there.
    fn utc(&self, time: Ps) -> Ps {
        let before = self.start * SECOND + time;
        let crosses = self.start < LEAP_END;
        let is_within = crosses && (LEAP_END * SECOND..(LEAP_END + 1) * SECOND).contains(&before);
        assert!(!is_within, "an exchange in the leap second says nothing");
        if crosses && before >= LEAP_END * SECOND { before - SECOND } else { before }
    }

    /// The trace as a CSV file.
    pub fn csv(&self) -> String {
        let mut text = self.remarks.to_owned();
        text += match self.form {
            Form::Nanoseconds => "seq,Ta,Tb_ns,Te_ns,Tf,true_recv_ns\n",
            Form::Decimals => "seq,Ta,Tb,Te,Tf,true_send,true_recv\n",
            Form::Everything => "seq,epoch,Ta,Tb_ns,Te_ns,Tf,true_recv_ns,stratum,refid,leap,root_distance\n",
        };
        self.rows().iter().for_each(|row| text += &self.line(row));
        text
    }

    fn line(&self, row: &Row) -> String {
        let Row { sequence, sent, true_sent, reply, segment } = row;
        let server = segment.server;
        let [server_in, server_out, truth] = match reply {
            None => [String::new(), String::new(), String::new()],
            Some(reply) => [reply.server_in, reply.server_out, reply.true_received].map(|time| self.written(time)),
        };
        let received = reply.as_ref().map_or_else(String::new, |reply| reply.received.to_string());
        let times = format!("{sent},{server_in},{server_out},{received}");
        match self.form {
            Form::Nanoseconds => format!("{sequence},{times},{truth}\n"),
            Form::Decimals => {
                let true_sent = if reply.is_some() { self.written(*true_sent) } else { String::new() };
                format!("{sequence},{times},{true_sent},{truth}\n")
            }
            Form::Everything => {
                let Server { stratum, refid, leap, .. } = server;
                let distance = decimal(server.root_distance);
                format!("{sequence},{},{times},{truth},{stratum},{refid},{leap},{distance}\n", segment.epoch)
            }
        }
    }

    fn written(&self, time: Ps) -> String {
        if self.form == Form::Decimals { decimal(time) } else { (time / 1_000).to_string() }
    }
}

/// Seconds with twelve decimals.
pub fn decimal(time: Ps) -> String {
    format!("{}.{:012}", time / SECOND, time % SECOND)
}

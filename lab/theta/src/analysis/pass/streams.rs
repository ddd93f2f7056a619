//! How far each stream of the log has been read.

/// The streams of a log. No event earlier than the watermark is still to come.
pub(super) struct Streams {
    read_ps: Vec<i64>,
    watermark_ps: i64,
}

impl Streams {
    pub(super) fn new(streams: usize) -> Self {
        Streams { read_ps: vec![i64::MIN; streams.max(1)], watermark_ps: i64::MIN }
    }

    /// Notes that a stream has been read up to a time.
    pub(super) fn read(&mut self, stream: usize, until_ps: i64) {
        self.read_ps[stream] = self.read_ps[stream].max(until_ps);
        self.watermark_ps = self.read_ps.iter().copied().min().unwrap_or(i64::MAX);
    }

    /// Counts from an origin that is later.
    pub(super) fn move_origin(&mut self, by_ps: i64) {
        for read_ps in self.read_ps.iter_mut().chain([&mut self.watermark_ps]) {
            *read_ps = read_ps.saturating_sub(by_ps);
        }
    }

    /// How far a stream has been read.
    pub(super) fn read_until(&self, stream: usize) -> i64 {
        self.read_ps[stream]
    }

    /// The stream that lags most.
    pub(super) fn slowest(&self) -> usize {
        let slowest = self.read_ps.iter().enumerate().min_by_key(|&(_, &time)| time);
        slowest.map_or(0, |(stream, _)| stream)
    }

    pub(super) fn watermark_ps(&self) -> i64 {
        self.watermark_ps
    }

    /// Ends all streams.
    pub(super) fn end(&mut self) {
        self.watermark_ps = i64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watermark_is_that_of_the_slowest_stream() {
        let mut streams = Streams::new(2);
        streams.read(0, 50);
        assert_eq!((streams.watermark_ps(), streams.slowest()), (i64::MIN, 1));
        streams.read(1, 70);
        streams.read(1, 60);
        assert_eq!((streams.watermark_ps(), streams.slowest(), streams.read_until(1)), (50, 0, 70));
        streams.end();
        assert_eq!(streams.watermark_ps(), i64::MAX);
    }
}

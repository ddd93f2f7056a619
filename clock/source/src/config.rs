//! The options of the conversation with a server, each declared once.

use ffclock_units::{Bound, Span};
use ffclock_wire::Version;

const POLL_MIN: Span = Span::from_millis(125);
/// The longest poll interval, and the limit of slowing down at a server's request.
pub(crate) const POLL_MAX: Span = Span::from_secs(1024);
const BURST_MAX: u32 = 64;
const TIMEOUT_MIN: Span = Span::from_millis(10);
const TIMEOUT_MAX: Span = Span::from_secs(10);
const DISTANCE_MIN: Bound = Bound::of(Span::from_micros(1));
const DISTANCE_MAX: Bound = Bound::of(Span::from_secs(16));
const UNREACHABLE_MAX: u32 = 64;

ffclock_units::options! {
    /// The options of the conversation with a server.
    pub struct SourceConfig {
        /// Time between two requests, where `keep_noise` is off.
        poll: Span = Span::from_secs(16), POLL_MIN => POLL_MAX;
        /// The shortest time between two requests that `keep_noise` may choose.
        poll_min: Span = Span::from_secs(16), POLL_MIN => POLL_MAX;
        /// The longest time between two requests that `keep_noise` may choose.
        poll_max: Span = POLL_MAX, POLL_MIN => POLL_MAX;
        /// Requests in the burst at the start, which gives a first estimate soon; 0 and 1 both mean no burst.
        burst_count: u32 = 8, 0 => BURST_MAX;
        /// Time between two requests of a burst; a poll that is shorter holds in a burst too.
        burst_interval: Span = Span::from_secs(2), POLL_MIN => POLL_MAX;
        /// Requests in the burst when a server answers again that had become unreachable; 0 means none.
        recovery_burst_count: u32 = 4, 0 => BURST_MAX;
        /// How long to wait for a reply before it counts as lost. The next request never leaves before that, so a
        /// poll shorter than this slows down while replies are lost.
        reply_timeout: Span = Span::from_secs(2), TIMEOUT_MIN => TIMEOUT_MAX;
        /// How many requests in a row must fail before the server counts as unreachable.
        unreachable_after: u32 = 8, 1 => UNREACHABLE_MAX;
        /// The largest error a server may claim of itself (half its root delay, its root dispersion and its precision).
        /// RFC 5905 suggests 1 s (MAXDIST); the default leaves room for a server behind a slow link.
        root_distance_max: Bound = Bound::of(Span::from_millis(1500)), DISTANCE_MIN => DISTANCE_MAX;
        /// Whether to ask in the interleaved mode (RFC 9769), in which a server that has it (chronyd with `xleave`,
        /// ffclock-serve) says exactly when its reply left, but one poll later. A server without it answers as usual.
        /// With polls above 64 s the requests are ordinary ones.
        interleaved: bool = false;
        /// Version of NTP to ask in: 3 or 4.
        version: u32 = 4, 3 => 4;
    }
}

impl SourceConfig {
    /// This configuration with every value clamped to its range. Fields that were assigned rather than parsed may lie
    /// outside, and a poll of zero would be a busy loop.
    pub(crate) fn within_ranges(mut self) -> Self {
        self.poll = self.poll.clamp(POLL_MIN, POLL_MAX);
        self.poll_min = self.poll_min.clamp(POLL_MIN, POLL_MAX);
        self.poll_max = self.poll_max.clamp(self.poll_min, POLL_MAX);
        self.burst_count = self.burst_count.min(BURST_MAX);
        self.burst_interval = self.burst_interval.clamp(POLL_MIN, POLL_MAX);
        self.recovery_burst_count = self.recovery_burst_count.min(BURST_MAX);
        self.reply_timeout = self.reply_timeout.clamp(TIMEOUT_MIN, TIMEOUT_MAX);
        self.unreachable_after = self.unreachable_after.clamp(1, UNREACHABLE_MAX);
        self.root_distance_max = self.root_distance_max.clamp(DISTANCE_MIN, DISTANCE_MAX);
        self.version = self.version.clamp(3, 4);
        self
    }

    pub(crate) const fn wire_version(&self) -> Version {
        if self.version == 3 { Version::V3 } else { Version::V4 }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use ffclock_units::OptionError;
    use std::string::{String, ToString};
    use std::vec::Vec;

    #[test]
    fn the_defaults_lie_in_their_ranges() {
        assert_eq!(SourceConfig::default().within_ranges(), SourceConfig::default());
    }

    #[test]
    fn values_are_clamped_to_the_ends_of_each_range() {
        let mut ends: Vec<(String, String)> = Vec::new();
        SourceConfig::describe(&mut |doc| {
            let Some((low, high)) = doc.range else {
                return assert_eq!(doc.name, "interleaved", "a number has a range");
            };
            ends.push((doc.name.to_string(), low.to_string()));
            ends.push((doc.name.to_string(), high.to_string()));
        });
        for (name, value) in ends {
            let mut config = SourceConfig::default();
            assert_eq!(config.set(&name, &value), Ok(()), "{name} = {value}");
            // The two ends of one range may not change places.
            config.poll_max = if name == "poll_min" { POLL_MAX } else { config.poll_max };
            config.poll_min = if name == "poll_max" { POLL_MIN } else { config.poll_min };
            assert_eq!(config.clone().within_ranges(), config, "{name} = {value}");
        }
    }

    #[test]
    fn a_poll_of_zero_is_neither_parsed_nor_used() {
        let mut config = SourceConfig::default();
        assert_eq!(config.set("poll", "0 s"), Err(OptionError::OutOfRange));
        config.poll = Span::ZERO;
        config.version = 9;
        assert_eq!(config.clone().within_ranges().poll, POLL_MIN);
        assert_eq!(config.within_ranges().version, 4);
    }
}

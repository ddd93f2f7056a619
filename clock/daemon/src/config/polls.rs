//! Polls that adapt: what they are to keep, and where the keys about it contradict one another.

use super::values::Unrecognised;
use super::{Config, ServerConfig};
use ffclock_units::{OptionValue, Span, StandardUncertainty};
use std::fmt;
use std::str::FromStr;

ffclock_units::options! {
    /// What polls are chosen for.
    pub struct PollConfig {
        /// The uncertainty of the published clock by noise that is to be kept with few requests. Every server is then
        /// asked at a poll between its `poll_min` and its `poll_max` that is chosen with each exchange, one of little
        /// weight less often; after an upset all are asked at `poll_min`. `"off"`: each is asked at its `poll`.
        keep_noise: KeptNoise = KeptNoise(None);
    }
}

impl PollConfig {
    /// What is to be kept, and the shortest and the longest poll of any server; `None` where polls are fixed.
    pub(crate) fn kept(&self, servers: &[ServerConfig]) -> Option<(StandardUncertainty, [Span; 2])> {
        let KeptNoise(keep) = self.keep_noise;
        let shortest = servers.iter().map(|server| server.source.poll_min).min()?;
        let longest = servers.iter().map(|server| server.source.poll_max).max()?;
        Some((StandardUncertainty::of(keep?), [shortest, longest]))
    }
}

/// An uncertainty to keep; `None` where the polls are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptNoise(pub Option<Span>);

/// No clock of packets is better than the one or needs to be kept for the other.
const LEAST: Span = Span::from_nanos(1);
const MOST: Span = Span::from_secs(1);

impl FromStr for KeptNoise {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        if text == "off" {
            return Ok(KeptNoise(None));
        }
        let keep: Span = text.parse().map_err(|_| Unrecognised)?;
        (LEAST..=MOST).contains(&keep).then_some(KeptNoise(Some(keep))).ok_or(Unrecognised)
    }
}

impl fmt::Display for KeptNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(keep) => keep.fmt(f),
            None => f.write_str("off"),
        }
    }
}

impl OptionValue for KeptNoise {
    const KIND: &'static str = "\"off\" or a span from \"1 ns\" to \"1 s\"";
}

/// Which keys about polls a table of the file has, each with its place in the text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PollKeys {
    pub(super) fixed: Option<usize>,
    pub(super) range: Option<(&'static str, usize)>,
}

impl PollKeys {
    /// Notes a key that is there at this place.
    pub(super) fn note(&mut self, key: &str, at: usize) {
        match key {
            "poll" => self.fixed = Some(at),
            "poll_min" => self.range = Some(("poll_min", at)),
            "poll_max" => self.range = Some(("poll_max", at)),
            _ => {}
        }
    }

    /// What contradicts what these keys stand beside, and where.
    pub(super) fn contradiction(&self, config: &Config) -> Option<(usize, String)> {
        let KeptNoise(keep) = config.polls.keep_noise;
        match (keep, self.fixed, self.range) {
            (Some(keep), Some(at), _) => {
                let message = format!(
                    "poll and keep_noise = \"{keep}\" contradict each other: polls then lie between poll_min and \
                     poll_max; for a fixed one give both the same value"
                );
                Some((at, message))
            }
            (None, _, Some((key, at))) => {
                Some((at, format!("{key} is for polls that keep_noise chooses, and that is off")))
            }
            _ => None,
        }
    }
}

/// A range without anything in it.
pub(super) fn contradiction(server: &ServerConfig) -> Option<String> {
    let (shortest, longest) = (server.source.poll_min, server.source.poll_max);
    (shortest > longest).then(|| format!("poll_min = \"{shortest}\" is longer than poll_max = \"{longest}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "[[server]]\naddress = \"a.example\"\n";
    const KEEP: &str = "keep_noise = \"2 us\"\n";

    fn problem(text: &str) -> (usize, String) {
        let error = Config::parse(text).unwrap_err();
        let [problem] = &error.problems[..] else { panic!("{error}") };
        (problem.line, problem.message.clone())
    }

    #[test]
    fn polls_are_fixed_unless_an_uncertainty_is_to_be_kept() {
        let config = Config::parse(SERVER).unwrap();
        assert_eq!(config.polls.kept(&config.servers), None);
        let other = "[[server]]\naddress = \"b.example\"\npoll_max = \"128 s\"\n";
        let config = Config::parse(&format!("{KEEP}[source]\npoll_min = \"4 s\"\n{SERVER}{other}")).unwrap();
        let (keep, range) = config.polls.kept(&config.servers).unwrap();
        assert_eq!(keep.as_span(), Span::from_micros(2));
        assert_eq!(range, [Span::from_secs(4), Span::from_secs(1024)]);
        assert_eq!(config.servers[1].source.poll_max, Span::from_secs(128));
    }

    #[test]
    fn contradictions_are_refused_with_their_line() {
        for (text, line, said) in [
            (format!("{KEEP}{SERVER}poll = \"4 s\"\n"), 4, "poll and keep_noise = \"2 us\" contradict"),
            (format!("{KEEP}[source]\npoll = \"4 s\"\n{SERVER}"), 3, "give both the same value"),
            (format!("{SERVER}poll_min = \"4 s\"\n"), 3, "poll_min is for polls that keep_noise chooses"),
            (format!("[source]\npoll_max = \"64 s\"\n{SERVER}"), 2, "poll_max is for polls"),
            (format!("{KEEP}{SERVER}poll_min = \"64 s\"\npoll_max = \"32 s\"\n"), 2, "poll_min = \"64 s\" is longer"),
            (format!("{KEEP}[source]\npoll_max = \"8 s\"\n{SERVER}"), 4, "poll_min = \"16 s\" is longer than poll_max"),
        ] {
            let (at, message) = problem(&text);
            assert!(at == line && message.contains(said), "{text}: {at} {message}");
        }
        let fixed = format!("{KEEP}{SERVER}poll_min = \"4 s\"\npoll_max = \"4 s\"\n");
        assert!(Config::parse(&fixed).is_ok());
        assert!(problem(&format!("keep_noise = \"2 s\"\n{SERVER}")).1.contains("\"off\" or a span"));
    }

    #[test]
    fn an_uncertainty_to_keep_reads_back() {
        for text in ["off", "2 us", "1 ns", "1 s"] {
            assert_eq!(text.parse::<KeptNoise>().unwrap().to_string(), text);
        }
        for text in ["", "0 s", "2", "-1 us", "on", "1.5 s"] {
            assert_eq!(text.parse::<KeptNoise>(), Err(Unrecognised), "{text}");
        }
    }
}

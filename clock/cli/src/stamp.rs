//! `ffclock stamp`: a raw stamp as text, for a conversion later.

use crate::failure::Failure;
use crate::{Global, output, page};
use ffclock::Stamp;
use ffclock_units::{Counter, CounterEpoch};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Options of `ffclock stamp`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ stamp=$(ffclock stamp); echo $stamp
  77546726195886@2893105772
  $ ffclock at $stamp
  2026-11-22T18:21:28.459568768Z  +- 2.323 us  synchronised (standard uncertainty 148.3131 ns, noise 57.9748 ns)

A stamp may be converted up to a day later without becoming worse, if the daemon runs on: it keeps the past. It is
the raw value of the counter and the number of its epoch. After a suspend, or whatever else breaks
the counter, it is refused instead of converted into a wrong time.

Exit code: 3 while the clock is unsynchronised: there is no stamp where there is no time, and one of
after the page's date cannot be relied on.")]
pub(crate) struct Args {}

/// What `--json` shows.
#[derive(Serialize)]
struct StampReport {
    stamp: String,
    counter: u64,
    epoch: u64,
}

/// Takes a stamp.
pub(crate) fn run(global: &Global, _: &Args) -> Result<(), Failure> {
    let (stamp, time) = page::stamp(&page::open(global)?)?;
    let text = StampText(stamp).to_string();
    if global.json {
        output::json(&StampReport { stamp: text, counter: stamp.counter().raw(), epoch: stamp.epoch().raw() })?;
    } else {
        output::line(&text)?;
    }
    page::judge(time.reading.status)
}

/// A stamp in text form: `COUNTER@EPOCH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampText(pub Stamp);

impl fmt::Display for StampText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.0.counter().raw(), self.0.epoch().raw())
    }
}

impl FromStr for StampText {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(StampText).ok_or("a stamp is COUNTER@EPOCH, as `ffclock stamp` prints it")
    }
}

fn parse(text: &str) -> Option<Stamp> {
    let (counter, epoch) = text.split_once('@')?;
    let epoch = CounterEpoch::from_raw(epoch.parse().ok()?);
    Some(Stamp::from_parts(Counter::from_raw(counter.parse().ok()?), epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_survives_as_text() {
        let stamp: StampText = "77546726195886@1".parse().unwrap();
        assert_eq!(stamp.0.counter().raw(), 77_546_726_195_886);
        assert_eq!(stamp.0.epoch().raw(), 1);
        assert_eq!(stamp.to_string(), "77546726195886@1");
    }

    #[test]
    fn what_is_no_stamp_is_refused() {
        for text in ["", "5", "@", "5@", "@5", "-1@1", "1@-1", "1@1@1", "1.5@2", "99999999999999999999@1"] {
            assert!(text.parse::<StampText>().is_err(), "{text}");
        }
    }
}

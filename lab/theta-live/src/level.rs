//! The course of a load over time.

use std::fmt;
use std::str::FromStr;

/// The course of a load: `30`, `ramp:0..90`, `jumps:10..90`, in per cent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadLevel {
    /// Always the same.
    Constant(f64),
    /// Up from the first to the second within a second and down again.
    Ramp(f64, f64),
    /// One and the other in turn, each for 10 ms, as in the paper.
    Jumps(f64, f64),
}

/// Half a ramp, up or down.
const RAMP_S: f64 = 1.0;
/// The paper's jumps: every 10 ms.
const JUMP_S: f64 = 0.01;
/// A higher load leaves nothing for the processes under test.
const MOST: f64 = 0.99;

impl LoadLevel {
    /// After this time every course begins again, in seconds.
    pub const COURSE_S: f64 = 2.0 * RAMP_S;

    /// The share that is loaded, 0 to 0.99, `seconds` after the start.
    pub fn share(self, seconds: f64) -> f64 {
        match self {
            LoadLevel::Constant(level) => level,
            LoadLevel::Ramp(low, high) => {
                let phase = (seconds / RAMP_S).rem_euclid(2.0);
                low + (high - low) * if phase < 1.0 { phase } else { 2.0 - phase }
            }
            LoadLevel::Jumps(low, high) => {
                if (seconds / JUMP_S).rem_euclid(2.0) < 1.0 {
                    low
                } else {
                    high
                }
            }
        }
    }
}

/// As it is read, in per cent.
impl fmt::Display for LoadLevel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of 0.07, 7.000000000000001 %.
        let percent = |share: f64| (share * 1e6).round() / 1e4;
        match *self {
            LoadLevel::Constant(level) => write!(out, "{}", percent(level)),
            LoadLevel::Ramp(low, high) => write!(out, "ramp:{}..{}", percent(low), percent(high)),
            LoadLevel::Jumps(low, high) => write!(out, "jumps:{}..{}", percent(low), percent(high)),
        }
    }
}

impl FromStr for LoadLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let complaint = || format!("`{text}` is no load: say 30, ramp:0..90 or jumps:10..90, in per cent up to 99");
        let share = |text: &str| {
            let percent: f64 = text.trim().trim_end_matches('%').trim().parse().map_err(|_| complaint())?;
            let share = percent / 100.0;
            if (0.0..=MOST).contains(&share) { Ok(share) } else { Err(complaint()) }
        };
        let Some((kind, range)) = text.split_once(':') else { return share(text).map(LoadLevel::Constant) };
        let (low, high) = range.split_once("..").ok_or_else(complaint)?;
        match kind {
            "ramp" => Ok(LoadLevel::Ramp(share(low)?, share(high)?)),
            "jumps" => Ok(LoadLevel::Jumps(share(low)?, share(high)?)),
            _ => Err(complaint()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_written_as_they_are_read() {
        for text in ["30", "7", "ramp:0..90", "jumps:10..12.5"] {
            assert_eq!(text.parse::<LoadLevel>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn courses_go_as_they_say() {
        let at = |text: &str, seconds| text.parse::<LoadLevel>().unwrap().share(seconds);
        assert_eq!(at("30", 5.0), 0.3);
        assert_eq!([0.0, 0.5, 1.0, 1.5].map(|s| at("ramp:0..80", s)), [0.0, 0.4, 0.8, 0.4]);
        assert_eq!([0.0, 0.011, 0.021].map(|s| at("jumps:10..90", s)), [0.1, 0.9, 0.1]);
    }

    /// By the thousandth of a second, in its middle: edges belong to two.
    #[test]
    fn every_course_begins_again() {
        for text in ["30", "ramp:0..80", "jumps:10..90"] {
            let level: LoadLevel = text.parse().unwrap();
            for slice in 0..2000 {
                let seconds = (f64::from(slice) + 0.5) / 1000.0;
                let (first, second) = (level.share(seconds), level.share(seconds + LoadLevel::COURSE_S));
                assert!((first - second).abs() < 1e-9, "{text} at {seconds}: {first} and {second}");
            }
        }
    }

    #[test]
    fn nonsense_is_no_load() {
        for text in ["", "x", "100", "-1", "jumps:10", "jumps:10..900", "steps:1..2", "NaN"] {
            assert!(text.parse::<LoadLevel>().is_err(), "{text}");
        }
    }
}

//! The header of a trace.

use crate::Fault;
use ffclock_units::{Moment, Period, Rate, RateMemory, Utc};
use std::fmt::Write;

/// The header of a trace. Native traces and the `#` lines in front of a CSV header share its text form, `key=value`
/// lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceHeader {
    /// The kind of counter that the stamps were read from, such as `tsc`.
    pub counter: Option<String>,
    /// The nominal period of the counter, from which an estimator starts.
    pub nominal: Option<Period>,
    /// What was known of the counter's rate from before.
    pub remembered: Option<RateMemory>,
    /// The beginning of the recording, by the system clock of the host.
    pub created: Option<Moment<Utc>>,
    /// Whether the rows may carry reference times. A native trace without them has smaller records.
    pub truth: bool,
    /// All other keys, in the order given. `server.N` names server N. Keys are lower-case letters, digits, `.`, `_` and
    /// `-`.
    pub metadata: Vec<(String, String)>,
}

impl TraceHeader {
    /// The value of a key of the metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Takes over one `key=value` line.
    pub(crate) fn read_line(&mut self, line: &str) -> Result<(), Fault> {
        let damaged = || Fault::Header(crate::error::shortened(line.as_bytes()));
        let (key, value) = line.split_once('=').ok_or_else(damaged)?;
        let (key, value) = (key.trim(), value.trim());
        match key {
            "counter" => self.counter = Some(value.to_owned()),
            "period" => self.nominal = Some(parse_period(value).ok_or_else(damaged)?),
            "frequency_hz" if self.nominal.is_none() => {
                let hertz = value.parse().ok().and_then(Period::from_hertz);
                self.nominal = Some(hertz.ok_or_else(damaged)?);
            }
            "frequency_hz" => {}
            "remembered_rate" => self.remembered = Some(parse_memory(value).ok_or_else(damaged)?),
            "created_utc_ns" => {
                let nanos = crate::decimal::nanoseconds(value.as_bytes()).map_err(|_| damaged())?;
                self.created = Some(Moment::from_origin(nanos));
            }
            "truth" => self.truth = value == "yes",
            _ if is_key(key) => self.metadata.push((key.to_owned(), value.to_owned())),
            _ => return Err(damaged()),
        }
        Ok(())
    }

    /// The text form; keys and values that would break it are left out.
    pub(crate) fn lines(&self) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: &str| {
            if is_key(key) && !value.contains(['\n', '\r']) {
                let _ = writeln!(text, "{key}={value}");
            }
        };
        if let Some(counter) = &self.counter {
            line("counter", counter);
        }
        if let Some(period) = self.nominal {
            line("period", &period_text(period));
            line("frequency_hz", &format!("{:.6}", period.as_hertz()));
        }
        let remembered = self.remembered.map(memory_text);
        if let Some(text) = remembered.filter(|text| parse_memory(text).is_some()) {
            line("remembered_rate", &text);
        }
        if let Some(created) = self.created {
            line("created_utc_ns", &created.since_origin().as_nanos().to_string());
        }
        line("truth", if self.truth { "yes" } else { "no" });
        for (key, value) in &self.metadata {
            line(key, value);
        }
        text
    }

    /// The header of a trace whose stamps are a system clock's nanoseconds.
    pub(crate) fn of_system_clock() -> Self {
        let nominal = Period::from_hertz(1e9);
        TraceHeader { counter: Some("system-clock-ns".to_owned()), nominal, ..TraceHeader::default() }
    }
}

fn is_key(key: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-');
    !key.is_empty() && key.bytes().all(fits)
}

/// The exact text form of what was remembered: the period, its largest relative error and, where there is one, the
/// wander, both in s/s.
fn memory_text(memory: RateMemory) -> String {
    let rates = [Some(memory.bound), memory.wander].into_iter().flatten();
    rates.fold(period_text(memory.period), |text, rate| format!("{text} {:?}", rate.as_fraction()))
}

fn parse_memory(text: &str) -> Option<RateMemory> {
    let (period, rates) = text.split_once(' ')?;
    let rate = |word: &str| word.parse().ok().filter(|rate: &f64| *rate > 0.0 && *rate < 1.0);
    let rates: Option<Vec<f64>> = rates.split_ascii_whitespace().map(rate).collect();
    let (bound, wander) = match rates?[..] {
        [bound] => (bound, None),
        [bound, wander] => (bound, Some(Rate::from_fraction(wander))),
        _ => return None,
    };
    Some(RateMemory { period: parse_period(period)?, bound: Rate::from_fraction(bound), wander })
}

/// The exact text form of a period: the mantissa in hexadecimal, `>>`, the shift.
fn period_text(period: Period) -> String {
    format!("{:#x}>>{}", period.mantissa(), period.shift())
}

fn parse_period(text: &str) -> Option<Period> {
    let (mantissa, shift) = text.split_once(">>")?;
    let mantissa = u64::from_str_radix(mantissa.trim().strip_prefix("0x")?, 16).ok()?;
    Period::from_parts(mantissa, shift.trim().parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Span;

    #[test]
    fn the_text_form_reads_back() {
        for wander in [None, Some(Rate::from_ppm(0.07))] {
            let period = Period::from_hertz(2_994_374_999.9).unwrap();
            let header = TraceHeader {
                counter: Some("tsc".into()),
                nominal: Period::from_hertz(2_994_374_321.7),
                remembered: Some(RateMemory { period, bound: Rate::from_ppm(0.3), wander }),
                truth: true,
                metadata: vec![("server.0".into(), "ntp.example".into()), ("note".into(), "a=b".into())],
                created: Some(Moment::from_origin(Span::from_nanos(1_700_000_000_123_456_789))),
            };
            let mut back = TraceHeader::default();
            for line in header.lines().lines() {
                back.read_line(line).unwrap();
            }
            assert_eq!(back, header);
            assert_eq!(back.metadata("server.0"), Some("ntp.example"));
        }
    }

    #[test]
    fn keys_and_values_that_would_break_the_text_are_left_out() {
        let metadata = vec![("a b".into(), "x".into()), ("c".into(), "1\n2".into()), ("d".into(), "ok".into())];
        let header = TraceHeader { metadata, ..TraceHeader::default() };
        assert_eq!(header.lines(), "truth=no\nd=ok\n");
        let period = Period::from_hertz(1e9).unwrap();
        for bound in [0.0, 1.0, f64::INFINITY, f64::NAN] {
            let remembered = Some(RateMemory { period, bound: Rate::from_fraction(bound), wander: None });
            assert_eq!(TraceHeader { remembered, ..TraceHeader::default() }.lines(), "truth=no\n", "{bound}");
        }
    }

    #[test]
    fn damage_is_refused() {
        for line in ["period=0x1>>3", "period=5", "frequency_hz=-1", "frequency_hz=fish", "no equals", "=x", "A=1"] {
            assert!(TraceHeader::default().read_line(line).is_err(), "{line}");
        }
        let period = "0xb000000000000000>>29";
        for rates in ["", " ", " 0", " -1e-7", " 1", " NaN", " fish", " 1e-7 inf", " 1e-7 1e-7 1e-7"] {
            let line = format!("remembered_rate={period}{rates}");
            assert!(TraceHeader::default().read_line(&line).is_err(), "{line}");
        }
        TraceHeader::default().read_line(&format!("remembered_rate={period} 1e-7")).unwrap();
    }
}

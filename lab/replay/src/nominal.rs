//! The period of the counter that an estimator starts from. Where it is not stated, it is measured over the first
//! exchanges.

use ffclock_statistics::upper_median;
use ffclock_trace::TraceRow;
use ffclock_units::{Exchange, Period};

/// The period that the estimator starts from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartPeriod {
    /// Seconds per tick.
    pub period: Period,
    /// Where it comes from.
    pub source: StartPeriodSource,
}

/// Where a nominal period comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartPeriodSource {
    /// The plan of the replay.
    Given,
    /// The header of the trace.
    Trace,
    /// The first exchanges.
    Estimated,
}

/// The period between replies: each exchange of the first half against its counterpart in the second half gives one
/// slope, and the median of them counts, so nearly half the slopes may be spoilt by queueing or a lying server. `None`
/// where no two exchanges of the first counter epoch lie apart.
pub(crate) fn estimate(rows: &[TraceRow]) -> Option<Period> {
    let epoch = rows.first()?.epoch;
    let exchanges: Vec<&Exchange> =
        rows.iter().take_while(|row| row.epoch == epoch).filter_map(|row| row.exchange.as_ref()).collect();
    let half = exchanges.len() / 2;
    let pairs = exchanges.iter().zip(exchanges.iter().skip(half)).filter(|_| half > 0);
    Period::from_seconds(upper_median(pairs.filter_map(|(early, late)| slope(early, late)))?)
}

/// Seconds per tick between two replies; `None` unless both the counter and the server moved on.
fn slope(early: &Exchange, late: &Exchange) -> Option<f64> {
    let ticks = (late.received.counter - early.received.counter).raw();
    let seconds = (late.server_out - early.server_out).as_seconds();
    (ticks > 0 && seconds > 0.0).then(|| seconds / ticks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_trace::TraceReader;

    fn rows(text: &str) -> Vec<TraceRow> {
        TraceReader::from_reader(Box::new(std::io::Cursor::new(text.to_owned()))).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn a_few_wild_replies_do_not_matter() {
        let mut text = String::from("Ta,Tb,Te,Tf\n");
        for number in 0u64..60 {
            let sent = 1_000 + number * 16 * 2_994_000_000;
            let second = 1_700_000_000 + number * 16 + if number % 7 == 3 { 1000 } else { 0 };
            let late = if number % 10 == 0 { 400_000_000 } else { number % 3 * 10_000 };
            text += &format!("{sent},{second}.5,{second}.5,{}\n", sent + 1_000_000 + late);
        }
        let period = estimate(&rows(&text)).unwrap();
        let nominal = Period::from_hertz(2.994e9).unwrap();
        assert!(period.relative_to(nominal).abs().as_ppm() < 1.0, "{:?}", period.relative_to(nominal));
    }

    #[test]
    fn too_little_tells_nothing() {
        assert_eq!(estimate(&rows("Ta,Tb,Te,Tf\n1,1,1,2\n")), None);
        assert_eq!(estimate(&rows("Ta,Tb,Te,Tf\n1,1,1,2\n1,1,1,2\n")), None);
        assert_eq!(estimate(&rows("Ta,Tb,Te,Tf,epoch\n1,1,1,2,1\n9,5,5,10,2\n")), None);
    }
}

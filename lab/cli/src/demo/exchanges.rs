//! The exchanges that a daemon recorded, judged by the truth and by what the clock showed then.

use super::stage::TruthSource;
use super::track::TimeTrack;
use crate::failure::Failure;
use ffclock_counter::CounterId;
use ffclock_replay::ServerAnswer;
use ffclock_trace::{ServerIndex, TraceReader};
use ffclock_units::{Counter, Exchange, LeapTable, Moment, Period, Span, Tai, Utc};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The exchanges with one server in their order.
pub(super) struct RecordedServer {
    /// Its name in the configuration.
    pub(super) name: String,
    exchanges: Vec<Exchange>,
}

/// What is known of the times of a run.
pub(super) struct RunTimes<'a> {
    pub(super) reference: &'a TruthSource,
    pub(super) track: &'a TimeTrack,
    /// The counter when the run began.
    pub(super) began: Counter,
    /// A period that is right to some 10 ppm.
    pub(super) nominal: Period,
}

impl<'a> RunTimes<'a> {
    /// With the nominal period of this machine's counter.
    pub(super) fn new(reference: &'a TruthSource, track: &'a TimeTrack, began: Counter) -> Result<Self, Failure> {
        let nominal = ffclock_counter::nominal(CounterId::CPU).map_err(|error| error.to_string())?.period;
        Ok(RunTimes { reference, track, began, nominal })
    }

    fn since_began(&self, counter: Counter) -> f64 {
        (self.nominal * (counter - self.began)).as_seconds()
    }

    fn truth(&self, counter: Counter) -> Option<Moment<Utc>> {
        self.track.truth(counter, self.reference)
    }

    fn round_trip(&self, exchange: &Exchange) -> Span {
        self.nominal * (exchange.received.counter - exchange.sent.counter) - (exchange.server_out - exchange.server_in)
    }

    /// True delays to the server and back, if the server's time is true.
    fn delays(&self, exchange: &Exchange) -> Option<(Span, Span)> {
        let sent = self.truth(exchange.sent.counter)?;
        let received = self.truth(exchange.received.counter)?;
        Some((utc(exchange.server_in) - sent, received - utc(exchange.server_out)))
    }

    /// The published clock - the server's in the middle of the exchange, as if both ways took equally long.
    fn offset(&self, exchange: &Exchange) -> Option<Span> {
        let sent = self.track.published(exchange.sent.counter)?;
        let received = self.track.published(exchange.received.counter)?;
        let both = (sent - utc(exchange.server_in)) + (received - utc(exchange.server_out));
        Some(Span::from_seconds(both.as_seconds() / 2.0))
    }
}

fn utc(label: Moment<Tai>) -> Moment<Utc> {
    LeapTable::built_in().utc_from_tai(label)
}

/// Reads what a daemon recorded, one file for each server.
pub(super) fn recorded(directory: &Path) -> Result<Vec<RecordedServer>, Failure> {
    let mut servers = Vec::new();
    for file in fs::read_dir(directory)? {
        let reader = TraceReader::open(file?.path()).map_err(|error| error.to_string())?;
        let name = reader.server_name(ServerIndex(0)).unwrap_or_default().to_owned();
        let rows = reader.map(|row| row.map(|row| row.exchange).map_err(|error| error.to_string().into()));
        let exchanges = rows.filter_map(Result::transpose).collect::<Result<_, Failure>>()?;
        servers.push(RecordedServer { name, exchanges });
    }
    servers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(servers)
}

impl RecordedServer {
    /// Round trips, their running minimum, the true delays of both ways and the offset of the clock, as CSV.
    pub(super) fn csv(&self, times: &RunTimes<'_>) -> String {
        let mut text = String::from("t_s,round_trip_s,floor_s,forward_s,backward_s,offset_s\n");
        let mut floor = Span::MAX;
        for exchange in &self.exchanges {
            let round_trip = times.round_trip(exchange);
            floor = floor.min(round_trip);
            let delays = times.delays(exchange);
            let cells = [
                Some(round_trip),
                Some(floor),
                delays.map(|(forward, _)| forward),
                delays.map(|(_, backward)| backward),
                times.offset(exchange),
            ];
            let _ = writeln!(text, "{:.6},{}", times.since_began(exchange.received.counter), cells.map(cell).join(","));
        }
        text
    }

    /// The answers as those of server number `server`. Where the truth is not known there is nothing to judge.
    pub(super) fn answers(&self, server: usize, times: &RunTimes<'_>) -> Vec<ServerAnswer> {
        let answer = |exchange: &Exchange| {
            let (forward, backward) = times.delays(exchange)?;
            let claim = exchange.server.root_distance.as_seconds();
            Some(ServerAnswer {
                t_s: times.since_began(exchange.received.counter),
                server,
                error_s: (forward - backward).as_seconds() / 2.0,
                claim_s: claim,
                reach_s: claim + times.round_trip(exchange).as_seconds() / 2.0,
            })
        };
        self.exchanges.iter().filter_map(answer).collect()
    }
}

/// An unknown value is an empty cell.
fn cell(span: Option<Span>) -> String {
    span.map_or_else(String::new, |span| format!("{:.12}", span.as_seconds()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::track::TrackPoint;
    use crate::lab::truth::Truth;
    use ffclock_units::{Rate, ServerQuality, Stamp, StampLocation, Ticks};

    fn stamp(counter: u64) -> Stamp {
        Stamp { counter: Counter::from_raw(counter), width: Ticks::ZERO, location: StampLocation::Kernel }
    }

    /// A counter of 1 GHz that began at 0, a server 20 ms ahead, 40 us to it and 60 us back.
    #[test]
    fn the_delays_of_a_server_that_lies_hold_its_lie() {
        let truth = Truth {
            origin: Counter::from_raw(0),
            time: Moment::from_origin(Span::from_secs(1_800_000_000)),
            period: Period::from_hertz(1e9).unwrap(),
            wander: Rate::from_ppm(0.0),
            swing: Span::from_secs(60),
        };
        let reference = TruthSource::Embedded(truth);
        let mut track = TimeTrack::default();
        for counter in [0, 10_000_000] {
            let exact = utc(truth.at(Counter::from_raw(counter)));
            let published = exact + Span::from_micros(5);
            track.push(TrackPoint { counter: Counter::from_raw(counter), published, truth: exact });
        }
        let times =
            RunTimes { reference: &reference, track: &track, began: Counter::from_raw(0), nominal: truth.period };
        let server_time = truth.at(Counter::from_raw(1_040_000)) + Span::from_millis(20);
        let exchange = Exchange {
            sent: stamp(1_000_000),
            server_in: server_time,
            server_out: server_time,
            received: stamp(1_100_000),
            server: ServerQuality::default(),
        };
        let server = RecordedServer { name: "a".into(), exchanges: vec![exchange] };
        let answer = server.answers(3, &times)[0];
        assert_eq!(answer.server, 3);
        assert!((answer.error_s - 0.01999).abs() < 1e-9, "{answer:?}");
        assert!((answer.reach_s - 50e-6).abs() < 1e-9, "{answer:?}");
        let row = server.csv(&times);
        let cells: Vec<f64> = row.lines().nth(1).unwrap().split(',').map(|cell| cell.parse().unwrap()).collect();
        let expected = [0.0011, 100e-6, 100e-6, 0.02004, -0.01994, 5e-6 - 0.01999];
        assert!(cells.iter().zip(expected).all(|(cell, value)| (cell - value).abs() < 1e-9), "{row}");
    }
}

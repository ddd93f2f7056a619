//! Whole replays of small synthetic traces whose figures can be worked out by hand.

mod world;

use ffclock_estimator::{Algorithm, Configs};
use ffclock_replay::{Detail, ReplayError, ReplayObserver, ReplayPlan, Report, StartPeriodSource};
use ffclock_trace::TraceReader;
use ffclock_units::{Counter, CounterEpoch, LeapTable, Moment, Period, Span, Status};
use std::convert::Infallible;
use world::{HEADER, QUIET, World, counter};

/// Wants nothing but the report.
struct Silent;

impl ReplayObserver for Silent {
    type Error = Infallible;
}

fn plan() -> ReplayPlan {
    ReplayPlan {
        algorithm: Algorithm::Learned,
        configs: Configs::default(),
        server: None,
        nominal: None,
        from: None,
        detail: Detail::ReportOnly,
        in_retrospect: false,
        skips_bad_rows: false,
    }
}

fn reader(trace: &str) -> TraceReader {
    TraceReader::from_reader(Box::new(std::io::Cursor::new(trace.to_owned()))).expect("a trace that reads")
}

fn replay(trace: &str, plan: &ReplayPlan) -> Result<Report, ReplayError<Infallible>> {
    plan.run(reader(trace), &mut Silent).map(|replayed| replayed.report)
}

#[test]
fn a_quiet_world_is_followed_and_accounted_for() {
    let report = replay(&QUIET.trace(), &plan()).unwrap();
    let counts = &report.exchanges;
    assert_eq!((counts.exchanges, counts.lost, counts.used, counts.epochs), (600, 0, 600, 1));
    assert!((report.span_s.unwrap() - 599.0 * 16.0).abs() < 0.1);
    assert_eq!(report.rate.nominal_source, StartPeriodSource::Estimated);
    assert!((report.rate.period_s.unwrap() / (1e-9 / (1.0 + 20e-6)) - 1.0).abs() < 1e-8);
    assert!(report.rate.rate_error_ppm.unwrap().abs() < 0.01);
    assert!((report.path.floor_s.unwrap() - 300e-6).abs() < 5e-6, "{:?}", report.path.floor_s);
    let error = report.after.error.unwrap();
    assert!(error.median.abs() < 3e-6 && error.max_abs < 10e-6, "{error:?}");
    assert_eq!((report.after.containment, report.after.outside, report.before.containment), (Some(1.0), 0, Some(1.0)));
    assert_eq!(report.last.status, Status::Synchronised);
}

#[test]
fn the_learned_algorithm_sees_what_round_trips_hide() {
    let [classic, learned] = [Algorithm::Classic, Algorithm::Learned]
        .map(|algorithm| replay(&QUIET.trace(), &ReplayPlan { algorithm, ..plan() }).unwrap());
    assert_eq!((learned.after.containment, learned.after.outside), (Some(1.0), 0));
    assert_eq!(learned.exchanges.used, classic.exchanges.used);
    let (classic, learned) = (classic.after.error.unwrap(), learned.after.error.unwrap());
    assert!(learned.rms <= 1.2 * classic.rms, "{learned:?} {classic:?}");
}

/// The longer way out makes the server's stamps late for us, so the clock is ahead by half the asymmetry: error = +A/2.
#[test]
fn the_sign_of_the_error_is_clock_minus_truth() {
    let world = World { forward_ns: 250_000, backward_ns: 50_000, ..QUIET };
    let report = replay(&world.trace(), &plan()).unwrap();
    for error in [report.after.error.unwrap(), report.before.error.unwrap()] {
        assert!((error.median - 100e-6).abs() < 5e-6, "{error:?}");
    }
}

#[test]
fn a_clock_outside_its_bound_is_counted() {
    let world = World { truth_late_ns: 1_000_000, ..QUIET };
    let report = replay(&world.trace(), &plan()).unwrap();
    let error = report.after.error.unwrap();
    assert!((error.median + 1e-3).abs() < 1e-5, "{error:?}");
    assert_eq!((report.after.containment, report.after.outside), (Some(0.0), error.count));
}

#[test]
fn the_statistics_begin_where_the_plan_says() {
    let counted = |from: Option<Span>| {
        let error = replay(&QUIET.trace(), &ReplayPlan { from, ..plan() }).unwrap().after.error;
        error.map(|error| error.count)
    };
    assert_eq!(counted(Some(Span::ZERO)), Some(600));
    assert_eq!(counted(Some(Span::from_secs(1600))), Some(500));
    assert_eq!(counted(Some(Span::from_secs(864_000))), None);
    let warm = counted(None).unwrap();
    assert!(warm > 300 && warm < 600, "{warm}");
}

#[test]
fn lost_exchanges_and_other_servers_are_counted_not_fed() {
    let mut trace = QUIET.trace();
    trace += "600,1,,,,,,0,near\n601,,,,,,,0,far\n";
    let report = replay(&trace, &plan()).unwrap();
    assert_eq!((report.exchanges.exchanges, report.exchanges.lost, report.origin.servers), (600, 1, 2));
    assert_eq!(report.origin.server_name.as_deref(), Some("near"));
    let of = |server: &str| ReplayPlan { server: Some(server.to_owned()), nominal: Period::from_hertz(1e9), ..plan() };
    let far = replay(&trace, &of("far")).unwrap();
    assert_eq!((far.exchanges.exchanges, far.exchanges.lost, far.origin.server), (0, 1, 1));
    assert_eq!((far.last.status, far.rate.period_s, far.after.error), (Status::Unsynchronised, None, None));
    let Err(ReplayError::NoRows(reason)) = replay(&trace, &of("moon")) else { panic!("there is no such server") };
    assert!(reason.contains("no server \"moon\"; it has near, far"), "{reason}");
}

#[test]
fn a_new_epoch_begins_a_new_clock() {
    let mut trace = QUIET.trace();
    let later = QUIET.row(599).replace("599,", "600,").replace(",0,near", ",1,near");
    trace += &later.replace(&counter(599 * 16_000_000_000).to_string(), "1000");
    let report = replay(&trace, &ReplayPlan { from: Some(Span::ZERO), ..plan() }).unwrap();
    assert_eq!(report.exchanges.epochs, 2);
    let (after, before) = (report.after.error.unwrap().count, report.before.error.unwrap().count);
    assert!(before < after && before == 599, "{before} {after}");
}

#[test]
fn stamps_are_converted_in_retrospect() {
    let plan = ReplayPlan { in_retrospect: true, ..plan() };
    let hindsight = plan.run(reader(&QUIET.trace()), &mut Silent).unwrap().hindsight.unwrap();
    let nanos = 300 * 16_000_000_000 + 5_000_000_000;
    let time = hindsight.at(Counter::from_raw(counter(nanos)), Some(CounterEpoch::from_raw(0))).unwrap();
    let truth = Moment::from_origin(Span::from_nanos(1_700_000_000_000_000_000 + i128::from(nanos)));
    let error = LeapTable::built_in().utc_from_tai(time.time) - truth;
    assert!(error.abs() < Span::from_micros(5), "{error}");
    assert_eq!(hindsight.at(Counter::from_raw(counter(nanos)), None), Some(time));
    assert_eq!(hindsight.at(Counter::from_raw(counter(nanos)), Some(CounterEpoch::from_raw(1))), None);
    assert_eq!(hindsight.at(Counter::from_raw(1), None), None);
}

#[test]
fn bad_rows_stop_the_replay_or_are_counted_and_noted() {
    let trace = QUIET.trace() + "700,12x,1,1,2,,,0,near\n";
    assert!(matches!(replay(&trace, &plan()), Err(ReplayError::Trace(_))));
    let plan = ReplayPlan { skips_bad_rows: true, ..plan() };
    let replayed = plan.run(reader(&trace), &mut Silent).unwrap();
    assert_eq!((replayed.report.exchanges.bad_rows, replayed.report.exchanges.exchanges), (1, 600));
    assert_eq!(replayed.notes, ["line 602: Ta: not a decimal number: \"12x\""]);
}

/// One exchange shows no rate.
#[test]
fn a_replay_begins_with_the_rate_that_was_remembered() {
    let period = Period::from_hertz(1.00002e9).unwrap();
    let remembered = format!("# remembered_rate={:#x}>>{} 1e-7\n", period.mantissa(), period.shift());
    let trace = |first: &str| format!("# frequency_hz=1e9\n{first}{}", World { rows: 1, ..QUIET }.trace());
    let error = |first: &str, plan: &ReplayPlan| {
        let rate = replay(&trace(first), plan).unwrap().rate;
        Period::from_seconds(rate.period_s.unwrap()).unwrap().relative_to(period).abs().as_ppm()
    };
    assert!(error(&remembered, &plan()) < 0.05);
    assert!(error("", &plan()) > 10.0);
    let given = ReplayPlan { nominal: Period::from_hertz(1e9), ..plan() };
    assert_eq!(error(&remembered, &given), error("", &given), "a period that is given stands alone");
    let replayed = plan().run(reader(&trace(&remembered)), &mut Silent).unwrap();
    assert!(replayed.notes.iter().any(|note| note == "the trace gives a remembered rate, within 0.1 ppm"));
}

#[test]
fn without_rows_or_a_frequency_there_is_no_report() {
    let one_row = format!("{HEADER}{}", QUIET.row(0));
    assert!(matches!(replay(&one_row, &plan()), Err(ReplayError::UnknownFrequency)));
    assert!(replay(&one_row, &ReplayPlan { nominal: Period::from_hertz(1e9), ..plan() }).is_ok());
    let Err(ReplayError::NoRows(reason)) = replay(HEADER, &plan()) else { panic!("there are no rows") };
    assert_eq!(reason, "the trace has no rows");
}

/// Programs read the report by these names: they stay where they are, whatever parts it is made of.
#[test]
fn the_serialised_report_is_flat() {
    let report = replay(&QUIET.trace(), &plan()).unwrap();
    let json = serde_json::to_string(&report).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut places = Vec::new();
    for name in value.as_object().unwrap().keys() {
        places.push((json.find(&format!("\"{name}\":")).unwrap(), name.as_str()));
    }
    places.sort_unstable();
    let names: Vec<&str> = places.into_iter().map(|(_, name)| name).collect();
    let expected = "format counter server server_name servers exchanges lost bad_rows used rejected contradictions \
                    server_steps epochs span_s warmup_s nominal_period_s nominal_source period_s rate_error_ppm floor_s \
                    shifts_up shifts_down status offset_s uncertainty_s noise_s bound_s error containment outside error_before \
                    containment_before outside_before";
    assert_eq!(names.join(" "), expected);
    assert_eq!(value["status"], "synchronised");
    assert!(value["error"]["rms"].is_number() && value["error_before"]["rms"].is_number());
}

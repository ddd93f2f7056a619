//! What the log and the record say about servers, and about a page that others damage.

use super::*;
use ffclock_control::protocol::EventReport;
use std::os::unix::fs::FileExt;

#[test]
fn a_refused_reply_has_a_row_too() {
    let (mut case, _) = one_server("refused-rows", "record = \"DIRECTORY/record\"");
    case.run_until("some exchanges", |status| used(status) >= 3);
    case.servers[0].behave(|behaviour| behaviour.stratum = 16);
    case.run_until("refused replies", |status| status.sources[0].rejected.iter().any(|(_, count)| *count >= 3));
    case.servers[0].behave(|behaviour| behaviour.stratum = 1);
    let before = used(&case.keeper.status());
    case.run_until("exchanges again", |status| used(status) >= before + 2);
    case.keeper.stop();
    let rows: Vec<_> = TraceReader::open(&case.recorded()[0]).unwrap().map(Result::unwrap).collect();
    assert!(rows.iter().filter(|row| row.exchange.is_none()).count() >= 3);
    let first = rows[0].sequence;
    let sequences: Vec<u64> = rows.iter().map(|row| row.sequence).collect();
    assert_eq!(sequences, (first..first + rows.len() as u64).collect::<Vec<_>>(), "no request without a row");
}

#[test]
fn a_recording_says_what_was_known_of_the_rate() {
    for wander in [None, Some(Rate::from_ppm(0.5))] {
        let period = ffclock_counter::nominal(CounterId::CPU).unwrap().period.stretched(Rate::from_ppm(12.5));
        let memory = RateMemory { period, bound: Rate::from_ppm(0.3), wander };
        let servers = vec![TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU))];
        let options = "counter = \"tsc\"\nrecord = \"DIRECTORY/record\"";
        let case = Case::start_remembering("recorded-rate", servers, options, Some(memory));
        let header = TraceReader::open(&case.recorded()[0]).unwrap().header().clone();
        assert_eq!(header.remembered, Some(memory));
    }
}

#[test]
fn a_contradiction_is_reported_when_it_begins_and_when_it_ends() {
    let (mut case, _) = one_server("contradiction", "counter = \"tsc\"");
    case.run_until("some exchanges", |status| used(status) >= 8);
    case.servers[0].behave(|behaviour| behaviour.lie = Span::from_millis(50));
    let begins = "contradicts what it said before: not believed";
    let before = used(&case.keeper.status());
    let status = case.run_until("five of them", |status| status.sources[0].exchanges >= before + 5);
    assert!(has_event(&status, begins));
    case.servers[0].behave(|behaviour| behaviour.lie = Span::ZERO);
    let status = case.run_until("its end", |status| has_event(status, "no longer contradicts what it said before"));
    assert!(has_event(&status, "exchanges were not believed"));
    assert_eq!(status.events.iter().filter(|event| event.text.contains(begins)).count(), 1);
}

#[test]
fn a_wander_of_an_earlier_run_is_assumed_reported_and_kept() {
    let period = ffclock_counter::nominal(CounterId::CPU).unwrap().period;
    let servers = vec![TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU))];
    let wander = Some(Rate::from_ppm(3.0));
    let memory = Some(RateMemory { period, bound: Rate::from_ppm(1.0), wander });
    let mut case = Case::start_remembering("wander", servers, "counter = \"tsc\"", memory);
    let status = case.run_until("an estimate", |status| status.clock.is_some());
    assert!((status.sources[0].wander_ppm.unwrap() - 3.0).abs() < 1e-9, "{:?}", status.sources[0].wander_ppm);
    assert!(has_event(&status, "in an earlier run the counter's rate moved by more"), "{:?}", status.events);
    case.keeper.stop();
    assert_eq!(case.keeper.remembered(Rate::ZERO).unwrap().wander, wander);
}

/// The classic estimator inside the learned one ends its warm-up minutes later.
#[test]
fn the_end_of_the_warm_up_is_that_of_the_status() {
    let (mut case, _) = one_server("warm", "counter = \"tsc\"");
    let is_synchronised =
        |status: &StatusReport| status.clock.as_ref().is_some_and(|clock| clock.status == Status::Synchronised);
    let is_reported = |status: &StatusReport| has_event(status, "warm-up is over");
    let status = case.run_until("one of the two", |status| is_synchronised(status) || is_reported(status));
    assert!(is_synchronised(&status) && is_reported(&status), "{status:?}");
}

/// With several servers each one's clock ends its warm-up once, under its name. The published clock, which is learned
/// from all of them, is synchronised sooner or later than the last of these.
#[test]
fn each_of_several_servers_ends_its_warm_up_under_its_own_name() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = (0..3).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start("warm-several", servers, "counter = \"tsc\"");
    let ends = |status: &StatusReport, name: &str| {
        let is_end = |event: &&EventReport| {
            event.text.contains("warm-up is over") && event.source.as_deref().is_some_and(|source| source == name)
        };
        status.events.iter().filter(is_end).count()
    };
    let status = case.run_until("the ends of all warm-ups", |status| {
        let is_synchronised = status.clock.as_ref().is_some_and(|clock| clock.status == Status::Synchronised);
        is_synchronised && status.sources.iter().all(|source| ends(status, &source.name) > 0)
    });
    assert!(status.sources.iter().all(|source| ends(&status, &source.name) == 1), "{:?}", status.events);
}

#[test]
fn the_log_has_the_last_word_about_a_leap_second() {
    let (mut case, _) = before_midnight("last-word", 1, 5 * 86_400);
    case.run_exchanges();
    for leap in [LeapIndicator::Insert, LeapIndicator::Delete] {
        case.announce(0, leap);
        case.run_exchanges();
    }
    assert_eq!(case.leap_step().after, 36);
    let status = case.keeper.status();
    assert!(has_event(&status, "a leap second is announced: +1 s before 2027-07-01 00:00:00 UTC"));
    assert!(!has_event(&status, "-1 s before"), "within the same minute");
    case.keeper.context.journal.set_now(ffclock_sys::mono_now() + Span::from_secs(61));
    case.keeper.publish();
    assert!(has_event(&case.keeper.status(), "a leap second is announced: -1 s before 2027-07-01 00:00:00 UTC"));
}

#[test]
fn a_damaged_header_is_written_again() {
    let (mut case, _) = one_server("header", "counter = \"tsc\"");
    case.run_until("some exchanges", |status| used(status) >= 3);
    let boot = BootId::parse(&ffclock_counter::boot_id());
    let page = case.page();
    let file = std::fs::File::options().write(true).open(case.directory.join("page")).unwrap();
    file.write_all_at(&[0xa5; 64], 0).unwrap();
    assert!(Reader::new(page.words()).check_header(boot).is_err());
    case.turn();
    assert_eq!(Reader::new(page.words()).check_header(boot), Ok(()));
    assert!(case.reading().is_ok());
    assert!(has_event(&case.keeper.status(), "the page's header was damaged"));
}

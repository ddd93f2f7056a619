//! The daemon keeps time over real packets: with each counter and each kind of stamps, over IPv4 and IPv6, through
//! losses and restarts.

mod common;

use common::server::{TestServer, Truth};
use common::{Daemon, Judge, Scratch, found_at_driver, server_section};
use ffclock_control::protocol::{SourceState, StatusReport};
use ffclock_counter::CounterId;
use ffclock_page::{ReadError, Reader, check_history};
use ffclock_sys::{DriverStamps, SharedHistoryReader, SharedPageReader, history_beside};
use ffclock_units::{ClockError, LeapTable, MachineMark, Span, Status};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Returns the `stamps` of the status.
fn keeps_time(name: &str, kind: CounterId, stamps: &str, listen: &str) -> String {
    let scratch = Scratch::new(name);
    let truth = Truth::beginning_now(kind);
    let server = TestServer::start(listen, truth);
    let top = scratch.daemon_section(&format!("counter = \"{}\"\nstamps = \"{stamps}\"", kind.name()));
    let daemon = Daemon::start(&scratch, &(top + &server_section(server.address, "")));
    let mut judge = Judge::new(&scratch, kind, truth);
    let status = daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    assert_eq!(status.counter.name, kind.name());
    assert!(status.stamps.starts_with(stamps), "{}", status.stamps);
    println!("stamps: {}", status.stamps);
    let (reading, error) = judge.watch(Duration::from_millis(500)).expect("there is an estimate");
    assert!(reading.status >= Status::WarmingUp, "{reading:?}");
    assert!(error.abs() < Span::from_millis(2), "error {error}");
    assert!(judge.readings > 100);
    status.stamps
}

#[test]
fn with_the_cpu_counter_and_kernel_stamps() {
    keeps_time("tsc-kernel", CounterId::CPU, "kernel", "127.0.0.1:0");
}

#[test]
fn with_the_cpu_counter_and_user_stamps() {
    keeps_time("tsc-user", CounterId::CPU, "user", "127.0.0.1:0");
}

#[test]
fn with_the_raw_clock_and_kernel_stamps() {
    keeps_time("raw-kernel", CounterId::MonotonicRaw, "kernel", "127.0.0.1:0");
}

#[test]
fn with_the_raw_clock_and_user_stamps_over_ipv6() {
    keeps_time("raw-user", CounterId::MonotonicRaw, "user", "[::1]:0");
}

/// Where tracefs or the module is missing, the sockets' stamps are used and the status says so; time is kept in either
/// case. Where they exist, packets are found at the driver.
#[test]
fn stamps_at_the_driver_are_used_or_their_lack_is_reported() {
    let (tsc, raw) = (CounterId::CPU, CounterId::MonotonicRaw);
    for (kind, stamps, listen) in
        [(tsc, "trace", "127.0.0.1:0"), (tsc, "module", "127.0.0.1:0"), (raw, "trace", "[::1]:0")]
    {
        let can_be_had = match stamps {
            "trace" => DriverStamps::trace(kind, 1e9),
            _ => DriverStamps::module(kind, &[9], 1e9),
        };
        let stated = keeps_time(&format!("{}-{stamps}", kind.name()), kind, stamps, listen);
        match can_be_had {
            Ok(_) => assert!(found_at_driver(&stated) >= 8, "{stated}"),
            Err(error) => {
                println!("SKIP: no stamps by {stamps} on this host: {error}");
                assert!(stated.starts_with(&format!("{stamps} (not to be had: ")), "{stated}");
            }
        }
    }
}

#[test]
fn a_counter_that_is_not_there_is_refused_with_the_remedy() {
    if std::path::Path::new("/dev/ffcounter").exists() {
        println!("SKIP: the kernel module is loaded here");
        return;
    }
    let scratch = Scratch::new("no-module");
    let server = "[[server]]\naddress = \"127.0.0.1\"\n";
    let mut daemon = Daemon::start(&scratch, &(scratch.daemon_section("counter = \"module:hpet\"") + server));
    assert!(!daemon.wait());
    assert!(daemon.log().contains("load the kernel module ffcounter"), "{}", daemon.log());
}

/// Longer than two buckets of the history's last hour and the time from one poll to the next.
const LONGEST_SEGMENT: Duration = Duration::from_secs(3);

#[test]
fn an_old_stamp_is_converted_as_well_as_it_was_when_it_was_fresh() {
    let scratch = Scratch::new("past");
    let truth = Truth::beginning_now(CounterId::CPU);
    let server = TestServer::start("127.0.0.1:0", truth);
    let config = scratch.daemon_section("counter = \"tsc\"") + &server_section(server.address, "");
    let mut daemon = Daemon::start(&scratch, &config);
    daemon.wait_for("some exchanges", |status| status.sources[0].used >= 40);
    let page = SharedPageReader::open(&scratch.page()).unwrap();
    let history = SharedHistoryReader::open(&history_beside(&scratch.page())).unwrap();
    assert_eq!(check_history(history.words(), None), Ok(()));
    let (line, both) = (Reader::new(page.words()), Reader::new(page.words()).with_history(Some(history.words())));
    let mark = line.mark().expect("it has published");
    let growth = || line.snapshot().ok().and_then(|snapshot| snapshot.estimate()).expect("a line").bound_growth;
    let growth_before = growth();
    std::thread::sleep(LONGEST_SEGMENT);
    let taken: Vec<_> = (0..20)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(100));
            let counter = ffclock_counter::read_ordered(CounterId::CPU);
            (counter, line.time_of(counter, mark.epoch).expect("a fresh time"), growth())
        })
        .collect();
    std::thread::sleep(Duration::from_secs(8));
    let lasts = Span::from_nanos(LONGEST_SEGMENT.as_nanos() as i128);
    for (counter, fresh, growth) in &taken {
        let old = both.time_of(*counter, mark.epoch).expect("an old time");
        let error = old.tai - truth.at(*counter);
        assert!(old.reading.bound.contains(ClockError::new(error)), "{error} {:?}", old.reading.bound);
        // The fresh bound grows to the end of the segment, and from there back by at most twice a line's growth.
        let grown = growth_before.max(*growth).over(lasts + lasts + lasts);
        assert!(old.reading.bound <= fresh.reading.bound + grown, "{:?} {fresh:?} {grown:?}", old.reading);
    }
    let by_newest_line = |counter| line.time_of(counter, mark.epoch).expect("the time by the newest line");
    assert!(taken.iter().any(|(counter, ..)| both.time_of(*counter, mark.epoch) != Ok(by_newest_line(*counter))));
    daemon.signal("TERM");
    assert!(daemon.wait());
    let again = Daemon::start(&scratch, &config);
    let begun = again.wait_for("another epoch", |status| status.clock.is_some() && status.sources[0].used > 0);
    assert!(begun.counter.epoch > mark.epoch.raw(), "history of an epoch that ended converts nothing");
    let counter = ffclock_counter::read_ordered(CounterId::CPU);
    assert!(both.reading_of(counter, mark.epoch).is_err());
}

#[test]
fn a_server_that_stops_leaves_the_clock_running_free() {
    let scratch = Scratch::new("stops");
    let truth = Truth::beginning_now(CounterId::CPU);
    let server = TestServer::start("127.0.0.1:0", truth);
    let section = server_section(server.address, "reply_timeout = \"50 ms\"\nunreachable_after = 4");
    let daemon = Daemon::start(&scratch, &(scratch.daemon_section("counter = \"tsc\"") + &section));
    let mut judge = Judge::new(&scratch, CounterId::CPU, truth);
    daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    let (before, _) = judge.read().expect("there is an estimate");
    server.behave(|behaviour| behaviour.silent = true);
    daemon.wait_for("holdover", |status| status.clock.as_ref().is_some_and(|clock| clock.status == Status::Holdover));
    let (lost, _) = judge.watch(Duration::from_millis(300)).expect("the clock goes on");
    assert_eq!(lost.status, Status::Holdover);
    assert!(lost.bound > before.bound, "the bound grows: {} -> {}", before.bound, lost.bound);
    server.behave(|behaviour| behaviour.silent = false);
    daemon.wait_for("the server again", |status| {
        status.sources[0].state == SourceState::Reachable
            && status.clock.as_ref().is_some_and(|clock| clock.status != Status::Holdover)
    });
    judge.watch(Duration::from_millis(300));
}

#[test]
fn the_better_of_two_servers_is_published() {
    let scratch = Scratch::new("two");
    let truth = Truth::beginning_now(CounterId::CPU);
    let vague = TestServer::start("127.0.0.1:0", truth);
    let exact = TestServer::start("127.0.0.1:0", truth);
    vague.behave(|behaviour| behaviour.root_dispersion = ffclock_units::Bound::of(Span::from_millis(20)));
    let patience = "reply_timeout = \"50 ms\"\nunreachable_after = 4";
    let sections = [vague.address, exact.address].map(|address| server_section(address, patience));
    let config = scratch.daemon_section("") + &sections.concat();
    let daemon = Daemon::start(&scratch, &config);
    let mut judge = Judge::new(&scratch, CounterId::CPU, truth);
    let name = format!("127.0.0.1:{}", exact.address.port());
    let status = daemon.wait_for("the exact server", |status| status.selected.as_deref() == Some(name.as_str()));
    assert_eq!(status.sources.len(), 2);
    exact.behave(|behaviour| behaviour.silent = true);
    daemon.wait_for("the vague server", |status| status.selected.as_deref() != Some(name.as_str()));
    judge.watch(Duration::from_millis(200));
}

#[test]
fn the_rate_is_remembered_across_a_restart() {
    let scratch = Scratch::new("memory");
    let truth = Truth::beginning_now(CounterId::CPU);
    let server = TestServer::start("127.0.0.1:0", truth);
    // A run this short can only give a poor rate.
    let section = server_section(server.address, "local_rate_quality = \"100 ppm\"");
    let config = scratch.daemon_section("counter = \"tsc\"") + &section;
    let mut first = Daemon::start(&scratch, &config);
    let measured = |status: &StatusReport| {
        status.clock.as_ref().is_some_and(|clock| clock.status == Status::Synchronised && clock.rate_bound_ppm < 40.0)
    };
    let before = first.wait_for("a measured rate", measured);
    let epoch = before.counter.epoch;
    first.signal("TERM");
    assert!(first.wait(), "a clean stop is a success");
    assert!(!scratch.path().join("control").exists(), "the control socket is removed");
    assert!(scratch.path().join("state/rate-tsc.json").exists(), "{}", first.log());
    let second = Daemon::start(&scratch, &config);
    let after = second.wait_for("an estimate", |status| status.clock.is_some());
    let rate_bound = after.clock.expect("just seen").rate_bound_ppm;
    assert!(rate_bound < 100.0, "the first estimate rests on the remembered rate: {rate_bound} ppm");
    assert_eq!(after.counter.epoch, epoch + 1, "stamps from before the restart are recognised");
}

/// A virtual machine that is restored from a snapshot finds that the world went on without it. The server shows how
/// far.
#[test]
fn a_restored_machine_finds_the_time_again_and_gives_none_before() {
    let scratch = Scratch::new("restored");
    let truth = Truth::beginning_now(CounterId::CPU);
    let server = TestServer::start("127.0.0.1:0", truth);
    let path = scratch.path().join("vmclock");
    let mut machine = vec![0; 4096];
    machine[..12].copy_from_slice(b"VCLK\x70\0\0\0\x01\0\xff\0");
    // It has a generation counter.
    machine[25] = 1;
    std::fs::write(&path, &machine).unwrap();
    let host = std::fs::File::options().write(true).open(&path).unwrap();
    let top = scratch.daemon_section(&format!("counter = \"tsc\"\nvm_clock = \"{}\"", path.display()));
    let daemon = Daemon::start(&scratch, &(top + &server_section(server.address, "")));
    daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    let page = common::page_reader(&scratch);
    let reader = Reader::new(page.words());
    // Last a restore that the host does not count as a disruption.
    for (away, disruption, generation) in [(100, 1_u64, 1_u64), (200, 2, 2), (300, 2, 3)] {
        let before = reader.snapshot().unwrap().epoch();
        let (away, mark) = (Span::from_secs(away), MachineMark { disruption, generation: Some(generation) });
        // A server answers before all this or after it, never in between.
        server.behave(|behaviour| {
            host.write_all_at(&disruption.to_le_bytes(), 16).unwrap();
            host.write_all_at(&generation.to_le_bytes(), 104).unwrap();
            behaviour.lie = away;
        });
        let start = Instant::now();
        let mut refused = 0;
        let found = loop {
            let counter = ffclock_counter::read_ordered(CounterId::CPU);
            let reading = reader.reading_at(counter, CounterId::CPU).ok().filter(|_| reader.machine() == Some(mark));
            if let Some(reading) = reading {
                break (counter, reading);
            }
            refused += 1;
            assert!(start.elapsed() < Duration::from_secs(20), "no time after {refused} looks");
            std::thread::sleep(Duration::from_micros(100));
        };
        let (counter, reading) = found;
        let error = reading.time - LeapTable::built_in().utc_from_tai(truth.at(counter) + away);
        println!("restore {mark}: time is back after {:?}, bound {}", start.elapsed(), reading.bound);
        assert!(refused > 0 && reading.bound.contains(ClockError::new(error)), "{error}: {reading:?}");
        // A look between the two words is one more epoch.
        assert!(reader.snapshot().unwrap().epoch().raw() > before.raw());
        assert_eq!(reader.reading_of(counter, before).unwrap_err(), ReadError::OtherEpoch);
        daemon.wait_for("more exchanges", |status| status.sources[0].used >= 4);
    }
    let said = "restored, migrated or copied: its marker was 0 of generation 0 and is 1 of generation 1";
    assert!(daemon.log().contains(said), "{}", daemon.log());
}

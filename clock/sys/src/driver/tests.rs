use super::*;
use crate::{SocketEvent, StampMode, StampedSocket, Stamper};
use ffclock_counter::{nominal, read_ordered};
use ffclock_units::StampLocation;
use std::time::{Duration, Instant};

fn traced() -> Option<DriverStamps> {
    let hertz = match nominal(CounterId::CPU) {
        Ok(nominal) => nominal.period.as_hertz(),
        Err(error) => {
            println!("SKIP: no TSC: {error}");
            return None;
        }
    };
    match DriverStamps::trace(CounterId::CPU, hertz) {
        Ok(stamps) => Some(stamps),
        Err(error) => {
            println!("SKIP: no stamps by the kernel's tracepoints: {error}");
            None
        }
    }
}

fn scripted(passed: Vec<DriverPassage>) -> DriverStamps {
    DriverStamps::of(PassageSource::Scripted(passed), 1e9)
}

fn passage(counter: u64, direction: Direction) -> DriverPassage {
    DriverPassage { counter: Counter::from_raw(counter), direction, ip_length: 76 }
}

fn stamp(counter: u64) -> Stamp {
    Stamp { counter: Counter::from_raw(counter), width: Ticks::from_raw(200), location: StampLocation::Kernel }
}

/// The events of one CPU arrive after those of another.
#[test]
fn our_own_packet_is_found_among_thousands_that_came_on_other_cpus() {
    const SENT: u64 = 5_000_000_000;
    for first in [0, 1] {
        let ours = [passage(SENT, Direction::Outgoing), passage(SENT + 90_000, Direction::Incoming)];
        let others = (1..=20_000).map(|number| passage(SENT - 100_000 * number, Direction::Incoming));
        let mut passed: Vec<DriverPassage> = others.collect();
        passed.splice(if first == 0 { 0..0 } else { 20_000..20_000 }, ours);
        let mut driver = scripted(passed);
        assert_eq!(driver.refine(Direction::Outgoing, stamp(SENT + 300), None), Some(Counter::from_raw(SENT)));
        let received = driver.refine(Direction::Incoming, stamp(SENT + 89_900), Some(76));
        assert_eq!(received, Some(Counter::from_raw(SENT + 90_000)));
    }
}

/// A new epoch of a counter may begin below where the last one ended.
#[test]
fn passages_of_another_time_do_not_keep_the_present_ones_out() {
    let mut driver = scripted((0..20_000).map(|number| passage(u64::MAX / 2 + number, Direction::Outgoing)).collect());
    assert_eq!(driver.refine(Direction::Outgoing, stamp(7_000_000_000), None), None);
    driver.origin = PassageSource::Scripted(vec![passage(7_000_000_000, Direction::Outgoing)]);
    let found = driver.refine(Direction::Outgoing, stamp(7_000_000_300), None);
    assert_eq!(found, Some(Counter::from_raw(7_000_000_000)));
}

#[test]
fn another_counter_is_refused_with_the_remedy() {
    let error = DriverStamps::trace(CounterId::Module(ModuleCounter::Hpet), 1e9).unwrap_err();
    assert!(error.to_string().contains("cannot stamp events with the counter module:hpet"), "{error}");
    let error = DriverStamps::module(CounterId::MonotonicRaw, &[123], 1e9).unwrap_err();
    assert!(error.to_string().contains("module:tsc"), "{error}");
}

#[test]
fn the_instance_goes_away_with_its_owner_and_stale_ones_with_the_next() {
    let Some(stamps) = traced() else { return };
    let PassageSource::Trace(traced) = &stamps.origin else { panic!("made by trace()") };
    let path = traced.path().to_owned();
    // No process has this number: the largest that Linux gives is 2^22.
    let stale = path.with_file_name("ffclock-4194305-1");
    std::fs::create_dir(&stale).unwrap();
    drop(stamps);
    assert!(!path.exists());
    drop(self::traced());
    assert!(!stale.exists());
}

/// Packets over the loopback: each is found on both sides, between the readings of user space around it.
#[test]
fn passages_lie_within_the_brackets_of_user_space() {
    let Some(stamps) = traced() else { return };
    let period = nominal(CounterId::CPU).unwrap().period;
    let mut stamper = Stamper::new(CounterId::CPU, period);
    stamper.refine_with(stamps);
    let mut server = StampedSocket::bind("127.0.0.1:0".parse().unwrap(), StampMode::Kernel).unwrap();
    let mut client = StampedSocket::connect(server.local_address().unwrap(), StampMode::Kernel).unwrap();
    let mut both_found = 0;
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(3));
        let before = read_ordered(CounterId::CPU);
        client.send(&[7; 48], &mut stamper).unwrap();
        let (received, sent) = (wait(&mut server, &mut stamper), wait(&mut client, &mut stamper));
        let after = read_ordered(CounterId::CPU);
        // The kernel begins to stamp a moment after it was asked to.
        let (Some(received), Some(sent)) = (received, sent) else { continue };
        assert!(!before.is_after(sent.counter) && !received.counter.is_after(after));
        both_found += u32::from(sent.width == received.width && received.counter.is_after(sent.counter));
    }
    let tally = stamper.driver_tally().unwrap();
    // Other packets of the same length on a busy machine make a passage uncertain now and then.
    assert!(both_found >= 25 && tally.found >= 50, "{both_found} of 100, {tally:?}");
    println!("{both_found} of 100 packets found on both sides, {tally:?}");
}

/// A container has process numbers of its own, and the kernel's events do not use them.
#[test]
fn packets_are_found_in_a_process_namespace_too() {
    let own = std::env::current_exe().unwrap();
    let test = "driver::tests::passages_lie_within_the_brackets_of_user_space";
    let mut unshare = std::process::Command::new("unshare");
    let output =
        unshare.args(["--pid", "--fork", "--mount-proc"]).arg(own).args([test, "--exact", "--nocapture"]).output();
    let Ok(output) = output else {
        println!("SKIP: unshare(1) is missing");
        return;
    };
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    if said.contains("Operation not permitted") || said.contains("SKIP") {
        println!("SKIP: no namespace of its own, or no tracing in it: {said}");
        return;
    }
    assert!(output.status.success() && said.contains("packets found on both sides"), "{said}");
}

/// The next stamp of the kernel on this socket.
fn wait(socket: &mut StampedSocket, stamper: &mut Stamper) -> Option<Stamp> {
    let begin = Instant::now();
    loop {
        let stamp = match socket.next_event(&mut [0; 64], stamper).unwrap() {
            Some(SocketEvent::Received(received)) => received.kernel,
            Some(SocketEvent::Transmitted(sent)) => sent.stamp,
            _ => {
                assert!(begin.elapsed() < Duration::from_secs(5), "no stamp came");
                continue;
            }
        };
        let stamp = stamp.ok();
        assert!(stamp.is_none_or(|stamp| stamp.location == StampLocation::Kernel));
        return stamp;
    }
}

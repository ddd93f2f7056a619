use super::*;
use crate::{Mapper, SocketEvent, StampMode, StampedSocket};
use ffclock_counter::{nominal, read_ordered};
use ffclock_units::StampLocation;
use std::time::{Duration, Instant};

fn traced() -> Option<DriverStamps> {
    let hertz = match nominal(CounterKind::Tsc) {
        Ok(nominal) => nominal.period.as_hertz(),
        Err(error) => {
            println!("SKIP: no TSC: {error}");
            return None;
        }
    };
    match DriverStamps::trace(CounterKind::Tsc, hertz) {
        Ok(stamps) => Some(stamps),
        Err(error) => {
            println!("SKIP: no stamps by the kernel's tracepoints: {error}");
            None
        }
    }
}

#[test]
fn another_counter_is_refused_with_the_remedy() {
    let error = DriverStamps::trace(CounterKind::Module(ModuleCounter::Hpet), 1e9).unwrap_err();
    assert!(error.to_string().contains("cannot stamp events with the counter module:hpet"), "{error}");
    let error = DriverStamps::module(CounterKind::MonotonicRaw, &[123], 1e9).unwrap_err();
    assert!(error.to_string().contains("module:tsc"), "{error}");
}

#[test]
fn the_instance_goes_away_with_its_owner_and_stale_ones_with_the_next() {
    let Some(stamps) = traced() else { return };
    let Origin::Trace(traced) = &stamps.origin else { panic!("made by trace()") };
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
    let period = nominal(CounterKind::Tsc).unwrap().period;
    let mut mapper = Mapper::system(CounterKind::Tsc, period);
    mapper.refine_with(stamps);
    let mut server = StampedSocket::bind("127.0.0.1:0".parse().unwrap(), StampMode::Kernel).unwrap();
    let mut client = StampedSocket::connect(server.local_address().unwrap(), StampMode::Kernel).unwrap();
    let mut both_found = 0;
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(3));
        let before = read_ordered(CounterKind::Tsc);
        client.send(&[7; 48], &mut mapper).unwrap();
        let (received, sent) = (wait(&mut server, &mut mapper), wait(&mut client, &mut mapper));
        let after = read_ordered(CounterKind::Tsc);
        // The kernel begins to stamp a moment after it was asked to.
        let (Some(received), Some(sent)) = (received, sent) else { continue };
        assert!(!before.is_after(sent.counter) && !received.counter.is_after(after));
        both_found += u32::from(sent.width == received.width && received.counter.is_after(sent.counter));
    }
    let tally = mapper.driver_tally().unwrap();
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
fn wait(socket: &mut StampedSocket, mapper: &mut Mapper) -> Option<Stamp> {
    let begin = Instant::now();
    loop {
        let stamp = match socket.next_event(&mut [0; 64], mapper).unwrap() {
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

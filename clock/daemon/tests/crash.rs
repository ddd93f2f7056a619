//! The daemon is killed at random points while eight readers read: no reader hangs, none sees the truth outside the
//! bound.

mod common;

use common::server::{TestServer, Truth};
use common::{Daemon, Judge, Scratch, server_section};
use ffclock_counter::CounterId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const READERS: usize = 8;
const KILLS: u64 = 12;

#[test]
fn readers_survive_a_daemon_that_is_killed_again_and_again() {
    let scratch = Scratch::new("crash");
    let truth = Truth::beginning_now(CounterId::CPU);
    let server = TestServer::start("127.0.0.1:0", truth);
    let config = scratch.daemon_section("counter = \"tsc\"\nvalid_for = \"2 s\"") + &server_section(server.address, "");
    let first = Daemon::start(&scratch, &config);
    first.wait_for("an estimate", |status| status.clock.is_some());
    drop(first);
    let stop = AtomicBool::new(false);
    let readings: u64 = std::thread::scope(|scope| {
        let read = || {
            let mut judge = Judge::new(&scratch, CounterId::CPU, truth);
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..100 {
                    judge.read();
                }
                std::thread::sleep(Duration::from_micros(500));
            }
            judge.readings
        };
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
        // Run times between 60 and 560 ms, the same in every run.
        let mut life = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..KILLS {
            life = life.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let daemon = Daemon::start(&scratch, &config);
            std::thread::sleep(Duration::from_millis(60 + (life >> 33) % 500));
            drop(daemon);
        }
        stop.store(true, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().expect("no reader fails")).sum()
    });
    assert!(readings > 10_000, "{readings} readings");
    let last = Daemon::start(&scratch, &config);
    last.wait_for("an estimate after all", |status| status.clock.is_some());
}

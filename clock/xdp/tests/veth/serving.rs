//! A server whose time is the kernel's raw clock since 1970, without any error but what the line adds.

use ffclock_counter::CounterId;
use ffclock_units::{Bound, Counter, Moment, Rate, Span};
use ffclock_wire::{LeapIndicator, LogSeconds, Mode, NtpTimestamp, Packet, Version};
use ffclock_xdp::{BootPair, FastPath, LineMaker};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

pub(crate) const RENEWAL: Duration = Duration::from_millis(50);
const LONGEST: Span = Span::from_millis(200);

fn reply_at(counter: Counter) -> Option<Packet> {
    let time = NtpTimestamp::from_server(Moment::from_origin(Span::from_nanos(i128::from(counter.raw()))));
    Some(Packet {
        leap: LeapIndicator::None,
        version: Version::V4,
        mode: Mode::Server,
        stratum: 2,
        poll: LogSeconds::from_exponent(0),
        precision: LogSeconds::from_exponent(-24),
        root_delay: Span::ZERO,
        root_dispersion: Bound::ZERO,
        reference_id: 0x7f7f_0101,
        reference: NtpTimestamp::from_raw(1 << 32),
        origin: NtpTimestamp::MISSING,
        receive: time,
        transmit: time,
    })
}

/// Renews the line of a path as long as `work` lasts.
pub(crate) fn while_renewing<T>(path: &mut FastPath, work: impl FnOnce() -> T) -> T {
    let (is_over, mut maker) = (AtomicBool::new(false), LineMaker::new(LONGEST, Rate::from_ppm(500.0)));
    let mut renew = || {
        let pair = BootPair::read(CounterId::MonotonicRaw).expect("Linux has the clock");
        match maker.make(pair, reply_at) {
            Ok(line) => path.publish(&line).expect("the kernel takes it"),
            Err(_) => path.withdraw().expect("the kernel takes it"),
        }
    };
    renew();
    sleep(RENEWAL);
    renew();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                sleep(RENEWAL);
                renew();
            }
        });
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

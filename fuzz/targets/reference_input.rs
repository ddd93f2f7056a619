//! What other programs write for a reference, and pulses in any order.
#![no_main]

use ffclock_reference::{Pulse, PulseTrain, SHM_WORDS, Sample, SamplePairing, ShmWords, SockSample, number};
use ffclock_sys::VmClockWords;
use ffclock_units::{Bound, Counter, Leap, Moment, Period, Span, Stamp, StampLocation, Ticks};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = SockSample::parse(data);
    let mut words = data.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let mut copy = || ShmWords(core::array::from_fn::<u32, SHM_WORDS, _>(|_| words.next().unwrap_or_default()));
    let (first, second) = (copy(), copy());
    let _ = first.sample(&second);
    let _ = first.sample(&first);
    let longs = |place: usize| data.get(place * 8..place * 8 + 8).and_then(|bytes| bytes.try_into().ok());
    let page = VmClockWords(core::array::from_fn(|place| longs(place).map_or(0, u64::from_le_bytes)));
    if let Ok(line) = page.line() {
        // Of what a page can say, all comes back but errors that are rounded up.
        if let Some(again) = VmClockWords::of(&line).and_then(|words| words.line().ok()) {
            assert!((again.counter, again.time, again.period) == (line.counter, line.time, line.period));
            assert!(again.bound >= line.bound);
        }
        let (_, bound) = line.at(Counter::from_raw(line.counter.raw() ^ line.marker));
        assert!(bound >= line.bound.0);
    }
    let Some(nominal) = Period::from_hertz(1e9) else { return };
    let (mut train, mut pairing) = (PulseTrain::new(nominal), SamplePairing::new(nominal, *b"FUZZ"));
    for record in data.chunks_exact(24) {
        let long = |place: usize| u64::from_le_bytes(core::array::from_fn(|byte| record[place + byte]));
        let (counter, width) = (Counter::from_raw(long(0)), Ticks::from_raw(long(8) as i64));
        let stamp = Stamp { counter, width, location: StampLocation::Kernel };
        train.take(Pulse { sequence: long(16) as u32, stamp });
        let time = Moment::from_origin(Span::from_units(i128::from(long(16)) << (long(8) % 64)));
        let claim = Bound::of(Span::from_units(i128::from(long(8)) << (long(16) % 64)));
        let _ = number(time, claim, claim);
        if let Some(exchange) = pairing.observe(Sample { stamp, time, claim, leap: Leap::None }) {
            assert!(exchange.server_in <= exchange.server_out);
        }
    }
});

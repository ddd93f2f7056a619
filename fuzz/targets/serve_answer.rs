//! Any datagram to the server, at any age of any publication: a reply that is no longer than the request, repeats its
//! nonce and admits the bound; or none. A reply never gets a reply.
#![no_main]

use ffclock_page::{CounterId, PageMemory, Publication, Reader, Writer};
use ffclock_serve::face::{FaceOptions, ReplyMoments, ServedFace, timestamp};
use ffclock_serve::options::{ServedBound, Smear};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapStep, Moment, Period, Rate, ServerIdentity, Span,
    StandardUncertainty, Status, Ticks,
};
use ffclock_wire::{HEADER_BYTES, LogSeconds, NtpTimestamp, Packet, ServedRequest};
use libfuzzer_sys::fuzz_target;

const BEGIN: Counter = Counter::from_raw(1_000_000_000);

fn publication(numbers: [u32; 4]) -> Publication {
    let [bound, growth, seconds, leap] = numbers;
    let figure = Span::from_nanos(bound.into());
    let growth = GrowthRate::of(Rate::from_ppb(f64::from(growth)));
    let period = Period::from_seconds(1e-9).expect("a period");
    let uncertainty = StandardUncertainty::of(figure);
    Publication {
        counter_id: CounterId::MonotonicRaw,
        epoch: CounterEpoch::from_raw(1),
        epoch_begin: Counter::from_raw(5),
        estimate: Estimate {
            counter: BEGIN,
            time: Moment::from_origin(Span::from_secs(seconds.into())),
            period,
            uncertainty,
            noise: uncertainty,
            uncertainty_growth: growth,
            bound: Bound::of(figure),
            bound_growth: growth,
            difference_period: period,
            difference_bound: growth,
            difference_uncertainty: growth,
            status: Status::Synchronised,
        },
        leap: LeapStep {
            before: 37,
            after: 36 + (leap % 3) as i32,
            at: i64::from(seconds) - 90_000 + i64::from(leap % 180_000),
        },
        valid_until: BEGIN + Ticks::from_raw(1 << 50),
        server: Some(ServerIdentity { stratum: (leap % 20) as u8, reference_id: leap }),
    }
}

fuzz_target!(|input: ([u32; 4], [i64; 3], bool, u16, &[u8])| {
    let (numbers, [age, lead, foreseen], is_smeared, port, bytes) = input;
    let mut writer = Writer::open(PageMemory::new(), None);
    writer.publish(&publication(numbers));
    let snapshot = Reader::new(writer.memory().as_ref()).snapshot().expect("a publication");
    let options = FaceOptions {
        bound: if numbers[3] % 2 == 0 { ServedBound::Bound } else { ServedBound::Strict },
        bound_max: Bound::of(Span::from_secs(16)),
        smear: if is_smeared { Smear::Linear24h } else { Smear::Off },
        smeared_leap: Some(snapshot.leap().at),
        precision: LogSeconds::from_exponent(-24),
        reference_id: Some(7),
    };
    let transmit = BEGIN + Ticks::from_raw(age);
    let receive = transmit - Ticks::from_raw(lead % 1_000_000_000);
    let moments = ReplyMoments { earliest: receive, transmit, foreseen: Ticks::from_raw(foreseen % 1_000_000_000) };
    let face = ServedFace::of(&snapshot, &moments, &options);
    let stamp = |counter| timestamp(&snapshot, counter, &options).unwrap_or(NtpTimestamp::MISSING);
    let Ok(request) = ServedRequest::decode(bytes, port) else { return };
    let reply = face.template.reply(&request, stamp(receive), stamp(transmit));
    assert!(reply.len() <= bytes.len() && reply.len() == HEADER_BYTES);
    assert!(ServedRequest::decode(&reply, port).is_err(), "a reply gets a reply");
    assert_eq!(reply[24..32], bytes[40..48], "the nonce");
    if face.standing.is_ok() {
        let bound = |counter| snapshot.reading_at(counter).map(|reading| reading.bound);
        let packet = Packet::decode(&face.template.header()[..]).expect("a header");
        let distance = Bound::of(packet.root_delay).halved() + packet.root_dispersion;
        let sooner = Bound::of(Period::from_seconds(1e-9).expect("a period") * moments.foreseen);
        assert!(bound(transmit).is_ok_and(|bound| bound + sooner <= distance));
        assert!(bound(receive).is_ok_and(|bound| bound <= distance));
        assert!((1..16).contains(&packet.stratum));
    }
});

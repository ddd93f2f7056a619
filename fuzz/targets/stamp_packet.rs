//! Any datagram as a test packet: a reply of the same length that repeats what was asked, or none; and any datagram as
//! a reply: a judgement that keeps its own rules, whatever the four times say.
#![no_main]

use ffclock_owd::error_estimate::ErrorEstimate;
use ffclock_owd::judge::{ClockedTime, Delay, OwnTimes, PacketFate, is_unstamped_there, judge};
use ffclock_owd::packet::{TestReply, TestRequest, WireTime};
use ffclock_units::{Bound, Moment, Span};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: ([u64; 4], u16, u32, &[u8])| {
    let ([bound, sent, received, interval], error, sequence, bytes) = input;
    let own = |time: u64| ClockedTime {
        time: Moment::from_origin(Span::from_nanos(time.into())),
        bound: Bound::of(Span::from_nanos(bound.into())),
        is_synchronised: sequence % 2 == 0,
        is_stamped: !sequence.is_multiple_of(3) || time % 2 == 0,
    };
    let estimate = ErrorEstimate::of(own(0).bound);
    assert!(estimate.bound().is_some_and(|stated| stated >= own(0).bound || bound > 1 << 62));
    if let Ok(reply) = TestReply::decode(bytes) {
        let own = OwnTimes {
            sent: own(sent),
            received: own(received),
            interval: Span::from_nanos(interval.into()),
            tai_ahead: Span::from_secs(37),
        };
        let judged = judge(&own, &reply);
        let is_possible = |way: Delay| !(way.delay + way.bound.as_span()).is_negative();
        let ways = [judged.forward, judged.backward];
        assert!(judged.fate.is_contradiction() || ways.into_iter().flatten().all(is_possible));
        let are_synchronised = own.sent.is_synchronised && reply.error.is_synchronised();
        let may_be_left_out = judged.fate == PacketFate::Unstamped;
        assert!(ways.iter().all(|way| way.is_some() == are_synchronised || way.is_none() && may_be_left_out));
        let lacks_stamp = !own.sent.is_stamped || !own.received.is_stamped || is_unstamped_there(&reply);
        assert!(judged.fate.is_contradiction() || may_be_left_out == lacks_stamp);
    }
    let Ok(request) = TestRequest::decode(bytes) else { return };
    let error = ErrorEstimate::from_raw(error | 1);
    let reply = TestReply { sequence, sent: WireTime(sent), error, received: WireTime(received), request };
    let mut packet = bytes.to_vec();
    reply.encode(&mut packet);
    assert_eq!(packet.len(), bytes.len());
    assert_eq!(TestReply::decode(&packet), Ok(reply));
});

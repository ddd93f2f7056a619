use super::*;
use ffclock_units::{Counter, StampMove, Ticks};

fn stamp(counter: u64, location: StampLocation) -> Stamp {
    Stamp { counter: Counter::from_raw(counter), width: Ticks::from_raw(10), location }
}

fn user(counter: u64) -> Stamp {
    stamp(counter, StampLocation::User)
}

fn kernel(counter: u64) -> Stamp {
    stamp(counter, StampLocation::Kernel)
}

/// A judge of a socket that asked its peer, user space having read 1000 before.
fn asked(wanted: StampMode, granted: StampMode) -> (Judge, Outstanding) {
    let mut judge = Judge::new(wanted, granted);
    let departure = DepartureStamp { user: user(1000), mark: None };
    let mut ledger = crate::ledger::Ledger::default();
    let id = ledger.expect(departure);
    judge.ask(id, departure);
    (judge, ledger.find(0).unwrap())
}

fn by_kernel() -> (Judge, Outstanding) {
    asked(StampMode::Kernel, StampMode::Kernel)
}

#[test]
fn the_kernels_stamps_serve_where_nothing_speaks_against_them() {
    let (mut judge, packet) = by_kernel();
    assert_eq!(judge.sent(&packet, Ok(kernel(1100))), BestStamp { stamp: kernel(1100), shortfall: None });
    assert_eq!(judge.received(user(2000), Ok(kernel(1900))), BestStamp { stamp: kernel(1900), shortfall: None });
    assert_eq!(judge.quality(), StampQuality::AsWanted);
}

#[test]
fn after_a_request_whose_stamp_is_out_of_order_that_of_its_answer_serves_no_more() {
    for reason in [StampDiscarded::BeforeReading, StampDiscarded::AfterReading] {
        let (mut judge, packet) = by_kernel();
        assert_eq!(judge.sent(&packet, Err(reason)), BestStamp { stamp: user(1000), shortfall: Some(reason) });
        let best = judge.received(user(2000), Ok(kernel(1900)));
        assert_eq!(best, BestStamp { stamp: user(2000), shortfall: Some(StampDiscarded::RequestContradicted) });
        // The next request is another one.
        judge.ask(packet.id, packet.departure);
        assert_eq!(judge.received(user(2000), Ok(kernel(1900))).shortfall, None);
    }
    let (mut judge, packet) = by_kernel();
    judge.sent(&packet, Err(StampDiscarded::ClockStepped));
    assert_eq!(judge.received(user(2000), Ok(kernel(1900))).shortfall, None, "a step contradicts nothing");
}

#[test]
fn an_answer_may_come_at_the_reading_of_its_request_and_not_before() {
    let (mut judge, _) = by_kernel();
    assert_eq!(judge.received(user(1000), Ok(kernel(1000))).stamp, kernel(1000), "the counter has not moved since");
    let early = judge.received(user(2000), Ok(kernel(999)));
    assert_eq!(early, BestStamp { stamp: user(2000), shortfall: Some(StampDiscarded::BeforeRequest) });
}

#[test]
fn a_socket_without_a_peer_has_no_request_to_judge_by() {
    let mut judge = Judge::new(StampMode::Kernel, StampMode::Kernel);
    assert_eq!(judge.send(&DepartureStamp { user: user(1000), mark: None }), None);
    assert_eq!(judge.received(user(2000), Ok(kernel(999))).stamp, kernel(999));
    assert_eq!(judge.latest_mark(), None);
}

#[test]
fn a_stamp_that_is_given_up_is_that_of_user_space() {
    let (mut judge, packet) = by_kernel();
    let missing = BestStamp { stamp: user(1000), shortfall: Some(StampDiscarded::Missing) };
    assert_eq!(judge.give_up(packet.id), Some(missing));
    let (mut other, _) = by_kernel();
    let later = {
        let mut ledger = crate::ledger::Ledger::default();
        ledger.number();
        ledger.number()
    };
    assert_eq!(other.give_up(later), None);
    let mut alone = Judge::new(StampMode::User, StampMode::User);
    assert_eq!(alone.ask(packet.id, packet.departure), Some(missing), "nothing is to be waited for");
}

#[test]
fn each_location_moves_by_its_own_delays() {
    let (mut judge, packet) = by_kernel();
    let of = |by: i64| StampMove { by: Ticks::from_raw(by), wider: Ticks::from_raw(by / 10) };
    let shift = |out: i64, back: i64| StampShift { sent: of(out), received: of(back) };
    judge.shift(StampShifts { user: shift(100, 200), kernel: shift(10, 20) });
    let sent = judge.sent(&packet, Ok(kernel(1100))).stamp;
    assert_eq!((sent.counter, sent.width), (Counter::from_raw(1110), Ticks::from_raw(11)));
    let received = judge.received(user(2000), Ok(kernel(1900))).stamp;
    assert_eq!((received.counter, received.width), (Counter::from_raw(1880), Ticks::from_raw(12)));
    assert_eq!(judge.give_up(packet.id).unwrap().stamp.counter, Counter::from_raw(1100));
    let received = judge.received(user(2000), Err(StampDiscarded::Missing)).stamp;
    assert_eq!((received.counter, received.width), (Counter::from_raw(1800), Ticks::from_raw(30)));
}

#[test]
fn eight_exchanges_in_a_row_without_the_kernels_stamps_are_worth_a_word() {
    let (mut judge, _) = by_kernel();
    let bad = |judge: &mut Judge| judge.note_exchange([&kernel(1100), &user(2000)]);
    judge.received(user(2000), Err(StampDiscarded::TooOld));
    for _ in 0..7 {
        assert_eq!(bad(&mut judge), None);
    }
    assert_eq!(judge.note_exchange([&kernel(1100), &kernel(1900)]), None, "one is enough to begin again");
    for _ in 0..7 {
        assert_eq!(bad(&mut judge), None);
    }
    assert_eq!(judge.quality(), StampQuality::AsWanted);
    assert_eq!(bad(&mut judge), Some(StampDiscarded::TooOld));
    assert_eq!(bad(&mut judge), None, "once");
    assert_eq!(judge.quality(), StampQuality::Missing(StampDiscarded::TooOld));
}

#[test]
fn a_kernel_that_refuses_owes_no_stamps() {
    for (wanted, quality) in [(StampMode::Kernel, StampQuality::Refused), (StampMode::User, StampQuality::AsWanted)] {
        let (mut judge, _) = asked(wanted, StampMode::User);
        for _ in 0..100 {
            assert_eq!(judge.note_exchange([&user(1000), &user(2000)]), None);
        }
        assert_eq!(judge.quality(), quality);
    }
}

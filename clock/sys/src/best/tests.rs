use super::*;
use crate::StampedPackets;
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
    assert_eq!(
        judge.sent(&packet, &BetterStamps::of_kernel(Ok(kernel(1100)))),
        BestStamp { stamp: kernel(1100), shortfall: None }
    );
    assert_eq!(
        judge.received(user(2000), &BetterStamps::of_kernel(Ok(kernel(1900)))),
        BestStamp { stamp: kernel(1900), shortfall: None }
    );
    assert_eq!(judge.quality(), StampQuality::AsWanted);
}

#[test]
fn after_a_request_whose_stamp_is_out_of_order_that_of_its_answer_serves_no_more() {
    for reason in [StampDiscarded::BeforeReading, StampDiscarded::AfterReading] {
        let (mut judge, packet) = by_kernel();
        assert_eq!(
            judge.sent(&packet, &BetterStamps::of_kernel(Err(reason))),
            BestStamp { stamp: user(1000), shortfall: Some(reason) }
        );
        let best = judge.received(user(2000), &BetterStamps::of_kernel(Ok(kernel(1900))));
        assert_eq!(best, BestStamp { stamp: user(2000), shortfall: Some(StampDiscarded::RequestContradicted) });
        // The next request is another one.
        judge.ask(packet.id, packet.departure);
        assert_eq!(judge.received(user(2000), &BetterStamps::of_kernel(Ok(kernel(1900)))).shortfall, None);
    }
    let (mut judge, packet) = by_kernel();
    judge.sent(&packet, &BetterStamps::of_kernel(Err(StampDiscarded::ClockStepped)));
    assert_eq!(
        judge.received(user(2000), &BetterStamps::of_kernel(Ok(kernel(1900)))).shortfall,
        None,
        "a step contradicts nothing"
    );
}

#[test]
fn an_answer_may_come_at_the_reading_of_its_request_and_not_before() {
    let (mut judge, _) = by_kernel();
    assert_eq!(
        judge.received(user(1000), &BetterStamps::of_kernel(Ok(kernel(1000)))).stamp,
        kernel(1000),
        "the counter has not moved since"
    );
    let early = judge.received(user(2000), &BetterStamps::of_kernel(Ok(kernel(999))));
    assert_eq!(early, BestStamp { stamp: user(2000), shortfall: Some(StampDiscarded::BeforeRequest) });
}

#[test]
fn a_socket_without_a_peer_has_no_request_to_judge_by() {
    let mut judge = Judge::new(StampMode::Kernel, StampMode::Kernel);
    assert_eq!(judge.send(&DepartureStamp { user: user(1000), mark: None }), None);
    assert_eq!(judge.received(user(2000), &BetterStamps::of_kernel(Ok(kernel(999)))).stamp, kernel(999));
    assert_eq!(judge.latest_mark(), None);
}

#[test]
fn a_stamp_that_is_given_up_is_that_of_user_space() {
    let (mut judge, packet) = by_kernel();
    let missing = BestStamp { stamp: user(1000), shortfall: Some(StampDiscarded::Missing) };
    assert_eq!(judge.give_up(packet.id, None), Some(missing));
    let (mut other, _) = by_kernel();
    let later = {
        let mut ledger = crate::ledger::Ledger::default();
        ledger.number();
        ledger.number()
    };
    assert_eq!(other.give_up(later, None), None);
    let mut alone = Judge::new(StampMode::User, StampMode::User);
    assert_eq!(alone.ask(packet.id, packet.departure), Some(missing), "nothing is to be waited for");
}

#[test]
fn each_location_moves_by_its_own_delays() {
    let (mut judge, packet) = by_kernel();
    let of = |by: i64| StampMove { by: Ticks::from_raw(by), wider: Ticks::from_raw(by / 10) };
    let shift = |out: i64, back: i64| StampShift { sent: of(out), received: of(back) };
    judge.shift(StampShifts { user: shift(100, 200), kernel: shift(10, 20) });
    let sent = judge.sent(&packet, &BetterStamps::of_kernel(Ok(kernel(1100)))).stamp;
    assert_eq!((sent.counter, sent.width), (Counter::from_raw(1110), Ticks::from_raw(11)));
    let received = judge.received(user(2000), &BetterStamps::of_kernel(Ok(kernel(1900)))).stamp;
    assert_eq!((received.counter, received.width), (Counter::from_raw(1880), Ticks::from_raw(12)));
    assert_eq!(judge.give_up(packet.id, None).unwrap().stamp.counter, Counter::from_raw(1100));
    let received = judge.received(user(2000), &BetterStamps::of_kernel(Err(StampDiscarded::Missing))).stamp;
    assert_eq!((received.counter, received.width), (Counter::from_raw(1800), Ticks::from_raw(30)));
}

fn card(counter: u64) -> Stamp {
    stamp(counter, StampLocation::Hardware)
}

fn both(kernel: Stamp, card: Result<Stamp, StampDiscarded>) -> BetterStamps {
    BetterStamps { kernel: Ok(kernel), card: Some(card) }
}

fn by_card() -> (Judge, Outstanding) {
    let (mut judge, packet) = asked(StampMode::Hardware, StampMode::Kernel);
    judge.use_card(Some(CardUse::numbered(0, StampedPackets::Ntp)));
    (judge, packet)
}

#[test]
fn the_cards_stamps_serve_and_are_not_moved() {
    let (mut judge, packet) = by_card();
    let by = StampMove { by: Ticks::from_raw(10), wider: Ticks::from_raw(1) };
    let shift = StampShift { sent: by, received: by };
    judge.shift(StampShifts { user: shift, kernel: shift });
    let sent = judge.sent(&packet, &both(kernel(1100), Ok(card(1105))));
    assert_eq!(sent, BestStamp { stamp: card(1105), shortfall: None });
    let received = judge.received(user(2000), &both(kernel(1900), Ok(card(1800))));
    assert_eq!(received, BestStamp { stamp: card(1800), shortfall: None });
    assert_eq!(judge.quality(), StampQuality::AsWanted);
}

#[test]
fn where_the_cards_stamp_does_not_serve_the_kernels_does() {
    let (mut judge, packet) = by_card();
    let missing = judge.sent(&packet, &both(kernel(1100), Err(StampDiscarded::CardMissing)));
    assert_eq!(missing, BestStamp { stamp: kernel(1100), shortfall: Some(StampDiscarded::CardMissing) });
    let received = judge.received(user(2000), &both(kernel(1900), Ok(card(1800)))).stamp;
    assert_eq!(received, card(1800), "a stamp that is missing contradicts nothing");
    let early = judge.received(user(2000), &both(kernel(1900), Ok(card(999))));
    assert_eq!(early, BestStamp { stamp: kernel(1900), shortfall: Some(StampDiscarded::BeforeRequest) });
    let neither = BetterStamps { kernel: Err(StampDiscarded::TooOld), card: Some(Err(StampDiscarded::CardStepped)) };
    let last = judge.received(user(2000), &neither);
    assert_eq!(last, BestStamp { stamp: user(2000), shortfall: Some(StampDiscarded::TooOld) });
}

#[test]
fn an_answer_passes_the_card_after_its_request() {
    let (mut judge, packet) = by_card();
    judge.sent(&packet, &both(kernel(1100), Ok(card(1105))));
    let exchanged = judge.received(user(2000), &both(kernel(1900), Ok(card(1104))));
    assert_eq!(exchanged.shortfall, Some(StampDiscarded::BeforeRequest));
    for reason in [StampDiscarded::BeforeReading, StampDiscarded::AfterReading, StampDiscarded::Repeated] {
        let (mut judge, packet) = by_card();
        judge.sent(&packet, &both(kernel(1100), Err(reason)));
        let received = judge.received(user(2000), &both(kernel(1900), Ok(card(1800))));
        let shortfall = Some(StampDiscarded::RequestContradicted);
        assert_eq!(received, BestStamp { stamp: kernel(1900), shortfall }, "{reason}");
    }
}

#[test]
fn a_card_that_gives_up_leaves_the_kernels_stamp_and_may_come_back() {
    let (mut judge, packet) = by_card();
    let given_up = judge.give_up(packet.id, Some(Ok(kernel(1100)))).unwrap();
    assert_eq!(given_up, BestStamp { stamp: kernel(1100), shortfall: Some(StampDiscarded::CardMissing) });
    let mixed = |judge: &mut Judge| judge.note_exchange([&kernel(1100), &card(1800)]);
    for _ in 0..7 {
        assert_eq!(mixed(&mut judge), None);
    }
    assert!(judge.expects_card());
    assert_eq!(mixed(&mut judge), Some(StampDiscarded::CardMissing));
    assert_eq!(judge.quality(), StampQuality::CardMissing(StampDiscarded::CardMissing));
    assert!(!judge.expects_card(), "a late stamp is worth no waiting now");
    judge.note_exchange([&card(1105), &card(1800)]);
    assert_eq!((judge.quality(), judge.expects_card()), (StampQuality::AsWanted, true));
}

#[test]
fn without_a_card_the_kernel_stamps_and_owes_its_stamps() {
    let (mut judge, packet) = asked(StampMode::Hardware, StampMode::Kernel);
    assert_eq!(judge.quality(), StampQuality::NoCard);
    let sent = judge.sent(&packet, &BetterStamps::of_kernel(Ok(kernel(1100))));
    assert_eq!(sent, BestStamp { stamp: kernel(1100), shortfall: None });
    judge.received(user(2000), &BetterStamps::of_kernel(Err(StampDiscarded::Missing)));
    let mut note = || judge.note_exchange([&kernel(1100), &user(2000)]);
    assert!((0..7).all(|_| note().is_none()));
    assert_eq!(note(), Some(StampDiscarded::Missing));
    assert_eq!(judge.quality(), StampQuality::Missing(StampDiscarded::Missing));
    let (mut refused, _) = asked(StampMode::Hardware, StampMode::User);
    refused.use_card(Some(CardUse::numbered(0, StampedPackets::Ntp)));
    assert_eq!((refused.granted(), refused.quality()), (StampMode::User, StampQuality::Refused));
    let (mut kernel_alone, _) = by_kernel();
    kernel_alone.use_card(Some(CardUse::numbered(0, StampedPackets::Ntp)));
    assert_eq!(kernel_alone.granted(), StampMode::Kernel, "a card must be asked for when the socket is made");
}

#[test]
fn eight_exchanges_in_a_row_without_the_kernels_stamps_are_worth_a_word() {
    let (mut judge, _) = by_kernel();
    let bad = |judge: &mut Judge| judge.note_exchange([&kernel(1100), &user(2000)]);
    judge.received(user(2000), &BetterStamps::of_kernel(Err(StampDiscarded::TooOld)));
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

#[test]
fn of_a_packet_whose_card_stamp_does_not_come_the_kernels_serves() {
    let mut judge = Judge::new(StampMode::Hardware, StampMode::Kernel);
    judge.use_card(Some(CardUse::numbered(0, StampedPackets::PtpOverUdp)));
    let best = judge.give_up_sent(user(100), Some(Ok(kernel(120))));
    assert_eq!((best.stamp, best.shortfall), (kernel(120), Some(StampDiscarded::CardMissing)));
    let best = judge.give_up_sent(user(100), None);
    assert_eq!((best.stamp, best.shortfall), (user(100), Some(StampDiscarded::Missing)));
}

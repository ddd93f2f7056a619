//! Masters that the best-master choice must not take, whatever their priority.

use crate::script::*;
use ffclock_ptp::*;
use ffclock_units::{Moment, Span};

fn followed(script: &Script) -> Option<PortIdentity> {
    script.follower.master().map(|master| master.port)
}

/// A Sync of one step that says this time of the scale of the master.
fn sync(script: &mut Script, says: Span) -> Vec<PtpEvent> {
    let origin = PtpTimestamp::of(Moment::from_origin(says)).expect("a date").0;
    let sequence = script.next_sequence();
    script.deliver(&message(script.master, sequence, PtpBody::Sync(origin)))
}

/// IEEE 1588-2019, 7.6.2.5: 255 is the class of clocks that are never masters; and what is configured.
#[test]
fn a_class_above_the_limit_is_not_followed() {
    let of_class = |class: u8| {
        let mut announced = Announcement { priority_1: 1, ..announcement(port(5)) };
        announced.quality.class = ClockClass(class);
        announced
    };
    let mut script = Script::acquainted(config());
    for _ in 0..3 {
        assert_eq!(script.announce_by(port(5), of_class(255)), rejected(PtpRejection::ClockClass));
    }
    script.announce_by(port(5), of_class(254));
    script.announce_by(port(5), of_class(254));
    assert_eq!(followed(&script), Some(port(5)), "254 is the least that is worth anything");
    let mut script = Script::acquainted(FollowerConfig { clock_class_max: ClockClass(7), ..config() });
    assert_eq!(script.announce_by(port(5), of_class(248)), rejected(PtpRejection::ClockClass));
    assert_eq!(followed(&script), Some(script.master));
}

/// IEEE 1588-2019, 9.5.3: an Announce message of the master counts at once. The Syncs of one that has just said that
/// it may not be followed are not used until its silence is noticed.
#[test]
fn a_master_that_becomes_unacceptable_is_left_at_once() {
    let only = Some(port(1).clock);
    let config = FollowerConfig { clock_class_max: ClockClass(7), steps_removed_max: 2, grandmaster: only, ..config() };
    let right = announcement(port(1));
    let degraded = ClockQuality { class: ClockClass::DEGRADED, ..right.quality };
    for (changed, reason) in [
        (Announcement { quality: degraded, ..right }, PtpRejection::ClockClass),
        (Announcement { steps_removed: 3, ..right }, PtpRejection::StepsRemoved),
        (Announcement { grandmaster: port(9).clock, ..right }, PtpRejection::NotAccepted),
    ] {
        let mut script = Script::acquainted(config);
        script.announced = changed;
        let events = script.announce();
        assert_eq!(events, [PtpEvent::MasterLost(script.master), PtpEvent::Rejected(reason)]);
        let says = tai(script.now - WAY).since_origin();
        assert_eq!(sync(&mut script, says), rejected(PtpRejection::NotMaster));
        script.announced = right;
        script.announce();
        script.announce();
        assert_eq!(followed(&script), Some(script.master), "it is accepted again");
    }
}

/// No clause: a grandmaster that was never set begins in 1970, and is the best by its priority.
#[test]
fn a_master_that_was_never_set_is_passed_over() {
    let earliest = Moment::from_origin(Span::from_secs(BEGIN - 86_400));
    let mut script = Script::acquainted(FollowerConfig { earliest, ..config() });
    let unset = Announcement { priority_1: 1, ..announcement(port(5)) };
    let both_announce = |script: &mut Script| {
        script.announce();
        script.announce_by(port(5), unset)
    };
    both_announce(&mut script);
    both_announce(&mut script);
    assert_eq!(followed(&script), Some(port(5)));
    (script.master, script.announced) = (port(5), unset);
    let events = sync(&mut script, Span::from_secs(1000));
    assert!(matches!(events[..], [PtpEvent::MasterChosen(_), PtpEvent::Rejected(PtpRejection::ImplausibleTime)]));
    (script.master, script.announced) = (port(1), announcement(port(1)));
    for _ in 0..29 {
        script.pass(Span::from_secs(2));
        if let Some(request) = script.sent().pop() {
            script.answer(request);
        }
        both_announce(&mut script);
        assert_eq!(followed(&script), Some(port(1)), "for a minute");
        assert_eq!(observations(&script.two_step()).len(), 1);
    }
    script.pass(Span::from_secs(2));
    both_announce(&mut script);
    assert_eq!(followed(&script), Some(port(5)), "it is tried again");
}

/// IEEE 1588-2019, 5.3.3: seconds have 48 bits. No clause, but caution: no time is taken that is further from the
/// present than a century.
#[test]
fn times_outside_an_era_are_named() {
    let earliest = Moment::from_origin(Span::from_secs(BEGIN));
    let era = ERA.as_nanos() as i64 / 1_000_000_000;
    for (seconds, is_taken) in [(-1, false), (0, true), (era - 1, true), (era, false), ((1 << 48) - 1 - BEGIN, false)] {
        let mut script = Script::acquainted(FollowerConfig { earliest, ..config() });
        let events = sync(&mut script, Span::from_secs(BEGIN + seconds));
        assert_eq!(observations(&events).len(), usize::from(is_taken), "{seconds}: {events:?}");
        assert_eq!(followed(&script).is_some(), is_taken);
        assert_eq!(events.contains(&PtpEvent::Rejected(PtpRejection::ImplausibleTime)), !is_taken);
    }
}

/// What a master does beside announcing itself.
#[derive(Clone, Copy)]
struct Gives {
    syncs: bool,
    responses: bool,
}

const NOTHING: Gives = Gives { syncs: false, responses: false };
const ALL: Gives = Gives { syncs: true, responses: true };

/// One that is better than the script's own, by its priority.
fn better() -> (PortIdentity, Announcement) {
    (port(5), Announcement { priority_1: 1, ..announcement(port(5)) })
}

/// Seconds, of at most 100, until the one that is followed is passed over; each second all of these announce
/// themselves.
fn seconds_until_passed_over(script: &mut Script, masters: &[((PortIdentity, Announcement), Gives)]) -> Option<u32> {
    (1..=100).find(|_| {
        let mut events = Vec::new();
        for _ in 0..10 {
            script.pass(Span::from_millis(100));
            let asked = masters.iter().find(|((port, _), _)| followed(script) == Some(*port));
            let requests = script.sent();
            if let Some(((port, _), Gives { responses: true, .. })) = asked {
                script.master = *port;
                events.extend(requests.into_iter().flat_map(|request| script.answer(request)));
            }
            events.extend(script.events());
        }
        for ((port, announced), gives) in masters {
            (script.master, script.announced) = (*port, *announced);
            events.extend(script.announce());
            if gives.syncs {
                let says = tai(script.now - WAY).since_origin();
                events.extend(sync(script, says));
            }
        }
        events.contains(&PtpEvent::Rejected(PtpRejection::Fruitless))
    })
}

/// No clause: a master may announce itself, and its Syncs not come, or have no time that can be used, or its responses
/// not come. Where there is another one, that is tried; where there is no other, nothing is gained by leaving it.
#[test]
fn a_master_that_gives_no_time_is_passed_over_while_there_is_another() {
    let usual = (port(1), announcement(port(1)));
    let (best, announced) = better();
    // An arbitrary timescale is refused.
    let arbitrary = (best, Announcement { flags: PtpFlags::default(), ..announced });
    let mute = Gives { responses: false, ..ALL };
    for (master, gives) in [(better(), NOTHING), (arbitrary, ALL), (better(), mute)] {
        let mut script = Script::with(config());
        let both = [(usual, ALL), (master, gives)];
        let waited = seconds_until_passed_over(&mut script, &both).expect("another one speaks");
        assert!((16..=20).contains(&waited), "{waited}");
        assert_eq!(followed(&script), Some(usual.0));
        let waited = seconds_until_passed_over(&mut script, &both).expect("it is tried again");
        assert!((70..=80).contains(&waited), "{waited}: after a minute it is asked again for 16 s");
        let mut alone = Script::with(config());
        assert_eq!(seconds_until_passed_over(&mut alone, &[(master, gives)]), None);
        assert_eq!(followed(&alone), Some(best));
    }
}

/// No clause: a master that gave nothing for a while may be well again while another one is asked that gives nothing
/// either.
#[test]
fn masters_that_are_all_passed_over_are_tried_in_turn() {
    let usual = (port(1), announcement(port(1)));
    let mut script = Script::with(config());
    for expected in [port(1), port(5), port(1), port(5)] {
        let waited = seconds_until_passed_over(&mut script, &[(usual, NOTHING), (better(), NOTHING)]);
        assert!(waited.is_some_and(|waited| (15..=20).contains(&waited)), "{waited:?}");
        assert_eq!(followed(&script), Some(expected));
    }
    let waited = seconds_until_passed_over(&mut script, &[(usual, ALL), (better(), NOTHING)]);
    assert!(waited.is_some_and(|waited| (15..=20).contains(&waited)), "{waited:?}");
    assert_eq!(followed(&script), Some(usual.0));
}

/// IEEE 1588-2019, 7.2.1 and 13.3.2.8: a Sync and a Delay_Req that are under way when the master announces another
/// timescale, or that it is sure of its time now, may belong to the last one: their times are not used.
#[test]
fn what_is_under_way_when_the_timescale_changes_is_not_used() {
    for (before, after) in [
        (PtpFlags::default(), PtpFlags::PTP_TIMESCALE),
        (PtpFlags::PTP_TIMESCALE, PtpFlags::default()),
        (PtpFlags::PTP_TIMESCALE.and(PtpFlags::UNCERTAIN), PtpFlags::PTP_TIMESCALE),
    ] {
        let mut script = Script::with(FollowerConfig { arbitrary: ArbitraryTimescale::Utc, ..config() });
        script.announced.flags = before;
        script.announce();
        script.announce();
        script.two_step();
        let (request, ticket) = script.request();
        script.follower.handle_sent(ticket, stamp_at(script.now));
        let response = script.response(&request);
        let (sync, follow_up) = script.sync_pair();
        script.deliver(&sync);
        script.announced.flags = after;
        script.announce();
        assert_eq!(script.deliver(&follow_up), []);
        assert_eq!(script.deliver(&response), rejected(PtpRejection::Late));
        assert_eq!(observations(&script.two_step()).len(), 1);
    }
}

/// IEEE 1588-2019, 13.3.2.14: how often the Syncs come, as they say themselves, and as they come.
#[test]
fn the_sync_interval_is_what_the_syncs_say() {
    let mut script = Script::acquainted(config());
    assert_eq!(script.follower.sync_interval(), Span::from_secs(1));
    for (log_interval, pause, seconds) in [(4, 0, 16), (4, 16, 16), (100, 16, 32), (-7, 16, 16), (127, 16, 16)] {
        (0..pause).for_each(|_| {
            script.pass(Span::from_secs(1));
            script.announce();
        });
        let (sync, _) = script.sync_pair();
        script.deliver(&PtpMessage { log_interval, ..sync });
        assert_eq!(script.follower.sync_interval(), Span::from_secs(seconds), "{log_interval}");
    }
}

//! Leap seconds by the words of servers, and beside what gives no word.

use super::*;

#[test]
fn an_announced_leap_second_stands_in_the_page_until_it_is_withdrawn() {
    let (mut case, _) = before_midnight("announced", 1, 5 * 86_400);
    case.run_exchanges();
    assert_eq!(case.leap_step().after, 37);
    case.announce(0, LeapIndicator::Insert);
    let status = case.run_until("the announcement", |status| {
        status.clock.as_ref().is_some_and(|clock| clock.leap == Some((MIDNIGHT, 1)))
    });
    assert!(has_event(&status, "a leap second is announced"));
    assert_eq!(case.leap_step(), AHEAD);
    assert_eq!(status.clock.unwrap().tai_offset_s, 37);
    case.announce(0, LeapIndicator::None);
    let status =
        case.run_until("the withdrawal", |status| status.clock.as_ref().is_some_and(|clock| clock.leap.is_none()));
    assert!(has_event(&status, "withdrawn"));
    assert_eq!(case.leap_step().after, 37);
    case.announce(0, LeapIndicator::Delete);
    case.run_exchanges();
    assert_eq!(case.leap_step(), LeapStep { before: 37, after: 36, at: MIDNIGHT + 36 });
}

#[test]
fn one_server_of_three_cannot_make_a_leap_second() {
    let (mut case, _) = before_midnight("liar", 3, 5 * 86_400);
    case.run_exchanges();
    for liar in 0..3 {
        case.announce(liar, LeapIndicator::Insert);
        case.run_exchanges();
        let status = case.keeper.status();
        assert_eq!(case.leap_step().after, 37, "server {liar}");
        assert!(has_event(&status, "do not agree about a leap second"));
        case.announce(liar, LeapIndicator::None);
        case.run_exchanges();
    }
    case.announce(0, LeapIndicator::Insert);
    case.announce(2, LeapIndicator::Insert);
    case.run_exchanges();
    assert_eq!(case.leap_step(), AHEAD);
}

#[test]
fn a_dispute_about_the_time_withdraws_no_leap_second() {
    let truth = Truth::beginning_at(CounterId::CPU, Moment::from_origin(Span::from_secs(MIDNIGHT - 86_400)));
    let servers = (0..2).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start("dispute", servers, "counter = \"tsc\"\n[estimator]\nstep_patience = \"1 s\"");
    for server in 0..2 {
        case.announce(server, LeapIndicator::Insert);
    }
    case.run_exchanges();
    assert_eq!(case.leap_step(), AHEAD);
    case.servers[1].behave(|behaviour| behaviour.lie = Span::from_millis(50));
    let is_disputed = |status: &StatusReport| status.quorum == Some(QuorumReport::Disagreement);
    let status = case.run_until("a dispute", is_disputed);
    assert_eq!((case.leap_step(), status.clock.unwrap().leap), (AHEAD, Some((MIDNIGHT, 1))));
    assert!(!has_event(&case.keeper.status(), "withdrawn"));
}

#[test]
fn an_indicator_left_over_from_midnight_is_no_leap_second_next_month() {
    let (mut case, _) = before_midnight("leftover", 1, -3600);
    case.announce(0, LeapIndicator::Insert);
    case.run_exchanges();
    assert_eq!(case.leap_step().after, 37);
    assert_eq!(case.keeper.status().clock.unwrap().leap, None);
}

#[test]
fn the_clock_goes_through_a_leap_second_as_the_server_does() {
    let (mut case, truth) = before_midnight("through", 1, 3);
    let leaps = LeapTable::with(INSERT);
    case.servers[0].behave(|behaviour| (behaviour.leap, behaviour.leaps) = (LeapIndicator::Insert, leaps));
    case.run_until("the announcement", |status| {
        status.clock.as_ref().is_some_and(|clock| clock.leap == Some((MIDNIGHT, 1)))
    });
    let judge = |case: &Case| {
        let counter = case.keeper.host_counter.read();
        let reading = Reader::new(case.page().words()).reading_at(counter, CounterId::Tsc).unwrap();
        // If the leap second begins or ends within the bound, the labels on either side of it are a second apart.
        let (tai, bound) = (truth.at(counter), reading.bound.as_span());
        let (early, late) = (leaps.utc_from_tai(tai - bound), leaps.utc_from_tai(tai + bound));
        let possible = Span::ZERO..=bound + bound;
        let is_possible = possible.contains(&(reading.time - early)) || possible.contains(&(late - reading.time));
        assert!(is_possible, "{:?} is not between {early:?} and {late:?}", reading.time);
        reading.time
    };
    let mut labels = Vec::new();
    loop {
        case.turn();
        labels.push(judge(&case));
        let status = case.keeper.status();
        let clock = status.clock.as_ref().unwrap();
        if clock.utc_ns > (MIDNIGHT + 3) * 1_000_000_000 {
            assert_eq!((clock.tai_offset_s, clock.leap), (38, None));
            break;
        }
    }
    assert!(labels.windows(2).any(|pair| pair[1] < pair[0]), "the second before midnight came twice");
    // The server stops announcing the leap second that has happened: that withdraws nothing.
    case.announce(0, LeapIndicator::None);
    case.run_exchanges();
    judge(&case);
    assert_eq!(case.leap_step(), AHEAD);
}

/// A program that writes samples in chrony's form, as a clock that shows the truth.
struct Writer {
    socket: std::os::unix::net::UnixDatagram,
    path: PathBuf,
    truth: Truth,
    next: std::cell::Cell<Moment<Mono>>,
}

impl Writer {
    /// Writes a sample, unless it would be one of a flood.
    fn write(&self) {
        if ffclock_sys::mono_now() < self.next.get() {
            return;
        }
        self.next.set(ffclock_sys::mono_now() + Span::from_millis(100));
        let pair = ffclock_counter::read_narrowest(CounterId::CPU, 8, ffclock_sys::system_utc_now);
        let [shown, true_utc] = [pair.value, LeapTable::built_in().utc_from_tai(self.truth.at(pair.middle()))];
        let nanos = shown.since_origin().as_nanos();
        let micros = (nanos / 1000) * 1000;
        let offset = (true_utc - shown).as_seconds();
        let mut bytes = ((nanos / 1_000_000_000) as i64).to_ne_bytes().to_vec();
        bytes.extend((((micros % 1_000_000_000) / 1000) as i64).to_ne_bytes());
        bytes.extend(offset.to_ne_bytes());
        bytes.extend([0, 0, 0, 0x534f_434b_i32].map(i32::to_ne_bytes).concat());
        // The daemon may not have made its socket yet.
        let _ = self.socket.send_to(&bytes, &self.path);
    }
}

/// What a reference says has no leap second in it, so it is not against one.
#[test]
fn a_reference_beside_a_server_prevents_no_leap_second() {
    for trust in ["", "trust = true"] {
        let truth = Truth::beginning_at(CounterId::CPU, Moment::from_origin(Span::from_secs(MIDNIGHT - 5 * 86_400)));
        let (name, options) = (format!("leap-reference-{}", trust.len()), "counter = \"tsc\"");
        let mut case = Case::start(&name, vec![TestServer::start("127.0.0.1:0", truth)], options);
        let path = case.directory.join("gps.sock");
        let reference = format!(
            "[[reference]]\ninput = \"sock:{}\"\nerror = \"50 ms\"\npoll = \"125 ms\"\n{trust}\n",
            path.display()
        );
        let text = config_text(&case.directory, &case.servers, options) + &reference;
        case.keeper.take_over(Config::parse(&text).unwrap());
        let (socket, next) = (std::os::unix::net::UnixDatagram::unbound().unwrap(), case.keeper.context.now.into());
        let writer = Writer { socket, path, truth, next };
        let patience = ffclock_sys::mono_now() + Span::from_secs(20);
        let both_believed = |status: &StatusReport| {
            status.sources.iter().all(|source| source.exchanges > 2 && source.belief == BeliefReport::Truechimer)
        };
        let run_until = |case: &mut Case, what: &str, pleases: &dyn Fn(&StatusReport) -> bool| {
            while !pleases(&case.keeper.status()) {
                writer.write();
                case.turn();
                assert!(ffclock_sys::mono_now() < patience, "{trust} never: {what}\n{:#?}", case.keeper.status());
            }
        };
        run_until(&mut case, "both are believed", &both_believed);
        assert_eq!(case.leap_step().after, 37);
        case.announce(0, LeapIndicator::Insert);
        run_until(&mut case, "the leap second", &|status| {
            status.clock.as_ref().is_some_and(|clock| clock.leap == Some((MIDNIGHT, 1)))
        });
        assert_eq!(case.leap_step(), AHEAD);
    }
}

/// What a silent server said before may be older than the announcement.
#[test]
fn a_silent_server_prevents_no_leap_second_and_makes_none() {
    let (mut case, _) = before_midnight("leap-silent", 3, 5 * 86_400);
    case.run_exchanges();
    (0..2).for_each(|server| case.servers[server].behave(|behaviour| behaviour.silent = true));
    case.run_until("silence", |status| status.sources[..2].iter().all(|it| it.state == SourceState::Unreachable));
    case.announce(2, LeapIndicator::Insert);
    let status = case.run_until("the announcement", |status| {
        status.clock.as_ref().is_some_and(|clock| clock.leap == Some((MIDNIGHT, 1)))
    });
    assert_eq!(status.vote.as_ref().map(|vote| vote.believed), Some(3), "they are believed about the time all along");
    assert!(!has_event(&status, "do not agree about a leap second"));
}

/// What the server at the last address announced is no word of the one at the next.
#[test]
fn a_server_at_another_address_has_its_own_word() {
    let (mut case, truth) = before_midnight("leap-moved", 1, 5 * 86_400);
    case.announce(0, LeapIndicator::Insert);
    case.run_exchanges();
    assert_eq!(case.leap_step(), AHEAD);
    let other = TestServer::start("127.0.0.1:0", truth);
    case.servers[0].behave(|behaviour| behaviour.silent = true);
    case.run_until("silence", |status| status.sources[0].state == SourceState::Unreachable);
    case.keeper.peers[0].resolved(vec![other.address], &mut case.keeper.context);
    assert_eq!(case.keeper.peers[0].leap_vote(), None, "it has said nothing yet");
    case.run_until("its word", |status| status.clock.as_ref().is_some_and(|clock| clock.leap.is_none()));
    assert_eq!(case.keeper.peers[0].leap_vote().map(|vote| vote.announced), Some(None));
}

//! Pulses whose seconds a false server numbered.

use super::*;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// A pulse of a socket: that the present second began as long ago as the system clock says.
fn send_pulse(sender: &UnixDatagram, path: &Path) {
    let now = ffclock_sys::system_utc_now().since_origin().as_nanos();
    let mut bytes = ((now / 1_000_000_000) as i64).to_ne_bytes().to_vec();
    bytes.extend((((now % 1_000_000_000) / 1000) as i64).to_ne_bytes());
    bytes.extend(0.0_f64.to_ne_bytes());
    for word in [1_i32, 0, 0, 0x534f_434b] {
        bytes.extend(word.to_ne_bytes());
    }
    let _ = sender.send_to(&bytes, path);
}

impl Case {
    /// The same servers, and pulses.
    fn text_with_pulses(&self) -> String {
        let path = self.directory.join("pulses.sock");
        let pulses = format!("[[reference]]\ninput = \"sock:{}\"\nerror = \"100 ms\"\n", path.display());
        config_text(&self.directory, &self.servers, "counter = \"tsc\"") + &pulses
    }

    /// The same where the pulses are trusted.
    fn text_with_trusted_pulses(&self) -> String {
        self.text_with_pulses() + "trust = true\n"
    }

    /// Turns with a pulse every 70 ms.
    fn run_with_pulses(&mut self, what: &str, pleases: impl Fn(&StatusReport) -> bool) -> StatusReport {
        let (sender, path) = (UnixDatagram::unbound().unwrap(), self.directory.join("pulses.sock"));
        let (mut next, patience) = (ffclock_sys::mono_now(), ffclock_sys::mono_now() + Span::from_secs(40));
        loop {
            if ffclock_sys::mono_now() >= next {
                send_pulse(&sender, &path);
                next = ffclock_sys::mono_now() + Span::from_millis(70);
            }
            self.turn();
            let status = self.keeper.status();
            if pleases(&status) {
                return status;
            }
            assert!(ffclock_sys::mono_now() < patience, "never: {what}\n{status:#?}");
        }
    }
}

fn offset(case: &Case, truth: &Truth) -> Span {
    let counter = case.keeper.host_counter.read();
    case.reading().unwrap().time - LeapTable::built_in().utc_from_tai(truth.at(counter))
}

/// The false server was alone with the pulses, and has their voice beside its own. Two honest servers come later.
#[test]
fn pulses_that_a_false_server_numbered_are_numbered_again_by_two_others() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let liar = TestServer::start("127.0.0.1:0", truth);
    liar.behave(|behaviour| behaviour.lie = Span::from_secs(10));
    let mut case = Case::start("numbers", vec![liar], "counter = \"tsc\"");
    case.run_until("its clock", |status| used(status) >= 10);
    let config = Config::parse(&case.text_with_pulses()).unwrap();
    case.keeper.take_over(config);
    let is_misled = |status: &StatusReport| status.vote.as_ref().is_some_and(|vote| vote.believed == 2);
    case.run_with_pulses("a false majority", |status| is_misled(status) && used(status) >= 20);
    assert!((offset(&case, &truth) - Span::from_secs(10)).abs() < Span::from_millis(200));

    case.servers.extend((0..2).map(|_| TestServer::start("127.0.0.1:0", truth)));
    let config = Config::parse(&case.text_with_pulses()).unwrap();
    case.keeper.take_over(config);
    let is_led_back = |status: &StatusReport| {
        let beliefs: Vec<_> = status.sources.iter().map(|source| source.belief).collect();
        beliefs[0] == BeliefReport::Falseticker && beliefs[1..].iter().all(|one| *one == BeliefReport::Truechimer)
    };
    let status = case.run_with_pulses("the right second", is_led_back);
    assert!(has_event(&status, "they are numbered again"), "{:?}", status.events);
    assert!(offset(&case, &truth).abs() < Span::from_millis(200));
}

/// One against one: either may be wrong.
#[test]
fn one_server_alone_does_not_renumber_pulses() {
    let (mut case, _) = one_server("one-number", "counter = \"tsc\"");
    case.run_until("its clock", |status| used(status) >= 10);
    let config = Config::parse(&case.text_with_pulses()).unwrap();
    case.keeper.take_over(config);
    let agrees = |status: &StatusReport| status.vote.as_ref().is_some_and(|vote| vote.believed == 2);
    case.run_with_pulses("agreement", |status| agrees(status) && used(status) >= 20);
    case.servers[0].behave(|behaviour| behaviour.lie = Span::from_secs(10));
    let disputes = |status: &StatusReport| status.quorum == Some(QuorumReport::Disagreement);
    let before = case.run_with_pulses("a dispute", disputes).sources[0].exchanges;
    let status = case.run_with_pulses("more of the server", |status| status.sources[0].exchanges > before + 20);
    assert!(!has_event(&status, "they are numbered again"), "{:?}", status.events);
}

/// What the operator trusts decides over the others, which must not say what it means.
#[test]
fn servers_that_are_not_trusted_do_not_renumber_trusted_pulses() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = (0..2).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let mut case = Case::start("trusted-pulses", servers, "counter = \"tsc\"");
    case.run_until("its clock", |status| used(status) >= 10);
    let config = Config::parse(&case.text_with_trusted_pulses()).unwrap();
    case.keeper.take_over(config);
    let agrees = |status: &StatusReport| status.vote.as_ref().is_some_and(|vote| vote.believed == 3);
    case.run_with_pulses("agreement", |status| agrees(status) && used(status) >= 20);
    for server in &case.servers {
        server.behave(|behaviour| behaviour.lie = Span::from_secs(10));
    }
    let are_found =
        |status: &StatusReport| status.sources[..2].iter().all(|source| source.belief == BeliefReport::Falseticker);
    let before = case.run_with_pulses("two liars", are_found).sources[2].exchanges;
    let status = case.run_with_pulses("more pulses", |status| status.sources[2].exchanges > before + 20);
    assert!(!has_event(&status, "they are numbered again"), "{:?}", status.events);
    assert!(offset(&case, &truth).abs() < Span::from_millis(200));
}

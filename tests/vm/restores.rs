//! A guest that is restored many times, seen from outside: `tests/vm/run restores` stops, saves and restores it, and
//! says so here on standard input, one line for each event, `saved` or `restored`.
//!
//! The truth is this machine's system clock, which is also what the guest's only server shows. That server is here, so
//! that the answers which the guest got since its restore can be counted. A request that the guest had sent when it was
//! saved may reach the server after the restore, and its answer is of no use to anybody: ffclockd asks from a new port
//! in a new epoch, so its requests since then are those from the port that is in use when it has a time.

use super::clock::{connect, exchange, serve_ntp, text};
use super::clocks::now;
use super::{Found, Outcome, median, tsc};
use std::io::BufRead;
use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A guest that is not synchronised by then [s], counted from the beginning or from a restore, fails.
const PATIENCE: f64 = 120.0;

/// What was seen from one restore to the next; the first part begins with the guest itself.
#[derive(Default)]
struct Part {
    /// When the guest ran again [ns since 1970], and the answers that its server had given by then.
    begun: i128,
    answers_before: Answers,
    /// Readings with a time, and of those the ones outside their bound.
    readings: usize,
    outside: usize,
    refused: usize,
    synchronised: usize,
    /// The first reading with a time: how long after the restore [s], after how many answers to requests of the epoch
    /// that begins then, and after how many to requests from before.
    first: Option<(f64, u64, u64)>,
    largest_error: f64,
    bounds: Vec<f64>,
    halves: Vec<f64>,
}

/// What the guest said, with the answers of the server until then.
struct Said {
    before: i128,
    after: i128,
    /// Its time and its bound [ns], and its status.
    reading: Option<(i128, f64, String)>,
    answers: Answers,
}

/// What the server has answered: all requests, and those from the port that the last one came from.
#[derive(Clone, Copy, Default)]
struct Answers {
    all: u64,
    of_port: u64,
    port: u16,
}

impl Answers {
    fn count(&mut self, port: u16) {
        self.all += 1;
        self.of_port = if port == self.port { self.of_port + 1 } else { 1 };
        self.port = port;
    }

    /// Since `before`: to the requests from the port that is in use now, and to those from others.
    fn since(self, before: Answers) -> (u64, u64) {
        let all = self.all - before.all;
        // Where nothing was asked from another port, those of an earlier epoch cannot be distinguished.
        let of_port = if self.port == before.port { all.min(self.of_port) } else { self.of_port };
        (of_port, all - of_port)
    }
}

impl Part {
    fn beginning(answers: Answers) -> Result<Self, String> {
        Ok(Part { begun: now()?, answers_before: answers, ..Part::default() })
    }

    fn take(&mut self, said: &Said) {
        let Some((time, bound, status)) = &said.reading else {
            self.refused += 1;
            return;
        };
        let half = (said.after - said.before) as f64 / 2.0;
        let error = (time - (said.before + said.after) / 2) as f64;
        let after = (said.before - self.begun) as f64 * 1e-9;
        let (own, late) = said.answers.since(self.answers_before);
        self.first.get_or_insert((after.max(0.0), own, late));
        self.readings += 1;
        self.outside += usize::from(error.abs() > bound + half);
        self.synchronised += usize::from(status == "synchronised");
        self.largest_error = self.largest_error.max(error.abs() - half);
        self.bounds.push(*bound);
        self.halves.push(half);
    }
}

/// Follows the guest through `count` restores, with as many readings with a time after each as `each` says, and prints
/// a line when a part has them. In the end there is one object of JSON.
pub(crate) fn follow(guest: &str, port: &str, [count, each]: [usize; 2]) -> Outcome {
    let answers = Arc::new(Mutex::new(Answers::default()));
    let counted = answers.clone();
    let given = move || *answers.lock().unwrap_or_else(PoisonError::into_inner);
    let server = UdpSocket::bind(("127.0.0.1", port.parse().map_err(text)?)).map_err(text)?;
    thread::spawn(move || {
        let count = |port| counted.lock().unwrap_or_else(PoisonError::into_inner).count(port);
        serve_ntp(&server, || now().unwrap_or_default(), count)
    });
    let events = events();
    let socket = connect(guest)?;
    socket.set_read_timeout(Some(Duration::from_millis(200))).map_err(text)?;
    let mut parts = vec![Part::beginning(Answers::default())?];
    let mut away = false;
    let mut is_shown = false;
    loop {
        match events.try_recv() {
            Ok(event) if event == "saved" => away = true,
            Ok(event) if event == "restored" => {
                parts.push(Part::beginning(given())?);
                (away, is_shown) = (false, false);
            }
            Ok(event) => return Err(format!("unknown event {event}")),
            Err(TryRecvError::Disconnected) => return Err("the restores ended early".to_owned()),
            Err(TryRecvError::Empty) => {}
        }
        let number = parts.len() - 1;
        let Some(part) = parts.last_mut() else { continue };
        if let Some(said) = ask(&socket, &given)? {
            part.take(&said);
        }
        // The rate, which the guest keeps, must be known before it is saved.
        let is_enough = part.readings >= each && (number > 0 || part.synchronised > 0);
        if is_enough && !is_shown {
            is_shown = true;
            let (after, own, late) = part.first.unwrap_or_default();
            let (readings, outside) = (part.readings, part.outside);
            println!(
                "restore {number}: a time after {after:.3} s and {own} answers, {late} more to requests from before; \
                 {outside} of {readings} outside"
            );
        }
        if is_enough && number == count {
            break;
        }
        let waited = (now()? - part.begun) as f64 * 1e-9;
        Found(away || is_enough || waited < PATIENCE + each as f64 * 0.05)
            .or_fail(|| format!("restore {number}: {} readings, {} refused", part.readings, part.refused))?;
    }
    judge(&parts)
}

/// The lines of standard input.
fn events() -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// One question; none where no answer comes, as while the guest is away.
fn ask(socket: &UdpSocket, given: &impl Fn() -> Answers) -> Result<Option<Said>, String> {
    let question = format!("{} ", tsc());
    let before = now()?;
    let answer = exchange(socket, question.trim_end().as_bytes(), |reply| reply.starts_with(question.as_bytes()));
    let after = now()?;
    let Ok((_, reply, _)) = answer else {
        // Before the guest is up nothing listens there, and the error comes at once.
        thread::sleep(Duration::from_millis(5));
        return Ok(None);
    };
    let said = core::str::from_utf8(&reply).map_err(text)?.trim_start_matches(&question);
    let mut words = said.split(' ');
    let reading = (|| {
        let (time, bound) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().filter(|status| *status != "unsynchronised").map(|status| (time, bound, status.to_owned()))
    })();
    Ok(Some(Said { before, after, reading, answers: given() }))
}

/// The figures of all restores, as JSON. The part before the first restore counts where readings are concerned.
fn judge(parts: &[Part]) -> Outcome {
    let restored = parts.get(1..).unwrap_or_default();
    let sum = |of: fn(&Part) -> usize| parts.iter().map(of).sum::<usize>();
    let (readings, outside) = (sum(|part| part.readings), sum(|part| part.outside));
    let mut firsts: Vec<f64> = restored.iter().filter_map(|part| part.first.map(|(after, ..)| after)).collect();
    let answers: Vec<u64> = restored.iter().filter_map(|part| part.first.map(|(_, own, _)| own)).collect();
    let by_first_answer = answers.iter().filter(|answers| **answers <= 1).count();
    let most_answers = answers.iter().copied().max().unwrap_or(0);
    let with_late_ones = restored.iter().filter(|part| part.first.is_some_and(|(_, _, late)| late > 0)).count();
    let mut bounds: Vec<f64> = parts.iter().flat_map(|part| part.bounds.iter().copied()).collect();
    let mut halves: Vec<f64> = parts.iter().flat_map(|part| part.halves.iter().copied()).collect();
    let largest = parts.iter().map(|part| part.largest_error).fold(0.0, f64::max);
    println!(
        "{{\"restores\": {}, \"readings\": {readings}, \"outside_bound\": {outside}, \"refused\": {}, \
         \"first_time_after_restore_median_s\": {:.3}, \"first_time_after_restore_largest_s\": {:.3}, \
         \"by_the_first_answer\": {by_first_answer}, \
         \"answers_until_first_time_most\": {most_answers}, \
         \"after_answers_to_requests_from_before\": {with_late_ones}, \"error_largest_ms\": {:.3}, \"bound_median_ms\": {:.3}, \
         \"seen_to_within_median_ms\": {:.3}}}",
        restored.len(),
        sum(|part| part.refused),
        median(&mut firsts),
        firsts.iter().copied().fold(0.0, f64::max),
        largest * 1e-6,
        median(&mut bounds) * 1e-6,
        median(&mut halves) * 1e-6,
    );
    Found(outside == 0).or_fail(|| format!("{outside} of {readings} readings are outside their bound"))?;
    // One that is lost, or takes long on a busy host, is followed by a second.
    Found(most_answers <= 2).or_fail(|| format!("{most_answers} answers of the server were needed for a time"))
}

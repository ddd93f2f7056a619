//! Incoming connections. Any host may connect; all connections are read at the same time, so a silent one delays no
//! rank.

use crate::LiveError;
use crate::control::{ANSWER, ControlLine, Hello, prepare};
use ffclock_sys::{Interest, mono_now, poll};
use ffclock_units::{Moment, Mono, Span};
use std::io::BufReader;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

/// More are not let in at a time.
const VISITORS_MAX: usize = 1024;

/// A connection over which nothing has been said to the end.
struct Visitor {
    reader: BufReader<TcpStream>,
    line: ControlLine,
    until: Moment<Mono>,
}

/// The state of a connection.
enum HeardFromRank {
    /// It has not said everything.
    Nothing(Visitor),
    Hello(Box<Hello>, BufReader<TcpStream>),
    /// It is no rank of ours.
    Nonsense,
}

/// The door, and who stands in it.
pub(super) struct Doorway<'a> {
    listener: &'a TcpListener,
    visitors: Vec<Visitor>,
}

impl<'a> Doorway<'a> {
    /// At a listener that does not block.
    pub(super) fn new(listener: &'a TcpListener) -> Self {
        Doorway { listener, visitors: Vec::new() }
    }

    /// The next ranks that have said who they are; none when the deadline has passed.
    pub(super) fn next(&mut self, deadline: Moment<Mono>) -> Result<Vec<(Hello, BufReader<TcpStream>)>, LiveError> {
        loop {
            self.let_in()?;
            let ranks = self.listen();
            if !ranks.is_empty() || mono_now() >= deadline {
                return Ok(ranks);
            }
            self.wait(deadline)?;
        }
    }

    fn let_in(&mut self) -> Result<(), LiveError> {
        while self.visitors.len() < VISITORS_MAX {
            // A fault of one connection, or a lack of room for more, shows at the next look.
            let Ok((stream, _)) = self.listener.accept() else { break };
            stream.set_nonblocking(true).map_err(LiveError::network("greeting"))?;
            let until = mono_now() + Span::from_secs(ANSWER.as_secs() as i64);
            self.visitors.push(Visitor { reader: BufReader::new(stream), line: ControlLine::default(), until });
        }
        Ok(())
    }

    fn listen(&mut self) -> Vec<(Hello, BufReader<TcpStream>)> {
        let mut ranks = Vec::new();
        for visitor in std::mem::take(&mut self.visitors) {
            match visitor.listen() {
                HeardFromRank::Nothing(visitor) => self.visitors.push(visitor),
                HeardFromRank::Hello(hello, reader) => ranks.push((*hello, reader)),
                HeardFromRank::Nonsense => (),
            }
        }
        ranks
    }

    fn wait(&self, deadline: Moment<Mono>) -> Result<(), LiveError> {
        let mut interests: Vec<_> =
            self.visitors.iter().map(|visitor| Interest::readable(visitor.reader.get_ref().as_fd())).collect();
        if self.visitors.len() < VISITORS_MAX {
            interests.push(Interest::readable(self.listener.as_fd()));
        }
        let first =
            self.visitors.iter().map(|visitor| visitor.until).min().map_or(deadline, |until| until.min(deadline));
        poll(&mut interests, Some(first)).map_err(LiveError::network("waiting for the ranks"))?;
        Ok(())
    }
}

impl Visitor {
    fn listen(mut self) -> HeardFromRank {
        match self.line.read(&mut self.reader) {
            Ok(None) if mono_now() < self.until => HeardFromRank::Nothing(self),
            Ok(Some(hello)) if prepare(self.reader.get_ref()).is_ok() => {
                HeardFromRank::Hello(Box::new(hello), self.reader)
            }
            Ok(_) | Err(_) => HeardFromRank::Nonsense,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Replies, Settings, control};
    use ffclock_theta::algorithm::AlgorithmForm;
    use std::io::Write;

    fn hello(rank: u32) -> Hello {
        let settings = Settings {
            processes: 4,
            tolerated: 1,
            form: AlgorithmForm::Repaired,
            rounds: 10,
            delay_ns: 0,
            replies: Replies::None,
            faults: vec![],
        };
        let address = ([127, 0, 0, 1], 9).into();
        let (host, machine, counter) = ("a".to_owned(), "m".to_owned(), "tsc".to_owned());
        Hello { rank, settings, address, host, machine, counter, page: String::new(), no_page: None }
    }

    /// Silence, nonsense, one who leaves and half a word do not hold up those who speak, and half a word may become a
    /// whole one.
    #[test]
    fn whoever_speaks_is_heard() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || TcpStream::connect(address).unwrap();
        let silent: Vec<_> = (0..5).map(|_| connect()).collect();
        drop(connect());
        connect().write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let word = format!("{}\n", serde_json::to_string(&hello(3)).unwrap());
        let (mut slow, quick) = (connect(), connect());
        slow.write_all(&word.as_bytes()[..20]).unwrap();
        control::write(&quick, &hello(2)).unwrap();
        let mut doorway = Doorway::new(&listener);
        let soon = || mono_now() + Span::from_secs(5);
        let begun = mono_now();
        let ranks = |found: Vec<(Hello, _)>| found.into_iter().map(|(hello, _)| hello.rank).collect::<Vec<_>>();
        assert_eq!(ranks(doorway.next(soon()).unwrap()), [2]);
        slow.write_all(&word.as_bytes()[20..]).unwrap();
        assert_eq!(ranks(doorway.next(soon()).unwrap()), [3]);
        assert!(mono_now() < begun + Span::from_secs(5));
        let deadline = mono_now() + Span::from_millis(20);
        assert!(doorway.next(deadline).unwrap().is_empty() && mono_now() >= deadline);
        drop(silent);
    }

    /// What comes right after the first word stays for those who read on.
    #[test]
    fn nothing_that_follows_is_lost() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        control::write(&stream, &hello(1)).unwrap();
        control::write(&stream, &control::FromRank::Done).unwrap();
        let found = Doorway::new(&listener).next(mono_now() + Span::from_secs(5)).unwrap();
        let (first, mut reader) = found.into_iter().next().unwrap();
        assert_eq!(first, hello(1));
        assert_eq!(control::read::<control::FromRank>(&mut reader).unwrap(), control::FromRank::Done);
    }
}

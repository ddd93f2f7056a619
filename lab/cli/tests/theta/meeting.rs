//! How ranks meet: ranks that are missing, connections of others, and a rendezvous that is no rank 0.

use crate::common::{Ranks, free_port};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[test]
fn ranks_that_stay_away_are_named() {
    let mut ranks = Ranks::start(free_port(), 0..3, &["--patience", "2 s"]);
    let output = ranks.end();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("only 3 of 4 ranks came") && said.contains("missing: [3]"), "{said}");
}

/// A rank with other settings, or with the number of another: rank 0 names it, and no rank is left waiting.
#[test]
fn ranks_that_do_not_agree_are_named() {
    for (words, part) in [
        (["--rounds", "21"], "rank 1 was started with"),
        (["--rounds", "20"], "two processes say that they are rank 1"),
    ] {
        let port = free_port();
        let mut ranks = Ranks::start(port, 0..1, &["--rounds", "20"]);
        ranks.0.append(&mut Ranks::start(port, 1..2, &words).0);
        ranks.0.append(&mut Ranks::start(port, 1..2, &["--rounds", "20"]).0);
        let output = ranks.end();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(said.contains(part), "{said}");
        while !ranks.0.is_empty() {
            assert_eq!(ranks.end().status.code(), Some(1));
        }
    }
}

/// A port scanner connects and sends nothing. The ranks that connect after it are still heard.
#[test]
fn silent_connections_delay_no_rank() {
    let port = free_port();
    let mut ranks = Ranks::start(port, 0..1, &["--patience", "10 s", "--rounds", "20"]);
    let begun = Instant::now();
    let silent: Vec<TcpStream> = std::iter::repeat_with(|| TcpStream::connect(("127.0.0.1", port)))
        .inspect(|tried| {
            if tried.is_err() {
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "rank 0 does not listen");
        })
        .flatten()
        .take(5)
        .collect();
    ranks.0.extend(std::mem::take(&mut Ranks::start(port, 1..4, &["--patience", "10 s", "--rounds", "20"]).0));
    let output = ranks.end();
    assert!(output.status.success(), "{output:?}");
    // One after the other they would have taken ten seconds each.
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    drop(silent);
}

/// Something else listens where rank 0 is said to be: it takes the connection and never answers.
#[test]
fn a_rank_does_not_wait_for_ever_for_rank_0() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("works in a test");
    let port = listener.local_addr().expect("works in a test").port();
    let mut ranks = Ranks::start(port, 1..2, &["--patience", "1 s"]);
    let (stream, _) = listener.accept().expect("works in a test");
    let output = ranks.end();
    drop(stream);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains(&format!("rank 1 of 4: 127.0.0.1:{port}")) && said.contains("within 2 s"), "{said}");
}

//! Connections whose other end may vanish silently: a host that loses its power or its network closes no connection.

use crate::ffi;
use ffclock_units::Span;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

/// How often the other end is asked within the time that it has.
const QUESTIONS: i128 = 5;

/// Makes the kernel give a connection up when the other host has answered nothing for `silence` (at least 5 s): neither
/// what was sent nor, on an idle connection, the kernel's own probes (`SO_KEEPALIVE`, `TCP_USER_TIMEOUT`; tcp(7)).
/// Reads and writes then fail. A process that takes nothing of what was sent to it counts as silent too; one that sends
/// nothing does not.
///
/// # Errors
/// As setsockopt(2).
pub fn give_up_silent_peer(stream: &TcpStream, silence: Span) -> io::Result<()> {
    let millis = silence.as_nanos().div_euclid(1_000_000).clamp(1000 * QUESTIONS, libc::c_int::MAX.into());
    let between = (millis / 1000 / QUESTIONS) as libc::c_int;
    let set = |level, name, value| ffi::set_option(stream.as_fd(), level, name, value);
    set(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, between)?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, between)?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPCNT, QUESTIONS as libc::c_int)?;
    #[cfg(target_os = "linux")]
    set(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, millis as libc::c_int)?;
    set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)
}

/// Lets as many connections wait to be accepted as the kernel allows (`net.core.somaxconn`): the standard library asks
/// for 128, which a burst of clients fills, and those that find it full try again a second later.
///
/// # Errors
/// As listen(2).
pub fn lengthen_queue(listener: &TcpListener) -> io::Result<()> {
    ffi::listen(listener.as_fd(), libc::c_int::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (stream, listener.accept().unwrap().0)
    }

    #[test]
    fn the_kernel_has_taken_it() {
        let option = |stream: &TcpStream, level, name| ffi::option(stream.as_fd(), level, name).unwrap();
        for (silence, between, millis) in
            [(Span::from_secs(15), 3, 15_000), (Span::ZERO, 1, 5000), (Span::from_millis(27_300), 5, 27_300)]
        {
            let (stream, _other) = pair();
            give_up_silent_peer(&stream, silence).unwrap();
            assert_eq!(option(&stream, libc::SOL_SOCKET, libc::SO_KEEPALIVE), 1);
            assert_eq!(option(&stream, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE), between);
            assert_eq!(option(&stream, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL), between);
            assert_eq!(option(&stream, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT), millis);
        }
    }

    /// The other end takes nothing: the writer gets an error, where without the option it would wait for ever.
    #[test]
    fn a_peer_that_takes_nothing_is_given_up() {
        let (mut stream, mut other) = pair();
        give_up_silent_peer(&stream, Span::from_secs(5)).unwrap();
        let error = loop {
            if let Err(error) = stream.write_all(&[0; 65_536]) {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(other.read(&mut [0; 16]).is_ok_and(|length| length == 16), "what it did not take is there");
    }

    /// More connections than the standard library's queue holds are all there before the first is accepted.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_burst_waits_in_the_queue() {
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap().trim().parse().unwrap_or(0);
        if most < 300 {
            println!("SKIP: net.core.somaxconn is {most}");
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        lengthen_queue(&listener).unwrap();
        let address = listener.local_addr().unwrap();
        let wait = core::time::Duration::from_millis(900);
        let burst: Vec<_> = (0..300).map(|_| TcpStream::connect_timeout(&address, wait).unwrap()).collect();
        listener.set_nonblocking(true).unwrap();
        assert_eq!(core::iter::from_fn(|| listener.accept().ok()).count(), burst.len());
    }
}

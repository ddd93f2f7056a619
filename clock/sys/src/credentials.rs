//! Who is at the other end of a local socket.

use crate::ffi;
use std::os::fd::BorrowedFd;

/// Whether the process that connected this UNIX socket belonged to root or to our own user. Where the kernel does not
/// say, the answer is false.
pub fn is_own_or_root(socket: BorrowedFd<'_>) -> bool {
    ffi::user_of_peer(socket).is_ok_and(|user| user == 0 || user == ffi::own_user())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn we_are_ourselves_and_strangers_are_strangers() {
        let (near, far) = UnixStream::pair().unwrap();
        assert!(is_own_or_root(near.as_fd()) && is_own_or_root(far.as_fd()));
        let without_peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(!is_own_or_root(without_peer.as_fd()));
    }
}

//! The socket of a daemon's control protocol, and its file.

use crate::listener::{Listener, Service};
use ffclock_sys::mono_now;
use ffclock_units::{Moment, Mono, Span};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// How often the control socket is looked for at most.
const LOOKS: Span = Span::from_secs(4);

/// The control socket; its file is removed when it is dropped.
pub struct ControlSocket {
    listener: Listener<UnixListener>,
    path: PathBuf,
    /// Which file it is: its device and its number there.
    identity: (u64, u64),
    next_look: Moment<Mono>,
}

impl ControlSocket {
    /// Listens at this path for visitors of `program`. A socket left behind by a killed daemon is replaced. One that
    /// still has a listener is not, and neither is anything that is not a socket.
    ///
    /// # Errors
    /// The place is taken, or may not be written.
    pub fn bind(path: &Path, program: &str) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        if let Ok(found) = std::fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                return Err(io::Error::other("something else is there that is not a socket"));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(io::Error::other(format!("another {program} is running")));
            }
            std::fs::remove_file(path)?;
        }
        let socket = UnixListener::bind(path)?;
        socket.set_nonblocking(true)?;
        // Anyone may read the status; the service checks the rights for anything more.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
        let identity = identity(path)?;
        let listener = Listener::new(socket, Service::Control);
        Ok(ControlSocket { listener, path: path.to_owned(), identity, next_look: mono_now() + LOOKS })
    }

    /// Where its file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its connections.
    pub fn listener(&self) -> &Listener<UnixListener> {
        &self.listener
    }

    /// Its connections, to serve them.
    pub fn listener_mut(&mut self) -> &mut Listener<UnixListener> {
        &mut self.listener
    }

    /// Whether clients that open the path do not reach this socket any more. It is looked for now and then, and
    /// otherwise taken to be there.
    pub fn is_missed(&mut self, now: Moment<Mono>) -> bool {
        if now < self.next_look {
            return false;
        }
        self.next_look = now + LOOKS;
        !self.is_in_place()
    }

    fn is_in_place(&self) -> bool {
        identity(&self.path).is_ok_and(|identity| identity == self.identity)
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Another socket may have taken the place.
        if self.is_in_place() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

impl Listener<TcpListener> {
    /// Serves metrics at this address.
    ///
    /// # Errors
    /// It is taken, or not ours.
    pub fn for_metrics(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Listener::new(socket, Service::Metrics))
    }
}

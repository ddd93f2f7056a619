//! Whether the paths of a configuration can work together, and with what is there.

use super::DaemonConfig;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The most bytes in the path of a socket: one less than `sun_path` has (unix(7), unix(4)).
const LONGEST_SOCKET: usize = if cfg!(target_os = "freebsd") { 103 } else { 107 };

/// What is to be at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Socket,
    Directory,
}

/// A path and the key that names it.
struct Place<'c> {
    key: &'static str,
    path: &'c Path,
    kind: Kind,
}

/// One thing that cannot work: the keys it concerns, and why.
pub(super) struct Conflict {
    pub(super) keys: Vec<&'static str>,
    pub(super) message: String,
}

/// Those that the text alone shows.
pub(super) fn conflicts(config: &DaemonConfig) -> Vec<Conflict> {
    let places = places(config);
    let alone = places.iter().filter_map(Place::own_conflict);
    let pairs = places
        .iter()
        .enumerate()
        .flat_map(|(index, one)| places.iter().skip(index + 1).filter_map(|other| conflict_of_two(one, other)));
    alone.chain(pairs).collect()
}

/// Those with the files that are there now.
pub(super) fn obstacles(config: &DaemonConfig) -> Vec<Conflict> {
    places(config).iter().filter_map(Place::obstacle).collect()
}

fn places(config: &DaemonConfig) -> Vec<Place<'_>> {
    let page = Place { key: "page", path: config.page.as_path(), kind: Kind::File };
    let calibration = Place { key: "calibration", path: config.calibration.as_path(), kind: Kind::File };
    let others = [
        ("control", &config.control, Kind::Socket),
        ("state", &config.state, Kind::Directory),
        ("record", &config.record, Kind::Directory),
    ];
    let switched = others
        .into_iter()
        .filter_map(|(key, place, kind)| place.value().map(|path| Place { key, path: path.as_path(), kind }));
    [page, calibration].into_iter().chain(switched).collect()
}

/// Two directories may be one: the names in them differ.
fn conflict_of_two(one: &Place<'_>, other: &Place<'_>) -> Option<Conflict> {
    let keys = vec![one.key, other.key];
    let (path, others) = (plain(one.path), plain(other.path));
    if path == others {
        let both_directories = one.kind == Kind::Directory && other.kind == Kind::Directory;
        let message = format!("{} and {} are one path", one.key, other.key);
        return (!both_directories).then_some(Conflict { keys, message });
    }
    let below =
        |file: &Place<'_>, deeper: &Place<'_>| format!("{} lies below {}, which is a file", deeper.key, file.key);
    let message = if one.kind != Kind::Directory && others.starts_with(&path) {
        below(one, other)
    } else if other.kind != Kind::Directory && path.starts_with(&others) {
        below(other, one)
    } else {
        return None;
    };
    Some(Conflict { keys, message })
}

/// Without empty parts and dots.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| part.as_os_str() != ".").collect()
}

impl Place<'_> {
    fn conflict(&self, message: String) -> Option<Conflict> {
        Some(Conflict {
            keys: vec![self.key],
            message: format!("{} = \"{}\": {message}", self.key, self.path.display()),
        })
    }

    fn own_conflict(&self) -> Option<Conflict> {
        let ends_in_slash = self.path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if self.kind != Kind::Directory && (ends_in_slash || self.path.file_name().is_none()) {
            return self.conflict("this names a directory, and a file is to be made".to_owned());
        }
        let length = self.path.as_os_str().len();
        if self.kind == Kind::Socket && length > LONGEST_SOCKET {
            return self.conflict(format!("{length} bytes are too long for a socket, which may have {LONGEST_SOCKET}"));
        }
        None
    }

    fn obstacle(&self) -> Option<Conflict> {
        let above = self.path.ancestors().skip(1).find(|above| above.exists());
        if let Some(above) = above.filter(|above| !above.is_dir()) {
            return self.conflict(format!("{} is not a directory", above.display()));
        }
        let message = match (self.kind, self.found()?) {
            (Kind::File, found) if !found.is_file() => "what is there is not a regular file",
            (Kind::Socket, found) if !found.is_socket() => "what is there is not a socket",
            (Kind::Directory, found) if !found.is_dir() => "what is there is not a directory",
            _ => return None,
        };
        self.conflict(message.to_owned())
    }

    /// The daemon follows no link where it makes a file.
    fn found(&self) -> Option<fs::FileType> {
        let look = if self.kind == Kind::Directory { fs::metadata } else { fs::symlink_metadata };
        look(self.path).ok().map(|found| found.file_type())
    }
}

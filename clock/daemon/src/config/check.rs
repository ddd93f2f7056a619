//! Whether the paths of a configuration can work together, and with what is there.

use super::{Config, ReferenceConfig, ReferenceInput};
use ffclock_sys::history_beside;
use std::borrow::Cow;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The most bytes in the path of a socket: one less than `sun_path` has (unix(7), unix(4)).
const LONGEST_SOCKET: usize = if cfg!(target_os = "freebsd") { 103 } else { 107 };

const AUTHORITIES: &str = "nts_ca";

/// What is to be at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    /// A file that is only read, and may be a link.
    Input,
    /// A device that is only read, and may be missing.
    Device,
    Socket,
    Directory,
}

/// A path and the key that names it.
struct Place<'c> {
    /// At the top of the file: of a table, the table's.
    key: &'static str,
    /// What it is in a message.
    name: &'static str,
    path: Cow<'c, Path>,
    kind: Kind,
}

/// One thing that cannot work: the keys it concerns, and why.
pub(super) struct Conflict {
    pub(super) keys: Vec<&'static str>,
    pub(super) message: String,
}

/// Those that the text alone shows.
pub(super) fn conflicts(config: &Config) -> Vec<Conflict> {
    let places = places(config);
    let alone = places.iter().filter_map(Place::own_conflict);
    let pairs = places
        .iter()
        .enumerate()
        .flat_map(|(index, one)| places.iter().skip(index + 1).filter_map(|other| conflict_of_two(one, other)));
    alone.chain(pairs).collect()
}

/// Those with the files that are there now.
pub(super) fn obstacles(config: &Config) -> Vec<Conflict> {
    places(config).iter().filter_map(Place::obstacle).collect()
}

fn places(config: &Config) -> Vec<Place<'_>> {
    let mut places = places_of_daemon(config);
    for server in &config.servers {
        places.extend(server.reference.as_ref().and_then(place_of_reference));
        if let Some(file) = server.protection.nts_ca.value() {
            let path = Cow::Borrowed(file.as_path());
            let place = Place { key: "server", name: AUTHORITIES, path, kind: Kind::Input };
            // Servers may have one file in common, as those of a pool do.
            if !places.iter().any(|known| known.name == place.name && known.path == place.path) {
                places.push(place);
            }
        }
    }
    places
}

/// What a reference reads, where it has a path.
fn place_of_reference(reference: &ReferenceConfig) -> Option<Place<'_>> {
    let place = |name, path, kind| Some(Place { key: "reference", name, path, kind });
    let device = "the device of [[reference]]";
    match &reference.input {
        ReferenceInput::Unset | ReferenceInput::Shared(_) => None,
        ReferenceInput::Pulses(path) | ReferenceInput::Machine(path) => {
            place(device, Cow::Borrowed(path), Kind::Device)
        }
        ReferenceInput::Clock(number) => place(device, Cow::Owned(format!("/dev/ptp{number}").into()), Kind::Device),
        ReferenceInput::Socket(path) => place("the socket of [[reference]]", Cow::Borrowed(path), Kind::Socket),
    }
}

fn places_of_daemon(config: &Config) -> Vec<Place<'_>> {
    let config = &config.daemon;
    let file = |key: &'static str, path| Place { key, name: key, path: Cow::Borrowed(path), kind: Kind::File };
    let page = config.page.as_path();
    let beside = Cow::Owned(history_beside(page));
    let history = Place { key: "page", name: "the history beside page", path: beside, kind: Kind::File };
    let others = [
        ("control", &config.control, Kind::Socket),
        ("state", &config.state, Kind::Directory),
        ("record", &config.record, Kind::Directory),
        ("keys", &config.keys, Kind::Input),
        ("vm_clock", &config.vm_clock, Kind::Device),
    ];
    let switched = others.into_iter().filter_map(|(key, place, kind)| {
        place.value().map(|path| Place { key, name: key, path: Cow::Borrowed(path.as_path()), kind })
    });
    [file("page", page), file("calibration", config.calibration.as_path()), history]
        .into_iter()
        .chain(switched)
        .collect()
}

/// Two directories may be one: the names in them differ. So may two devices: reading one takes nothing from another who
/// reads it. The page never is in its own way.
fn conflict_of_two(one: &Place<'_>, other: &Place<'_>) -> Option<Conflict> {
    if one.key == "page" && other.key == "page" {
        return None;
    }
    let keys = vec![one.key, other.key];
    let (path, others) = (plain(&one.path), plain(&other.path));
    if path == others {
        let may_share = one.kind == other.kind
            && (one.name == other.name && one.name == AUTHORITIES
                || matches!(one.kind, Kind::Directory | Kind::Device));
        let message = format!("{} and {} are one path", one.name, other.name);
        return (!may_share).then_some(Conflict { keys, message });
    }
    let below =
        |file: &Place<'_>, deeper: &Place<'_>| format!("{} lies below {}, which is a file", deeper.name, file.name);
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
            message: format!("{} = \"{}\": {message}", self.name, self.path.display()),
        })
    }

    fn own_conflict(&self) -> Option<Conflict> {
        let ends_in_slash = self.path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if self.kind != Kind::Directory && (ends_in_slash || self.path.file_name().is_none()) {
            return self.conflict("this names a directory, and a file is meant".to_owned());
        }
        let length = self.path.as_os_str().len();
        if self.kind == Kind::Socket && length > LONGEST_SOCKET {
            return self.conflict(format!("{length} bytes are too long for a socket, which may have {LONGEST_SOCKET}"));
        }
        None
    }

    /// Whether a device can be opened is looked at where it is known what it is for.
    fn obstacle(&self) -> Option<Conflict> {
        if self.kind == Kind::Device {
            return None;
        }
        let above = self.path.ancestors().skip(1).find(|above| above.exists());
        // What lies beside another file has the same directory, which is reported once.
        let is_beside = self.key == "page" && self.name != self.key;
        if let Some(above) = above.filter(|above| !above.is_dir() && !is_beside) {
            return self.conflict(format!("{} is not a directory", above.display()));
        }
        let message = match (self.kind, self.found()?) {
            (Kind::File | Kind::Input, found) if !found.is_file() => "what is there is not a regular file",
            (Kind::Socket, found) if !found.is_socket() => "what is there is not a socket",
            (Kind::Directory, found) if !found.is_dir() => "what is there is not a directory",
            _ => return None,
        };
        self.conflict(message.to_owned())
    }

    /// The daemon follows no link where it makes a file.
    fn found(&self) -> Option<fs::FileType> {
        let follows = matches!(self.kind, Kind::Directory | Kind::Input);
        let look = if follows { fs::metadata } else { fs::symlink_metadata };
        look(&self.path).ok().map(|found| found.file_type())
    }
}

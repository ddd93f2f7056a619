//! The secret that all keys of cookies are derived from: one small file.
//!
//! Nothing else of the cookies is kept. The keys follow from the secret and the date (`ffclock_nts`), so every thread,
//! a restarted server and several servers with one copy of the file agree on them without a word between them. Removing
//! the file makes a new secret at the next start: every cookie is then refused, and clients establish keys again.

use ffclock_nts::SECRET_BYTES;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The first line of the file: what it is, and the version of its format.
const HEADING: &str = "ffclock cookie secret 1";
/// No file with a secret is longer.
const LONGEST_FILE: u64 = 1024;

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read or made.
    #[error("cannot keep the secret of cookies in {0}: {1}")]
    File(PathBuf, io::Error),
    /// Others may read the file.
    #[error(
        "{0} holds the secret of cookies and has mode {1:04o}: no one but its owner may have a right to it (chmod 0600)"
    )]
    OpenToOthers(PathBuf, u32),
    /// The file is something else.
    #[error("{0} holds no secret of cookies: remove it, and a new one is made (clients establish keys again)")]
    Nonsense(PathBuf),
}

/// The secret in `path`; where there is no such file, it is made with a new secret.
///
/// # Errors
/// The file cannot be read or made, others may read it, or it is something else.
pub(crate) fn load_or_make(path: &Path) -> Result<[u8; SECRET_BYTES], SecretError> {
    let failed = |error| SecretError::File(path.to_owned(), error);
    match File::open(path) {
        Ok(file) => load(path, file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(path).map_err(failed)?;
            load(path, File::open(path).map_err(failed)?)
        }
        Err(error) => Err(failed(error)),
    }
}

fn load(path: &Path, file: File) -> Result<[u8; SECRET_BYTES], SecretError> {
    let failed = |error| SecretError::File(path.to_owned(), error);
    let mode = file.metadata().map_err(failed)?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(SecretError::OpenToOthers(path.to_owned(), mode));
    }
    let mut text = String::new();
    let read = file.take(LONGEST_FILE).read_to_string(&mut text);
    if read.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::InvalidData) {
        read.map_err(failed)?;
    }
    secret_in(&text).ok_or_else(|| SecretError::Nonsense(path.to_owned()))
}

fn secret_in(text: &str) -> Option<[u8; SECRET_BYTES]> {
    let digits = text.strip_prefix(HEADING)?.strip_prefix('\n')?.strip_suffix('\n')?;
    if digits.len() != 2 * SECRET_BYTES || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut secret = [0; SECRET_BYTES];
    for (index, octet) in secret.iter_mut().enumerate() {
        *octet = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(secret)
}

/// Makes the file whole or not at all. Of several servers that start at once one makes it, and all take that one's.
fn make(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    let mut text = format!("{HEADING}\n");
    for _ in 0..SECRET_BYTES / 8 {
        text.push_str(&format!("{:016x}", ffclock_sys::random_nonce()?));
    }
    text.push('\n');
    let fresh = path.with_extension(format!("new-{:016x}", ffclock_sys::random_nonce()?));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let linked = written.and_then(|()| fs::hard_link(&fresh, path));
    // A full disk leaves an empty file.
    let _ = fs::remove_file(&fresh);
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.exists() => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("ffclock-secret-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        directory.join("below").join("cookies")
    }

    fn remove(path: &Path) {
        fs::remove_dir_all(path.parent().and_then(Path::parent).unwrap()).unwrap();
    }

    #[test]
    fn it_is_made_once_for_its_owner_alone_and_comes_back() {
        let path = scratch("made");
        let secret = load_or_make(&path).unwrap();
        assert_ne!(secret, [0; SECRET_BYTES]);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(load_or_make(&path).unwrap(), secret);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
        fs::remove_file(&path).unwrap();
        assert_ne!(load_or_make(&path).unwrap(), secret);
        remove(&path);
    }

    #[test]
    fn servers_that_start_at_once_take_one_secret() {
        let path = scratch("race");
        let secrets: Vec<_> = std::thread::scope(|scope| {
            let starters: Vec<_> = (0..8).map(|_| scope.spawn(|| load_or_make(&path).unwrap())).collect();
            starters.into_iter().map(|starter| starter.join().unwrap()).collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        remove(&path);
    }

    #[test]
    fn what_others_may_read_and_what_is_no_secret_is_refused() {
        let path = scratch("refused");
        load_or_make(&path).unwrap();
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(matches!(load_or_make(&path), Err(SecretError::OpenToOthers(_, found)) if found == mode));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let good = fs::read(&path).unwrap();
        let digits = good.len() - 2 * SECRET_BYTES - 1;
        let mut signed = good.clone();
        signed[digits] = b'+';
        let bad: [&[u8]; 5] = [b"", b"\xff\xfe", &good[..good.len() - 1], &[&good[..], b"0"].concat(), &signed];
        for content in bad {
            fs::write(&path, content).unwrap();
            assert!(matches!(load_or_make(&path), Err(SecretError::Nonsense(_))), "{content:?}");
        }
        remove(&path);
    }

    #[test]
    fn a_place_that_cannot_hold_it_is_an_error() {
        let error = load_or_make(Path::new("/proc/version/below/cookies")).unwrap_err().to_string();
        assert!(error.contains("/proc/version/below/cookies"), "{error}");
    }
}

//! Files that one process writes through a mapping and others read so: the page, and the history beside it.
//!
//! A file may be longer than what is stored of it: it then has a hole, and a process that touches a hole through a
//! mapping is killed (SIGBUS) where the file system has no room left to fill it. So the writer has every byte stored
//! before it maps the file, and readers map no file with a hole.

use crate::ffi;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why there is no page to be had, or no history.
#[derive(Debug, thiserror::Error)]
pub enum PageFileError {
    /// There is no such file: most likely the daemon never ran.
    #[error("{0} does not exist: is the clock daemon running?")]
    Missing(PathBuf),
    /// The file may not be opened by this user.
    #[error("{0} may not be opened by this user")]
    Permission(PathBuf),
    /// It is a directory, a device, a link or something else.
    #[error("{0} is not a regular file")]
    NotAFile(PathBuf),
    /// It is not of the right size.
    #[error("{path} has {found} bytes instead of {wanted}")]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// The right one.
        wanted: usize,
    },
    /// It has the right size, but not all of it is stored: its writer found no room for it.
    #[error("{0} is not stored in full: its file system was full when it was made")]
    Hole(PathBuf),
    /// Something else is there that would be lost if this took its place.
    #[error("{path} is there already and is not a {kind}: it is left alone")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was to be there.
        kind: &'static str,
    },
    /// The file system has no room for it.
    #[error("{path} needs {wanted} bytes, and its file system is full")]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        wanted: usize,
    },
    /// Another process writes it.
    #[error("{0} is being written by another daemon")]
    Busy(PathBuf),
    /// Anything else.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// What such a file is.
#[derive(Clone, Copy)]
pub(crate) struct SharedFile {
    /// What users call it.
    pub(crate) kind: &'static str,
    /// How it begins.
    pub(crate) mark: [u8; 8],
    pub(crate) bytes: usize,
}

/// Which file it is: its device and its number there.
pub(crate) type FileIdentity = (u64, u64);

impl SharedFile {
    /// Opens the file at `path` for writing and locks it: an existing one of the right size, or a new one of zeros. One
    /// of another size that was made for this, or was cut off to nothing, is replaced. Every byte of it is stored. A
    /// file that is something else is left as it is, its rights included.
    pub(crate) fn create(&self, path: &Path) -> Result<File, PageFileError> {
        let wrap = |error| self.error(path, error);
        let file = match self.open_existing(path) {
            Err(PageFileError::Missing(_)) => self.make_new(path)?,
            Err(PageFileError::Size { .. }) if self.was_one(path).map_err(wrap)? => self.make_new(path)?,
            Ok(file) if self.is_one(&file).map_err(wrap)? => file,
            Ok(_) | Err(PageFileError::Size { .. }) => {
                return Err(PageFileError::Foreign { path: path.to_owned(), kind: self.kind });
            }
            Err(error) => return Err(error),
        };
        self.lock(path, &file)?;
        self.store_in_full(&file).map_err(wrap)?;
        file.set_permissions(Permissions::from_mode(0o644)).map_err(wrap)?;
        Ok(file)
    }

    /// Opens the file at `path` for reading.
    pub(crate) fn open(&self, path: &Path) -> Result<File, PageFileError> {
        let mut options = OpenOptions::new();
        // Without O_NONBLOCK, opening a fifo would wait for its writer.
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let file = self.open_checked(path, &options)?;
        let hole = ffi::first_hole(file.as_fd()).map_err(|error| self.error(path, error))?;
        if hole < self.bytes as u64 { Err(PageFileError::Hole(path.to_owned())) } else { Ok(file) }
    }

    pub(crate) fn error(&self, path: &Path, error: io::Error) -> PageFileError {
        let path = path.to_owned();
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::NotFound, _) => PageFileError::Missing(path),
            (io::ErrorKind::PermissionDenied, _) => PageFileError::Permission(path),
            (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, _) => {
                PageFileError::NoSpace { path, wanted: self.bytes }
            }
            // A link that must not be followed; a directory opened for writing; a socket or a device without a driver.
            (_, Some(libc::ELOOP | libc::EISDIR | libc::ENXIO)) => PageFileError::NotAFile(path),
            _ => PageFileError::Io { path, error },
        }
    }

    fn open_existing(&self, path: &Path) -> Result<File, PageFileError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
        self.open_checked(path, &options)
    }

    /// Opens a file and looks at what was opened, not at what the name stands for a moment later.
    fn open_checked(&self, path: &Path, options: &OpenOptions) -> Result<File, PageFileError> {
        let wrap = |error| self.error(path, error);
        let file = options.open(path).map_err(wrap)?;
        let found = file.metadata().map_err(wrap)?;
        if !found.is_file() {
            return Err(PageFileError::NotAFile(path.to_owned()));
        }
        if found.len() != self.bytes as u64 {
            return Err(PageFileError::Size { path: path.to_owned(), found: found.len(), wanted: self.bytes });
        }
        Ok(file)
    }

    /// Whether a file of the right size was made for this: it begins as this does, or with the zeros of a new one.
    fn is_one(&self, file: &File) -> io::Result<bool> {
        let mut begin = [0; 8];
        file.read_exact_at(&mut begin, 0)?;
        Ok(begin == self.mark || begin == [0; 8])
    }

    /// Whether nothing is lost with the file at `path`, which has another size: it is empty, or begins as this does.
    fn was_one(&self, path: &Path) -> io::Result<bool> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
        let mut begin = [0; 8];
        match file.read_at(&mut begin, 0)? {
            0 => Ok(true),
            length => Ok(length == begin.len() && begin == self.mark),
        }
    }

    /// Has the file system store every byte, by writing back what is read: a hole reads as zeros. Readers that have
    /// mapped the file see no change, and the caller's lock keeps other writers away.
    fn store_in_full(&self, file: &File) -> io::Result<()> {
        let mut bytes = vec![0; self.bytes];
        file.read_exact_at(&mut bytes, 0)?;
        file.write_all_at(&bytes, 0)
    }

    /// A file of zeros, whole before it gets its name.
    fn make_new(&self, path: &Path) -> Result<File, PageFileError> {
        let wrap = |error| self.error(path, error);
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".new-{}", std::process::id()));
        let unfinished = path.with_file_name(name);
        // Left over from a process of the same number that was killed here.
        let _ = fs::remove_file(&unfinished);
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o644).open(&unfinished).map_err(wrap)?;
        let finish = || {
            file.write_all_at(&vec![0; self.bytes], 0)?;
            fs::rename(&unfinished, path)
        };
        finish().map_err(|error| {
            let _ = fs::remove_file(&unfinished);
            wrap(error)
        })?;
        Ok(file)
    }

    fn lock(&self, path: &Path, file: &File) -> Result<(), PageFileError> {
        ffi::lock(file.as_fd()).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => PageFileError::Busy(path.to_owned()),
            _ => self.error(path, error),
        })
    }
}

/// Whether the file at `path` is the one of this identity, and whole.
pub(crate) fn is_at(path: &Path, file: FileIdentity, bytes: usize) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| identity(&found) == file && found.len() == bytes as u64)
}

pub(crate) fn identity(file: &fs::Metadata) -> FileIdentity {
    (file.dev(), file.ino())
}

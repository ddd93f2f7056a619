//! A segment of System V shared memory (shmget(2)), which other programs know by its key. It stays when its programs
//! end. One of the files of this crate that may hold unsafe code.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::io;

/// An attached segment, as this number of words; detached when dropped.
#[derive(Debug)]
pub struct SystemVWords<const COUNT: usize> {
    words: NonNull<[AtomicU64; COUNT]>,
}

// SAFETY: the segment is attached to the process, not to a thread, and is used through atomic words only.
unsafe impl<const COUNT: usize> Send for SystemVWords<COUNT> {}
// SAFETY: as above: shared use is use of atomics.
unsafe impl<const COUNT: usize> Sync for SystemVWords<COUNT> {}

/// Why a segment cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SystemVError {
    /// It may not be written by this user.
    #[error("segment {key:#x} may not be written by this user: `ipcs -m` shows its owner")]
    Permission {
        /// Its key.
        key: i32,
    },
    /// Another program made it for something else.
    #[error("segment {key:#x} is smaller than {wanted} bytes: another program made it")]
    Size {
        /// Its key.
        key: i32,
        /// Octets that it should have.
        wanted: usize,
    },
    /// Another user could take it away or write it.
    #[error("segment {key:#x} belongs to user {owner}, who is neither this one nor root: choose another, or remove it")]
    Owner {
        /// Its key.
        key: i32,
        /// The number of that user.
        owner: u32,
    },
    /// Users may write it who are not to.
    #[error("segment {key:#x} may be written by others (mode {mode:o}): `ipcrm -M {key:#x}` removes it")]
    Open {
        /// Its key.
        key: i32,
        /// Its rights.
        mode: u32,
    },
    /// Anything else.
    #[error("segment {key:#x}: {error}")]
    Io {
        /// Its key.
        key: i32,
        /// What the system said.
        error: io::Error,
    },
}

impl<const COUNT: usize> SystemVWords<COUNT> {
    /// The length of the segment.
    const LENGTH: usize = COUNT * size_of::<u64>();

    /// Attaches the segment of this key for reading and writing; makes it, of zeros and with these rights, where there
    /// is none.
    ///
    /// # Errors
    /// Where it may not be written, is too small, was made by or belongs to a user who is neither this one nor root, or
    /// may be written by more users than `mode` lets.
    pub fn attach(key: i32, mode: u32) -> Result<Self, SystemVError> {
        let wrap = |error: io::Error| match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => SystemVError::Permission { key },
            Some(libc::EINVAL) => SystemVError::Size { key, wanted: Self::LENGTH },
            _ => SystemVError::Io { key, error },
        };
        let rights = libc::c_int::try_from(mode & 0o777).unwrap_or_default();
        // FreeBSD's keys are wider. SAFETY: no memory is touched.
        let id = unsafe { libc::shmget(key as libc::key_t, Self::LENGTH, libc::IPC_CREAT | rights) };
        if id < 0 {
            return Err(wrap(io::Error::last_os_error()));
        }
        let access = access(id).map_err(wrap)?;
        // SAFETY: the call has no condition.
        let own = unsafe { libc::geteuid() };
        // Who made it may change and remove it, though another owns it now.
        if let Some(owner) = [access.uid, access.cuid].into_iter().find(|user| *user != own && *user != 0) {
            return Err(SystemVError::Owner { key, owner });
        }
        let writers = u32::from(access.mode) & 0o022;
        if writers & !mode != 0 {
            return Err(SystemVError::Open { key, mode: u32::from(access.mode) & 0o777 });
        }
        // SAFETY: the kernel chooses a free place, so no memory in use is touched.
        let start = unsafe { libc::shmat(id, core::ptr::null(), 0) };
        // It gives -1 on failure.
        if start.addr() == usize::MAX {
            return Err(wrap(io::Error::last_os_error()));
        }
        let words = NonNull::new(start.cast()).map(|words| SystemVWords { words });
        words.ok_or_else(|| wrap(io::ErrorKind::AddrNotAvailable.into()))
    }

    /// The words. Other programs change them at any time.
    pub fn words(&self) -> &[AtomicU64; COUNT] {
        // SAFETY: the kernel attaches no segment that is smaller than what was asked for; it begins at a page, is
        // readable and writable, and in place until `self` is dropped.
        unsafe { self.words.as_ref() }
    }
}

impl<const COUNT: usize> Drop for SystemVWords<COUNT> {
    fn drop(&mut self) {
        // SAFETY: it was attached in `attach`, and no reference into it outlives `self`.
        unsafe { libc::shmdt(self.words.as_ptr().cast()) };
    }
}

/// Whose segment it is, who made it, and who may write it.
fn access(id: libc::c_int) -> io::Result<libc::ipc_perm> {
    // SAFETY: the structure is made of integers, for which zero is a value.
    let mut state: libc::shmid_ds = unsafe { core::mem::zeroed() };
    // SAFETY: it is a place for the structure that the call writes.
    if unsafe { libc::shmctl(id, libc::IPC_STAT, &raw mut state) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(state.shm_perm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// A key that no other test has; its segment is removed again.
    struct Key(i32);

    impl Key {
        fn new(number: i32) -> Self {
            Key(0x4666_0000 ^ ((std::process::id() as i32) << 4) ^ number)
        }
    }

    impl Drop for Key {
        fn drop(&mut self) {
            let _ = Command::new("ipcrm").args(["-M", &self.0.to_string()]).status();
        }
    }

    #[test]
    fn all_who_know_the_key_see_the_same_words() {
        let key = Key::new(1);
        let (one, other) =
            (SystemVWords::<12>::attach(key.0, 0o600).unwrap(), SystemVWords::<12>::attach(key.0, 0o600).unwrap());
        assert!(one.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
        one.words()[11].store(7, Ordering::Release);
        assert_eq!(other.words()[11].load(Ordering::Acquire), 7);
        drop((one, other));
        let later = SystemVWords::<12>::attach(key.0, 0o600).unwrap();
        assert_eq!(later.words()[11].load(Ordering::Acquire), 7, "it stays");
    }

    #[test]
    fn a_segment_that_is_too_small_is_refused() {
        let key = Key::new(2);
        let _small = SystemVWords::<4>::attach(key.0, 0o600).unwrap();
        let error = SystemVWords::<12>::attach(key.0, 0o600).unwrap_err();
        assert!(matches!(error, SystemVError::Size { wanted: 96, .. }), "{error}");
        assert!(error.to_string().contains("another program made it"));
    }

    #[test]
    fn a_segment_of_another_user_is_refused() {
        let key = Key::new(3);
        let _kept = SystemVWords::<12>::attach(key.0, 0o666).unwrap();
        // SAFETY: no memory is touched.
        let id = unsafe { libc::shmget(key.0, 0, 0) };
        // SAFETY: the structure is made of integers, for which zero is a value.
        let mut state: libc::shmid_ds = unsafe { core::mem::zeroed() };
        // SAFETY: it is a place for the structure that the call writes.
        assert_eq!(unsafe { libc::shmctl(id, libc::IPC_STAT, &raw mut state) }, 0);
        state.shm_perm.uid = 65_534;
        // SAFETY: the structure is as the call before left it.
        if unsafe { libc::shmctl(id, libc::IPC_SET, &raw mut state) } != 0 {
            return println!("SKIP: only root can give a segment to another user");
        }
        let error = SystemVWords::<12>::attach(key.0, 0o666).unwrap_err();
        assert!(matches!(error, SystemVError::Owner { owner: 65_534, .. }), "{error}");
    }

    #[test]
    fn a_segment_that_another_user_made_and_gave_away_is_refused() {
        let key = Key::new(4);
        let number = key.0;
        let mut command = Command::new("true");
        command.uid(65_534);
        let make_and_give_away = move || {
            // SAFETY: no memory is touched.
            let id = unsafe { libc::shmget(number, 96, libc::IPC_CREAT | 0o666) };
            // SAFETY: the structure is made of integers, for which zero is a value.
            let mut state: libc::shmid_ds = unsafe { core::mem::zeroed() };
            // SAFETY: it is a place for the structure that the call writes, and the call after it reads.
            let done = unsafe {
                let found = libc::shmctl(id, libc::IPC_STAT, &raw mut state);
                state.shm_perm.uid = 0;
                found | libc::shmctl(id, libc::IPC_SET, &raw mut state)
            };
            if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: between fork and exec it makes system calls only.
        let result = unsafe { command.pre_exec(make_and_give_away) }.status();
        if let Err(error) = result {
            return println!("SKIP: only root can act as another user: {error}");
        }
        let error = SystemVWords::<12>::attach(key.0, 0o666).unwrap_err();
        assert!(matches!(error, SystemVError::Owner { owner: 65_534, .. }), "{error}");
    }

    #[test]
    fn a_segment_that_more_users_may_write_is_refused() {
        let key = Key::new(5);
        let _open = SystemVWords::<12>::attach(key.0, 0o666).unwrap();
        let error = SystemVWords::<12>::attach(key.0, 0o600).unwrap_err();
        assert!(matches!(error, SystemVError::Open { mode: 0o666, .. }), "{error}");
    }
}

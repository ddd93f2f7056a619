//! The file of symmetric keys.

use ffclock_nts::mac::{KeyFile, SymmetricKey};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use zeroize::Zeroizing;

/// No file of keys is longer.
const LONGEST_FILE: u64 = 1 << 20;
/// What the mode of the file may not have: any right for others, and writing for its group. A group that may read is
/// how keys are handed to a service.
const FORBIDDEN_MODE: u32 = 0o027;

/// The key with a number.
///
/// # Errors
/// Why it cannot be used, in words.
pub(crate) fn read_key(path: &Path, number: u32) -> Result<SymmetricKey, String> {
    let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let file = File::open(path).map_err(|error| named(&error))?;
    let mode = file.metadata().map_err(|error| named(&error))?.mode() & 0o7777;
    if mode & FORBIDDEN_MODE != 0 {
        return Err(named(&format!("mode {mode:04o}: others must have no right to it (chmod 0640 or 0600)")));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(LONGEST_FILE).read_to_string(&mut text).map_err(|error| named(&error))?;
    let keys = KeyFile::parse(&text).map_err(|error| named(&error))?;
    keys.key(number).map_err(|fault| named(&format!("key {number}: {fault}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_read_from_a_file_that_others_cannot_read() {
        let path = std::env::temp_dir().join(format!("ffclock-keys-{}", std::process::id()));
        std::fs::write(&path, "7 AES128 HEX:2b7e151628aed2a6abf7158809cf4f3c\n8 MD5 password\n").unwrap();
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o600);
        assert_eq!(read_key(&path, 7).unwrap().number(), 7);
        assert!(read_key(&path, 8).unwrap_err().contains("MD5 can be forged"));
        assert!(read_key(&path, 9).unwrap_err().contains("no key with this number"));
        set(0o644);
        assert!(read_key(&path, 7).unwrap_err().contains("chmod"));
        std::fs::remove_file(&path).unwrap();
        assert!(read_key(&path, 7).is_err());
    }
}

//! Functions shared by the targets that read or write files.
#![allow(dead_code, reason = "each target uses a part")]

use std::panic;
use std::path::{Path, PathBuf};

/// A directory of this process, in memory where possible. It need not exist yet.
pub fn place(name: &str) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let below = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    below.join(format!("ffclock-fuzz-{name}-{}", std::process::id()))
}

/// Keeps libFuzzer from ending at a panic of the Parquet library, which the reader catches and which is no finding.
pub fn allow_panics_of_the_library() {
    let end = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if !panicked.location().is_some_and(|place| place.file().contains("/parquet-")) {
            end(panicked);
        }
    }));
}

/// The number of one of the files in `whole`, and its damaged content. The first byte chooses the file and the damage:
/// the other bytes replace the file, or patch it (two bytes for the place, one for the value).
pub fn damaged(whole: &[impl AsRef<[u8]>], bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    let (&choice, rest) = bytes.split_first()?;
    let number = usize::from(choice >> 1) % whole.len();
    if choice & 1 == 1 {
        return Some((number, rest.to_vec()));
    }
    let mut damaged = whole[number].as_ref().to_vec();
    for patch in rest.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % damaged.len();
        damaged[place] = patch[2];
    }
    Some((number, damaged))
}

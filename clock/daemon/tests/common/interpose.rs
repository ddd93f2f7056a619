//! Runs the unmodified daemon behind a library that stands between it and the C library (tests/interpose.c).

use super::Scratch;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

/// The index of a word in the shared file, as in interpose.c.
#[derive(Clone, Copy)]
pub enum Place {
    RatePpb = 0,
    OriginNs = 1,
    RawNs = 2,
    MonotonicNs = 3,
    BoottimeNs = 4,
    RealtimeNs = 5,
    Refused = 6,
    RawReads = 7,
    MonotonicReads = 8,
    BoottimeReads = 9,
    RealtimeReads = 10,
}

pub const REFUSE_BOOTTIME: i64 = 1;
pub const REFUSE_TIMERFD: i64 = 2;
pub const REFUSE_STAMPS: i64 = 4;

/// The library, and the file that controls it.
pub struct Interposer {
    library: PathBuf,
    name: PathBuf,
    words: File,
}

impl Interposer {
    /// Compiles the library; `None`, with a note, where there is no compiler.
    pub fn compile(scratch: &Scratch) -> Option<Self> {
        let library = scratch.path().join("interpose.so");
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/interpose.c");
        let compiler = Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).output();
        let Ok(output) = compiler else {
            println!("SKIP: there is no C compiler to make an interposing library with");
            return None;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let name = scratch.path().join("interpose.words");
        let words = File::options().read(true).write(true).create(true).truncate(true).open(&name).expect("a file");
        words.set_len(4096).expect("room for the words");
        Some(Interposer { library, name, words })
    }

    /// The variables that the daemon's environment must hold.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.library.clone()), ("FFCLOCK_INTERPOSE", self.name.clone())]
    }

    pub fn set(&self, place: Place, value: i64) {
        self.words.write_all_at(&value.to_ne_bytes(), place as u64 * 8).expect("the word can be written");
    }

    pub fn get(&self, place: Place) -> i64 {
        let mut bytes = [0; 8];
        self.words.read_exact_at(&mut bytes, place as u64 * 8).expect("the word can be read");
        i64::from_ne_bytes(bytes)
    }
}

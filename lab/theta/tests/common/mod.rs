//! What the tests of this crate share. Each test program uses a part.
#![allow(dead_code, reason = "each test program uses a part")]

pub mod brute;
pub mod generator;
pub mod tcp;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes away with its test.
pub struct Scratch(PathBuf);

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ffclock-theta-{}-{number}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory for temporary files");
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

//! Compiling and running C, and comparing made files with committed ones.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The crate's directory.
pub const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Fails unless the committed file `name` is `wanted`; with FFCLOCK_BLESS set it writes the file instead.
pub fn compare_or_bless(name: &str, wanted: &str) {
    let path = Path::new(CRATE).join(name);
    if std::env::var_os("FFCLOCK_BLESS").is_some() {
        std::fs::write(&path, wanted).expect("a file of the crate");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == wanted,
        "{name} is not up to date: run this test with FFCLOCK_BLESS=1 and look at the difference"
    );
}

/// Compiles `source` with all warnings as errors.
pub fn compile(source: &Path, program: &Path, flags: &[String]) {
    let include = Path::new(CRATE).join("include");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(compiler)
        .args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-I"])
        .args([include.as_path(), source, Path::new("-o"), program])
        .args(flags)
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a program on a page.
pub fn run(program: &Path, page: &Path) -> Output {
    Command::new(program).arg(page).output().expect("the program just compiled")
}

/// Where Cargo has put the shared library that belongs to this test.
pub fn shared_library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.with_file_name("libffclock.so")
}

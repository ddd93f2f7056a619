//! The C interface: the header is the one of the code, and a C program built as users build theirs reads a page.

use crate::c;
use crate::common::{Directory, UTC_SECONDS, publication, writer};
use ffclock_units::Status;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

#[test]
fn the_header_is_up_to_date() {
    let config = cbindgen::Config::from_file(Path::new(c::CRATE).join("cbindgen.toml")).unwrap();
    let source = Path::new(c::CRATE).join("src/c_api.rs");
    let bindings = cbindgen::Builder::new().with_config(config).with_src(source).generate().unwrap();
    let mut header = Vec::new();
    bindings.write(&mut header);
    c::compare_or_bless("include/ffclock.h", &String::from_utf8(header).unwrap());
}

/// The library under the names that an installation gives it.
fn install(directory: &Directory) {
    let library = c::shared_library();
    assert!(library.exists(), "{} is missing", library.display());
    for name in ["libffclock.so.0", "libffclock.so"] {
        symlink(&library, directory.join(name)).expect("a link in a new directory");
    }
}

/// Compiles a program of the crate against the installed library.
pub fn build(directory: &Directory, source: &str) -> PathBuf {
    if !directory.join("libffclock.so").exists() {
        install(directory);
    }
    let program = directory.join(Path::new(source).file_stem().and_then(|name| name.to_str()).expect("a file of C"));
    let place = directory.path().display();
    let flags = [format!("-L{place}"), "-lffclock".into(), format!("-Wl,-rpath,{place}")];
    c::compile(&Path::new(c::CRATE).join(source), &program, &flags);
    program
}

#[test]
fn misuse_is_answered() {
    let directory = Directory::new();
    let page = directory.join("page");
    writer(&page).publish(&publication());
    let output = c::run(&build(&directory, "tests/c/misuse.c"), &page);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_example_prints_the_time_or_why_not() {
    let directory = Directory::new();
    let program = build(&directory, "../../examples/c/now.c");
    let page = directory.join("page");

    let missing = c::run(&program, &page);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("start ffclockd"));

    let mut writer = writer(&page);
    let empty = c::run(&program, &page);
    assert!(String::from_utf8_lossy(&empty.stderr).contains("no clock has been published here yet"), "{empty:?}");

    writer.publish(&publication());
    let output = c::run(&program, &page);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(UTC_SECONDS, 1_800_000_000);
    assert!(text.starts_with("2027-01-15T08:00:0") && text.contains(", synchronised\n"), "{text}");
    let took: u64 = text.lines().nth(1).and_then(|line| line.strip_suffix(" ns")?.parse().ok()).unwrap();
    assert!(took < 1_000_000_000, "{text}");

    writer.retire(Status::Unsynchronised);
    let retired = c::run(&program, &page);
    assert!(String::from_utf8_lossy(&retired.stderr).contains("no estimate at present"), "{retired:?}");
}

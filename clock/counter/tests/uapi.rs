//! The layout that the reader of `/dev/ffcounter` assumes is the one that the C header declares.

use ffclock_counter::ffcounter::layout::figures;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A C file with one assertion for each figure: the compiler is the judge, nothing is run.
fn assertions() -> String {
    let mut text = "#include <stddef.h>\n#include \"uapi/ffcounter.h\"\n".to_owned();
    for (expression, value) in figures() {
        writeln!(text, "_Static_assert(({expression}) == {value}u, \"{expression} is not {value}\");")
            .expect("a string takes everything");
    }
    text
}

fn compile(text: &str, name: &str) -> Option<std::process::Output> {
    let source = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&source, text).expect("the directory of this test is ours");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/include");
    Command::new("cc").arg("-fsyntax-only").arg("-I").arg(include).arg(&source).output().ok()
}

#[test]
fn both_sides_have_one_layout() {
    let Some(output) = compile(&assertions(), "uapi.c") else {
        println!("SKIP: there is no C compiler to compare the layouts with");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let wrong = assertions().replacen(" == 1u", " == 77u", 1);
    let refused = compile(&wrong, "uapi-wrong.c").expect("the compiler was there a moment ago");
    assert!(!refused.status.success(), "the comparison accepts anything");
}

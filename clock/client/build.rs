//! Gives the shared library the name that programs are linked against, whatever file name Cargo chooses.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libffclock.so.0");
}

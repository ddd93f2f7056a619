//! Compiles the program and makes its skeleton, where the feature `ebpf` is on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "ebpf")]
    skeleton();
}

#[cfg(feature = "ebpf")]
fn skeleton() {
    use std::env::var;
    use std::path::PathBuf;

    const SOURCE: &str = "src/bpf/responder.bpf.c";
    println!("cargo::rerun-if-changed={SOURCE}");
    let output = PathBuf::from(var("OUT_DIR").expect("cargo sets it")).join("responder.skel.rs");
    let architecture = var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    // Debian keeps <asm/types.h> below the name of the machine, where clang for BPF does not look.
    let headers = format!("/usr/include/{architecture}-linux-gnu");
    // The program looks at headers as words too, which the kernel's own rules for C allow.
    let built = libbpf_cargo::SkeletonBuilder::new()
        .source(SOURCE)
        .clang_args(["-idirafter", &headers, "-Wall", "-Werror", "-fno-strict-aliasing"])
        .build_and_generate(&output);
    if let Err(error) = built {
        panic!("the eBPF program does not compile: {error:#}\nthe feature `ebpf` takes clang (`tools/setup packages`)");
    }
}

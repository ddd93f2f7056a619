//! Compiles the eBPF programs and makes their skeletons, where the feature `ebpf` is on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "ebpf")]
    skeleton("stamps");
    #[cfg(feature = "ebpf")]
    skeleton("burn");
}

#[cfg(feature = "ebpf")]
fn skeleton(name: &str) {
    use std::env::var;
    use std::path::PathBuf;

    let source = format!("src/ebpf/{name}.bpf.c");
    println!("cargo::rerun-if-changed={source}");
    let output = PathBuf::from(var("OUT_DIR").expect("cargo sets it")).join(format!("{name}.skel.rs"));
    let architecture = var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    // Debian keeps <asm/types.h> below the name of the machine, where clang for BPF does not look.
    let headers = format!("/usr/include/{architecture}-linux-gnu");
    let built = libbpf_cargo::SkeletonBuilder::new()
        .source(&source)
        .clang_args(["-idirafter", &headers, "-Wall", "-Werror"])
        .build_and_generate(&output);
    if let Err(error) = built {
        panic!("{source} does not compile: {error:#}\nthe feature `ebpf` takes clang (`tools/setup packages`)");
    }
}

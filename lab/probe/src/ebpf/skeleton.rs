//! What libbpf's generator makes of `stamps.bpf.c` and `burn.bpf.c`: the programs with their maps, and the types of
//! both.

#![expect(clippy::allow_attributes, clippy::allow_attributes_without_reason, reason = "generated")]
#![expect(clippy::undocumented_unsafe_blocks, clippy::unwrap_used, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/stamps.skel.rs"));

pub(super) mod burn {
    include!(concat!(env!("OUT_DIR"), "/burn.skel.rs"));
}

//! What libbpf's generator makes of `responder.bpf.c`: the program with its maps, and the types of both.

#![expect(clippy::allow_attributes, clippy::allow_attributes_without_reason, reason = "generated")]
#![expect(clippy::undocumented_unsafe_blocks, clippy::unwrap_used, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/responder.skel.rs"));

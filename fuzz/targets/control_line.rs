//! Any line on the control socket: a request, or a reason.
#![no_main]

use ffclock_control::protocol::parse_request;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    if let Err(reason) = parse_request(line) {
        assert!(!reason.is_empty());
    }
});

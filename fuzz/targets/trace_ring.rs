//! Any bytes as a page of the kernel's trace buffer, and as the text of an event's format: events lie within the page, and nothing hangs.
#![no_main]

use ffclock_sys::ring::{EventFormat, raw_events};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let total: usize = raw_events(bytes).map(|event| event.fields.len()).sum();
    assert!(total <= bytes.len());
    let format = core::str::from_utf8(bytes).ok().and_then(EventFormat::parse);
    if let Some(format) = format {
        for event in raw_events(bytes) {
            let _ = format.length_in(event.fields);
        }
    }
});

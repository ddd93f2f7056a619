//! Any bytes as a page of the kernel's tracing buffer, read with any text as the format of its events: whole events
//! inside the page, or nothing.
#![no_main]

use ffclock_sys::{BufferPage, EventFormat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8])| {
    let (text, bytes) = input;
    let format = EventFormat::parse(text);
    let fields = ["len", "name"].map(|name| format.as_ref().ok().and_then(|format| format.field(name)));
    let mut taken = 0;
    for (_, event) in BufferPage::new(bytes).into_iter().flatten() {
        taken += event.len();
        for field in fields.into_iter().flatten() {
            let _ = field.number(event);
            assert!(field.text(event).is_none_or(|text| text.len() <= event.len()));
        }
    }
    assert!(taken <= bytes.len());
});

//! Any datagram: decoding gives a message or a reason, and a message survives being encoded and decoded again; its TLVs
//! are bounded.
#![no_main]

use ffclock_ptp::{MESSAGE_BYTES_MAX, PtpMessage, TLVS_MAX, UnicastWord};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match PtpMessage::decode(bytes) {
        Ok((message, tlvs)) => {
            assert!(bytes.len() <= MESSAGE_BYTES_MAX);
            let written = message.encode();
            let (again, none) = PtpMessage::decode(written.as_slice()).expect("what was read");
            assert_eq!(again, message, "a field lost or changed bits");
            assert_eq!(none.count(), 0);
            let mut seen = 0;
            for tlv in tlvs.flatten() {
                seen += 1;
                let _ = UnicastWord::read(&tlv);
            }
            assert!(seen <= TLVS_MAX);
        }
        Err(reason) => assert!(!reason.to_string().is_empty()),
    }
});

//! Any octets that a client sends inside TLS, in pieces of any length: the message is cut at the same place as in one
//! piece, is read or refused, and no answer to it grants what it did not ask for.
#![no_main]

use ffclock_nts::establishment::{Arrived, Grant, LONGEST_MESSAGE, MessageReader, Request, response};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], u8)| {
    let (octets, piece) = input;
    let whole = MessageReader::default().take(octets);
    let mut reader = MessageReader::default();
    let mut arrived = Arrived::More;
    for piece in octets.chunks(usize::from(piece).max(1)) {
        arrived = reader.take(piece);
        if arrived == Arrived::TooLong {
            break;
        }
    }
    if !octets.is_empty() {
        assert_eq!(arrived, whole);
    }
    assert!(reader.octets().len() <= LONGEST_MESSAGE);
    let cookies = [vec![7; 100]];
    let grant = Grant { cookies: &cookies, server: None, port: None };
    match Request::read(octets) {
        Ok(request) => {
            assert_eq!(whole, Arrived::Whole);
            let answer = response(&request, &grant);
            let is_granted = answer.windows(100).any(|window| window == cookies[0]);
            assert_eq!(is_granted, request.speaks_ntp && request.aead.is_some());
            assert_eq!(MessageReader::default().take(&answer), Arrived::Whole);
        }
        Err(fault) => assert_eq!(MessageReader::default().take(&fault.answer()), Arrived::Whole),
    }
});

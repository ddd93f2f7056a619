//! Packets written out by hand from the figures of the RFCs.

use super::*;

/// RFC 8762, figure 2: sequence number, timestamp, error estimate, session (RFC 8972, figure 1), 28 zeros.
const REQUEST: [u8; BASE_BYTES] = [
    0, 0, 1, 2, 0xec, 0xcd, 0x1a, 0x00, 0x80, 0, 0, 0, 0x8c, 0x11, 0xab, 0xcd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// RFC 8762, figure 5: sequence number, timestamp, error estimate, session, receive timestamp, the sender's sequence
/// number, timestamp and error estimate, zeros, the sender's TTL, zeros.
const REPLY: [u8; BASE_BYTES] = [
    0, 0, 0, 7, 0xec, 0xcd, 0x1a, 0x00, 0xc0, 0, 0, 0, 0x8a, 0x22, 0xab, 0xcd, 0xec, 0xcd, 0x1a, 0x00, 0xa0, 0, 0, 0,
    0, 0, 1, 2, 0xec, 0xcd, 0x1a, 0x00, 0x80, 0, 0, 0, 0x8c, 0x11, 0, 0, 0xff, 0, 0, 0,
];

fn request() -> TestRequest {
    TestRequest {
        sequence: 0x102,
        sent: WireTime(0xeccd_1a00_8000_0000),
        error: ErrorEstimate::from_raw(0x8c11),
        session: 0xabcd,
    }
}

fn reply() -> TestReply {
    TestReply {
        sequence: 7,
        sent: WireTime(0xeccd_1a00_c000_0000),
        error: ErrorEstimate::from_raw(0x8a22),
        received: WireTime(0xeccd_1a00_a000_0000),
        request: request(),
    }
}

#[test]
fn a_request_has_the_bytes_of_the_rfc() {
    let mut bytes = [1; BASE_BYTES];
    request().encode(&mut bytes);
    assert_eq!(bytes, REQUEST);
    assert_eq!(TestRequest::decode(&REQUEST), Ok(request()));
}

#[test]
fn a_reply_has_the_bytes_of_the_rfc_and_the_length_of_its_request() {
    let mut bytes = REQUEST;
    reply().encode(&mut bytes);
    assert_eq!(bytes, REPLY);
    assert_eq!(TestReply::decode(&REPLY), Ok(reply()));
    // RFC 5357, figure 5: without the three zeros at the end.
    let mut light = REQUEST[..REPLY_FIELDS_BYTES].to_vec();
    reply().encode(&mut light);
    assert_eq!(light, REPLY[..REPLY_FIELDS_BYTES]);
}

#[test]
fn what_has_no_room_for_a_reply_gets_none() {
    assert_eq!(TestRequest::decode(&REQUEST[..40]), Err(NotTestPacket::TooShort(40)));
    assert_eq!(TestRequest::decode(&[]), Err(NotTestPacket::TooShort(0)));
    assert_eq!(TestRequest::decode(&[0; PACKET_BYTES_MAX + 1]), Err(NotTestPacket::TooLong(PACKET_BYTES_MAX + 1)));
}

#[test]
fn a_reply_without_an_error_estimate_is_refused() {
    let mut bytes = REPLY;
    bytes[13] = 0;
    assert_eq!(TestReply::decode(&bytes), Err(NotTestPacket::NoErrorEstimate));
}

/// RFC 8972, section 4: an extension that is not understood comes back unchanged, but for its flag U; one that is
/// longer than the packet gets M.
#[test]
fn extensions_come_back_marked() {
    let padding = [0x80, 1, 0, 2, 9, 9];
    let unknown = [0x00, 3, 0, 4, 1, 2, 3, 4];
    let broken = [0x80, 2, 0, 9, 5];
    let mut bytes = [&REQUEST[..], &padding, &unknown, &broken].concat();
    reply().encode(&mut bytes);
    assert_eq!(bytes[..BASE_BYTES], REPLY);
    assert_eq!(bytes[BASE_BYTES..], [0x00, 1, 0, 2, 9, 9, 0x80, 3, 0, 4, 1, 2, 3, 4, 0xc0, 2, 0, 9, 5]);
    assert_eq!(TestReply::decode(&bytes), Ok(reply()));
}

#[test]
fn both_forms_of_timestamps_are_read() {
    let utc = |seconds, nanos| Moment::<Utc>::from_origin(Span::from_secs(seconds) + Span::from_nanos(nanos));
    let near = (utc(1_800_000_000, 0), Span::from_secs(37));
    let time = utc(1_800_000_001, 500_000_000);
    assert_eq!(WireTime::of(time).to_utc(TimestampForm::Ntp, near), time);
    let ptp = WireTime((1_800_000_038 << 32) | 500_000_000);
    assert_eq!(ptp.to_utc(TimestampForm::Ptp, near), time);
    // Seconds of PTP in 32 bits wrap in 2106.
    let late = (utc((1 << 32) - 40, 0), Span::from_secs(37));
    assert_eq!(WireTime(5 << 32).to_utc(TimestampForm::Ptp, late), utc((1 << 32) - 32, 0));
}

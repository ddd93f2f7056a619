//! With peers that know nothing of RFC 8972: a reflector of RFC 8762 and senders of RFC 5357, byte by byte as the RFCs
//! have their packets, without a line of ours.

use super::common::{Place, Shift, plan, reflector_plan};
use super::{exchange, foreign_socket};
use ffclock_owd::judge::PacketFate;
use ffclock_owd::packet::BASE_BYTES;
use ffclock_owd::record::OwdRow;
use ffclock_owd::reflector::{Reflector, ReflectorCounts};
use ffclock_owd::sender::Sender;
use ffclock_units::Span;
use std::net::UdpSocket;

/// 255 * 2^(26 - 32) s, synchronised: 4 s.
const ERROR: [u8; 2] = [0x9a, 0xff];

/// A reply of RFC 8762, figure 5: zeros in the bytes 14 and 15. It says that the packet came and left when it was sent.
fn reply_to(request: &[u8], count: u32) -> Vec<u8> {
    let (number, time, error) = (&request[..4], &request[4..12], &request[12..14]);
    let zeros = [0, 0];
    [&count.to_be_bytes(), time, &ERROR, &zeros, time, number, time, error, &zeros, &[255], &[0; 3]].concat()
}

/// Answers what has come.
fn reflect(socket: &UdpSocket, count: &mut u32) {
    let mut buffer = [0; 2048];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        assert_eq!(length, BASE_BYTES);
        assert_ne!(buffer[14..16], [0, 0], "our session has a name");
        socket.send_to(&reply_to(&buffer[..length], *count), from).unwrap();
        *count += 1;
    }
}

#[test]
fn a_reflector_that_names_no_session_is_understood() {
    let place = Place::new();
    let page = place.page("page", Shift { error: Span::ZERO, bound: Span::from_micros(10) });
    let reflector = foreign_socket();
    let mut sender = Sender::open(plan(&page, reflector.local_addr().unwrap(), 20)).unwrap();
    let (mut rows, mut count) = (Vec::<OwdRow>::new(), 0);
    while !sender.is_finished() {
        sender.turn(&mut rows).unwrap();
        reflect(&reflector, &mut count);
    }
    sender.turn(&mut rows).unwrap();
    let strays = sender.strays();
    let measured = rows.iter().filter(|row| row.fate == PacketFate::Measured).count();
    assert_eq!((measured, rows.len(), strays.other_sessions), (20, 20, 0), "{strays:?} {rows:?}");
}

/// RFC 5357, section 4.1.2: sequence number, timestamp, error estimate; what follows is padding, random unless asked
/// for otherwise.
fn light_request(number: u32, padding: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], &0xeccd_1a00_8000_0000_u64.to_be_bytes(), &[0x8c, 0x11], padding].concat()
}

/// 27 bytes of padding are the least that there is room for a reply in (RFC 5357, section 4.2.1).
#[test]
fn senders_of_twamp_light_are_answered_whatever_their_padding_holds() {
    let place = Place::new();
    let page = place.page("page", Shift { error: Span::ZERO, bound: Span::from_micros(10) });
    let mut reflector = Reflector::open(&reflector_plan(&page)).unwrap();
    let (mut answered, mut seed) = (0, 0_usize);
    for is_random in [false, true] {
        let socket = foreign_socket();
        for (number, length) in [27, 28, 30, 31, 86, 1458].into_iter().enumerate() {
            seed += 1;
            let scattered = |place: usize| ((97 * seed + place + 1).wrapping_mul(2_654_435_761) >> 24) as u8;
            let padding: Vec<u8> = (0..length).map(|place| if is_random { scattered(place) } else { 0 }).collect();
            let request = light_request(9, &padding);
            let reply = exchange(&socket, &mut reflector, &request).unwrap();
            assert_eq!(reply.len(), request.len());
            // By its own count of the session, which is that of the address.
            assert_eq!(reply[..4], (number as u32).to_be_bytes(), "{length} bytes of padding: {request:x?}");
            assert_eq!(reply[14..16], [0, 0], "must be zero");
            assert_eq!(reply[24..38], request[..14], "the sender's number, time and error estimate");
            assert_eq!((reply[12] & 0xc0, reply[40]), (0x80, 255));
            answered += 1;
        }
        for length in [0, 26] {
            assert_eq!(exchange(&socket, &mut reflector, &light_request(9, &vec![0; length])), None);
        }
    }
    let expected = ReflectorCounts { reflected: answered, too_short: 4, ..ReflectorCounts::default() };
    assert_eq!(reflector.counts(), expected);
}

//! Any extension fields in a request to the server, with a good cookie and a good authenticator or without: no reply
//! and no kiss is longer than the request, and what was changed is not taken for authentic.
#![no_main]

use ffclock_nts::{Aead, CookieKeys, Key, NonceSource, Protection, ReplySealer, SessionKeys, TAG_BYTES, write_nak};
use ffclock_wire::{EXTENSION_HEAD_BYTES, HEADER_BYTES, PACKET_BYTES_MAX, begin_extension};
use libfuzzer_sys::fuzz_target;

const KINDS: [u16; 5] = [0x0104, 0x0204, 0x0304, 0x0404, 0xfec2];

fn put(packet: &mut Vec<u8>, kind: u16, body: &[u8]) {
    let at = packet.len();
    packet.resize(at + EXTENSION_HEAD_BYTES + body.len(), 0);
    begin_extension(&mut packet[at..], kind, body.len()).expect("whole words").copy_from_slice(body);
}

fn session() -> SessionKeys {
    let key = |octet| Key::new(Aead::AesSivCmac256, &[octet; 32]).expect("a key");
    SessionKeys { client_to_server: key(1), server_to_client: key(2) }
}

fuzz_target!(|input: (Vec<(u8, Vec<u8>)>, bool, Option<(u16, u8)>)| {
    let (fields, is_sealed, change) = input;
    let keys = CookieKeys::new([7; 32], 100, 2);
    let mut packet = vec![0x23; HEADER_BYTES];
    if is_sealed {
        let mut cookie = [0; 104];
        let length = keys.seal(&session(), [3; 16], &mut cookie).expect("room");
        put(&mut packet, KINDS[0], &[9; 32]);
        put(&mut packet, KINDS[1], &cookie[..length]);
    }
    for (kind, body) in &fields {
        put(&mut packet, KINDS[usize::from(*kind) % KINDS.len()], &body[..body.len() / 4 * 4]);
    }
    if is_sealed {
        let mut sealed = [0; TAG_BYTES];
        session().client_to_server.seal(&[5; 16], &packet, &mut sealed).expect("a tag");
        put(&mut packet, KINDS[3], &[&[0, 16, 0, 16][..], &[5; 16], &sealed].concat());
    }
    packet.truncate(PACKET_BYTES_MAX);
    if let Some((at, bits)) = change
        && let Some(octet) = packet.get_mut(usize::from(at))
    {
        *octet ^= bits;
    }
    let (mut scratch, mut out) = ([0; PACKET_BYTES_MAX], [0; PACKET_BYTES_MAX]);
    match Protection::of(&packet, &keys, &mut scratch) {
        Protection::Plain => {}
        Protection::Nts(request) => {
            assert!(is_sealed, "none but the sealed one is authentic");
            let mut sealer = ReplySealer { keys: &keys, nonces: &mut NonceSource::new([1; 16]) };
            let length = sealer.seal((&request, &packet), &[0x24; HEADER_BYTES], &mut out);
            assert!(length.is_none_or(|length| length <= packet.len()));
        }
        Protection::Refused(_, identifier) => {
            let length = identifier.and_then(|identifier| write_nak(&[0x24; HEADER_BYTES], identifier, &mut out));
            assert!(length.is_none_or(|length| length < packet.len()));
        }
    }
});

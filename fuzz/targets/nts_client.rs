//! What a server, or a host in its name, sends to a client: a reply with one change is not taken for authentic; any
//! answer to key establishment, certificate and file of keys is read or refused.
#![no_main]

use ffclock_nts::establishment::Granted;
use ffclock_nts::mac::KeyFile;
use ffclock_nts::{
    Aead, CookieKeys, Key, NonceSource, Protection, ReplySealer, RequestRandom, Session, SessionKeys, Unauthentic,
    certificate_end,
};
use ffclock_wire::{HEADER_BYTES, PACKET_BYTES_MAX};
use libfuzzer_sys::fuzz_target;

fn keys() -> SessionKeys {
    let key = |octet| Key::new(Aead::AesSivCmac256, &[octet; 32]).expect("a key");
    SessionKeys { client_to_server: key(1), server_to_client: key(2) }
}

/// A client with a request under way, and the reply of its server.
fn asked() -> (Session, Vec<u8>) {
    let cookie_keys = CookieKeys::new([7; 32], 100, 2);
    let mut cookie = vec![0; 104];
    let length = cookie_keys.seal(&keys(), [3; 16], &mut cookie).expect("room");
    cookie.truncate(length);
    let mut session = Session::new(keys(), vec![cookie]);
    let random = RequestRandom { identifier: [9; 32], nonce: [5; 16] };
    let request = session.request(&[0x23; HEADER_BYTES], &random).expect("there is a cookie");
    let (mut scratch, mut out) = ([0; PACKET_BYTES_MAX], [0; PACKET_BYTES_MAX]);
    let Protection::Nts(opened) = Protection::of(&request, &cookie_keys, &mut scratch) else {
        panic!("our own request is authentic")
    };
    let mut sealer = ReplySealer { keys: &cookie_keys, nonces: &mut NonceSource::new([1; 16]) };
    let length = sealer.seal((&opened, &request), &[0x24; HEADER_BYTES], &mut out).expect("room");
    (session, out[..length].to_vec())
}

fuzz_target!(|input: (Option<(u16, u8)>, u16, Vec<u8>, String)| {
    let (change, cut, bytes, text) = input;
    let (mut session, reply) = asked();
    let mut shown = reply.clone();
    if let Some((at, bits)) = change {
        let at = usize::from(at) % shown.len();
        shown[at] ^= bits;
    }
    shown.truncate(shown.len() - usize::from(cut) % shown.len());
    let cookies = session.cookies();
    match session.open(&shown) {
        Ok(opened) => assert!(shown == reply && opened.cookies > 0, "only the server's own reply is authentic"),
        Err(Unauthentic::Nak) => assert_eq!(session.cookies(), cookies, "a kiss proves nothing"),
        Err(_) => assert!(shown != reply && session.cookies() == cookies),
    }
    let _ = session.open(&bytes);
    let _ = Granted::read(&bytes);
    let _ = certificate_end(&bytes);
    if let Ok(file) = KeyFile::parse(&text) {
        let _ = file.key(1).map(|key| key.verify(&bytes).map(<[u8]>::len));
    }
});

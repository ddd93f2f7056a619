extern crate std;
use super::*;
use crate::{Aead, CookieKeys, NonceSource, Protection, ReplySealer, write_nak};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec;

const BOTH: [Aead; 2] = [Aead::AesSivCmac256, Aead::Aes128GcmSiv];
/// Mode 3, version 4.
const ASKING: [u8; HEADER_BYTES] = [0x23; HEADER_BYTES];
const ANSWERING: [u8; HEADER_BYTES] = [0x24; HEADER_BYTES];

/// A client and the server's part of a reply.
struct Pair {
    client: Session,
    cookie_keys: CookieKeys,
    nonces: NonceSource,
    random: u8,
}

impl Pair {
    fn new(aead: Aead, cookies: usize) -> Self {
        let cookie_keys = CookieKeys::new([3; 32], 100, 2);
        let mut nonces = NonceSource::new([4; 16]);
        let key = |octet| Key::new(aead, &[octet; 32][..aead.key_bytes()]).unwrap();
        let keys = SessionKeys { client_to_server: key(1), server_to_client: key(2) };
        let cookie = |nonces: &mut NonceSource| {
            let mut room = [0; crate::LONGEST_COOKIE];
            let length = cookie_keys.seal(&keys, nonces.take(), &mut room).unwrap();
            room[..length].to_vec()
        };
        let jar = (0..cookies).map(|_| cookie(&mut nonces)).collect();
        Pair { client: Session::new(keys, jar), cookie_keys, nonces, random: 0 }
    }

    fn ask(&mut self) -> Vec<u8> {
        self.random += 1;
        let random = RequestRandom { identifier: [self.random; 32], nonce: [self.random; 16] };
        self.client.request(&ASKING, &random).unwrap()
    }

    fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        let mut scratch = vec![0; request.len()];
        let Protection::Nts(opened) = Protection::of(request, &self.cookie_keys, &mut scratch) else {
            panic!("our server opens our request")
        };
        let mut sealer = ReplySealer { keys: &self.cookie_keys, nonces: &mut self.nonces };
        let mut out = vec![0; request.len()];
        let length = sealer.seal((&opened, request), &ANSWERING, &mut out).unwrap();
        out[..length].to_vec()
    }
}

fn cookie_of(request: &[u8]) -> Vec<u8> {
    let mut fields = ExtensionFields::after(request, HEADER_BYTES).map(Result::unwrap);
    fields.find(|field| field.kind == COOKIE).unwrap().body.to_vec()
}

#[test]
fn a_conversation_keeps_eight_cookies_and_uses_each_once() {
    for aead in BOTH {
        let mut pair = Pair::new(aead, 3);
        let mut used = BTreeSet::new();
        for round in 0..30 {
            let request = pair.ask();
            assert!(request.len() <= LONGEST_REQUEST);
            assert_eq!(&request[..HEADER_BYTES], ASKING);
            assert!(used.insert(cookie_of(&request)), "cookie of round {round} was used before");
            let reply = pair.answer(&request);
            assert!(reply.len() <= request.len());
            let opened = pair.client.open(&reply).unwrap();
            assert_eq!(opened.header, &ANSWERING);
            assert_eq!(opened.cookies, if round == 0 { 6 } else { 1 });
            assert_eq!(pair.client.cookies(), COOKIES_KEPT);
        }
    }
}

#[test]
fn lost_replies_use_the_jar_up_and_the_next_one_fills_it() {
    let mut pair = Pair::new(Aead::AesSivCmac256, 8);
    for left in (1..8).rev() {
        pair.ask();
        assert_eq!(pair.client.cookies(), left);
    }
    let request = pair.ask();
    assert_eq!(pair.client.cookies(), 0);
    let random = RequestRandom { identifier: [0; 32], nonce: [0; 16] };
    assert_eq!(pair.client.request(&ASKING, &random), None);
    let reply = pair.answer(&request);
    assert_eq!(pair.client.open(&reply).map(|opened| opened.cookies), Ok(8));
}

#[test]
fn replayed_changed_and_cut_replies_are_not_believed() {
    for aead in BOTH {
        let mut pair = Pair::new(aead, 8);
        let first = pair.ask();
        let first_reply = pair.answer(&first);
        let request = pair.ask();
        let reply = pair.answer(&request);
        assert_eq!(pair.client.open(&first_reply), Err(Unauthentic::NotOurs));
        for index in 0..reply.len() {
            let mut changed = reply.clone();
            changed[index] ^= 1;
            assert!(pair.client.open(&changed).is_err(), "octet {index}");
            assert!(pair.client.open(&reply[..index]).is_err(), "cut at {index}");
        }
        assert_eq!(pair.client.open(&request), Err(Unauthentic::Authenticator), "our own request, reflected");
        assert_eq!(pair.client.cookies(), 6, "nothing was taken from any of them");
        assert_eq!(pair.client.open(&reply).map(|opened| opened.cookies), Ok(2));
        assert_eq!(pair.client.open(&reply), Err(Unauthentic::NotOurs), "a second time");
        assert_eq!(pair.client.cookies(), 8);
    }
}

#[test]
fn cookies_that_are_not_encrypted_are_not_taken() {
    let mut pair = Pair::new(Aead::AesSivCmac256, 1);
    let request = pair.ask();
    let mut reply = ANSWERING.to_vec();
    append(&mut reply, UNIQUE_IDENTIFIER, &[pair.random; 32]).unwrap();
    append(&mut reply, COOKIE, &cookie_of(&request)).unwrap();
    let key = pair.client.keys.server_to_client.clone();
    append_authenticator(&mut reply, &key, &[9; 16]).unwrap();
    append(&mut reply, COOKIE, &cookie_of(&request)).unwrap();
    assert_eq!(pair.client.open(&reply).map(|opened| opened.cookies), Ok(0));
    assert_eq!(pair.client.cookies(), 0);
}

#[test]
fn a_kiss_needs_the_identifier_and_closes_nothing() {
    let mut pair = Pair::new(Aead::AesSivCmac256, 8);
    let request = pair.ask();
    let mut header = ANSWERING;
    header[1] = 0;
    header[12..16].copy_from_slice(b"NTSN");
    let mut out = [0; 200];
    let mut kiss = |header: &[u8; HEADER_BYTES], identifier: &[u8]| {
        let length = write_nak(header, identifier, &mut out).unwrap();
        out[..length].to_vec()
    };
    let (ours, forged, other) = (kiss(&header, &[1; 32]), kiss(&header, &[2; 32]), kiss(&ANSWERING, &[1; 32]));
    assert_eq!(pair.client.open(&forged), Err(Unauthentic::NotOurs));
    assert_eq!(pair.client.open(&other), Err(Unauthentic::Malformed), "an unprotected reply with any other content");
    assert_eq!(pair.client.open(&header), Err(Unauthentic::NotOurs));
    assert_eq!(pair.client.open(&ours), Err(Unauthentic::Nak));
    let reply = pair.answer(&request);
    assert!(pair.client.open(&reply).is_ok(), "the authentic reply still counts");
}

#[test]
fn long_cookies_leave_a_packet_that_is_not_split() {
    let key = |octet| Key::new(Aead::AesSivCmac256, &[octet; 32]).unwrap();
    let keys = || SessionKeys { client_to_server: key(1), server_to_client: key(2) };
    let random = RequestRandom { identifier: [7; 32], nonce: [7; 16] };
    for length in (4..=LONGEST_FOREIGN_COOKIE).step_by(4) {
        let mut session = Session::new(keys(), vec![vec![5; length]]);
        let request = session.request(&ASKING, &random).unwrap();
        assert!(request.len() <= LONGEST_REQUEST, "{length}");
        assert!(ExtensionFields::after(&request, HEADER_BYTES).all(|field| field.is_ok()));
    }
    let unusable = vec![vec![], vec![5; 3], vec![5; LONGEST_FOREIGN_COOKIE + 4]];
    assert_eq!(Session::new(keys(), unusable).cookies(), 0);
    let printed = std::format!("{:?}", Session::new(keys(), vec![vec![0x5a; 4]]));
    assert!(!printed.contains("90"), "{printed}");
}

proptest! {
    #[test]
    fn noise_is_not_believed(
        noise in prop::collection::vec(any::<u8>(), 0..300),
        kinds in prop::collection::vec(0usize..4, 0..6),
    ) {
        let mut pair = Pair::new(Aead::AesSivCmac256, 2);
        pair.ask();
        let mut reply = ANSWERING.to_vec();
        append(&mut reply, UNIQUE_IDENTIFIER, &[1; 32]).unwrap();
        for (chunk, kind) in noise.chunks(60).zip(kinds) {
            let kind = [UNIQUE_IDENTIFIER, COOKIE, AUTHENTICATOR, 0xfec2][kind];
            append(&mut reply, kind, &chunk[..chunk.len() / 4 * 4]).unwrap();
        }
        prop_assert!(pair.client.open(&reply).is_err());
        prop_assert!(pair.client.open(&noise).is_err());
        prop_assert_eq!(pair.client.cookies(), 1);
    }
}

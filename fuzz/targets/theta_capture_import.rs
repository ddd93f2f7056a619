//! Any bytes as captures of requests, in both formats, at one end and at both: an error in words, or a log that can be
//! read and analysed.
#![no_main]

use ffclock_theta::analysis::{Options, analyse};
use ffclock_theta::import::{ImportOptions, OverlapRule, ServerCapture, TwoSidedOptions, import, import_two_sided};
use ffclock_theta::log::LogReader;
use ffclock_units::Rate;
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

const CLIENT: [u8; 4] = [10, 0, 0, 9];
const PORT: u16 = 7000;

/// A directory of this process, in memory where possible.
fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let below = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    below.join(format!("ffclock-fuzz-theta-import-{}", std::process::id()))
}

/// The formats of captures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Classic,
    Blocks,
}

impl Form {
    fn by(bit: u8) -> Self {
        if bit == 0 { Form::Classic } else { Form::Blocks }
    }
}

/// A UDP packet over raw IP: even numbers are requests, odd ones their replies.
fn packet(number: u8) -> Vec<u8> {
    let (is_request, number) = (number % 2 == 0, number / 2);
    let server = [10, 0, 0, 1 + number % 3];
    let (from, to) = if is_request { (CLIENT, server) } else { (server, CLIENT) };
    let ports = if is_request { [5000, PORT] } else { [PORT, 5000] };
    let mut bytes = vec![0x45, 0, 0, 33, 0, number, 0, 0, 64, 17, 0, 0];
    bytes.extend([from, to].concat());
    bytes.extend(ports.iter().flat_map(|port: &u16| port.to_be_bytes()));
    bytes.extend([0, 13, 0, 0, b'h', b'e', b'l', b'l', b'o']);
    bytes
}

/// Eight exchanges with three servers, as the client or a server sees them; the packets are padded to a whole number of
/// words.
fn capture(form: Form, ahead_us: u32) -> Vec<u8> {
    let is_pcapng = form == Form::Blocks;
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0];
    if is_pcapng {
        bytes = [0x0a0d_0d0au32, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28, 1, 20, 101, 0, 20]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
    }
    for number in 0..16u32 {
        let packet = packet(number as u8);
        let (at, length) = (1_000_000 + 100 * number + ahead_us, packet.len() as u32);
        let padded = length.next_multiple_of(4);
        let words: &[u32] = if is_pcapng {
            &[6, 32 + padded, 0, 0, at, length, length]
        } else {
            &[at / 1_000_000, at % 1_000_000, length, length]
        };
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(&packet);
        if is_pcapng {
            bytes.resize(bytes.len() + (padded - length) as usize, 0);
            bytes.extend((32 + padded).to_le_bytes());
        }
    }
    bytes
}

/// Each patch has two bytes for the place and one for the value.
fn patched(mut bytes: Vec<u8>, patches: &[u8]) -> Vec<u8> {
    for patch in patches.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % bytes.len();
        bytes[place] = patch[2];
    }
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let client = if choice & 1 == 1 { rest.to_vec() } else { patched(capture(Form::by(choice & 2), 0), rest) };
    let options = ImportOptions {
        client: IpAddr::V4(Ipv4Addr::from(CLIENT)),
        port: PORT,
        tolerated: 1,
        overlap: OverlapRule::Refuse,
    };
    let directory = place();
    let _ = fs::remove_dir_all(&directory);
    let outcome = if choice & 4 == 0 {
        import(&client[..], options, &directory)
    } else {
        // The other end is damaged by the same bytes in reverse order, so that the two differ.
        let backwards: Vec<u8> = rest.iter().rev().copied().collect();
        let server = patched(capture(Form::by(choice & 8), 40), if choice & 16 == 0 { &[] } else { &backwards });
        let servers = vec![ServerCapture { name: "server".to_owned(), input: &server[..] }];
        import_two_sided(
            &client[..],
            servers,
            TwoSidedOptions { import: options, drift: Rate::from_ppm(100.0) },
            &directory,
        )
    };
    match outcome {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(imported) => {
            assert!(imported.replies > 0);
            let log = LogReader::open(&directory).expect("an imported log can be read");
            analyse(&log, Options::default(), &mut ()).expect("and analysed");
        }
    }
    let _ = fs::remove_dir_all(&directory);
});

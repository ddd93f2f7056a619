//! The file of a trace: where a generator knows it, it is what the generator makes, and the truth comes from there.

use super::world::{Ps, Row, World};
use super::{is_writing, worlds};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The truth of a reply, by the sequence number of its request.
pub struct Truth {
    pub sequence: u64,
    pub received: u64,
    /// UTC.
    pub time: Ps,
}

/// A trace on disk.
pub struct Trace {
    pub path: PathBuf,
    /// Of a generated trace; empty for a recorded one.
    pub truths: Vec<Truth>,
}

impl Trace {
    /// Makes a generated trace again and compares; a recorded one is only found.
    pub fn of(name: &str, directory: &Path) -> Trace {
        let world = worlds::of(name);
        if let Some(world) = &world
            && is_writing()
        {
            write_trace(directory, &world.csv());
        }
        let path = path_in(directory);
        let Some(world) = world else { return Trace { path, truths: Vec::new() } };
        assert!(unpacked(&path) == world.csv(), "{} is not what the generator makes", path.display());
        Trace { path, truths: truths(&world) }
    }
}

/// The true times of all replies.
pub fn truths(world: &World) -> Vec<Truth> {
    let truth = |row: Row| {
        let reply = row.reply?;
        Some(Truth { sequence: row.sequence, received: reply.received, time: reply.true_received })
    };
    world.rows().into_iter().filter_map(truth).collect()
}

/// The file of the trace.
pub fn path_in(directory: &Path) -> PathBuf {
    let mut files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_trace = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_str().unwrap().starts_with("trace."));
    files.find(is_trace).unwrap_or_else(|| panic!("there is no trace in {}", directory.display()))
}

fn unpacked(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    let mut text = String::new();
    match path.extension().unwrap().to_str().unwrap() {
        "gz" => MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap(),
        "zst" => StreamingDecoder::new(bytes.as_slice()).unwrap().read_to_string(&mut text).unwrap(),
        other => panic!("{other} is no packing of a generated trace"),
    };
    text
}

/// Writes the trace where it has changed, packed as the file that is there, or with gzip. An unchanged trace is not
/// packed again, because another version of the packer may choose other bytes.
fn write_trace(directory: &Path, csv: &str) {
    fs::create_dir_all(directory).unwrap();
    let zstd = directory.join("trace.csv.zst");
    let path = if zstd.exists() { zstd } else { directory.join("trace.csv.gz") };
    if path.exists() && path.metadata().unwrap().len() > 0 && unpacked(&path) == csv {
        return;
    }
    let packed = if path.extension().unwrap() == "zst" {
        compress_to_vec(csv.as_bytes(), CompressionLevel::Fastest)
    } else {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(csv.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    fs::write(path, packed).unwrap();
}

//! From a file or a stream to uncompressed bytes with a known beginning.

use flate2::read::MultiGzDecoder;
use std::io::{self, BufReader, Cursor, Read};

mod zstd;

/// A stream of bytes whose first bytes are known.
pub(crate) type TraceInput = BufReader<Box<dyn Read>>;

/// The size of one read [bytes].
const BLOCK: usize = 256 * 1024;
/// The longest beginning that decides the format [bytes].
const HEAD: usize = 64 * 1024;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Uncompresses `stream` if it begins like gzip or zstd; returns it with its first bytes.
pub(crate) fn open(stream: Box<dyn Read>) -> io::Result<(TraceInput, Vec<u8>)> {
    let (stream, magic) = peeked(stream, 4)?;
    let plain: Box<dyn Read> = if magic.starts_with(GZIP) {
        Box::new(MultiGzDecoder::new(stream))
    } else if magic.starts_with(ZSTD) {
        Box::new(zstd::Frames::new(BufReader::with_capacity(BLOCK, stream))?)
    } else {
        stream
    };
    let (plain, head) = peeked(plain, HEAD)?;
    Ok((BufReader::with_capacity(BLOCK, plain), head))
}

/// Reads up to `length` bytes and puts them back in front. An error after the first byte is reported to the reader that
/// gets there.
fn peeked(mut stream: Box<dyn Read>, length: usize) -> io::Result<(Box<dyn Read>, Vec<u8>)> {
    let mut head = Vec::with_capacity(length);
    let outcome = stream.by_ref().take(length as u64).read_to_end(&mut head);
    match outcome {
        Err(error) if head.is_empty() => Err(error),
        Err(error) => Ok((Box::new(Cursor::new(head.clone()).chain(Failing(Some(error)))), head)),
        Ok(_) => Ok((Box::new(Cursor::new(head.clone()).chain(stream)), head)),
    }
}

/// Reports a deferred error, then ends.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    fn unpacked(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let (mut input, head) = open(Box::new(Cursor::new(bytes)))?;
        let mut all = Vec::new();
        let outcome = input.read_to_end(&mut all);
        assert!(all.starts_with(&head));
        outcome.map(|_| all)
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn sample() -> Vec<u8> {
        (0..100_000u32).flat_map(|number| format!("{number},").into_bytes()).collect()
    }

    #[test]
    fn compression_is_transparent_and_may_be_concatenated() {
        let sample = sample();
        let twice = [sample.clone(), sample.clone()].concat();
        let frame = compress_to_vec(&sample[..], CompressionLevel::Fastest);
        assert_eq!(unpacked(sample.clone()).unwrap(), sample);
        assert_eq!(unpacked([gzipped(&sample), gzipped(&sample)].concat()).unwrap(), twice);
        let skippable = [&0x184d_2a50u32.to_le_bytes()[..], &3u32.to_le_bytes(), b"abc"].concat();
        assert_eq!(unpacked([frame.clone(), skippable, frame].concat()).unwrap(), twice);
    }

    #[test]
    fn cut_streams_end_with_an_error_after_their_data() {
        for packed in [gzipped(&sample()), compress_to_vec(&sample()[..], CompressionLevel::Fastest)] {
            assert!(unpacked(packed[..packed.len() / 2].to_vec()).is_err());
        }
    }

    #[test]
    fn a_frame_that_asks_for_terabytes_is_refused() {
        let greedy = [ZSTD, &[0x00, 0xf8], &[0x01, 0x00, 0x00]].concat();
        let error = unpacked(greedy).unwrap_err();
        assert!(error.to_string().contains("indow"), "{error}");
    }

    proptest! {
        #[test]
        fn damaged_streams_do_not_panic(kind in 0usize..2, flips in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8)) {
            let sample = &sample()[..5000];
            let mut packed = if kind == 0 { gzipped(sample) } else { compress_to_vec(sample, CompressionLevel::Fastest) };
            for (at, value) in flips {
                let at = at % packed.len();
                packed[at] ^= value;
            }
            let _ = unpacked(packed);
        }
    }
}

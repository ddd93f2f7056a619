//! A zstd stream as one stream of bytes: all of its frames, each checked, with bounded memory.
//!
//! The library decodes one frame at a time, and limits the window of every frame except the first one that a decoder
//! sees. So the decoder starts on an empty frame of our own, and frames from outside are always limited (to 100 MiB).

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, Read};

/// Magic number, "single segment with one byte of size", size 0.
const EMPTY_FRAME: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00];

/// The bytes of all frames in a row.
pub(super) struct Frames<R> {
    input: R,
    decoder: FrameDecoder,
    inside: bool,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(input: R) -> io::Result<Self> {
        let mut decoder = FrameDecoder::new();
        decoder.init(&EMPTY_FRAME[..]).map_err(damaged)?;
        Ok(Frames { input, decoder, inside: false })
    }

    /// Begins the frame at the front, or skips one that carries no data.
    fn begin(&mut self) -> io::Result<()> {
        match self.decoder.reset(&mut self.input) {
            Ok(()) => self.inside = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                io::copy(&mut self.input.by_ref().take(length as u64), &mut io::sink())?;
            }
            Err(error) => return Err(damaged(error)),
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.inside = false;
        let stated = self.decoder.get_checksum_from_data();
        if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum of a zstd frame does not match"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if self.inside {
                while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                    let enough = BlockDecodingStrategy::UptoBytes(buffer.len());
                    self.decoder.decode_blocks(&mut self.input, enough).map_err(damaged)?;
                }
                let length = self.decoder.read(buffer)?;
                if length > 0 {
                    return Ok(length);
                }
                self.end()?;
            }
            if self.input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.begin()?;
        }
    }
}

fn damaged(error: FrameDecoderError) -> io::Error {
    let text = match error {
        FrameDecoderError::WindowSizeTooBig { requested } => {
            format!("a window of {requested} bytes is too large: uncompress the file by hand (zstd -dc --long=31 FILE)")
        }
        other => other.to_string(),
    };
    io::Error::new(io::ErrorKind::InvalidData, text)
}

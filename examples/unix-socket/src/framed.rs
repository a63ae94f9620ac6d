//! A transport of one's own: each message with its length before it, over a Unix socket.
//!
//! Why here: shows the whole of what a carrier has to bring; `mcp_core::serve` does the rest, for every revision.
//! Invariants: an abandoned read loses no byte; no frame beyond the limit is ever held.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use mcp_wire::{MessageReader, MessageWriter, Transport, TransportError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufWriter};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// The longest frame that is taken or sent, in bytes. A longer one is skipped and reported.
pub const MAX_FRAME: usize = 4 * 1024 * 1024;

/// A frame begins with its length: four bytes, the highest first.
const HEAD: usize = size_of::<u32>();

/// A connection that carries frames.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a connection is its stream")]
pub struct Framed(pub UnixStream);

impl Transport for Framed {
    type Reader = FrameReader;
    type Writer = FrameWriter;

    fn split(self) -> (FrameReader, FrameWriter) {
        let (source, sink) = self.0.into_split();
        (FrameReader { source, buffer: BytesMut::new(), skip: 0 }, FrameWriter(BufWriter::new(sink)))
    }
}

/// The reading half of a connection.
#[derive(Debug)]
pub struct FrameReader {
    source: OwnedReadHalf,
    buffer: BytesMut,
    /// So many bytes of a frame that is too long are still to be dropped.
    skip: usize,
}

impl FrameReader {
    /// The next frame, if all of it was read.
    fn take(&mut self) -> Result<Option<Bytes>, TransportError> {
        let skipped = self.skip.min(self.buffer.len());
        self.buffer.advance(skipped);
        self.skip -= skipped;
        let Some(head) = self.buffer.first_chunk::<HEAD>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*head)).map_err(TransportError::carrier)?;
        if length > MAX_FRAME {
            self.buffer.advance(HEAD);
            self.skip = length;
            return Err(TransportError::FrameTooLong { limit: MAX_FRAME });
        }
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}

impl MessageReader for FrameReader {
    async fn next(&mut self) -> Result<Option<Bytes>, TransportError> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            self.buffer.reserve(8 * 1024);
            // What was read is in the buffer before anything can abandon this.
            if self.source.read_buf(&mut self.buffer).await.map_err(failure)? == 0 {
                let is_whole = self.buffer.is_empty() && self.skip == 0;
                return if is_whole { Ok(None) } else { Err(TransportError::Closed) };
            }
        }
    }
}

/// The writing half of a connection.
#[derive(Debug)]
pub struct FrameWriter(BufWriter<OwnedWriteHalf>);

impl MessageWriter for FrameWriter {
    async fn send(&mut self, frame: Bytes) -> Result<(), TransportError> {
        let length = u32::try_from(frame.len()).map_err(TransportError::carrier)?;
        self.0.write_u32(length).await.map_err(failure)?;
        self.0.write_all(&frame).await.map_err(failure)
    }

    async fn flush(&mut self) -> Result<(), TransportError> {
        self.0.flush().await.map_err(failure)
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        self.0.shutdown().await.map_err(failure)
    }
}

fn failure(error: io::Error) -> TransportError {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => TransportError::Closed,
        _ => TransportError::carrier(error),
    }
}

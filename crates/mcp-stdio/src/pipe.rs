//! A transport of lines over any pair of byte streams.
//!
//! Why here: sockets, child processes and pairs in memory differ in where their bytes come from, not in their framing.
//! Invariants: a read that is abandoned loses no byte; a frame and its line feed are written whole, one after the other.

use std::io;

use bytes::Bytes;
use mcp_wire::{MessageReader, MessageWriter, Transport, TransportError};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufWriter, DuplexStream, ReadHalf, WriteHalf,
};

use crate::lines::{CHUNK, DEFAULT_MAX_LINE, LineTooLong, Lines};

/// One message per line, over a stream to read from and a stream to write to.
#[derive(Debug)]
pub struct Pipe<R, W> {
    reader: R,
    writer: W,
    max_line: usize,
}

impl<R, W> Pipe<R, W> {
    /// Over two streams.
    #[must_use]
    pub fn new(reader: R, writer: W) -> Self {
        Self { reader, writer, max_line: DEFAULT_MAX_LINE }
    }

    /// The longest line that is taken, in bytes. Default 16 MiB. Beyond: the line is skipped and reported as
    /// [`TransportError::FrameTooLong`]; reading goes on behind it.
    #[must_use]
    pub fn max_line(mut self, bytes: usize) -> Self {
        self.max_line = bytes;
        self
    }
}

impl<S: AsyncRead + AsyncWrite> Pipe<ReadHalf<S>, WriteHalf<S>> {
    /// Over one stream for both ways.
    #[must_use]
    pub fn over(stream: S) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self::new(reader, writer)
    }
}

/// One end of a pair in memory.
pub type MemoryPipe = Pipe<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

/// Two pipes in memory, each the other end of the other. A writer waits while `capacity` bytes are not read yet.
#[must_use]
pub fn pair(capacity: usize) -> (MemoryPipe, MemoryPipe) {
    let (one, other) = tokio::io::duplex(capacity);
    (Pipe::over(one), Pipe::over(other))
}

impl<R, W> Transport for Pipe<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Reader = PipeReader<R>;
    type Writer = PipeWriter<W>;

    fn split(self) -> (PipeReader<R>, PipeWriter<W>) {
        let reader = PipeReader { source: self.reader, lines: Lines::new(self.max_line), ended: false };
        (reader, PipeWriter { sink: BufWriter::with_capacity(CHUNK, self.writer) })
    }
}

/// The reading half of a [`Pipe`].
#[derive(Debug)]
pub struct PipeReader<R> {
    source: R,
    lines: Lines,
    ended: bool,
}

impl<R: AsyncRead + Unpin + Send + 'static> MessageReader for PipeReader<R> {
    async fn next(&mut self) -> Result<Option<Bytes>, TransportError> {
        loop {
            if let Some(line) = self.lines.next_line() {
                return line.map(Some).map_err(TransportError::from);
            }
            if self.ended {
                return self.lines.finish().transpose().map_err(TransportError::from);
            }
            // What was read is in `lines` before anything can abandon this.
            self.ended = self.source.read_buf(&mut self.lines.space()).await.map_err(failure)? == 0;
        }
    }
}

/// The writing half of a [`Pipe`]. Short frames are gathered until it is flushed or 64 KiB wait.
#[derive(Debug)]
pub struct PipeWriter<W> {
    sink: BufWriter<W>,
}

impl<W: AsyncWrite + Unpin + Send + 'static> MessageWriter for PipeWriter<W> {
    async fn send(&mut self, frame: Bytes) -> Result<(), TransportError> {
        self.sink.write_all(&frame).await.map_err(failure)?;
        self.sink.write_all(b"\n").await.map_err(failure)
    }

    async fn flush(&mut self) -> Result<(), TransportError> {
        self.sink.flush().await.map_err(failure)
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        self.sink.shutdown().await.map_err(failure)
    }
}

impl From<LineTooLong> for TransportError {
    fn from(error: LineTooLong) -> Self {
        Self::FrameTooLong { limit: error.limit }
    }
}

/// Tells the end of a peer from a fault of the carrier.
pub(crate) fn failure(error: io::Error) -> TransportError {
    match error.kind() {
        io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::WriteZero => TransportError::Closed,
        _ => TransportError::carrier(error),
    }
}

//! A transport without bytes: frames pass through bounded channels.
//!
//! Why here: a conversation over `serve` is tested without framing, sockets or files.
//! Invariants: a frame arrives whole or not at all; a writer waits while as many frames as the channel holds are unread.

use bytes::Bytes;
use mcp_wire::{MessageReader, MessageWriter, Transport, TransportError};
use tokio::sync::mpsc;

/// One end of a pair. Dropping it, or its halves, ends the other.
#[derive(Debug)]
pub struct ChannelPipe {
    reader: ChannelReader,
    writer: ChannelWriter,
}

/// The reading half of a [`ChannelPipe`].
#[derive(Debug)]
pub struct ChannelReader(mpsc::Receiver<Bytes>);

/// The writing half of a [`ChannelPipe`].
#[derive(Debug)]
pub struct ChannelWriter(Option<mpsc::Sender<Bytes>>);

/// Two pipes in memory, each the other end of the other, holding at most `frames` unread frames each way (at least one).
#[must_use]
pub fn pair(frames: usize) -> (ChannelPipe, ChannelPipe) {
    let (here, from_here) = mpsc::channel(frames.max(1));
    let (there, from_there) = mpsc::channel(frames.max(1));
    let pipe = |writer, reader| ChannelPipe { reader: ChannelReader(reader), writer: ChannelWriter(Some(writer)) };
    (pipe(here, from_there), pipe(there, from_here))
}

impl Transport for ChannelPipe {
    type Reader = ChannelReader;
    type Writer = ChannelWriter;

    fn split(self) -> (ChannelReader, ChannelWriter) {
        (self.reader, self.writer)
    }
}

impl MessageReader for ChannelReader {
    async fn next(&mut self) -> Result<Option<Bytes>, TransportError> {
        Ok(self.0.recv().await)
    }
}

impl MessageWriter for ChannelWriter {
    async fn send(&mut self, frame: Bytes) -> Result<(), TransportError> {
        let Some(channel) = &self.0 else { return Err(TransportError::Closed) };
        channel.send(frame).await.map_err(|_| TransportError::Closed)
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        self.0 = None;
        Ok(())
    }
}

//! What a pipe of messages must be able to do, for whoever brings a transport of their own.
//!
//! Why here: traits that outsiders implement live in the lowest crate and name no runtime.
//! Invariants: a reader loses nothing when a read is abandoned; a writer's frames are never mixed.

use std::error::Error;
use std::fmt;
use std::future::Future;

use bytes::Bytes;

/// A pipe that carries whole frames both ways (a socket, a pair of pipes, a channel).
pub trait Transport: Send + 'static {
    /// Its reading half.
    type Reader: MessageReader;
    /// Its writing half.
    type Writer: MessageWriter;

    /// Splits the pipe, so that reading never waits for writing.
    fn split(self) -> (Self::Reader, Self::Writer);
}

/// The reading half of a transport.
pub trait MessageReader: Send + 'static {
    /// The next undecoded frame, or `None` when the peer has closed its side.
    ///
    /// Must be cancel-safe: dropping the future and calling again loses no byte.
    ///
    /// After [`TransportError::FrameTooLong`] it is called again for the frame behind; a carrier that cannot find that
    /// one reports another error instead. Every other error is the end, as is `None`.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, TransportError>> + Send;
}

/// The writing half of a transport.
pub trait MessageWriter: Send + 'static {
    /// Writes one frame, whole. The caller does not drop this future half-way.
    fn send(&mut self, frame: Bytes) -> impl Future<Output = Result<(), TransportError>> + Send;

    /// Hands everything written so far to the peer. Does nothing unless the transport buffers.
    fn flush(&mut self) -> impl Future<Output = Result<(), TransportError>> + Send {
        async { Ok(()) }
    }

    /// Tells the peer that nothing more comes.
    fn close(&mut self) -> impl Future<Output = Result<(), TransportError>> + Send {
        self.flush()
    }
}

/// Why a transport failed; the cause is its source.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransportError {
    /// The peer is gone.
    Closed,
    /// A frame was longer than the limit and was skipped; a reader can be asked for the next one.
    FrameTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The carrier failed.
    Carrier(Box<dyn Error + Send + Sync>),
}

impl TransportError {
    /// Wraps the carrier's own error.
    pub fn carrier(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Carrier(cause.into())
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the peer closed the transport"),
            Self::FrameTooLong { limit } => write!(f, "a frame is longer than {limit} bytes"),
            Self::Carrier(_) => f.write_str("the transport failed"),
        }
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Carrier(cause) => Some(&**cause),
            Self::Closed | Self::FrameTooLong { .. } => None,
        }
    }
}

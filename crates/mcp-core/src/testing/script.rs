//! The other end of a transport, played by a test: what is sent and expected, in order.
//!
//! Why here: a conversation as it is on the wire is the plainest test of an engine or a carrier.
//! Invariants: nothing is skipped: each frame that arrives is the one that is expected next.

use bytes::Bytes;
use mcp_wire::{MessageReader, MessageWriter, Transport};
use serde_json::Value;

use super::{TestError, decoded};

/// A peer that does what it is told, frame by frame.
#[derive(Debug)]
pub struct Script<T: Transport> {
    reader: T::Reader,
    writer: T::Writer,
}

impl<T: Transport> Script<T> {
    /// Over one end of a transport.
    #[must_use]
    pub fn over(transport: T) -> Self {
        let (reader, writer) = transport.split();
        Self { reader, writer }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the transport fails.
    pub async fn send(&mut self, message: &Value) -> Result<(), TestError> {
        self.send_raw(message.to_string()).await
    }

    /// Sends a frame as it is, well-formed or not.
    ///
    /// # Errors
    /// When the transport fails.
    pub async fn send_raw(&mut self, frame: impl Into<Bytes>) -> Result<(), TestError> {
        self.writer.send(frame.into()).await?;
        Ok(self.writer.flush().await?)
    }

    /// The next frame, decoded, which has everything that `expected` has; objects may have more members.
    ///
    /// # Errors
    /// When something else comes, or nothing.
    pub async fn expect(&mut self, expected: &Value) -> Result<Value, TestError> {
        let Some(frame) = self.reader.next().await? else {
            return Err(TestError::new(format!("the peer has closed; expected was {expected}")));
        };
        let message = decoded(&frame)?;
        if contains(&message, expected) {
            return Ok(message);
        }
        Err(TestError::new(format!("expected was {expected}; what came is {message}")))
    }

    /// Tells the peer that nothing more comes.
    ///
    /// # Errors
    /// When the transport fails.
    pub async fn close(&mut self) -> Result<(), TestError> {
        Ok(self.writer.close().await?)
    }

    /// The peer has closed its side and says nothing more.
    ///
    /// # Errors
    /// When a frame comes.
    pub async fn expect_end(&mut self) -> Result<(), TestError> {
        match self.reader.next().await? {
            None => Ok(()),
            Some(frame) => Err(TestError::new(format!("no end but the frame {}", String::from_utf8_lossy(&frame)))),
        }
    }
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        _ => whole == part,
    }
}

//! Holds a transport to its promises: frames whole and in order, no byte lost with an abandoned read, an end in order.
//!
//! Why here: whoever brings a transport finds the mistakes that a conversation only shows under load.
//! Invariants: frames of many lengths go both ways at once, so that a small carrier has to cut them.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use mcp_wire::{MessageReader, MessageWriter, Transport};

use super::TestError;

/// The bytes of text in the frames that are sent: empty ones, ones around the sizes of buffers, ones of many reads.
const LENGTHS: [usize; 12] = [0, 1, 2, 100, 1023, 4095, 4096, 8191, 8193, 65_535, 65_537, 200_000];

/// Sends frames both ways between the two ends of a transport, abandoning every read that has to wait, then closes it.
///
/// `connect` makes two ends that are connected to each other. Let what is between them be small (a pipe of a few bytes)
/// so that frames are cut; frames of up to 200 KB are sent. A transport that forgets to wake its reader makes this wait for
/// ever, as it does any other caller.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use mcp_core::testing::{check_transport, pair};
///
/// check_transport(|| pair(1)).await?;
/// # Ok::<_, mcp_core::testing::TestError>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The first frame that arrives changed, late, twice or not at all; a transport that fails or does not end.
pub async fn check_transport<A: Transport, B: Transport>(connect: impl FnOnce() -> (A, B)) -> Result<(), TestError> {
    let (one, other) = connect();
    let (one_reader, one_writer) = one.split();
    let (other_reader, other_writer) = other.split();
    let there = together(send_all(one_writer, "there"), read_all(other_reader, "there"));
    let back = together(send_all(other_writer, "back"), read_all(one_reader, "back"));
    // Both writers live until all is read: the end is that of `close`, not that of a drop.
    let ((_one, ()), (_other, ())) = together(there, back).await?;
    Ok(())
}

fn frames(way: &str) -> impl Iterator<Item = Bytes> {
    LENGTHS.iter().enumerate().map(move |(number, length)| {
        Bytes::from(format!("{{\"way\":\"{way}\",\"number\":{number},\"text\":\"{}\"}}", "x".repeat(*length)))
    })
}

async fn send_all<W: MessageWriter>(mut writer: W, way: &str) -> Result<W, TestError> {
    for (number, frame) in frames(way).enumerate() {
        writer.send(frame).await?;
        // Some frames wait for others in a buffer.
        if number % 3 == 0 {
            writer.flush().await?;
        }
    }
    writer.close().await?;
    Ok(writer)
}

async fn read_all(mut reader: impl MessageReader, way: &str) -> Result<(), TestError> {
    for (number, expected) in frames(way).enumerate() {
        match abandoning(&mut reader).await? {
            Some(frame) if frame == expected => {}
            Some(frame) => {
                let begin = String::from_utf8_lossy(frame.get(..frame.len().min(60)).unwrap_or_default());
                let reason = format!(
                    "frame {number} of {} bytes arrived as {} bytes that begin with {begin}",
                    expected.len(),
                    frame.len()
                );
                return Err(TestError::new(reason));
            }
            None => return Err(TestError::new(format!("the end came before frame {number}"))),
        }
    }
    match abandoning(&mut reader).await? {
        None => Ok(()),
        Some(frame) => Err(TestError::new(format!("{} bytes more after the last frame", frame.len()))),
    }
}

/// Reads a frame with a new future for every poll.
async fn abandoning(reader: &mut impl MessageReader) -> Result<Option<Bytes>, TestError> {
    let read = std::future::poll_fn(|context| pin!(reader.next()).poll(context));
    Ok(read.await?)
}

/// Both of them, or the first failure.
async fn together<A, B>(
    one: impl Future<Output = Result<A, TestError>>,
    other: impl Future<Output = Result<B, TestError>>,
) -> Result<(A, B), TestError> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    std::future::poll_fn(move |context| {
        if first.is_none()
            && let Poll::Ready(done) = one.as_mut().poll(context)
        {
            first = Some(done?);
        }
        if second.is_none()
            && let Poll::Ready(done) = other.as_mut().poll(context)
        {
            second = Some(done?);
        }
        Poll::Ready(match (first.take(), second.take()) {
            (Some(one), Some(other)) => Ok((one, other)),
            (one, other) => {
                (first, second) = (one, other);
                return Poll::Pending;
            }
        })
    })
    .await
}

//! The process's stdin and stdout as a transport, each served by a thread of its own.
//!
//! Why here: a runtime waits for its blocking threads when it ends, and a read of stdin may block for ever. These threads
//! belong to no runtime: both end with their half of the transport or at the end of their stream, and a process that
//! leaves `main` takes them along whatever they wait for.
//! Invariants: nothing but frames is written to stdout; what is read or waits to be written is bounded.

use std::io::{self, BufWriter, Read, Write};
use std::thread;

use bytes::Bytes;
use mcp_wire::{MessageReader, MessageWriter, Transport, TransportError};
use tokio::sync::{mpsc, oneshot};

use crate::lines::{CHUNK, DEFAULT_MAX_LINE, Lines};
use crate::pipe::failure;

/// Chunks or frames on their way between a thread and the runtime.
const QUEUE: usize = 4;

/// One message per line, over stdin and stdout.
pub(crate) struct Stdio {
    reader: StdinReader,
    writer: StdoutWriter,
}

impl Stdio {
    /// Starts both threads. `ended` is called when stdin has ended, by the thread that read it.
    pub(crate) fn open(ended: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (to_reader, chunks) = mpsc::channel(QUEUE);
        thread::Builder::new().name("mcp-stdin".to_owned()).spawn(move || {
            read(io::stdin().lock(), &to_reader);
            drop(to_reader);
            ended();
        })?;
        let (jobs, for_writer) = mpsc::channel(QUEUE);
        thread::Builder::new().name("mcp-stdout".to_owned()).spawn(move || write(io::stdout(), for_writer))?;
        let reader = StdinReader { chunks, lines: Lines::new(DEFAULT_MAX_LINE), ended: false };
        Ok(Self { reader, writer: StdoutWriter { jobs } })
    }
}

impl Transport for Stdio {
    type Reader = StdinReader;
    type Writer = StdoutWriter;

    fn split(self) -> (StdinReader, StdoutWriter) {
        (self.reader, self.writer)
    }
}

pub(crate) struct StdinReader {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    lines: Lines,
    ended: bool,
}

fn read(mut stdin: impl Read, chunks: &mpsc::Sender<io::Result<Bytes>>) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let chunk = match stdin.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => Ok(Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default())),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let failed = chunk.is_err();
        if chunks.blocking_send(chunk).is_err() || failed {
            return;
        }
    }
}

impl MessageReader for StdinReader {
    async fn next(&mut self) -> Result<Option<Bytes>, TransportError> {
        loop {
            if let Some(line) = self.lines.next_line() {
                return line.map(Some).map_err(TransportError::from);
            }
            if self.ended {
                return self.lines.finish().transpose().map_err(TransportError::from);
            }
            match self.chunks.recv().await {
                Some(Ok(chunk)) => self.lines.take_chunk(&chunk),
                Some(Err(error)) => return Err(failure(error)),
                None => self.ended = true,
            }
        }
    }
}

pub(crate) struct StdoutWriter {
    jobs: mpsc::Sender<Job>,
}

enum Job {
    Write(Bytes),
    Flush(oneshot::Sender<io::Result<()>>),
}

fn write(stdout: impl Write, mut jobs: mpsc::Receiver<Job>) {
    let mut stdout = BufWriter::with_capacity(CHUNK, stdout);
    while let Some(job) = jobs.blocking_recv() {
        let is_written = match job {
            Job::Write(frame) => stdout.write_all(&frame).and_then(|()| stdout.write_all(b"\n")).is_ok(),
            Job::Flush(done) => {
                let flushed = stdout.flush();
                let is_flushed = flushed.is_ok();
                // Nobody waits any more once the connection is given up.
                let _ = done.send(flushed);
                is_flushed
            }
        };
        if !is_written {
            // The other side finds the queue closed.
            return;
        }
    }
}

impl MessageWriter for StdoutWriter {
    async fn send(&mut self, frame: Bytes) -> Result<(), TransportError> {
        self.jobs.send(Job::Write(frame)).await.map_err(|_| TransportError::Closed)
    }

    async fn flush(&mut self) -> Result<(), TransportError> {
        let (done, flushed) = oneshot::channel();
        self.jobs.send(Job::Flush(done)).await.map_err(|_| TransportError::Closed)?;
        flushed.await.map_err(|_| TransportError::Closed)?.map_err(failure)
    }
}

//! Takes lines out of a stream of bytes.
//!
//! Why here: the framing of stdio is this and nothing else, so it is tested without any stream.
//! Invariants: how the bytes are cut into chunks does not show; each byte is looked at once; no more is kept than a line
//! of the greatest length and a chunk, and the memory of a long line goes with the line.
//! Spec: 2026-07-28 basic/transports/stdio

use bytes::buf::Limit;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The longest line that is taken unless something else is said: 16 MiB.
pub const DEFAULT_MAX_LINE: usize = 16 * 1024 * 1024;

/// Most bytes that are read at a time.
pub(crate) const CHUNK: usize = 64 * 1024;
/// With less room than this the buffer grows before the next read.
const LEAST_SPACE: usize = 8 * 1024;
/// Lines up to this length are copied, so that a short line that somebody keeps does not keep a whole chunk.
const COPIED: usize = 4 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes in, lines out. A line ends with a line feed, before which a carriage return is dropped; blank lines are skipped,
/// and so is a byte order mark at the very start.
#[derive(Debug)]
pub struct Lines {
    limit: usize,
    buffer: BytesMut,
    /// This many bytes of the buffer are known to hold no line feed.
    searched: usize,
    at_start: bool,
    /// The rest of a line that was too long is dropped.
    skipping: bool,
}

/// A line was longer than the limit. It was dropped; the lines behind it are not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {limit} bytes")]
#[non_exhaustive]
pub struct LineTooLong {
    /// The limit in bytes, without the line's end.
    pub limit: usize,
}

type Line = Result<Bytes, LineTooLong>;

impl Lines {
    /// At the start of a stream whose lines have at most `limit` bytes, their ends not counted.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: BytesMut::new(), searched: 0, at_start: true, skipping: false }
    }

    /// Where the next chunk is to be read to, at most 64 KiB. Take all lines out before asking for more space.
    pub fn space(&mut self) -> Limit<&mut BytesMut> {
        if self.buffer.capacity() - self.buffer.len() < LEAST_SPACE {
            self.buffer.reserve(CHUNK);
        }
        (&mut self.buffer).limit(CHUNK)
    }

    /// Takes a chunk that was read elsewhere.
    #[cfg(feature = "server")]
    pub(crate) fn take_chunk(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next line that is complete, or the report that one was too long.
    pub fn next_line(&mut self) -> Option<Line> {
        if self.at_start && !self.pass_start() {
            return None;
        }
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(found) = memchr::memchr(b'\n', unsearched) else {
                self.searched = self.buffer.len();
                return self.check_unfinished().err().map(Err);
            };
            let end = self.searched + found;
            self.searched = 0;
            if std::mem::take(&mut self.skipping) {
                self.buffer.advance(end + 1);
            } else if let Some(line) = self.take_line(end, end + 1) {
                return Some(line);
            }
        }
    }

    /// The stream has ended: what stands behind the last line feed is a line too.
    pub fn finish(&mut self) -> Option<Line> {
        let end = self.buffer.len();
        self.searched = 0;
        if std::mem::take(&mut self.skipping) {
            self.buffer.clear();
        }
        self.take_line(end.min(self.buffer.len()), self.buffer.len())
    }

    /// Passes the byte order mark; `false` while it is not known whether there is one.
    fn pass_start(&mut self) -> bool {
        if self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.advance(BYTE_ORDER_MARK.len());
        } else if BYTE_ORDER_MARK.starts_with(&self.buffer) {
            return false;
        }
        self.at_start = false;
        true
    }

    /// Gives up a line as soon as it is too long, whatever may follow.
    fn check_unfinished(&mut self) -> Result<(), LineTooLong> {
        let length = self.buffer.len();
        // A carriage return behind the last byte allowed may belong to the line's end.
        let is_within = length <= self.limit || (length == self.limit + 1 && self.buffer.ends_with(b"\r"));
        if is_within && !self.skipping {
            return Ok(());
        }
        let was_skipping = std::mem::replace(&mut self.skipping, true);
        self.searched = 0;
        self.let_go();
        self.buffer.clear();
        if was_skipping { Ok(()) } else { Err(LineTooLong { limit: self.limit }) }
    }

    /// Takes the line that ends before `end` and drops everything before `next`; `None` if it is blank.
    fn take_line(&mut self, end: usize, next: usize) -> Option<Line> {
        let content = self.buffer.get(..end).unwrap_or_default();
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        let length = content.len();
        if length > self.limit {
            self.buffer.advance(next);
            self.let_go();
            return Some(Err(LineTooLong { limit: self.limit }));
        }
        if content.trim_ascii().is_empty() {
            self.buffer.advance(next);
            return None;
        }
        if length <= COPIED {
            let line = Bytes::copy_from_slice(content);
            self.buffer.advance(next);
            return Some(Ok(line));
        }
        let mut line = self.buffer.split_to(next);
        line.truncate(length);
        if length > CHUNK {
            self.let_go();
        }
        Some(Ok(line.freeze()))
    }

    /// Moves what is left, a chunk at most, out of memory that a long line made grow.
    fn let_go(&mut self) {
        self.buffer = BytesMut::from(&*self.buffer);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What comes out of a stream that arrives in these chunks.
    fn lines(limit: usize, chunks: &[&[u8]]) -> Vec<Result<Vec<u8>, LineTooLong>> {
        let mut lines = Lines::new(limit);
        let mut all = Vec::new();
        for chunk in chunks.iter().flat_map(|chunk| chunk.chunks(LEAST_SPACE)) {
            lines.space().put_slice(chunk);
            all.extend(std::iter::from_fn(|| lines.next_line()));
        }
        all.extend(lines.finish());
        all.into_iter().map(|line| line.map(|line| line.to_vec())).collect()
    }

    fn texts(limit: usize, stream: &str) -> Vec<String> {
        let shown = |line: Result<Vec<u8>, LineTooLong>| match line {
            Ok(line) => String::from_utf8(line).unwrap(),
            Err(LineTooLong { limit }) => format!("longer than {limit}"),
        };
        lines(limit, &[stream.as_bytes()]).into_iter().map(shown).collect()
    }

    #[test]
    fn a_line_ends_with_a_line_feed_with_or_without_a_carriage_return() {
        assert_eq!(texts(99, "one\ntwo\r\nthr\ree\n"), ["one", "two", "thr\ree"]);
    }

    #[test]
    fn the_last_line_needs_no_end() {
        assert_eq!(texts(99, "one\ntwo"), ["one", "two"]);
        assert_eq!(texts(99, "one\ntwo\r"), ["one", "two"]);
    }

    #[test]
    fn blank_lines_are_skipped() {
        assert_eq!(texts(99, "\n\r\n \t \none\n\n\n"), ["one"]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_at_the_start_only() {
        assert_eq!(texts(99, "\u{feff}one\n\u{feff}two\n"), ["one", "\u{feff}two"]);
        assert_eq!(texts(99, "\u{feff}"), [""; 0]);
    }

    #[test]
    fn a_line_that_is_too_long_is_reported_once_and_the_next_one_is_read() {
        assert_eq!(texts(3, "abc\nabcd\nef\n"), ["abc", "longer than 3", "ef"]);
        assert_eq!(texts(3, "abc\r\nabcd\r\nab\r\n"), ["abc", "longer than 3", "ab"]);
        let long = format!("{}\nshort\n", "x".repeat(300_000));
        assert_eq!(texts(100_000, &long), ["longer than 100000", "short"]);
        assert_eq!(texts(3, "abcdefgh"), ["longer than 3"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_given_up_before_it_ends() {
        let mut lines = Lines::new(1000);
        lines.space().put_bytes(b'x', 1001);
        assert_eq!(lines.next_line(), Some(Err(LineTooLong { limit: 1000 })));
        for _ in 0..1000 {
            lines.space().put_bytes(b'x', CHUNK);
            assert_eq!(lines.next_line(), None);
            assert_eq!(lines.buffer.len(), 0);
        }
        assert!(lines.buffer.capacity() <= 2 * CHUNK, "{}", lines.buffer.capacity());
    }

    #[test]
    fn a_long_line_takes_its_memory_along() {
        let mut lines = Lines::new(DEFAULT_MAX_LINE);
        let mut stream = vec![b'x'; 8 * 1024 * 1024];
        stream.extend_from_slice(b"\nrest");
        let mut line = None;
        for chunk in stream.chunks(LEAST_SPACE) {
            assert_eq!(line, None);
            lines.space().put_slice(chunk);
            line = lines.next_line();
        }
        assert_eq!(line.unwrap().unwrap().len(), 8 * 1024 * 1024);
        assert!(lines.buffer.capacity() <= CHUNK, "{}", lines.buffer.capacity());
        assert_eq!(lines.finish(), Some(Ok(Bytes::from_static(b"rest"))));
    }

    #[test]
    fn nothing_is_searched_twice() {
        let mut lines = Lines::new(DEFAULT_MAX_LINE);
        for _ in 0..100 {
            lines.space().put_bytes(b'x', 1000);
            assert_eq!(lines.next_line(), None);
            assert_eq!(lines.searched, lines.buffer.len());
        }
    }

    /// Streams in which everything that has a meaning is frequent.
    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            3 => Just(b"\n".to_vec()),
            2 => Just(b"\r".to_vec()),
            1 => Just(BYTE_ORDER_MARK.to_vec()),
            1 => Just(b" ".to_vec()),
            4 => proptest::collection::vec(any::<u8>(), 1..6),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    /// The same rules, said of a stream as a whole.
    fn expected(limit: usize, stream: &[u8]) -> Vec<Result<Vec<u8>, LineTooLong>> {
        let stream = stream.strip_prefix(BYTE_ORDER_MARK).unwrap_or(stream);
        let mut found = Vec::new();
        for line in stream.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.len() > limit {
                found.push(Err(LineTooLong { limit }));
            } else if !line.trim_ascii().is_empty() {
                found.push(Ok(line.to_vec()));
            }
        }
        found
    }

    proptest! {
        #[test]
        fn how_a_stream_is_cut_does_not_show(
            stream in streams(),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
            limit in 0_usize..12,
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            let each: Vec<&[u8]> = stream.chunks(1).collect();
            prop_assert_eq!(lines(limit, &chunks), expected(limit, &stream));
            prop_assert_eq!(lines(limit, &each), expected(limit, &stream));
        }
    }
}

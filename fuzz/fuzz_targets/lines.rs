//! Lines: how a stream is cut into chunks does not show, and what comes out is what a simple reader finds.
#![no_main]

use arbitrary::Arbitrary;
use bytes::BufMut as _;
use libfuzzer_sys::fuzz_target;
use mcp_stdio::Lines;

#[derive(Arbitrary, Debug)]
struct Input {
    limit: u8,
    chunks: Vec<Vec<u8>>,
}

/// A line, or that one was too long.
type Found = Option<Vec<u8>>;

fuzz_target!(|input: Input| {
    let limit = usize::from(input.limit);
    let stream = input.chunks.concat();
    let expected = simply(limit, &stream);
    let chunks: Vec<&[u8]> = input.chunks.iter().map(|chunk| &**chunk).collect();
    assert_eq!(lines(limit, &chunks), expected, "in {} chunks", chunks.len());
    assert_eq!(lines(limit, &[&stream]), expected, "at once");
    let single: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(lines(limit, &single), expected, "byte by byte");
});

fn lines(limit: usize, chunks: &[&[u8]]) -> Vec<Found> {
    let mut lines = Lines::new(limit);
    let mut found = Vec::new();
    for chunk in chunks.iter().flat_map(|chunk| chunk.chunks(1024)) {
        lines.space().put_slice(chunk);
        while let Some(line) = lines.next_line() {
            found.push(line.ok().map(|line| line.to_vec()));
        }
    }
    found.extend(lines.finish().map(|line| line.ok().map(|line| line.to_vec())));
    assert!(lines.finish().is_none(), "something follows the end");
    found
}

fn simply(limit: usize, stream: &[u8]) -> Vec<Found> {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let lines = stream.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let judged = lines.map(|line| if line.len() > limit { None } else { Some(line.to_vec()) });
    judged.filter(|line| line.as_ref().is_none_or(|line| !line.trim_ascii().is_empty())).collect()
}

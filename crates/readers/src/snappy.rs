//! Decompresses raw Snappy in steps, <https://github.com/google/snappy/blob/main/format_description.txt>.

use bpe_tokenizer_core::error::{Error, Result};
use bpe_tokenizer_core::reserve::reserve;

/// How far back a copy may reach. Writers work on blocks of 64 KB, so theirs do not reach further.
const WINDOW: usize = 1 << 20;
/// The most bytes of a varint of 32 bits.
const MAX_VARINT: usize = 5;
/// An element of 2 bytes gives at most 11, one of 3 bytes 64.
const MAX_EXPANSION: usize = 22;
const MAX_COPY: usize = 64;
/// Content that is kept before what is further back than the window is forgotten.
const MAX_KEPT: usize = 2 * WINDOW;
/// Bytes that are copied at once.
const CHUNK: usize = 16;

/// What [`SnappyDecoder::feed`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Fed<'a> {
    /// The next bytes of the content.
    Content(&'a [u8]),
    /// A copy reaches further back than this decoder remembers.
    TooFar,
}

/// A stream of raw Snappy.
#[derive(Default)]
pub struct SnappyDecoder {
    /// Room for content. What lies before `end` is the last of it.
    content: Vec<u8>,
    end: usize,
    /// The length of the content, once its varint is complete.
    length: Option<u64>,
    /// The bytes decompressed so far.
    done: u64,
    /// The start of the length, or of an element.
    started: Vec<u8>,
    /// Bytes of a literal that are still to come.
    literal: usize,
}

impl SnappyDecoder {
    /// Decompresses the next bytes of the stream. The content is at most about 22 times as long.
    pub fn feed(&mut self, mut data: &[u8]) -> Result<Fed<'_>> {
        while self.length.is_none() {
            let Some((&byte, rest)) = data.split_first() else {
                return Ok(Fed::Content(&[]));
            };
            data = rest;
            self.read_length(byte)?;
        }
        self.make_room(data.len())?;
        let before = self.end;
        while !data.is_empty() {
            if self.literal > 0 {
                data = self.take_literal(data)?;
                continue;
            }
            let element = match data.first_chunk() {
                Some(element) if self.started.is_empty() => {
                    data = &data[tag_size(element[0])..];
                    *element
                }
                _ => match self.pieced_element(&mut data) {
                    Some(element) => element,
                    None => break,
                },
            };
            let is_far = match read_element(element) {
                Element::Literal(length) => {
                    if length as u64 > self.left() {
                        return Err(corrupt("it is longer than its length"));
                    }
                    self.literal = length;
                    false
                }
                Element::Copy { length, back } => self.copy(length, back)?,
            };
            if is_far {
                return Ok(Fed::TooFar);
            }
        }
        Ok(Fed::Content(&self.content[before..self.end]))
    }

    /// Makes room for what some stored bytes can give, and forgets what is far back.
    fn make_room(&mut self, stored: usize) -> Result<()> {
        if self.end > MAX_KEPT {
            self.content.copy_within(self.end - WINDOW..self.end, 0);
            self.end = WINDOW;
        }
        let most = MAX_EXPANSION.saturating_mul(stored) + MAX_COPY;
        let room = usize::try_from(self.left()).map_or(most, |left| left.min(most));
        let length = self.end + room + CHUNK;
        if length > self.content.len() {
            let more = length - self.content.len();
            reserve(&mut self.content, more)?;
            self.content.resize(length, 0);
        }
        Ok(())
    }

    /// Copies the available bytes of a literal. Returns the data after them.
    fn take_literal<'d>(&mut self, data: &'d [u8]) -> Result<&'d [u8]> {
        let length = self.literal.min(data.len());
        self.advance(length)?;
        let place = &mut self.content[self.end..];
        match (place.first_chunk_mut::<CHUNK>(), data.first_chunk()) {
            (Some(place), Some(chunk)) if length <= CHUNK => *place = *chunk,
            _ => place[..length].copy_from_slice(&data[..length]),
        }
        self.end += length;
        self.literal -= length;
        Ok(&data[length..])
    }

    /// The element that the data ends or starts within; None if it is not complete. Bytes after it are zero.
    fn pieced_element(&mut self, data: &mut &[u8]) -> Option<[u8; MAX_VARINT]> {
        let tag = self.started.first().or(data.first()).copied()?;
        let size = tag_size(tag);
        let (now, rest) = data.split_at((size - self.started.len()).min(data.len()));
        self.started.extend_from_slice(now);
        *data = rest;
        if self.started.len() < size {
            return None;
        }
        let mut element = [0; MAX_VARINT];
        element[..size].copy_from_slice(&self.started);
        self.started.clear();
        Some(element)
    }

    /// Checks that the stream is complete.
    pub fn finish(&self) -> Result<()> {
        let is_whole = self.length == Some(self.done) && self.started.is_empty();
        is_whole
            .then_some(())
            .ok_or_else(|| corrupt("it is truncated"))
    }

    /// The bytes of the content that are still to come.
    fn left(&self) -> u64 {
        self.length.unwrap_or(0) - self.done
    }

    fn read_length(&mut self, byte: u8) -> Result<()> {
        self.started.push(byte);
        if byte & 0x80 == 0 {
            let digits = self.started.iter().rev();
            let length = digits.fold(0, |sum: u64, &digit| sum << 7 | u64::from(digit & 0x7f));
            if length > u64::from(u32::MAX) {
                return Err(corrupt("its length has more than 32 bits"));
            }
            self.length = Some(length);
            self.started.clear();
        } else if self.started.len() == MAX_VARINT {
            return Err(corrupt("its length has more than 32 bits"));
        }
        Ok(())
    }

    fn advance(&mut self, bytes: usize) -> Result<()> {
        if bytes as u64 > self.left() {
            return Err(corrupt("it is longer than its length"));
        }
        self.done += bytes as u64;
        Ok(())
    }

    /// Repeats bytes of the content. Returns whether they are too far back to be known.
    fn copy(&mut self, length: usize, back: usize) -> Result<bool> {
        if back == 0 || back as u64 > self.done {
            return Err(corrupt("a copy starts before the content"));
        }
        if back > self.end {
            return Ok(true);
        }
        self.advance(length)?;
        let start = self.end - back;
        if back >= CHUNK {
            // Whole chunks, which may write more than the length.
            for at in (0..length).step_by(CHUNK) {
                let from = start + at;
                let to = self.end + at;
                self.content.copy_within(from..from + CHUNK, to);
            }
        } else {
            // It may repeat what it has just copied.
            let mut done = 0;
            while done < length {
                let now = (length - done).min(back + done);
                self.content
                    .copy_within(start..start + now, self.end + done);
                done += now;
            }
        }
        self.end += length;
        Ok(false)
    }
}

enum Element {
    Literal(usize),
    Copy { length: usize, back: usize },
}

/// The bytes of an element without those of a literal.
fn tag_size(tag: u8) -> usize {
    match (tag & 3, tag >> 2) {
        (0, length @ 60..) => usize::from(length) - 58,
        (0, _) => 1,
        (1, _) => 2,
        (2, _) => 3,
        _ => 5,
    }
}

fn read_element([tag, one, two, three, four]: [u8; MAX_VARINT]) -> Element {
    let number = u64::from(u32::from_le_bytes([one, two, three, four]));
    // Without the bytes after the element.
    let number = number & ((1 << (8 * (tag_size(tag) - 1))) - 1);
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    let length = usize::from(tag >> 2);
    match tag & 3 {
        0 if length < 60 => Element::Literal(length + 1),
        0 => Element::Literal(number.saturating_add(1)),
        1 => Element::Copy {
            length: (length & 7) + 4,
            back: usize::from(tag >> 5) << 8 | usize::from(one),
        },
        _ => Element::Copy {
            length: length + 1,
            back: number,
        },
    }
}

fn corrupt(problem: &str) -> Error {
    Error::Column(format!("corrupt Snappy: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decompresses a stream in parts of a size.
    fn decode(stream: &[u8], size: usize) -> Result<Vec<u8>> {
        let mut decoder = SnappyDecoder::default();
        let mut content = Vec::new();
        for part in stream.chunks(size) {
            match decoder.feed(part)? {
                Fed::Content(part) => content.extend_from_slice(part),
                Fed::TooFar => return Err(corrupt("far")),
            }
        }
        decoder.finish()?;
        Ok(content)
    }

    fn varint(mut number: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number > 0x7f {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    /// A stream of literals and copies, with its content.
    fn written(parts: &[(Vec<u8>, usize, usize)]) -> (Vec<u8>, Vec<u8>) {
        let (mut elements, mut content) = (Vec::new(), Vec::new());
        for (literal, length, back) in parts {
            if !literal.is_empty() {
                let size = literal.len() - 1;
                if size < 60 {
                    elements.push((size as u8) << 2);
                } else {
                    elements.push(61 << 2);
                    elements.extend_from_slice(&(size as u16).to_le_bytes());
                }
                elements.extend_from_slice(literal);
                content.extend_from_slice(literal);
            }
            if content.is_empty() {
                continue;
            }
            let back = back % content.len() + 1;
            match (length, back) {
                (4..=11, ..2048) => {
                    elements.push(1 | ((length - 4) as u8) << 2 | ((back >> 8) as u8) << 5);
                    elements.push(back as u8);
                }
                (_, ..65536) => {
                    elements.push(2 | ((length - 1) as u8) << 2);
                    elements.extend_from_slice(&(back as u16).to_le_bytes());
                }
                _ => {
                    elements.push(3 | ((length - 1) as u8) << 2);
                    elements.extend_from_slice(&(back as u32).to_le_bytes());
                }
            }
            for _ in 0..*length {
                content.push(content[content.len() - back]);
            }
        }
        let mut stream = varint(content.len());
        stream.extend_from_slice(&elements);
        (stream, content)
    }

    #[test]
    fn a_copy_may_reach_back_as_far_as_the_window() {
        for far in [false, true] {
            let mut decoder = SnappyDecoder::default();
            let total = MAX_KEPT + 1;
            let back = WINDOW + usize::from(far);
            let mut head = varint(total + 4);
            head.push(62 << 2);
            head.extend_from_slice(&((total - 1) as u32).to_le_bytes()[..3]);
            assert!(decoder.feed(&head).is_ok());
            assert!(decoder.feed(&vec![7; total]).is_ok());
            let mut copy = vec![3 | 3 << 2];
            copy.extend_from_slice(&(back as u32).to_le_bytes());
            let fed = decoder.feed(&copy).unwrap();
            let expected = if far {
                Fed::TooFar
            } else {
                Fed::Content(&[7; 4])
            };
            assert_eq!(fed, expected);
        }
    }

    #[test]
    fn broken_streams_are_errors() {
        let broken: [&[u8]; 8] = [
            b"",
            b"\x80",
            b"\xff\xff\xff\xff\xff\x01",
            b"\xff\xff\xff\xff\x7f",
            b"\x02\x00a",
            b"\x01\x04ab",
            b"\x05\x00a\x01\x02",
            b"\x05\x00a\x01\x00",
        ];
        for stream in broken {
            assert!(decode(stream, 3).is_err(), "{stream:?}");
        }
        assert_eq!(decode(b"\0", 1).unwrap(), b"");
    }

    proptest! {
        #[test]
        fn streams_in_any_parts_give_their_content(
            parts in prop::collection::vec(
                (prop::collection::vec(any::<u8>(), 0..300), 1..=64usize, any::<usize>()),
                0..40,
            ),
            size in 1..500usize,
        ) {
            let (stream, content) = written(&parts);
            prop_assert_eq!(decode(&stream, size).unwrap(), content);
        }

        #[test]
        fn any_bytes_end(stream in prop::collection::vec(any::<u8>(), 0..200), size in 1..50usize) {
            let _ = decode(&stream, size);
        }

        #[test]
        fn changed_streams_end(
            literal in prop::collection::vec(any::<u8>(), 1..300),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let (mut stream, _) = written(&[(literal.clone(), 9, 3), (literal, 50, 70)]);
            let at = at.index(stream.len());
            stream[at] = byte;
            let _ = decode(&stream, 7);
        }
    }
}

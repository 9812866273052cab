//! Splits blocks into rows, on many threads.

use crate::json::text_of_field;
use bpe_tokenizer_core::buffer_pool::BufferPool;
use bpe_tokenizer_core::error::Result;
use bpe_tokenizer_core::interrupt::{Interrupt, Poller};
use bpe_tokenizer_core::reserve::{append, push, reserve, reserve_exact};
use bpe_tokenizer_core::text::from_utf8;
use bpe_tokenizer_core::threads::{ordered, thread_count};
use memchr::{memchr, memchr_iter, memmem, memrchr};
use std::ops::Range;

/// A block is divided into chunks of at least this many bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// A longer block has a long row, which only one thread can read.
const MAX_PARALLEL_BYTES: usize = 16 << 20;

/// What a row is.
#[derive(Clone, Copy, Debug)]
pub enum RowKind<'a> {
    /// A line, which ends at `\n` or `\r\n`. Empty lines are left out.
    Line,
    /// The text between two of these separators, which are not empty. Empty text is left out.
    Separated(&'a [u8]),
    /// The string in this field of a line of JSON. Lines of ASCII white space are left out.
    Json(&'a str),
}

/// The documents of a block.
#[derive(Debug, Default, PartialEq)]
pub struct Rows {
    /// Their UTF-8, concatenated.
    pub data: Vec<u8>,
    /// Where each ends.
    pub ends: Vec<i64>,
    /// The number of the row of each.
    pub numbers: Vec<i64>,
    /// Rows for the caller to decide.
    pub undecided: Vec<Undecided>,
    /// Number of rows of the block, including those that are left out.
    pub count: i64,
}

/// A row for the caller to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecided {
    /// The number of the row.
    pub number: i64,
    /// Where it is in the block, with its line end.
    pub range: Range<usize>,
    /// Number of documents before it.
    pub before: usize,
}

/// Reads the rows of a block. The last row of a corpus may lack its end.
///
/// `first` is the number of the first row. The rows up to the number `after` are skipped. The text gets its room from the
/// pool.
pub fn read_rows(
    block: &[u8],
    kind: RowKind<'_>,
    first: i64,
    after: i64,
    threads: usize,
    pool: &BufferPool<u8>,
    interrupt: &Interrupt<'_>,
) -> Result<Rows> {
    let threads = match kind {
        RowKind::Separated(_) => 1,
        // Joining the parts would copy a very long row.
        _ if first <= after || block.len() > MAX_PARALLEL_BYTES => 1,
        _ => thread_count(threads, block.len()),
    };
    if threads == 1 {
        let chunk = Chunk {
            block,
            start: 0,
            kind,
            room: block.len(),
        };
        return chunk.rows(first, after, pool, interrupt);
    }
    let chunks = chunks(block, CHUNK_BYTES.max(block.len().div_ceil(threads)), kind)?;
    let size = |chunk: &Chunk<'_>| chunk.block.len();
    let parts = ordered::map(&chunks, threads, size, interrupt, |chunk| {
        let first = if chunk.start == 0 { first } else { 1 };
        chunk.rows(first, 0, pool, interrupt)
    })?;
    joined(parts, first, pool)
}

/// Divides a block at ends of lines.
fn chunks<'a>(block: &'a [u8], size: usize, kind: RowKind<'a>) -> Result<Vec<Chunk<'a>>> {
    let (mut chunks, mut start) = (Vec::new(), 0);
    while start < block.len() {
        let rest = &block[start..];
        let length = match memrchr(b'\n', &rest[..size.min(rest.len())]) {
            _ if rest.len() <= size => rest.len(),
            Some(end) => end + 1,
            None => memchr(b'\n', rest).map_or(rest.len(), |end| end + 1),
        };
        let chunk = Chunk {
            block: &rest[..length],
            start,
            kind,
            room: if start == 0 { block.len() } else { length },
        };
        push(&mut chunks, chunk)?;
        start += length;
    }
    Ok(chunks)
}

/// The rows of consecutive chunks as those of their block. The first chunk counts its rows from `first` and has room for
/// the texts of all; the others count from 1.
fn joined(parts: Vec<Rows>, first: i64, pool: &BufferPool<u8>) -> Result<Rows> {
    let documents = parts.iter().map(|part| part.ends.len()).sum();
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_default();
    reserve(&mut all.ends, documents)?;
    reserve(&mut all.numbers, documents)?;
    for part in parts {
        let (data, before) = (all.data.len() as i64, all.ends.len());
        let skipped = first - 1 + all.count;
        append(&mut all.data, &part.data)?;
        pool.put(part.data);
        all.ends.extend(part.ends.iter().map(|end| data + end));
        all.numbers
            .extend(part.numbers.iter().map(|number| skipped + number));
        reserve(&mut all.undecided, part.undecided.len())?;
        all.undecided
            .extend(part.undecided.into_iter().map(|row| Undecided {
                number: skipped + row.number,
                before: before + row.before,
                ..row
            }));
        all.count += part.count;
    }
    Ok(all)
}

/// A part of a block that one thread reads.
struct Chunk<'a> {
    block: &'a [u8],
    /// Where it starts in the whole block.
    start: usize,
    kind: RowKind<'a>,
    /// The bytes that the texts have room for.
    room: usize,
}

impl Chunk<'_> {
    fn rows(
        &self,
        first: i64,
        after: i64,
        pool: &BufferPool<u8>,
        interrupt: &Interrupt<'_>,
    ) -> Result<Rows> {
        let mut rows = Rows {
            data: pool.take(self.room),
            ..Rows::default()
        };
        // No document is longer than its row.
        reserve_exact(&mut rows.data, self.room)?;
        let text = from_utf8(self.block).ok();
        let mut poller = Poller::new(interrupt);
        let mut start = 0;
        for (end, next) in self.row_ends() {
            let number = first + rows.count;
            rows.count += 1;
            if number > after {
                let row = start..end;
                poller.advance(1 + row.len() / 64)?;
                // A line end is not within a character, and a separator is UTF-8 too.
                let content = match text {
                    Some(text) => text.get(row.clone()),
                    None => from_utf8(&self.block[row.clone()]).ok(),
                };
                self.add(number, row, next, content, &mut rows)?;
            }
            start = next;
        }
        Ok(rows)
    }

    /// Where each row ends, and where the next one starts.
    fn row_ends(&self) -> Box<dyn Iterator<Item = (usize, usize)> + '_> {
        let (block, length) = (self.block, self.block.len());
        match self.kind {
            RowKind::Separated(separator) => {
                let ends = memmem::find_iter(block, separator);
                let ends = ends.map(move |end| (end, end + separator.len()));
                Box::new(with_last(ends, length))
            }
            _ => Box::new(with_last(
                memchr_iter(b'\n', block).map(|end| (end, end + 1)),
                length,
            )),
        }
    }

    /// Adds a row. `content` is its text without the end; None if it is not UTF-8.
    fn add(
        &self,
        number: i64,
        row: Range<usize>,
        next: usize,
        content: Option<&str>,
        rows: &mut Rows,
    ) -> Result<()> {
        let bytes = &self.block[row.clone()];
        let decided = match self.kind {
            RowKind::Json(_) if bytes.iter().all(is_white) => return Ok(()),
            RowKind::Json(field) => match content {
                Some(line) => text_of_field(line, field, &mut rows.data)?,
                None => false,
            },
            _ => {
                // Only a line feed has a carriage return before it.
                let is_line = matches!(self.kind, RowKind::Line) && next > row.end;
                let strip = |text| match is_line {
                    true => str::strip_suffix(text, '\r').unwrap_or(text),
                    false => text,
                };
                match content.map(strip) {
                    Some("") => return Ok(()),
                    Some(text) => {
                        append(&mut rows.data, text.as_bytes())?;
                        true
                    }
                    None => false,
                }
            }
        };
        if decided {
            let end = rows.data.len() as i64;
            push(&mut rows.ends, end)?;
            return push(&mut rows.numbers, number);
        }
        let range = self.start + row.start..self.start + next;
        let before = rows.ends.len();
        push(
            &mut rows.undecided,
            Undecided {
                number,
                range,
                before,
            },
        )
    }
}

/// Adds the row after the last end, unless it is empty.
fn with_last(
    ends: impl Iterator<Item = (usize, usize)>,
    length: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let mut ends = ends.fuse();
    let mut last = 0;
    std::iter::from_fn(move || match ends.next() {
        Some(end) => {
            last = end.1;
            Some(end)
        }
        None if last < length => {
            last = length;
            Some((length, length))
        }
        None => None,
    })
}

/// White space for `bytes.isspace` of Python.
fn is_white(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(block: &[u8], kind: RowKind<'_>, after: i64, threads: usize) -> Rows {
        let pool = BufferPool::default();
        pool.put(vec![1; 10]);
        read_rows(block, kind, 1, after, threads, &pool, &Interrupt::never()).unwrap()
    }

    proptest! {
        #[test]
        fn the_number_of_threads_does_not_show(
            lines in prop::collection::vec(0..5usize, 1..4000), long in 0..3usize
        ) {
            let contents = ["", "some text", "caf\u{e9} \u{65e5}\r", "{\"text\": \"a\\n\u{e9}\"}", "{\"text\": 0}"];
            let mut block = Vec::new();
            for line in lines {
                block.extend_from_slice(contents[line].as_bytes());
                block.extend(std::iter::repeat_n(b' ', long * 400));
                block.push(b'\n');
            }
            block.extend_from_slice(b"\xff");
            for kind in [RowKind::Line, RowKind::Json("text")] {
                let whole = read(&block, kind, 0, 1);
                for threads in [2, 7] {
                    prop_assert_eq!(&read(&block, kind, 0, threads), &whole);
                }
            }
        }
    }
}

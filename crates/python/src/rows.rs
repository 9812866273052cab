//! Rows of texts in one buffer: checked once, in parallel, then encoded without a Python string a row.

use bpe_tokenizer_core::error::utf8;
use bpe_tokenizer_core::reserve::push;
use bpe_tokenizer_core::text::{from_utf8, Text};
use bpe_tokenizer_core::threads::ordered::in_order;
use bpe_tokenizer_core::threads::thread_count;
use bpe_tokenizer_core::{Error, Interrupt, Result};
use std::ops::Range;

/// A thread checks this many parts of the rows, or more: their sizes differ.
const PARTS_PER_THREAD: usize = 16;
/// The bytes of a part, on average, if there are many.
const PART_BYTES: usize = 64 << 10;

/// The rows `data[offsets[i]..offsets[i + 1]]`, each of which is UTF-8.
pub struct CheckedRows<'a> {
    offsets: &'a [i64],
    /// Rows in sequence, with their text.
    parts: Vec<(Range<usize>, &'a str)>,
}

impl<'a> CheckedRows<'a> {
    /// Checks all rows, in parallel. `offsets` has the start of each row, and the end of the last. An error names the row and
    /// the byte.
    pub fn check(
        data: &'a [u8],
        offsets: &'a [i64],
        threads: usize,
        interrupt: &Interrupt<'_>,
    ) -> Result<Self> {
        let rows = row_count(offsets)?;
        let bytes = offsets[rows].saturating_sub(offsets[0]);
        let bytes = usize::try_from(bytes).unwrap_or(0).min(data.len());
        let threads = thread_count(threads, bytes);
        let mut checked = Vec::new();
        let work = |_, rows: Range<usize>, found: &mut Vec<(Range<usize>, &'a str)>| {
            let text = checked_text(data, offsets, rows.clone())?;
            push(found, (rows, text))
        };
        let take = |found: &mut Vec<_>| {
            found
                .drain(..)
                .try_for_each(|part| push(&mut checked, part))
        };
        in_order(parts(rows, bytes, threads), threads, interrupt, work, take)?;
        let parts = checked;
        Ok(Self { offsets, parts })
    }

    pub fn texts(&self) -> impl Iterator<Item = Text<'a>> + Clone + Send + use<'_, 'a> {
        let offsets = self.offsets;
        self.parts.iter().flat_map(move |(rows, text)| {
            let start = offsets[rows.start];
            rows.clone().map(move |row| {
                let [start, end] =
                    [offsets[row], offsets[row + 1]].map(|end| (end - start) as usize);
                Text::Str(text.get(start..end).unwrap_or_default())
            })
        })
    }
}

/// The text of rows in sequence, if each row is a text.
fn checked_text<'a>(data: &'a [u8], offsets: &[i64], rows: Range<usize>) -> Result<&'a str> {
    for row in rows.clone() {
        range(offsets, row, data.len())?;
    }
    let start = offsets[rows.start] as usize;
    let text = from_utf8(&data[start..offsets[rows.end] as usize]).unwrap_or_default();
    let is_text = |&end: &i64| text.is_char_boundary(end as usize - start);
    if offsets[rows.start..=rows.end].iter().all(is_text) {
        return Ok(text);
    }
    for row in rows {
        utf8(&data[range(offsets, row, data.len())?], 0, || {
            format!("row {row}")
        })?;
    }
    Ok(text)
}

/// The number of rows with these offsets.
pub fn row_count(offsets: &[i64]) -> Result<usize> {
    offsets.len().checked_sub(1).ok_or_else(|| {
        let message = "offsets are empty; they hold the start of each row and the end of the last";
        Error::Option(message.to_owned())
    })
}

/// The rows `values[offsets[i]..offsets[i + 1]]`.
pub fn rows<'a, T>(
    values: &'a [T],
    offsets: &'a [i64],
) -> Result<impl Iterator<Item = Result<&'a [T]>>> {
    let rows = 0..row_count(offsets)?;
    Ok(rows.map(|row| Ok(&values[range(offsets, row, values.len())?])))
}

/// Where a row is in an array of a length.
pub fn range(offsets: &[i64], row: usize, length: usize) -> Result<Range<usize>> {
    let [start, end] = [offsets[row], offsets[row + 1]];
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let range = range.filter(|&(start, end)| start <= end && end <= length);
    range.map(|(start, end)| start..end).ok_or_else(|| {
        Error::Option(format!(
            "row {row} has the offsets {start} and {end}; offsets must ascend from 0 to the length of the data, {length}"
        ))
    })
}

/// The error of a row, with its number.
pub fn in_row(row: usize, error: Error) -> Error {
    match error {
        Error::UnknownId { id, position } => Error::UnknownRowId { row, id, position },
        error => error,
    }
}

/// Ranges of rows for the jobs of several threads, of rows with so many bytes in total.
pub fn parts(
    rows: usize,
    bytes: usize,
    threads: usize,
) -> impl Iterator<Item = Range<usize>> + Send {
    let parts = (bytes / PART_BYTES).max(PARTS_PER_THREAD * threads);
    let size = rows.div_ceil(parts).max(1);
    (0..rows)
        .step_by(size)
        .map(move |start| start..rows.min(start + size))
}

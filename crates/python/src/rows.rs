//! Rows of texts in the memory of other libraries: checked once, then encoded without a Python string a row.
//!
//! `unsafe`: texts are read as `str` without another check. [`CheckedTexts`] is only made by a check of all rows, and
//! borrows them, so they stay as they are: every reader of such memory relies on that.

#![allow(unsafe_code)]

use bpe_tokenizer_core::error::utf8;
use bpe_tokenizer_core::interrupt::Poller;
use bpe_tokenizer_core::text::Text;
use bpe_tokenizer_core::threads::ordered::in_order;
use bpe_tokenizer_core::threads::thread_count;
use bpe_tokenizer_core::{Error, Interrupt, Result};
use std::ops::Range;

/// A thread checks this many parts of the rows, or more: their sizes differ.
const PARTS_PER_THREAD: usize = 16;
/// The bytes of a part, on average, if there are many.
const PART_BYTES: usize = 64 << 10;

/// Rows of bytes.
pub trait Rows: Sync {
    /// The number of rows.
    fn len(&self) -> usize;

    /// About how many bytes the rows have. Decides only how many threads check them.
    fn estimated_bytes(&self) -> usize;

    /// The bytes of a row; None for a null. Fails if the memory breaks the rules of its format.
    fn row(&self, row: usize) -> Result<Option<&[u8]>>;

    /// The number of a row in messages.
    fn number(&self, row: usize) -> usize {
        row
    }
}

/// Rows that were checked: each is null or UTF-8.
pub struct CheckedTexts<'a, R> {
    rows: &'a R,
    /// The bytes of all rows.
    pub bytes: usize,
    /// The number of nulls.
    pub nulls: usize,
}

/// What a check of some rows found.
#[derive(Default)]
struct Found {
    bytes: usize,
    nulls: usize,
}

impl<'a, R: Rows> CheckedTexts<'a, R> {
    /// Checks all rows, in parallel. The error names the row, counted from `first`, and the byte.
    pub fn check(
        rows: &'a R,
        first: usize,
        threads: usize,
        interrupt: &Interrupt<'_>,
    ) -> Result<Self> {
        let threads = thread_count(threads, rows.estimated_bytes());
        let mut checked = Self {
            rows,
            bytes: 0,
            nulls: 0,
        };
        let work = |_, part: Range<usize>, found: &mut Found| {
            let mut poller = Poller::new(interrupt);
            for row in part {
                let number = || first + rows.number(row);
                match rows.row(row).map_err(|error| in_row(number(), error))? {
                    None => found.nulls += 1,
                    Some(bytes) => {
                        utf8(bytes, 0, || format!("row {}", number()))?;
                        found.bytes += bytes.len();
                        poller.advance(bytes.len())?;
                    }
                }
                poller.advance(1)?;
            }
            Ok(())
        };
        let take = |found: &mut Found| {
            checked.bytes += found.bytes;
            checked.nulls += found.nulls;
            *found = Found::default();
            Ok(())
        };
        let parts = parts(rows.len(), rows.estimated_bytes(), threads);
        in_order(parts, threads, interrupt, work, take)?;
        Ok(checked)
    }

    /// The text of a row; None for a null.
    pub fn text(&self, row: usize) -> Option<&'a str> {
        let bytes = self.rows.row(row).ok().flatten()?;
        // SAFETY: as the module's comment says.
        Some(unsafe { std::str::from_utf8_unchecked(bytes) })
    }

    /// The texts of the rows that are not null.
    pub fn texts(&self) -> impl Iterator<Item = Text<'a>> + Clone + Send + use<'_, 'a, R> {
        (0..self.rows.len()).filter_map(|row| self.text(row).map(Text::Str))
    }
}

/// The error of a row, with its number.
pub fn in_row(row: usize, error: Error) -> Error {
    match error {
        Error::Column(problem) => Error::Column(format!("row {row}: {problem}")),
        Error::UnknownId { id, position } => Error::UnknownRowId {
            row,
            id: id.to_string(),
            position,
        },
        Error::UnknownRowId { id, position, .. } => Error::UnknownRowId { row, id, position },
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

/// The rows `data[offsets[i]..offsets[i + 1]]`.
pub struct OffsetRows<'a> {
    data: &'a [u8],
    offsets: &'a [i64],
}

impl<'a> OffsetRows<'a> {
    /// The rows of a buffer. `offsets` has the start of each row, and the end of the last.
    pub fn new(data: &'a [u8], offsets: &'a [i64]) -> Result<Self> {
        if offsets.is_empty() {
            let message =
                "offsets are empty; they hold the start of each row and the end of the last";
            return Err(Error::Option(message.to_owned()));
        }
        Ok(Self { data, offsets })
    }
}

impl Rows for OffsetRows<'_> {
    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn estimated_bytes(&self) -> usize {
        self.data.len()
    }

    fn row(&self, row: usize) -> Result<Option<&[u8]>> {
        let [start, end] = [self.offsets[row], self.offsets[row + 1]];
        let ends = [start, end].map(|end| usize::try_from(end).unwrap_or(usize::MAX));
        let bytes = self.data.get(ends[0]..ends[1]).ok_or_else(|| {
            Error::Option(format!(
                "row {row} has the offsets {start} and {end}; offsets must ascend from 0 to the {} bytes of the data",
                self.data.len()
            ))
        })?;
        Ok(Some(bytes))
    }
}

//! Rows of ids to texts, on many threads.

use crate::rows::{in_row, parts, range, row_count};
use bpe_tokenizer_core::decoder::{DecodeOptions, Decoder};
use bpe_tokenizer_core::interrupt::Poller;
use bpe_tokenizer_core::memory::make_room;
use bpe_tokenizer_core::reserve::{append, push, reserve};
use bpe_tokenizer_core::threads::ordered::in_order;
use bpe_tokenizer_core::threads::thread_count;
use bpe_tokenizer_core::{Interrupt, Result};
use std::ops::Range;

/// About the bytes of an id's text, for a first allocation.
const BYTES_PER_ID: usize = 5;

/// What happens to bytes that are not UTF-8.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    Replace,
    Ignore,
    Keep,
}

/// How rows are decoded.
pub struct RowOptions {
    pub decode: DecodeOptions,
    pub invalid: Invalid,
    pub threads: usize,
    /// The number of the first row in messages.
    pub first_row: usize,
}

/// The texts of some rows.
#[derive(Default)]
struct Decoded {
    text: Vec<u8>,
    /// The end of each row.
    ends: Vec<i64>,
    /// Memory for the bytes of the row in hand.
    bytes: Vec<u8>,
}

/// The bytes of the rows `ids[offsets[i]..offsets[i + 1]]`, and the offsets of the rows and of the end.
pub fn decode_rows(
    decoder: &Decoder,
    ids: &[u32],
    offsets: &[i64],
    options: &RowOptions,
    interrupt: &Interrupt<'_>,
) -> Result<(Vec<u8>, Vec<i64>)> {
    let rows = row_count(offsets)?;
    let bytes = BYTES_PER_ID.saturating_mul(ids.len());
    let threads = thread_count(options.threads, bytes);
    let work = |_, rows: Range<usize>, decoded: &mut Decoded| {
        let mut poller = Poller::new(interrupt);
        let Decoded {
            text,
            ends,
            bytes: row_bytes,
        } = decoded;
        if threads == 1 && text.capacity() == 0 {
            make_room(text, bytes);
        }
        for row in rows {
            let ids = &ids[range(offsets, row, ids.len())?];
            let keeps = options.invalid == Invalid::Keep;
            let bytes = if keeps { &mut *text } else { &mut *row_bytes };
            let done = decoder.decode(ids, options.decode, bytes, interrupt);
            done.map_err(|error| in_row(options.first_row + row, error))?;
            if !keeps {
                append_text(text, row_bytes, options.invalid)?;
                row_bytes.clear();
            }
            push(ends, text.len() as i64)?;
            poller.advance(1 + ids.len())?;
        }
        Ok(())
    };
    let (mut text, mut ends) = (Vec::new(), Vec::new());
    if threads > 1 {
        make_room(&mut text, bytes); // untouched pages cost nothing
    }
    reserve(&mut ends, rows + 1)?;
    ends.push(0);
    let take = |decoded: &mut Decoded| {
        let start = text.len() as i64;
        if threads == 1 {
            text = std::mem::take(&mut decoded.text);
        } else {
            append(&mut text, &decoded.text)?;
        }
        reserve(&mut ends, decoded.ends.len())?;
        ends.extend(decoded.ends.iter().map(|end| start + end));
        decoded.text.clear();
        decoded.ends.clear();
        Ok(())
    };
    let jobs = parts(rows, bytes, threads);
    in_order(jobs, threads, interrupt, work, take)?;
    Ok((text, ends))
}

/// Appends the bytes of a row.
fn append_text(text: &mut Vec<u8>, bytes: &[u8], invalid: Invalid) -> Result<()> {
    for chunk in bytes.utf8_chunks() {
        append(text, chunk.valid().as_bytes())?;
        if invalid == Invalid::Replace && !chunk.invalid().is_empty() {
            append(text, "\u{fffd}".as_bytes())?;
        }
    }
    Ok(())
}

//! A column of lists of ids to a column of strings.

use super::columns::IdLists;
use super::encode::{groups, validity, Part};
use super::interface::{Buffer, Kind, Written};
use crate::rows::{in_row, parts};
use bpe_tokenizer_core::decoder::{DecodeOptions, Decoder};
use bpe_tokenizer_core::interrupt::Poller;
use bpe_tokenizer_core::memory::make_room;
use bpe_tokenizer_core::reserve::{append, collect, copied, push, reserve};
use bpe_tokenizer_core::threads::ordered::in_order;
use bpe_tokenizer_core::threads::{lock, thread_count};
use bpe_tokenizer_core::{Error, Interrupt, Result};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// About the bytes of an id's text, for a first allocation.
const BYTES_PER_ID: usize = 5;

/// What happens to bytes that are not UTF-8.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Handler {
    Replace,
    Ignore,
    Strict,
}

/// How a column is decoded.
pub struct ColumnOptions {
    pub skip_special_tokens: bool,
    pub handler: Handler,
    pub threads: usize,
    /// The most bytes of an array of `string`.
    pub max_bytes: usize,
    /// Whether a larger part becomes several arrays of `string`; if not, one of `large_string`.
    pub splits: bool,
}

/// Bytes of a row that are not UTF-8.
pub struct BadRow {
    pub row: usize,
    pub bytes: Vec<u8>,
}

/// The texts of some rows.
#[derive(Default)]
struct Decoded {
    text: Vec<u8>,
    /// The end of each row.
    ends: Vec<i64>,
    valid: Vec<bool>,
    /// Memory for the ids and the bytes of the row in hand.
    ids: Vec<u32>,
    bytes: Vec<u8>,
}

/// The texts of a part of a column; or the first row that is not UTF-8, if that is an error.
pub fn decode(
    decoder: &Decoder,
    part: &Part<'_>,
    options: &ColumnOptions,
    interrupt: &Interrupt<'_>,
) -> Result<std::result::Result<Vec<Written>, BadRow>> {
    let (lists, first) = (IdLists::new(part.array, part.given)?, part.first);
    let bytes = BYTES_PER_ID.saturating_mul(lists.estimated_ids());
    let threads = thread_count(options.threads, bytes);
    let decode_options = DecodeOptions {
        skip_special_tokens: options.skip_special_tokens,
        replace_invalid: options.handler == Handler::Replace,
    };
    let bad: Mutex<Option<BadRow>> = Mutex::new(None);
    let work = |_, rows: Range<usize>, decoded: &mut Decoded| {
        let mut poller = Poller::new(interrupt);
        if threads == 1 && decoded.text.capacity() == 0 {
            make_room(&mut decoded.text, bytes);
        }
        for row in rows {
            let Decoded {
                text,
                ends,
                valid,
                ids,
                bytes,
            } = &mut *decoded;
            ids.clear();
            bytes.clear();
            let is_valid = lists
                .append(row, ids)
                .map_err(|error| in_row(first + row, error))?;
            if is_valid {
                let done = decoder.decode(ids, decode_options, bytes, interrupt);
                done.map_err(|error| in_row(first + row, error))?;
                if append_text(text, bytes, options.handler)?.is_err() {
                    let mut bad = lock(&bad);
                    if bad.as_ref().is_none_or(|bad| first + row < bad.row) {
                        let bytes = copied(bytes)?;
                        *bad = Some(BadRow {
                            row: first + row,
                            bytes,
                        });
                    }
                    return Err(Error::Column("not UTF-8".to_owned()));
                }
            }
            poller.advance(1 + ids.len())?;
            push(ends, text.len() as i64)?;
            push(valid, is_valid)?;
        }
        Ok(())
    };
    let (mut text, mut offsets, mut valid) = (Vec::new(), vec![0], Vec::new());
    if threads > 1 {
        make_room(&mut text, bytes); // untouched pages cost nothing
    }
    reserve(&mut offsets, lists.len())?;
    let take = |decoded: &mut Decoded| {
        let start = text.len() as i64;
        if threads == 1 {
            text = std::mem::take(&mut decoded.text);
        } else {
            append(&mut text, &decoded.text)?;
        }
        reserve(&mut offsets, decoded.ends.len())?;
        offsets.extend(decoded.ends.iter().map(|end| start + end));
        append(&mut valid, &decoded.valid)?;
        decoded.text.clear();
        decoded.ends.clear();
        decoded.valid.clear();
        Ok(())
    };
    let done = in_order(
        parts(lists.len(), bytes, threads),
        threads,
        interrupt,
        work,
        take,
    );
    if let Some(bad) = lock(&bad).take() {
        return Ok(Err(bad));
    }
    done?;
    text.shrink_to_fit();
    written(text, offsets, &valid, first, options).map(Ok)
}

/// Appends bytes as UTF-8. Fails if they are not, and the handler is strict.
fn append_text(
    text: &mut Vec<u8>,
    bytes: &[u8],
    handler: Handler,
) -> Result<std::result::Result<(), ()>> {
    for chunk in bytes.utf8_chunks() {
        append(text, chunk.valid().as_bytes())?;
        match handler {
            _ if chunk.invalid().is_empty() => {}
            Handler::Replace => append(text, "\u{fffd}".as_bytes())?,
            Handler::Ignore => {}
            Handler::Strict => return Ok(Err(())),
        }
    }
    Ok(Ok(()))
}

/// The texts as arrays, which share their memory.
fn written(
    text: Vec<u8>,
    offsets: Vec<i64>,
    valid: &[bool],
    first: usize,
    options: &ColumnOptions,
) -> Result<Vec<Written>> {
    let (fits, text) = (text.len() <= options.max_bytes, Arc::new(text));
    if !fits && !options.splits {
        let (validity, nulls) = validity(Some(valid))?;
        return Ok(vec![Written {
            kind: Kind::LargeStrings,
            length: valid.len(),
            offset: 0,
            nulls,
            buffers: vec![
                validity,
                Buffer::Int64(Arc::new(offsets)),
                Buffer::Bytes(text),
            ],
            child: None,
        }]);
    }
    let mut arrays = Vec::new();
    for rows in groups(&offsets, options.max_bytes) {
        let (start, end) = (offsets[rows.start] as usize, offsets[rows.end] as usize);
        if end - start > options.max_bytes {
            return Err(Error::Column(format!(
                "row {} has {} bytes, more than the {} that a string of Arrow holds",
                first + rows.start,
                end - start,
                options.max_bytes
            )));
        }
        let relative = offsets[rows.start..=rows.end].iter();
        let relative = relative.map(|&end| i32::try_from(end - start as i64).unwrap_or(i32::MAX));
        let (validity, nulls) = validity(Some(&valid[rows.clone()]))?;
        let text = match fits {
            true => Arc::clone(&text),
            false => Arc::new(copied(&text[start..end])?),
        };
        arrays.push(Written {
            kind: Kind::Strings,
            length: rows.len(),
            offset: 0,
            nulls,
            buffers: vec![
                validity,
                Buffer::Int32(Arc::new(collect(relative)?)),
                Buffer::Bytes(text),
            ],
            child: None,
        });
    }
    Ok(arrays)
}

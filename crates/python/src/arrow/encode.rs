//! A column of texts to a column of lists of ids.

use super::columns::{DictionaryTexts, Texts};
use super::interface::{Array, Buffer, Kind, Type, Written};
use crate::rows::{in_row, CheckedTexts, Rows};
use bpe_tokenizer_core::encoder::{BatchOptions, Encoder, Ragged};
use bpe_tokenizer_core::interrupt::Poller;
use bpe_tokenizer_core::reserve::{append, collect, filled, push, with_capacity};
use bpe_tokenizer_core::{Error, Interrupt, Result};
use std::sync::Arc;

/// An array of texts, which is a part of a column, as an encoder sees it.
pub struct Part<'a> {
    pub array: &'a Array,
    pub given: &'a Type,
    /// The rows of the column before this part.
    pub first: usize,
}

/// The ids of a part of a column: arrays of at most `max_ids` ids each.
pub fn encode(
    encoder: &Encoder,
    part: &Part<'_>,
    options: &BatchOptions,
    max_ids: usize,
    interrupt: &Interrupt<'_>,
) -> Result<Vec<Written>> {
    let first = part.first;
    let rows = match Texts::new(part.array, part.given)? {
        Texts::Plain(rows) => {
            let encoded = EncodedRows::of(encoder, &rows, first, options, interrupt)?;
            return encoded.split(first, max_ids);
        }
        Texts::Dictionary(rows) => rows,
    };
    let used = UsedTexts::find(&rows, first)?;
    if used.len() > rows.len() / 2 {
        // Most texts occur once, so their ids would be copied for nothing.
        drop(used);
        let encoded = EncodedRows::of(encoder, &rows, first, options, interrupt)?;
        return encoded.split(first, max_ids);
    }
    let distinct = EncodedRows::of(encoder, &used, first, options, interrupt)?;
    let mut poller = Poller::new(interrupt);
    let mut encoded = EncodedRows {
        ids: Vec::new(),
        offsets: with_capacity(rows.len() + 1)?,
        valid: Some(with_capacity(rows.len())?),
    };
    encoded.offsets.push(0);
    for row in 0..rows.len() {
        let text = rows.index(row)?.map(|index| used.position[index] as usize);
        let ids = text.and_then(|text| distinct.row(text));
        append(&mut encoded.ids, ids.unwrap_or_default())?;
        encoded.offsets.push(encoded.ids.len() as i64);
        encoded
            .valid
            .iter_mut()
            .for_each(|valid| valid.push(ids.is_some()));
        poller.advance(1 + ids.map_or(0, <[u32]>::len))?;
    }
    encoded.split(first, max_ids)
}

/// The ids of rows.
struct EncodedRows {
    ids: Vec<u32>,
    /// The start of each row, and the end of the last.
    offsets: Vec<i64>,
    /// Whether each row is valid; None if all are.
    valid: Option<Vec<bool>>,
}

impl EncodedRows {
    fn of(
        encoder: &Encoder,
        rows: &impl Rows,
        first: usize,
        options: &BatchOptions,
        interrupt: &Interrupt<'_>,
    ) -> Result<Self> {
        let texts = CheckedTexts::check(rows, first, options.threads, interrupt)?;
        let Ragged { ids, offsets } = encoder.encode_all(texts.texts(), options, interrupt)?;
        if texts.nulls == 0 {
            return Ok(Self {
                ids,
                offsets,
                valid: None,
            });
        }
        let valid = collect((0..rows.len()).map(|row| texts.text(row).is_some()))?;
        Ok(Self {
            ids,
            offsets: with_nulls(&offsets, &valid)?,
            valid: Some(valid),
        })
    }

    /// The ids of a row; None for a null.
    fn row(&self, row: usize) -> Option<&[u32]> {
        let is_valid = self.valid.as_ref().is_none_or(|valid| valid[row]);
        let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        is_valid.then(|| &self.ids[range])
    }
}

/// The texts of a dictionary that a column uses, in the order of their first rows.
struct UsedTexts<'a, 'b> {
    texts: &'b DictionaryTexts<'a>,
    /// For each text of the dictionary its position among the used ones; `u32::MAX` for the others.
    position: Vec<u32>,
    /// For each used text, its position in the dictionary and its first row.
    used: Vec<(usize, usize)>,
}

impl<'a, 'b> UsedTexts<'a, 'b> {
    fn find(texts: &'b DictionaryTexts<'a>, first: usize) -> Result<Self> {
        let mut position = filled(u32::MAX, texts.values.len())?;
        let mut used = Vec::new();
        for row in 0..texts.len() {
            let index = texts
                .index(row)
                .map_err(|error| in_row(first + row, error))?;
            let Some(index) = index.filter(|&index| position[index] == u32::MAX) else {
                continue;
            };
            position[index] = u32::try_from(used.len()).map_err(|_| {
                Error::Column("a dictionary has more than 4,294,967,295 texts".to_owned())
            })?;
            push(&mut used, (index, row))?;
        }
        Ok(Self {
            texts,
            position,
            used,
        })
    }
}

impl Rows for UsedTexts<'_, '_> {
    fn len(&self) -> usize {
        self.used.len()
    }

    fn estimated_bytes(&self) -> usize {
        self.texts.values.estimated_bytes()
    }

    fn row(&self, row: usize) -> Result<Option<&[u8]>> {
        self.texts.values.row(self.used[row].0)
    }

    fn number(&self, row: usize) -> usize {
        self.used[row].1
    }
}

/// The offsets of all rows, from those of the rows that are not null.
fn with_nulls(offsets: &[i64], valid: &[bool]) -> Result<Vec<i64>> {
    let mut all = with_capacity(valid.len() + 1)?;
    let mut ends = offsets.iter().copied();
    let mut end = ends.next().unwrap_or(0);
    all.push(end);
    for &valid in valid {
        if valid {
            end = ends.next().unwrap_or(end);
        }
        all.push(end);
    }
    Ok(all)
}

impl EncodedRows {
    /// The lists as arrays of at most `max_ids` ids, which share their memory.
    fn split(self, first: usize, max_ids: usize) -> Result<Vec<Written>> {
        let (ids, offsets) = (Buffer::Uint32(Arc::new(self.ids)), self.offsets);
        let mut arrays = Vec::new();
        for rows in groups(&offsets, max_ids) {
            let (start, end) = (offsets[rows.start], offsets[rows.end]);
            if end - start > max_ids as i64 {
                return Err(Error::Column(format!(
                    "row {} has {} ids, more than the {max_ids} that a list of Arrow holds",
                    first + rows.start,
                    end - start
                )));
            }
            let relative = offsets[rows.start..=rows.end].iter();
            let relative = relative.map(|&end| i32::try_from(end - start).unwrap_or(i32::MAX));
            let valid = self.valid.as_ref().map(|valid| &valid[rows.clone()]);
            let (validity, nulls) = validity(valid)?;
            arrays.push(Written {
                kind: Kind::Lists,
                length: rows.len(),
                offset: 0,
                nulls,
                buffers: vec![validity, Buffer::Int32(Arc::new(collect(relative)?))],
                child: Some(Box::new(Written {
                    kind: Kind::Ids,
                    length: (end - start) as usize,
                    offset: start as usize,
                    nulls: 0,
                    buffers: vec![Buffer::Absent, ids.clone()],
                    child: None,
                })),
            });
        }
        Ok(arrays)
    }
}

/// Ranges of rows with at most `most` items each, or one row. At least one range.
pub fn groups(offsets: &[i64], most: usize) -> Vec<std::ops::Range<usize>> {
    let (rows, mut start, mut ranges) = (offsets.len() - 1, 0, Vec::new());
    loop {
        let limit = offsets[start].saturating_add_unsigned(most as u64);
        let fitting = offsets[start + 1..].partition_point(|&end| end <= limit);
        let end = rows.min(start + fitting.max(1));
        ranges.push(start..end);
        start = end;
        if start == rows {
            return ranges;
        }
    }
}

/// The validity buffer of rows, and the number of nulls.
pub fn validity(valid: Option<&[bool]>) -> Result<(Buffer, usize)> {
    let nulls = valid.map_or(0, |valid| valid.iter().filter(|&&valid| !valid).count());
    let Some(valid) = valid.filter(|_| nulls > 0) else {
        return Ok((Buffer::Absent, 0));
    };
    let bytes = valid.chunks(8).map(|rows| {
        let bits = rows.iter().zip(0..);
        bits.fold(0, |byte, (&valid, bit)| byte | u8::from(valid) << bit)
    });
    Ok((Buffer::Bytes(Arc::new(collect(bytes)?)), nulls))
}

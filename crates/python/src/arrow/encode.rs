//! A column of texts to a column of lists of ids.

use super::columns::{DictionaryTexts, Texts};
use super::interface::{Array, Buffer, Kind, Type, Written};
use crate::rows::{CheckedTexts, Rows};
use bpe_tokenizer_core::encoder::{BatchOptions, Encoder, Ragged};
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
    match Texts::new(part.array, part.given)? {
        Texts::Plain(rows) => {
            let texts = CheckedTexts::check(&rows, first, options.threads, interrupt)?;
            let Ragged { ids, offsets } = encoder.encode_all(texts.texts(), options, interrupt)?;
            if texts.nulls == 0 {
                return split(ids, offsets, None, first, max_ids);
            }
            let valid = collect((0..rows.len()).map(|row| texts.text(row).is_some()))?;
            let offsets = with_nulls(&offsets, &valid)?;
            split(ids, offsets, Some(valid), first, max_ids)
        }
        Texts::Dictionary(rows) => {
            let used = UsedTexts::find(&rows, first)?;
            let texts = CheckedTexts::check(&used, first, options.threads, interrupt)?;
            let Ragged { ids, offsets } = encoder.encode_all(texts.texts(), options, interrupt)?;
            let valid = collect((0..used.len()).map(|text| texts.text(text).is_some()))?;
            let offsets = with_nulls(&offsets, &valid)?;
            let mut all = Ragged {
                ids: Vec::new(),
                offsets: with_capacity(rows.len() + 1)?,
            };
            all.offsets.push(0);
            let mut is_valid = with_capacity(rows.len())?;
            for row in 0..rows.len() {
                let text = rows.index(row)?.map(|index| used.position[index] as usize);
                let text = text.filter(|&text| valid[text]);
                if let Some(text) = text {
                    let row_ids = offsets[text] as usize..offsets[text + 1] as usize;
                    append(&mut all.ids, &ids[row_ids])?;
                }
                all.offsets.push(all.ids.len() as i64);
                is_valid.push(text.is_some());
                if row % ROWS_PER_POLL == ROWS_PER_POLL - 1 {
                    interrupt.poll()?;
                }
            }
            let valid = is_valid.contains(&false).then_some(is_valid);
            split(all.ids, all.offsets, valid, first, max_ids)
        }
    }
}

/// Rows between two polls for interrupts.
const ROWS_PER_POLL: usize = 1 << 18;

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
            let index = texts.index(row).map_err(|error| match error {
                Error::Column(problem) => Error::Column(format!("row {}: {problem}", first + row)),
                error => error,
            })?;
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

/// The lists as arrays of at most `max_ids` ids, which share their memory.
fn split(
    ids: Vec<u32>,
    offsets: Vec<i64>,
    valid: Option<Vec<bool>>,
    first: usize,
    max_ids: usize,
) -> Result<Vec<Written>> {
    let ids = Buffer::Uint32(Arc::new(ids));
    let mut arrays = Vec::new();
    for rows in groups(&offsets, max_ids) {
        let (start, end) = (offsets[rows.start], offsets[rows.end]);
        let too_many = || {
            Error::Column(format!(
                "row {} has {} ids, more than the {max_ids} that a list of Arrow holds",
                first + rows.start,
                end - start
            ))
        };
        if end - start > max_ids as i64 {
            return Err(too_many());
        }
        let relative = offsets[rows.start..=rows.end].iter();
        let relative = relative.map(|&end| i32::try_from(end - start).unwrap_or(i32::MAX));
        let (validity, nulls) = validity(valid.as_ref().map(|valid| &valid[rows.clone()]))?;
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

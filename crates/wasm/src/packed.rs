//! Packed models: every setting, token and merge of a tokenizer in one block of bytes.
//! `python/bpe_tokenizer/view/packed.py` writes them.
//!
//! All numbers but those of the settings are LEB128: seven bits a byte, the lowest first.
//!
//! | part | content |
//! |---|---|
//! | signature | `\x89BPE`, the version 2 |
//! | settings | size, JSON: the settings, and the special tokens by role |
//! | tokens | number; for each the difference to the previous id minus 1, in sequence; all lengths; all bytes |
//! | merges | the kind, and what it needs |
//!
//! Kinds of merges: 0, they follow from the ids, which are ranks. 1, their number, all differences of the products to the
//! previous ones (zigzag), all lengths of the left parts in bytes. Of tokens with the same bytes, the parts are those with
//! the lowest ids, as everywhere in the core.

use crate::boundary::from_json;
use bpe_tokenizer_core::model::{MergeIds, Model, Vocabulary};
use bpe_tokenizer_core::{Error, Result};
use bpe_tokenizer_formats::settings::ModelSettings;
use std::collections::BTreeMap;

/// The first bytes of a packed model.
pub const SIGNATURE: &[u8] = b"\x89BPE\x02";

/// A model and the texts of its special tokens by role.
pub type WithRoles = (Model, BTreeMap<String, String>);

/// Reads a packed model.
pub fn read(bytes: &[u8]) -> Result<WithRoles> {
    let mut reader = Reader { rest: bytes };
    if reader.take(SIGNATURE.len())? != SIGNATURE {
        return Err(broken("it does not begin with the signature of version 2"));
    }
    let size = reader.size()?;
    let settings = from_json(reader.take(size)?, "the settings of a packed model")?;
    let (settings, roles): (ModelSettings, _) = settings;
    let vocabulary = reader.vocabulary()?;
    let merges = reader.merges(&vocabulary)?;
    if !reader.rest.is_empty() {
        return Err(broken("bytes follow its end"));
    }
    let model = settings.build(|settings, added| match merges {
        None => Model::from_ranks(vocabulary, settings, added),
        Some(merges) => Model::with_merge_ids(vocabulary, merges, settings, added),
    })?;
    Ok((model, roles))
}

fn broken(problem: &str) -> Error {
    Error::Model(format!("the packed model is broken: {problem}"))
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Result<&'a [u8]> {
        let taken = self.rest.split_off(..size);
        taken.ok_or_else(|| broken("it ends too early"))
    }

    fn number(&mut self) -> Result<u32> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = u64::from(self.take(1)?[0]);
            value |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| broken("a number exceeds 32 bits"));
            }
        }
        Err(broken("a number has too many bytes"))
    }

    fn size(&mut self) -> Result<usize> {
        Ok(self.number()? as usize)
    }

    /// Numbers, each of which takes a byte or more: their count is at most that of the bytes.
    fn numbers(&mut self, count: usize) -> Result<Vec<u32>> {
        if count > self.rest.len() {
            return Err(broken("it ends too early"));
        }
        (0..count).map(|_| self.number()).collect()
    }

    fn vocabulary(&mut self) -> Result<Vocabulary> {
        let count = self.size()?;
        let (steps, lengths) = (self.numbers(count)?, self.numbers(count)?);
        let mut next = 0_u32;
        Vocabulary::from_sorted(steps.into_iter().zip(lengths).map(|(step, length)| {
            let id = next.checked_add(step);
            let id = id.filter(|&id| id < u32::MAX);
            let id = id.ok_or_else(|| broken("an id exceeds 32 bits"))?;
            next = id + 1;
            Ok((id, self.take(length as usize)?))
        }))
    }

    /// None if the merges follow from the ids.
    fn merges(&mut self, vocabulary: &Vocabulary) -> Result<Option<Vec<MergeIds>>> {
        match self.number()? {
            0 => return Ok(None),
            1 => {}
            _ => return Err(broken("its merges are of an unknown kind")),
        }
        let count = self.size()?;
        let steps = self.numbers(count)?;
        let mut product = 0_u32;
        let products = steps.into_iter().map(|step| {
            product = product.wrapping_add((step >> 1) ^ (step & 1).wrapping_neg());
            product
        });
        let lengths = self.numbers(count)?;
        let merges = products.zip(lengths).map(|(product, length)| {
            let parts = vocabulary.token(product);
            let parts = parts.and_then(|token| token.split_at_checked(length as usize));
            let ids = parts.and_then(|(left, right)| {
                Some((vocabulary.id(left)?, vocabulary.id(right)?, product))
            });
            ids.ok_or_else(|| broken("a merge has parts that are not tokens"))
        });
        merges.collect::<Result<_>>().map(Some)
    }
}

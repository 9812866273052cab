//! The ids of learned tokens.

use super::options::MergeOptions;
use super::pieces::TAIL;
use crate::error::{Error, Result};
use crate::model::Model;

/// The ids that learned tokens get, in order.
pub struct FreeIds {
    first: u32,
    vocab_size: u32,
    /// Sorted.
    reserved: Vec<u32>,
}

impl FreeIds {
    /// The ids after the bytes, or after all ids of an extended vocabulary.
    pub fn new(model: Option<&Model>, options: &MergeOptions) -> Result<Self> {
        let vocab_size = options.vocab_size;
        if vocab_size >= TAIL {
            return Err(Error::Option(format!(
                "vocab_size is {vocab_size}; the largest possible is {}",
                TAIL - 1
            )));
        }
        let first = model.map_or(256, |model| {
            let last = model.vocabulary().iter().last().map(|(id, _)| id);
            let last = last.max(model.added().last().map(|token| token.id));
            last.map_or(0, |id| id.saturating_add(1))
        });
        let mut reserved = options.reserved.clone();
        reserved.retain(|id| (first..vocab_size).contains(id));
        reserved.sort_unstable();
        reserved.dedup();
        Ok(Self {
            first,
            vocab_size,
            reserved,
        })
    }

    pub fn len(&self) -> usize {
        self.vocab_size.saturating_sub(self.first) as usize - self.reserved.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (self.first..self.vocab_size).filter(|id| self.reserved.binary_search(id).is_err())
    }
}

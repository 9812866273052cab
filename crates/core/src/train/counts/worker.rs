//! Counts sections of text on one thread.

use super::shard::VIRTUAL_BUCKETS;
use super::splitter::TextSplitter;
use super::table::PieceCounts;
use crate::alignment::OffsetMap;
use crate::cache::{has_key, KeyBatch, PIECES_PER_BATCH};
use crate::error::Result;
use crate::interrupt::{Interrupt, Poller};
use crate::pretokenize::{Block, Piece};
use std::borrow::Cow;

/// One thread's counts and buffers.
pub struct Worker<'a> {
    pub counts: PieceCounts,
    /// Bytes of the file section that is being read.
    pub buffer: Vec<u8>,
    splitter: &'a TextSplitter,
    block: Block,
    keys: KeyBatch,
    poller: Poller<'a>,
}

impl<'a> Worker<'a> {
    pub fn new(
        splitter: &'a TextSplitter,
        counts: PieceCounts,
        interrupt: &'a Interrupt<'a>,
    ) -> Self {
        Self {
            counts,
            buffer: Vec::new(),
            splitter,
            block: Block::default(),
            keys: KeyBatch::default(),
            poller: Poller::new(interrupt),
        }
    }

    /// Counts the pieces of a section.
    pub fn count(&mut self, section: &str) -> Result<()> {
        let text = match self.splitter.normalization {
            Some(form) => form.apply(section),
            None => Cow::Borrowed(section),
        };
        let text = text.as_bytes();
        let patterns = &self.splitter.patterns;
        if patterns.has_blocks() && u32::try_from(text.len()).is_ok() {
            return self.count_blocks(text);
        }
        let mut outcome = Ok(());
        // Counting uses no offsets.
        let offsets = OffsetMap::original(0);
        patterns.split(text, &offsets, false, |Piece { text, range, .. }| {
            let counted = self.counts.add(text, range, 1);
            outcome = counted.and_then(|()| self.poller.advance(1));
            outcome.is_ok()
        })?;
        outcome
    }

    fn count_blocks(&mut self, text: &[u8]) -> Result<()> {
        let mut from = 0;
        while from < text.len() {
            let patterns = &self.splitter.patterns;
            let to = patterns.next_block(text, true, from, &mut self.block)?;
            let mut bounds = self.block.bounds();
            let pieces = bounds.len();
            while bounds.len() > 1 {
                let (batch, _) = bounds.split_at(bounds.len().min(PIECES_PER_BATCH + 1));
                bounds = &bounds[batch.len() - 1..];
                self.keys.pack(text, from, batch, VIRTUAL_BUCKETS);
                count_batch(text, from, batch, &self.keys, &mut self.counts)?;
            }
            self.poller.advance(pieces)?;
            from = to;
        }
        Ok(())
    }
}

/// Counts the pieces between `bounds`, which are relative to `from`, by their packed keys.
#[inline]
fn count_batch(
    text: &[u8],
    from: usize,
    bounds: &[u32],
    keys: &KeyBatch,
    counts: &mut PieceCounts,
) -> Result<()> {
    let (keys, buckets) = keys.get(bounds.len() - 1);
    for &bucket in buckets {
        counts.prefetch(bucket);
    }
    for (piece, (&key, &bucket)) in keys.iter().zip(buckets).enumerate() {
        let [start, end] = [bounds[piece], bounds[piece + 1]].map(|bound| bound as usize);
        if has_key(end - start) {
            counts.add_short(key, bucket, 1)?;
        } else {
            counts.add_long(&text[from + start..from + end], 1)?;
        }
    }
    Ok(())
}

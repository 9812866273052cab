//! Pieces to ids: the cache, and merging what is not in it.

use super::{Encoder, Part, Segment};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::merge::cache::Cache;
use crate::merge::keys::{has_key, key, Lookup, BATCH};
use crate::merge::{emit, Crossings, Workspace};
use std::ops::Range;

/// Pieces between two looks at whether to stop.
const PATIENCE: usize = 1 << 14;

/// Encodes piece after piece of one call.
pub(super) struct Run<'a> {
    pub encoder: &'a Encoder,
    workspace: Option<&'a mut Workspace>,
    interrupt: &'a Interrupt<'a>,
    /// Pieces until the next look at whether to stop.
    patience: usize,
    failure: Option<Error>,
    /// A piece's ids, kept to be filled again.
    ids: Vec<u32>,
}

impl<'a> Run<'a> {
    pub fn new(
        encoder: &'a Encoder,
        workspace: Option<&'a mut Workspace>,
        interrupt: &'a Interrupt<'a>,
    ) -> Self {
        Self {
            encoder,
            workspace,
            interrupt,
            patience: PATIENCE,
            failure: None,
            ids: Vec::new(),
        }
    }

    /// Appends the ids of a part until there are enough; false if there are.
    pub fn part(&mut self, part: Part<'_>, enough: usize, ids: &mut Vec<u32>) -> Result<bool> {
        match part {
            Part::Added(found) => ids.push(found.id),
            Part::Text(segment) if enough == usize::MAX && self.has_blocks(&segment) => {
                self.blocks(&segment, ids)?;
            }
            Part::Text(segment) => {
                self.encoder.split(&segment, false, |text, range, _| {
                    self.piece(text, range, ids) && ids.len() < enough
                })?;
                self.outcome()?;
            }
        }
        Ok(ids.len() < enough)
    }

    /// Whether a segment can be split block by block. Where a text cannot be cut, a block may be all of it,
    /// and its bounds are 32 bits.
    fn has_blocks(&self, segment: &Segment<'_>) -> bool {
        let encoder = self.encoder;
        self.workspace.is_some()
            && encoder.joins.is_none()
            && encoder.pre_tokenizers.has_blocks()
            && u32::try_from(segment.text.len()).is_ok()
    }

    /// Appends the ids of all pieces of a segment.
    fn blocks(&mut self, segment: &Segment<'_>, ids: &mut Vec<u32>) -> Result<()> {
        let Segment { text, is_utf8, .. } = *segment;
        let encoder = self.encoder;
        let Some(Workspace {
            cache,
            block,
            lookup,
            parts,
            ..
        }) = self.workspace.as_deref_mut()
        else {
            return Ok(());
        };
        let mut run = Batches {
            encoder,
            cache,
            interrupt: self.interrupt,
        };
        let mut from = 0;
        while from < text.len() {
            let to = encoder
                .pre_tokenizers
                .next_block(text, is_utf8, from, block)?;
            let bounds = block.bounds();
            self.patience = self.patience.saturating_sub(bounds.len());
            if self.patience == 0 {
                self.interrupt.poll()?;
                self.patience = PATIENCE;
            }
            run.batches(text, from, bounds, lookup, Some(parts), ids)?;
            run.cache.make_room();
            from = to;
        }
        Ok(())
    }

    /// Appends the ids of the piece `text[range]`; false if that failed.
    #[inline(always)]
    pub fn piece(&mut self, text: &[u8], range: Range<usize>, ids: &mut Vec<u32>) -> bool {
        self.patience -= 1;
        if self.patience > 0 {
            if let Some(workspace) = &mut self.workspace {
                let key = key(text, range.start, range.len());
                if workspace.cache.get(key, ids) {
                    return true;
                }
            }
        }
        let outcome = self.piece_by_merging(text, range, ids);
        self.failure = outcome.err();
        self.failure.is_none()
    }

    #[inline(never)]
    fn piece_by_merging(
        &mut self,
        text: &[u8],
        range: Range<usize>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if self.patience == 0 {
            self.interrupt.poll()?;
            self.patience = PATIENCE;
        }
        let Some(Workspace { cache, .. }) = self.workspace.as_deref_mut() else {
            let piece = &text[range];
            return self.encoder.merge_piece(piece, ids, self.interrupt);
        };
        let mut run = Batches {
            encoder: self.encoder,
            cache,
            interrupt: self.interrupt,
        };
        run.missing(text, range, ids)?;
        cache.make_room();
        Ok(())
    }

    /// The same with the number of bytes that each token stands for; gaps are NONE.
    pub fn piece_with_widths(
        &mut self,
        text: &[u8],
        range: Range<usize>,
        tokens: &mut Vec<(u32, usize)>,
    ) -> bool {
        if self.encoder.symbols.is_total() {
            let mut ids = std::mem::take(&mut self.ids);
            ids.clear();
            let whole = self.piece(text, range, &mut ids);
            let vocabulary = self.encoder.model.vocabulary();
            let width = |id| vocabulary.token(id).map_or(0, <[u8]>::len);
            tokens.extend(ids.iter().map(|&id| (id, width(id))));
            self.ids = ids;
            return whole;
        }
        let outcome = self
            .encoder
            .merge_with_widths(&text[range], tokens, self.interrupt);
        self.failure = outcome.err();
        self.failure.is_none()
    }

    pub fn outcome(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// Encodes some pieces at a time.
struct Batches<'a> {
    encoder: &'a Encoder,
    cache: &'a mut Cache,
    interrupt: &'a Interrupt<'a>,
}

impl Batches<'_> {
    /// Appends the ids of pieces, which begin at all bounds but the last, counted from `from`. Where pieces
    /// can be cut, that is what becomes of long ones, if there is room for the `parts`.
    fn batches(
        &mut self,
        text: &[u8],
        from: usize,
        mut bounds: &[u32],
        lookup: &mut Lookup,
        mut parts: Option<&mut Vec<u32>>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        while bounds.len() > 1 {
            let (batch, _) = bounds.split_at(bounds.len().min(BATCH + 1));
            bounds = &bounds[batch.len() - 1..];
            let has_long = lookup.pack(text, from, batch, self.cache);
            let cut = self.encoder.crossings.get().and_then(Option::as_ref);
            match (cut, parts.as_deref_mut()) {
                (Some(cut), Some(parts)) if has_long => {
                    cut_long(cut, text, from, batch, parts);
                    self.batches(text, from, parts, lookup, None, ids)?;
                }
                _ => self.batch(text, from, batch, lookup, ids)?,
            }
        }
        Ok(())
    }

    /// Appends the ids of the pieces that are in the lookup.
    #[inline]
    fn batch(
        &mut self,
        text: &[u8],
        from: usize,
        bounds: &[u32],
        lookup: &Lookup,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let pieces = bounds.len() - 1;
        let (keys, sets) = lookup.get(pieces);
        let mut piece = 0;
        loop {
            let found = emit(self.cache, keys, sets, piece, ids);
            self.cache.hits += (found - piece) as u64;
            if found == pieces {
                return Ok(());
            }
            let range = from + bounds[found] as usize..from + bounds[found + 1] as usize;
            self.missing(text, range, ids)?;
            piece = found + 1;
        }
    }

    /// Appends the ids of a piece that has no key, or is not where it was expected.
    #[inline(never)]
    fn missing(&mut self, text: &[u8], range: Range<usize>, ids: &mut Vec<u32>) -> Result<()> {
        if self.find(text, &range, ids) {
            return Ok(());
        }
        let Some(crossings) = self.encoder.crossings(&text[range.clone()]) else {
            return self.merge(text, &range, ids);
        };
        let start = ids.len();
        for part in crossings.parts(text, range.clone()) {
            if part == range {
                return self.merge(text, &range, ids);
            }
            if !self.find(text, &part, ids) {
                self.merge(text, &part, ids)?;
            }
        }
        if has_key(range.len()) && self.cache.has_room(ids.len() - start) {
            let key = key(text, range.start, range.len());
            self.cache.insert(key, &ids[start..]);
        }
        Ok(())
    }

    /// Appends the ids of a piece, or of a part of one, if it was seen before.
    fn find(&mut self, text: &[u8], range: &Range<usize>, ids: &mut Vec<u32>) -> bool {
        if has_key(range.len()) {
            self.cache.get(key(text, range.start, range.len()), ids)
        } else {
            self.cache.get_long(&text[range.clone()], ids)
        }
    }

    /// Appends the ids of what is merged apart from all else, and keeps them.
    fn merge(&mut self, text: &[u8], range: &Range<usize>, ids: &mut Vec<u32>) -> Result<()> {
        let (piece, start) = (&text[range.clone()], ids.len());
        self.encoder.merge_piece(piece, ids, self.interrupt)?;
        if has_key(piece.len()) {
            let key = key(text, range.start, piece.len());
            self.cache.insert(key, &ids[start..]);
        } else {
            self.cache.insert_long(piece, &ids[start..]);
        }
        Ok(())
    }
}

/// Where the parts of pieces begin, and last where they end; short pieces are not cut.
fn cut_long(crossings: &Crossings, text: &[u8], from: usize, bounds: &[u32], parts: &mut Vec<u32>) {
    parts.clear();
    for pair in bounds.windows(2) {
        let piece = from + pair[0] as usize..from + pair[1] as usize;
        if has_key(piece.len()) || text[piece.clone()].is_ascii() {
            parts.push(pair[0]);
        } else {
            crossings.cut(text, piece, from, parts);
        }
    }
    parts.extend(bounds.last());
}

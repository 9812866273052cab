//! Piece to ids: the one entry to the merges.

use super::char_split_points::CharSplitPoints;
use super::long::{merge_long_with_offsets, merge_symbols};
use super::reachability::unreachable_tokens;
use super::symbols::Symbols;
use super::table::PairTable;
use super::trace::{trace_merges, MergeTrace};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::model::{Model, NONE};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Computing the split points costs about as much as merging this many bytes of non-ASCII pieces.
const SPLIT_POINTS_COST: usize = 1 << 15;

/// Turns pieces into ids with the merges of one model. Threads may share it.
pub struct Merger {
    model: Model,
    symbols: Symbols,
    table: PairTable,
    /// Computed when it pays. The inner `None` is a model without split points.
    split_points: OnceLock<Option<CharSplitPoints>>,
    /// The bytes of the non-ASCII pieces so far.
    non_ascii_bytes: AtomicUsize,
}

impl Merger {
    /// Builds the tables of a model.
    pub fn new(model: &Model) -> Self {
        Self {
            symbols: Symbols::new(model),
            table: PairTable::new(model.merges()),
            split_points: OnceLock::new(),
            non_ascii_bytes: AtomicUsize::new(0),
            model: model.clone(),
        }
    }

    /// Where a piece can be split without a change of its ids. None for ASCII, which splits nowhere, and
    /// until computing the split points pays.
    pub fn split_points(&self, piece: &[u8]) -> Option<&CharSplitPoints> {
        if piece.is_ascii() {
            return None;
        }
        let known = match self.split_points.get() {
            Some(known) => known,
            None => {
                let bytes = &self.non_ascii_bytes;
                if bytes.fetch_add(piece.len(), Ordering::Relaxed) < SPLIT_POINTS_COST {
                    return None;
                }
                self.compute_split_points()
            }
        };
        known.as_ref()
    }

    /// Computes the split points, unless they are known.
    pub fn compute_split_points(&self) -> &Option<CharSplitPoints> {
        self.split_points.get_or_init(|| {
            let mut reaches_all = true;
            if self.model.settings().ignore_merges {
                let unreachable =
                    unreachable_tokens(&self.model, &self.symbols, &self.table).ok()?;
                reaches_all = unreachable.iter().all(|&id| self.model.is_special(id));
            }
            CharSplitPoints::new(&self.model, reaches_all)
        })
    }

    /// The token that a whole piece is, if merging may give other ids.
    pub fn whole_token(&self, piece: &[u8]) -> Option<u32> {
        let split_points = self.split_points.get().and_then(Option::as_ref);
        let is_merged = split_points.is_some_and(CharSplitPoints::parts_are_pieces);
        (!is_merged).then(|| self.unmerged_token(piece)).flatten()
    }

    /// The token that a whole piece is, if the model asks for it (`ignore_merges`). Never a special token: no
    /// text becomes one by chance.
    fn unmerged_token(&self, piece: &[u8]) -> Option<u32> {
        if !self.model.settings().ignore_merges {
            return None;
        }
        let id = self.model.vocabulary().id(piece)?;
        (!self.model.is_special(id)).then_some(id)
    }

    /// Appends the ids of a piece.
    pub fn encode(
        &self,
        piece: &[u8],
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        match self.whole_token(piece) {
            Some(id) => {
                ids.push(id);
                Ok(())
            }
            None => self.merge(piece, ids, interrupt),
        }
    }

    /// Appends the ids that merging makes of a piece, or of a part of one.
    pub fn merge(&self, piece: &[u8], ids: &mut Vec<u32>, interrupt: &Interrupt<'_>) -> Result<()> {
        let start = ids.len();
        if self.symbols.are_bytes() {
            ids.extend(piece.iter().map(|&byte| self.symbols.single(byte)));
        } else {
            self.symbols
                .for_each(&self.model, piece, |id, _| ids.push(id));
        }
        let length = merge_symbols(&self.table, &mut ids[start..], interrupt)?;
        ids.truncate(start + length);
        if ids[start..].contains(&NONE) {
            let merged = ids.split_off(start);
            ids.extend(merged.into_iter().filter(|&id| id != NONE));
        }
        Ok(())
    }

    /// Appends each id of a piece with the number of bytes that it covers. A gap is [`NONE`].
    pub fn encode_with_widths(
        &self,
        piece: &[u8],
        tokens: &mut Vec<(u32, usize)>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        if let Some(id) = self.whole_token(piece) {
            tokens.push((id, piece.len()));
            return Ok(());
        }
        let (mut ids, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        self.symbols.for_each(&self.model, piece, |id, width| {
            end += width;
            ids.push(id);
            ends.push(end);
        });
        let mut starts = Vec::new();
        let length = merge_long_with_offsets(&self.table, &mut ids, interrupt, |index| {
            starts.push(index.checked_sub(1).map_or(0, |previous| ends[previous]));
        })?;
        starts.push(end);
        let widths = starts.windows(2).map(|pair| pair[1] - pair[0]);
        tokens.extend(ids[..length].iter().copied().zip(widths));
        Ok(())
    }

    /// Merges a piece and records each step.
    pub fn trace(&self, piece: &[u8], interrupt: &Interrupt<'_>) -> Result<MergeTrace> {
        let whole = self.unmerged_token(piece);
        let (model, symbols, table) = (&self.model, &self.symbols, &self.table);
        trace_merges(model, symbols, table, piece, whole, interrupt)
    }

    /// Whether every token covers exactly its own bytes, so that [`Merger::width`] is its width.
    pub fn widths_follow_from_ids(&self) -> bool {
        self.symbols.are_bytes()
    }

    /// The number of bytes of a token.
    pub fn width(&self, id: u32) -> usize {
        self.model.vocabulary().token(id).map_or(0, <[u8]>::len)
    }
}

//! Piece to ids: the one entry to the merges.

use super::char_split_points::CharSplitPoints;
use super::long::{merge_long, merge_symbols};
use super::symbols::Symbols;
use super::table::PairTable;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::model::{Model, NONE};
use crate::reserve::{reserve, with_capacity};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Computing the split points costs about as much as merging this many bytes of non-ASCII pieces.
const SPLIT_POINTS_COST: usize = 1 << 15;

/// Turns pieces into ids with the merges of one model. Threads may share it.
pub struct Merger {
    pub(super) model: Model,
    pub(super) symbols: Symbols,
    pub(super) table: PairTable,
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
        if let Some(known) = self.split_points.get() {
            return known.as_ref();
        }
        let bytes = &self.non_ascii_bytes;
        let pays = bytes.fetch_add(piece.len(), Ordering::Relaxed) >= SPLIT_POINTS_COST;
        pays.then(|| self.compute_split_points())?.as_ref()
    }

    /// Computes the split points, unless they are known.
    pub fn compute_split_points(&self) -> &Option<CharSplitPoints> {
        self.split_points.get_or_init(|| {
            let mut reaches_all = true;
            if self.model.settings().ignore_merges {
                let unreachable = self.unreachable_tokens().ok()?;
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
    pub(super) fn unmerged_token(&self, piece: &[u8]) -> Option<u32> {
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
        reserve(ids, piece.len())?;
        if self.symbols.are_bytes() {
            ids.extend(piece.iter().map(|&byte| self.symbols.single(byte)));
        } else {
            self.symbols
                .for_each(&self.model, piece, |id, _| ids.push(id));
        }
        let length = merge_symbols(&self.table, &mut ids[start..], interrupt)?;
        ids.truncate(start + length);
        if ids[start..].contains(&NONE) {
            let mut kept = start;
            for at in start..ids.len() {
                ids[kept] = ids[at];
                kept += usize::from(ids[at] != NONE);
            }
            ids.truncate(kept);
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
        let (mut ids, mut bounds) = (with_capacity(piece.len())?, with_capacity(piece.len() + 1)?);
        bounds.push(0);
        self.symbols.for_each(&self.model, piece, |id, width| {
            bounds.push(bounds[ids.len()] + width);
            ids.push(id);
        });
        let merged = merge_long(&self.table, &ids, interrupt)?;
        reserve(tokens, merged.len())?;
        let mut ends = merged[1.min(merged.len())..].iter();
        tokens.extend(merged.iter().map(|token| {
            let end = ends.next().map_or(ids.len(), |next| next.start as usize);
            (token.id, bounds[end] - bounds[token.start as usize])
        }));
        Ok(())
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

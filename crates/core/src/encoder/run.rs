//! Pieces to ids: the cache, and merging what is not in it.

use super::{Encoder, Part, Segment};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::merge::cache::{Cache, Unit};
use crate::merge::keys::{has_key, key, key_of, Lookup, BATCH};
use crate::merge::{emit, emit_characters, Crossings, Workspace};
use std::ops::Range;

/// Pieces between two looks at whether to stop.
const PATIENCE: usize = 1 << 14;
/// Bytes of a piece between two such looks.
const POLLED: usize = 1 << 16;

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
            run.batches(text, from, bounds, lookup, ids)?;
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
    /// Appends the ids of pieces, which begin at all bounds but the last, counted from `from`.
    fn batches(
        &mut self,
        text: &[u8],
        from: usize,
        mut bounds: &[u32],
        lookup: &mut Lookup,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        while bounds.len() > 1 {
            let (batch, _) = bounds.split_at(bounds.len().min(BATCH + 1));
            bounds = &bounds[batch.len() - 1..];
            lookup.pack(text, from, batch, self.cache.sets());
            for &set in lookup.get(batch.len() - 1).1 {
                self.cache.expect(set);
            }
            self.batch(text, from, batch, lookup, ids)?;
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

    /// Appends the ids of a piece that has no key, or whose key is not in the cache.
    #[inline(never)]
    fn missing(&mut self, text: &[u8], range: Range<usize>, ids: &mut Vec<u32>) -> Result<()> {
        match self.encoder.crossings(&text[range.clone()]) {
            Some(crossings) => self.by_parts(crossings, text, range, ids),
            None => self.whole(text, range, ids),
        }
    }

    /// Appends the ids of such a piece, which may have parts.
    fn by_parts(
        &mut self,
        crossings: &Crossings,
        text: &[u8],
        range: Range<usize>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if self.encoder.unmerged(&text[range.clone()]).is_some() {
            return self.whole(text, range, ids);
        }
        let start = ids.len();
        let (mut at, mut polled) = (range.start, range.start);
        loop {
            let behind = emit_characters(self.cache, crossings, text, at..range.end, ids);
            self.cache.hits += (behind - at) as u64 / 3;
            if behind == range.end {
                break;
            }
            let part = behind..crossings.first_part(text, behind..range.end);
            if part == range {
                return self.whole(text, range, ids);
            }
            at = part.end;
            self.part(crossings, text, part, ids)?;
            if at - polled > POLLED {
                self.interrupt.poll()?;
                polled = at;
            }
        }
        if has_key(range.len()) && self.cache.has_room(ids.len() - start) {
            self.keep(Unit::Piece, text, range, &ids[start..]);
        }
        Ok(())
    }

    /// Appends the ids of a part of a piece.
    fn part(
        &mut self,
        crossings: &Crossings,
        text: &[u8],
        range: Range<usize>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let (part, unit, start) = (&text[range.clone()], crossings.unit(), ids.len());
        let character = crossings.lone_character(text, range.clone());
        let character = character.filter(|_| self.cache.has_characters());
        let is_known = match character {
            Some(number) => self.cache.get_character(number, ids),
            None if has_key(part.len()) => {
                let key = key_of(unit, text, range.start, part.len());
                self.cache.get(key, ids)
            }
            None => self.cache.get_long(unit, part, ids),
        };
        if is_known {
            return Ok(());
        }
        self.encoder.merge_part(part, ids, self.interrupt)?;
        match character {
            Some(number) => self.cache.insert_character(number, &ids[start..]),
            None => self.keep(unit, text, range, &ids[start..]),
        }
        Ok(())
    }

    /// Appends the ids of a piece that is not cut.
    fn whole(&mut self, text: &[u8], range: Range<usize>, ids: &mut Vec<u32>) -> Result<()> {
        let (piece, start) = (&text[range.clone()], ids.len());
        if !has_key(piece.len()) && self.cache.get_long(Unit::Piece, piece, ids) {
            return Ok(());
        }
        self.encoder.merge_piece(piece, ids, self.interrupt)?;
        self.keep(Unit::Piece, text, range, &ids[start..]);
        Ok(())
    }

    /// Keeps the ids of a piece or a part that was not known.
    fn keep(&mut self, unit: Unit, text: &[u8], range: Range<usize>, ids: &[u32]) {
        if has_key(range.len()) {
            let key = key_of(unit, text, range.start, range.len());
            self.cache.insert(key, ids);
        } else {
            self.cache.insert_long(unit, &text[range], ids);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::encoder::{Encoder, Special, Text};
    use crate::interrupt::Interrupt;
    use crate::model::{Model, Settings};
    use crate::pretokenize::PreTokenizer;
    use proptest::prelude::*;

    /// Characters of every width, some of which share bytes, whole and in parts.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let units: [&[u8]; 12] = [
            b"a",
            "é".as_bytes(),
            "ш".as_bytes(),
            "一".as_bytes(),
            "丁".as_bytes(),
            "丂".as_bytes(),
            "乀".as_bytes(),
            "がく".as_bytes(),
            "🙀".as_bytes(),
            b"\xe4",
            b"\xb8",
            b"\x80",
        ];
        prop::collection::vec(prop::sample::select(units.to_vec()), 1..20)
            .prop_map(|units| units.concat())
    }

    fn encoder(tokens: &[&[u8]], unreached: &[&[u8]]) -> Encoder {
        let model = |tokens: Vec<Vec<u8>>, merges: Option<&[(Vec<u8>, Vec<u8>)]>| {
            let settings = Settings {
                pre_tokenizers: vec![PreTokenizer::isolated("[^|]+|[|]")],
                ignore_merges: true,
                ..Settings::default()
            };
            Model::new((0..).zip(tokens).collect(), merges, settings, Vec::new()).unwrap()
        };
        let mut all: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        all.extend(tokens.iter().map(|token| token.to_vec()));
        let reached = model(all.clone(), None);
        let bytes = |id| reached.vocabulary().token(id).unwrap().to_vec();
        let merges = reached.merges().iter();
        let merges: Vec<_> = merges
            .map(|&(left, right, _)| (bytes(left), bytes(right)))
            .collect();
        all.extend(unreached.iter().map(|token| token.to_vec()));
        Encoder::new(model(all, Some(&merges))).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// Some tokens have merges, others are only what whole pieces become.
        #[test]
        fn parts_and_the_cache_change_nothing(
            tokens in prop::collection::btree_set(text(), 0..12),
            unreached in prop::collection::btree_set(text(), 0..6),
            pieces in prop::collection::vec(text(), 1..12),
        ) {
            let is_new = |token: &&[u8]| token.len() > 1;
            let tokens: Vec<&[u8]> = tokens.iter().map(Vec::as_slice).filter(is_new).collect();
            let mut unreached: Vec<&[u8]> = unreached.iter().map(Vec::as_slice).filter(is_new).collect();
            unreached.retain(|token| !tokens.contains(token));
            let (plain, quick) = (encoder(&tokens, &unreached), encoder(&tokens, &unreached));
            plain.limit_cache(0);
            quick.crossings.get_or_init(|| quick.find_crossings());
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).chain(unreached).collect();
            let ids = |encoder: &Encoder, text: &[u8]| {
                let mut ids = Vec::new();
                encoder.encode(Text::Bytes(text), &Special::None, &mut ids, &Interrupt::never()).unwrap();
                ids
            };
            for text in [pieces.join(&b'|'), pieces.concat(), pieces.join(&b"||"[..])] {
                prop_assert_eq!(ids(&quick, &text), ids(&plain, &text));
            }
        }
    }
}

//! Segments of text to ids: splits them into pieces, then asks the cache and the merger.

use super::cached_encoder::CachedEncoder;
use super::splitter::{Splitter, TextSegment};
use super::{Encoder, Segment, TextSource};
use crate::cache::{key_of, KeyBatch, KeySpace, Misses, KEY_BYTES};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::pretokenize::{Block, Piece};
use crate::reserve::{push, reserve};
use crate::text::Text;
use std::mem::take;
use std::ops::Range;

/// Pieces between two polls for interrupts.
const POLL_INTERVAL: usize = 1 << 14;

/// The memory of longer UTF-8 is not kept for the next text.
const MAX_KEPT_UTF8: usize = 256 << 10;

/// The memory of more ids is not kept for the next piece.
const MAX_KEPT_IDS: usize = 64 << 10;

/// Encodes the segments of one call.
pub struct PieceEncoder<'a> {
    splitter: &'a Splitter,
    cached: CachedEncoder<'a>,
    block: &'a mut Block,
    keys: &'a mut [KeyBatch; 2],
    misses: &'a mut Misses,
    utf8: &'a mut String,
    pieces_until_poll: usize,
    /// The error that stopped the current segment.
    failure: Option<Error>,
    /// The ids of one piece.
    piece_ids: &'a mut Vec<u32>,
}

impl Encoder {
    /// Runs `work` with a free cache.
    pub(super) fn with_piece_encoder<R>(
        &self,
        interrupt: &Interrupt<'_>,
        work: impl FnOnce(&mut PieceEncoder<'_>) -> R,
    ) -> R {
        self.with_piece_encoder_of(0, interrupt, work)
    }

    /// As `with_piece_encoder`, for a thread that has a number in its call (see `WorkspacePool::with`).
    pub(super) fn with_piece_encoder_of<R>(
        &self,
        thread: usize,
        interrupt: &Interrupt<'_>,
        work: impl FnOnce(&mut PieceEncoder<'_>) -> R,
    ) -> R {
        self.workspaces.with(thread, |workspace| {
            work(&mut PieceEncoder {
                splitter: &self.splitter,
                cached: CachedEncoder {
                    merger: &self.merger,
                    cache: &mut workspace.cache,
                    interrupt,
                },
                block: &mut workspace.block,
                keys: &mut workspace.keys,
                misses: &mut workspace.misses,
                utf8: &mut workspace.utf8,
                pieces_until_poll: POLL_INTERVAL,
                failure: None,
                piece_ids: &mut workspace.piece_ids,
            })
        })
    }
}

impl PieceEncoder<'_> {
    /// Runs `work` with a text, or with the UTF-8 of its code units.
    #[inline]
    pub fn with_text<R>(
        &mut self,
        source: TextSource<'_>,
        work: impl FnOnce(&mut Self, Text<'_>) -> Result<R>,
    ) -> Result<R> {
        let units = match source {
            TextSource::Text(text) => return work(self, text),
            TextSource::Units(units) => units,
        };
        let mut utf8 = take(self.utf8);
        utf8.clear();
        units.append_to(&mut utf8)?;
        let result = work(self, Text::Str(&utf8));
        if utf8.capacity() <= MAX_KEPT_UTF8 {
            *self.utf8 = utf8;
        }
        result
    }

    /// Stage 3: appends the ids of a segment. Stops after the piece that brings them to `limit` or more.
    /// Returns whether they are fewer.
    pub fn encode(
        &mut self,
        segment: Segment<'_>,
        limit: usize,
        ids: &mut Vec<u32>,
    ) -> Result<bool> {
        match segment {
            Segment::Added { found, .. } => push(ids, found.id)?,
            Segment::Text(text) if limit == usize::MAX && self.splitter.has_blocks(&text) => {
                self.encode_blocks(&text, ids)?;
            }
            Segment::Text(text) => {
                self.splitter.split(&text, false, |piece| {
                    self.encode_piece(piece.text, piece.range, ids) && ids.len() < limit
                })?;
                self.take_failure()?;
            }
        }
        Ok(ids.len() < limit)
    }

    /// Appends the ids of all pieces of a segment, block by block.
    fn encode_blocks(&mut self, segment: &TextSegment<'_>, ids: &mut Vec<u32>) -> Result<()> {
        let mut from = 0;
        while from < segment.text.len() {
            from = self.encode_next_block(segment, from, ids)?;
        }
        Ok(())
    }

    /// Appends the ids of the pieces of the block that begins at `from`. Returns the block's end.
    #[inline]
    pub fn encode_next_block(
        &mut self,
        segment: &TextSegment<'_>,
        from: usize,
        ids: &mut Vec<u32>,
    ) -> Result<usize> {
        let to = self.next_block(segment, from)?;
        let bounds = self.block.bounds();
        self.cached
            .encode_block(segment.text, from, bounds, (self.keys, self.misses), ids)?;
        Ok(to)
    }

    /// Finds the pieces of the block that begins at `from`. Returns the block's end.
    #[inline]
    fn next_block(&mut self, segment: &TextSegment<'_>, from: usize) -> Result<usize> {
        let TextSegment { text, is_utf8, .. } = *segment;
        let splitter = &self.splitter.pre_tokenizers;
        let to = splitter.next_block(text, is_utf8, from, self.block)?;
        let pieces = self.block.bounds().len();
        self.pieces_until_poll = self.pieces_until_poll.saturating_sub(pieces);
        self.poll_if_due()?;
        Ok(to)
    }

    /// The number of ids of a segment. Keeps at most those of one piece.
    pub fn count(&mut self, segment: Segment<'_>) -> Result<usize> {
        let text = match segment {
            Segment::Added { .. } => return Ok(1),
            Segment::Text(text) => text,
        };
        let (mut count, mut ids) = (0, take(self.piece_ids));
        if self.splitter.has_blocks(&text) {
            let mut from = 0;
            while from < text.text.len() {
                let to = self.next_block(&text, from)?;
                let bounds = self.block.bounds();
                count += self
                    .cached
                    .count_block(text.text, from, bounds, self.keys, &mut ids)?;
                from = to;
            }
        } else {
            self.splitter.split(&text, false, |piece| {
                ids.clear();
                let succeeded = self.encode_piece(piece.text, piece.range, &mut ids);
                count += ids.len();
                succeeded
            })?;
            self.take_failure()?;
        }
        self.keep_piece_ids(ids);
        Ok(count)
    }

    /// Appends the ids of the piece `text[range]`. Returns false on failure; see `take_failure`.
    #[inline(always)]
    pub fn encode_piece(&mut self, text: &[u8], range: Range<usize>, ids: &mut Vec<u32>) -> bool {
        if let Err(error) = reserve(ids, range.len() + KEY_BYTES) {
            self.failure = Some(error);
            return false;
        }
        self.pieces_until_poll -= 1;
        if self.pieces_until_poll > 0 {
            let key = key_of(KeySpace::Piece, text, range.start, range.len());
            if self.cached.cache.get(key, &text[range.clone()], ids) {
                return true;
            }
        }
        let outcome = self.encode_miss(text, range, ids);
        self.failure = outcome.err();
        self.failure.is_none()
    }

    #[inline(never)]
    fn encode_miss(&mut self, text: &[u8], range: Range<usize>, ids: &mut Vec<u32>) -> Result<()> {
        self.poll_if_due()?;
        self.cached.encode_miss(text, range, ids)?;
        self.cached.cache.grow();
        Ok(())
    }

    fn keep_piece_ids(&mut self, ids: Vec<u32>) {
        if ids.capacity() <= MAX_KEPT_IDS {
            *self.piece_ids = ids;
        }
    }

    /// Polls the interrupt.
    pub fn poll(&self) -> Result<()> {
        self.cached.interrupt.poll()
    }

    fn poll_if_due(&mut self) -> Result<()> {
        if self.pieces_until_poll == 0 {
            self.cached.interrupt.poll()?;
            self.pieces_until_poll = POLL_INTERVAL;
        }
        Ok(())
    }

    /// Appends each id of a piece with the number of bytes that it covers. A gap is
    /// `NONE`. Returns false on failure.
    pub fn encode_piece_with_widths(
        &mut self,
        piece: Piece<'_>,
        tokens: &mut Vec<(u32, usize)>,
    ) -> bool {
        let CachedEncoder {
            merger, interrupt, ..
        } = self.cached;
        if merger.widths_follow_from_ids() {
            let mut ids = take(self.piece_ids);
            ids.clear();
            let mut succeeded = self.encode_piece(piece.text, piece.range, &mut ids);
            if let Err(error) = reserve(tokens, ids.len()) {
                self.failure = Some(error);
                (succeeded, ids) = (false, Vec::new());
            }
            // A piece may be as long as the text.
            for ids in ids.chunks(POLL_INTERVAL) {
                if ids.len() == POLL_INTERVAL {
                    if let Err(error) = interrupt.poll() {
                        self.failure = Some(error);
                        succeeded = false;
                        break;
                    }
                }
                tokens.extend(ids.iter().map(|&id| (id, merger.width(id))));
            }
            self.keep_piece_ids(ids);
            return succeeded;
        }
        let outcome = merger.encode_with_widths(&piece.text[piece.range], tokens, interrupt);
        self.failure = outcome.err();
        self.failure.is_none()
    }

    /// Returns the error that stopped the last segment.
    pub fn take_failure(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use crate::encoder::{Encoder, Special};
    use crate::interrupt::Interrupt;
    use crate::model::{Model, Settings};
    use crate::pretokenize::PreTokenizer;
    use crate::text::Text;
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

    fn encoder(tokens: &[&[u8]], unreachable: &[&[u8]]) -> Encoder {
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
        let reachable = model(all.clone(), None);
        let bytes = |id| reachable.vocabulary().token(id).unwrap().to_vec();
        let merges = reachable.merges().iter();
        let merges: Vec<_> = merges
            .map(|&(left, right, _)| (bytes(left), bytes(right)))
            .collect();
        all.extend(unreachable.iter().map(|token| token.to_vec()));
        Encoder::new(model(all, Some(&merges))).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// Some tokens have merges; others only match whole pieces.
        #[test]
        fn parts_and_the_cache_do_not_change_ids(
            tokens in prop::collection::btree_set(text(), 0..12),
            unreachable in prop::collection::btree_set(text(), 0..6),
            pieces in prop::collection::vec(text(), 1..12),
        ) {
            let is_new = |token: &&[u8]| token.len() > 1;
            let tokens: Vec<&[u8]> = tokens.iter().map(Vec::as_slice).filter(is_new).collect();
            let mut unreachable: Vec<&[u8]> = unreachable.iter().map(Vec::as_slice).filter(is_new).collect();
            unreachable.retain(|token| !tokens.contains(token));
            let (plain, quick) = (encoder(&tokens, &unreachable), encoder(&tokens, &unreachable));
            plain.caches().limit(0);
            quick.merger.compute_split_points();
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).chain(unreachable).collect();
            let ids = |encoder: &Encoder, text: &[u8]| {
                let mut ids = Vec::new();
                encoder.encode(Text::Bytes(text), &Special::None, &mut ids, &Interrupt::never()).unwrap();
                ids
            };
            let texts = [pieces.join(&b'|'), pieces.concat(), pieces.join(&b"||"[..])];
            // A long piece is cached the second time, and found the third time.
            for text in texts.iter().chain(&texts).chain(&texts) {
                prop_assert_eq!(ids(&quick, text), ids(&plain, text));
                let count = quick.count(Text::Bytes(text), &Special::None, &Interrupt::never());
                prop_assert_eq!(count.unwrap(), ids(&plain, text).len());
            }
        }
    }
}

//! Pieces to ids through the cache.

use crate::cache::{
    count, emit, emit_chars, emit_parts, has_key, key_of, take_batch, Cache, KeyBatch, KeySpace,
    Miss, Misses, KEY_BYTES, PACKED_IDS,
};
use crate::error::Result;
use crate::interrupt::{Interrupt, Poller};
use crate::merge::{CharSplitPoints, Merger};
use crate::model::TokenHash;
use crate::reserve::reserve;
use std::ops::Range;

/// Misses that are encoded together, so that the look-ups of their tokens overlap.
const MISSES_TOGETHER: usize = 16;

/// Looks pieces up in the cache, and merges and caches those that it lacks.
pub struct CachedEncoder<'a> {
    pub merger: &'a Merger,
    pub cache: &'a mut Cache,
    pub interrupt: &'a Interrupt<'a>,
}

impl<'a> CachedEncoder<'a> {
    /// Appends the ids of a block of pieces. Each two neighbours of `bounds`, offsets from `from`, bound a piece.
    pub fn encode_block(
        &mut self,
        text: &[u8],
        from: usize,
        bounds: &[u32],
        (keys, misses): (&mut [KeyBatch; 2], &mut Misses),
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        misses.clear();
        self.for_each_batch(text, from, bounds, keys, |encoder, batch, keys| {
            encoder.encode_batch(text, from, batch, (keys, misses), ids)?;
            if misses.pieces().len() >= MISSES_TOGETHER {
                encoder.encode_misses(text, misses, ids)?;
                encoder.cache.grow();
            }
            Ok(())
        })?;
        self.encode_misses(text, misses, ids)?;
        self.cache.grow();
        Ok(())
    }

    /// The number of ids of a block of pieces; see [`CachedEncoder::encode_block`]. `missed` is for the ids of pieces that
    /// are not cached.
    pub fn count_block(
        &mut self,
        text: &[u8],
        from: usize,
        bounds: &[u32],
        keys: &mut [KeyBatch; 2],
        missed: &mut Vec<u32>,
    ) -> Result<usize> {
        let mut ids = 0;
        self.for_each_batch(text, from, bounds, keys, |encoder, batch, keys| {
            let (mut piece, pieces) = (0, batch.len() - 1);
            let piece_of =
                |at: usize| &text[from + batch[at] as usize..from + batch[at + 1] as usize];
            while piece < pieces {
                let (found, counted) = count(encoder.cache, keys, piece..pieces, &piece_of);
                encoder.cache.hits += (found - piece) as u64;
                ids += counted;
                if found < pieces {
                    let range = from + batch[found] as usize..from + batch[found + 1] as usize;
                    missed.clear();
                    encoder.encode_miss(text, range, missed)?;
                    ids += missed.len();
                }
                piece = found + 1;
            }
            Ok(())
        })?;
        self.cache.grow();
        Ok(ids)
    }

    /// Calls `work` with the bounds of each batch of a block and its keys. The buckets of a batch are prefetched before the
    /// work on the batch before it, so that no look-up waits for memory.
    #[inline(always)]
    fn for_each_batch(
        &mut self,
        text: &[u8],
        from: usize,
        mut bounds: &[u32],
        keys: &mut [KeyBatch; 2],
        mut work: impl FnMut(&mut Self, &[u32], &KeyBatch) -> Result<()>,
    ) -> Result<()> {
        let [mut keys, mut next_keys] = keys.each_mut();
        let mut batch = take_batch(&mut bounds);
        self.pack(text, from, batch, keys);
        while batch.len() > 1 {
            let (next, buckets) = (take_batch(&mut bounds), self.cache.bucket_count());
            self.pack(text, from, next, next_keys);
            work(self, batch, keys)?;
            self.cache.promote_noted();
            if self.cache.bucket_count() != buckets {
                self.pack(text, from, next, next_keys);
            }
            batch = next;
            std::mem::swap(&mut keys, &mut next_keys);
        }
        Ok(())
    }

    /// Packs the keys of a batch of pieces, and prefetches their buckets.
    #[inline]
    fn pack(&self, text: &[u8], from: usize, bounds: &[u32], keys: &mut KeyBatch) {
        if bounds.len() < 2 {
            return;
        }
        let buckets = self.cache.bucket_count();
        keys.pack(text, from, bounds, buckets);
        let may_be_cached = |ends| self.cache.may_have_longer(ends);
        keys.hash_longer(text, from, bounds, buckets, may_be_cached);
        self.cache.prefetch(keys.get(bounds.len() - 1).1);
    }

    /// Appends the ids of the pieces whose keys are packed, without those that become `misses`.
    #[inline]
    fn encode_batch(
        &mut self,
        text: &[u8],
        from: usize,
        bounds: &[u32],
        (keys, misses): (&KeyBatch, &mut Misses),
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let pieces = bounds.len() - 1;
        let range = |piece: usize| from + bounds[piece] as usize..from + bounds[piece + 1] as usize;
        let mut piece = 0;
        loop {
            // The room that emission wants, requested where it can be refused.
            reserve(ids, KEY_BYTES * (pieces - piece + 1))?;
            let known = misses.pieces().len();
            let mut missed = |piece, at| {
                let ((keys, buckets), range) = (keys.get(pieces), range(piece));
                let token = self.merger.token_hash(&text[range.clone()]);
                if let Some(hash) = token {
                    self.merger.prefetch(hash);
                }
                misses.push(Miss {
                    key: keys[piece],
                    bucket: buckets[piece],
                    token,
                    range,
                    at,
                });
            };
            let piece_of = |piece: usize| &text[range(piece)];
            let end = emit(self.cache, keys, piece..pieces, ids, &piece_of, &mut missed);
            self.cache.hits += (end - piece + known - misses.pieces().len()) as u64;
            if end == pieces {
                return Ok(());
            }
            self.encode_misses(text, misses, ids)?;
            self.encode_miss(text, range(end), ids)?;
            piece = end + 1;
        }
    }

    /// Finds the ids of `misses`, if any, and inserts them into `ids`.
    #[inline]
    fn encode_misses(
        &mut self,
        text: &[u8],
        misses: &mut Misses,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if misses.pieces().is_empty() {
            return Ok(());
        }
        for miss in misses.pieces() {
            self.cache.prefetch_kicked(miss.bucket);
            if let Some(hash) = miss.token {
                self.merger.prefetch_token(hash);
            }
        }
        misses.resolve(ids, |miss, found| self.encode_short_miss(text, miss, found))
    }

    /// Appends the ids of one of `misses`.
    fn encode_short_miss(&mut self, text: &[u8], miss: &Miss, ids: &mut Vec<u32>) -> Result<()> {
        let (piece, start) = (&text[miss.range.clone()], ids.len());
        // The same piece may have been an earlier miss.
        if self.cache.get_from(miss.bucket, miss.key, piece, ids) {
            return Ok(());
        }
        if let Some(points) = self.points_of(text, &miss.range) {
            return self.encode_split(points, text, miss.range.clone(), miss.token, ids);
        }
        self.merger
            .encode_hashed(piece, miss.token, ids, self.interrupt)?;
        self.cache.insert(miss.key, piece, &ids[start..]);
        Ok(())
    }

    /// Appends the ids of a piece that has no key, or whose key is not in the cache.
    #[inline(never)]
    pub fn encode_miss(
        &mut self,
        text: &[u8],
        range: Range<usize>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        match self.points_of(text, &range) {
            Some(points) => {
                let token = self.merger.token_hash(&text[range.clone()]);
                self.encode_split(points, text, range, token, ids)
            }
            None => self.encode_whole(text, range, ids),
        }
    }

    /// The split points, if a piece may have parts.
    #[inline(always)]
    fn points_of(&self, text: &[u8], range: &Range<usize>) -> Option<&'a CharSplitPoints> {
        let points = self.merger.split_points(&text[range.clone()])?;
        points.may_have_parts(text, range.clone()).then_some(points)
    }

    /// Appends the ids of a piece part by part, unless it is a token. In scripts without spaces the pieces are long and
    /// rarely repeat, but the parts are few.
    fn encode_split(
        &mut self,
        points: &CharSplitPoints,
        text: &[u8],
        range: Range<usize>,
        token: Option<TokenHash>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let piece = &text[range.clone()];
        if token.is_some_and(|hash| self.merger.token_of(piece, hash).is_some()) {
            return self.encode_whole(text, range, ids);
        }
        let start = ids.len();
        let mut poller = Poller::new(self.interrupt);
        // What `emit_chars` and `emit_parts` need; they would end the process if there were no memory.
        reserve(ids, KEY_BYTES)?;
        let mut at = emit_chars(self.cache, points, text, range.clone(), ids);
        // The bytes of the characters whose ids have a table of their own.
        let mut character_bytes = at - range.start;
        self.cache.hits += character_bytes as u64 / 3;
        while at < range.end {
            reserve(ids, KEY_BYTES)?;
            let emitted = emit_parts(self.cache, points, text, at..range.end, ids);
            self.cache.hits += (emitted.character_bytes / 3 + emitted.others) as u64;
            character_bytes += emitted.character_bytes;
            let next = emitted.next;
            if next == range {
                return self.encode_whole(text, range, ids);
            }
            poller.advance(next.end - at)?;
            at = next.end;
            if !next.is_empty() {
                self.encode_part(
                    KeySpace::of_parts(points),
                    text,
                    next,
                    emitted.next_character,
                    ids,
                )?;
            }
        }
        let is_worth_it = if has_key(range.len()) {
            ids.len() - start <= PACKED_IDS || self.cache.has_room()
        } else {
            // Most long pieces of scripts without spaces never come again.
            2 * character_bytes < piece.len() && self.cache.has_room() && self.cache.was_seen(piece)
        };
        if is_worth_it {
            self.insert(text, range, &ids[start..]);
        }
        Ok(())
    }

    /// Appends the ids of a part of a piece, which is not short or not cached, and caches them.
    fn encode_part(
        &mut self,
        space: KeySpace,
        text: &[u8],
        range: Range<usize>,
        character: Option<usize>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let (part, start) = (&text[range.clone()], ids.len());
        let key = key_of(space, text, range.start, part.len());
        if !has_key(part.len()) && self.cache.get(key, part, ids) {
            return Ok(());
        }
        self.merger.merge(part, ids, self.interrupt)?;
        match character {
            Some(number) => self.cache.insert_char(number, &ids[start..]),
            None => self.cache.insert(key, part, &ids[start..]),
        }
        Ok(())
    }

    /// Appends the ids of a piece that has no split points.
    fn encode_whole(&mut self, text: &[u8], range: Range<usize>, ids: &mut Vec<u32>) -> Result<()> {
        let (piece, start) = (&text[range.clone()], ids.len());
        if !has_key(range.len()) {
            let key = key_of(KeySpace::Piece, text, range.start, range.len());
            if self.cache.get(key, piece, ids) {
                return Ok(());
            }
        }
        self.merger.encode(piece, ids, self.interrupt)?;
        self.insert(text, range, &ids[start..]);
        Ok(())
    }

    /// Caches the ids of a piece, unless it is cached: the look-up of pieces that are not short may have paused.
    fn insert(&mut self, text: &[u8], range: Range<usize>, ids: &[u32]) {
        let key = key_of(KeySpace::Piece, text, range.start, range.len());
        let piece = &text[range];
        if has_key(piece.len()) || !self.cache.has(key, piece) {
            self.cache.insert(key, piece, ids);
        }
    }
}

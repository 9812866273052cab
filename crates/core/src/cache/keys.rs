//! Pieces as 16-byte keys, one or many at a time. The key of a short piece holds it; that of a longer one is a hash.
//!
//! `unsafe`: [`KeyBatch::pack`] reads 16 bytes of text at each piece, and runs vector instructions. It checks that
//! the processor has them, and no read is later than 16 bytes before the end of the text.
#![allow(unsafe_code)]

use crate::merge::CharSplitPoints;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::processor::InstructionSet;
use crate::processor::Processor;

/// The longest piece that a key holds.
pub const KEY_BYTES: usize = 15;
/// Pieces that are looked up together, so that their cache misses overlap.
pub const PIECES_PER_BATCH: usize = 96;

/// The longest piece that the cache takes.
pub const MAX_PIECE_BYTES: usize = 512;

/// The number of pieces that are not short, after which the batch decides whether their look-ups pause.
const LONGER_PER_DECISION: u32 = 256;
/// The number of batches for which they pause.
const PAUSED_BATCHES: u32 = 48;

/// A piece as two numbers. A short one: its bytes, and its length in the top byte. A longer one: two hashes, and `HASHED`
/// in the top byte. Pieces of more than `MAX_PIECE_BYTES` have a key that no slot has.
pub type Key = [u64; 2];

/// The top byte of the key of a piece that the key does not hold.
const HASHED: u64 = KEY_BYTES as u64 + 2;

/// Where the ids of some bytes are valid. A piece may be a token that merging does not make
/// (`ignore_merges`); then the same bytes inside a longer piece have other ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySpace {
    /// The bytes as a piece, or as a part that has the same ids.
    Piece,
    /// The bytes as a part that may have other ids.
    Part,
}

impl KeySpace {
    /// Where the ids of the parts between these points are valid.
    #[inline(always)]
    pub fn of_parts(points: &CharSplitPoints) -> Self {
        if points.parts_are_pieces() {
            Self::Piece
        } else {
            Self::Part
        }
    }
}

/// Odd multipliers of the hash, one for each 32 bits of a key.
const FACTORS: [u64; 4] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f];

/// Odd multipliers of the hashes of longer pieces.
const LONG_FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

/// By length: the masks of both halves of a key, and its other bits, the length in the top byte. The last entry, for
/// longer pieces, makes a key that no slot has.
#[repr(align(32))]
struct Masks([[u64; 4]; KEY_BYTES + 2]);

static MASKS: Masks = {
    let mut masks = [[0; 4]; KEY_BYTES + 2];
    let mut length = 0;
    while length <= KEY_BYTES {
        let mask: u128 = (1 << (8 * length)) - 1;
        masks[length] = [mask as u64, (mask >> 64) as u64, 0, (length as u64) << 56];
        length += 1;
    }
    masks[length][3] = (length as u64) << 56;
    Masks(masks)
};

/// The key of the piece of `length` bytes at `start`, if it is short; a key that no slot has, if not.
#[inline(always)]
pub fn key(text: &[u8], start: usize, length: usize) -> Key {
    let whole = match text.get(start..start + 16) {
        Some(bytes) => u128::from_le_bytes(bytes.try_into().unwrap_or_default()),
        None => last_bytes(&text[start..]),
    };
    masked(whole, length)
}

/// Fewer than 16 bytes as a number, without a call that copies them: the first and the last ones, which may overlap.
#[inline(always)]
fn last_bytes(bytes: &[u8]) -> u128 {
    let length = bytes.len();
    let place = |low: u64, high: u64, at: usize| u128::from(low) | u128::from(high) << (8 * at);
    if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let [low, high] = [low, high].map(|it| u64::from_le_bytes(*it));
        return place(low, high, length - 8);
    }
    if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let [low, high] = [low, high].map(|it| u64::from(u32::from_le_bytes(*it)));
        return place(low, high, length - 4);
    }
    let bytes = bytes.iter().rev();
    bytes.fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// The key of the first bytes.
#[inline(always)]
fn masked(whole: u128, length: usize) -> Key {
    let [low, high, _, tag] = MASKS.0[length.min(KEY_BYTES + 1)];
    [whole as u64 & low, (whole >> 64) as u64 & high | tag]
}

/// The key of a piece, or of a part of one.
#[inline]
pub fn key_of(space: KeySpace, text: &[u8], start: usize, length: usize) -> Key {
    let [low, high] = if has_key(length) {
        key(text, start, length)
    } else {
        hashed_key(&text[start..start + length])
    };
    [low, high | part_bit(space)]
}

/// The bit in the upper half of a key that tells parts from pieces.
#[inline(always)]
pub fn part_bit(space: KeySpace) -> u64 {
    u64::from(space == KeySpace::Part) << 63
}

/// The key of a piece that is not short. Each 16 bytes go into both hashes; the last ones may overlap those before.
#[inline]
fn hashed_key(piece: &[u8]) -> Key {
    let Some(last) = piece
        .last_chunk::<16>()
        .filter(|_| piece.len() <= MAX_PIECE_BYTES)
    else {
        return masked(0, piece.len());
    };
    let (whole, _) = piece[..piece.len() - 1].as_chunks::<16>();
    let [mut first, mut second] = [piece.len() as u64, 0];
    // A `for` loop would ask at each step which part of the chain it is in.
    whole.iter().chain([last]).for_each(|bytes| {
        let bytes = u128::from_le_bytes(*bytes);
        let (low, high) = (bytes as u64, (bytes >> 64) as u64);
        let product = u128::from(first ^ low) * u128::from(high ^ LONG_FACTORS[0]);
        first = product as u64 ^ (product >> 64) as u64;
        second = (second.rotate_left(29) ^ low)
            .wrapping_add(high)
            .wrapping_mul(LONG_FACTORS[1]);
    });
    [first, second >> 8 | HASHED << 56]
}

/// A hash of the length and of eight bytes at each end of a piece that is not short: enough to tell apart most.
#[inline(always)]
pub fn hash_of_ends(piece: &[u8]) -> u32 {
    let Some((first, last)) = piece.first_chunk().zip(piece.last_chunk()) else {
        return 0;
    };
    let ends = u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(23);
    let product = u128::from(ends ^ piece.len() as u64) * u128::from(LONG_FACTORS[0]);
    ((product >> 64) as u64 ^ product as u64) as u32
}

/// Whether the key holds its piece or a hash of it: it may be in a slot.
#[inline(always)]
pub fn may_have_slot([_, high]: Key) -> bool {
    high >> 56 != KEY_BYTES as u64 + 1
}

/// Whether a piece of this length fits a key.
#[inline(always)]
pub fn has_key(length: usize) -> bool {
    length <= KEY_BYTES
}

/// Whether the key of a piece holds it: the piece is not longer.
#[inline(always)]
pub fn holds_piece([_, high]: Key) -> bool {
    has_key((high >> 56) as usize)
}

/// A multiplicative hash of products of 32 bits, which vector instructions have. Its upper bits and its lower bits
/// depend on every bit of the key.
#[inline(always)]
pub fn hash([low, high]: Key) -> u32 {
    let parts = [low & LOWER, low >> 32, high & LOWER, high >> 32];
    let products = parts.into_iter().zip(FACTORS);
    let mixed = products.fold(0, |mixed, (part, factor)| mixed ^ part.wrapping_mul(factor));
    (mixed ^ mixed >> 32) as u32
}

const LOWER: u64 = u32::MAX as u64;

/// The first bucket of a key. Scales the hash to the number of buckets, which need not be a power of two (Lemire,
/// "Fast random integer generation in an interval").
#[inline(always)]
pub fn bucket_of(key: Key, buckets: usize) -> u32 {
    ((u64::from(hash(key)) * buckets as u64) >> 32) as u32
}

/// Writes for each piece where its row of masks begins, in bytes. Returns the latest beginning, and the longest
/// length, but at most one more than fits a key. The compiler makes vector instructions of this.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn write_mask_rows(bounds: &[u32], rows: &mut [u32; PIECES_PER_BATCH]) -> (usize, usize) {
    let (mut latest, mut longest) = (0, 0);
    for (row, (begin, end)) in rows.iter_mut().zip(bounds.iter().zip(&bounds[1..])) {
        let length = end.wrapping_sub(*begin).min(KEY_BYTES as u32 + 1);
        *row = length * size_of::<[u64; 4]>() as u32;
        latest = latest.max(*begin);
        longest = longest.max(length);
    }
    (latest as usize, longest as usize)
}

/// The bounds of the next batch of pieces: at most `PIECES_PER_BATCH`. The last one is the first of the batch after it.
pub fn take_batch<'a>(bounds: &mut &'a [u32]) -> &'a [u32] {
    let (batch, _) = bounds.split_at(bounds.len().min(PIECES_PER_BATCH + 1));
    *bounds = &bounds[batch.len().saturating_sub(1)..];
    batch
}

/// The keys of pieces that are looked up together.
pub struct KeyBatch {
    keys: [Key; PIECES_PER_BATCH],
    /// The first bucket of each key.
    buckets: [u32; PIECES_PER_BATCH],
    /// Whether a key does not hold its piece.
    has_longer: bool,
    /// Pieces that are not short since the last decision to pause, and those of them that may be cached.
    longer: u32,
    maybe_cached: u32,
    /// The number of the next batches in which pieces that are not short are not looked up.
    paused: u32,
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        allow(dead_code)
    )]
    processor: Processor,
}

impl Default for KeyBatch {
    fn default() -> Self {
        Self {
            keys: [[0; 2]; PIECES_PER_BATCH],
            buckets: [0; PIECES_PER_BATCH],
            has_longer: false,
            longer: 0,
            maybe_cached: 0,
            paused: 0,
            processor: Processor::best(),
        }
    }
}

impl KeyBatch {
    /// The first keys and their buckets.
    pub fn get(&self, pieces: usize) -> (&[Key], &[u32]) {
        (&self.keys[..pieces], &self.buckets[..pieces])
    }

    /// Packs at most `PIECES_PER_BATCH` pieces and finds their buckets. Each two neighbours of `bounds`,
    /// offsets from `from`, bound a piece. `buckets` is less than 2^32. Pieces that are not short get a key that no slot
    /// has; see `hash_longer`.
    #[inline]
    pub fn pack(&mut self, text: &[u8], from: usize, bounds: &[u32], buckets: usize) {
        self.has_longer = false;
        let pieces = bounds.len().saturating_sub(1).min(PIECES_PER_BATCH);
        let Some(bounds) = bounds.get(..=pieces) else {
            return;
        };
        // Pieces that begin up to `last` have 16 readable bytes: all but the last ones.
        let mut packed = 0;
        if let Some(last) = text.len().checked_sub(from + 16) {
            let begins = bounds[..pieces].iter();
            let readable = begins.rev().position(|&bound| bound as usize <= last);
            packed = readable.map_or(0, |unreadable| pieces - unreadable);
            if packed > 0 {
                let bounds = &bounds[..=packed];
                // SAFETY: `from + last + 16` bytes are the text.
                let are_packed = unsafe { self.pack_readable(text, from, last, bounds, buckets) };
                packed *= usize::from(are_packed);
            }
        }
        if packed == pieces {
            return;
        }
        // The others are near the end of the text.
        for piece in packed..pieces {
            let length = (bounds[piece + 1] - bounds[piece]) as usize;
            let key = key(text, from + bounds[piece] as usize, length);
            self.has_longer |= !has_key(length);
            self.keys[piece] = key;
            self.buckets[piece] = bucket_of(key, buckets);
        }
    }

    /// Replaces the keys of the pieces that are not short, if they may be cached. `may_be_cached` takes the hash of a
    /// piece's ends, and the other arguments are those of `pack`. Pauses where few are cached, as in Chinese.
    #[inline]
    pub fn hash_longer(
        &mut self,
        text: &[u8],
        from: usize,
        bounds: &[u32],
        buckets: usize,
        may_be_cached: impl Fn(u32) -> bool,
    ) {
        if !self.has_longer || self.paused > 0 {
            self.paused = self.paused.saturating_sub(1);
            return;
        }
        // Few pieces are longer: eight are skipped at a time. The compiler makes vector instructions of the comparison.
        let mut are_longer = [0; PIECES_PER_BATCH];
        for (is_longer, bounds) in are_longer.iter_mut().zip(bounds.windows(2)) {
            let length = bounds[1].wrapping_sub(bounds[0]);
            *is_longer = u8::from(!has_key(length as usize));
        }
        for (number, eight) in are_longer.as_chunks::<8>().0.iter().enumerate() {
            let mut eight = u64::from_le_bytes(*eight);
            while eight != 0 {
                let at = 8 * number + eight.trailing_zeros() as usize / 8;
                eight &= eight - 1;
                let piece = &text[from + bounds[at] as usize..from + bounds[at + 1] as usize];
                self.longer += 1;
                if may_be_cached(hash_of_ends(piece)) {
                    self.maybe_cached += 1;
                    let key = hashed_key(piece);
                    self.keys[at] = key;
                    self.buckets[at] = bucket_of(key, buckets);
                }
            }
        }
        if self.longer >= LONGER_PER_DECISION {
            if self.maybe_cached < self.longer / 8 {
                self.paused = PAUSED_BATCHES;
            }
            (self.longer, self.maybe_cached) = (0, 0);
        }
    }

    /// Packs all pieces, four at a time if the processor can. The number of pieces, one less than that of `bounds`,
    /// is 1 to [`PIECES_PER_BATCH`]. Returns whether it did: not if a piece begins after `last`.
    ///
    /// # Safety
    ///
    /// The text must have 16 bytes after `from + last`.
    #[inline(always)]
    unsafe fn pack_readable(
        &mut self,
        text: &[u8],
        from: usize,
        last: usize,
        bounds: &[u32],
        buckets: usize,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.processor.has(InstructionSet::Avx2) && bounds.len() > 4 {
            // SAFETY: `Processor` exists only for detected instructions; there are four pieces or more; the rest is
            // the caller's promise.
            return unsafe { self.pack_avx2(text, from, last, bounds, buckets as u64) };
        }
        #[cfg(target_arch = "aarch64")]
        if self.processor.has(InstructionSet::Neon) && bounds.len() > 4 {
            // SAFETY: `Processor` exists only for detected instructions; there are four pieces or more; the rest is
            // the caller's promise.
            return unsafe { self.pack_neon(text, from, last, bounds, buckets as u32) };
        }
        let places = self.keys.iter_mut().zip(&mut self.buckets);
        for (bounds, (key, bucket)) in bounds.windows(2).zip(places) {
            let length = bounds[1].wrapping_sub(bounds[0]) as usize;
            let start = bounds[0] as usize;
            if start > last {
                return false;
            }
            // SAFETY: 16 bytes follow `from + start` (the caller's promise).
            let whole = unsafe {
                let start = text.as_ptr().add(from + start);
                start.cast::<[u8; 16]>().read_unaligned()
            };
            self.has_longer |= !has_key(length);
            *key = masked(u128::from_le_bytes(whole), length);
            *bucket = bucket_of(*key, buckets);
        }
        true
    }

    /// # Safety
    ///
    /// The processor must have AVX2. The number of pieces, one less than that of `bounds`, must be 4 to
    /// [`PIECES_PER_BATCH`], and the text must have 16 bytes after `from + last`.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn pack_avx2(
        &mut self,
        text: &[u8],
        from: usize,
        last: usize,
        bounds: &[u32],
        buckets: u64,
    ) -> bool {
        use std::arch::x86_64::*;
        let word = |number: u64| _mm256_set1_epi64x(number as i64);
        // SAFETY: the text has bytes after `from` (the caller's promise).
        let text = unsafe { text.as_ptr().add(from) };
        let pieces = bounds.len() - 1;
        let mut rows = [0; PIECES_PER_BATCH];
        let (latest, longest) = write_mask_rows(bounds, &mut rows);
        if latest > last {
            return false;
        }
        self.has_longer |= !has_key(longest);
        let masks: *const u8 = MASKS.0.as_ptr().cast();
        for piece in (0..pieces).step_by(4) {
            // The last four overlap those before them.
            let piece = piece.min(pieces - 4);
            let key = |index: usize| {
                // SAFETY: `piece + 3` is a piece; 16 bytes follow each of their beginnings (the caller's promise); the
                // rows are those of the table of masks, and a row has 32 bytes.
                unsafe {
                    let begin = *bounds.get_unchecked(piece + index) as usize;
                    let row = masks.add(*rows.get_unchecked(piece + index) as usize);
                    let bytes = _mm_loadu_si128(text.add(begin).cast());
                    let bytes = _mm_and_si128(bytes, _mm_load_si128(row.cast()));
                    _mm_or_si128(bytes, _mm_load_si128(row.add(16).cast()))
                }
            };
            let (first, last) = (
                _mm256_set_m128i(key(1), key(0)),
                _mm256_set_m128i(key(3), key(2)),
            );
            // The halves of the keys 0, 2, 1 and 3.
            let (low, high) = (
                _mm256_unpacklo_epi64(first, last),
                _mm256_unpackhi_epi64(first, last),
            );
            let upper = |numbers| _mm256_srli_epi64::<32>(numbers);
            let mix = |half, at: usize| {
                let lower = _mm256_mul_epu32(half, word(FACTORS[at]));
                _mm256_xor_si256(lower, _mm256_mul_epu32(upper(half), word(FACTORS[at + 1])))
            };
            let mixed = _mm256_xor_si256(mix(low, 0), mix(high, 2));
            let hash = _mm256_xor_si256(mixed, upper(mixed));
            let buckets = upper(_mm256_mul_epu32(hash, word(buckets)));
            let in_order = _mm256_setr_epi32(0, 4, 2, 6, 0, 4, 2, 6);
            let buckets = _mm256_permutevar8x32_epi32(buckets, in_order);
            // SAFETY: four keys and four buckets follow `piece` (the caller's promise).
            unsafe {
                let keys = self.keys.as_mut_ptr().add(piece);
                _mm256_storeu_si256(keys.cast(), first);
                _mm256_storeu_si256(keys.add(2).cast(), last);
                let buckets = _mm256_castsi256_si128(buckets);
                _mm_storeu_si128(self.buckets.as_mut_ptr().add(piece).cast(), buckets);
            }
        }
        true
    }

    /// # Safety
    ///
    /// The processor must have NEON. The number of pieces, one less than that of `bounds`, must be 4 to
    /// [`PIECES_PER_BATCH`], and the text must have 16 bytes after `from + last`.
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    unsafe fn pack_neon(
        &mut self,
        text: &[u8],
        from: usize,
        last: usize,
        bounds: &[u32],
        buckets: u32,
    ) -> bool {
        use std::arch::aarch64::*;
        // SAFETY: the text has bytes after `from` (the caller's promise).
        let text = unsafe { text.as_ptr().add(from) };
        let pieces = bounds.len() - 1;
        let mut rows = [0; PIECES_PER_BATCH];
        let (latest, longest) = write_mask_rows(bounds, &mut rows);
        if latest > last {
            return false;
        }
        self.has_longer |= !has_key(longest);
        let masks: *const u8 = MASKS.0.as_ptr().cast();
        let factors = FACTORS.map(|factor| factor as u32);
        for piece in (0..pieces).step_by(4) {
            // The last four overlap those before them.
            let piece = piece.min(pieces - 4);
            let key = |index: usize| {
                // SAFETY: `piece + 3` is a piece; 16 bytes follow each of their beginnings (the caller's promise); the
                // rows are those of the table of masks, and a row has 32 bytes.
                unsafe {
                    let begin = *bounds.get_unchecked(piece + index) as usize;
                    let row = masks.add(*rows.get_unchecked(piece + index) as usize);
                    let bytes = vandq_u8(vld1q_u8(text.add(begin)), vld1q_u8(row));
                    vreinterpretq_u32_u8(vorrq_u8(bytes, vld1q_u8(row.add(16))))
                }
            };
            let keys = [key(0), key(1), key(2), key(3)];
            // Two numbers times one factor, and the next two times the next factor.
            let mix = |parts, at: usize| {
                let lower = vmull_n_u32(vget_low_u32(parts), factors[at]);
                veorq_u64(lower, vmull_high_n_u32(parts, factors[at + 1]))
            };
            let mix_two = |first, second| {
                let low = mix(vzip1q_u32(first, second), 0);
                let high = mix(vzip2q_u32(first, second), 2);
                vreinterpretq_u32_u64(veorq_u64(low, high))
            };
            let (first, last) = (mix_two(keys[0], keys[1]), mix_two(keys[2], keys[3]));
            let hash = veorq_u32(vuzp1q_u32(first, last), vuzp2q_u32(first, last));
            let low = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(hash), buckets));
            let high = vreinterpretq_u32_u64(vmull_high_n_u32(hash, buckets));
            // SAFETY: four keys and four buckets follow `piece` (the caller's promise).
            unsafe {
                let to = self.keys.as_mut_ptr().add(piece);
                to.cast::<[uint32x4_t; 4]>().write_unaligned(keys);
                let buckets = vuzp2q_u32(low, high);
                vst1q_u32(self.buckets.as_mut_ptr().add(piece), buckets);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_only_on_the_piece() {
        let text = b"abcdefghijklmnopqrstuvwxyz\0";
        for length in 1..=KEY_BYTES {
            for start in 0..text.len() - length {
                let alone = text[start..start + length].to_vec();
                assert_eq!(key(text, start, length), key(&alone, 0, length));
            }
        }
        assert_ne!(key(b"a", 0, 1), key(b"a\0", 0, 2));
        assert!(!has_key(16));
    }

    #[test]
    fn longer_pieces_are_hashed_where_they_may_be_cached() {
        let text: Vec<u8> = (0..9000u32).map(|at| (at * at / 7) as u8).collect();
        let lengths = [3, 16, 15, 17, 40, 1, 600, 31, 2];
        let mut bounds = vec![0];
        for length in lengths.iter().cycle().take(PIECES_PER_BATCH) {
            bounds.push(bounds[bounds.len() - 1] + length);
        }
        let pieces = bounds.len() - 1;
        let both = |processor| [(processor, false), (processor, true)];
        for (processor, may_be_cached) in Processor::all().into_iter().flat_map(both) {
            let mut batch = KeyBatch {
                processor,
                ..KeyBatch::default()
            };
            let mut hashed = 0;
            for _ in 0..100 {
                batch.pack(&text, 5, &bounds, 1000);
                batch.hash_longer(&text, 5, &bounds, 1000, |_| may_be_cached);
                let (keys, buckets) = batch.get(pieces);
                for ((key, bucket), range) in keys.iter().zip(buckets).zip(bounds.windows(2)) {
                    let (start, length) = (5 + range[0] as usize, (range[1] - range[0]) as usize);
                    let expected = key_of(KeySpace::Piece, &text, start, length);
                    assert_eq!(may_have_slot(expected), length <= MAX_PIECE_BYTES);
                    if has_key(length) || may_be_cached {
                        assert_eq!((*key, *bucket), (expected, bucket_of(expected, 1000)));
                    } else {
                        assert!(!may_have_slot(*key));
                    }
                    hashed += u32::from(may_have_slot(*key) && !has_key(length));
                }
            }
            assert_eq!(hashed > 0, may_be_cached);
            // Where none may be cached, the look-ups pause.
            assert_eq!(batch.paused > 0, !may_be_cached);
        }
    }

    #[test]
    fn packing_in_vectors_gives_the_same_keys() {
        let text: Vec<u8> = (0..2000u32).map(|at| (at * at / 7) as u8).collect();
        let buckets = 12_345;
        for from in [0, 3, 700] {
            for pieces in 0..=PIECES_PER_BATCH {
                let mut bounds = vec![5];
                for piece in 0..pieces as u32 {
                    let last = bounds[piece as usize];
                    let end = (last + 1 + (piece * piece + pieces as u32) % 19).min(1300);
                    bounds.extend((end > last).then_some(end));
                    if end == 1300 {
                        break;
                    }
                }
                for text in [&text[..], &text[..from + bounds[bounds.len() - 1] as usize]] {
                    let expected: (Vec<Key>, Vec<u32>) = bounds
                        .windows(2)
                        .map(|pair| {
                            let (start, length) = (from + pair[0] as usize, pair[1] - pair[0]);
                            let key = key(text, start, length as usize);
                            (key, bucket_of(key, buckets))
                        })
                        .unzip();
                    for processor in Processor::all() {
                        let mut batch = KeyBatch {
                            processor,
                            ..KeyBatch::default()
                        };
                        batch.pack(text, from, &bounds, buckets);
                        let (keys, firsts) = batch.get(bounds.len() - 1);
                        assert_eq!((keys, firsts), (&expected.0[..], &expected.1[..]));
                    }
                }
            }
        }
    }
}

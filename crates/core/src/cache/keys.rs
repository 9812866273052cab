//! Short pieces as 16-byte keys, one or many at a time.
//!
//! `unsafe`: [`KeyBatch::pack`] reads 16 bytes of text at each piece, and runs AVX-512 instructions. It checks that
//! the processor has them, and no read is later than 16 bytes before the end of the text.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use crate::processor::{InstructionSet, Processor};

/// The longest piece that a key holds.
pub const KEY_BYTES: usize = 15;
/// Pieces that are looked up together, so that their cache misses overlap.
pub const PIECES_PER_BATCH: usize = 96;

/// A short piece as two numbers: its bytes, and its length in the top byte.
pub type Key = [u64; 2];

/// Where the ids of some bytes are valid. A piece may be a token that merging does not make
/// (`ignore_merges`); then the same bytes inside a longer piece have other ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySpace {
    /// The bytes as a piece, or as a part that has the same ids.
    Piece,
    /// The bytes as a part that may have other ids.
    Part,
}

/// Odd multipliers of the hash.
const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// By length: the masks of both halves of a key, and the length in the top byte. The last entry, for longer
/// pieces, makes a key that no slot has.
const MASKS: [[u64; 4]; KEY_BYTES + 2] = {
    let mut masks = [[0; 4]; KEY_BYTES + 2];
    let mut length = 0;
    while length <= KEY_BYTES {
        let mask: u128 = (1 << (8 * length)) - 1;
        masks[length] = [mask as u64, (mask >> 64) as u64, (length as u64) << 56, 0];
        length += 1;
    }
    masks[length][2] = (length as u64) << 56;
    masks
};

/// The key of the piece of `length` bytes at `start`.
#[inline(always)]
pub fn key(text: &[u8], start: usize, length: usize) -> Key {
    let mut whole = [0; 16];
    match text.get(start..start + 16) {
        Some(bytes) => whole.copy_from_slice(bytes),
        None => {
            let end = text.len().min(start + length.min(16));
            whole[..end - start].copy_from_slice(&text[start..end]);
        }
    }
    masked(whole, length)
}

/// The key of the first bytes.
#[inline(always)]
fn masked(bytes: [u8; 16], length: usize) -> Key {
    let [low, high, tag, _] = MASKS[length.min(KEY_BYTES + 1)];
    let whole = u128::from_le_bytes(bytes);
    [whole as u64 & low, (whole >> 64) as u64 & high | tag]
}

/// The key of a piece, or of a part of one.
#[inline]
pub fn key_of(space: KeySpace, text: &[u8], start: usize, length: usize) -> Key {
    let [low, high] = key(text, start, length);
    let is_part = space == KeySpace::Part;
    [low, high | (u64::from(is_part) << 63)]
}

/// Whether a piece of this length fits a key.
#[inline(always)]
pub fn has_key(length: usize) -> bool {
    length <= KEY_BYTES
}

/// A multiplicative hash. Its upper half depends on every bit of the key.
#[inline(always)]
pub fn hash([low, high]: Key) -> u64 {
    (low ^ high.wrapping_mul(FACTORS[1])).wrapping_mul(FACTORS[0])
}

/// The first bucket of a key. Scales the upper half of the hash to the number of buckets, which need not be
/// a power of two (Lemire, "Fast random integer generation in an interval").
#[inline(always)]
pub fn bucket_of(key: Key, buckets: usize) -> u32 {
    (((hash(key) >> 32) * buckets as u64) >> 32) as u32
}

/// The keys of pieces that are looked up together.
pub struct KeyBatch {
    keys: [Key; PIECES_PER_BATCH],
    /// The first bucket of each key.
    buckets: [u32; PIECES_PER_BATCH],
    #[cfg(target_arch = "x86_64")]
    has_avx512: bool,
}

impl Default for KeyBatch {
    fn default() -> Self {
        Self {
            keys: [[0; 2]; PIECES_PER_BATCH],
            buckets: [0; PIECES_PER_BATCH],
            #[cfg(target_arch = "x86_64")]
            has_avx512: Processor::best().has(InstructionSet::Avx512),
        }
    }
}

impl KeyBatch {
    /// The first keys and their buckets.
    pub fn get(&self, pieces: usize) -> (&[Key], &[u32]) {
        (&self.keys[..pieces], &self.buckets[..pieces])
    }

    /// Packs at most [`PIECES_PER_BATCH`] pieces and finds their buckets. Each two neighbours of `bounds`,
    /// offsets from `from`, bound a piece. `buckets` is less than 2^32.
    #[inline]
    pub fn pack(&mut self, text: &[u8], from: usize, bounds: &[u32], buckets: usize) {
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
                // SAFETY: `from + last + 16` bytes are the text.
                unsafe { self.pack_readable(text, from, last, &bounds[..=packed], buckets) };
            }
        }
        for piece in packed..pieces {
            let length = (bounds[piece + 1] - bounds[piece]) as usize;
            let key = key(text, from + bounds[piece] as usize, length);
            self.keys[piece] = key;
            self.buckets[piece] = bucket_of(key, buckets);
        }
    }

    /// Packs all pieces: eight at a time if the processor can. The number of pieces, one less than that of `bounds`,
    /// is 1 to [`PIECES_PER_BATCH`]. A piece that begins after `last` gets a wrong key.
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
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.has_avx512 && bounds.len() > 8 {
            // SAFETY: `has_avx512` says that the processor has both features; there are eight pieces or more; the
            // rest is the caller's promise.
            unsafe { self.pack_avx512(text, from, last, bounds, buckets as u64) };
            return;
        }
        let places = self.keys.iter_mut().zip(&mut self.buckets);
        for (bounds, (key, bucket)) in bounds.windows(2).zip(places) {
            let length = bounds[1].wrapping_sub(bounds[0]) as usize;
            let start = from + (bounds[0] as usize).min(last);
            // SAFETY: 16 bytes follow `start` (the caller's promise).
            let whole = unsafe {
                let start = text.as_ptr().add(start);
                start.cast::<[u8; 16]>().read_unaligned()
            };
            *key = masked(whole, length);
            *bucket = bucket_of(*key, buckets);
        }
    }

    /// # Safety
    ///
    /// The processor must have AVX-512 F and DQ. The number of pieces, one less than that of `bounds`, must be 8 to
    /// [`PIECES_PER_BATCH`], and the text must have 16 bytes after `from + last`.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn pack_avx512(
        &mut self,
        text: &[u8],
        from: usize,
        last: usize,
        bounds: &[u32],
        buckets: u64,
    ) {
        use std::arch::x86_64::*;
        let word = |number: u64| _mm512_set1_epi64(number as i64);
        // SAFETY: the text has bytes after `from` (the caller's promise).
        let text = unsafe { text.as_ptr().add(from) };
        let (one, too_long) = (word(1), word(KEY_BYTES as u64 + 1));
        let all_buckets = word(buckets);
        // Interleaves the lower halves of eight keys (lanes 0 to 7) with the upper halves (lanes 8 to 15).
        let first_four = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        let last_four = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
        let pieces = bounds.len() - 1;
        for piece in (0..pieces).step_by(8) {
            // The last eight overlap those before them.
            let piece = piece.min(pieces - 8);
            // SAFETY: eight bounds follow `piece`, and another one after them.
            let at = |index| unsafe { _mm256_loadu_si256(bounds.as_ptr().add(index).cast()) };
            let start = _mm512_cvtepu32_epi64(at(piece));
            let length = _mm512_sub_epi64(_mm512_cvtepu32_epi64(at(piece + 1)), start);
            let length = _mm512_min_epu64(length, too_long);
            let bits = _mm512_slli_epi64::<3>(length);
            // A shift by 64 or more gives 0, and 0 - 1 sets all bits.
            let high_bits = _mm512_max_epi64(_mm512_sub_epi64(bits, word(64)), word(0));
            let low_mask = _mm512_sub_epi64(_mm512_sllv_epi64(one, bits), one);
            let high_mask = _mm512_sub_epi64(_mm512_sllv_epi64(one, high_bits), one);
            let start = _mm512_min_epu64(start, word(last as u64));
            // SAFETY: 16 bytes follow each start (the caller's promise).
            let (low, high) = unsafe {
                (
                    _mm512_i64gather_epi64::<1>(start, text.cast()),
                    _mm512_i64gather_epi64::<1>(start, text.add(8).cast()),
                )
            };
            // The key of a longer piece holds no bytes.
            let fits = _mm512_cmplt_epu64_mask(length, too_long);
            let low = _mm512_maskz_and_epi64(fits, low, low_mask);
            let high = _mm512_maskz_and_epi64(fits, high, high_mask);
            let high = _mm512_or_epi64(high, _mm512_slli_epi64::<56>(length));
            let mixed = _mm512_xor_epi64(low, _mm512_mullo_epi64(high, word(FACTORS[1])));
            let hash = _mm512_mullo_epi64(mixed, word(FACTORS[0]));
            let upper = |numbers| _mm512_srli_epi64::<32>(numbers);
            let buckets = _mm512_cvtepi64_epi32(upper(_mm512_mul_epu32(upper(hash), all_buckets)));
            // SAFETY: eight keys and eight buckets follow `piece` (the caller's promise).
            unsafe {
                let keys = self.keys.as_mut_ptr().add(piece);
                _mm512_storeu_si512(
                    keys.cast(),
                    _mm512_permutex2var_epi64(low, first_four, high),
                );
                _mm512_storeu_si512(
                    keys.add(4).cast(),
                    _mm512_permutex2var_epi64(low, last_four, high),
                );
                _mm256_storeu_si256(self.buckets.as_mut_ptr().add(piece).cast(), buckets);
            }
        }
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
                    let (mut eight, mut one) = (KeyBatch::default(), KeyBatch::default());
                    #[cfg(target_arch = "x86_64")]
                    {
                        one.has_avx512 = false;
                    }
                    one.pack(text, from, &bounds, buckets);
                    eight.pack(text, from, &bounds, buckets);
                    assert_eq!(eight.get(bounds.len() - 1), one.get(bounds.len() - 1));
                    for (piece, pair) in bounds.windows(2).enumerate() {
                        let length = (pair[1] - pair[0]) as usize;
                        let key = key(text, from + pair[0] as usize, length);
                        assert_eq!(one.keys[piece], key);
                        assert_eq!(one.buckets[piece], bucket_of(key, buckets));
                    }
                }
            }
        }
    }
}

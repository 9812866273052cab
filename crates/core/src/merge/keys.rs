//! Pieces as keys: their bytes and their length in two numbers, many at a time.
//!
//! `unsafe` because the instructions that do eight at a time may run only on a processor that has them,
//! and read through addresses: [`Lookup::pack`] asks the processor, and whether each of the pieces begins
//! sixteen bytes before the end of the text.
#![allow(unsafe_code)]

use super::cache::Unit;
#[cfg(target_arch = "x86_64")]
use crate::processor::{InstructionSet, Processor};

/// Pieces of at most so many bytes are found by a key that holds them.
pub const KEY_BYTES: usize = 15;
/// Pieces that are looked for before the ids of the first are written, so that waiting for the memory of
/// one is waiting for that of the others too.
pub const BATCH: usize = 96;

/// A short piece as two numbers: its bytes, and its length in the top byte.
pub type Key = [u64; 2];

const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// The bytes of a key, and its length, for each number of bytes; a piece that is too long has a key that
/// no slot has.
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

/// The key of the piece of so many bytes that begins at `start`; the bytes behind it do not count.
#[inline(always)]
pub fn key(text: &[u8], start: usize, length: usize) -> Key {
    let [low, high, tag, _] = MASKS[length.min(KEY_BYTES + 1)];
    let mut whole = [0; 16];
    match text.get(start..start + 16) {
        Some(bytes) => whole.copy_from_slice(bytes),
        None => {
            let end = text.len().min(start + length.min(16));
            whole[..end - start].copy_from_slice(&text[start..end]);
        }
    }
    let whole = u128::from_le_bytes(whole);
    [whole as u64 & low, (whole >> 64) as u64 & high | tag]
}

/// The key of a piece or of a part of one.
#[inline]
pub fn key_of(unit: Unit, text: &[u8], start: usize, length: usize) -> Key {
    let [low, high] = key(text, start, length);
    let is_part = unit == Unit::Part;
    [low, high | (u64::from(is_part) << 63)]
}

/// Whether a piece of so many bytes is found by its key.
#[inline(always)]
pub fn has_key(length: usize) -> bool {
    length <= KEY_BYTES
}

/// A number whose high half depends on every bit of a key.
#[inline(always)]
pub fn hash([low, high]: Key) -> u64 {
    (low ^ high.wrapping_mul(FACTORS[1])).wrapping_mul(FACTORS[0])
}

/// The set where a key may be, before any other, in a table of so many: the upper half of its hash is to all
/// numbers as this one is to all sets.
#[inline(always)]
pub fn set_of(key: Key, sets: usize) -> u32 {
    (((hash(key) >> 32) * sets as u64) >> 32) as u32
}

/// Pieces that are looked for at the same time.
pub struct Lookup {
    keys: [Key; BATCH],
    /// Where the keys may be.
    sets: [u32; BATCH],
    #[cfg(target_arch = "x86_64")]
    does_eight: bool,
}

impl Default for Lookup {
    fn default() -> Self {
        Self {
            keys: [[0; 2]; BATCH],
            sets: [0; BATCH],
            #[cfg(target_arch = "x86_64")]
            does_eight: Processor::best().has(InstructionSet::Avx512),
        }
    }
}

impl Lookup {
    /// The keys of so many pieces, and where they may be.
    pub fn get(&self, pieces: usize) -> (&[Key], &[u32]) {
        (&self.keys[..pieces], &self.sets[..pieces])
    }

    /// Makes the keys of at most [`BATCH`] pieces, which begin at all bounds but the last, counted from
    /// `from`, and finds where they may be in a table of so many sets (less than 2^32).
    #[inline]
    pub fn pack(&mut self, text: &[u8], from: usize, bounds: &[u32], sets: usize) {
        let pieces = bounds.len().saturating_sub(1).min(BATCH);
        if pieces == 0 {
            return;
        }
        let done = self.pack_first(text, from, &bounds[..=pieces], sets);
        for piece in done..pieces {
            let length = (bounds[piece + 1] - bounds[piece]) as usize;
            let key = key(text, from + bounds[piece] as usize, length);
            self.keys[piece] = key;
            self.sets[piece] = set_of(key, sets);
        }
    }

    /// The same for as many as can be done eight at a time; returns how many they were.
    #[cfg(target_arch = "x86_64")]
    fn pack_first(&mut self, text: &[u8], from: usize, bounds: &[u32], sets: usize) -> usize {
        // From a piece on that begins too near to the end, one at a time.
        let near = text.len().saturating_sub(from + 15);
        let is_far = |bound: &u32| (*bound as usize) < near;
        let far = bounds[..bounds.len() - 1].partition_point(is_far) / 8 * 8;
        // Bounds ascend; if not, nothing is read that is not there.
        let are_far = || {
            bounds[..far]
                .iter()
                .fold(true, |all, bound| all & is_far(bound))
        };
        if self.does_eight && far > 0 && are_far() {
            // SAFETY: `Processor` has only instructions that were detected, and these pieces begin before `near`.
            unsafe { self.pack_eights(text, from, &bounds[..=far], sets as u64) };
            return far;
        }
        0
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn pack_first(&mut self, _: &[u8], _: usize, _: &[u32], _: usize) -> usize {
        0
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn pack_eights(&mut self, text: &[u8], from: usize, bounds: &[u32], sets: u64) {
        use std::arch::x86_64::*;
        let word = |number: u64| _mm512_set1_epi64(number as i64);
        let (text, one, most) = (text.as_ptr().add(from), word(1), word(KEY_BYTES as u64 + 1));
        let all_sets = word(sets);
        // The lower halves of eight keys are numbers 0 to 7, the upper ones 8 to 15.
        let first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        let last = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
        for piece in (0..bounds.len() - 1).step_by(8) {
            let at = |index| _mm256_loadu_si256(bounds.as_ptr().add(index).cast());
            let start = _mm512_cvtepu32_epi64(at(piece));
            let length = _mm512_sub_epi64(_mm512_cvtepu32_epi64(at(piece + 1)), start);
            let length = _mm512_min_epu64(length, most);
            let bits = _mm512_slli_epi64::<3>(length);
            // A shift by more bits than there are leaves none, and one less than nothing is all of them.
            let high_bits = _mm512_max_epi64(_mm512_sub_epi64(bits, word(64)), word(0));
            let low_mask = _mm512_sub_epi64(_mm512_sllv_epi64(one, bits), one);
            let high_mask = _mm512_sub_epi64(_mm512_sllv_epi64(one, high_bits), one);
            let low = _mm512_i64gather_epi64::<1>(start, text.cast());
            let high = _mm512_i64gather_epi64::<1>(start, text.add(8).cast());
            // A piece that is too long has no bytes in its key.
            let short = _mm512_cmplt_epu64_mask(length, most);
            let low = _mm512_maskz_and_epi64(short, low, low_mask);
            let high = _mm512_maskz_and_epi64(short, high, high_mask);
            let high = _mm512_or_epi64(high, _mm512_slli_epi64::<56>(length));
            let mixed = _mm512_xor_epi64(low, _mm512_mullo_epi64(high, word(FACTORS[1])));
            let hash = _mm512_mullo_epi64(mixed, word(FACTORS[0]));
            let upper = |numbers| _mm512_srli_epi64::<32>(numbers);
            let sets = _mm512_cvtepi64_epi32(upper(_mm512_mul_epu32(upper(hash), all_sets)));
            let keys = self.keys.as_mut_ptr().add(piece);
            _mm512_storeu_si512(keys.cast(), _mm512_permutex2var_epi64(low, first, high));
            _mm512_storeu_si512(
                keys.add(4).cast(),
                _mm512_permutex2var_epi64(low, last, high),
            );
            _mm256_storeu_si256(self.sets.as_mut_ptr().add(piece).cast(), sets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_the_piece_and_nothing_behind_it() {
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
    fn many_keys_are_those_of_each_piece() {
        let text: Vec<u8> = (0..2000u32).map(|at| (at * at / 7) as u8).collect();
        let sets = 12_345;
        for from in [0, 3, 700] {
            for pieces in 0..=BATCH {
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
                    let (mut eight, mut one) = (Lookup::default(), Lookup::default());
                    #[cfg(target_arch = "x86_64")]
                    {
                        one.does_eight = false;
                    }
                    one.pack(text, from, &bounds, sets);
                    eight.pack(text, from, &bounds, sets);
                    assert_eq!(eight.get(bounds.len() - 1), one.get(bounds.len() - 1));
                    for (piece, pair) in bounds.windows(2).enumerate() {
                        let length = (pair[1] - pair[0]) as usize;
                        let key = key(text, from + pair[0] as usize, length);
                        assert_eq!(one.keys[piece], key);
                        assert_eq!(one.sets[piece], set_of(key, sets));
                    }
                }
            }
        }
    }
}

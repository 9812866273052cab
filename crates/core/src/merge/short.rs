//! Merges a short piece: finds the lowest rank by a scan of all pairs. For pieces of a few cache lines, this
//! is faster than any queue; it does not allocate.
//!
//! `unsafe`: [`merge_short`] calls code that is compiled for AVX2. It checks that the processor has it.
#![allow(unsafe_code)]

use crate::pair_table::{PairTable, NO_MERGE};
#[cfg(target_arch = "x86_64")]
use crate::processor::{InstructionSet, Processor};

/// The most symbols of a short piece.
pub const MAX_SHORT: usize = u64::BITS as usize;
/// Most pieces have at most this many symbols; they get a smaller array.
const MAX_VERY_SHORT: usize = 16;
/// The bits of an index in a key.
const INDEX_BITS: u32 = MAX_SHORT.trailing_zeros();
/// The key of a pair without a merge.
const NONE: i32 = i32::MAX;

/// Whether a piece of this length is short, and the ranks of a table fit a key.
#[inline(always)]
pub fn is_short(table: &PairTable, length: usize) -> bool {
    length <= MAX_SHORT && table.ranks() < 1 << (i32::BITS - 1 - INDEX_BITS)
}

/// Merges the symbols of a short piece in place. Returns how many remain.
pub fn merge_short(table: &PairTable, symbols: &mut [u32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if Processor::best().has(InstructionSet::Avx2) {
        // SAFETY: `Processor` reports only detected instructions.
        return unsafe { merge_avx2(table, symbols) };
    }
    merge_by_length(table, symbols)
}

/// The compiler uses the processor's instructions for the least of several numbers and for single bits: merging takes a
/// quarter less time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn merge_avx2(table: &PairTable, symbols: &mut [u32]) -> usize {
    merge_by_length(table, symbols)
}

#[inline(always)]
fn merge_by_length(table: &PairTable, symbols: &mut [u32]) -> usize {
    if let [left, right] = symbols {
        // Half of the pieces of random bytes.
        let rank = table.rank(*left, *right);
        if rank == NO_MERGE {
            return 2;
        }
        *left = table.product(rank);
        return 1;
    }
    if symbols.len() <= MAX_VERY_SHORT {
        merge::<MAX_VERY_SHORT>(table, symbols)
    } else {
        merge::<MAX_SHORT>(table, symbols)
    }
}

/// Merges at most `LENGTH` symbols. Symbols keep their places until the end: a symbol that is merged into its
/// left neighbour only loses its bit.
#[inline(always)]
fn merge<const LENGTH: usize>(table: &PairTable, symbols: &mut [u32]) -> usize {
    let length = symbols.len().min(LENGTH);
    let symbols = &mut symbols[..length];
    // The rank of each pair in the upper bits, its index in the lower ones. So the least key is the
    // leftmost pair of the lowest rank.
    let mut keys = [NONE; LENGTH];
    for (index, pair) in symbols.windows(2).enumerate() {
        keys[index] = key(table.rank(pair[0], pair[1]), index);
    }
    let mut alive = u64::MAX
        .checked_shr((MAX_SHORT - length) as u32)
        .unwrap_or(0);
    let mut next = least(&keys);
    while next != NONE {
        let (at, rank) = (next as usize % MAX_SHORT, next as u32 >> INDEX_BITS);
        let right = alive & (u64::MAX << at << 1);
        let after = right & right.wrapping_sub(1);
        alive ^= right ^ after;
        keys[at % LENGTH] = NONE;
        keys[right.trailing_zeros() as usize % LENGTH] = NONE;
        let product = table.product(rank);
        symbols[at] = product;
        let left = (alive & !(u64::MAX << at)).checked_ilog2();
        if let Some(left) = left {
            keys[left as usize % LENGTH] = NONE;
        }
        // The scan overlaps the lookups of the two new pairs.
        next = least(&keys);
        if let Some(&after) = symbols.get(after.trailing_zeros() as usize) {
            let key = key(table.rank(product, after), at);
            keys[at % LENGTH] = key;
            next = next.min(key);
        }
        if let Some(left) = left {
            let left = left as usize;
            let key = key(table.rank(symbols[left], product), left);
            keys[left % LENGTH] = key;
            next = next.min(key);
        }
    }
    let mut length = 0;
    while alive != 0 {
        symbols[length] = symbols[alive.trailing_zeros() as usize];
        alive &= alive - 1;
        length += 1;
    }
    length
}

#[inline(always)]
fn key(rank: u32, index: usize) -> i32 {
    if rank == NO_MERGE {
        NONE
    } else {
        ((rank << INDEX_BITS) | index as u32) as i32
    }
}

/// The least key, computed in four lanes so that the compiler uses vector registers.
#[inline(always)]
pub fn least<const LENGTH: usize>(keys: &[i32; LENGTH]) -> i32 {
    let mut lanes = [i32::MAX; 4];
    for keys in keys.chunks_exact(4) {
        for (lane, &key) in lanes.iter_mut().zip(keys) {
            *lane = key.min(*lane);
        }
    }
    lanes.into_iter().fold(i32::MAX, i32::min)
}

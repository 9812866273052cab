//! Merging a short piece: look at every pair each time. No allocation, and faster than anything else as
//! long as everything is in a few cache lines.

use super::table::{PairTable, NO_MERGE};

/// The longest piece in symbols that is merged this way.
pub const SHORT: usize = u64::BITS as usize;
/// Most pieces are no longer.
const SHORTER: usize = 16;
/// What a place in a piece takes in a key.
const PLACE_BITS: u32 = SHORT.trailing_zeros();
/// The key where nothing is merged.
const NONE: i32 = i32::MAX;

/// Merges the symbols, at most [`SHORT`], in place; returns how many are left.
pub fn merge_short(table: &PairTable, symbols: &mut [u32]) -> usize {
    if table.ranks() >= 1 << (i32::BITS - 1 - PLACE_BITS) {
        merge_plainly(table, symbols)
    } else if symbols.len() <= SHORTER {
        merge::<SHORTER>(table, symbols)
    } else {
        merge::<SHORT>(table, symbols)
    }
}

/// The same of at most `LENGTH` symbols. Nothing is moved before the end: a symbol that was merged into
/// its left neighbour loses its bit.
fn merge<const LENGTH: usize>(table: &PairTable, symbols: &mut [u32]) -> usize {
    let length = symbols.len().min(LENGTH);
    let symbols = &mut symbols[..length];
    // The rank of each symbol and its right neighbour, then the place, so that the least is the next.
    let mut keys = [NONE; LENGTH];
    for (place, pair) in symbols.windows(2).enumerate() {
        keys[place] = key(table.rank(pair[0], pair[1]), place);
    }
    let mut left_over = u64::MAX.checked_shr((SHORT - length) as u32).unwrap_or(0);
    let mut due = least(&keys);
    while due != NONE {
        let (place, rank) = (due as usize % SHORT, due as u32 >> PLACE_BITS);
        let behind = left_over & (u64::MAX << place << 1);
        let after = behind & behind.wrapping_sub(1);
        left_over ^= behind ^ after;
        keys[place % LENGTH] = NONE;
        keys[behind.trailing_zeros() as usize % LENGTH] = NONE;
        let product = table.product(rank);
        symbols[place] = product;
        let on_left = (left_over & !(u64::MAX << place)).checked_ilog2();
        if let Some(before) = on_left {
            keys[before as usize % LENGTH] = NONE;
        }
        // What else is due is known while the two new pairs are still looked up.
        due = least(&keys);
        if let Some(&after) = symbols.get(after.trailing_zeros() as usize) {
            let key = key(table.rank(product, after), place);
            keys[place % LENGTH] = key;
            due = due.min(key);
        }
        if let Some(before) = on_left {
            let before = before as usize;
            let key = key(table.rank(symbols[before], product), before);
            keys[before % LENGTH] = key;
            due = due.min(key);
        }
    }
    let mut length = 0;
    while left_over != 0 {
        symbols[length] = symbols[left_over.trailing_zeros() as usize];
        left_over &= left_over - 1;
        length += 1;
    }
    length
}

#[inline(always)]
fn key(rank: u32, place: usize) -> i32 {
    if rank == NO_MERGE {
        NONE
    } else {
        ((rank << PLACE_BITS) | place as u32) as i32
    }
}

/// The least of some keys, in lanes as vector registers have them.
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

/// The same as the definition has it, for any ranks.
pub fn merge_plainly(table: &PairTable, symbols: &mut [u32]) -> usize {
    let mut length = symbols.len();
    loop {
        let pairs = symbols[..length].windows(2).zip(0..);
        let ranks = pairs.map(|(pair, place)| (table.rank(pair[0], pair[1]), place));
        let Some((rank, place)) = ranks.min().filter(|least| least.0 != NO_MERGE) else {
            return length;
        };
        symbols[place] = table.product(rank);
        symbols.copy_within(place + 2..length, place + 1);
        length -= 1;
    }
}

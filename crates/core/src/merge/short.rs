//! Merging a short piece: look at every pair each time. No allocation, and faster than a queue as
//! long as everything is in a few cache lines.

use super::table::{PairTable, NO_MERGE};

/// The longest piece in symbols that is merged this way.
pub const SHORT: usize = 64;

/// Merges the symbols, at most [`SHORT`], in place; returns how many are left.
pub fn merge_short(table: &PairTable, symbols: &mut [u32]) -> usize {
    let mut length = symbols.len();
    // The rank of each symbol and its right neighbour.
    let mut ranks = [NO_MERGE; SHORT];
    for i in 1..length {
        ranks[i - 1] = table.rank(symbols[i - 1], symbols[i]);
    }
    while length > 1 {
        let (mut best, mut rank) = (0, NO_MERGE);
        for (i, &candidate) in ranks[..length - 1].iter().enumerate() {
            if candidate < rank {
                (best, rank) = (i, candidate);
            }
        }
        if rank == NO_MERGE {
            break;
        }
        symbols[best] = table.product(rank);
        symbols.copy_within(best + 2..length, best + 1);
        ranks.copy_within(best + 1..length - 1, best);
        length -= 1;
        if best + 1 < length {
            ranks[best] = table.rank(symbols[best], symbols[best + 1]);
        }
        if best > 0 {
            ranks[best - 1] = table.rank(symbols[best - 1], symbols[best]);
        }
    }
    length
}

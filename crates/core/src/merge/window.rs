//! Merges a window of a long piece: a scan as for a short piece, but with the lowest rank of each block of
//! 32 symbols at hand. The state fits the L1 cache.

use super::short::least;
use crate::pair_table::PairTable;

/// Symbols of a block, and blocks of a window.
const BLOCK: usize = u32::BITS as usize;
/// The most symbols of a window.
pub const WINDOW: usize = BLOCK * BLOCK;
const BLOCK_BITS: u32 = BLOCK.trailing_zeros();
/// The rank of a pair without a merge.
const NONE: i32 = i32::MAX;

/// The symbols of a window while they are merged.
pub struct Window {
    symbols: [u32; WINDOW],
    /// A bit for each symbol that was not merged into its left neighbour.
    alive: [u32; BLOCK],
    /// The rank of the pair at each symbol.
    ranks: [[i32; BLOCK]; BLOCK],
    /// The lowest rank of each block in the upper bits, the block in the lower ones. The least key is the
    /// block of the next merge.
    blocks: [i32; BLOCK],
}

impl Window {
    /// Whether the ranks of a table fit a key.
    pub fn fits(table: &PairTable) -> bool {
        table.ranks() < 1 << (i32::BITS - 1 - BLOCK_BITS)
    }

    /// An empty window.
    pub fn new() -> Self {
        Self {
            symbols: [0; WINDOW],
            alive: [0; BLOCK],
            ranks: [[NONE; BLOCK]; BLOCK],
            blocks: [NONE; BLOCK],
        }
    }

    /// Merges at most [`WINDOW`] symbols. Calls `token` with each resulting symbol and the index it begins
    /// at.
    pub fn merge(&mut self, table: &PairTable, symbols: &[u32], mut token: impl FnMut(u32, usize)) {
        self.load(table, symbols);
        let mut next = least(&self.blocks);
        while next != NONE {
            next = self.merge_block(table, next as usize % BLOCK, next >> BLOCK_BITS);
        }
        for (block, &alive) in self.alive.iter().enumerate() {
            let mut bits = alive;
            while bits != 0 {
                let index = block * BLOCK + bits.trailing_zeros() as usize;
                token(self.symbols[index % WINDOW], index);
                bits &= bits - 1;
            }
        }
    }

    fn load(&mut self, table: &PairTable, symbols: &[u32]) {
        let length = symbols.len().min(WINDOW);
        self.symbols[..length].copy_from_slice(&symbols[..length]);
        self.alive = [0; BLOCK];
        self.blocks = [NONE; BLOCK];
        for block in 0..length.div_ceil(BLOCK) {
            let start = block * BLOCK;
            let unused = BLOCK - (length - start).min(BLOCK);
            self.alive[block] = u32::MAX >> unused;
            self.ranks[block] = [NONE; BLOCK];
            let pairs = symbols[start..length].windows(2);
            for (rank, pair) in self.ranks[block].iter_mut().zip(pairs) {
                *rank = signed(table.rank(pair[0], pair[1]));
            }
            self.update_block(block);
        }
    }

    /// Applies the merges of the lowest rank in a block. Returns the key of the next block.
    #[inline(always)]
    fn merge_block(&mut self, table: &PairTable, block: usize, rank: i32) -> i32 {
        let product = table.product(rank as u32);
        let mut pairs = pairs_of_rank(&self.ranks[block], rank);
        while pairs != 0 {
            let pair = pairs.trailing_zeros() as usize;
            pairs &= pairs - 1;
            if self.ranks[block][pair % BLOCK] != rank {
                continue; // merged into its left neighbour
            }
            let at = block * BLOCK + pair;
            let (left, right) = self.replace_pair(at, product);
            // The scan overlaps the lookups of the two new pairs.
            let is_last = pairs == 0;
            let mut next = NONE;
            if is_last {
                self.update_block(block);
                next = least(&self.blocks);
            }
            let mut lowest = NONE;
            if let Some(right) = right {
                let rank = signed(table.rank(product, self.symbols[right % WINDOW]));
                next = next.min(self.set_rank(at, rank));
                lowest = rank;
            }
            if let Some(left) = left {
                let rank = signed(table.rank(self.symbols[left % WINDOW], product));
                next = next.min(self.set_rank(left, rank));
                lowest = lowest.min(rank);
            }
            if is_last {
                return next;
            }
            if lowest <= rank {
                break; // a new pair may precede the remaining ones
            }
        }
        self.update_block(block);
        least(&self.blocks)
    }

    /// Replaces the pair at a symbol by its product. Returns the neighbours of the product; the ranks of the
    /// pairs with them are not set yet.
    #[inline(always)]
    fn replace_pair(&mut self, at: usize, product: u32) -> (Option<usize>, Option<usize>) {
        let block = at / BLOCK % BLOCK;
        self.symbols[at % WINDOW] = product;
        self.ranks[block][at % BLOCK] = NONE;
        let left = self.previous(at);
        if let Some(left) = left {
            self.clear_rank(left, block);
        }
        let Some(right) = self.next(at) else {
            return (left, None); // unreachable: a pair with a rank has a right symbol
        };
        self.alive[right / BLOCK % BLOCK] &= !(1 << (right % BLOCK));
        self.clear_rank(right, block);
        (left, self.next(right))
    }

    /// Clears a rank. Updates its block, unless that is the block `current`, which is updated later.
    #[inline(always)]
    fn clear_rank(&mut self, at: usize, current: usize) {
        let block = at / BLOCK % BLOCK;
        self.ranks[block][at % BLOCK] = NONE;
        if block != current {
            self.update_block(block);
        }
    }

    /// Sets a cleared rank. Returns its key.
    #[inline(always)]
    fn set_rank(&mut self, at: usize, rank: i32) -> i32 {
        if rank == NONE {
            return NONE;
        }
        let block = at / BLOCK % BLOCK;
        self.ranks[block][at % BLOCK] = rank;
        let key = block_key(rank, block);
        self.blocks[block] = self.blocks[block].min(key);
        key
    }

    /// Recomputes the key of a block.
    #[inline(always)]
    fn update_block(&mut self, block: usize) {
        self.blocks[block] = block_key(least(&self.ranks[block]), block);
    }

    /// The next symbol.
    #[inline(always)]
    fn next(&self, at: usize) -> Option<usize> {
        let mut block = at / BLOCK % BLOCK;
        let mut later = self.alive[block] & (u32::MAX << (at % BLOCK) << 1);
        while later == 0 {
            block += 1;
            later = *self.alive.get(block)?;
        }
        Some(block * BLOCK + later.trailing_zeros() as usize)
    }

    /// The previous symbol.
    #[inline(always)]
    fn previous(&self, at: usize) -> Option<usize> {
        let mut block = at / BLOCK % BLOCK;
        let mut earlier = self.alive[block] & !(u32::MAX << (at % BLOCK));
        while earlier == 0 {
            block = block.checked_sub(1)?;
            earlier = self.alive[block];
        }
        Some(block * BLOCK + earlier.ilog2() as usize)
    }
}

/// A rank in the upper bits and a block in the lower ones.
#[inline(always)]
fn block_key(rank: i32, block: usize) -> i32 {
    if rank == NONE {
        NONE
    } else {
        rank << BLOCK_BITS | block as i32
    }
}

#[inline(always)]
fn signed(rank: u32) -> i32 {
    rank.min(NONE as u32) as i32
}

/// A bit for each pair of a rank.
#[inline(always)]
fn pairs_of_rank(ranks: &[i32; BLOCK], rank: i32) -> u32 {
    let ranks = ranks.iter().enumerate();
    ranks.fold(0, |pairs, (index, &found)| {
        pairs | (u32::from(found == rank) << index)
    })
}

//! Merging a window of a long piece: as a short piece is merged, but where to look first is known of
//! every few places. All of it fits the nearest cache.

use super::short::least;
use super::table::PairTable;

/// Symbols of a block, and blocks of a window.
const BLOCK: usize = u32::BITS as usize;
/// The most symbols of a window.
pub const WINDOW: usize = BLOCK * BLOCK;
const BLOCK_BITS: u32 = BLOCK.trailing_zeros();
/// The rank of what is not merged.
const NONE: i32 = i32::MAX;

/// The symbols of a window while they are merged.
pub struct Window {
    symbols: [u32; WINDOW],
    /// A bit for each symbol that was not merged into its left neighbour.
    left_over: [u32; BLOCK],
    /// The rank of each symbol and its right neighbour.
    ranks: [[i32; BLOCK]; BLOCK],
    /// The least rank of each block, then the block: the least of these is where the next merge is.
    blocks: [i32; BLOCK],
}

impl Window {
    /// Whether there is room for the ranks of a table.
    pub fn fits(table: &PairTable) -> bool {
        table.ranks() < 1 << (i32::BITS - 1 - BLOCK_BITS)
    }

    /// Room for a window.
    pub fn new() -> Self {
        Self {
            symbols: [0; WINDOW],
            left_over: [0; BLOCK],
            ranks: [[NONE; BLOCK]; BLOCK],
            blocks: [NONE; BLOCK],
        }
    }

    /// Merges at most [`WINDOW`] symbols; calls `token` with each that is left, and where it begins.
    pub fn merge(&mut self, table: &PairTable, symbols: &[u32], mut token: impl FnMut(u32, usize)) {
        self.begin(table, symbols);
        let mut due = least(&self.blocks);
        while due != NONE {
            due = self.merge_block(table, due as usize % BLOCK, due >> BLOCK_BITS);
        }
        for (block, &left_over) in self.left_over.iter().enumerate() {
            let mut places = left_over;
            while places != 0 {
                let place = block * BLOCK + places.trailing_zeros() as usize;
                token(self.symbols[place % WINDOW], place);
                places &= places - 1;
            }
        }
    }

    fn begin(&mut self, table: &PairTable, symbols: &[u32]) {
        let length = symbols.len().min(WINDOW);
        self.symbols[..length].copy_from_slice(&symbols[..length]);
        self.left_over = [0; BLOCK];
        self.blocks = [NONE; BLOCK];
        for block in 0..length.div_ceil(BLOCK) {
            let start = block * BLOCK;
            let beyond = BLOCK - (length - start).min(BLOCK);
            self.left_over[block] = u32::MAX >> beyond;
            self.ranks[block] = [NONE; BLOCK];
            let pairs = symbols[start..length].windows(2);
            for (rank, pair) in self.ranks[block].iter_mut().zip(pairs) {
                *rank = signed(table.rank(pair[0], pair[1]));
            }
            self.look(block);
        }
    }

    /// Does what merges of the least rank there are in the first block that has it; returns what is due
    /// then.
    #[inline(always)]
    fn merge_block(&mut self, table: &PairTable, block: usize, rank: i32) -> i32 {
        let product = table.product(rank as u32);
        let mut places = places_of(&self.ranks[block], rank);
        while places != 0 {
            let place = places.trailing_zeros() as usize;
            places &= places - 1;
            if self.ranks[block][place % BLOCK] != rank {
                continue; // it was joined to its left neighbour
            }
            let at = block * BLOCK + place;
            let (before, after) = self.join(at, product);
            // What else is due is known while the two new pairs are still looked up.
            let is_last = places == 0;
            let mut due = NONE;
            if is_last {
                self.look(block);
                due = least(&self.blocks);
            }
            let mut lowest = NONE;
            if let Some(after) = after {
                let rank = signed(table.rank(product, self.symbols[after % WINDOW]));
                due = due.min(self.set(at, rank));
                lowest = rank;
            }
            if let Some(before) = before {
                let rank = signed(table.rank(self.symbols[before % WINDOW], product));
                due = due.min(self.set(before, rank));
                lowest = lowest.min(rank);
            }
            if is_last {
                return due;
            }
            if lowest <= rank {
                break; // that is due before the next place
            }
        }
        self.look(block);
        least(&self.blocks)
    }

    /// Joins a symbol to its right neighbour; returns where its new neighbours are. The ranks of the pairs
    /// with them are left to be looked up.
    #[inline(always)]
    fn join(&mut self, at: usize, product: u32) -> (Option<usize>, Option<usize>) {
        let block = at / BLOCK % BLOCK;
        self.symbols[at % WINDOW] = product;
        self.ranks[block][at % BLOCK] = NONE;
        let before = self.previous(at);
        if let Some(before) = before {
            self.unset(before, block);
        }
        let Some(right) = self.next(at) else {
            return (before, None); // never: there was a rank
        };
        self.left_over[right / BLOCK % BLOCK] &= !(1 << (right % BLOCK));
        self.unset(right, block);
        (before, self.next(right))
    }

    /// Takes a rank away; looks at its block, if that is not the one that is being merged.
    #[inline(always)]
    fn unset(&mut self, at: usize, merged: usize) {
        let block = at / BLOCK % BLOCK;
        self.ranks[block][at % BLOCK] = NONE;
        if block != merged {
            self.look(block);
        }
    }

    /// Sets a rank that was not set; returns it with its block.
    #[inline(always)]
    fn set(&mut self, at: usize, rank: i32) -> i32 {
        if rank == NONE {
            return NONE;
        }
        let block = at / BLOCK % BLOCK;
        self.ranks[block][at % BLOCK] = rank;
        let rank = in_block(rank, block);
        self.blocks[block] = self.blocks[block].min(rank);
        rank
    }

    /// Finds the least rank of a block.
    #[inline(always)]
    fn look(&mut self, block: usize) {
        self.blocks[block] = in_block(least(&self.ranks[block]), block);
    }

    /// The symbol behind a place.
    #[inline(always)]
    fn next(&self, at: usize) -> Option<usize> {
        let mut block = at / BLOCK % BLOCK;
        let mut behind = self.left_over[block] & (u32::MAX << (at % BLOCK) << 1);
        while behind == 0 {
            block += 1;
            behind = *self.left_over.get(block)?;
        }
        Some(block * BLOCK + behind.trailing_zeros() as usize)
    }

    /// The symbol before a place.
    #[inline(always)]
    fn previous(&self, at: usize) -> Option<usize> {
        let mut block = at / BLOCK % BLOCK;
        let mut before = self.left_over[block] & !(u32::MAX << (at % BLOCK));
        while before == 0 {
            block = block.checked_sub(1)?;
            before = self.left_over[block];
        }
        Some(block * BLOCK + before.ilog2() as usize)
    }
}

/// A rank and the block that it is in.
#[inline(always)]
fn in_block(rank: i32, block: usize) -> i32 {
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

/// A bit for each place that has a rank.
#[inline(always)]
fn places_of(ranks: &[i32; BLOCK], rank: i32) -> u32 {
    let bits = ranks.iter().enumerate();
    bits.fold(0, |places, (place, &found)| {
        places | (u32::from(found == rank) << place)
    })
}

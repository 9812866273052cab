//! Merges any number of symbols in O(n log n): a priority queue of pairs over a doubly linked list.

use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, Poller};
use crate::pair_table::{PairTable, NO_MERGE};
use crate::reserve::{collect, copied};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The end of the list. Also the next symbol of a symbol that was merged into its left neighbour.
const NONE: u32 = u32::MAX;

/// Merges fewer than 2^32 symbols. Calls `merged` with the rank of each merge and the indices of its two
/// symbols, in order, then `token` with each resulting symbol and the index it begins at.
pub fn merge_queued(
    table: &PairTable,
    symbols: &[u32],
    interrupt: &Interrupt<'_>,
    mut merged: impl FnMut(u32, u32, u32),
    mut token: impl FnMut(u32, usize),
) -> Result<()> {
    let mut list = SymbolList::new(table, symbols)?;
    let mut poller = Poller::new(interrupt);
    while let Some(Reverse(entry)) = list.queue.pop() {
        poller.advance(1)?;
        list.reserve(2)?; // a merge queues two pairs
        let (rank, left) = ((entry >> 32) as u32, entry as u32);
        if let Some(right) = list.merge(rank, left) {
            merged(rank, left, right);
        }
    }
    let mut at = 0;
    while let Some(&symbol) = list.symbols.get(at) {
        token(symbol, at);
        at = list.next[at] as usize;
    }
    Ok(())
}

struct SymbolList<'a> {
    table: &'a PairTable,
    symbols: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// Rank and index of a pair: the lowest rank first, then the leftmost pair.
    queue: BinaryHeap<Reverse<u64>>,
}

impl<'a> SymbolList<'a> {
    fn new(table: &'a PairTable, symbols: &[u32]) -> Result<Self> {
        let length = symbols.len() as u32;
        let neighbor = |at: u32| if at < length { at } else { NONE };
        let mut list = Self {
            table,
            symbols: copied(symbols)?,
            next: collect((0..length).map(|at| neighbor(at + 1)))?,
            previous: collect((0..length).map(|at| at.checked_sub(1).unwrap_or(NONE)))?,
            queue: BinaryHeap::new(),
        };
        list.reserve(symbols.len())?;
        for left in 0..length {
            list.enqueue(left);
        }
        Ok(list)
    }

    /// Makes room in the queue for so many more pairs.
    fn reserve(&mut self, pairs: usize) -> Result<()> {
        if self.queue.capacity() - self.queue.len() >= pairs {
            return Ok(());
        }
        let reserved = self.queue.try_reserve(pairs);
        let reserved = reserved.or_else(|_| self.queue.try_reserve_exact(pairs));
        let bytes = 8 * (self.queue.len() + pairs);
        reserved.map_err(|_| Error::OutOfMemory { bytes })
    }

    /// The rank of the pair at `left`, and the index of its right symbol. None for the last symbol and for
    /// a symbol that was merged away.
    fn pair(&self, left: u32) -> Option<(u32, u32)> {
        let right = self.next[left as usize];
        (right != NONE).then(|| {
            let (left, symbol) = (self.symbols[left as usize], self.symbols[right as usize]);
            (self.table.rank(left, symbol), right)
        })
    }

    /// Queues the pair at `left` if it has a merge.
    fn enqueue(&mut self, left: u32) {
        if let Some((rank, _)) = self.pair(left).filter(|pair| pair.0 != NO_MERGE) {
            let entry = (u64::from(rank) << 32) | u64::from(left);
            self.queue.push(Reverse(entry));
        }
    }

    /// Merges the pair at `left` if it still has this rank. Returns the index of its right symbol. Entries of
    /// changed pairs stay in the queue and fail this test (lazy deletion).
    fn merge(&mut self, rank: u32, left: u32) -> Option<u32> {
        let (_, right) = self.pair(left).filter(|pair| pair.0 == rank)?;
        let at = left as usize;
        self.symbols[at] = self.table.product(rank);
        let after = self.next[right as usize];
        self.next[at] = after;
        if after != NONE {
            self.previous[after as usize] = left;
        }
        self.next[right as usize] = NONE;
        self.enqueue(left);
        if self.previous[at] != NONE {
            self.enqueue(self.previous[at]);
        }
        Some(right)
    }
}

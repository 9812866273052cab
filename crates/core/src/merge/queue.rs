//! Merging any number of symbols in O(n log n): a queue of pairs over a doubly linked list.

use super::table::{PairTable, NO_MERGE};
use crate::error::Result;
use crate::interrupt::Interrupt;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The end of the list, or a symbol that was merged into its left neighbour.
const NONE: u32 = u32::MAX;
/// Merges between two looks at whether to stop.
const PATIENCE: u32 = 1 << 16;

/// Merges fewer than 2^32 symbols. Calls `merged` with the rank and both places of each merge, in order,
/// and `token` with each symbol that is left, and where it begins.
pub fn merge_queued(
    table: &PairTable,
    symbols: &[u32],
    interrupt: &Interrupt<'_>,
    mut merged: impl FnMut(u32, u32, u32),
    mut token: impl FnMut(u32, usize),
) -> Result<()> {
    let mut list = List::new(table, symbols);
    for left in 0..symbols.len() as u32 {
        list.enqueue(left);
    }
    let mut patience = PATIENCE;
    while let Some(Reverse(entry)) = list.queue.pop() {
        patience -= 1;
        if patience == 0 {
            interrupt.poll()?;
            patience = PATIENCE;
        }
        let (rank, left) = ((entry >> 32) as u32, entry as u32);
        if let Some(right) = list.join(rank, left) {
            merged(rank, left, right);
        }
    }
    let mut at = if symbols.is_empty() { NONE } else { 0 };
    while at != NONE {
        token(list.symbols[at as usize], at as usize);
        at = list.next[at as usize];
    }
    Ok(())
}

struct List<'a> {
    table: &'a PairTable,
    symbols: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// A rank and a place: the lowest rank first, then the leftmost place.
    queue: BinaryHeap<Reverse<u64>>,
}

impl<'a> List<'a> {
    fn new(table: &'a PairTable, symbols: &[u32]) -> Self {
        let length = symbols.len() as u32;
        let mut next: Vec<u32> = (1..=length).collect();
        if let Some(last) = next.last_mut() {
            *last = NONE;
        }
        Self {
            table,
            symbols: symbols.to_vec(),
            next,
            previous: [NONE]
                .into_iter()
                .chain(0..length)
                .take(length as usize)
                .collect(),
            queue: BinaryHeap::with_capacity(symbols.len()),
        }
    }

    /// The rank of the pair that begins at `left`, and its right place; none for the last symbol and for
    /// one that was merged away.
    fn pair(&self, left: u32) -> Option<(u32, u32)> {
        let right = self.next[left as usize];
        (right != NONE).then(|| {
            let (left, symbol) = (self.symbols[left as usize], self.symbols[right as usize]);
            (self.table.rank(left, symbol), right)
        })
    }

    /// Queues the pair that begins at `left`, if a merge joins it.
    fn enqueue(&mut self, left: u32) {
        if let Some((rank, _)) = self.pair(left).filter(|pair| pair.0 != NO_MERGE) {
            let entry = (u64::from(rank) << 32) | u64::from(left);
            self.queue.push(Reverse(entry));
        }
    }

    /// Joins the pair at a place if its rank is still this, and returns its right place. An entry whose
    /// symbols have changed is void.
    fn join(&mut self, rank: u32, left: u32) -> Option<u32> {
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

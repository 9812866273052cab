//! Merging a long piece in O(n log n): a queue of pairs over a doubly linked list of symbols.

use super::queue::{Buckets, Heap, Queue};
use super::table::{PairTable, NO_MERGE};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;

/// The end of the list, or a symbol that was merged into its left neighbour.
const NONE: u32 = u32::MAX;
/// Merges between two looks at whether to stop.
const PATIENCE: u32 = 1 << 16;
/// From so many symbols on, setting up a bucket for every rank pays.
const WORTH_BUCKETS: usize = 1 << 11;

/// Merges the symbols in place; returns how many are left.
pub fn merge_long(
    table: &PairTable,
    symbols: &mut [u32],
    interrupt: &Interrupt<'_>,
) -> Result<usize> {
    merge_and_tell(table, symbols, interrupt, |_| {})
}

/// The same; calls `symbol` with the index that each symbol that is left began at.
pub fn merge_and_tell(
    table: &PairTable,
    symbols: &mut [u32],
    interrupt: &Interrupt<'_>,
    symbol: impl FnMut(usize),
) -> Result<usize> {
    let list = if symbols.len() < WORTH_BUCKETS {
        merge(table, symbols, Heap::default(), interrupt)
    } else {
        merge(table, symbols, Buckets::new(table.ranks()), interrupt)
    };
    Ok(list?.compact(symbol))
}

fn merge<'a>(
    table: &PairTable,
    symbols: &'a mut [u32],
    mut queue: impl Queue,
    interrupt: &Interrupt<'_>,
) -> Result<List<'a>> {
    let mut list = List::new(symbols)?;
    for left in 0..list.symbols.len() as u32 {
        if left % PATIENCE == 0 {
            interrupt.poll()?;
        }
        list.enqueue(table, left, &mut queue);
    }
    let mut patience = PATIENCE;
    while let Some((rank, left)) = queue.pop() {
        patience -= 1;
        if patience == 0 {
            interrupt.poll()?;
            patience = PATIENCE;
        }
        // An entry whose symbols have changed since is void.
        let Some(right) = list.right_of(left) else {
            continue;
        };
        if table.rank(list.symbol(left), list.symbol(right)) != rank {
            continue;
        }
        list.join(left, right, table.product(rank));
        list.enqueue(table, left, &mut queue);
        let previous = list.previous[left as usize];
        if previous != NONE {
            list.enqueue(table, previous, &mut queue);
        }
    }
    Ok(list)
}

struct List<'a> {
    symbols: &'a mut [u32],
    next: Vec<u32>,
    previous: Vec<u32>,
}

impl<'a> List<'a> {
    fn new(symbols: &'a mut [u32]) -> Result<Self> {
        let length = u32::try_from(symbols.len())
            .ok()
            .filter(|&length| length < NONE)
            .ok_or_else(|| {
                let message = "a piece of 4 GiB or more cannot be merged; split the text";
                Error::Option(message.to_owned())
            })?;
        let mut next: Vec<u32> = (1..=length).collect();
        if let Some(last) = next.last_mut() {
            *last = NONE;
        }
        Ok(Self {
            symbols,
            next,
            previous: [NONE]
                .into_iter()
                .chain(0..length)
                .take(length as usize)
                .collect(),
        })
    }

    fn symbol(&self, at: u32) -> u32 {
        self.symbols[at as usize]
    }

    /// The right neighbour; none for the last symbol and for one that was merged away.
    fn right_of(&self, at: u32) -> Option<u32> {
        let next = self.next[at as usize];
        (next != NONE).then_some(next)
    }

    /// Queues the pair that begins at `left`, if a merge joins it.
    fn enqueue(&self, table: &PairTable, left: u32, queue: &mut impl Queue) {
        if let Some(right) = self.right_of(left) {
            let rank = table.rank(self.symbol(left), self.symbol(right));
            if rank != NO_MERGE {
                queue.push(rank, left);
            }
        }
    }

    fn join(&mut self, left: u32, right: u32, product: u32) {
        self.symbols[left as usize] = product;
        let after = self.next[right as usize];
        self.next[left as usize] = after;
        if after != NONE {
            self.previous[after as usize] = left;
        }
        self.next[right as usize] = NONE;
    }

    /// Moves the symbols that are left to the front; returns how many there are.
    fn compact(self, mut symbol: impl FnMut(usize)) -> usize {
        let mut length = 0;
        let mut at = if self.symbols.is_empty() { NONE } else { 0 };
        while at != NONE {
            self.symbols[length] = self.symbols[at as usize];
            symbol(at as usize);
            length += 1;
            at = self.next[at as usize];
        }
        length
    }
}

#[cfg(test)]
mod tests {
    use super::super::short::{merge_short, SHORT};
    use super::*;
    use proptest::prelude::*;

    /// Merges over a small alphabet, later ones also over the products of earlier ones; some make
    /// a product again.
    fn merges() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
        let pairs = prop::collection::vec((0..1000u32, 0..1000u32, any::<bool>()), 0..40);
        pairs.prop_map(|pairs| {
            let mut merges: Vec<(u32, u32, u32)> = Vec::new();
            let mut ids = 3;
            for (left, right, again) in pairs {
                let product = if again && ids > 3 { ids - 1 } else { ids };
                merges.push((left % ids, right % ids, product));
                ids = ids.max(product + 1);
            }
            merges
        })
    }

    /// Counts what is queued.
    struct Counting<'a, Q>(Q, &'a mut usize);

    impl<Q: Queue> Queue for Counting<'_, Q> {
        fn push(&mut self, rank: u32, place: u32) {
            *self.1 += 1;
            self.0.push(rank, place);
        }

        fn pop(&mut self) -> Option<(u32, u32)> {
            self.0.pop()
        }
    }

    #[test]
    fn work_is_linear_in_the_piece() {
        // a -> aa -> aaaa -> ..., and ab -> abab -> ...
        let mut merges = vec![(0, 0, 2), (0, 1, 3)];
        merges.extend((2..40).map(|id| (id, id, id + 2)));
        let table = PairTable::new(&merges);
        for length in [1_000, 10_000, 100_000] {
            for period in [1, 2, 3] {
                let mut piece: Vec<u32> = (0..length).map(|i| u32::from(i % period == 1)).collect();
                let mut queued = 0;
                let queue = Counting(Buckets::new(table.ranks()), &mut queued);
                merge(&table, &mut piece, queue, &Interrupt::never()).unwrap();
                assert!(queued <= 3 * length as usize, "{queued} for {length}");
            }
        }
    }

    proptest! {
        #[test]
        fn all_routines_agree(
            merges in merges(),
            piece in prop::collection::vec(0..3u32, 0..=SHORT),
        ) {
            let table = PairTable::new(&merges);
            let mut short = piece.clone();
            let length = merge_short(&table, &mut short);
            for buckets in [false, true] {
                let (mut long, never) = (piece.clone(), Interrupt::never());
                let left = if buckets {
                    merge(&table, &mut long, Buckets::new(table.ranks()), &never)
                } else {
                    merge(&table, &mut long, Heap::default(), &never)
                };
                let mut starts = Vec::new();
                let left = left.unwrap().compact(|start| starts.push(start));
                prop_assert_eq!(&short[..length], &long[..left]);
                prop_assert_eq!(starts.len(), left);
                prop_assert!(starts.is_sorted() && starts.first().is_none_or(|&first| first == 0));
            }
        }
    }
}

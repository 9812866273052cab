//! Pair of ids to the merge that joins them.

use crate::memory::prefetch;
use rustc_hash::FxHashMap;

/// The rank of a pair without a merge.
pub const NO_MERGE: u32 = u32::MAX;

/// A free slot. No pair has this value.
const FREE: u64 = u64::MAX;
/// The bits of an id in a slot.
const ID_BITS: u32 = 21;
/// The bits of a rank in a slot.
const RANK_BITS: u32 = u64::BITS - 2 * ID_BITS;
/// Pairs of ids below this, single bytes in most vocabularies, have a separate table that fits the L2 cache:
/// every piece begins with them.
const DIRECT: u32 = 256;
/// The bits of the filter for each slot: a word of the filter belongs to as many slots as a cache line has.
const FILTER_BITS: usize = 8;

/// The merges of a model: pair of ids to rank, rank to product. The lowest rank merges first.
pub struct PairTable {
    /// Open addressing: a pair in the upper bits, its rank in the lower ones.
    slots: Box<[u64]>,
    /// A Bloom filter with one hash function over the pairs in `slots`. Most pairs have no merge, and the
    /// filter fits the L2 cache.
    filter: Box<[u64]>,
    /// The ranks of pairs of low ids.
    direct: Box<[u32]>,
    /// Pairs that fit no slot; all pairs if the ranks do not fit.
    wide: FxHashMap<(u32, u32), u32>,
    /// Ids from here on fit no slot.
    wide_from: u32,
    /// The product of each merge by rank. None if the product is the rank.
    products: Option<Box<[u32]>>,
    ranks: usize,
}

impl PairTable {
    /// `merges` are (left, right, product) in order of rank. Of equal pairs, the last counts.
    pub fn new(merges: &[(u32, u32, u32)]) -> Self {
        Self::with_ranks(merges, products_are_ranks(merges))
    }

    /// As `new`. The products serve as ranks only if they ascend.
    pub(crate) fn with_ranks(merges: &[(u32, u32, u32)], products_are_ranks: bool) -> Self {
        let ranks = match merges.last() {
            Some(&(_, _, last)) if products_are_ranks => last as usize + 1,
            _ => merges.len(),
        };
        let mut table = Self::with_capacity(merges.len(), ranks);
        table.products =
            (!products_are_ranks).then(|| merges.iter().map(|merge| merge.2).collect());
        for (index, &(left, right, product)) in (0..).zip(merges) {
            let rank = if products_are_ranks { product } else { index };
            table.insert(left, right, rank);
        }
        table
    }

    /// A table without merges, for merges whose products are their ranks: at most `merges`, with ranks below
    /// `ranks`.
    pub(crate) fn with_capacity(merges: usize, ranks: usize) -> Self {
        // At most two thirds of the slots of a large table are used. Where more are, look-ups take more steps; an even larger
        // table leaves the processor's caches.
        let slots = (3 * merges / 2).max(4);
        let fits = ranks < 1 << RANK_BITS;
        Self {
            slots: vec![FREE; slots].into_boxed_slice(),
            filter: vec![0; (FILTER_BITS * slots).div_ceil(u64::BITS as usize)].into_boxed_slice(),
            direct: vec![NO_MERGE; (DIRECT * DIRECT) as usize].into_boxed_slice(),
            wide: FxHashMap::default(),
            wide_from: if fits { 1 << ID_BITS } else { 0 },
            products: None,
            ranks,
        }
    }

    /// Adds a merge. Of equal pairs, the last counts.
    pub(crate) fn insert(&mut self, left: u32, right: u32, rank: u32) {
        if left < DIRECT && right < DIRECT {
            self.direct[(left * DIRECT + right) as usize] = rank;
        } else if left.max(right) >= self.wide_from {
            self.wide.insert((left, right), rank);
        } else {
            let pair = pair_of(left, right);
            let bit = self.filter_bit(pair);
            let slot = self.find(pair, bit / FILTER_BITS);
            self.slots[slot] = (pair << RANK_BITS) | u64::from(rank);
            self.filter[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// An upper bound: all ranks are below it.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The rank of a pair, or `NO_MERGE`.
    #[inline(always)]
    pub fn rank(&self, left: u32, right: u32) -> u32 {
        if left < DIRECT && right < DIRECT {
            return self.direct[(left * DIRECT + right) as usize];
        }
        if left.max(right) >= self.wide_from {
            return self.wide_rank(left, right);
        }
        let pair = pair_of(left, right);
        let bit = self.filter_bit(pair);
        // The slot arrives while the filter is read.
        prefetch(&self.slots, bit / FILTER_BITS);
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return NO_MERGE;
        }
        match self.slots[self.find(pair, bit / FILTER_BITS)] {
            FREE => NO_MERGE,
            slot => slot as u32 % (1 << RANK_BITS),
        }
    }

    #[cold]
    fn wide_rank(&self, left: u32, right: u32) -> u32 {
        self.wide.get(&(left, right)).copied().unwrap_or(NO_MERGE)
    }

    /// The product of the merge of a rank.
    #[inline(always)]
    pub fn product(&self, rank: u32) -> u32 {
        match &self.products {
            None => rank,
            Some(products) => products[rank as usize],
        }
    }

    /// The bit of a pair in the filter. It belongs to the first slot in which the pair may be. Scales the hash to the number
    /// of bits, which need not be a power of two (Lemire, "Fast random integer generation in an interval").
    #[inline(always)]
    fn filter_bit(&self, pair: u64) -> usize {
        let hash = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(hash) * (FILTER_BITS * self.slots.len()) as u128) >> u64::BITS) as usize
    }

    /// The slot of a pair, or the free slot for it, from `slot` on.
    #[inline(always)]
    fn find(&self, pair: u64, mut slot: usize) -> usize {
        loop {
            let found = self.slots[slot];
            if found >> RANK_BITS == pair || found == FREE {
                return slot;
            }
            slot += 1;
            if slot == self.slots.len() {
                slot = 0;
            }
        }
    }
}

/// Whether the product ids ascend and are dense, as after training, so that they can serve as ranks.
pub(crate) fn products_are_ranks(merges: &[(u32, u32, u32)]) -> bool {
    let last = merges.last().map_or(0, |merge| merge.2);
    let is_dense = last as usize / 4 <= merges.len() + DIRECT as usize;
    is_dense && merges.is_sorted_by(|one, next| one.2 < next.2)
}

#[inline(always)]
fn pair_of(left: u32, right: u32) -> u64 {
    (u64::from(left) << ID_BITS) | u64::from(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_merged_pairs_have_ranks() {
        // Ids that fit a slot and ids that do not, products that are ranks and products that are not.
        for (first, step) in [
            (0, 1),
            ((1 << ID_BITS) - 500, 1),
            (u32::MAX - 3000, 1),
            (0, 2),
        ] {
            let id = |i: u32| first + i % 1000;
            let product = |i: u32| first + 1000 + step * i % 1001;
            let merges: Vec<_> = (0..1000).map(|i| (id(i), id(i * 7), product(i))).collect();
            let table = PairTable::new(&merges);
            for left in 0..1000 {
                for right in (0..1000).step_by(13).chain([left * 7 % 1000]) {
                    let rank = table.rank(id(left), id(right));
                    if right == left * 7 % 1000 {
                        assert_eq!(table.product(rank), product(left));
                        assert!((rank as usize) < table.ranks());
                        let before = left.checked_sub(1);
                        let before = before.map(|left| table.rank(id(left), id(left * 7)));
                        assert!(before.is_none_or(|before| before < rank));
                    } else {
                        assert_eq!(rank, NO_MERGE);
                    }
                }
            }
        }
        assert_eq!(PairTable::new(&[]).rank(1, 2), NO_MERGE);
        assert_eq!(PairTable::new(&[]).rank(1, 2000), NO_MERGE);
    }

    #[test]
    fn a_table_of_any_size_has_a_free_slot() {
        for merges in 0..70 {
            let merges: Vec<_> = (0..merges).map(|i| (300 + i, 301, 1000 + i)).collect();
            let table = PairTable::new(&merges);
            assert!(table.slots.contains(&FREE));
            let found = (0..2000).filter(|&left| table.rank(left, 301) != NO_MERGE);
            assert_eq!(found.count(), merges.len());
        }
    }

    #[test]
    fn merges_with_the_same_product_keep_their_order() {
        let table = PairTable::new(&[(1, 2, 300), (2, 1, 300)]);
        assert!(table.rank(1, 2) < table.rank(2, 1));
        let products = [(1, 2), (2, 1)].map(|(left, right)| table.product(table.rank(left, right)));
        assert_eq!(products, [300, 300]);
    }

    #[test]
    fn of_equal_pairs_the_last_counts() {
        for (left, right) in [(1, 2), (1, 2000), (1, u32::MAX - 1)] {
            let merges = [(left, right, 300), (3, 4, 301), (left, right, 302)];
            let table = PairTable::new(&merges);
            assert_eq!(table.product(table.rank(left, right)), 302);
            assert!(table.rank(3, 4) < table.rank(left, right));
        }
    }
}

//! Pair of ids to the merge that joins them.

use super::memory::prefetch;
use rustc_hash::FxHashMap;

/// The rank of a pair that no merge joins.
pub const NO_MERGE: u32 = u32::MAX;

/// Marks a free slot: no pair is so large.
const FREE: u64 = u64::MAX;
/// Ids below 2 to this power, and ranks below 2 to [`RANK_BITS`], fit a slot together.
const ID_BITS: u32 = 21;
/// What a pair leaves of a slot.
const RANK_BITS: u32 = u64::BITS - 2 * ID_BITS;
/// Pairs of ids below this, which are those of single bytes in most vocabularies, have a table of
/// their own that fits a processor's cache: every piece begins with them.
const DIRECT: u32 = 256;
/// Slots that share a word of the filter: each has four bits there.
const FILTER_SLOTS: usize = 16;

/// All merges of a model. A merge is known by its rank: the lower one is due first.
pub struct PairTable {
    /// Open addressing: a pair, and its rank in the low bits.
    slots: Box<[u64]>,
    /// Bits to shift a hash so that it indexes `slots`.
    shift: u32,
    /// A bit for each hash, set if a pair in `slots` has it: most pairs have no merge, and this much
    /// fits a processor's cache.
    filter: Box<[u64]>,
    /// The ranks of pairs of low ids.
    direct: Box<[u32]>,
    /// Pairs that fit no slot, or all if ranks do not.
    wide: FxHashMap<(u32, u32), u32>,
    /// Ids from this on fit no slot.
    wide_from: u32,
    /// What each merge makes, by rank; none if it is the rank.
    products: Option<Box<[u32]>>,
    ranks: usize,
}

impl PairTable {
    /// `merges` are (left, right, product) in order of rank; of equal pairs the last counts.
    pub fn new(merges: &[(u32, u32, u32)]) -> Self {
        let bits = (2 * merges.len())
            .next_power_of_two()
            .max(2)
            .trailing_zeros();
        let numbered = are_ranks(merges);
        let ranks = match merges.last() {
            Some(&(_, _, last)) if numbered => last as usize + 1,
            _ => merges.len(),
        };
        let fits = ranks < 1 << RANK_BITS;
        let mut table = Self {
            slots: vec![FREE; 1 << bits].into_boxed_slice(),
            shift: u64::BITS - bits,
            filter: vec![0; (1 << bits) / FILTER_SLOTS + 1].into_boxed_slice(),
            direct: vec![NO_MERGE; (DIRECT * DIRECT) as usize].into_boxed_slice(),
            wide: FxHashMap::default(),
            wide_from: if fits { 1 << ID_BITS } else { 0 },
            products: (!numbered).then(|| merges.iter().map(|merge| merge.2).collect()),
            ranks,
        };
        for (place, &(left, right, product)) in (0..).zip(merges) {
            table.insert(left, right, if numbered { product } else { place });
        }
        table
    }

    fn insert(&mut self, left: u32, right: u32, rank: u32) {
        if left < DIRECT && right < DIRECT {
            self.direct[(left * DIRECT + right) as usize] = rank;
        } else if left.max(right) >= self.wide_from {
            self.wide.insert((left, right), rank);
        } else {
            let pair = pair_of(left, right);
            let hash = hash(pair);
            let slot = self.find(pair, hash);
            self.slots[slot] = (pair << RANK_BITS) | u64::from(rank);
            let (word, bit) = self.filter_bit(hash);
            self.filter[word] |= bit;
        }
    }

    /// All ranks are below this.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The rank of the merge of two neighbours, or [`NO_MERGE`].
    #[inline(always)]
    pub fn rank(&self, left: u32, right: u32) -> u32 {
        if left < DIRECT && right < DIRECT {
            return self.direct[(left * DIRECT + right) as usize];
        }
        if left.max(right) >= self.wide_from {
            return self.wide_rank(left, right);
        }
        let pair = pair_of(left, right);
        let hash = hash(pair);
        // On its way while the filter is read.
        prefetch(&self.slots, (hash >> self.shift) as usize);
        let (word, bit) = self.filter_bit(hash);
        if self.filter[word] & bit == 0 {
            return NO_MERGE;
        }
        match self.slots[self.find(pair, hash)] {
            FREE => NO_MERGE,
            slot => slot as u32 % (1 << RANK_BITS),
        }
    }

    #[cold]
    fn wide_rank(&self, left: u32, right: u32) -> u32 {
        self.wide.get(&(left, right)).copied().unwrap_or(NO_MERGE)
    }

    /// The id that the merge of this rank makes.
    #[inline(always)]
    pub fn product(&self, rank: u32) -> u32 {
        match &self.products {
            None => rank,
            Some(products) => products[rank as usize],
        }
    }

    /// Word and bit of a pair in the filter: the slot that it hashes to, and two bits more.
    #[inline(always)]
    fn filter_bit(&self, hash: u64) -> (usize, u64) {
        let slot = (hash >> self.shift) as usize;
        let bit = slot % FILTER_SLOTS * 4 + (hash >> (self.shift - 2)) as usize % 4;
        (slot / FILTER_SLOTS, 1 << bit)
    }

    /// The slot of a pair, or the free one where it would go.
    #[inline(always)]
    fn find(&self, pair: u64, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut index = (hash >> self.shift) as usize & mask;
        loop {
            let found = self.slots[index];
            if found >> RANK_BITS == pair || found == FREE {
                return index;
            }
            index = (index + 1) & mask;
        }
    }
}

/// Whether the ids of the products are in the order of the ranks and dense, as a training numbers them, so
/// that they can be the ranks.
fn are_ranks(merges: &[(u32, u32, u32)]) -> bool {
    let last = merges.last().map_or(0, |merge| merge.2);
    let is_dense = last as usize / 4 <= merges.len() + DIRECT as usize;
    is_dense && merges.is_sorted_by(|one, next| one.2 < next.2)
}

#[inline(always)]
fn hash(pair: u64) -> u64 {
    pair.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline(always)]
fn pair_of(left: u32, right: u32) -> u64 {
    (u64::from(left) << ID_BITS) | u64::from(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_found_and_no_other() {
        // Ids that fit a slot, none that do, and products that are ranks or are not.
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
    fn of_equal_pairs_the_last_counts() {
        for (left, right) in [(1, 2), (1, 2000), (1, u32::MAX - 1)] {
            let merges = [(left, right, 300), (3, 4, 301), (left, right, 302)];
            let table = PairTable::new(&merges);
            assert_eq!(table.product(table.rank(left, right)), 302);
            assert!(table.rank(3, 4) < table.rank(left, right));
        }
    }
}

//! Pair of ids to the merge that joins them.

/// The rank of a pair that no merge joins.
pub const NO_MERGE: u32 = u32::MAX;

/// Marks a free slot; no pair has it, because `u32::MAX` is no id.
const FREE: u64 = u64::MAX;
/// Pairs of ids below this, which are those of single bytes in most vocabularies, have a table of
/// their own that fits a processor's cache: every piece begins with them.
const DIRECT: u32 = 256;
/// Slots that share a word of the filter: each has four bits there.
const FILTER_SLOTS: usize = 16;

/// All merges of a model. A merge is known by its rank, its place in their list.
pub struct PairTable {
    /// Open addressing: pair and rank.
    slots: Box<[(u64, u32)]>,
    /// Bits to shift a hash so that it indexes `slots`.
    shift: u32,
    /// A bit for each hash, set if a pair in `slots` has it: most pairs have no merge, and this much
    /// fits a processor's cache.
    filter: Box<[u64]>,
    /// The ranks of pairs of low ids.
    direct: Box<[u32]>,
    /// What each merge makes, by rank.
    products: Box<[u32]>,
}

impl PairTable {
    /// `merges` are (left, right, product) in order of rank; of equal pairs the last counts.
    pub fn new(merges: &[(u32, u32, u32)]) -> Self {
        let bits = (2 * merges.len())
            .next_power_of_two()
            .max(2)
            .trailing_zeros();
        let mut table = Self {
            slots: vec![(FREE, NO_MERGE); 1 << bits].into_boxed_slice(),
            shift: 64 - bits,
            filter: vec![0; (1 << bits) / FILTER_SLOTS + 1].into_boxed_slice(),
            direct: vec![NO_MERGE; (DIRECT * DIRECT) as usize].into_boxed_slice(),
            products: merges.iter().map(|&(_, _, product)| product).collect(),
        };
        for (rank, &(left, right, _)) in (0..).zip(merges) {
            if left < DIRECT && right < DIRECT {
                table.direct[(left * DIRECT + right) as usize] = rank;
            } else {
                let pair = pair_of(left, right);
                let slot = table.find(pair);
                table.slots[slot] = (pair, rank);
                let (word, bit) = table.filter_bit(pair);
                table.filter[word] |= bit;
            }
        }
        table
    }

    /// How many merges there are.
    pub fn ranks(&self) -> usize {
        self.products.len()
    }

    /// The rank of the merge of two neighbours, or [`NO_MERGE`].
    #[inline(always)]
    pub fn rank(&self, left: u32, right: u32) -> u32 {
        if left < DIRECT && right < DIRECT {
            self.direct[(left * DIRECT + right) as usize]
        } else {
            let pair = pair_of(left, right);
            let (word, bit) = self.filter_bit(pair);
            if self.filter[word] & bit == 0 {
                return NO_MERGE;
            }
            self.slots[self.find(pair)].1
        }
    }

    /// The id that the merge of this rank makes.
    #[inline(always)]
    pub fn product(&self, rank: u32) -> u32 {
        self.products[rank as usize]
    }

    /// Word and bit of a pair in the filter: the slot that it hashes to, and two bits more.
    #[inline(always)]
    fn filter_bit(&self, pair: u64) -> (usize, u64) {
        let hash = hash(pair);
        let slot = (hash >> self.shift) as usize;
        let bit = slot % FILTER_SLOTS * 4 + (hash >> (self.shift - 2)) as usize % 4;
        (slot / FILTER_SLOTS, 1 << bit)
    }

    /// The slot of a pair, or the free one where it would go.
    #[inline(always)]
    fn find(&self, pair: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut index = (hash(pair) >> self.shift) as usize;
        loop {
            let found = self.slots[index & mask].0;
            if found == pair || found == FREE {
                return index & mask;
            }
            index += 1;
        }
    }
}

#[inline(always)]
fn hash(pair: u64) -> u64 {
    pair.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline(always)]
fn pair_of(left: u32, right: u32) -> u64 {
    (u64::from(left) << 32) | u64::from(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_found_and_no_other() {
        let merges: Vec<_> = (0..1000).map(|i| (i, i * 7 % 1000, 1000 + i)).collect();
        let table = PairTable::new(&merges);
        for left in 0..1000 {
            for right in (0..1000).step_by(13).chain([left * 7 % 1000]) {
                let rank = table.rank(left, right);
                if right == left * 7 % 1000 {
                    assert_eq!((rank, table.product(rank)), (left, 1000 + left));
                } else {
                    assert_eq!(rank, NO_MERGE);
                }
            }
        }
        assert_eq!(PairTable::new(&[]).rank(1, 2), NO_MERGE);
        assert_eq!(PairTable::new(&[]).rank(1, 2000), NO_MERGE);
    }

    #[test]
    fn of_equal_pairs_the_last_counts() {
        for (left, right) in [(1, 2), (1, 2000)] {
            let table = PairTable::new(&[(left, right, 300), (3, 4, 301), (left, right, 300)]);
            assert_eq!(table.rank(left, right), 2);
        }
    }
}

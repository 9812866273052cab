//! Distinct pieces with their counts, in memory.

use super::shard::{cost, Dropped, Shard, SHARDS, VIRTUAL_BUCKETS};
use crate::cache::{bucket_of, has_key, key, Key};
use crate::error::Result;
use crate::threads::{lock, on_threads};
use crate::train::checked_sum;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Mutex;

/// Distinct pieces with their counts. Counts are checked: they never wrap.
#[derive(Clone, Default)]
pub struct PieceCounts {
    shards: [Shard; SHARDS],
}

impl PieceCounts {
    /// Number of distinct pieces.
    pub fn len(&self) -> usize {
        self.shards.iter().map(Shard::len).sum()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sum of all counts.
    pub fn total(&self) -> Result<u64> {
        let mut counts = self.iter().map(|(_, count)| count);
        counts.try_fold(0, checked_sum)
    }

    /// All pieces and their counts, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.shards.iter().flat_map(Shard::iter)
    }

    /// Adds `count` to the piece `text[range]`.
    pub fn add(&mut self, text: &[u8], range: Range<usize>, count: u64) -> Result<()> {
        if has_key(range.len()) {
            let key = key(text, range.start, range.len());
            self.add_short(key, bucket_of(key, VIRTUAL_BUCKETS), count)
        } else {
            self.add_long(&text[range], count)
        }
    }

    /// Prefetches the slots of a virtual bucket.
    #[inline(always)]
    pub fn prefetch(&self, bucket: u32) {
        self.shards[shard_of(bucket)].prefetch(bucket);
    }

    /// Adds `count` to the piece of a key, given its virtual bucket.
    #[inline(always)]
    pub fn add_short(&mut self, [low, high]: Key, bucket: u32, count: u64) -> Result<()> {
        let key = (u128::from(low) | u128::from(high) << 64).to_le_bytes();
        self.shards[shard_of(bucket)].add_short(key, bucket, count)
    }

    /// Adds `count` to a piece that is too long for a key.
    #[inline(never)]
    pub fn add_long(&mut self, piece: &[u8], count: u64) -> Result<()> {
        let shard = FxBuildHasher.hash_one(piece) as usize % SHARDS;
        self.shards[shard].add_long(piece, count)
    }

    /// Adds the counts of other tables times `weight`, in parallel.
    pub fn merge(&mut self, others: Vec<Self>, weight: u64, threads: usize) -> Result<()> {
        let mut others: Vec<_> = others
            .into_iter()
            .map(|other| other.shards.into_iter())
            .collect();
        let next = |_| others.iter_mut().filter_map(Iterator::next).collect();
        let added: Vec<Vec<Shard>> = (0..SHARDS).map(next).collect();
        let slots = added.iter().flatten().map(Shard::slots);
        let threads = threads.min(slots.sum::<usize>() >> 14).clamp(1, SHARDS);
        let work = Mutex::new(self.shards.iter_mut().zip(added));
        let merge = || -> Result<()> {
            loop {
                let Some((shard, added)) = lock(&work).next() else {
                    return Ok(());
                };
                for other in added {
                    shard.merge(other, weight)?;
                }
            }
        };
        on_threads(threads, merge).into_iter().collect()
    }

    /// Approximate bytes of memory that training on these pieces needs.
    pub fn cost(&self) -> usize {
        self.shards.iter().map(Shard::cost).sum()
    }

    /// Drops all pieces up to some count, the lowest that brings the cost down to `limit`. This is lossy counting
    /// (Manku and Motwani 2002): `dropped` bounds the error.
    pub fn drop_rare(&mut self, limit: usize, dropped: &mut Dropped) {
        let max_count = self.max_dropped_count(limit);
        for shard in &mut self.shards {
            shard.drop_rare(max_count, dropped);
        }
        dropped.max_error = dropped.max_error.saturating_add(max_count);
    }

    /// The smallest count for which the pieces with higher counts cost no more than `limit`.
    fn max_dropped_count(&self, limit: usize) -> u64 {
        // Most pieces are rare: an array sums their costs by count, and only the others are sorted.
        const RARE: usize = 1 << 10;
        let mut costs = vec![0; RARE];
        let mut frequent = Vec::new();
        for (piece, count) in self.iter() {
            match costs.get_mut(count as usize) {
                Some(total) => *total += cost(1, piece.len()),
                None => frequent.push((count, cost(1, piece.len()))),
            }
        }
        let mut left = self.cost();
        for (count, cost) in (0..).zip(costs) {
            left -= cost;
            if left <= limit {
                return count;
            }
        }
        frequent.sort_unstable();
        let mut frequent = frequent.into_iter().peekable();
        while let Some((count, cost)) = frequent.next() {
            left -= cost;
            if left <= limit && frequent.peek().is_none_or(|next| next.0 > count) {
                return count;
            }
        }
        u64::MAX
    }
}

fn shard_of(bucket: u32) -> usize {
    bucket as usize / ((1 << 32) / SHARDS)
}

#[cfg(test)]
mod tests {
    use super::super::shard::cost;
    use super::*;
    use crate::error::Error;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    pub fn table(counts: &PieceCounts) -> BTreeMap<Vec<u8>, u64> {
        let pieces = counts.iter();
        let table: BTreeMap<_, _> = pieces
            .map(|(piece, count)| (piece.to_vec(), count))
            .collect();
        assert_eq!(table.len(), counts.len());
        table
    }

    fn counts_of(pieces: &[(&str, u64)]) -> PieceCounts {
        let mut counts = PieceCounts::default();
        for (piece, count) in pieces {
            counts
                .add(piece.as_bytes(), 0..piece.len(), *count)
                .unwrap();
        }
        counts
    }

    #[test]
    fn a_count_never_wraps() {
        for piece in ["a", "a piece that does not fit a key"] {
            let mut counts = counts_of(&[(piece, u64::MAX)]);
            let result = counts.add(piece.as_bytes(), 0..piece.len(), 1);
            assert!(matches!(result, Err(Error::CountOverflow)));
            for (other, weight) in [(1, 1), (2, u64::MAX)] {
                let mut other = counts_of(&[(piece, other)]);
                let result = other.merge(vec![counts.clone()], weight, 2);
                assert!(matches!(result, Err(Error::CountOverflow)));
            }
            let both = counts_of(&[(piece, u64::MAX), ("b", 1)]);
            assert!(matches!(both.total(), Err(Error::CountOverflow)));
        }
    }

    #[test]
    fn the_rarest_go_all_together() {
        let long = "a piece that does not fit a key";
        let pieces = [
            ("a", 1),
            ("b", 1),
            ("cd", 2),
            (long, 2),
            ("e", 3),
            ("f", 5000),
            ("g", 6000),
        ];
        for (left, most) in [
            (7, None),
            (6, Some(1)),
            (5, Some(1)),
            (3, Some(2)),
            (2, Some(3)),
        ] {
            let mut counts = counts_of(&pieces);
            let kept: Vec<_> = pieces[7 - left..].to_vec();
            let limit = counts_of(&kept).cost();
            let mut dropped = Dropped::default();
            if let Some(most) = most {
                counts.drop_rare(limit, &mut dropped);
                assert_eq!(dropped.max_error, most);
            }
            let stay = |pair: &&(&str, u64)| pair.1 > dropped.max_error;
            let kept: Vec<_> = pieces.iter().filter(stay).copied().collect();
            assert_eq!(table(&counts), table(&counts_of(&kept)));
            assert_eq!(dropped.distinct as usize, pieces.len() - kept.len());
            assert!(counts.cost() <= limit && counts.cost() == counts_of(&kept).cost());
        }
        let mut counts = counts_of(&pieces);
        let mut dropped = Dropped::default();
        counts.drop_rare(cost(1, 1), &mut dropped);
        assert_eq!((counts.len(), dropped.max_error), (1, 5000));
        counts.drop_rare(0, &mut dropped);
        assert_eq!((counts.len(), dropped.max_error), (0, 11_000));
        assert_eq!((dropped.distinct, dropped.pieces), (7, 11_009));
        assert_eq!(counts.cost(), 0);
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_map(
            pieces in prop::collection::vec("[ab\0]{1,20}", 0..2000),
            weight in 1..4_u64,
            threads in 1..4_usize,
        ) {
            let mut expected = BTreeMap::new();
            let mut tables = [PieceCounts::default(), PieceCounts::default(), PieceCounts::default()];
            for (i, piece) in pieces.iter().enumerate() {
                let factor = if i % 3 == 0 { 1 } else { weight };
                *expected.entry(piece.clone().into_bytes()).or_insert(0) += factor;
                tables[i % 3].add(piece.as_bytes(), 0..piece.len(), 1).unwrap();
            }
            let [mut counts, second, third] = tables;
            counts.merge(vec![second, third], weight, threads).unwrap();
            prop_assert_eq!(counts.len(), expected.len());
            prop_assert_eq!(counts.total().unwrap(), expected.values().sum::<u64>());
            prop_assert_eq!(table(&counts), expected);
            let mut anew = PieceCounts::default();
            for (piece, count) in counts.iter() {
                anew.add(piece, 0..piece.len(), count).unwrap();
            }
            prop_assert_eq!(anew.cost(), counts.cost());
        }
    }
}

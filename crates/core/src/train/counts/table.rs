//! Distinct pieces with their counts, in shards: hash tables that merge in parallel. A shard uses open addressing with
//! linear probing for short pieces and a map for long ones.

use crate::cache::{bucket_of, has_key, key, Key};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::memory::prefetch;
use crate::threads::{lock, on_threads, thread_count};
use crate::train::checked_sum;
use rustc_hash::{FxBuildHasher, FxHashMap};
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
        let slots = added.iter().flatten().map(|shard| shard.slots.len());
        let threads = thread_count(threads, usize::MAX).min(slots.sum::<usize>() >> 14);
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
        on_threads(threads.clamp(1, SHARDS), &Interrupt::never(), merge)
            .into_iter()
            .collect()
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
        // Few counts are distinct: most pieces are rare.
        let mut costs = FxHashMap::from_iter([(0, 0)]);
        for (piece, count) in self.iter() {
            *costs.entry(count).or_default() += cost(1, piece.len());
        }
        let mut costs: Vec<(u64, usize)> = costs.into_iter().collect();
        costs.sort_unstable();
        let mut left = self.cost();
        for (count, cost) in costs {
            left -= cost;
            if left <= limit {
                return count;
            }
        }
        u64::MAX
    }
}

fn shard_of(bucket: u32) -> usize {
    bucket as usize / ((1 << 32) / SHARDS)
}

/// Shards of a table; a power of two. Shards merge in parallel.
const SHARDS: usize = 16;
/// Keys hash to this many virtual buckets, and a table scales a virtual bucket to its size. So all tables hold
/// their keys in the same order.
pub const VIRTUAL_BUCKETS: usize = u32::MAX as usize;
/// A growing table moves pieces with this count first: they then need no probing.
const FREQUENT: u64 = 8;
/// Slots of the smallest shard.
const MIN_SLOTS: usize = 64;

/// A short piece: up to 15 bytes, and its length in the last byte.
type ByteKey = [u8; 16];

#[derive(Clone, Copy)]
struct Slot {
    key: ByteKey,
    count: u64,
}

const FREE: Slot = Slot {
    key: [0; 16],
    count: 0,
};

/// The pieces whose virtual buckets begin with the shard's number.
#[derive(Clone, Default)]
struct Shard {
    /// Short pieces. At most 5/8 of the slots are taken.
    slots: Vec<Slot>,
    taken: usize,
    long: FxHashMap<Box<[u8]>, u64>,
    /// Bytes of all distinct pieces.
    bytes: usize,
}

/// The pieces that were dropped to save memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Number of dropped pieces. A piece that returns and is dropped again counts again.
    pub distinct: u64,
    /// The sum of their counts, at most the largest 64-bit number.
    pub pieces: u64,
    /// No count is too low by more than this. A piece with a higher count is never missing.
    pub max_error: u64,
}

impl Dropped {
    /// Adds the pieces that were dropped elsewhere, each `weight` times.
    pub fn add(&mut self, other: Self, weight: u64) {
        let [pieces, max_error] =
            [other.pieces, other.max_error].map(|count| count.saturating_mul(weight));
        self.distinct += other.distinct;
        self.pieces = self.pieces.saturating_add(pieces);
        self.max_error = self.max_error.saturating_add(max_error);
    }
}

#[inline(always)]
fn add_to(total: &mut u64, count: u64) -> Result<()> {
    *total = checked_sum(*total, count)?;
    Ok(())
}

fn virtual_bucket(key: ByteKey) -> u32 {
    let whole = u128::from_le_bytes(key);
    bucket_of([whole as u64, (whole >> 64) as u64], VIRTUAL_BUCKETS)
}

/// Bytes of memory that distinct pieces need until training ends: a slot of a half-full table, a word per byte
/// for the symbols, and as much for the positions of pairs.
fn cost(pieces: usize, bytes: usize) -> usize {
    90 * pieces + 10 * bytes
}

impl Shard {
    fn len(&self) -> usize {
        self.taken + self.long.len()
    }

    fn cost(&self) -> usize {
        cost(self.len(), self.bytes)
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let short = self.slots.iter().filter(|slot| slot.key != FREE.key);
        let short = short.map(|slot| (&slot.key[..usize::from(slot.key[15])], slot.count));
        let long = self.long.iter().map(|(piece, count)| (&**piece, *count));
        short.chain(long)
    }

    /// The first slot of a virtual bucket: it is scaled to the size of the table.
    #[inline(always)]
    fn first_slot(&self, bucket: u32) -> usize {
        let within_shard = u64::from(bucket.wrapping_mul(SHARDS as u32));
        ((within_shard * self.slots.len() as u64) >> 32) as usize
    }

    /// Prefetches the first two slots of a bucket, which may be in two cache lines.
    #[inline(always)]
    fn prefetch(&self, bucket: u32) {
        let slot = self.first_slot(bucket);
        prefetch(&self.slots, slot);
        prefetch(&self.slots, slot + 1);
    }

    #[inline(always)]
    fn add_short(&mut self, key: ByteKey, bucket: u32, count: u64) -> Result<()> {
        let first = self.first_slot(bucket);
        if let Some([slot, next]) = self.slots.get_mut(first..first + 2) {
            // A select instead of a branch: no predictor can tell which of the two it is.
            let slot = if slot.key == key { slot } else { next };
            if slot.key == key {
                return add_to(&mut slot.count, count);
            }
        }
        self.probe_and_add(key, bucket, count)
    }

    /// Adds to a key that is not in its first two slots.
    #[inline(never)]
    fn probe_and_add(&mut self, key: ByteKey, bucket: u32, count: u64) -> Result<()> {
        if self.slots.is_empty() {
            self.grow();
        }
        let first = self.first_slot(bucket);
        let (before, from) = self.slots.split_at_mut(first);
        let is_match = |slot: &&mut Slot| slot.key == key || slot.key == FREE.key;
        // `grow` keeps slots free, so the probe always finds one.
        let Some(slot) = from.iter_mut().chain(before).find(is_match) else {
            return Ok(());
        };
        add_to(&mut slot.count, count)?;
        if slot.key == FREE.key {
            slot.key = key;
            self.taken += 1;
            self.bytes += usize::from(key[15]);
            if 8 * self.taken >= 5 * self.slots.len() {
                self.grow();
            }
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) {
        self.resize((self.slots.len() + self.slots.len() / 2).max(MIN_SLOTS));
    }

    /// Rehashes into a table of this many slots. They must be enough.
    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        let taken = old.into_iter().filter(|slot| slot.key != FREE.key);
        let (frequent, rare): (Vec<_>, Vec<_>) = taken.partition(|slot| slot.count >= FREQUENT);
        frequent
            .into_iter()
            .chain(rare)
            .for_each(|slot| self.put(slot));
    }

    /// Inserts a new key into the next free slot.
    fn put(&mut self, slot: Slot) {
        let mut index = self.first_slot(virtual_bucket(slot.key));
        while self.slots[index].key != FREE.key {
            index = (index + 1) % self.slots.len();
        }
        self.slots[index] = slot;
    }

    fn add_long(&mut self, piece: &[u8], count: u64) -> Result<()> {
        match self.long.get_mut(piece) {
            Some(total) => add_to(total, count),
            None => {
                self.insert_long(piece.into(), count);
                Ok(())
            }
        }
    }

    fn insert_long(&mut self, piece: Box<[u8]>, count: u64) {
        self.bytes += piece.len();
        self.long.insert(piece, count);
    }

    /// Adds another shard's counts times `weight`. The smaller table goes into the larger one: its keys arrive in
    /// bucket order, and would cluster in a table that still has to grow.
    fn merge(&mut self, mut other: Self, weight: u64) -> Result<()> {
        other.multiply(weight)?;
        if self.len() < other.len() {
            std::mem::swap(self, &mut other);
        }
        for slot in other.slots.into_iter().filter(|slot| slot.key != FREE.key) {
            self.add_short(slot.key, virtual_bucket(slot.key), slot.count)?;
        }
        for (piece, count) in other.long {
            match self.long.get_mut(&piece) {
                Some(total) => add_to(total, count)?,
                None => self.insert_long(piece, count),
            }
        }
        Ok(())
    }

    fn multiply(&mut self, weight: u64) -> Result<()> {
        if weight == 1 {
            return Ok(());
        }
        let short = self.slots.iter_mut().map(|slot| &mut slot.count);
        for count in short.chain(self.long.values_mut()) {
            *count = count.checked_mul(weight).ok_or(Error::CountOverflow)?;
        }
        Ok(())
    }

    /// Drops the pieces with counts up to `max_count`.
    fn drop_rare(&mut self, max_count: u64, dropped: &mut Dropped) {
        let bytes = &mut self.bytes;
        let mut stays = |length: usize, count: u64| {
            if count <= max_count {
                *bytes -= length;
                dropped.distinct += 1;
                dropped.pieces = dropped.pieces.saturating_add(count);
            }
            count > max_count
        };
        for slot in self.slots.iter_mut().filter(|slot| slot.key != FREE.key) {
            if !stays(usize::from(slot.key[15]), slot.count) {
                *slot = FREE;
                self.taken -= 1;
            }
        }
        self.long.retain(|piece, count| stays(piece.len(), *count));
        self.long.shrink_to_fit();
        self.resize((self.taken * 3 / 2).max(MIN_SLOTS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

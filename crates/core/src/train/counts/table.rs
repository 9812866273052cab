//! Distinct pieces with their counts, in memory.

use crate::cache::{bucket_of, has_key, key, Key as Halves};
use crate::error::{Error, Result};
use crate::memory::prefetch;
use crate::threads::{lock, on_threads};
use crate::train::checked_sum;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Mutex;

/// Shards of a table, which are merged side by side; a power of two.
const SHARDS: usize = 16;
/// Keys are found by their place in a table of so many slots, whatever the size of the real one, so that all
/// tables have them in the same order.
pub const PLACES: usize = u32::MAX as usize;
/// Pieces that occur so often are found before others when a table grows.
const OFTEN: u64 = 8;
/// Slots of the smallest table of a shard.
const LEAST_SLOTS: usize = 64;

/// A key as bytes: 15 for a piece, one for its length.
type Key = [u8; 16];

#[derive(Clone, Copy)]
struct Slot {
    key: Key,
    count: u64,
}

const FREE: Slot = Slot {
    key: [0; 16],
    count: 0,
};

/// Distinct pieces with their counts. Counts are checked: none wraps.
#[derive(Clone, Default)]
pub struct PieceCounts {
    shards: [Shard; SHARDS],
}

/// The pieces whose places begin with the shard's number.
#[derive(Clone, Default)]
struct Shard {
    /// Pieces that a key holds, by their place; behind it where that is taken.
    slots: Vec<Slot>,
    taken: usize,
    long: FxHashMap<Box<[u8]>, u64>,
    /// Of all distinct pieces.
    bytes: usize,
}

/// What was dropped to save memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// How often a piece was dropped; one that came back and was dropped again counts again.
    pub distinct: u64,
    /// The sum of their counts; of more than 64 bits, the largest number.
    pub pieces: u64,
    /// A piece that occurs more often than this is still there, and no count is lower by more than this.
    pub most: u64,
}

impl Dropped {
    /// Adds what was dropped elsewhere, where each piece counts `weight` times.
    pub fn add(&mut self, other: Self, weight: u64) {
        let [pieces, most] = [other.pieces, other.most].map(|count| count.saturating_mul(weight));
        self.distinct += other.distinct;
        self.pieces = self.pieces.saturating_add(pieces);
        self.most = self.most.saturating_add(most);
    }
}

impl PieceCounts {
    /// How many pieces differ.
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

    /// Every piece and its count, in an order that depends on the table.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.shards.iter().flat_map(Shard::iter)
    }

    /// Counts the piece `text[range]` `count` more times.
    pub fn add(&mut self, text: &[u8], range: Range<usize>, count: u64) -> Result<()> {
        if has_key(range.len()) {
            let key = key(text, range.start, range.len());
            self.add_short(key, bucket_of(key, PLACES), count)
        } else {
            self.add_long(&text[range], count)
        }
    }

    /// Asks for the slots of a piece that is counted soon.
    #[inline(always)]
    pub fn expect(&self, place: u32) {
        let shard = &self.shards[shard_of(place)];
        let slot = shard.first_slot(place);
        // A slot may lie across the end of what the processor reads at once.
        prefetch(&shard.slots, slot);
        prefetch(&shard.slots, slot + 1);
    }

    /// Counts the piece of a key, which is in so many of [`PLACES`], `count` more times.
    #[inline(always)]
    pub fn add_short(&mut self, key: Halves, place: u32, count: u64) -> Result<()> {
        self.shards[shard_of(place)].add_short(joined(key), place, count)
    }

    /// The same for a piece that has no key.
    #[inline(never)]
    pub fn add_long(&mut self, piece: &[u8], count: u64) -> Result<()> {
        let shard = FxBuildHasher.hash_one(piece) as usize % SHARDS;
        self.shards[shard].add_long(piece, count)
    }

    /// Adds all of the others' counts times `weight`, on many threads.
    pub fn merge(&mut self, others: Vec<Self>, weight: u64, threads: usize) -> Result<()> {
        let mut others: Vec<_> = others
            .into_iter()
            .map(|other| other.shards.into_iter())
            .collect();
        let next = |_| others.iter_mut().filter_map(Iterator::next).collect();
        let added: Vec<Vec<Shard>> = (0..SHARDS).map(next).collect();
        let slots = added.iter().flatten().map(|shard| shard.slots.len());
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

    /// Bytes of memory that training on these pieces takes, about.
    pub fn cost(&self) -> usize {
        let costs = self.shards.iter();
        costs.map(|shard| cost(shard.len(), shard.bytes)).sum()
    }

    /// Drops the rarest pieces, so that the cost is at most `limit`: all of those with some count, and all
    /// rarer ones. `dropped` gets to know.
    pub fn drop_rare(&mut self, limit: usize, dropped: &mut Dropped) {
        let most = self.most_to_drop(limit);
        for shard in &mut self.shards {
            shard.drop_rare(most, dropped);
        }
        dropped.most = dropped.most.saturating_add(most);
    }

    /// The smallest number for which the pieces that occur more often cost no more than `limit`.
    fn most_to_drop(&self, limit: usize) -> u64 {
        // Most pieces are rare, so the larger counts are worth a look of their own only if it comes to that.
        const COUNTED: usize = 1 << 10;
        let mut costs = vec![0; COUNTED];
        let mut frequent = Vec::new();
        for (piece, count) in self.iter() {
            match costs.get_mut(count as usize) {
                Some(known) => *known += cost(1, piece.len()),
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

/// What distinct pieces take until merges are learned from them: a slot of a table that is half full or has just
/// grown, a word for each byte, and as much for where pairs are.
fn cost(pieces: usize, bytes: usize) -> usize {
    90 * pieces + 10 * bytes
}

fn shard_of(place: u32) -> usize {
    place as usize / ((1 << 32) / SHARDS)
}

fn joined([low, high]: Halves) -> Key {
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}

fn place_of(key: Key) -> u32 {
    let whole = u128::from_le_bytes(key);
    bucket_of([whole as u64, (whole >> 64) as u64], PLACES)
}

#[inline(always)]
fn add_to(known: &mut u64, count: u64) -> Result<()> {
    *known = checked_sum(*known, count)?;
    Ok(())
}

impl Shard {
    fn len(&self) -> usize {
        self.taken + self.long.len()
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let short = self.slots.iter().filter(|slot| slot.key != FREE.key);
        let short = short.map(|slot| (&slot.key[..usize::from(slot.key[15])], slot.count));
        let long = self.long.iter().map(|(piece, count)| (&**piece, *count));
        short.chain(long)
    }

    #[inline(always)]
    fn first_slot(&self, place: u32) -> usize {
        let place = u64::from(place.wrapping_mul(SHARDS as u32));
        ((place * self.slots.len() as u64) >> 32) as usize
    }

    #[inline(always)]
    fn add_short(&mut self, key: Key, place: u32, count: u64) -> Result<()> {
        let first = self.first_slot(place);
        if let Some([slot, next]) = self.slots.get_mut(first..first + 2) {
            // Which of the two it is cannot be foreseen.
            let slot = if slot.key == key { slot } else { next };
            if slot.key == key {
                return add_to(&mut slot.count, count);
            }
        }
        self.add_further(key, place, count)
    }

    /// The same for a key that need not be in the first two slots.
    #[inline(never)]
    fn add_further(&mut self, key: Key, place: u32, count: u64) -> Result<()> {
        if self.slots.is_empty() {
            self.grow();
        }
        let first = self.first_slot(place);
        let (before, from) = self.slots.split_at_mut(first);
        let is_it = |slot: &&mut Slot| slot.key == key || slot.key == FREE.key;
        // There always is a free one.
        let Some(slot) = from.iter_mut().chain(before).find(is_it) else {
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
        self.resize((self.slots.len() + self.slots.len() / 2).max(LEAST_SLOTS));
    }

    /// Makes it so many slots, which must be enough.
    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        // The frequent ones first, which are then found at once.
        let mut rare = Vec::new();
        for slot in old.into_iter().filter(|slot| slot.key != FREE.key) {
            if slot.count < OFTEN {
                rare.push(slot);
            } else {
                self.put(slot);
            }
        }
        rare.into_iter().for_each(|slot| self.put(slot));
    }

    /// Puts a slot that is not there into the next free one.
    fn put(&mut self, slot: Slot) {
        let mut index = self.first_slot(place_of(slot.key));
        while self.slots[index].key != FREE.key {
            index = (index + 1) % self.slots.len();
        }
        self.slots[index] = slot;
    }

    fn add_long(&mut self, piece: &[u8], count: u64) -> Result<()> {
        match self.long.get_mut(piece) {
            Some(known) => add_to(known, count),
            None => self.insert_long(piece.into(), count),
        }
    }

    fn insert_long(&mut self, piece: Box<[u8]>, count: u64) -> Result<()> {
        self.bytes += piece.len();
        self.long.insert(piece, count);
        Ok(())
    }

    /// Adds another's counts. The smaller table goes into the larger one: its keys come in the order of their
    /// places, and would lie on a heap in a table that has yet to grow for them.
    fn merge(&mut self, mut other: Self, weight: u64) -> Result<()> {
        other.multiply(weight)?;
        if self.len() < other.len() {
            std::mem::swap(self, &mut other);
        }
        for slot in other.slots.into_iter().filter(|slot| slot.key != FREE.key) {
            self.add_short(slot.key, place_of(slot.key), slot.count)?;
        }
        for (piece, count) in other.long {
            match self.long.get_mut(&piece) {
                Some(known) => add_to(known, count)?,
                None => self.insert_long(piece, count)?,
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

    /// Drops the pieces that occur `most` times or less.
    fn drop_rare(&mut self, most: u64, dropped: &mut Dropped) {
        let bytes = &mut self.bytes;
        let mut stays = |length: usize, count: u64| {
            if count <= most {
                *bytes -= length;
                dropped.distinct += 1;
                dropped.pieces = dropped.pieces.saturating_add(count);
            }
            count > most
        };
        for slot in self.slots.iter_mut().filter(|slot| slot.key != FREE.key) {
            if !stays(usize::from(slot.key[15]), slot.count) {
                *slot = FREE;
                self.taken -= 1;
            }
        }
        self.long.retain(|piece, count| stays(piece.len(), *count));
        self.long.shrink_to_fit();
        self.resize((self.taken * 3 / 2).max(LEAST_SLOTS));
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
                assert_eq!(dropped.most, most);
            }
            let stay = |pair: &&(&str, u64)| pair.1 > dropped.most;
            let kept: Vec<_> = pieces.iter().filter(stay).copied().collect();
            assert_eq!(table(&counts), table(&counts_of(&kept)));
            assert_eq!(dropped.distinct as usize, pieces.len() - kept.len());
            assert!(counts.cost() <= limit && counts.cost() == counts_of(&kept).cost());
        }
        let mut counts = counts_of(&pieces);
        let mut dropped = Dropped::default();
        counts.drop_rare(cost(1, 1), &mut dropped);
        assert_eq!((counts.len(), dropped.most), (1, 5000));
        counts.drop_rare(0, &mut dropped);
        assert_eq!((counts.len(), dropped.most), (0, 11_000));
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

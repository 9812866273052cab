//! Distinct pieces with their counts, in shards: hash tables that merge in parallel. A shard uses open addressing with
//! linear probing for short pieces and a map for long ones.

use super::streams::{Order, PieceStream, SortedPieces, Weighted};
use crate::cache::{bucket_of, has_key, key, Key};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::memory::prefetch;
use crate::reserve::{copied, filled, reserve_entries, reserve_entry, with_capacity};
use crate::threads::{lock, on_threads, thread_count};
use crate::train::{checked_product, checked_sum};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Mutex;

/// Distinct pieces with their counts. Counts are checked: they never wrap.
#[derive(Default)]
pub struct PieceCounts {
    pub(super) shards: [Shard; SHARDS],
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
    pub fn add_short(&mut self, key: Key, bucket: u32, count: u64) -> Result<()> {
        self.shards[shard_of(bucket)].add_short(byte_key(key), bucket, count)
    }

    /// Adds `count` to a piece that is too long for a key.
    #[inline(never)]
    pub fn add_long(&mut self, piece: &[u8], count: u64) -> Result<()> {
        self.shards[shard_of_long(piece)].add_long(piece, count)
    }

    /// Adds the counts of other tables times `weight`, in parallel, and takes each from the list. An error leaves the
    /// counts of this table and of those in the list as they are.
    pub fn merge(&mut self, others: &mut Vec<Self>, weight: u64, threads: usize) -> Result<()> {
        while let Some(other) = others.last_mut() {
            let slots = other.shards.iter().map(|shard| shard.slots.len());
            let threads = thread_count(threads, usize::MAX).min(slots.sum::<usize>() >> 14);
            self.on_shards(other, threads, |shard, other| {
                shard.prepare_merge(other, weight)
            })?;
            self.on_shards(other, threads, |shard, other| shard.merge(other, weight))?;
            others.pop();
        }
        Ok(())
    }

    /// Bytes of memory that the table takes, also after it grows for `more` pieces. A copy that a growing shard needs for a
    /// moment does not count.
    pub fn memory(&self, more: usize) -> usize {
        let more = more / SHARDS;
        self.shards.iter().map(|shard| shard.memory(more)).sum()
    }

    /// Sorts tables, and calls `work` with a stream for each part of them. A table counts `weight` times. If `work` fails,
    /// the tables are as before; otherwise they are empty.
    ///
    /// Takes little memory: the slots are sorted where they are. A table that is small for its memory gives it back;
    /// so do all tables, if they take more than `memory`.
    pub fn drain_sorted<T>(
        tables: &mut [(&mut Self, u64)],
        memory: usize,
        threads: usize,
        work: impl FnOnce(Vec<Weighted<'_>>) -> Result<T>,
    ) -> Result<T> {
        let threads = thread_count(threads, usize::MAX).min(tables.len() * SHARDS);
        let shards = tables.iter_mut().flat_map(|(table, _)| &mut table.shards);
        let shards = Mutex::new(shards);
        let sort = || loop {
            let Some(shard) = lock(&shards).next() else {
                return;
            };
            shard.sort();
        };
        on_threads(threads, &Interrupt::never(), sort);
        let worked = Self::sorted_streams(tables).and_then(work);
        let held: usize = tables.iter().map(|(table, _)| table.memory(0)).sum();
        for shard in tables.iter_mut().flat_map(|(table, _)| &mut table.shards) {
            match worked {
                Ok(_) => shard.clear(held <= memory),
                Err(_) => shard.unsort()?,
            }
        }
        worked
    }

    fn sorted_streams<'a>(tables: &'a [(&mut Self, u64)]) -> Result<Vec<Weighted<'a>>> {
        let mut streams = Vec::new();
        for (table, weight) in tables {
            for shard in &table.shards {
                let mut long: Vec<(&[u8], u64)> = with_capacity(shard.long.len())?;
                long.extend(shard.long.iter().map(|(piece, count)| (&**piece, *count)));
                long.sort_unstable();
                let slots = &shard.slots[..shard.taken];
                let [short, long]: [Box<dyn PieceStream + 'a>; 2] = [
                    Box::new(SortedSlots { slots, next: 0 }),
                    Box::new(SortedPieces::of(long)),
                ];
                let weight = *weight;
                streams.extend([short, long].map(|stream| Weighted { stream, weight }));
            }
        }
        Ok(streams)
    }

    /// Calls `work` with each shard of both tables, in parallel.
    fn on_shards(
        &mut self,
        other: &mut Self,
        threads: usize,
        work: impl Fn(&mut Shard, &mut Shard) -> Result<()> + Sync,
    ) -> Result<()> {
        let shards = Mutex::new(self.shards.iter_mut().zip(&mut other.shards));
        let work = || -> Result<()> {
            loop {
                let Some((shard, other)) = lock(&shards).next() else {
                    return Ok(());
                };
                work(shard, other)?;
            }
        };
        on_threads(threads.clamp(1, SHARDS), &Interrupt::never(), work)
            .into_iter()
            .collect()
    }

    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let mut copy = Self::default();
        for (shard, copied) in self.shards.iter().zip(&mut copy.shards) {
            *copied = shard.copy()?;
        }
        Ok(copy)
    }

    /// Bytes of all distinct pieces.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.bytes).sum()
    }

    /// Removes the pieces with counts below `min_count`.
    pub fn prune(&mut self, min_count: u64) -> Result<()> {
        let mut shards = self.shards.iter_mut();
        // A free slot has the count 0.
        shards.try_for_each(|shard| shard.prune(min_count.max(1)))
    }
}

/// The shard of the short pieces of a virtual bucket.
#[inline(always)]
pub(super) fn shard_of(bucket: u32) -> usize {
    const BUCKETS_PER_SHARD: u32 = u32::MAX / SHARDS as u32 + 1;
    (bucket / BUCKETS_PER_SHARD) as usize
}

/// The shard of a piece that is too long for a key.
pub(super) fn shard_of_long(piece: &[u8]) -> usize {
    FxBuildHasher.hash_one(piece) as usize % SHARDS
}

/// Shards of a table; a power of two. Shards merge in parallel.
pub(super) const SHARDS: usize = 16;
/// Keys hash to this many virtual buckets, and a table scales a virtual bucket to its size. So all tables hold
/// their keys in the same order.
pub const VIRTUAL_BUCKETS: usize = u32::MAX as usize;
/// A growing table moves pieces with this count first: they then need no probing.
const FREQUENT: u64 = 8;
/// The slots of so many keys of a list are prefetched.
const PREFETCHED_KEYS: usize = 32;
/// Slots of the smallest shard.
const MIN_SLOTS: usize = 64;

/// A short piece: up to 15 bytes, and its length in the last byte.
pub(super) type ByteKey = [u8; 16];

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
#[derive(Default)]
pub(super) struct Shard {
    /// Short pieces. At most 5/8 of the slots are taken.
    slots: Vec<Slot>,
    taken: usize,
    pub(super) long: FxHashMap<Box<[u8]>, u64>,
    /// Bytes of all distinct pieces.
    bytes: usize,
    /// Bytes of the long ones.
    long_bytes: usize,
    /// The pieces that found no place in a table of limited size since its rarer ones moved out.
    pub(super) passed_on: usize,
}

/// Adds to a count.
#[inline(always)]
pub(super) fn add_to(total: &mut u64, count: u64) -> Result<()> {
    *total = checked_sum(*total, count)?;
    Ok(())
}

/// The bytes of a key.
#[inline(always)]
pub(super) fn byte_key([low, high]: Key) -> ByteKey {
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}

/// The order of the piece of a key. Zeros fill the key, and its length is last.
fn order_of_key(key: ByteKey) -> Order {
    Order::from_be_bytes(key)
}

fn virtual_bucket(key: ByteKey) -> u32 {
    let whole = u128::from_le_bytes(key);
    bucket_of([whole as u64, (whole >> 64) as u64], VIRTUAL_BUCKETS)
}

impl Shard {
    pub(super) fn len(&self) -> usize {
        self.taken + self.long.len()
    }

    /// As [`PieceCounts::memory`].
    pub(super) fn memory(&self, more: usize) -> usize {
        let mut slots = self.slots.len();
        if slots > 0 && !self.has_room(more) {
            slots = grown(slots);
        }
        // A map has a byte for each place, and at most 7/8 of the places are taken. An allocation takes 16 bytes more.
        let places = self.long.capacity() * 8 / 7;
        slots * size_of::<Slot>() + places * 25 + self.long.len() * 16 + self.long_bytes
    }

    /// Moves the short pieces to the first slots, in byte order.
    fn sort(&mut self) {
        let mut taken = 0;
        for index in 0..self.slots.len() {
            if self.slots[index].key != FREE.key {
                self.slots.swap(taken, index);
                taken += 1;
            }
        }
        self.slots[..taken].sort_unstable_by_key(|slot| order_of_key(slot.key));
    }

    /// Undoes `sort`.
    fn unsort(&mut self) -> Result<()> {
        let sorted = copied(&self.slots[..self.taken])?;
        self.slots.fill(FREE);
        sorted.into_iter().for_each(|slot| self.put(slot));
        Ok(())
    }

    /// Removes all pieces. Keeps the memory of the slots if a fourth of them was taken.
    fn clear(&mut self, keeps_memory: bool) {
        let mut slots = std::mem::take(&mut self.slots);
        if keeps_memory && 4 * self.taken >= slots.len() {
            slots.fill(FREE);
        } else {
            slots = Vec::new();
        }
        *self = Self {
            slots,
            ..Self::default()
        };
    }

    /// The largest count.
    fn largest(&self) -> u64 {
        self.iter().map(|(_, count)| count).max().unwrap_or(0)
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
        match self.near(key, bucket) {
            Some(total) => add_to(total, count),
            None => self.probe_and_add(key, bucket, count),
        }
    }

    /// The count of a key that is in its first two slots.
    #[inline(always)]
    pub(super) fn near(&mut self, key: ByteKey, bucket: u32) -> Option<&mut u64> {
        let first = self.first_slot(bucket);
        let [slot, next] = self.slots.get_mut(first..first + 2)? else {
            return None;
        };
        // A select instead of a branch: no predictor can tell which of the two it is.
        let slot = if slot.key == key { slot } else { next };
        (slot.key == key).then_some(&mut slot.count)
    }

    /// Adds to a key that is not in its first two slots.
    #[inline(never)]
    pub(super) fn probe_and_add(&mut self, key: ByteKey, bucket: u32, count: u64) -> Result<()> {
        if !self.has_room(1) && self.probe(key, bucket).is_none() {
            self.make_room(1)?;
        }
        let Some(slot) = self.slot_of(key, bucket) else {
            return Ok(()); // never: some slots are free
        };
        add_to(&mut slot.count, count)?;
        if slot.key == FREE.key {
            slot.key = key;
            self.taken += 1;
            self.bytes += usize::from(key[15]);
        }
        Ok(())
    }

    /// The slot of a key, or the free one where it belongs.
    fn slot_of(&mut self, key: ByteKey, bucket: u32) -> Option<&mut Slot> {
        let first = self.first_slot(bucket);
        let (before, from) = self.slots.split_at_mut(first);
        // `make_room` keeps slots free, so the probe ends.
        let is_match = |slot: &&mut Slot| slot.key == key || slot.key == FREE.key;
        from.iter_mut().chain(before).find(is_match)
    }

    /// The slot of a key.
    fn probe(&mut self, key: ByteKey, bucket: u32) -> Option<&mut Slot> {
        self.slot_of(key, bucket).filter(|slot| slot.key == key)
    }

    /// Whether the shard holds a key.
    pub(super) fn holds(&mut self, key: ByteKey, bucket: u32) -> bool {
        self.probe(key, bucket).is_some()
    }

    /// Whether `keys` further keys fit: at most 5/8 of the slots are taken.
    fn has_room(&self, keys: usize) -> bool {
        8 * (self.taken + keys) < 5 * self.slots.len()
    }

    /// Grows the table until `keys` further keys fit.
    fn make_room(&mut self, keys: usize) -> Result<()> {
        let taken = self.taken + keys;
        let mut slots = self.slots.len();
        while 8 * taken >= 5 * slots {
            slots = grown(slots);
        }
        if slots > self.slots.len() {
            self.rehash(filled(FREE, slots)?);
        }
        Ok(())
    }

    /// Moves the keys into an empty table, which is large enough.
    #[cold]
    fn rehash(&mut self, slots: Vec<Slot>) {
        let old = std::mem::replace(&mut self.slots, slots);
        let taken = || old.iter().filter(|slot| slot.key != FREE.key);
        let is_frequent = |slot: &&Slot| slot.count >= FREQUENT;
        let rare = taken().filter(|slot| !is_frequent(slot));
        for slot in taken().filter(is_frequent).chain(rare) {
            self.put(*slot);
        }
    }

    /// Inserts a new key into the next free slot.
    fn put(&mut self, slot: Slot) {
        let mut index = self.first_slot(virtual_bucket(slot.key));
        while self.slots[index].key != FREE.key {
            index = (index + 1) % self.slots.len();
        }
        self.slots[index] = slot;
    }

    pub(super) fn add_long(&mut self, piece: &[u8], count: u64) -> Result<()> {
        match self.long.get_mut(piece) {
            Some(total) => add_to(total, count),
            None => {
                reserve_entry(&mut self.long)?;
                self.insert_long(copied(piece)?.into_boxed_slice(), count);
                Ok(())
            }
        }
    }

    /// As `add_long`, for a piece that has room.
    fn add_boxed(&mut self, piece: Box<[u8]>, count: u64) -> Result<()> {
        match self.long.get_mut(&piece) {
            Some(total) => add_to(total, count),
            None => {
                self.insert_long(piece, count);
                Ok(())
            }
        }
    }

    fn insert_long(&mut self, piece: Box<[u8]>, count: u64) {
        self.bytes += piece.len();
        self.long_bytes += piece.len();
        self.long.insert(piece, count);
    }

    /// Whether a merge moves this shard into the other: the smaller table goes into the larger one.
    fn goes_into(&self, other: &Self) -> bool {
        self.len() < other.len()
    }

    /// Makes room for a merge with another shard, whose counts count `weight` times. Fails if a sum would exceed 64
    /// bits. Both keep their counts.
    fn prepare_merge(&mut self, other: &mut Self, weight: u64) -> Result<()> {
        if self.goes_into(other) {
            other.prepare_to_add(self, weight, 1)
        } else {
            self.prepare_to_add(other, 1, weight)
        }
    }

    /// Makes room for another shard's counts. Those of this shard count `weight` times, the added ones
    /// `added_weight` times.
    fn prepare_to_add(&mut self, added: &Self, weight: u64, added_weight: u64) -> Result<()> {
        if weight > 1 {
            let mut counts = self.iter().map(|(_, count)| count);
            counts.try_for_each(|count| checked_product(count, weight).map(|_| ()))?;
        }
        let sum = |own: u64, count: u64| {
            checked_sum(
                checked_product(own, weight)?,
                checked_product(count, added_weight)?,
            )
        };
        if sum(self.largest(), added.largest()).is_err() {
            for slot in added.slots.iter().filter(|slot| slot.key != FREE.key) {
                let own = self.probe(slot.key, virtual_bucket(slot.key));
                sum(own.map_or(0, |own| own.count), slot.count)?;
            }
            for (piece, count) in &added.long {
                let own = self.long.get(piece);
                sum(own.copied().unwrap_or(0), *count)?;
            }
        }
        self.reserve(added)
    }

    /// Makes room for another shard's pieces. Those that this shard holds too need none.
    fn reserve(&mut self, added: &Self) -> Result<()> {
        if !self.has_room(added.taken) {
            let keys = added.slots.iter().map(|slot| slot.key);
            let taken = keys.filter(|key| *key != FREE.key);
            let new = taken.filter(|key| !self.holds(*key, virtual_bucket(*key)));
            let new = new.count();
            self.make_room(new)?;
        }
        if self.long.capacity() - self.long.len() < added.long.len() {
            let new = added.long.keys();
            let new = new.filter(|piece| !self.long.contains_key(*piece)).count();
            reserve_entries(&mut self.long, new)?;
        }
        Ok(())
    }

    /// Adds `count` to each piece of a list, and empties the list. The caller knows that no sum exceeds 64 bits. Without
    /// memory, the list stays.
    pub(super) fn add_keys(&mut self, keys: &mut Vec<ByteKey>, count: u64) -> Result<()> {
        self.make_room(keys.len())?;
        for batch in keys.chunks(PREFETCHED_KEYS) {
            for &key in batch {
                self.prefetch(virtual_bucket(key));
            }
            for &key in batch {
                self.add_short(key, virtual_bucket(key), count)?;
            }
        }
        keys.clear();
        Ok(())
    }

    /// Moves the pieces up to the median of the counts to another shard, where each counts `weight` times. The caller knows
    /// that no sum exceeds 64 bits. Without memory, all pieces stay.
    pub(super) fn move_rare(&mut self, other: &mut Self, weight: u64) -> Result<()> {
        let mut counts: Vec<u64> = with_capacity(self.len())?;
        counts.extend(self.iter().map(|(_, count)| count));
        if counts.is_empty() {
            return Ok(());
        }
        let middle = counts.len() / 2;
        let most = *counts.select_nth_unstable(middle).1;
        other.reserve(self)?;
        let kept = filled(FREE, self.slots.len())?;
        for slot in std::mem::replace(&mut self.slots, kept) {
            if slot.count > most {
                self.put(slot);
            } else if slot.key != FREE.key {
                let count = checked_product(slot.count, weight)?;
                other.add_short(slot.key, virtual_bucket(slot.key), count)?;
                self.taken -= 1;
                self.bytes -= usize::from(slot.key[15]);
            }
        }
        for (piece, count) in self.long.extract_if(|_, count| *count <= most) {
            self.bytes -= piece.len();
            self.long_bytes -= piece.len();
            other.add_boxed(piece, checked_product(count, weight)?)?;
        }
        self.passed_on = 0;
        Ok(())
    }

    /// Adds another shard's counts times `weight`, after `prepare_merge`.
    fn merge(&mut self, other: &mut Self, weight: u64) -> Result<()> {
        let goes_into = self.goes_into(other);
        other.multiply(weight)?;
        if goes_into {
            std::mem::swap(self, other);
        }
        for slot in other.slots.iter().filter(|slot| slot.key != FREE.key) {
            self.add_short(slot.key, virtual_bucket(slot.key), slot.count)?;
        }
        for (piece, count) in other.long.drain() {
            self.add_boxed(piece, count)?;
        }
        Ok(())
    }

    fn multiply(&mut self, weight: u64) -> Result<()> {
        if weight == 1 {
            return Ok(());
        }
        let short = self.slots.iter_mut().map(|slot| &mut slot.count);
        for count in short.chain(self.long.values_mut()) {
            *count = checked_product(*count, weight)?;
        }
        Ok(())
    }

    fn copy(&self) -> Result<Self> {
        let mut long = FxHashMap::default();
        reserve_entries(&mut long, self.long.len())?;
        for (piece, count) in &self.long {
            long.insert(copied(piece)?.into_boxed_slice(), *count);
        }
        Ok(Self {
            slots: copied(&self.slots)?,
            taken: self.taken,
            long,
            bytes: self.bytes,
            long_bytes: self.long_bytes,
            passed_on: self.passed_on,
        })
    }

    /// Removes the pieces with counts below `min_count`.
    fn prune(&mut self, min_count: u64) -> Result<()> {
        let stays = |count: u64| count >= min_count;
        let short = self.slots.iter().filter(|slot| stays(slot.count)).count();
        let slots = filled(FREE, (short * 3 / 2).max(MIN_SLOTS))?;
        let mut long = FxHashMap::default();
        reserve_entries(&mut long, self.long.values().filter(|&&c| stays(c)).count())?;
        for slot in self.slots.iter_mut().filter(|slot| slot.key != FREE.key) {
            if !stays(slot.count) {
                self.bytes -= usize::from(slot.key[15]);
                *slot = FREE;
            }
        }
        for (piece, count) in self.long.drain() {
            if stays(count) {
                long.insert(piece, count);
            } else {
                self.bytes -= piece.len();
                self.long_bytes -= piece.len();
            }
        }
        (self.taken, self.long) = (short, long);
        self.rehash(slots);
        Ok(())
    }
}

/// The slots of a shard that has grown.
fn grown(slots: usize) -> usize {
    (slots + slots / 2).max(MIN_SLOTS)
}

/// The short pieces of a sorted shard.
struct SortedSlots<'a> {
    slots: &'a [Slot],
    /// The number of the piece after the current one.
    next: usize,
}

impl PieceStream for SortedSlots<'_> {
    fn advance(&mut self) -> Result<bool> {
        self.next += 1;
        Ok(self.next <= self.slots.len())
    }

    fn piece(&self) -> &[u8] {
        let key = &self.slots[self.next - 1].key;
        &key[..usize::from(key[15])]
    }

    fn count(&self) -> u64 {
        self.slots[self.next - 1].count
    }

    fn order(&self) -> Order {
        order_of_key(self.slots[self.next - 1].key)
    }
}

#[cfg(test)]
mod tests {
    use super::super::streams::{order_of, Sums};
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
    fn a_sorted_slot_has_the_order_of_its_piece() {
        for piece in [&b""[..], b"a", b"a\0", b"\xff", b"fifteen bytes!!"] {
            let key = byte_key(key(piece, 0, piece.len()));
            assert_eq!(order_of_key(key), order_of(piece));
        }
    }

    #[test]
    fn a_count_never_wraps() {
        for piece in ["a", "a piece that does not fit a key"] {
            let mut counts = counts_of(&[(piece, u64::MAX)]);
            let result = counts.add(piece.as_bytes(), 0..piece.len(), 1);
            assert!(matches!(result, Err(Error::CountOverflow)));
            for (other, weight) in [(1, 1), (2, u64::MAX)] {
                let mut other = counts_of(&[(piece, other)]);
                let result = other.merge(&mut vec![counts.copy().unwrap()], weight, 2);
                assert!(matches!(result, Err(Error::CountOverflow)));
            }
            let both = counts_of(&[(piece, u64::MAX), ("b", 1)]);
            assert!(matches!(both.total(), Err(Error::CountOverflow)));
        }
    }

    /// Fails if a shard is too full or too large for its pieces.
    fn check_sizes(counts: &PieceCounts) {
        for shard in &counts.shards {
            let (slots, taken) = (shard.slots.len(), shard.taken);
            assert!(3 * taken <= 2 * (slots + 1), "{taken} of {slots}");
            assert!(slots <= MIN_SLOTS.max(5 * taken / 2), "{taken} of {slots}");
        }
    }

    #[test]
    fn a_merge_that_fails_changes_nothing() {
        const HALF: u64 = 1 << 63;
        let long = "a piece that does not fit a key";
        let words: Vec<String> = (0..500).map(|number| format!("w{number}")).collect();
        let with = |more: &[(&'static str, u64)]| -> Vec<(String, u64)> {
            let words = words.iter().map(|word| (word.clone(), 2));
            let more = more
                .iter()
                .map(|(piece, count)| ((*piece).to_owned(), *count));
            words.chain(more).collect()
        };
        let few = |pieces: &[(&'static str, u64)]| {
            let pieces = pieces
                .iter()
                .map(|(piece, count)| ((*piece).to_owned(), *count));
            pieces.collect::<Vec<_>>()
        };
        let counts_of = |pieces: &[(String, u64)]| {
            let pieces = pieces.iter().map(|(piece, count)| (piece.as_str(), *count));
            counts_of(&pieces.collect::<Vec<_>>())
        };
        for top in ["w1", long] {
            let (large, small) = (with(&[(top, HALF)]), few(&[("x", 1), (top, HALF)]));
            for (own, other, weight) in [
                (&large, &small, 1),
                (&small, &large, 1),
                (&with(&[]), &small, 2),
                (&small, &with(&[(top, 1)]), HALF),
                (&Vec::new(), &large, 2),
                (&few(&[("x", 1)]), &large, 2),
            ] {
                let (mut counts, mut others) = (counts_of(own), vec![counts_of(other)]);
                let result = counts.merge(&mut others, weight, 2);
                assert!(matches!(result, Err(Error::CountOverflow)));
                assert_eq!(table(&counts), table(&counts_of(own)));
                assert_eq!(others.len(), 1);
                assert_eq!(table(&others[0]), table(&counts_of(other)));
            }
            // These sums fit.
            let mut counts = counts_of(&few(&[("y", 1), (top, HALF - 1)]));
            let larger = counts_of(&with(&[(long, HALF - 5)]));
            counts.merge(&mut vec![larger], 1, 2).unwrap();
            assert_eq!(counts.len(), 502);
            check_sizes(&counts);
            let more = (0..1500).map(|number| (format!("v{number}"), 1));
            let mut more = vec![counts_of(&more.collect::<Vec<_>>())];
            counts.merge(&mut more, 1, 2).unwrap();
            check_sizes(&counts);
        }
    }

    #[test]
    fn the_frequent_pieces_stay() {
        let long = "a piece that does not fit a key";
        let words: Vec<String> = (0..3000).map(|number| format!("w{number}")).collect();
        let words = (1..)
            .zip(&words)
            .map(|(count, word)| (word.as_str(), count));
        let pieces: Vec<_> = words.chain([(long, 7)]).collect();
        let mut counts = counts_of(&pieces);
        assert!(!counts.is_empty() && PieceCounts::default().is_empty());
        for min_count in [0, 1, 7, 8, 2900, 2901, 9000] {
            counts.prune(min_count).unwrap();
            let mut kept = pieces.clone();
            kept.retain(|(_, count)| *count >= min_count);
            let kept = counts_of(&kept);
            assert_eq!(table(&counts), table(&kept));
            assert_eq!(counts.bytes(), kept.bytes());
            check_sizes(&counts);
        }
    }

    fn drained(tables: &mut [(&mut PieceCounts, u64)], memory: usize) -> Vec<(Vec<u8>, u64)> {
        PieceCounts::drain_sorted(tables, memory, 2, |streams| {
            let mut sums = Sums::new(streams)?;
            let mut pieces = Vec::new();
            while sums.advance()? {
                pieces.push((sums.piece().to_vec(), sums.count()));
            }
            Ok(pieces)
        })
        .unwrap()
    }

    #[test]
    fn tables_are_drained_in_order_or_left_as_they_are() {
        let long = "a piece that does not fit a key";
        let words: Vec<String> = (0..3000).map(|number| format!("w{number}")).collect();
        let pieces: Vec<(&str, u64)> = words.iter().map(|word| (word.as_str(), 2)).collect();
        let mut one = counts_of(&pieces);
        let mut other = counts_of(&[("w7", 1), ("a\0", 4), ("a", 5), (long, 6)]);
        let (before, after) = (table(&one), table(&other));
        let failed = PieceCounts::drain_sorted(
            &mut [(&mut one, 1), (&mut other, 10)],
            usize::MAX,
            2,
            |_| Err::<(), _>(Error::Interrupted),
        );
        assert!(failed.is_err());
        assert_eq!((table(&one), table(&other)), (before.clone(), after));
        one.add(b"w7", 0..2, 1).unwrap();
        assert_eq!(one.len(), before.len()); // found where it is
        let held = one.memory(0);
        let drained = drained(&mut [(&mut one, 1), (&mut other, 10)], usize::MAX);
        let mut expected = before;
        for (piece, count) in [("w7", 11), ("a\0", 40), ("a", 50), (long, 60)] {
            *expected.entry(piece.into()).or_insert(0) += count;
        }
        assert_eq!(drained, expected.into_iter().collect::<Vec<_>>());
        assert!(one.is_empty() && other.is_empty() && one.bytes() == 0);
        assert!(one.memory(0) == held && other.memory(0) == 0);
        one.add(b"w7", 0..2, 1).unwrap();
        assert_eq!(self::drained(&mut [(&mut one, 1)], 0), [(b"w7".into(), 1)]);
        assert_eq!(one.memory(0), 0);
    }

    #[test]
    fn memory_counts_what_growth_takes() {
        let mut counts = PieceCounts::default();
        assert_eq!(counts.memory(1000), 0);
        let mut last = 0;
        for number in 0..20_000 {
            let piece = format!("{number}");
            counts.add(piece.as_bytes(), 0..piece.len(), 1).unwrap();
            let memory = counts.memory(0);
            assert!(memory >= last && memory <= counts.memory(SHARDS * 1000));
            last = memory;
        }
        assert!((20_000 * 38..20_000 * 60).contains(&last), "{last}");
        let long = "long".repeat(1000);
        counts.add(long.as_bytes(), 0..long.len(), 1).unwrap();
        assert!((4000..4200).contains(&(counts.memory(0) - last)));
    }

    proptest! {
        #[test]
        fn drained_pieces_are_those_of_a_map(
            pieces in prop::collection::vec("[ab\0]{1,20}", 0..500),
        ) {
            let mut expected = BTreeMap::new();
            let (mut one, mut other) = (PieceCounts::default(), PieceCounts::default());
            for (number, piece) in pieces.iter().enumerate() {
                let (table, weight) = [(&mut one, 1), (&mut other, 3)]
                    .into_iter()
                    .nth(number % 2)
                    .unwrap();
                table.add(piece.as_bytes(), 0..piece.len(), 1).unwrap();
                *expected.entry(piece.clone().into_bytes()).or_insert(0) += weight;
            }
            let drained = drained(&mut [(&mut one, 1), (&mut other, 3)], usize::MAX);
            prop_assert_eq!(drained, expected.into_iter().collect::<Vec<_>>());
        }

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
            counts.merge(&mut vec![second, third], weight, threads).unwrap();
            prop_assert_eq!(counts.len(), expected.len());
            prop_assert_eq!(counts.total().unwrap(), expected.values().sum::<u64>());
            prop_assert_eq!(table(&counts), expected);
            let mut anew = PieceCounts::default();
            for (piece, count) in counts.iter() {
                anew.add(piece, 0..piece.len(), count).unwrap();
            }
            prop_assert_eq!(anew.bytes(), counts.bytes());
        }
    }
}

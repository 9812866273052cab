//! A hash table of piece counts: open addressing with linear probing for short pieces, a map for long ones.

use crate::cache::bucket_of;
use crate::error::{Error, Result};
use crate::memory::prefetch;
use crate::train::checked_sum;
use rustc_hash::FxHashMap;

/// Shards of a table; a power of two. Shards merge in parallel.
pub const SHARDS: usize = 16;
/// Keys hash to this many virtual buckets, and a table scales a virtual bucket to its size. So all tables hold
/// their keys in the same order.
pub const VIRTUAL_BUCKETS: usize = u32::MAX as usize;
/// A growing table moves pieces with this count first: they then need no probing.
const FREQUENT: u64 = 8;
/// Slots of the smallest shard.
const MIN_SLOTS: usize = 64;

/// A short piece: up to 15 bytes, and its length in the last byte.
pub type ByteKey = [u8; 16];

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
pub struct Shard {
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
pub fn cost(pieces: usize, bytes: usize) -> usize {
    90 * pieces + 10 * bytes
}

impl Shard {
    pub fn len(&self) -> usize {
        self.taken + self.long.len()
    }

    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    pub fn cost(&self) -> usize {
        cost(self.len(), self.bytes)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
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
    pub fn prefetch(&self, bucket: u32) {
        let slot = self.first_slot(bucket);
        prefetch(&self.slots, slot);
        prefetch(&self.slots, slot + 1);
    }

    #[inline(always)]
    pub fn add_short(&mut self, key: ByteKey, bucket: u32, count: u64) -> Result<()> {
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

    pub fn add_long(&mut self, piece: &[u8], count: u64) -> Result<()> {
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
    pub fn merge(&mut self, mut other: Self, weight: u64) -> Result<()> {
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
    pub fn drop_rare(&mut self, max_count: u64, dropped: &mut Dropped) {
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

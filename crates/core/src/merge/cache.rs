//! Pieces that were merged before: a bounded table, which never changes a result.

use super::keys::{hash, Key, KEY_BYTES};
use super::memory::{prefetch, table};
use rustc_hash::FxHashMap;

/// Ids that a slot holds; those of a piece with more are elsewhere, and the first id says where.
const SLOT_IDS: usize = 3;
/// Sets of a new table, as a power of two: 128 KiB.
const FEWEST: u32 = 11;
/// Sets of the largest table: 16 MiB.
const MOST: u32 = 18;
/// Pieces whose ids no slot holds share so many ids at most: 8 MiB.
const SPILLED: usize = 1 << 21;
/// Pieces longer than this are not kept.
const LONGEST: usize = 512;
/// Bytes of longer pieces and ids that are kept beside the table before all of these are dropped.
const LONG_BYTES: usize = 4 << 20;

/// A key's two halves, then three ids and their number. A key's top byte is the piece's length, so
/// the key of a free slot is zero.
#[derive(Clone, Copy, Default)]
#[repr(C, align(32))]
struct Slot {
    key: Key,
    ids: [u32; SLOT_IDS + 1],
}

/// Slots where a key may be: they share a line of the processor's cache. A key has another set too.
type Set = [Slot; 2];

/// One thread's cache.
pub struct Cache {
    sets: Box<[Set]>,
    /// Bits to shift a hash so that it is the number of a set.
    shift: u32,
    /// The ids that no slot holds, and behind the last of them room to read on.
    spilled: Vec<u32>,
    long: FxHashMap<Box<[u8]>, Box<[u32]>>,
    long_bytes: usize,
    /// Pieces in slots.
    kept: usize,
    /// Pieces that were found.
    pub hits: u64,
    /// Pieces that were merged.
    pub misses: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            sets: table(1 << FEWEST),
            shift: u64::BITS - FEWEST,
            spilled: Vec::new(),
            long: FxHashMap::default(),
            long_bytes: 0,
            kept: 0,
            hits: 0,
            misses: 0,
        }
    }
}

impl Cache {
    /// Bits to shift a hash so that it is the number of the set where a key may be.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// The set where a key may be, before any other.
    #[inline(always)]
    pub fn set_of(&self, key: Key) -> u32 {
        (hash(key) >> self.shift) as u32
    }

    /// Asks for a set that is looked at soon.
    #[inline(always)]
    pub fn expect(&self, set: u32) {
        prefetch(&self.sets, set as usize);
    }

    /// Writes the ids of a short piece that is in this set, with any behind them; returns how many they
    /// are. None if it is not there; it may be in another set.
    #[inline(always)]
    pub fn write(&self, set: u32, key: Key, ids: &mut [u32; KEY_BYTES]) -> Option<usize> {
        let set = self.sets.get(set as usize)?;
        // Which of the two it is cannot be foreseen, so nothing may depend on that but an address.
        let differ = |slot: &Slot| (slot.key[0] ^ key[0]) | (slot.key[1] ^ key[1]);
        let slot = &set[usize::from(differ(&set[0]) != 0)];
        if differ(slot) != 0 {
            return None;
        }
        ids[..=SLOT_IDS].copy_from_slice(&slot.ids);
        let count = slot.ids[SLOT_IDS] as usize;
        if count > SLOT_IDS {
            let found = self.spilled.get(slot.ids[0] as usize..)?;
            *ids = *found.first_chunk()?;
        }
        Some(count)
    }

    /// Appends the ids of a short piece, if they are here.
    #[inline(always)]
    pub fn get(&mut self, key: Key, ids: &mut Vec<u32>) -> bool {
        let mut found = [0; KEY_BYTES];
        let first = self.set_of(key);
        let in_first = self.write(first, key, &mut found);
        let Some(count) = in_first.or_else(|| self.write(other(first, key), key, &mut found))
        else {
            return false;
        };
        self.hits += 1;
        let end = ids.len() + count;
        ids.extend_from_slice(&found);
        ids.truncate(end);
        true
    }

    /// Keeps the ids of a short piece that is not here, in place of one that came earlier.
    pub fn insert(&mut self, key: Key, ids: &[u32]) {
        self.misses += 1;
        if ids.len() > KEY_BYTES {
            return;
        }
        let mut slot = Slot {
            key,
            ..Slot::default()
        };
        slot.ids[SLOT_IDS] = ids.len() as u32;
        if ids.len() <= SLOT_IDS {
            slot.ids[..ids.len()].copy_from_slice(ids);
        } else {
            if self.spilled.len() + ids.len() > SPILLED {
                self.drop_spilled();
            }
            self.spilled
                .truncate(self.spilled.len().saturating_sub(KEY_BYTES));
            slot.ids[0] = self.spilled.len() as u32;
            self.spilled.extend_from_slice(ids);
            self.spilled.extend([0; KEY_BYTES]);
        }
        self.put(slot);
    }

    /// Puts a slot into one of its sets: where there is room, or else in place of the last one. What came
    /// early comes often.
    fn put(&mut self, slot: Slot) {
        let first = self.set_of(slot.key);
        for set in [first, other(first, slot.key)] {
            let set = &mut self.sets[set as usize];
            if let Some(free) = set.iter_mut().find(|slot| slot.key == [0; 2]) {
                *free = slot;
                self.kept += 1;
                return;
            }
        }
        self.sets[first as usize][1] = slot;
    }

    /// Whether so many ids can be kept without a thought for others: for pieces that are found fast enough
    /// by their parts.
    pub fn has_room(&self, ids: usize) -> bool {
        ids <= SLOT_IDS || self.spilled.len() < SPILLED / 4 * 3
    }

    /// Makes the table bigger if it is full. Sets are others then.
    pub fn make_room(&mut self) {
        let bits = self.sets.len().trailing_zeros();
        if self.kept > self.sets.len() && bits < MOST {
            let bits = (bits + 2).min(MOST);
            let old = std::mem::replace(&mut self.sets, table(1 << bits));
            (self.shift, self.kept) = (u64::BITS - bits, 0);
            for slot in old.as_flattened() {
                if slot.key != [0; 2] {
                    self.put(*slot);
                }
            }
        }
    }

    #[cold]
    fn drop_spilled(&mut self) {
        self.spilled.clear();
        for slot in self.sets.as_flattened_mut() {
            if slot.ids[SLOT_IDS] as usize > SLOT_IDS {
                *slot = Slot::default();
                self.kept -= 1;
            }
        }
    }

    /// Appends the ids of any other piece, if they are here.
    pub fn get_long(&mut self, piece: &[u8], ids: &mut Vec<u32>) -> bool {
        let found = self.long.get(piece);
        if let Some(found) = found {
            self.hits += 1;
            ids.extend_from_slice(found);
        }
        found.is_some()
    }

    /// Keeps the ids of any other piece; drops all such pieces when they have become too many.
    pub fn insert_long(&mut self, piece: &[u8], ids: &[u32]) {
        self.misses += 1;
        if piece.len() > LONGEST {
            return;
        }
        let bytes = piece.len() + 4 * ids.len() + 64;
        if self.long_bytes + bytes > LONG_BYTES {
            self.long.clear();
            self.long_bytes = 0;
        }
        self.long_bytes += bytes;
        self.long.insert(piece.into(), ids.into());
    }

    /// Pieces that are kept.
    pub fn size(&self) -> usize {
        self.kept + self.long.len()
    }
}

/// The other set of a key, which shares a page with the first.
#[inline(always)]
fn other(first: u32, key: Key) -> u32 {
    first ^ (1 | (hash(key) >> 8) as u32 & 0xf)
}

#[cfg(test)]
mod tests {
    use super::super::keys::key;
    use super::*;

    #[test]
    fn what_was_put_in_comes_out() {
        let mut cache = Cache::default();
        let pieces: Vec<String> = (0..50_000).map(|i| format!(" piece{i}")).collect();
        let ids_of = |i: u32| (i..i + 1 + i % 7).collect::<Vec<u32>>();
        for (i, piece) in (0..).zip(&pieces) {
            cache.insert(key(piece.as_bytes(), 0, piece.len()), &ids_of(i));
            cache.make_room();
        }
        let mut found = 0;
        for (i, piece) in (0..).zip(&pieces) {
            let mut ids = Vec::new();
            if cache.get(key(piece.as_bytes(), 0, piece.len()), &mut ids) {
                assert_eq!(ids, ids_of(i));
                found += 1;
            }
        }
        assert_eq!(found, cache.size());
        assert!(found > 40_000);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut cache = Cache::default();
        for i in 0..400_000 {
            let long = format!("a rather long piece of text {i}");
            cache.insert_long(long.as_bytes(), &[1; 9]);
            let short = format!("{i}");
            cache.insert(key(short.as_bytes(), 0, short.len()), &[1; 6]);
            cache.make_room();
        }
        assert!(cache.long_bytes <= LONG_BYTES && cache.spilled.len() <= SPILLED);
        assert_eq!(cache.sets.len(), 1 << MOST);
        let slots = cache.sets.as_flattened().iter();
        let kept = slots.filter(|slot| slot.key != [0; 2]).count();
        assert_eq!(cache.size(), kept + cache.long.len());
    }
}

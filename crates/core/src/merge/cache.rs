//! Pieces that were merged before: a bounded table, which never changes a result.

use super::keys::{hash, set_of, Key, KEY_BYTES};
use super::memory::{prefetch, Table};
use super::packed::{Packed, PACKED_IDS};
use rustc_hash::FxHashMap;

/// Sets of a new table: 128 KiB.
const FEWEST: usize = 1 << 11;
/// Sets among which a key has its two.
const NEIGHBOURS: usize = 16;
/// Slots that are moved to make room for one.
const MOVES: usize = 8;
/// Pieces longer than this are not kept.
const LONGEST: usize = 512;

/// Bytes that a cache takes at most, if nothing else is said: a table of 16 MiB, and what goes with it.
pub const CACHE_BYTES: usize = 24 << 20;

/// Characters of three bytes, and what they take.
const CHARACTERS: usize = 1 << 16;
const CHARACTERS_BYTES: usize = CHARACTERS * size_of::<Packed>();

/// What some bytes are: where a piece may be a token that merging does not make, the same bytes may have
/// other ids as a part of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A piece, or a part of one that has the same ids.
    Piece,
    /// A part that may have other ids.
    Part,
}

/// A piece's key and ids. A key's top byte is the piece's length, so the key of a free slot is zero.
#[derive(Clone, Copy, Default)]
#[repr(C, align(32))]
struct Slot {
    key: Key,
    ids: Packed,
}

/// Slots where a key may be: they share a line of the processor's cache. A key has another set too.
type Set = [Slot; 2];

/// The ids of longer pieces, or of longer parts.
type Long = FxHashMap<Box<[u8]>, Box<[u32]>>;

/// One thread's cache.
pub struct Cache {
    sets: Table<Set>,
    /// The ids that no slot holds, and behind the last of them room to read on.
    spilled: Vec<u32>,
    long: [Long; 2],
    /// What characters of three bytes become as parts of pieces, by their numbers; nothing in it is not known.
    characters: Table<Packed>,
    long_bytes: usize,
    limits: Limits,
    /// Pieces in slots.
    kept: usize,
    kept_characters: usize,
    /// Pieces that were found.
    pub hits: u64,
    /// Pieces that were merged.
    pub misses: u64,
}

/// How large a cache may become.
#[derive(Clone, Copy)]
struct Limits {
    sets: usize,
    /// Ids that no slot holds.
    spilled: usize,
    /// Bytes of longer pieces and their ids, before all of these are dropped.
    long_bytes: usize,
    /// Whether characters of three bytes have places of their own.
    has_characters: bool,
}

impl Limits {
    /// Most of it is for the table; characters have places of their own if that leaves enough.
    fn of(bytes: usize) -> Self {
        let has_characters = bytes >= 8 * CHARACTERS_BYTES;
        let others = if has_characters { CHARACTERS_BYTES } else { 0 };
        let part = (bytes - others) / 23;
        let sets = 16 * part / size_of::<Set>() / NEIGHBOURS * NEIGHBOURS;
        Self {
            sets: sets.min(1 << 31),
            spilled: 5 * part / size_of::<u32>(),
            long_bytes: 2 * part,
            has_characters,
        }
    }
}

impl Cache {
    /// A cache that takes so many bytes at most. If they are not enough for the smallest one, nothing is
    /// kept.
    pub fn new(bytes: usize) -> Self {
        Self {
            sets: Table::new(FEWEST),
            spilled: Vec::new(),
            long: Default::default(),
            characters: Table::new(0),
            long_bytes: 0,
            limits: Limits::of(bytes),
            kept: 0,
            kept_characters: 0,
            hits: 0,
            misses: 0,
        }
    }

    /// How many sets there are.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// Asks for a set that is looked at soon.
    #[inline(always)]
    pub fn expect(&self, set: u32) {
        prefetch(&self.sets, set as usize);
    }

    /// The ids of a short piece, given the set where it may be before any other.
    #[inline(always)]
    pub fn find(&self, set: u32, key: Key) -> Option<&Packed> {
        self.find_in(set, key)
            .or_else(|| self.find_in(other(set, key), key))
    }

    #[inline(always)]
    fn find_in(&self, set: u32, key: Key) -> Option<&Packed> {
        let set = self.sets.get(set as usize)?;
        // Which of the two it is cannot be foreseen, so nothing may depend on that but an address.
        let slot = &set[usize::from(set[0].key != key)];
        (slot.key == key).then_some(&slot.ids)
    }

    /// Ids that did not fit, with any behind them.
    #[inline(always)]
    pub fn spilled(&self, start: u32) -> &[u32; KEY_BYTES] {
        let found = self.spilled.get(start as usize..);
        found
            .and_then(<[u32]>::first_chunk)
            .unwrap_or(&[0; KEY_BYTES])
    }

    /// Appends the ids of a short piece, if they are here.
    pub fn get(&mut self, key: Key, ids: &mut Vec<u32>) -> bool {
        let Some(packed) = self.find(set_of(key, self.sets.len()), key) else {
            return false;
        };
        match packed.spilled() {
            None => packed.append_to(ids),
            Some(start) => ids.extend_from_slice(&self.spilled(start)[..packed.count()]),
        }
        self.hits += 1;
        true
    }

    /// Keeps the ids of a short piece that is not here, in place of one that came earlier.
    pub fn insert(&mut self, key: Key, ids: &[u32]) {
        self.misses += 1;
        if ids.len() > KEY_BYTES || self.limits.sets < FEWEST {
            return;
        }
        let packed = Packed::new(ids).unwrap_or_else(|| {
            if self.spilled.len() + ids.len() > self.limits.spilled {
                self.drop_spilled();
            }
            let start = self.spilled.len().saturating_sub(KEY_BYTES);
            self.spilled.truncate(start);
            self.spilled.extend_from_slice(ids);
            self.spilled.extend([0; KEY_BYTES]);
            Packed::of_spilled(start as u32, ids.len())
        });
        self.put(Slot { key, ids: packed });
    }

    /// Puts a slot into one of its sets. Where both are full, the last one of the first is moved to its
    /// other set, and so on, and one is dropped in the end. What came early comes often, and stays.
    fn put(&mut self, mut slot: Slot) {
        let mut set = set_of(slot.key, self.sets.len());
        // It hardly pays to look for room where there is none.
        let moves = if self.kept < self.sets.len() / 16 * 31 {
            MOVES
        } else {
            1
        };
        for _ in 0..moves {
            for set in [set, other(set, slot.key)] {
                let set = &mut self.sets[set as usize];
                if let Some(free) = set.iter_mut().find(|slot| slot.key == [0; 2]) {
                    *free = slot;
                    self.kept += 1;
                    return;
                }
            }
            std::mem::swap(&mut slot, &mut self.sets[set as usize][1]);
            set = other(set, slot.key);
        }
    }

    /// Whether so many ids can be kept without a thought for others: for pieces that are found fast enough
    /// by their parts.
    pub fn has_room(&self, ids: usize) -> bool {
        ids <= PACKED_IDS || self.spilled.len() < self.limits.spilled / 4 * 3
    }

    /// Makes the table bigger if it is half full. Sets are others then.
    pub fn make_room(&mut self) {
        if self.kept > self.sets.len() && self.sets.len() < self.limits.sets {
            let sets = (4 * self.sets.len()).min(self.limits.sets);
            let old = std::mem::replace(&mut self.sets, Table::new(sets));
            self.kept = 0;
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
            if slot.ids.spilled().is_some() {
                *slot = Slot::default();
                self.kept -= 1;
            }
        }
    }

    /// What characters of three bytes become as parts of pieces: nothing where that is not known.
    #[inline(always)]
    pub fn characters(&self) -> &[Packed] {
        &self.characters
    }

    /// Whether characters of three bytes have places of their own.
    pub fn has_characters(&self) -> bool {
        self.limits.has_characters
    }

    /// Appends the ids of a character of three bytes that is a part of a piece, if they are here.
    pub fn get_character(&mut self, number: usize, ids: &mut Vec<u32>) -> bool {
        let known = self.characters.get(number);
        let Some(packed) = known.filter(|packed| packed.count() > 0) else {
            return false;
        };
        packed.append_to(ids);
        self.hits += 1;
        true
    }

    /// Keeps what a character of three bytes becomes as a part of a piece, if there is a place for that.
    pub fn insert_character(&mut self, number: usize, ids: &[u32]) {
        self.misses += 1;
        if self.characters.is_empty() {
            self.characters = Table::new(CHARACTERS);
        }
        if let (Some(place), Some(packed)) = (self.characters.get_mut(number), Packed::new(ids)) {
            *place = packed;
            self.kept_characters += 1;
        }
    }

    /// Appends the ids of any other piece or part, if they are here.
    pub fn get_long(&mut self, unit: Unit, piece: &[u8], ids: &mut Vec<u32>) -> bool {
        let found = self.long[unit as usize].get(piece);
        if let Some(found) = found {
            self.hits += 1;
            ids.extend_from_slice(found);
        }
        found.is_some()
    }

    /// Keeps the ids of any other piece or part; drops all of these when they have become too many.
    pub fn insert_long(&mut self, unit: Unit, piece: &[u8], ids: &[u32]) {
        self.misses += 1;
        if piece.len() > LONGEST || self.limits.sets < FEWEST {
            return;
        }
        let bytes = piece.len() + 4 * ids.len() + 64;
        if self.long_bytes + bytes > self.limits.long_bytes {
            self.long = Default::default();
            self.long_bytes = 0;
        }
        self.long_bytes += bytes;
        self.long[unit as usize].insert(piece.into(), ids.into());
    }

    /// Pieces that are kept.
    pub fn size(&self) -> usize {
        let long: usize = self.long.iter().map(Long::len).sum();
        self.kept + self.kept_characters + long
    }
}

/// The other set of a key, which shares a page with the first.
#[inline(always)]
fn other(first: u32, key: Key) -> u32 {
    first ^ (1 | (hash(key) >> 8) as u32 & (NEIGHBOURS as u32 - 1))
}

#[cfg(test)]
mod tests {
    use super::super::keys::key;
    use super::*;

    #[test]
    fn what_was_put_in_comes_out() {
        let mut cache = Cache::new(CACHE_BYTES);
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
        let mut cache = Cache::new(CACHE_BYTES);
        for i in 0..400_000 {
            let long = format!("a rather long piece of text {i}");
            cache.insert_long(Unit::Piece, long.as_bytes(), &[1; 9]);
            let short = format!("{i}");
            cache.insert(key(short.as_bytes(), 0, short.len()), &[1; 6]);
            cache.make_room();
        }
        assert!(cache.long_bytes <= 2 << 20 && 4 * cache.spilled.len() <= 5 << 20);
        assert_eq!(cache.sets.len() * size_of::<Set>(), 16 << 20);
        let slots = cache.sets.as_flattened().iter();
        let kept = slots.filter(|slot| slot.key != [0; 2]).count();
        assert_eq!(cache.size(), kept + cache.long[0].len());
    }
}

//! The ids of pieces seen before. Bounded; eviction never changes a result.
//!
//! Short pieces are in a table with cuckoo hashing: each key has two buckets of two slots (Pagh and Rodler,
//! "Cuckoo Hashing", 2004; the buckets are those of Dietzfelbinger and Weidling). A bucket is one cache line,
//! and both buckets of a key are on one page, so a lookup costs at most two line misses and one TLB miss.

use super::keys::{bucket_of, hash, Key, KeySpace, KEY_BYTES};
use super::packed::{Packed, PACKED_IDS};
use crate::memory::{prefetch, HugeArray};
use crate::reserve::{reserve, reserve_entry};
use rustc_hash::FxHashMap;

/// The buckets of a new table: 128 KiB.
const MIN_BUCKETS: usize = 1 << 11;
/// Both buckets of a key are in one group of this many.
const BUCKETS_PER_GROUP: usize = 16;
/// The slots that an insertion moves at most.
const MAX_KICKS: usize = 8;
/// Longer pieces are not cached.
const MAX_PIECE_BYTES: usize = 512;

/// The default limit of a cache: a table of 16 MiB, and the memory of the other parts.
pub const CACHE_BYTES: usize = 24 << 20;

/// The three-byte characters of UTF-8.
const CHARS: usize = 1 << 16;
const CHARS_BYTES: usize = CHARS * size_of::<Packed>();

/// A piece's key and ids. The top byte of a key is the piece's length, so a zero key marks a free slot.
#[derive(Clone, Copy, Default)]
struct Slot {
    key: Key,
    ids: Packed,
}

/// Two slots: a cache line. A slot has at most as many ids as a key has bytes.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub struct Bucket {
    keys: [Key; 2],
    ids: [Packed; 2],
}

impl Bucket {
    /// The slot of a key, if it has one here.
    #[inline(always)]
    pub fn slot(&self, key: &Key) -> Option<usize> {
        // No branch predicts which slot it is.
        let slot = usize::from(self.keys[0] != *key);
        (self.keys[slot] == *key).then_some(slot)
    }

    /// The ids of a slot.
    #[inline(always)]
    pub fn ids(&self, slot: usize) -> &Packed {
        &self.ids[slot]
    }

    /// Both keys.
    #[inline(always)]
    pub fn keys(&self) -> &[Key; 2] {
        &self.keys
    }

    fn used(&self, slot: usize) -> Option<Slot> {
        let (key, ids) = (self.keys[slot], self.ids[slot]);
        (key != [0; 2]).then_some(Slot { key, ids })
    }

    /// Stores a slot, and returns the one that was there.
    fn replace(&mut self, place: usize, slot: Slot) -> Option<Slot> {
        let old = self.used(place);
        (self.keys[place], self.ids[place]) = (slot.key, slot.ids);
        old
    }
}

type LongPieces = FxHashMap<Box<[u8]>, Box<[u32]>>;

/// The cache of one thread.
pub struct Cache {
    buckets: HugeArray<Bucket>,
    /// The ids that fit no slot. [`KEY_BYTES`] zeros at the end allow reads of a fixed length.
    spilled: Vec<u32>,
    /// Pieces and parts that fit no key, by [`KeySpace`].
    long: [LongPieces; 2],
    /// The ids of three-byte characters as parts of pieces, by character number. Empty: not cached.
    chars: HugeArray<Packed>,
    long_bytes: usize,
    limits: Limits,
    used_slots: usize,
    used_chars: usize,
    /// Lookups that found their piece.
    pub hits: u64,
    /// Pieces that were merged.
    pub misses: u64,
}

#[derive(Clone, Copy)]
struct Limits {
    buckets: usize,
    /// Ids in the spill area.
    spilled: usize,
    /// Bytes of long pieces and their ids. At the limit, all of them are dropped.
    long_bytes: usize,
    has_chars: bool,
}

impl Limits {
    /// The table gets most of the bytes. Characters get a table only if enough remains.
    fn of(bytes: usize) -> Self {
        let has_chars = bytes >= 8 * CHARS_BYTES;
        let chars_bytes = if has_chars { CHARS_BYTES } else { 0 };
        let share = (bytes - chars_bytes) / 23;
        let buckets = 16 * share / size_of::<Bucket>() / BUCKETS_PER_GROUP * BUCKETS_PER_GROUP;
        Self {
            buckets: buckets.min(1 << 31),
            spilled: 5 * share / size_of::<u32>(),
            long_bytes: 2 * share,
            has_chars,
        }
    }

    fn allow_caching(&self) -> bool {
        self.buckets >= MIN_BUCKETS
    }
}

impl Cache {
    /// A cache of at most `bytes`. It stays empty if the smallest table exceeds that or cannot be allocated.
    pub fn new(bytes: usize) -> Self {
        let buckets = HugeArray::new(MIN_BUCKETS);
        let limits = Limits::of(if buckets.is_ok() { bytes } else { 0 });
        Self {
            buckets: buckets.unwrap_or_else(|_| HugeArray::empty()),
            spilled: Vec::new(),
            long: Default::default(),
            chars: HugeArray::empty(),
            long_bytes: 0,
            limits,
            used_slots: 0,
            used_chars: 0,
            hits: 0,
            misses: 0,
        }
    }

    /// The number of buckets.
    pub fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// The table.
    #[inline(always)]
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Prefetches buckets that later lookups read.
    #[inline]
    pub fn prefetch(&self, buckets: &[u32]) {
        let table = &*self.buckets;
        // Four in a round: the loop would be most of the work.
        let (fours, rest) = buckets.as_chunks::<4>();
        for four in fours {
            for bucket in four {
                prefetch(table, *bucket as usize);
            }
        }
        for bucket in rest {
            prefetch(table, *bucket as usize);
        }
    }

    /// The ids of a short piece, given its first bucket.
    #[inline(always)]
    pub fn find(&self, bucket: u32, key: Key) -> Option<&Packed> {
        self.find_in(bucket, key)
            .or_else(|| self.find_in_alternate(bucket, key))
    }

    /// The ids of a short piece, given its first bucket, if they are in the other one.
    pub fn find_in_alternate(&self, bucket: u32, key: Key) -> Option<&Packed> {
        self.find_in(alternate_bucket(bucket, key), key)
    }

    /// The ids of a short piece, if they are in this bucket.
    #[inline(always)]
    pub fn find_in(&self, bucket: u32, key: Key) -> Option<&Packed> {
        let bucket = self.buckets.get(bucket as usize)?;
        Some(&bucket.ids[bucket.slot(&key)?])
    }

    /// [`KEY_BYTES`] ids of the spill area. Those after the piece's own are arbitrary.
    #[inline(always)]
    pub fn spilled(&self, start: u32) -> &[u32; KEY_BYTES] {
        let found = self.spilled.get(start as usize..);
        found
            .and_then(<[u32]>::first_chunk)
            .unwrap_or(&[0; KEY_BYTES])
    }

    /// Appends the ids of a short piece. Returns whether it is cached.
    pub fn get(&mut self, key: Key, ids: &mut Vec<u32>) -> bool {
        let Some(packed) = self.find(bucket_of(key, self.buckets.len()), key) else {
            return false;
        };
        self.append(packed, ids);
        self.hits += 1;
        true
    }

    /// Appends the ids of a short piece.
    pub fn append(&self, packed: &Packed, ids: &mut Vec<u32>) {
        match packed.spilled() {
            None => packed.append_to(ids),
            Some(start) => ids.extend_from_slice(&self.spilled(start)[..packed.count()]),
        }
    }

    /// Caches the ids of a short piece that is not cached. May evict another piece.
    pub fn insert(&mut self, key: Key, ids: &[u32]) {
        self.misses += 1;
        if ids.len() > KEY_BYTES || !self.limits.allow_caching() {
            return;
        }
        if let Some(packed) = Packed::new(ids).or_else(|| self.spill(ids)) {
            self.insert_slot(Slot { key, ids: packed });
        }
    }

    /// Adds ids to the spill area. Returns None if memory is short.
    fn spill(&mut self, ids: &[u32]) -> Option<Packed> {
        if self.spilled.len() + ids.len() > self.limits.spilled {
            self.drop_spilled();
        }
        reserve(&mut self.spilled, ids.len() + KEY_BYTES).ok()?;
        let start = self.spilled.len().saturating_sub(KEY_BYTES);
        self.spilled.truncate(start);
        self.spilled.extend_from_slice(ids);
        self.spilled.extend([0; KEY_BYTES]);
        Some(Packed::of_spilled(start as u32, ids.len()))
    }

    /// Inserts a slot into one of its buckets. If both are full, kicks the second slot of the first bucket
    /// to that slot's other bucket, and so on; after [`MAX_KICKS`], the last one is evicted. First slots
    /// stay: pieces that occur early occur often.
    fn insert_slot(&mut self, mut slot: Slot) {
        let mut bucket = bucket_of(slot.key, self.buckets.len());
        // In a nearly full table (31/32 of the slots), kicks rarely find a free slot.
        let kicks = if self.used_slots < self.buckets.len() / 16 * 31 {
            MAX_KICKS
        } else {
            1
        };
        for _ in 0..kicks {
            for bucket in [bucket, alternate_bucket(bucket, slot.key)] {
                let bucket = &mut self.buckets[bucket as usize];
                if let Some(free) = bucket.slot(&[0; 2]) {
                    bucket.replace(free, slot);
                    self.used_slots += 1;
                    return;
                }
            }
            let Some(kicked) = self.buckets[bucket as usize].replace(1, slot) else {
                return;
            };
            slot = kicked;
            bucket = alternate_bucket(bucket, slot.key);
        }
    }

    /// Whether the spill area has room to spare. If not, pieces that their parts find fast enough are not
    /// cached as a whole.
    pub fn has_room(&self, ids: usize) -> bool {
        ids <= PACKED_IDS || self.spilled.len() < self.limits.spilled / 4 * 3
    }

    /// Grows the table if it is half full. All bucket numbers change. Without memory for that, it stays as it is.
    pub fn grow(&mut self) {
        if self.used_slots > self.buckets.len() && self.buckets.len() < self.limits.buckets {
            let buckets = (4 * self.buckets.len()).min(self.limits.buckets);
            let Ok(grown) = HugeArray::new(buckets) else {
                self.limits.buckets = self.buckets.len();
                return;
            };
            let old = std::mem::replace(&mut self.buckets, grown);
            self.used_slots = 0;
            // First slots stay first: early pieces.
            for place in 0..2 {
                for slot in old.iter().filter_map(|bucket| bucket.used(place)) {
                    self.insert_slot(slot);
                }
            }
        }
    }

    #[cold]
    fn drop_spilled(&mut self) {
        self.spilled.clear();
        for bucket in self.buckets.iter_mut() {
            for place in 0..2 {
                if bucket.ids[place].spilled().is_some() {
                    bucket.replace(place, Slot::default());
                    self.used_slots -= 1;
                }
            }
        }
    }

    /// The ids of three-byte characters as parts of pieces. An entry without ids is not cached.
    #[inline(always)]
    pub fn chars(&self) -> &[Packed] {
        &self.chars
    }

    /// Whether three-byte characters have a table.
    pub fn has_chars(&self) -> bool {
        self.limits.has_chars
    }

    /// Appends the ids of a three-byte character as a part. Returns whether it is cached.
    pub fn get_char(&mut self, number: usize, ids: &mut Vec<u32>) -> bool {
        let cached = self.chars.get(number);
        let Some(packed) = cached.filter(|packed| packed.count() > 0) else {
            return false;
        };
        packed.append_to(ids);
        self.hits += 1;
        true
    }

    /// Caches the ids of a three-byte character as a part, if they fit.
    pub fn insert_char(&mut self, number: usize, ids: &[u32]) {
        self.misses += 1;
        if self.chars.is_empty() {
            match HugeArray::new(CHARS) {
                Ok(chars) => self.chars = chars,
                Err(_) => self.limits.has_chars = false,
            }
        }
        if let (Some(entry), Some(packed)) = (self.chars.get_mut(number), Packed::new(ids)) {
            *entry = packed;
            self.used_chars += 1;
        }
    }

    /// Appends the ids of a piece or part without a key. Returns whether it is cached.
    pub fn get_long(&mut self, space: KeySpace, piece: &[u8], ids: &mut Vec<u32>) -> bool {
        let cached = self.long[space as usize].get(piece);
        if let Some(cached) = cached {
            self.hits += 1;
            ids.extend_from_slice(cached);
        }
        cached.is_some()
    }

    /// Caches the ids of a piece or part without a key. At the limit, drops all of these first.
    pub fn insert_long(&mut self, space: KeySpace, piece: &[u8], ids: &[u32]) {
        self.misses += 1;
        if piece.len() > MAX_PIECE_BYTES || !self.limits.allow_caching() {
            return;
        }
        let bytes = piece.len() + 4 * ids.len() + 64;
        if self.long_bytes + bytes > self.limits.long_bytes {
            self.long = Default::default();
            self.long_bytes = 0;
        }
        let pieces = &mut self.long[space as usize];
        if reserve_entry(pieces).is_ok() {
            self.long_bytes += bytes;
            pieces.insert(piece.into(), ids.into());
        }
    }

    /// The number of cached pieces and parts.
    pub fn size(&self) -> usize {
        let long: usize = self.long.iter().map(LongPieces::len).sum();
        self.used_slots + self.used_chars + long
    }
}

/// The other bucket of a key: a bucket of the same group, which is an involution by XOR.
#[inline(always)]
fn alternate_bucket(bucket: u32, key: Key) -> u32 {
    bucket ^ (1 | hash(key) & (BUCKETS_PER_GROUP as u32 - 1))
}

#[cfg(test)]
mod tests {
    use super::super::keys::key;
    use super::*;

    #[test]
    fn cached_pieces_keep_their_ids() {
        let mut cache = Cache::new(CACHE_BYTES);
        let pieces: Vec<String> = (0..50_000).map(|i| format!(" piece{i}")).collect();
        let ids_of = |i: u32| (i..i + 1 + i % 7).collect::<Vec<u32>>();
        for (i, piece) in (0..).zip(&pieces) {
            cache.insert(key(piece.as_bytes(), 0, piece.len()), &ids_of(i));
            cache.grow();
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
            cache.insert_long(KeySpace::Piece, long.as_bytes(), &[1; 9]);
            let short = format!("{i}");
            cache.insert(key(short.as_bytes(), 0, short.len()), &[1; 6]);
            cache.grow();
        }
        assert!(cache.long_bytes <= 2 << 20 && 4 * cache.spilled.len() <= 5 << 20);
        assert_eq!(cache.buckets.len() * size_of::<Bucket>(), 16 << 20);
        let slots = cache.buckets.iter().flat_map(|bucket| bucket.keys);
        let kept = slots.filter(|key| *key != [0; 2]).count();
        assert_eq!(cache.size(), kept + cache.long[0].len());
    }
}

//! The ids of pieces seen before. Bounded; eviction never changes a result.
//!
//! Pieces are in a table with cuckoo hashing: each key has two buckets of two slots (Pagh and Rodler,
//! "Cuckoo Hashing", 2004; the buckets are those of Dietzfelbinger and Weidling). A bucket is one cache line,
//! and both buckets of a key are on one page, so a lookup costs at most two line misses and one TLB miss.

use super::keys::{bucket_of, has_key, hash, hash_of_ends, Key, KEY_BYTES, MAX_PIECE_BYTES};
use super::packed::{Packed, MAX_IDS};
use crate::memory::{prefetch, HugeArray};
use crate::reserve::reserve;
use std::cell::Cell;

/// The buckets of a new table: 128 KiB.
const MIN_BUCKETS: usize = 1 << 11;
/// Both buckets of a key are in one group of this many.
const BUCKETS_PER_GROUP: usize = 16;
/// The hashes of pieces in second buckets that are remembered.
const NOTED: usize = 1 << 10;
/// The slots that an insertion moves at most.
const MAX_KICKS: usize = 8;
/// Bytes of an id in the spill area.
const ID_BYTES: usize = size_of::<u32>();
/// The bytes of [`KEY_BYTES`] ids: the length of the array that reads of the spill area give.
pub const SPILLED_BYTES: usize = KEY_BYTES * ID_BYTES;
/// Bits of the set of the pieces that are not short: it stays in the first-level cache.
const LONGER_BITS: usize = 1 << 15;
/// Bits of the set of those that were seen.
const SEEN_BITS: usize = 1 << 17;

/// The default limit of a cache: a table of 21 MiB, and the memory of the other parts.
pub const CACHE_BYTES: usize = 32 << 20;

/// The three-byte characters of UTF-8.
const CHARS: usize = 1 << 16;
const CHARS_BYTES: usize = CHARS * size_of::<Packed>();
/// The table of characters is made for this one: to write it takes as long as merging hundreds.
const CHARS_FROM: usize = 64;

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
        // By halves: a load of 16 bytes waits for the stores of a key that was stored in parts. No branch predicts which
        // slot it is.
        let differs = |slot: usize| {
            let [low, high] = self.keys[slot];
            (low ^ key[0]) | (high ^ key[1]) != 0
        };
        let slot = usize::from(differs(0));
        (!differs(slot)).then_some(slot)
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

/// The cache of one thread.
pub struct Cache {
    buckets: HugeArray<Bucket>,
    /// Ids that fit no slot, each in the processor's byte order, and after them the piece, if it fits no key. Zeros at the
    /// end allow reads of [`SPILLED_BYTES`].
    spilled: Vec<u8>,
    /// The hashes of the ends of the cached pieces that are not short.
    longer: BitSet<LONGER_BITS>,
    /// The hashes of the ends of the pieces that were seen once and are not short.
    seen: BitSet<SEEN_BITS>,
    /// The ids of three-byte characters as parts of pieces, by character number. Empty: not cached.
    chars: HugeArray<Packed>,
    limits: Limits,
    used_slots: usize,
    used_chars: usize,
    /// Characters that were not cached, until they have a table.
    passed_chars: usize,
    /// The last piece that was found in its second bucket. A zero key if there is none.
    in_second: Cell<Key>,
    /// The hashes of such pieces, each at a place that it gives.
    noted: [u32; NOTED],
    /// Lookups that found their piece.
    pub hits: u64,
    /// Pieces that were merged.
    pub misses: u64,
}

#[derive(Clone, Copy)]
struct Limits {
    buckets: usize,
    /// Bytes in the spill area. At the limit, all of them are dropped.
    spilled: usize,
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
            spilled: (7 * share).min(u32::MAX as usize),
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
            longer: BitSet::default(),
            seen: BitSet::default(),
            chars: HugeArray::empty(),
            limits,
            used_slots: 0,
            used_chars: 0,
            passed_chars: 0,
            in_second: Cell::default(),
            noted: [0; NOTED],
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

    /// Prefetches the bucket to which the insertion of a piece may move another one, given the first bucket of the piece.
    #[inline]
    pub fn prefetch_kicked(&self, bucket: u32) {
        if let Some(first) = self.buckets.get(bucket as usize) {
            let kicked_to = alternate_bucket(bucket, first.keys[1]);
            prefetch(&self.buckets, kicked_to as usize);
        }
    }

    /// The ids of a piece, given its first bucket.
    #[inline(always)]
    pub fn find(&self, bucket: u32, key: Key, piece: &[u8]) -> Option<&Packed> {
        self.find_in(bucket, key)
            .or_else(|| {
                let found = self.find_in(alternate_bucket(bucket, key), key)?;
                self.note_second(key);
                Some(found)
            })
            .filter(|packed| self.is_of(packed, piece))
    }

    #[inline(always)]
    fn find_in(&self, bucket: u32, key: Key) -> Option<&Packed> {
        let bucket = self.buckets.get(bucket as usize)?;
        Some(&bucket.ids[bucket.slot(&key)?])
    }

    /// Whether the ids, found by the key of a piece, are those of the piece: other pieces may have the same hashes.
    #[inline(always)]
    pub fn is_of(&self, packed: &Packed, piece: &[u8]) -> bool {
        match packed.spilled() {
            Some(start) if packed.spilled_bytes() > 0 => {
                let start = start as usize + ID_BYTES * packed.count();
                let bytes = self.spilled.get(start..start + packed.spilled_bytes());
                bytes.is_some_and(|bytes| are_equal(bytes, piece))
            }
            _ => true,
        }
    }

    /// [`KEY_BYTES`] ids of the spill area. Those after the piece's own are arbitrary.
    #[inline(always)]
    pub fn spilled(&self, start: u32) -> &[u8; SPILLED_BYTES] {
        let found = self.spilled.get(start as usize..);
        found
            .and_then(<[u8]>::first_chunk)
            .unwrap_or(&[0; SPILLED_BYTES])
    }

    /// Whether a piece is cached.
    pub fn has(&self, key: Key, piece: &[u8]) -> bool {
        let bucket = bucket_of(key, self.buckets.len());
        self.find(bucket, key, piece).is_some()
    }

    /// Appends the ids of a piece. Returns whether it is cached.
    pub fn get(&mut self, key: Key, piece: &[u8], ids: &mut Vec<u32>) -> bool {
        self.get_from(bucket_of(key, self.buckets.len()), key, piece, ids)
    }

    /// As [`Cache::get`], given the first bucket of the piece.
    pub fn get_from(&mut self, bucket: u32, key: Key, piece: &[u8], ids: &mut Vec<u32>) -> bool {
        let Some(packed) = self.find(bucket, key, piece) else {
            return false;
        };
        if reserve(ids, packed.count()).is_err() {
            return false; // merging reports it
        }
        self.append(packed, ids);
        self.hits += 1;
        true
    }

    /// Appends the ids of a piece. The caller has reserved room for them, where that can fail.
    pub fn append(&self, packed: &Packed, ids: &mut Vec<u32>) {
        let Some(start) = packed.spilled() else {
            return packed.append_to(ids);
        };
        let found = self.spilled.get(start as usize..).unwrap_or(&[]);
        let found = found.as_chunks::<ID_BYTES>().0.iter().take(packed.count());
        ids.extend(found.map(|id| u32::from_ne_bytes(*id)));
    }

    /// Caches the ids of a piece that is not cached. May evict another piece.
    pub fn insert(&mut self, key: Key, piece: &[u8], ids: &[u32]) {
        self.misses += 1;
        if ids.len() > MAX_IDS || piece.len() > MAX_PIECE_BYTES || !self.limits.allow_caching() {
            return;
        }
        let packed = if has_key(piece.len()) {
            Packed::new(ids).or_else(|| self.spill(&[], ids))
        } else {
            let packed = self.spill(piece, ids);
            self.longer.insert(hash_of_ends(piece)); // after `spill`, which may empty the set
            packed
        };
        if let Some(packed) = packed {
            self.insert_slot(Slot { key, ids: packed });
        }
    }

    /// Adds ids to the spill area, and the piece after them. Returns None if memory is short.
    fn spill(&mut self, piece: &[u8], ids: &[u32]) -> Option<Packed> {
        let bytes = ID_BYTES * ids.len() + piece.len();
        if self.spilled.len() + bytes > self.limits.spilled {
            self.drop_spilled();
        }
        reserve(&mut self.spilled, bytes + SPILLED_BYTES).ok()?;
        let start = self.spilled.len().saturating_sub(SPILLED_BYTES);
        self.spilled.truncate(start);
        for id in ids {
            self.spilled.extend_from_slice(&id.to_ne_bytes());
        }
        self.spilled.extend_from_slice(piece);
        self.spilled.extend([0; SPILLED_BYTES]);
        Some(Packed::of_spilled(start as u32, ids.len(), piece.len()))
    }

    /// Whether a piece that is not short may be cached, given the hash of its ends.
    #[inline(always)]
    pub fn may_have_longer(&self, ends: u32) -> bool {
        self.longer.contains(ends)
    }

    /// Whether a piece that is not short was seen before; some that were not count as seen.
    pub fn was_seen(&mut self, piece: &[u8]) -> bool {
        if self.seen.count > SEEN_BITS / 4 {
            self.seen.clear();
        }
        self.seen.insert(hash_of_ends(piece))
    }

    /// Inserts a slot into one of its buckets. If both are full, kicks the second slot of the first bucket
    /// to that slot's other bucket, and so on; after [`MAX_KICKS`], the last one is evicted. First slots
    /// stay: pieces that occur early occur often.
    fn insert_slot(&mut self, slot: Slot) {
        self.insert_slot_in(bucket_of(slot.key, self.buckets.len()), slot);
    }

    /// As `insert_slot`, given the bucket that is tried first.
    fn insert_slot_in(&mut self, mut bucket: u32, mut slot: Slot) {
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

    /// Notes a piece that is in its second bucket, in place of the one before.
    #[inline(always)]
    pub fn note_second(&self, key: Key) {
        self.in_second.set(key);
    }

    /// Moves the noted piece to its first bucket, where it is found faster, if it was noted before: then it is frequent.
    /// Frequent pieces of a text that came when the table was nearly full would stay in their second buckets.
    pub fn promote_noted(&mut self) {
        let key = self.in_second.take();
        if key == [0; 2] {
            return;
        }
        let hash = hash(key);
        let before = std::mem::replace(&mut self.noted[hash as usize % NOTED], hash);
        if before != hash {
            return;
        }
        let bucket = bucket_of(key, self.buckets.len());
        let second = &mut self.buckets[alternate_bucket(bucket, key) as usize];
        let found = second.slot(&key);
        let Some(slot) = found.and_then(|place| second.replace(place, Slot::default())) else {
            return;
        };
        // The first slot moves to the second one, which is kicked to its other bucket.
        let first = &mut self.buckets[bucket as usize];
        let kicked = first.replace(0, slot).map(|moved| first.replace(1, moved));
        if let Some(Some(kicked)) = kicked {
            self.used_slots -= 1;
            self.insert_slot_in(alternate_bucket(bucket, kicked.key), kicked);
        }
    }

    /// Whether the spill area has room to spare. If not, pieces that their parts find fast enough are not
    /// cached as a whole.
    pub fn has_room(&self) -> bool {
        self.spilled.len() < self.limits.spilled / 4 * 3
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
        self.longer.clear();
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

    /// Caches the ids of a three-byte character as a part, if they fit and it is not one of the first.
    pub fn insert_char(&mut self, number: usize, ids: &[u32]) {
        self.misses += 1;
        if self.chars.is_empty() {
            self.passed_chars += 1;
            if self.passed_chars < CHARS_FROM {
                return;
            }
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

    /// The number of cached pieces and parts.
    pub fn size(&self) -> usize {
        self.used_slots + self.used_chars
    }
}

/// A set of hashes as bits: it may contain others too.
#[derive(Default)]
struct BitSet<const BITS: usize> {
    words: Vec<u64>,
    count: usize,
}

impl<const BITS: usize> BitSet<BITS> {
    #[inline(always)]
    fn bit(hash: u32) -> usize {
        ((u64::from(hash) * BITS as u64) >> 32) as usize
    }

    #[inline(always)]
    fn contains(&self, hash: u32) -> bool {
        let bit = Self::bit(hash);
        self.words
            .get(bit / 64)
            .is_some_and(|word| word >> (bit % 64) & 1 != 0)
    }

    /// Adds a hash. Returns whether the set had it.
    fn insert(&mut self, hash: u32) -> bool {
        let is_new = !self.contains(hash);
        let missing = BITS / 64 - self.words.len();
        if is_new && reserve(&mut self.words, missing).is_ok() {
            self.words.resize(BITS / 64, 0);
            let bit = Self::bit(hash);
            self.words[bit / 64] |= 1 << (bit % 64);
            self.count += 1;
        }
        !is_new
    }

    fn clear(&mut self) {
        self.words.clear();
        self.count = 0;
    }
}

/// Compares the bytes of two pieces, the first of at least 16, sixteen at a time: most have at most 32.
#[inline(always)]
fn are_equal(bytes: &[u8], piece: &[u8]) -> bool {
    let ends = bytes.first_chunk::<16>().zip(bytes.last_chunk::<16>());
    bytes.len() == piece.len()
        && ends == piece.first_chunk().zip(piece.last_chunk())
        && (bytes.len() <= 32 || bytes == piece)
}

/// The other bucket of a key: a bucket of the same group, which is an involution by XOR.
#[inline(always)]
pub fn alternate_bucket(bucket: u32, key: Key) -> u32 {
    bucket ^ (1 | hash(key) & (BUCKETS_PER_GROUP as u32 - 1))
}

#[cfg(test)]
mod tests {
    use super::super::keys::{key_of, KeySpace};
    use super::*;

    fn key(piece: &str) -> Key {
        key_of(KeySpace::Piece, piece.as_bytes(), 0, piece.len())
    }

    #[test]
    fn cached_pieces_keep_their_ids() {
        let mut cache = Cache::new(CACHE_BYTES);
        let tail = |i: usize| "é".repeat(i % 40);
        let pieces: Vec<String> = (0..50_000)
            .map(|i| format!(" piece{i}{}", tail(i)))
            .collect();
        let ids_of = |i: u32| (i..i + 1 + i % 23).collect::<Vec<u32>>();
        for (i, piece) in (0..).zip(&pieces) {
            cache.insert(key(piece), piece.as_bytes(), &ids_of(i));
            cache.grow();
        }
        let mut found = 0;
        for (i, piece) in (0..).zip(&pieces) {
            let mut ids = Vec::new();
            if cache.get(key(piece), piece.as_bytes(), &mut ids) {
                assert_eq!(ids, ids_of(i));
                found += 1;
            }
        }
        assert_eq!(found, cache.size());
        assert!(found > 30_000, "{found}");
    }

    #[test]
    fn frequent_pieces_move_to_their_first_buckets() {
        let mut cache = Cache::new(1 << 20);
        let pieces: Vec<String> = (0..30_000).map(|number| format!("<{number:x}>")).collect();
        for (number, piece) in (0..).zip(&pieces) {
            cache.insert(key(piece), piece.as_bytes(), &[number, number + 1]);
            cache.grow();
        }
        let is_first = |cache: &Cache, key| {
            let bucket = bucket_of(key, cache.bucket_count());
            cache.find_in(bucket, key).is_some()
        };
        let mut moved = 0;
        for piece in &pieces {
            let key = key(piece);
            if is_first(&cache, key) || !cache.has(key, piece.as_bytes()) {
                continue;
            }
            cache.promote_noted(); // `has` has noted it
            assert!(!is_first(&cache, key), "it is not known to be frequent");
            cache.note_second(key);
            cache.promote_noted();
            assert!(is_first(&cache, key));
            moved += 1;
        }
        assert!(moved > 1000, "{moved}");
        let keys = cache.buckets.iter().flat_map(|bucket| bucket.keys);
        assert_eq!(cache.size(), keys.filter(|key| *key != [0; 2]).count());
        let mut found = 0;
        for (number, piece) in (0..).zip(&pieces) {
            let mut ids = Vec::new();
            if cache.get(key(piece), piece.as_bytes(), &mut ids) {
                assert_eq!(ids, [number, number + 1]);
                found += 1;
            }
        }
        assert_eq!(found, cache.size(), "no piece is there twice");
    }

    #[test]
    fn characters_are_cached_after_the_first_ones() {
        let mut cache = Cache::new(CACHE_BYTES);
        for number in 1..CHARS_FROM {
            cache.insert_char(number, &[1, 2]);
            assert!(cache.chars().is_empty());
        }
        cache.insert_char(CHARS_FROM, &[1, 2]);
        let counts = [1, CHARS_FROM].map(|number| cache.chars()[number].count());
        assert_eq!((counts, cache.size()), ([0, 2], 1));
    }

    #[test]
    fn a_longer_piece_with_the_key_of_another_is_not_cached() {
        let mut cache = Cache::new(CACHE_BYTES);
        for length in [16, 20, 33, 100, MAX_PIECE_BYTES] {
            let piece = vec![b'a'; length];
            let key = key_of(KeySpace::Piece, &piece, 0, length);
            cache.insert(key, &piece, &[1, 2, 3]);
            assert!(cache.has(key, &piece));
            assert!(!cache.has(key, &piece[1..]));
            for at in 0..length {
                let mut other = piece.clone();
                other[at] = b'b';
                assert!(!cache.has(key, &other), "{length} {at}");
                assert_ne!(key, key_of(KeySpace::Piece, &other, 0, length));
            }
        }
        let (piece, mut ids) = (vec![b'a'; MAX_PIECE_BYTES + 1], Vec::new());
        let key = key_of(KeySpace::Piece, &piece, 0, piece.len());
        cache.insert(key, &piece, &[1]);
        assert!(!cache.get(key, &piece, &mut ids));
    }

    #[test]
    fn a_set_of_hashes_has_what_was_added() {
        let mut set = BitSet::<SEEN_BITS>::default();
        let (hash, other) = (7 << 20, 8 << 20);
        assert!(!set.contains(hash));
        assert!(!set.insert(hash));
        assert!(set.insert(hash) && set.contains(hash) && !set.contains(other));
        set.clear();
        assert!(!set.contains(hash));
        // It forgets before it counts everything as seen.
        let mut cache = Cache::new(CACHE_BYTES);
        let seen = (0..10 * SEEN_BITS).filter(|number| {
            let piece = format!("{number:0>16}");
            cache.was_seen(piece.as_bytes())
        });
        assert!(seen.count() < 2 * SEEN_BITS);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut cache = Cache::new(24 << 20);
        for i in 0..400_000 {
            let long = format!("a rather long piece of text {i}");
            cache.insert(key(&long), long.as_bytes(), &[1; 9]);
            let short = format!("{i}");
            cache.insert(key(&short), short.as_bytes(), &[1; 6]);
            cache.grow();
        }
        assert!(cache.spilled.len() <= 7 << 20);
        assert_eq!(cache.buckets.len() * size_of::<Bucket>(), 16 << 20);
        let slots = cache.buckets.iter().flat_map(|bucket| bucket.keys);
        assert_eq!(cache.size(), slots.filter(|key| *key != [0; 2]).count());
    }
}

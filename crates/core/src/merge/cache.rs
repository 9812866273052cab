//! Pieces that were merged before: a bounded table, which never changes a result.

use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Pieces of at most so many bytes are found by a key that holds them.
const KEY_BYTES: usize = 15;
/// Ids that a slot holds.
const SLOT_IDS: usize = 3;
/// Two neighbouring slots are where a key may be.
const WAYS: usize = 2;
/// Slots of the table: 4 MiB.
const SLOTS: usize = 1 << 17;
/// Longer pieces are not kept.
const LONGEST: usize = 512;
/// Bytes of pieces and ids that are kept beside the table before all of these are dropped.
const LONG_BYTES: usize = 4 << 20;

/// A key's two halves, then three ids and their number. A key's top byte is the piece's length, so
/// a free slot is zero, and a fresh table costs nothing until it is touched.
type Slot = [u64; 4];

/// One thread's cache.
pub struct Cache {
    slots: Box<[Slot; SLOTS]>,
    long: FxHashMap<Box<[u8]>, Box<[u32]>>,
    long_bytes: usize,
    entries: u64,
    generation: u64,
    hits: u64,
    misses: u64,
}

/// The low bytes of a number, for each number of bytes.
const MASKS: [u128; KEY_BYTES + 1] = {
    let mut masks = [0; KEY_BYTES + 1];
    let mut length = 0;
    while length <= KEY_BYTES {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

/// A short piece as a number: its bytes, and its length in the top byte.
///
/// `text[start..start + length]` is the piece; the bytes behind it are read but do not count.
#[inline(always)]
pub fn key(text: &[u8], start: usize, length: usize) -> Option<u128> {
    if length > KEY_BYTES {
        return None;
    }
    let bytes = match text.get(start..start + 16) {
        Some(bytes) => {
            let mut whole = [0; 16];
            whole.copy_from_slice(bytes);
            u128::from_le_bytes(whole) & MASKS[length]
        }
        None => {
            let mut padded = [0; 16];
            padded[..length].copy_from_slice(&text[start..start + length]);
            u128::from_le_bytes(padded)
        }
    };
    Some(bytes | (length as u128) << 120)
}

/// A number that depends on every bit of a key.
#[inline(always)]
pub fn hash(key: u128) -> u64 {
    let (low, high) = (key as u64, (key >> 64) as u64);
    let product = u128::from(low ^ 0x9e37_79b9_7f4a_7c15)
        * u128::from(high.rotate_left(32) ^ 0xd6e8_feb8_6659_fd93);
    (product as u64) ^ (product >> 64) as u64
}

impl Cache {
    fn new(generation: u64) -> Self {
        Self {
            slots: fresh_slots(),
            long: FxHashMap::default(),
            long_bytes: 0,
            entries: 0,
            generation,
            hits: 0,
            misses: 0,
        }
    }

    /// Appends the ids of a short piece, if they are here.
    #[inline(always)]
    pub fn get(&mut self, key: u128, ids: &mut Vec<u32>) -> bool {
        let set = set_of(key);
        let holds = |slot: &Slot| slot[0] == key as u64 && slot[1] == (key >> 64) as u64;
        if !holds(&self.slots[set]) {
            if !holds(&self.slots[set + 1]) {
                return false;
            }
            self.slots.swap(set, set + 1); // the one that was used last is kept longest
        }
        let slot = &self.slots[set];
        self.hits += 1;
        let found = [slot[2] as u32, (slot[2] >> 32) as u32, slot[3] as u32];
        match slot[3] >> 32 {
            1 => ids.push(found[0]),
            2 => ids.extend_from_slice(&found[..2]),
            _ => ids.extend_from_slice(&found),
        }
        true
    }

    /// Keeps the ids of a short piece, which must fit, in place of the one of its slots
    /// that was used less recently.
    pub fn insert(&mut self, key: u128, ids: &[u32]) {
        self.misses += 1;
        let id = |i: usize| u64::from(ids.get(i).copied().unwrap_or(0));
        let set = set_of(key);
        let [newer, older] = [self.slots[set], self.slots[set + 1]];
        self.entries += u64::from(older == [0; 4]);
        self.slots[set + 1] = newer;
        self.slots[set] = [
            key as u64,
            (key >> 64) as u64,
            id(0) | id(1) << 32,
            id(2) | (ids.len() as u64) << 32,
        ];
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
            self.entries -= self.long.len() as u64;
            self.long.clear();
            self.long_bytes = 0;
        }
        self.long_bytes += bytes;
        self.entries += 1;
        self.long.insert(piece.into(), ids.into());
    }

    /// Whether a slot holds so many ids (of a piece without any, its symbols being unknown, none does).
    pub fn fits(ids: usize) -> bool {
        (1..=SLOT_IDS).contains(&ids)
    }
}

/// A table that the system zeroes page by page, when a page is touched first.
fn fresh_slots() -> Box<[Slot; SLOTS]> {
    let slots = vec![[0; 4]; SLOTS].into_boxed_slice();
    match slots.try_into() {
        Ok(slots) => slots,
        Err(_) => unreachable!("the table has as many slots as it was made with"),
    }
}

#[inline(always)]
fn set_of(key: u128) -> usize {
    hash(key) as usize % (SLOTS / WAYS) * WAYS
}

/// Threads that can have a cache at the same time; more go without.
const POOL: usize = 64;

/// The caches of an encoder: a call takes one that is free.
///
/// Nothing ever waits here: a lock that another thread held when the process forked stays locked
/// in the child, which then takes another.
pub struct CachePool {
    caches: Vec<Mutex<Option<Cache>>>,
    generation: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    entries: AtomicU64,
}

/// What the caches did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Pieces that were found.
    pub hits: u64,
    /// Pieces that were merged.
    pub misses: u64,
    /// Pieces that are kept now.
    pub size: u64,
}

impl Default for CachePool {
    fn default() -> Self {
        Self {
            caches: (0..POOL).map(|_| Mutex::new(None)).collect(),
            generation: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            entries: AtomicU64::new(0),
        }
    }
}

impl CachePool {
    /// Runs `work` with a cache, or without one if all are taken.
    pub fn with<R>(&self, work: impl FnOnce(Option<&mut Cache>) -> R) -> R {
        let mut free = self.caches.iter().filter_map(|cache| cache.try_lock().ok());
        let Some(mut guard) = free.next() else {
            return work(None);
        };
        let cache = self.current(&mut guard);
        let entries = cache.entries;
        let result = work(Some(cache));
        self.hits
            .fetch_add(std::mem::take(&mut cache.hits), Ordering::Relaxed);
        self.misses
            .fetch_add(std::mem::take(&mut cache.misses), Ordering::Relaxed);
        if cache.generation == self.generation.load(Ordering::Relaxed) {
            let grown = cache.entries.wrapping_sub(entries);
            self.entries.fetch_add(grown, Ordering::Relaxed);
        }
        result
    }

    /// The cache behind the lock, emptied if it was cleared since.
    fn current<'a>(&self, guard: &'a mut MutexGuard<'_, Option<Cache>>) -> &'a mut Cache {
        let generation = self.generation.load(Ordering::Relaxed);
        if guard
            .as_ref()
            .is_some_and(|cache| cache.generation != generation)
        {
            **guard = None;
        }
        guard.get_or_insert_with(|| Cache::new(generation))
    }

    /// Hits and misses since the last clearing, and pieces kept.
    pub fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            size: self.entries.load(Ordering::Relaxed),
        }
    }

    /// Drops every piece (a cache in use is dropped when it is next taken) and resets the counters.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        for counter in [&self.hits, &self.misses, &self.entries] {
            counter.store(0, Ordering::Relaxed);
        }
        for cache in &self.caches {
            if let Ok(mut cache) = cache.try_lock() {
                *cache = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_the_piece_and_nothing_behind_it() {
        let text = b"abcdefghijklmnopqrstuvwxyz\0";
        for length in 1..=KEY_BYTES {
            for start in 0..text.len() - length {
                let alone = text[start..start + length].to_vec();
                assert_eq!(key(text, start, length), key(&alone, 0, length));
            }
        }
        assert_ne!(key(b"a", 0, 1), key(b"a\0", 0, 2));
        assert_eq!(key(text, 0, 16), None);
    }

    #[test]
    fn what_was_put_in_comes_out() {
        let mut cache = Cache::new(0);
        let pieces: Vec<String> = (0..50_000).map(|i| format!(" piece{i}")).collect();
        for (i, piece) in (0..).zip(&pieces) {
            let key = key(piece.as_bytes(), 0, piece.len()).unwrap();
            cache.insert(key, &[i, i + 1, i + 2][..1 + i as usize % 3]);
        }
        let mut found = 0;
        for (i, piece) in (0..).zip(&pieces) {
            let mut ids = Vec::new();
            if cache.get(key(piece.as_bytes(), 0, piece.len()).unwrap(), &mut ids) {
                assert_eq!(ids, [i, i + 1, i + 2][..1 + i as usize % 3]);
                found += 1;
            }
        }
        assert_eq!(found, cache.entries);
        assert!(found > 40_000);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut cache = Cache::new(0);
        for i in 0..200_000 {
            cache.insert_long(
                format!("a rather long piece of text {i}").as_bytes(),
                &[1; 9],
            );
        }
        assert!(cache.long_bytes <= LONG_BYTES);
        assert_eq!(cache.entries, cache.long.len() as u64);
    }

    #[test]
    fn a_pool_never_waits() {
        let pool = CachePool::default();
        pool.with(|outer| {
            assert!(outer.is_some());
            pool.clear();
            pool.with(|inner| assert!(inner.is_some()));
        });
        let locks: Vec<_> = pool.caches.iter().map(|cache| cache.lock()).collect();
        pool.with(|cache| assert!(cache.is_none()));
        drop(locks);
    }
}

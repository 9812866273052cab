//! What a thread works with while it encodes, kept from call to call.

use super::cache::{Cache, CACHE_BYTES};
use super::keys::Lookup;
use crate::pretokenize::Block;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Threads that can have a workspace of their own at the same time; more go without a cache.
const POOL: usize = 64;

/// One thread's cache, and room for what it finds.
pub struct Workspace {
    /// Pieces that were merged before.
    pub cache: Cache,
    /// Where the pieces of a block of text begin.
    pub block: Block,
    /// What is looked for in the cache at the same time.
    pub lookup: Lookup,
    generation: u64,
}

impl Workspace {
    #[cold]
    fn new(cache_bytes: usize, generation: u64) -> Box<Self> {
        Box::new(Self {
            cache: Cache::new(cache_bytes),
            block: Block::default(),
            lookup: Lookup::default(),
            generation,
        })
    }
}

/// The workspaces of an encoder: a call takes one that is free.
///
/// Nothing ever waits here: a lock that another thread held when the process forked stays locked
/// in the child, which then takes another.
pub struct Pool {
    workspaces: Vec<Mutex<Option<Box<Workspace>>>>,
    /// Bytes that one thread's cache takes at most.
    cache_bytes: AtomicUsize,
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

impl Default for Pool {
    fn default() -> Self {
        Self {
            workspaces: (0..POOL).map(|_| Mutex::new(None)).collect(),
            cache_bytes: AtomicUsize::new(CACHE_BYTES),
            generation: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            entries: AtomicU64::new(0),
        }
    }
}

impl Pool {
    /// Runs `work` with a workspace, or without one if all are taken.
    pub fn with<R>(&self, work: impl FnOnce(Option<&mut Workspace>) -> R) -> R {
        let workspaces = self.workspaces.iter().enumerate();
        let mut free =
            workspaces.filter_map(|(place, workspace)| Some((place, workspace.try_lock().ok()?)));
        let Some((place, mut guard)) = free.next() else {
            return work(None);
        };
        let workspace = self.current(place, &mut guard);
        let entries = workspace.cache.size() as u64;
        let result = work(Some(workspace));
        let cache = &mut workspace.cache;
        add(&self.hits, std::mem::take(&mut cache.hits));
        add(&self.misses, std::mem::take(&mut cache.misses));
        if workspace.generation == self.generation.load(Ordering::Relaxed) {
            add(
                &self.entries,
                (workspace.cache.size() as u64).wrapping_sub(entries),
            );
        }
        result
    }

    /// The workspace behind the lock, made anew if the caches were cleared since. The cache of the first is
    /// the largest, as threads side by side share what there is to keep.
    fn current<'a>(
        &self,
        place: usize,
        guard: &'a mut MutexGuard<'_, Option<Box<Workspace>>>,
    ) -> &'a mut Workspace {
        let generation = self.generation.load(Ordering::Relaxed);
        if guard
            .as_ref()
            .is_some_and(|workspace| workspace.generation != generation)
        {
            **guard = None;
        }
        let bytes = self.cache_bytes() / if place == 0 { 1 } else { 2 };
        guard.get_or_insert_with(|| Workspace::new(bytes, generation))
    }

    /// Bytes that one thread's cache takes at most; those of others beside it take half of that.
    pub fn cache_bytes(&self) -> usize {
        self.cache_bytes.load(Ordering::Relaxed)
    }

    /// Hits and misses since the last clearing, and pieces kept.
    pub fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            size: self.entries.load(Ordering::Relaxed),
        }
    }

    /// Lets one thread's cache take so many bytes at most, and drops every piece.
    pub fn limit(&self, cache_bytes: usize) {
        self.cache_bytes.store(cache_bytes, Ordering::Relaxed);
        self.clear();
    }

    /// Drops every piece (a cache in use is dropped when it is next taken) and resets the counters.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        for counter in [&self.hits, &self.misses, &self.entries] {
            counter.store(0, Ordering::Relaxed);
        }
        for workspace in &self.workspaces {
            if let Ok(mut workspace) = workspace.try_lock() {
                *workspace = None;
            }
        }
    }
}

/// Adds to a counter that others add to at the same time; adding nothing costs nothing.
fn add(counter: &AtomicU64, number: u64) {
    if number != 0 {
        counter.fetch_add(number, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::key;
    use super::*;

    #[test]
    fn a_pool_never_waits() {
        let pool = Pool::default();
        pool.with(|outer| {
            assert!(outer.is_some());
            pool.clear();
            pool.with(|inner| assert!(inner.is_some()));
        });
        let locks: Vec<_> = pool.workspaces.iter().map(|place| place.lock()).collect();
        pool.with(|workspace| assert!(workspace.is_none()));
        drop(locks);
    }

    #[test]
    fn the_first_cache_is_the_largest() {
        let pool = Pool::default();
        pool.limit(1 << 20);
        let fill = |cache: &mut Cache| {
            for number in 0..50_000_u32 {
                let piece = number.to_string();
                cache.insert(key(piece.as_bytes(), 0, piece.len()), &[number]);
                cache.make_room();
            }
            cache.sets()
        };
        let sets = pool.with(|first| {
            let second = pool.with(|second| fill(&mut second.unwrap().cache));
            (fill(&mut first.unwrap().cache), second)
        });
        assert!(
            sets.0 / 2 - 16 <= sets.1 && sets.1 <= sets.0 / 2,
            "{sets:?}"
        );
    }
}

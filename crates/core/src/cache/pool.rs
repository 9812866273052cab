//! The caches and buffers of the threads, kept from call to call.

use super::cache::{Cache, CACHE_BYTES};
use super::keys::KeyBatch;
use super::misses::Misses;
use crate::pretokenize::Block;
use std::mem::take;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;

/// Threads beyond this many run without a cache.
const MAX_WORKSPACES: usize = 64;

/// One thread's cache and buffers.
pub struct Workspace {
    /// Pieces merged before.
    pub cache: Cache,
    /// The bounds of the pieces of one block of text.
    pub block: Block,
    /// The keys of the pieces that are looked up together: those of two batches.
    pub keys: [KeyBatch; 2],
    /// Those of them that the cache lacks.
    pub misses: Misses,
    /// The UTF-8 of a text in code units.
    pub utf8: String,
    /// The ids of one piece.
    pub piece_ids: Vec<u32>,
    /// The pool's generation when the workspace was made.
    generation: u64,
}

impl Workspace {
    #[cold]
    fn new(cache_bytes: usize, generation: u64) -> Box<Self> {
        Box::new(Self {
            cache: Cache::new(cache_bytes),
            block: Block::default(),
            keys: Default::default(),
            misses: Misses::default(),
            utf8: String::new(),
            piece_ids: Vec::new(),
            generation,
        })
    }
}

/// The place of a workspace, and the counters of its caches. No two share a cache line, because threads write to them.
#[derive(Default)]
#[repr(align(128))]
struct Place {
    workspace: Mutex<Option<Box<Workspace>>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The workspaces of an encoder. A call takes a free one.
///
/// Never waits for a lock: a lock that another thread holds during a fork stays locked in the child, and the
/// child takes another workspace.
pub struct WorkspacePool {
    workspaces: Vec<Place>,
    /// The limit of the first workspace's cache. The others get three eighths.
    cache_bytes: AtomicUsize,
    /// Clearing increments it. A workspace of an older generation is dropped when it is next taken.
    generation: AtomicU64,
    entries: AtomicU64,
}

/// The counters of all caches since the last clearing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Lookups that found their piece.
    pub hits: u64,
    /// Pieces that were merged.
    pub misses: u64,
    /// Pieces that are cached now.
    pub size: u64,
}

impl Default for WorkspacePool {
    fn default() -> Self {
        Self {
            workspaces: (0..MAX_WORKSPACES).map(|_| Place::default()).collect(),
            cache_bytes: AtomicUsize::new(CACHE_BYTES),
            generation: AtomicU64::new(0),
            entries: AtomicU64::new(0),
        }
    }
}

impl WorkspacePool {
    /// Runs `work` with the first free workspace from `first` on. If all are in use, it gets a new one that caches
    /// nothing.
    ///
    /// A thread that takes one for each of its jobs passes its number in the call. It then finds the workspace that is in
    /// its processor's cache.
    pub fn with<R>(&self, first: usize, work: impl FnOnce(&mut Workspace) -> R) -> R {
        let first = first % MAX_WORKSPACES;
        let mut places = (first..MAX_WORKSPACES).chain(0..first);
        let free = places
            .find_map(|index| Some((index, self.workspaces[index].workspace.try_lock().ok()?)));
        let Some((index, mut guard)) = free else {
            return work(&mut Workspace::new(0, 0));
        };
        let generation = self.generation.load(Ordering::Relaxed);
        guard.take_if(|workspace| workspace.generation != generation);
        // The first cache is the largest: a call on one thread uses it alone, and threads share the pieces
        // of a text.
        let bytes = self.cache_bytes() / 8 * if index == 0 { 8 } else { 3 };
        let workspace = guard.get_or_insert_with(|| Workspace::new(bytes, generation));
        let entries = workspace.cache.size() as u64;
        let result = work(workspace);
        let (cache, place) = (&mut workspace.cache, &self.workspaces[index]);
        let (hits, misses) = (take(&mut cache.hits), take(&mut cache.misses));
        if workspace.generation == self.generation.load(Ordering::Relaxed) {
            add(&place.hits, hits);
            add(&place.misses, misses);
            let added = (cache.size() as u64).wrapping_sub(entries);
            if added != 0 {
                self.entries.fetch_add(added, Ordering::Relaxed);
            }
        }
        result
    }

    /// The limit of the first cache in bytes. The others get three eighths.
    pub fn cache_bytes(&self) -> usize {
        self.cache_bytes.load(Ordering::Relaxed)
    }

    /// The counters since the last clearing.
    pub fn statistics(&self) -> CacheStatistics {
        let sum = |counter: fn(&Place) -> &AtomicU64| {
            let counters = self.workspaces.iter().map(counter);
            counters.map(|it| it.load(Ordering::Relaxed)).sum()
        };
        CacheStatistics {
            hits: sum(|place| &place.hits),
            misses: sum(|place| &place.misses),
            size: self.entries.load(Ordering::Relaxed),
        }
    }

    /// Drops all pieces and changes the limit of the first cache. A limit below the smallest table turns caching
    /// off.
    pub fn limit(&self, cache_bytes: usize) {
        self.cache_bytes.store(cache_bytes, Ordering::Relaxed);
        self.clear();
    }

    /// Drops all pieces and resets the counters. A cache in use is dropped when it is next taken.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        self.entries.store(0, Ordering::Relaxed);
        for place in &self.workspaces {
            if let Ok(mut workspace) = place.workspace.try_lock() {
                *workspace = None;
            }
            place.hits.store(0, Ordering::Relaxed);
            place.misses.store(0, Ordering::Relaxed);
        }
    }
}

/// Adds to a counter to which only the thread with the lock of its place adds. An atomic addition takes longer.
fn add(counter: &AtomicU64, number: u64) {
    let sum = counter.load(Ordering::Relaxed).wrapping_add(number);
    counter.store(sum, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::super::keys::key;
    use super::*;

    #[test]
    fn a_pool_never_waits() {
        let pool = WorkspacePool::default();
        let caches = |workspace: &mut Workspace| {
            let key = key(b"piece", 0, 5);
            workspace.cache.insert(key, b"piece", &[1]);
            workspace.cache.get(key, b"piece", &mut Vec::new())
        };
        pool.with(0, |outer| {
            assert!(caches(outer));
            pool.clear();
            assert!(pool.with(0, caches));
        });
        let locks: Vec<_> = pool
            .workspaces
            .iter()
            .map(|it| it.workspace.lock())
            .collect();
        assert!(!pool.with(0, caches));
        drop(locks);
    }

    #[test]
    fn a_thread_finds_its_workspace_again() {
        let pool = WorkspacePool::default();
        let key = key(b"piece", 0, 5);
        let fill =
            |id| move |workspace: &mut Workspace| workspace.cache.insert(key, b"piece", &[id]);
        let last = MAX_WORKSPACES - 1;
        for number in [0, 1, last] {
            pool.with(number, fill(number as u32));
        }
        let found = |number| {
            let mut ids = Vec::new();
            pool.with(number, |workspace| {
                workspace.cache.get(key, b"piece", &mut ids)
            });
            ids
        };
        assert_eq!([found(1), found(0), found(last)], [[1], [0], [last as u32]]);
        assert_eq!(found(MAX_WORKSPACES + 1), [1]);
        assert_eq!(pool.with(last, |_| found(last)), [0]); // the next free one, from the beginning
    }

    #[test]
    fn the_first_cache_is_the_largest() {
        let pool = WorkspacePool::default();
        pool.limit(1 << 20);
        let fill = |cache: &mut Cache| {
            for number in 0..50_000_u32 {
                let piece = number.to_string();
                cache.insert(
                    key(piece.as_bytes(), 0, piece.len()),
                    piece.as_bytes(),
                    &[number],
                );
                cache.grow();
            }
            cache.bucket_count()
        };
        let buckets = pool.with(0, |first| {
            let second = pool.with(0, |second| fill(&mut second.cache));
            (fill(&mut first.cache), second)
        });
        assert!(
            buckets.0 / 8 * 3 - 16 <= buckets.1 && buckets.1 <= buckets.0 / 8 * 3,
            "{buckets:?}"
        );
    }
}

//! Scoped worker threads: they end with the call, so a forked child never waits for threads that it lacks.

pub mod ordered;

use crate::memory;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// A second thread pays off from this many bytes on.
const MIN_BYTES_PER_THREAD: usize = 32 << 10;
/// [`first_chunk`] looks for a cut in this many bytes at the end of a chunk.
const CUT_SEARCH: usize = 1 << 10;

/// Address space that a new thread needs: its stack, and some for its work. A thread that starts with less can fail
/// where nothing reports it.
const THREAD_BYTES: usize = 8 << 20;

/// The number of threads for this much work: at most as requested; 0 requests one per processor.
pub fn thread_count(requested: usize, bytes: usize) -> usize {
    let limit = match requested {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    limit.min(bytes / MIN_BYTES_PER_THREAD).max(1)
}

/// Runs the same work on several threads, the calling one first, and returns each thread's result. If the system
/// refuses a thread, there are fewer results: `work` must take its share from what is left.
pub fn on_threads<R: Send>(threads: usize, work: impl Fn() -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map_while(|_| start(scope, &work)).collect();
        let mut results = vec![work()];
        for other in others {
            match other.join() {
                Ok(result) => results.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    })
}

/// Starts a thread. None if the system refuses, or if too little address space is left.
pub fn start<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> R + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, R>> {
    if !memory::has_room(THREAD_BYTES) {
        return None;
    }
    Builder::new().spawn_scoped(scope, work).ok()
}

/// The length of the first chunk of a text that is cut into chunks of about `size` bytes. `last_cut` finds the
/// last place in a byte range at which the text may be cut.
pub fn first_chunk(
    length: usize,
    size: usize,
    last_cut: impl Fn(Range<usize>) -> Option<usize>,
) -> usize {
    next_cut(&mut { size }, length, size / 2, size, last_cut).unwrap_or(length)
}

/// A cut in a text of `length` bytes, near `limit` or a later multiple of `size`, and at least `margin` bytes before the
/// end. Moves `limit` past the places that have none.
pub fn next_cut(
    limit: &mut usize,
    length: usize,
    margin: usize,
    size: usize,
    last_cut: impl Fn(Range<usize>) -> Option<usize>,
) -> Option<usize> {
    while *limit < length.saturating_sub(margin) {
        if let Some(cut) = last_cut(*limit - CUT_SEARCH.min(size)..*limit) {
            return Some(cut);
        }
        *limit += size;
    }
    None
}

/// Locks a mutex whose content stays sound when a thread panics.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_end_at_cuts() {
        let cut = |length, cuts: &[usize]| {
            first_chunk(length, 10, |range| {
                cuts.iter().copied().rfind(|cut| range.contains(cut))
            })
        };
        assert_eq!(cut(100, &[3, 7, 12]), 7);
        assert_eq!(cut(100, &[34, 47]), 34);
        assert_eq!(cut(15, &[7]), 15); // not worth cutting
        assert_eq!(cut(100, &[]), 100);
    }
}

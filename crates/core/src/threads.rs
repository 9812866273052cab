//! Scoped worker threads: they end with the call, so a forked child never waits for threads that it lacks.

pub mod ordered;

use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::memory;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

/// A second thread pays off from this many bytes on.
const MIN_BYTES_PER_THREAD: usize = 32 << 10;
/// [`first_chunk`] looks for a cut in this many bytes at the end of a chunk.
const CUT_SEARCH: usize = 1 << 10;

/// Address space that a new thread needs: its stack, and some for its work. A thread that starts with less can fail
/// where nothing reports it.
const THREAD_BYTES: usize = 8 << 20;

/// How often a waiting thread polls the interrupt.
const WAIT_POLL: Duration = Duration::from_millis(50);

/// The number of threads for this much work: at most as requested; 0 requests one per processor.
pub fn thread_count(requested: usize, bytes: usize) -> usize {
    let useful = bytes / MIN_BYTES_PER_THREAD;
    if useful <= 1 {
        return 1; // before the system is asked, which takes longer than a short text
    }
    let limit = match requested {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    limit.min(useful)
}

/// Runs the same work on several threads, the calling one first, and returns each thread's result. If the system
/// refuses a thread, there are fewer results: `work` must take its share from what is left.
///
/// The calling thread polls the interrupt while it waits for the others. The work must follow the interrupt, and the
/// caller must check it.
pub fn on_threads<R: Send>(
    threads: usize,
    interrupt: &Interrupt<'_>,
    work: impl Fn() -> R + Sync,
) -> Vec<R> {
    let running = Running::default();
    std::thread::scope(|scope| {
        let others = (1..threads).map_while(|_| {
            let (guard, work) = (running.begin(), &work);
            start(scope, move || {
                let _guard = guard;
                work()
            })
        });
        let others: Vec<_> = others.collect();
        let mut results = vec![work()];
        let _ = running.wait(interrupt);
        for other in others {
            match other.join() {
                Ok(result) => results.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    })
}

/// The number of threads that run. The thread that waits for them can poll an interrupt, which it cannot while it
/// joins them.
#[derive(Default)]
pub struct Running {
    count: Mutex<usize>,
    ended: Condvar,
}

/// Counts a thread as long as it lives.
pub struct RunningGuard<'a>(&'a Running);

impl Running {
    /// Counts a thread that will start.
    pub fn begin(&self) -> RunningGuard<'_> {
        *lock(&self.count) += 1;
        RunningGuard(self)
    }

    /// Waits until all threads have ended. Fails if the interrupt stops the work, but waits then too.
    pub fn wait(&self, interrupt: &Interrupt<'_>) -> Result<()> {
        let mut outcome = Ok(());
        let mut count = lock(&self.count);
        while *count > 0 {
            count = wait(&self.ended, count);
            if *count > 0 && outcome.is_ok() {
                drop(count);
                outcome = interrupt.poll();
                count = lock(&self.count);
            }
        }
        outcome
    }
}

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.0.count) -= 1;
        self.0.ended.notify_all();
    }
}

/// Waits for a change, and at most until the interrupt must be polled.
pub fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    let woken = changed.wait_timeout(guard, WAIT_POLL);
    woken.unwrap_or_else(PoisonError::into_inner).0
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

/// The value of a cell, which the first call makes. Never waits for a thread that makes it: a forked child does not have
/// that thread. So several threads may make the value, and the first one stays.
#[inline]
pub fn made_once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    let Ok(value) = try_made_once(cell, || Ok::<T, Infallible>(make()));
    value
}

/// As [`made_once`], for a value that cannot always be made. After a failure, the next call tries again.
#[inline]
#[allow(clippy::disallowed_methods)] // it only moves the value
pub fn try_made_once<T, E>(
    cell: &OnceLock<T>,
    make: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<&T, E> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(cell.get_or_init(|| value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn no_thread_waits_for_another_that_makes_a_value() {
        let (cell, [begun, made]) = (OnceLock::new(), [0; 2].map(|_| Barrier::new(2)));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                *made_once(&cell, || {
                    begun.wait();
                    made.wait();
                    1
                })
            });
            begun.wait();
            assert_eq!(*made_once(&cell, || 2), 2);
            made.wait();
            assert_eq!(other.join().unwrap(), 2);
        });
        assert_eq!(
            try_made_once(&OnceLock::<u8>::new(), || Err("no")),
            Err("no")
        );
    }

    #[test]
    fn little_work_takes_few_threads() {
        let threads = |bytes| thread_count(4, bytes);
        let share = MIN_BYTES_PER_THREAD;
        let bytes = [0, 1, share, 2 * share - 1, 2 * share, 4 * share, 5 * share];
        assert_eq!(bytes.map(threads), [1, 1, 1, 1, 2, 4, 4]);
        assert_eq!(thread_count(1, usize::MAX), 1);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(thread_count(0, usize::MAX), processors);
    }

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

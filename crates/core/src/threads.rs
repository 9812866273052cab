//! Scoped worker threads: they end with the call, so a forked child never waits for threads that it lacks.

pub mod ordered;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A second thread pays off from this many bytes on.
const MIN_BYTES_PER_THREAD: usize = 32 << 10;
/// [`map`] hands out items in batches of about this many bytes.
const BATCH_BYTES: usize = 64 << 10;
/// [`first_chunk`] looks for a cut in this many bytes at the end of a chunk.
const CUT_SEARCH: usize = 1 << 10;

/// The number of threads for this much work: at most as requested; 0 requests one per processor.
pub fn thread_count(requested: usize, bytes: usize) -> usize {
    let limit = match requested {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    limit.min(bytes / MIN_BYTES_PER_THREAD).max(1)
}

/// Applies `work` to every item in parallel and returns the results in item order.
///
/// `size` is an item's bytes. The calling thread works too and polls the interrupt. The first error, in item
/// order, stops the other threads.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    size: impl Fn(&T) -> usize,
    interrupt: &Interrupt<'_>,
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = thread_count(threads, items.iter().map(&size).sum());
    if threads == 1 {
        return map_batch(items, interrupt, &work);
    }
    let batches = batches(items, size);
    let next = AtomicUsize::new(0);
    let outcomes = on_threads(threads, || {
        let mut outcomes = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(batch) = batches.get(index) else {
                return outcomes;
            };
            let outcome = map_batch(batch, interrupt, &work);
            let failed = outcome.is_err();
            outcomes.push((index, outcome));
            if failed {
                interrupt.stop();
                return outcomes;
            }
        }
    });
    let mut outcomes: Vec<_> = outcomes.into_iter().flatten().collect();
    outcomes.sort_by_key(|(index, _)| *index);
    let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome);
    Ok(all_or_first_error(outcomes)?
        .into_iter()
        .flatten()
        .collect())
}

/// Runs the same work on several threads, the calling one first, and returns each thread's result.
pub fn on_threads<R: Send>(threads: usize, work: impl Fn() -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
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

/// All results, or the first error. An [`Error::Interrupted`] counts last: a thread also reports it when the
/// error of another thread stopped it.
pub fn all_or_first_error<R>(outcomes: impl IntoIterator<Item = Result<R>>) -> Result<Vec<R>> {
    let (mut results, mut interrupted) = (Vec::new(), false);
    for outcome in outcomes {
        match outcome {
            Ok(result) => results.push(result),
            Err(Error::Interrupted) => interrupted = true,
            Err(error) => return Err(error),
        }
    }
    if interrupted {
        return Err(Error::Interrupted);
    }
    Ok(results)
}

/// The length of the first chunk of a text that is cut into chunks of about `size` bytes. `last_cut` finds the
/// last place in a byte range at which the text may be cut.
pub fn first_chunk(
    length: usize,
    size: usize,
    last_cut: impl Fn(Range<usize>) -> Option<usize>,
) -> usize {
    let mut limit = size;
    while limit < length.saturating_sub(size / 2) {
        if let Some(cut) = last_cut(limit - CUT_SEARCH.min(size)..limit) {
            return cut;
        }
        limit += size;
    }
    length
}

/// Locks a mutex whose content stays sound when a thread panics.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn map_batch<T, R>(
    batch: &[T],
    interrupt: &Interrupt<'_>,
    work: impl Fn(&T) -> Result<R>,
) -> Result<Vec<R>> {
    interrupt.poll()?;
    let results = batch.iter().map(|item| {
        interrupt.check()?;
        work(item)
    });
    results.collect()
}

fn batches<T>(mut items: &[T], size: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let mut batches = Vec::new();
    while !items.is_empty() {
        let mut bytes = 0;
        let fitting = items.iter().take_while(|item| {
            let is_first = bytes == 0;
            bytes += size(item).max(1);
            is_first || bytes <= BATCH_BYTES
        });
        let (batch, rest) = items.split_at(fitting.count());
        batches.push(batch);
        items = rest;
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<usize> = (0..10_000).collect();
        for threads in [0, 1, 2, 7] {
            let doubled =
                map(&items, threads, |_| 100, &Interrupt::never(), |i| Ok(2 * i)).unwrap();
            assert!(doubled
                .iter()
                .zip(&items)
                .all(|(double, item)| *double == 2 * item));
            assert_eq!(doubled.len(), items.len());
        }
    }

    #[test]
    fn an_error_stops_everything_and_is_reported() {
        let items: Vec<u32> = (0..100_000).collect();
        for threads in [1, 3] {
            let result = map(
                &items,
                threads,
                |_| 100,
                &Interrupt::never(),
                |&id| match id {
                    70_000 => Err(Error::UnknownId { id, position: 0 }),
                    _ => Ok(id),
                },
            );
            assert!(matches!(result, Err(Error::UnknownId { id: 70_000, .. })));
        }
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

    #[test]
    fn the_caller_can_interrupt() {
        let items = vec![(); 100_000];
        let (interrupt, caller) = (Interrupt::new(&|| true), std::thread::current().id());
        let work = |(): &()| {
            // The others do not work through everything before the caller begins.
            while std::thread::current().id() != caller && interrupt.check().is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        let result = map(&items, 2, |()| 100, &interrupt, work);
        assert!(matches!(result, Err(Error::Interrupted)));
    }
}

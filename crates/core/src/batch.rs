//! Many texts at once, on threads that live as long as the call (so that a forked child has no dead
//! ones to wait for).

use crate::error::Result;
use crate::interrupt::Interrupt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Work below this many bytes is not worth a second thread.
const BYTES_A_THREAD: usize = 32 << 10;
/// Items are handed out in runs of about so many bytes.
const BYTES_A_RUN: usize = 64 << 10;

/// How many threads to use: as asked, or (0) as many as there are processors; never more than help.
pub fn thread_count(asked: usize, bytes: usize) -> usize {
    let wanted = match asked {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    wanted.min(bytes / BYTES_A_THREAD).max(1)
}

/// Applies `work` to every item, in parallel, and returns the results in the order of the items.
///
/// `size` is an item's bytes. The calling thread works too, and is the one that polls. The first
/// error (of the earliest run that failed) stops the others.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    size: impl Fn(&T) -> usize,
    interrupt: &Interrupt<'_>,
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = thread_count(threads, items.iter().map(&size).sum());
    if threads == 1 {
        return map_run(items, interrupt, &work);
    }
    let runs = cut_into_runs(items, size);
    let next = AtomicUsize::new(0);
    let work_through = || -> Vec<(usize, Result<Vec<R>>)> {
        let mut done = Vec::new();
        while let Some(run) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            runs.get(index).map(|run| (index, *run))
        } {
            let result = map_run(run.1, interrupt, &work);
            let failed = result.is_err();
            done.push((run.0, result));
            if failed {
                interrupt.stop();
                break;
            }
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work_through)).collect();
        let mut done = work_through();
        for other in others {
            match other.join() {
                Ok(results) => done.extend(results),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(index, _)| *index);
    let mut results = Vec::with_capacity(items.len());
    // A thread that was told to stop fails too: the cause is the error that is not this.
    let mut interrupted = None;
    for (_, result) in done {
        match result {
            Ok(run) => results.extend(run),
            Err(crate::Error::Interrupted) => interrupted = Some(crate::Error::Interrupted),
            Err(error) => return Err(error),
        }
    }
    interrupted.map_or(Ok(results), Err)
}

fn map_run<T, R>(
    run: &[T],
    interrupt: &Interrupt<'_>,
    work: impl Fn(&T) -> Result<R>,
) -> Result<Vec<R>> {
    interrupt.poll()?;
    run.iter()
        .map(|item| {
            interrupt.check()?;
            work(item)
        })
        .collect()
}

fn cut_into_runs<T>(mut items: &[T], size: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let mut runs = Vec::new();
    while !items.is_empty() {
        let mut bytes = 0;
        let length = items
            .iter()
            .take_while(|item| {
                let first = bytes == 0;
                bytes += size(item).max(1);
                first || bytes <= BYTES_A_RUN
            })
            .count();
        let (run, rest) = items.split_at(length);
        runs.push(run);
        items = rest;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

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
    fn the_caller_can_interrupt() {
        let items = vec![(); 100_000];
        let interrupt = Interrupt::new(&|| true);
        let result = map(&items, 2, |()| 100, &interrupt, |()| Ok(()));
        assert!(matches!(result, Err(Error::Interrupted)));
    }
}

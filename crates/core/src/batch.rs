//! Work on many threads, which live as long as the call (so that a forked child has no dead ones to
//! wait for).

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Work below this many bytes is not worth a second thread.
const BYTES_A_THREAD: usize = 32 << 10;
/// Items are handed out in runs of about so many bytes.
const BYTES_A_RUN: usize = 64 << 10;

/// So many results wait for one before them at most.
const AHEAD: usize = 64;
/// A thread that waits looks so often at whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// In so many of the last bytes of a part a place is looked for where it may end.
const SEARCHED: usize = 1 << 10;

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
    let done = on_threads(threads, work_through);
    let mut done: Vec<_> = done.into_iter().flatten().collect();
    done.sort_by_key(|(index, _)| *index);
    let mut results = Vec::with_capacity(items.len());
    // A thread that was told to stop fails too: the cause is the error that is not this.
    let mut interrupted = None;
    for (_, result) in done {
        match result {
            Ok(run) => results.extend(run),
            Err(Error::Interrupted) => interrupted = Some(Error::Interrupted),
            Err(error) => return Err(error),
        }
    }
    interrupted.map_or(Ok(results), Err)
}

/// Does the same work on so many threads, of which the calling one is the first, and returns what each of them
/// returned.
pub fn on_threads<R: Send>(threads: usize, work: impl Fn() -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
        let mut done = vec![work()];
        for other in others {
            match other.join() {
                Ok(result) => done.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })
}

/// How long the first part of a text is that is cut into parts of about `size` bytes; `last_cut` finds the
/// last place in a range of its bytes where it may be cut.
pub fn first_part(
    length: usize,
    size: usize,
    last_cut: impl Fn(Range<usize>) -> Option<usize>,
) -> usize {
    let mut limit = size;
    while limit < length.saturating_sub(size / 2) {
        if let Some(cut) = last_cut(limit - SEARCHED.min(size)..limit) {
            return cut;
        }
        limit += size;
    }
    length
}

/// Does jobs in parallel, and hands what came of them to `take`, in the order of the jobs.
///
/// `work` adds to a result, which may hold that of the jobs before already; `take` empties it, and it is
/// filled again. A job is drawn when a thread is free for it. Threads that are far ahead of a slow job wait
/// for it, so the results that are not taken yet stay few. The error is that of the first job that failed.
pub fn in_order<J: Send, R: Default + Send>(
    jobs: impl Iterator<Item = J> + Send,
    threads: usize,
    interrupt: &Interrupt<'_>,
    work: impl Fn(J, &mut R) -> Result<()> + Sync,
    mut take: impl FnMut(&mut R) + Send,
) -> Result<()> {
    if threads <= 1 {
        let mut result = R::default();
        for job in jobs {
            interrupt.poll()?;
            work(job, &mut result)?;
        }
        take(&mut result);
        return Ok(());
    }
    let drawn = Mutex::new((0.., jobs));
    let queue = Queue::new(take);
    let work_through = || {
        let _watch = StopOnPanic(&queue);
        while queue.wait_for_turn(interrupt) {
            let (number, job) = {
                let (numbers, jobs) = &mut *lock(&drawn);
                match (jobs.next(), numbers.next()) {
                    (Some(job), Some(number)) => (number, job),
                    _ => break,
                }
            };
            let mut result = queue.empty_result();
            match interrupt.poll().and_then(|()| work(job, &mut result)) {
                Ok(()) => queue.put(number, result),
                Err(error) => queue.fail(number, error),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Without another thread, those that are here do all of it.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work_through);
        }
        work_through();
    });
    queue.outcome()
}

/// Results on their way to who takes them.
struct Queue<R, F> {
    state: Mutex<State<R, F>>,
    moved: Condvar,
}

struct State<R, F> {
    /// How many were taken: the number of the one that is next.
    taken: usize,
    waiting: BTreeMap<usize, R>,
    empty: Vec<R>,
    /// None while a thread is at it.
    take: Option<F>,
    /// What the earliest job that failed ended with.
    failure: Option<(usize, Error)>,
    stopped: bool,
}

impl<R: Default, F: FnMut(&mut R)> Queue<R, F> {
    fn new(take: F) -> Self {
        let state = State {
            taken: 0,
            waiting: BTreeMap::new(),
            empty: Vec::new(),
            take: Some(take),
            failure: None,
            stopped: false,
        };
        let (state, moved) = (Mutex::new(state), Condvar::new());
        Self { state, moved }
    }

    /// Waits while too many results do; false if nothing more is to be done.
    fn wait_for_turn(&self, interrupt: &Interrupt<'_>) -> bool {
        let mut state = lock(&self.state);
        while !state.stopped && state.waiting.len() >= AHEAD {
            drop(state);
            if let Err(error) = interrupt.poll() {
                self.fail(usize::MAX, error);
            }
            state = lock(&self.state);
            if !state.stopped && state.waiting.len() >= AHEAD {
                let woken = self.moved.wait_timeout(state, LOOK);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        !state.stopped
    }

    fn empty_result(&self) -> R {
        lock(&self.state).empty.pop().unwrap_or_default()
    }

    /// Adds a result, and has those taken whose turn it is, unless another thread is at it.
    fn put(&self, number: usize, result: R) {
        let mut state = lock(&self.state);
        state.waiting.insert(number, result);
        let Some(mut take) = state.take.take() else {
            return;
        };
        loop {
            let next = state.taken;
            let Some(mut result) = state.waiting.remove(&next) else {
                break;
            };
            drop(state);
            take(&mut result);
            state = lock(&self.state);
            state.taken += 1;
            state.empty.push(result);
            self.moved.notify_all();
        }
        state.take = Some(take);
    }

    /// Jobs that were begun are finished: one of them may be an earlier one that fails.
    fn fail(&self, number: usize, error: Error) {
        let mut state = lock(&self.state);
        let earliest = state.failure.as_ref().map(|(number, _)| *number);
        if earliest.is_none_or(|earliest| number < earliest) {
            state.failure = Some((number, error));
        }
        state.stopped = true;
        self.moved.notify_all();
    }

    fn outcome(self) -> Result<()> {
        let state = self.state.into_inner();
        let failure = state.unwrap_or_else(PoisonError::into_inner).failure;
        failure.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Nobody waits for the result of a thread that panicked.
struct StopOnPanic<'a, R, F>(&'a Queue<R, F>);

impl<R, F> Drop for StopOnPanic<'_, R, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).stopped = true;
            self.0.moved.notify_all();
        }
    }
}

/// What a mutex guards, whoever panicked with it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Jobs that take a while, the first the longest.
    fn slow(job: usize) {
        std::thread::sleep(Duration::from_micros(if job == 0 { 20_000 } else { 50 }));
    }

    #[test]
    fn results_are_taken_in_the_order_of_the_jobs() {
        for threads in [1, 2, 7] {
            let mut all = Vec::new();
            let work = |job, result: &mut Vec<usize>| {
                slow(job);
                result.push(job);
                Ok(())
            };
            let take = |result: &mut Vec<usize>| all.append(result);
            in_order(0..1000, threads, &Interrupt::never(), work, take).unwrap();
            assert_eq!(all, (0..1000).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_earliest_failure_is_the_error() {
        for threads in [1, 2, 7] {
            let work = |job, _: &mut Vec<()>| {
                slow(job);
                match job {
                    0 | 5.. => Err(Error::UnknownId {
                        id: job as u32,
                        position: 0,
                    }),
                    _ => Ok(()),
                }
            };
            let result = in_order(0..1000, threads, &Interrupt::never(), work, |_| ());
            assert!(matches!(result, Err(Error::UnknownId { id: 0, .. })));
        }
    }

    #[test]
    fn who_is_far_ahead_waits() {
        let begun = AtomicUsize::new(0);
        let work = |job, _: &mut Vec<()>| {
            begun.fetch_add(1, Ordering::Relaxed);
            while job == 0 && begun.load(Ordering::Relaxed) <= AHEAD {
                std::thread::sleep(Duration::from_millis(1));
            }
            if job == 0 {
                std::thread::sleep(2 * LOOK);
                assert_eq!(begun.load(Ordering::Relaxed), AHEAD + 1);
            }
            Ok(())
        };
        in_order(0..1000, 2, &Interrupt::never(), work, |_| ()).unwrap();
        assert_eq!(begun.into_inner(), 1000);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_ends_the_waiting_for_it() {
        let caller = std::thread::current().id();
        let work = |_, _: &mut Vec<()>| {
            assert_eq!(std::thread::current().id(), caller);
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        };
        let _ = in_order(0..100_000, 2, &Interrupt::never(), work, |_| ());
    }

    #[test]
    fn who_waits_can_be_interrupted() {
        let begun = AtomicUsize::new(0);
        let stop = || begun.load(Ordering::Relaxed) > AHEAD;
        let interrupt = Interrupt::new(&stop);
        let work = |job, _: &mut Vec<()>| {
            begun.fetch_add(1, Ordering::Relaxed);
            while job == 0 && interrupt.check().is_ok() {
                interrupt.poll()?;
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        let result = in_order(0.., 2, &interrupt, work, |_| ());
        assert!(matches!(result, Err(Error::Interrupted)));
    }

    #[test]
    fn parts_end_where_they_may() {
        let cut = |length, cuts: &[usize]| {
            first_part(length, 10, |range| {
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

//! Parallel jobs whose results are consumed in job order (a reorder buffer).

use super::{lock, start, thread_count, wait, Running};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::reserve::{push, reserve, with_capacity};
use std::collections::BTreeMap;
use std::hint::spin_loop;
use std::sync::{Condvar, Mutex, PoisonError};

/// Results that may wait for an earlier one. Bounds the memory when one job is slow.
const MAX_WAITING: usize = 64;
/// With more results than this, a thread consumes those of others too. Its own are in its processor's cache.
const MAX_LEFT_TO_OTHERS: usize = 8;
/// [`map`] hands out items in batches of about this many bytes.
const BATCH_BYTES: usize = 64 << 10;

/// Applies `work` to every item in parallel and returns the results in item order.
///
/// `size` is an item's bytes. The calling thread works too and polls the interrupt. The error is that of the
/// first item, in item order, that failed.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    size: impl Fn(&T) -> usize,
    interrupt: &Interrupt<'_>,
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = thread_count(threads, items.iter().map(&size).sum());
    let batches = if threads == 1 {
        vec![items]
    } else {
        batches(items, size)
    };
    let mut results = with_capacity(items.len())?;
    let work = |_, batch: &[T], done: &mut Vec<R>| {
        batch.iter().try_for_each(|item| {
            interrupt.check()?;
            push(done, work(item)?)
        })
    };
    let take = |done: &mut Vec<R>| {
        reserve(&mut results, done.len())?;
        results.append(done);
        Ok(())
    };
    in_order(batches.into_iter(), threads, interrupt, work, take)?;
    Ok(results)
}

/// Runs jobs in parallel and passes their results to `consume` in job order.
///
/// `work` gets the number of its thread, a job, and a result to add to, which may already hold the results of earlier
/// jobs. `consume` empties it, and a later job reuses it. A job is drawn when a thread is free. At most `MAX_WAITING`
/// results wait for a slow job. The error is that of the first job, in job order, that failed or whose result `consume` refused.
pub fn in_order<J: Send, R: Default + Send>(
    jobs: impl Iterator<Item = J> + Send,
    threads: usize,
    interrupt: &Interrupt<'_>,
    work: impl Fn(usize, J, &mut R) -> Result<()> + Sync,
    mut consume: impl FnMut(&mut R) -> Result<()> + Send,
) -> Result<()> {
    if threads <= 1 {
        let mut result = R::default();
        for job in jobs {
            interrupt.poll()?;
            work(0, job, &mut result)?;
        }
        return consume(&mut result);
    }
    let (jobs, running) = (Jobs::new(jobs.enumerate()), Running::default());
    let buffer = ReorderBuffer::new(consume);
    let run_jobs = |thread| {
        let _guard = StopOnPanic(&buffer);
        while buffer.wait_for_room(interrupt) {
            let (number, job) = match jobs.next(interrupt, || buffer.is_stopped()) {
                Ok(Some(job)) => job,
                Ok(None) => break,
                Err(error) => {
                    buffer.fail(usize::MAX, error);
                    break;
                }
            };
            let mut result = buffer.empty_result(thread);
            match interrupt
                .poll()
                .and_then(|()| work(thread, job, &mut result))
            {
                Ok(()) => buffer.put(thread, number, result),
                Err(error) => buffer.fail(number, error),
            }
        }
        buffer.consume_due(|_, _| true);
    };
    std::thread::scope(|scope| {
        for number in 1..threads {
            // If the system refuses a thread, the existing ones do its share.
            let (guard, run_jobs) = (running.begin(), &run_jobs);
            let thread = start(scope, move || {
                let _guard = guard;
                run_jobs(number);
            });
            if thread.is_none() {
                break;
            }
        }
        run_jobs(0);
        if let Err(error) = running.wait(interrupt) {
            buffer.fail(usize::MAX, error);
        }
    });
    buffer.into_outcome()
}

/// How often a thread looks again for a job, about a microsecond each time, before it sleeps. To draw a job takes less
/// time than to wake a thread.
const LOOKS: usize = 30;

/// The jobs that are not drawn yet.
struct Jobs<I> {
    state: Mutex<JobState<I>>,
    returned: Condvar,
}

struct JobState<I> {
    /// None while a thread draws a job, which may take long.
    jobs: Option<I>,
    /// Threads that sleep until the jobs return.
    sleeping: usize,
}

impl<I: Iterator> Jobs<I> {
    fn new(jobs: I) -> Self {
        let (jobs, sleeping) = (Some(jobs), 0);
        let state = Mutex::new(JobState { jobs, sleeping });
        let returned = Condvar::new();
        Self { state, returned }
    }

    /// Takes the next job. While another thread takes one, polls the interrupt. Returns None at the end of the jobs, or
    /// if the work `is_stopped`.
    fn next(
        &self,
        interrupt: &Interrupt<'_>,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Option<I::Item>> {
        let mut looks = 0;
        let mut jobs = loop {
            let mut state = lock(&self.state);
            if let Some(jobs) = state.jobs.take() {
                break jobs;
            }
            looks += 1;
            if looks <= LOOKS {
                drop(state);
                (0..32).for_each(|_| spin_loop());
                continue;
            }
            state.sleeping += 1;
            let mut state = wait(&self.returned, state);
            state.sleeping -= 1;
            if state.jobs.is_none() {
                drop(state);
                interrupt.poll()?;
                if is_stopped() {
                    return Ok(None);
                }
            }
        };
        let job = jobs.next();
        let mut state = lock(&self.state);
        state.jobs = Some(jobs);
        if state.sleeping > 0 {
            self.returned.notify_one();
        }
        Ok(job)
    }
}

/// Results on their way from the workers to the consumer.
struct ReorderBuffer<R, F> {
    state: Mutex<State<R, F>>,
    changed: Condvar,
}

struct State<R, F> {
    /// Number of the job whose result is consumed next.
    next: usize,
    /// Finished results by job number, each with its thread.
    waiting: BTreeMap<usize, (usize, R)>,
    /// Consumed results, ready for reuse by their threads.
    empty: Vec<(usize, R)>,
    /// None while a thread consumes.
    consume: Option<F>,
    /// The first job, in job order, that failed.
    failure: Option<(usize, Error)>,
    stopped: bool,
    /// Threads that sleep until there is room.
    sleeping: usize,
}

impl<R: Default, F: FnMut(&mut R) -> Result<()>> ReorderBuffer<R, F> {
    fn new(consume: F) -> Self {
        let state = State {
            next: 0,
            waiting: BTreeMap::new(),
            empty: Vec::new(),
            consume: Some(consume),
            failure: None,
            stopped: false,
            sleeping: 0,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self { state, changed }
    }

    /// Blocks while too many results wait. Returns false if the work must stop.
    fn wait_for_room(&self, interrupt: &Interrupt<'_>) -> bool {
        let mut state = lock(&self.state);
        while !state.stopped && state.waiting.len() >= MAX_WAITING {
            drop(state);
            if let Err(error) = interrupt.poll() {
                self.fail(usize::MAX, error);
            }
            state = lock(&self.state);
            if !state.stopped && state.waiting.len() >= MAX_WAITING {
                state.sleeping += 1;
                state = wait(&self.changed, state);
                state.sleeping -= 1;
            }
        }
        !state.stopped
    }

    fn is_stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    fn empty_result(&self, thread: usize) -> R {
        let mut state = lock(&self.state);
        let own = state.empty.iter().position(|(owner, _)| *owner == thread);
        own.map(|own| state.empty.swap_remove(own).1)
            .unwrap_or_default()
    }

    /// Adds a result. Consumes the results that are due, up to the first one of another thread, unless many wait.
    fn put(&self, thread: usize, number: usize, result: R) {
        lock(&self.state).waiting.insert(number, (thread, result));
        self.consume_due(|owner, waiting| owner == thread || waiting > MAX_LEFT_TO_OTHERS);
    }

    /// Consumes the results that are due, unless another thread does. `takes` decides by the thread of a result, and by
    /// the number of those that wait.
    fn consume_due(&self, takes: impl Fn(usize, usize) -> bool) {
        let mut state = lock(&self.state);
        let Some(mut consume) = state.consume.take() else {
            return;
        };
        loop {
            let (next, waiting) = (state.next, state.waiting.len());
            let due = state.waiting.first_entry();
            let due = due.filter(|due| *due.key() == next && takes(due.get().0, waiting));
            let Some((owner, mut result)) = due.map(|due| due.remove()) else {
                break;
            };
            drop(state);
            if let Err(error) = consume(&mut result) {
                self.fail(next, error);
            }
            state = lock(&self.state);
            state.next += 1;
            state.empty.push((owner, result));
            if state.sleeping > 0 {
                self.changed.notify_all();
            }
        }
        state.consume = Some(consume);
    }

    /// Records a failure. Running jobs finish, because an earlier one may fail too.
    fn fail(&self, number: usize, error: Error) {
        let mut state = lock(&self.state);
        let first = state.failure.as_ref().map(|(number, _)| *number);
        if first.is_none_or(|first| number < first) {
            state.failure = Some((number, error));
        }
        state.stopped = true;
        self.changed.notify_all();
    }

    fn into_outcome(self) -> Result<()> {
        let state = self.state.into_inner();
        let failure = state.unwrap_or_else(PoisonError::into_inner).failure;
        failure.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Stops the other threads when one panics: they would wait forever for its result.
struct StopOnPanic<'a, R, F>(&'a ReorderBuffer<R, F>);

impl<R, F> Drop for StopOnPanic<'_, R, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).stopped = true;
            self.0.changed.notify_all();
        }
    }
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
    use super::super::WAIT_POLL;
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// Jobs that take a while, the first the longest.
    fn slow(job: usize) {
        std::thread::sleep(Duration::from_micros(if job == 0 { 20_000 } else { 50 }));
    }

    #[test]
    fn results_are_consumed_in_job_order() {
        for threads in [1, 2, 7] {
            let mut all = Vec::new();
            let work = |_, job, result: &mut Vec<usize>| {
                slow(job);
                result.push(job);
                Ok(())
            };
            let consume = |result: &mut Vec<usize>| {
                all.append(result);
                Ok(())
            };
            in_order(0..1000, threads, &Interrupt::never(), work, consume).unwrap();
            assert_eq!(all, (0..1000).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_result_that_is_refused_is_the_error() {
        for threads in [1, 2, 7] {
            let work = |_, job: u32, result: &mut u32| {
                *result = job;
                Ok(())
            };
            let consume = |result: &mut u32| match *result {
                position @ 500.. => Err(Error::UnknownId {
                    id: 0,
                    position: position as usize,
                }),
                _ => Ok(()),
            };
            let outcome = in_order(0..1000, threads, &Interrupt::never(), work, consume);
            let refused = if threads == 1 { 999 } else { 500 };
            assert!(
                matches!(outcome, Err(Error::UnknownId { position, .. }) if position == refused)
            );
        }
    }

    #[test]
    fn the_earliest_failure_is_the_error() {
        for threads in [1, 2, 7] {
            let work = |_, job, _: &mut Vec<()>| {
                slow(job);
                match job {
                    0 | 5.. => Err(Error::UnknownId {
                        id: job as u32,
                        position: 0,
                    }),
                    _ => Ok(()),
                }
            };
            let result = in_order(0..1000, threads, &Interrupt::never(), work, |_| Ok(()));
            assert!(matches!(result, Err(Error::UnknownId { id: 0, .. })));
        }
    }

    #[test]
    fn a_thread_that_is_far_ahead_waits() {
        let begun = AtomicUsize::new(0);
        let work = |_, job, _: &mut Vec<()>| {
            begun.fetch_add(1, Ordering::Relaxed);
            while job == 0 && begun.load(Ordering::Relaxed) <= MAX_WAITING {
                std::thread::sleep(Duration::from_millis(1));
            }
            if job == 0 {
                std::thread::sleep(2 * WAIT_POLL);
                assert_eq!(begun.load(Ordering::Relaxed), MAX_WAITING + 1);
            }
            Ok(())
        };
        in_order(0..1000, 2, &Interrupt::never(), work, |_| Ok(())).unwrap();
        assert_eq!(begun.into_inner(), 1000);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_ends_the_wait() {
        let caller = std::thread::current().id();
        let work = |_, _, _: &mut Vec<()>| {
            assert_eq!(std::thread::current().id(), caller);
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        };
        let _ = in_order(0..100_000, 2, &Interrupt::never(), work, |_| Ok(()));
    }

    #[test]
    fn a_waiting_thread_can_be_interrupted() {
        let begun = AtomicUsize::new(0);
        let stop = || begun.load(Ordering::Relaxed) > MAX_WAITING;
        let interrupt = Interrupt::new(&stop);
        let work = |_, job, _: &mut Vec<()>| {
            begun.fetch_add(1, Ordering::Relaxed);
            while job == 0 && interrupt.check().is_ok() {
                interrupt.poll()?;
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        let result = in_order(0.., 2, &interrupt, work, |_| Ok(()));
        assert!(matches!(result, Err(Error::Interrupted)));
    }

    #[test]
    fn the_caller_polls_while_another_thread_draws_a_job_or_works_on_the_last() {
        let caller = std::thread::current().id();
        for draws in [true, false] {
            let (polls, others) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let stop = || {
                let polls = polls.fetch_add(1, Ordering::Relaxed);
                polls > 3 && others.load(Ordering::Relaxed) > 0
            };
            let interrupt = Interrupt::new(&stop);
            // Ends only with the interrupt, on another thread than the caller.
            let endless = || {
                if std::thread::current().id() == caller {
                    return;
                }
                others.fetch_add(1, Ordering::Relaxed);
                while interrupt.check().is_ok() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            };
            let jobs = (0..40).inspect(|_| {
                if draws {
                    endless();
                }
            });
            let work = |_, _, _: &mut ()| {
                std::thread::sleep(Duration::from_millis(5));
                // The caller does not do all the work before the other thread begins.
                while std::thread::current().id() == caller && others.load(Ordering::Relaxed) == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                if !draws {
                    endless();
                }
                Ok(())
            };
            let result = in_order(jobs, 2, &interrupt, work, |()| Ok(()));
            assert!(matches!(result, Err(Error::Interrupted)));
        }
    }

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

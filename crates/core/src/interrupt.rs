//! Cooperative cancellation: how long-running work learns that its caller wants it to stop, for example on
//! Ctrl-C.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// Units of work between two polls of a [`Poller`]. A unit takes between 5 ns and 2 µs, and a poll from Python
/// may have to wait 5 ms for the GIL.
pub const POLL_INTERVAL: usize = 1 << 16;

/// A cancellation flag that all threads of a call share.
///
/// Only the thread that created it calls the caller's function: in Python, only that thread may look for
/// signals. The other threads follow the flag.
pub struct Interrupt<'a> {
    stop: AtomicBool,
    caller: usize,
    poll: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Interrupt<'a> {
    /// `poll` returns true to stop the work. Only the current thread will call it.
    pub fn new(poll: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            stop: AtomicBool::new(false),
            caller: thread_token(),
            poll,
        }
    }

    /// Fails if the work must stop. On the creating thread, asks the caller's function first.
    pub fn poll(&self) -> Result<()> {
        if thread_token() == self.caller && (self.poll)() {
            self.stop();
        }
        self.check()
    }

    /// Fails if the flag is set. Costs a load.
    pub fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }

    /// Sets the flag: the next check of every thread fails.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Interrupt<'static> {
    /// An interrupt that only [`Interrupt::stop`] triggers.
    pub fn never() -> Self {
        Self::new(&|| false)
    }
}

/// Polls an interrupt once every [`POLL_INTERVAL`] units of work.
pub struct Poller<'a> {
    interrupt: &'a Interrupt<'a>,
    /// Units until the next poll.
    remaining: usize,
}

impl<'a> Poller<'a> {
    /// The first poll comes after a whole interval.
    pub fn new(interrupt: &'a Interrupt<'a>) -> Self {
        Self {
            interrupt,
            remaining: POLL_INTERVAL,
        }
    }

    /// Counts units of work that are done: pieces, symbols, merges. Polls when the interval is over.
    #[inline(always)]
    pub fn advance(&mut self, units: usize) -> Result<()> {
        if units < self.remaining {
            self.remaining -= units;
            return Ok(());
        }
        self.remaining = POLL_INTERVAL;
        self.interrupt.poll()
    }

    /// What the poller polls.
    pub fn interrupt(&self) -> &'a Interrupt<'a> {
        self.interrupt
    }
}

/// The address of a thread-local: unique among running threads. `std::thread::current` takes longer than
/// encoding a short text.
fn thread_token() -> usize {
    thread_local!(static MARKER: u8 = const { 0 });
    MARKER.with(|marker| std::ptr::from_ref(marker) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_poller_polls_once_an_interval() {
        let polls = AtomicUsize::new(0);
        let poll = || polls.fetch_add(1, Ordering::Relaxed) == 2;
        let interrupt = Interrupt::new(&poll);
        let mut poller = Poller::new(&interrupt);
        for _ in 0..2 * POLL_INTERVAL {
            poller.advance(1).unwrap();
        }
        assert_eq!(polls.load(Ordering::Relaxed), 2);
        poller.advance(POLL_INTERVAL - 1).unwrap();
        assert!(matches!(poller.advance(1), Err(Error::Interrupted)));
    }
}

//! How long work learns that its caller wants it to stop (Ctrl-C, say).

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// Asked now and then by long work whether to stop.
///
/// The thread that called us polls, because only there can the caller look for signals; the
/// others follow its flag.
pub struct Interrupt<'a> {
    stop: AtomicBool,
    caller: usize,
    poll: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Interrupt<'a> {
    /// `poll` returns true to stop the work; only the thread that is here now will call it.
    pub fn new(poll: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            stop: AtomicBool::new(false),
            caller: thread(),
            poll,
        }
    }

    /// Polls, if this is the thread that was called; costs what the caller's function costs.
    pub fn poll(&self) -> Result<()> {
        if thread() == self.caller && (self.poll)() {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.check()
    }

    /// Looks at the flag; costs next to nothing.
    pub fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Makes every other thread's next check fail, because this one did.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A number that no two threads have while both run; the standard library's takes longer to find than some
/// texts take to encode.
fn thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place) as usize)
}

impl Interrupt<'static> {
    /// Work that nobody interrupts.
    pub fn never() -> Self {
        Self::new(&|| false)
    }
}

//! Calls into the core: releases the GIL, polls for signals, converts errors to the package's classes.

use bpe_tokenizer_core::{Error, Interrupt, Result};
use bpe_tokenizer_formats::FormatError;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use std::cell::Cell;
use std::io;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Releasing the GIL pays off from this many bytes or characters of text on.
const MIN_SIZE_TO_RELEASE: usize = 4 << 10;

/// The time between two checks of a thread for signals, where it has released the GIL. To get the GIL may take 5 ms, and
/// takes it from another thread.
const BETWEEN_CHECKS: Duration = Duration::from_millis(100);

thread_local! {
    /// When this thread last checked for signals. Not a time of one call: a function in C, such as `map`, can make many
    /// short calls between which the interpreter does not check.
    static LAST_CHECK: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Whether this thread must check for signals now. If so, the caller does, and the time starts again.
fn is_check_due() -> bool {
    let last = LAST_CHECK.get();
    let is_due = last.is_none_or(|last| last.elapsed() >= BETWEEN_CHECKS);
    if is_due {
        LAST_CHECK.set(Some(Instant::now()));
    }
    is_due
}

/// Runs `work` on an input of about `size` bytes or characters. Checks for signals (Ctrl-C) when `work` polls, and every 100 ms
/// at most where the GIL is released.
pub fn run<T: Send>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce(&Interrupt<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    run_sized(py, size, |interrupt, _| work(interrupt))
}

/// As [`run`], for work that calls Python functions.
pub fn run_with_calls<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Interrupt<'_>, &Calls<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    run_sized(py, usize::MAX, work)
}

#[inline]
fn run_sized<T: Send>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce(&Interrupt<'_>, &Calls<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let raised = Mutex::new(None);
    let check = || Python::attach(|py| keep(&raised, py.check_signals()));
    let result = if size < MIN_SIZE_TO_RELEASE {
        work(&Interrupt::new(&check), &Calls(&raised))
    } else {
        let poll = || is_set(&raised) || is_check_due() && check();
        py.detach(|| work(&Interrupt::new(&poll), &Calls(&raised)))
    };
    // The work may have noticed the exception too late to fail.
    match raised.into_inner().ok().flatten() {
        Some(raised) => Err(raised),
        None => result.or_raise(py),
    }
}

/// Calls Python functions. An exception stops the work at its next poll.
pub struct Calls<'a>(&'a Raised);

impl Calls<'_> {
    /// Calls a function, if there is one, unless an earlier call raised an exception.
    pub fn call(&self, callback: Option<&Py<PyAny>>, arguments: impl for<'py> PyCallArgs<'py>) {
        if let Some(callback) = callback {
            self.value(|py| callback.call1(py, arguments));
        }
    }

    /// Calls a function with the GIL. None if it raised an exception, also an earlier one.
    pub fn value<T>(&self, call: impl for<'py> FnOnce(Python<'py>) -> PyResult<T>) -> Option<T> {
        if is_set(self.0) {
            return None;
        }
        match Python::attach(call) {
            Ok(value) => Some(value),
            Err(error) => {
                keep(self.0, Err(error));
                None
            }
        }
    }
}

type Raised = Mutex<Option<PyErr>>;

/// Keeps the first exception. Returns whether this call failed.
fn keep(raised: &Raised, result: PyResult<()>) -> bool {
    let failed = result.is_err();
    if let (Err(error), Ok(mut raised)) = (result, raised.lock()) {
        raised.get_or_insert(error);
    }
    failed
}

fn is_set(raised: &Raised) -> bool {
    raised.lock().is_ok_and(|raised| raised.is_some())
}

/// Locks an object that a call uses for as long as it runs. Never waits: the other call may be an outer one of this thread,
/// whose signal handler or callback makes this call. A panic leaves the content sound.
pub fn lock_unused<'a, T>(object: &'a Mutex<T>, name: &str) -> Result<MutexGuard<'a, T>> {
    match object.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(Error::Option(format!(
            "{name} are in use by another call: use them after it, and a separate object in each thread"
        ))),
    }
}

/// An error of the core, or of a file, as the package's exception.
pub trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_python(py, &error))
    }
}

impl<T> OrRaise<T> for std::result::Result<T, FormatError> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, "FormatError", error.to_string()))
    }
}

fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    if matches!(error, Error::OutOfMemory { .. }) {
        return PyMemoryError::new_err(error.to_string());
    }
    let class = match error {
        Error::Pattern { .. } | Error::PatternGaveUp { .. } => "PatternError",
        Error::Model(_) => "ModelError",
        Error::Option(_) => "OptionError",
        Error::UnknownId { .. } | Error::UnknownRowId { .. } => "UnknownIdError",
        Error::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "CorpusFileNotFoundError"
        }
        Error::NotUtf8 { .. } | Error::Read { .. } | Error::CountOverflow => "CorpusError",
        Error::Saved { .. } => "FormatError",
        Error::Spill { .. } => "WriteError",
        Error::Disallowed { .. } => "SpecialTokenError",
        _ => "TokenizerError",
    };
    exception(py, class, error.to_string())
}

/// A value for an error message, as `bpe_tokenizer.errors.shorten` shows it.
pub fn shown(value: &Bound<'_, PyAny>, limit: usize) -> String {
    let shorten = || -> PyResult<String> {
        let errors = value.py().import("bpe_tokenizer.errors")?;
        errors.call_method1("shorten", (value, limit))?.extract()
    };
    shorten().unwrap_or_else(|_| "a value that cannot be shown".to_owned())
}

/// An exception of `bpe_tokenizer.errors`.
pub fn exception(py: Python<'_>, class: &str, message: String) -> PyErr {
    let create = || {
        let errors = py.import("bpe_tokenizer.errors")?;
        errors.getattr(class)?.call1((message,))
    };
    match create() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

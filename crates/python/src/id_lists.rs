//! Lists of ids to and from Python. The `int` objects of ids are made once and shared: to make one takes longer than to find
//! an id.
//!
//! `unsafe`: `read_ids` reads the items of a list by CPython's documented C interface, while nothing can change the list.

#![allow(unsafe_code)]

use crate::constructors;
use bpe_tokenizer_core::memory::prefetch_at;
use bpe_tokenizer_core::reserve::with_capacity;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyInt, PyList};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// `read_ids` prefetches the object of the id that is this number of ids ahead.
const AHEAD: usize = 24;
/// Ids that an encoder returns before their integers are shared.
const SHARE_AFTER: usize = 16 << 10;
/// The sizes of the tables, for small vocabularies and for others. The second takes about 10 MB.
const SIZES: [usize; 2] = [1 << 16, 1 << 18];
static TABLES: [OnceLock<Vec<Py<PyInt>>>; 2] = [OnceLock::new(), OnceLock::new()];

/// The objects of the integers from 0 on, up to a size, with those of a smaller table. None without memory for them.
fn make(py: Python<'_>, size: usize) -> Option<Vec<Py<PyInt>>> {
    let mut objects = with_capacity(size).ok()?;
    let smaller = TABLES[0].get().map_or(&[][..], Vec::as_slice);
    objects.extend(smaller.iter().map(|object| object.clone_ref(py)));
    while objects.len() < size {
        objects.push(constructors::integer(py, objects.len()).ok()?.unbind());
    }
    Some(objects)
}

#[inline]
fn integer<'py>(
    table: &[Py<PyInt>],
    py: Python<'py>,
    number: usize,
) -> PyResult<Bound<'py, PyInt>> {
    match table.get(number) {
        Some(object) => Ok(object.bind(py).clone()),
        None => constructors::integer(py, number),
    }
}

/// The integers of an encoder's ids.
#[derive(Default)]
pub struct SharedIntegers {
    /// Ids returned so far.
    returned: AtomicUsize,
}

impl SharedIntegers {
    /// The shared integers for a list with this number of ids; none before enough ids were returned.
    fn table(&self, py: Python<'_>, ids: usize, vocab_size: usize) -> &'static [Py<PyInt>] {
        let which = usize::from(vocab_size > SIZES[0]);
        if let Some(table) = TABLES[which].get() {
            return table;
        }
        let returned = self.returned.fetch_add(ids, Ordering::Relaxed);
        if returned.saturating_add(ids) < SHARE_AFTER {
            return &[];
        }
        // Another thread may be faster. Without memory, later calls try again.
        if let Some(table) = make(py, SIZES[which]) {
            let _ = TABLES[which].set(table);
        }
        TABLES[which].get().map_or(&[], Vec::as_slice)
    }

    /// A list of ids.
    pub fn list<'py>(
        &self,
        py: Python<'py>,
        ids: &[u32],
        vocab_size: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let table = self.table(py, ids.len(), vocab_size);
        constructors::list(py, ids.iter().map(|&id| integer(table, py, id as usize)))
    }
}

/// A list of tuples of two integers. Where a pair begins with the integer that ends the previous one, as adjacent spans
/// do, they share the object.
pub fn list_of_pairs<'py>(
    py: Python<'py>,
    pairs: &[(usize, usize)],
) -> PyResult<Bound<'py, PyList>> {
    let made = TABLES.iter().rev().find_map(OnceLock::get);
    let table = made.map_or(&[][..], Vec::as_slice);
    let mut last = (usize::MAX, constructors::integer(py, 0)?);
    let items = pairs.iter().map(|&(first, second)| {
        let start = match last.0 == first {
            true => last.1.clone(),
            false => integer(table, py, first)?,
        };
        let end = integer(table, py, second)?;
        last = (second, end.clone());
        constructors::tuple(py, start, end)
    });
    constructors::list(py, items)
}

/// Appends the ids of a list, up to the first item that is not exactly an `int` or does not fit an id. `ids` has room for
/// those of the list.
pub fn read_ids(ids: &mut Vec<u32>, list: &Bound<'_, PyList>) {
    with_critical_section(list, || {
        // SAFETY: nothing here runs Python code, and other threads wait: the list keeps its items.
        let items = unsafe {
            let items = ffi::PySequence_Fast_ITEMS(list.as_ptr());
            std::slice::from_raw_parts(
                if items.is_null() {
                    NonNull::dangling().as_ptr()
                } else {
                    items
                },
                list.len(),
            )
        };
        for (position, &item) in items.iter().enumerate() {
            if let Some(&next) = items.get(position + AHEAD) {
                prefetch_at(next);
            }
            // SAFETY: the item lives. The value is read of an `int`. This is CPython's fastest function for it.
            let number = unsafe {
                if ffi::PyLong_CheckExact(item) == 0 {
                    return;
                }
                ffi::PyLong_AsSize_t(item)
            };
            let Ok(id) = u32::try_from(number) else {
                // A number that is negative or too large has raised an error.
                drop(PyErr::take(list.py()));
                return;
            };
            ids.push(id);
        }
    });
}

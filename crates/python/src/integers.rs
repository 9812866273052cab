//! The `int` objects of ids, which the lists of ids share: to make an integer takes longer than to find its id.
//!
//! Where the layout of objects is known, the shared integers are in one array of the process. The id gives the address of
//! its integer, and the address gives the id. Elsewhere, each encoder has a table of integers.
//!
//! `unsafe`: the array is written and read through its address, and references are counted in place. The GIL is held, as
//! `py` shows.

#![allow(unsafe_code)]

use crate::layout::{Digit, Layout, Object};
use crate::objects;
use bpe_tokenizer_core::reserve;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Ids that an encoder returns before their integers are shared.
const SHARE_AFTER: usize = 16 << 10;
/// Smaller integers can be shared. The array takes at most 8 MiB.
const MAX_SHARED: usize = 1 << 18;

/// The place of an integer. It has as many bytes as Python gives an integer: two are in a cache line.
#[repr(C, align(32))]
struct Place(MaybeUninit<Digit>);

struct Places(UnsafeCell<[Place; MAX_SHARED]>);

// SAFETY: only threads that hold the GIL read and write it.
unsafe impl Sync for Places {}

/// The shared integers; the integer is the index. Pages without an integer take no memory. CPython also has an object for
/// each integer below 257. The array does not use these, so programs must compare ids with `==`.
static PLACES: Places = Places(UnsafeCell::new(
    [const { Place(MaybeUninit::uninit()) }; MAX_SHARED],
));
/// The number of places that have an integer: the first ones. Each keeps a reference, so that Python never frees one.
static SHARED: AtomicUsize = AtomicUsize::new(0);

/// The shared integers of the process. There are none if the layout of objects is not known.
#[derive(Clone, Copy)]
pub struct SharedIntegers<'py> {
    start: *mut Place,
    count: usize,
    /// The GIL is held as long as the value lives.
    pub py: Python<'py>,
}

impl<'py> SharedIntegers<'py> {
    pub fn of(py: Python<'py>) -> Self {
        Self {
            start: PLACES.0.get().cast(),
            count: SHARED.load(Ordering::Relaxed),
            py,
        }
    }

    /// Makes the integers below a number, if they are not there yet.
    fn make(_: Python<'_>, layout: Layout, count: usize) {
        let (places, count) = (PLACES.0.get().cast::<Place>(), count.min(MAX_SHARED));
        for number in SHARED.load(Ordering::Relaxed)..count {
            let integer = Place(MaybeUninit::new(layout.integer(number as u32)));
            // SAFETY: the number is below `MAX_SHARED`, and nobody reads the place before `SHARED` is stored below.
            unsafe { places.add(number).write(integer) };
        }
        SHARED.fetch_max(count, Ordering::Relaxed);
    }

    /// A new reference to an integer.
    #[inline(always)]
    pub fn get(self, number: usize) -> Option<*mut ffi::PyObject> {
        // SAFETY: the first `count` places have an integer, which lives as long as the process.
        (number < self.count).then(|| unsafe { add_reference(self.start.add(number).cast()) })
    }

    /// The number of an object that is a shared integer.
    #[inline(always)]
    pub fn number_of(self, object: *mut ffi::PyObject) -> Option<u32> {
        let number = (object as usize).wrapping_sub(self.start as usize) / size_of::<Place>();
        (number < self.count).then_some(number as u32)
    }
}

/// A reference to an object, in addition to those that exist.
///
/// # Safety
/// The object lives, its layout is known, and the GIL is held.
#[inline(always)]
pub unsafe fn add_reference(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise. This is what `Py_INCREF` of the stable ABI of 3.10 does.
    unsafe { (*object.cast::<Object>()).references += 1 };
    object
}

/// Decides when the integers of an encoder's ids are shared.
#[derive(Default)]
pub struct Integers {
    /// Ids returned so far.
    returned: AtomicUsize,
    /// The integers, if the layout of objects is not known.
    table: OnceLock<Box<[Py<PyInt>]>>,
}

impl Integers {
    /// Announces a result of so many ids. The integers of the vocabulary are shared once enough ids were returned.
    pub fn announce(&self, py: Python<'_>, ids: usize, vocab_size: usize) {
        let count = vocab_size.min(MAX_SHARED);
        if SHARED.load(Ordering::Relaxed) >= count || self.table.get().is_some() {
            return;
        }
        let returned = self.returned.fetch_add(ids, Ordering::Relaxed);
        if returned.saturating_add(ids) < SHARE_AFTER {
            return;
        }
        match Layout::of(py) {
            Some(layout) => SharedIntegers::make(py, layout, count),
            // Without memory, later calls try again.
            None => drop(table_of(py, count).map(|table| self.table.set(table))),
        }
    }

    /// The integer of an id, where the layout of objects is not known.
    pub fn integer<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyInt>> {
        match self.table.get().and_then(|table| table.get(id as usize)) {
            Some(integer) => Ok(integer.bind(py).clone()),
            None => objects::integer(py, id as usize),
        }
    }
}

fn table_of(py: Python<'_>, count: usize) -> Option<Box<[Py<PyInt>]>> {
    let mut table = reserve::with_capacity(count).ok()?;
    for number in 0..count {
        table.push(objects::integer(py, number).ok()?.unbind());
    }
    Some(table.into_boxed_slice())
}

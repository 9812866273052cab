//! Python objects that are made in numbers, or large: their creation fails with `MemoryError`, where PyO3's own
//! constructors panic. And arrays of NumPy that own what the core made.
//!
//! `unsafe`: calls of CPython's documented C interface, with living objects and the thread attached, as `py` shows. Each
//! function takes the reference that the interface returns, or its error.

#![allow(unsafe_code)]

use bpe_tokenizer_core::buffer_pool::BufferPool;
use bpe_tokenizer_core::memory::advise_huge_pages;
use numpy::ndarray::ArrayView1;
use numpy::{Element, PyArray1};
use pyo3::exceptions::PySystemError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyTuple};
use std::mem::{take, MaybeUninit};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};

pub fn bytes<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, content.len(), |bytes| {
        bytes.copy_from_slice(content);
        Ok(())
    })
}

/// A `bytes` of a length, which `write` fills. `write` returns how many bytes it wrote, from the beginning.
pub fn written_bytes<'py>(
    py: Python<'py>,
    length: usize,
    write: impl FnOnce(&mut [MaybeUninit<u8>]) -> PyResult<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: as the module's comment says. The new object is a `bytes` with this many bytes, and nobody else has it until
    // all are written.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), length as ffi::Py_ssize_t);
        let object = Bound::from_owned_ptr_or_err(py, object)?;
        if length > 0 {
            let start = ffi::PyBytes_AsString(object.as_ptr()).cast::<MaybeUninit<u8>>();
            let bytes = std::slice::from_raw_parts_mut(start, length);
            advise_huge_pages(bytes);
            if write(bytes)? != length {
                return Err(PySystemError::new_err("bytes were not written"));
            }
        }
        Ok(object.cast_into_unchecked())
    }
}

#[inline]
pub fn integer(py: Python<'_>, number: usize) -> PyResult<Bound<'_, PyInt>> {
    // SAFETY: as the module's comment says; the new object is an `int`.
    unsafe {
        let object = ffi::PyLong_FromSize_t(number);
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// A list of as many items as the iterator says that it has.
#[inline]
pub fn list<'py, T>(
    py: Python<'py>,
    items: impl ExactSizeIterator<Item = PyResult<Bound<'py, T>>>,
) -> PyResult<Bound<'py, PyList>> {
    let length = items.len();
    // SAFETY: as the module's comment says. The slots of a new list are empty, and each is filled once.
    unsafe {
        let list = ffi::PyList_New(length as ffi::Py_ssize_t);
        let list = Bound::from_owned_ptr_or_err(py, list)?.cast_into_unchecked::<PyList>();
        // Until its slots are full, no code that the garbage collector runs may find the list.
        hide(&list);
        if length > 0 {
            let slots = ffi::PySequence_Fast_ITEMS(list.as_ptr()).cast::<MaybeUninit<_>>();
            let slots = std::slice::from_raw_parts_mut(slots, length);
            advise_huge_pages(slots);
            let mut filled = 0;
            for (slot, item) in slots.iter_mut().zip(items) {
                slot.write(item?.into_ptr());
                filled += 1;
            }
            if filled < length {
                return Err(PySystemError::new_err("a list was not filled"));
            }
        }
        show(&list);
        Ok(list)
    }
}

/// Hides a new object from the garbage collector, which would visit it again and again while many others are made.
pub fn hide<T>(object: &Bound<'_, T>) {
    // SAFETY: as the module's comment says. A container may be untracked, and its deallocation expects that it may be.
    unsafe { ffi::PyObject_GC_UnTrack(object.as_ptr().cast()) };
}

/// Ends [`hide`].
pub fn show<T>(object: &Bound<'_, T>) {
    // SAFETY: as the module's comment says. `hide` untracked the object.
    unsafe { ffi::PyObject_GC_Track(object.as_ptr().cast()) };
}

/// A tuple of two integers, `bytes` or strings. The garbage collector does not visit it, as it is in no cycle.
#[inline]
pub fn tuple<'py, T>(
    py: Python<'py>,
    first: Bound<'py, T>,
    second: Bound<'py, T>,
) -> PyResult<Bound<'py, PyTuple>> {
    // SAFETY: as the module's comment says. `PyTuple_SET_ITEM` fills each slot of a new tuple once.
    unsafe {
        let pair = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(2))?;
        ffi::PyObject_GC_UnTrack(pair.as_ptr().cast());
        ffi::PyTuple_SET_ITEM(pair.as_ptr(), 0, first.into_ptr());
        ffi::PyTuple_SET_ITEM(pair.as_ptr(), 1, second.into_ptr());
        Ok(pair.cast_into_unchecked())
    }
}

/// Copying fewer bytes into an array is faster than making the array their owner.
pub const MIN_OWNED: usize = 16 << 10;

/// Loads NumPy, before the first use of its types: it takes three times as long to load as this package. rust-numpy would
/// load it too, but panics where a signal or a broken installation ends that.
pub fn load_numpy(py: Python<'_>) -> PyResult<()> {
    static IS_LOADED: AtomicBool = AtomicBool::new(false);
    if !IS_LOADED.load(Relaxed) {
        py.import("numpy")?;
        PyArray1::<u8>::from_slice(py, &[]); // finds NumPy's C interface
        IS_LOADED.store(true, Relaxed);
    }
    Ok(())
}

/// An array of a copy of the values.
pub fn array_from<'py, T: Element + Copy>(
    py: Python<'py>,
    values: &[T],
) -> PyResult<Bound<'py, PyArray1<T>>> {
    load_numpy(py)?;
    Ok(PyArray1::from_slice(py, values))
}

/// An array of the values.
pub fn array<T: Element + Copy>(
    py: Python<'_>,
    mut values: Vec<T>,
) -> PyResult<Bound<'_, PyArray1<T>>> {
    if size_of_val(values.as_slice()) < MIN_OWNED {
        return array_from(py, &values);
    }
    load_numpy(py)?;
    values.shrink_to_fit();
    Ok(PyArray1::from_vec(py, values))
}

/// Values whose memory returns to a pool.
struct Pooled<T> {
    values: Vec<T>,
    /// A pool that no longer exists takes nothing.
    pool: Weak<BufferPool<T>>,
}

impl<T> Drop for Pooled<T> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.put(take(&mut self.values));
        }
    }
}

/// Keeps the values of an array alive.
#[pyclass(frozen)]
pub struct Owner {
    _values: Box<dyn Send + Sync>,
}

/// An array of the values. If they are of a pool, their memory returns to it when the array ends.
pub fn pooled_array<'py, T: Element + Copy + Send + Sync + 'static>(
    py: Python<'py>,
    values: Vec<T>,
    pool: Option<&Arc<BufferPool<T>>>,
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let Some(pool) = pool else {
        return array(py, values);
    };
    load_numpy(py)?;
    let pool = Arc::downgrade(pool);
    let pooled = Box::new(Pooled { values, pool });
    // SAFETY: the values stay where they are until the owner ends, and nobody else has them. The owner ends with the array.
    unsafe {
        let view = ArrayView1::from_shape_ptr(pooled.values.len(), pooled.values.as_ptr());
        let owner = Bound::new(py, Owner { _values: pooled })?.into_any();
        Ok(PyArray1::borrow_from_array(&view, owner))
    }
}

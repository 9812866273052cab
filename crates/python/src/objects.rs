//! Python objects whose creation fails with `MemoryError`. PyO3's own constructors panic where Python has no memory.
//!
//! `unsafe`: calls of Python's and NumPy's C interfaces. Each function holds the GIL, as its `py` shows, passes pointers
//! to living values, and takes the reference that the interface returns, or its error.

#![allow(unsafe_code)]

use bpe_tokenizer_core::buffer_pool::BufferPool;
use bpe_tokenizer_core::memory::advise_huge_pages;
use numpy::npyffi::{get_type_object, npy_intp, NpyTypes, NPY_ARRAY_WRITEABLE, PY_ARRAY_API};
use numpy::{Element, PyArray1, PyArrayDescrMethods, PyArrayMethods};
use pyo3::exceptions::{PyMemoryError, PySystemError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyList, PyString};
use std::any::Any;
use std::ffi::{c_char, CStr, CString};
use std::mem::{take, MaybeUninit};
use std::sync::{Arc, Weak};

/// A `MemoryError`. Without memory for the message, it has none.
pub fn no_memory(py: Python<'_>, message: &str) -> PyErr {
    let message = CString::new(message).unwrap_or_default();
    let class = py.get_type::<PyMemoryError>();
    // SAFETY: as the module's comment says.
    unsafe { ffi::PyErr_SetString(class.as_ptr(), message.as_ptr()) };
    PyErr::fetch(py)
}

pub fn bytes<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let (start, length) = (content.as_ptr().cast::<c_char>(), content.len());
    // SAFETY: as the module's comment says; the new object is a `bytes`.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(start, length as ffi::Py_ssize_t);
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// A `bytes` of a length, which `write` fills. `write` returns how many bytes it wrote, from the beginning.
pub fn written_bytes<'py>(
    py: Python<'py>,
    length: usize,
    write: impl FnOnce(&mut [MaybeUninit<u8>]) -> PyResult<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: as the module's comment says; the new object is a `bytes` with this many bytes, and nobody else has it
    // until all are written.
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

/// A copy of a `bytearray`.
pub fn bytes_of<'py>(array: &Bound<'py, PyByteArray>) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: as the module's comment says; the new object is a `bytes`.
    unsafe {
        let object = ffi::PyBytes_FromObject(array.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(array.py(), object)?.cast_into_unchecked())
    }
}

pub fn string<'py>(py: Python<'py>, content: &str) -> PyResult<Bound<'py, PyString>> {
    PyString::from_bytes(py, content.as_bytes())
}

pub fn integer(py: Python<'_>, number: usize) -> PyResult<Bound<'_, PyInt>> {
    // SAFETY: as the module's comment says; the new object is an `int`.
    unsafe {
        let object = ffi::PyLong_FromSize_t(number);
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// Items of a list between two checks for signals.
const ITEMS_PER_CHECK: usize = 1 << 10;

/// A list of as many items as the iterator says that it has. Checks for signals (Ctrl-C) on the way.
pub fn list<'py, T>(
    py: Python<'py>,
    items: impl ExactSizeIterator<Item = PyResult<Bound<'py, T>>>,
) -> PyResult<Bound<'py, PyList>> {
    // SAFETY: as the module's comment says. `PyList_SetItem` checks the position and takes the reference.
    unsafe {
        let object = ffi::PyList_New(items.len() as ffi::Py_ssize_t);
        let list = Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyList>();
        hide(&list);
        for (position, item) in (0..).zip(items) {
            if position as usize % ITEMS_PER_CHECK == ITEMS_PER_CHECK - 1 {
                py.check_signals()?;
            }
            if ffi::PyList_SetItem(list.as_ptr(), position, item?.into_ptr()) < 0 {
                return Err(PyErr::fetch(py));
            }
        }
        show(&list);
        Ok(list)
    }
}

/// Hides a new list from the garbage collector, and so from Python code that looks for objects, such as a handler of a
/// signal: the list has empty slots.
pub fn hide<T>(list: &Bound<'_, T>) {
    // SAFETY: as the module's comment says. A list may be untracked, and its deallocation expects that it may be.
    unsafe { ffi::PyObject_GC_UnTrack(list.as_ptr().cast()) };
}

/// Ends [`hide`], for a list without empty slots.
pub fn show<T>(list: &Bound<'_, T>) {
    // SAFETY: as the module's comment says. `hide` untracked the list.
    unsafe { ffi::PyObject_GC_Track(list.as_ptr().cast()) };
}

/// A list of tuples of two integers. Where a pair begins with the integer that ends the previous one, as adjacent spans
/// do, they share the object.
pub fn pairs<'py>(py: Python<'py>, pairs: &[(usize, usize)]) -> PyResult<Bound<'py, PyList>> {
    let mut last = (usize::MAX, integer(py, 0)?);
    let items = pairs.iter().map(|&(first, second)| {
        let first = match &last {
            (number, object) if *number == first => object.clone(),
            _ => integer(py, first)?,
        };
        last = (second, integer(py, second)?);
        tuple(py, first, last.1.clone())
    });
    list(py, items)
}

/// A tuple of two `bytes`.
pub fn pair_of_bytes<'py>(
    py: Python<'py>,
    first: &[u8],
    second: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    tuple(py, bytes(py, first)?, bytes(py, second)?)
}

/// A tuple of two strings.
pub fn pair_of_strings<'py>(
    py: Python<'py>,
    first: &str,
    second: &str,
) -> PyResult<Bound<'py, PyAny>> {
    tuple(py, string(py, first)?, string(py, second)?)
}

/// A tuple of two integers, two `bytes` or two strings. The garbage collector does not visit it: it is in no cycle. Visits of
/// millions take seconds, which no signal ends.
pub fn tuple<'py, T>(
    py: Python<'py>,
    first: Bound<'py, T>,
    second: Bound<'py, T>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: as the module's comment says. The collector itself untracks such tuples. `PyTuple_SetItem` takes the
    // reference; it fails for no position of a new tuple.
    unsafe {
        let pair = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(2))?;
        ffi::PyObject_GC_UnTrack(pair.as_ptr().cast());
        ffi::PyTuple_SetItem(pair.as_ptr(), 0, first.into_ptr());
        ffi::PyTuple_SetItem(pair.as_ptr(), 1, second.into_ptr());
        Ok(pair)
    }
}

/// Keeps the values of an array alive.
#[pyclass(frozen)]
struct Owner {
    _values: Box<dyn Any + Send + Sync>,
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

/// Copying fewer bytes into an array is faster than making the array their owner.
pub const MIN_OWNED: usize = 16 << 10;

/// An array of the values.
pub fn array<T: Element + Copy + 'static>(
    py: Python<'_>,
    mut values: Vec<T>,
) -> PyResult<Bound<'_, PyArray1<T>>> {
    if size_of_val(values.as_slice()) < MIN_OWNED {
        return array_of(py, &values);
    }
    values.shrink_to_fit();
    let (start, length) = (values.as_mut_ptr(), values.len());
    owned_array(py, start, length, Box::new(values))
}

/// An array of the values. If they are of a pool, their memory returns to it when the array ends.
pub fn pooled_array<'py, T: Element + Copy + Send + Sync + 'static>(
    py: Python<'py>,
    mut values: Vec<T>,
    pool: Option<&Arc<BufferPool<T>>>,
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let Some(pool) = pool else {
        return array(py, values);
    };
    let (start, length) = (values.as_mut_ptr(), values.len());
    let pool = Arc::downgrade(pool);
    owned_array(py, start, length, Box::new(Pooled { values, pool }))
}

/// An array over the values at an address, which stay where they are as long as `_values` lives. Nobody else reads or
/// writes them.
fn owned_array<T: Element>(
    py: Python<'_>,
    start: *mut T,
    length: usize,
    _values: Box<dyn Any + Send + Sync>,
) -> PyResult<Bound<'_, PyArray1<T>>> {
    let owner = Bound::new(py, Owner { _values })?;
    let array = new_array(py, length, start)?;
    // SAFETY: as the module's comment says. The array takes the reference to the owner of its values.
    let set =
        unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), owner.into_ptr()) };
    if set < 0 {
        return Err(PyErr::fetch(py));
    }
    Ok(array)
}

/// An array of copies of the values.
pub fn array_of<'py, T: Element + Copy>(
    py: Python<'py>,
    values: &[T],
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let array = new_array::<T>(py, values.len(), std::ptr::null_mut())?;
    // SAFETY: the new array has room for the values, and nobody else has it yet.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), array.data(), values.len()) };
    Ok(array)
}

/// An array over the values at an address; with a null address, NumPy allocates its memory.
fn new_array<T: Element>(
    py: Python<'_>,
    length: usize,
    values: *mut T,
) -> PyResult<Bound<'_, PyArray1<T>>> {
    let mut length = length as npy_intp;
    // SAFETY: as the module's comment says; the new object is an array of this type.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            T::get_dtype(py).into_dtype_ptr(),
            1,
            &raw mut length,
            std::ptr::null_mut(),
            values.cast(),
            if values.is_null() {
                0
            } else {
                NPY_ARRAY_WRITEABLE
            },
            std::ptr::null_mut(),
        );
        Ok(Bound::from_owned_ptr_or_err(py, array)?.cast_into_unchecked())
    }
}

/// An attribute of a module.
pub fn attribute<'py>(py: Python<'py>, module: &CStr, name: &CStr) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: as the module's comment says.
    unsafe {
        let object = ffi::PyImport_ImportModule(module.as_ptr());
        let module = Bound::from_owned_ptr_or_err(py, object)?;
        let object = ffi::PyObject_GetAttrString(module.as_ptr(), name.as_ptr());
        Bound::from_owned_ptr_or_err(py, object)
    }
}

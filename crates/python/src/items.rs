//! The items of a Python list, read and written where they are.
//!
//! Through the stable ABI an item costs a call or two, which is more than finding its id did. The releases of
//! CPython named here keep lists in one and the same way; elsewhere the functions of the stable ABI are used.

#![allow(unsafe_code)]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyList};

/// The versions in which this was tried, where lists are as below (not in builds that trace references:
/// their size differs).
const KNOWN: std::ops::RangeInclusive<(u8, u8)> = (3, 10)..=(3, 13);

/// `PyObject`.
#[repr(C)]
struct Object {
    references: isize,
    class: *mut ffi::PyTypeObject,
}

/// `PyListObject`.
#[repr(C)]
struct List {
    object: Object,
    length: isize,
    items: *mut *mut ffi::PyObject,
    allocated: isize,
}

/// Whether this interpreter's lists are as above.
fn are_known(py: Python<'_>) -> bool {
    static ARE_KNOWN: PyOnceLock<bool> = PyOnceLock::new();
    *ARE_KNOWN.get_or_init(py, || {
        let version = py.version_info();
        let size = py.get_type::<PyList>().getattr("__basicsize__");
        KNOWN.contains(&(version.major, version.minor))
            && size.is_ok_and(|size| {
                size.extract()
                    .is_ok_and(|size: usize| size == size_of::<List>())
            })
    })
}

/// A list of ids, of which those below `kept.len()` share the integers that are kept.
pub fn list_of<'py>(
    py: Python<'py>,
    ids: &[u32],
    kept: &[Py<PyInt>],
) -> PyResult<Bound<'py, PyList>> {
    if !are_known(py) {
        return PyList::new(
            py,
            ids.iter().map(|&id| match kept.get(id as usize) {
                Some(integer) => integer.bind(py).clone(),
                None => PyInt::new(py, id),
            }),
        );
    }
    // SAFETY: a new list of that length has room for so many items, all null; nothing else knows it yet, and
    // each is given a reference of its own. A reference counts one up, as every release up to now lets
    // extensions do that were built for the stable ABI of 3.10.
    unsafe {
        let list = ffi::PyList_New(ids.len() as ffi::Py_ssize_t);
        let list = Bound::from_owned_ptr_or_err(py, list)?.cast_into_unchecked::<PyList>();
        let items = (*list.as_ptr().cast::<List>()).items;
        for (position, &id) in ids.iter().enumerate() {
            let integer = match kept.get(id as usize) {
                Some(integer) => {
                    let integer = integer.as_ptr();
                    (*integer.cast::<Object>()).references += 1;
                    integer
                }
                None => PyInt::new(py, id).into_ptr(),
            };
            items.add(position).write(integer);
        }
        Ok(list)
    }
}

/// Appends the ids at the beginning of a list, up to an item that is no `int` itself, or can be no id.
pub fn extend_from_ints(ids: &mut Vec<u32>, list: &Bound<'_, PyList>) {
    if !are_known(list.py()) {
        return;
    }
    // SAFETY: the items are not changed while we read them, since an `int` itself (unlike its subclasses) is
    // read without running any code that somebody wrote.
    unsafe {
        let integer_class = std::ptr::addr_of_mut!(ffi::PyLong_Type);
        let items = (*list.as_ptr().cast::<List>()).items;
        for position in 0..list.len() {
            let item = *items.add(position);
            if (*item.cast::<Object>()).class != integer_class {
                return;
            }
            let Ok(id) = u32::try_from(ffi::PyLong_AsLongLong(item)) else {
                ffi::PyErr_Clear();
                return;
            };
            ids.push(id);
        }
    }
}

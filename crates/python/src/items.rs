//! Reads and writes the items of a Python list directly in its memory.
//!
//! Through the stable ABI, an item costs a call or two: more than finding its id. Known releases of CPython share
//! one list layout, which this file uses. Other releases use the functions of the stable ABI.

#![allow(unsafe_code)]

use crate::objects;
use bpe_tokenizer_core::memory::advise_huge_pages;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyList};
use std::mem::{offset_of, MaybeUninit};
use std::ops::Range;

/// The tested versions. Builds that trace references have larger objects; `has_known_layout` excludes them by size.
const TESTED_VERSIONS: std::ops::RangeInclusive<(u8, u8)> = (3, 10)..=(3, 13);

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

/// Whether this interpreter's lists have the layout of [`List`].
fn has_known_layout(py: Python<'_>) -> bool {
    static HAS_KNOWN_LAYOUT: PyOnceLock<bool> = PyOnceLock::new();
    *HAS_KNOWN_LAYOUT.get_or_init(py, || {
        let version = py.version_info();
        let size = py.get_type::<PyList>().getattr("__basicsize__");
        TESTED_VERSIONS.contains(&(version.major, version.minor))
            && size.is_ok_and(|size| {
                size.extract()
                    .is_ok_and(|size: usize| size == size_of::<List>())
            })
    })
}

/// An `int` of one digit, from 1 to 2^30 - 1.
#[repr(C)]
struct Digit {
    object: Object,
    /// The number of digits, with the sign in a form of the release.
    tag: usize,
    digit: u32,
}

/// The tag of an `int` of one digit, if this interpreter's integers have the layout of [`Digit`].
fn tag_of_digit(py: Python<'_>) -> Option<usize> {
    static TAG: PyOnceLock<Option<usize>> = PyOnceLock::new();
    *TAG.get_or_init(py, || {
        let info = py.import("sys").and_then(|sys| sys.getattr("int_info"));
        let bits = info.and_then(|info| info.getattr("bits_per_digit")?.extract::<usize>());
        let size = py.get_type::<PyInt>().getattr("__basicsize__");
        let size = size.and_then(|size| size.extract::<usize>());
        let is_known = has_known_layout(py)
            && bits.is_ok_and(|bits| bits == 30)
            && size.is_ok_and(|size| size == offset_of!(Digit, digit));
        // Since 3.12, the lowest three bits are the sign.
        let minor = py.version_info().minor;
        is_known.then_some(if minor < 12 { 1 } else { 1 << 3 })
    })
}

/// Ids between two checks for signals.
const IDS_PER_CHECK: usize = 1 << 18;

/// A list of ids. Checks for signals (Ctrl-C) on the way. Ids below `kept.len()` share the kept integers.
pub fn list_of<'py>(
    py: Python<'py>,
    ids: &[u32],
    kept: &[Py<PyInt>],
) -> PyResult<Bound<'py, PyList>> {
    if !has_known_layout(py) {
        return objects::list(py, ids.iter().map(|&id| shared_integer(py, id, kept)));
    }
    let list = NewList::new(py, ids.len())?;
    for (number, ids) in ids.chunks(IDS_PER_CHECK).enumerate() {
        if number > 0 {
            py.check_signals()?;
        }
        list.fill(number * IDS_PER_CHECK, ids, kept)?;
    }
    Ok(list.finish())
}

/// As [`list_of`]. Gives back the memory of the ids on the way, so that the list takes its place.
pub fn list_of_all<'py>(
    py: Python<'py>,
    mut ids: Vec<u32>,
    kept: &[Py<PyInt>],
) -> PyResult<Bound<'py, PyList>> {
    if !has_known_layout(py) || ids.len() <= 4 * IDS_PER_CHECK {
        return list_of(py, &ids, kept);
    }
    let list = NewList::new(py, ids.len())?;
    while !ids.is_empty() {
        let start = ids.len().saturating_sub(IDS_PER_CHECK);
        list.fill(start, &ids[start..], kept)?;
        ids.truncate(start);
        ids.shrink_to_fit();
        py.check_signals()?;
    }
    Ok(list.finish())
}

fn shared_integer<'py>(
    py: Python<'py>,
    id: u32,
    kept: &[Py<PyInt>],
) -> PyResult<Bound<'py, PyInt>> {
    match kept.get(id as usize) {
        Some(integer) => Ok(integer.bind(py).clone()),
        None => objects::integer(py, id as usize),
    }
}

/// A list of a known layout with empty slots. No other code has it: it is hidden from a handler of a signal, which may
/// run.
struct NewList<'py>(Bound<'py, PyList>);

impl<'py> NewList<'py> {
    fn new(py: Python<'py>, length: usize) -> PyResult<Self> {
        // SAFETY: `from_owned_ptr_or_err` checks that the new list exists. Its items are `length` null slots, and the
        // callers checked the layout of `List`.
        unsafe {
            let list = ffi::PyList_New(length as ffi::Py_ssize_t);
            let list = Bound::from_owned_ptr_or_err(py, list)?.cast_into_unchecked::<PyList>();
            objects::hide(&list);
            if length > 0 {
                let items = (*list.as_ptr().cast::<List>()).items;
                let items = items.cast::<MaybeUninit<*mut ffi::PyObject>>();
                advise_huge_pages(std::slice::from_raw_parts_mut(items, length));
            }
            Ok(Self(list))
        }
    }

    /// Fills the slots from a position on. The callers fill each slot once.
    fn fill(&self, position: usize, ids: &[u32], kept: &[Py<PyInt>]) -> PyResult<()> {
        let py = self.0.py();
        // SAFETY: as in `new`; the slots are inside the list, which has its length. Each gets an owned reference:
        // `into_ptr` gives one, and the increment of a kept integer's count makes one, which is what `Py_INCREF` of the
        // stable ABI of 3.10 does. The GIL is held, as `py` shows.
        unsafe {
            let list = self.0.as_ptr().cast::<List>();
            debug_assert!(position + ids.len() <= (*list).length as usize);
            let mut items = (*list).items.add(position);
            for &id in ids {
                let integer = match kept.get(id as usize) {
                    Some(integer) => {
                        let integer = integer.as_ptr();
                        (*integer.cast::<Object>()).references += 1;
                        integer
                    }
                    None => objects::integer(py, id as usize)?.into_ptr(),
                };
                items.write(integer);
                items = items.add(1);
            }
        }
        Ok(())
    }

    /// The list, whose slots are full.
    fn finish(self) -> Bound<'py, PyList> {
        objects::show(&self.0);
        self.0
    }
}

/// Appends the ids of a list, up to the first item that is not exactly an `int` or does not fit an id. Checks for
/// signals (Ctrl-C) on the way. `ids` has room for those of the list.
pub fn extend_from_ints(ids: &mut Vec<u32>, list: &Bound<'_, PyList>) -> PyResult<()> {
    if !has_known_layout(list.py()) {
        return Ok(());
    }
    let (wanted, tag) = (list.len(), tag_of_digit(list.py()));
    while ids.len() < wanted {
        let position = ids.len();
        let end = wanted.min(position + IDS_PER_CHECK);
        extend_from_range(ids, list, position..end, tag);
        if ids.len() < end {
            break;
        }
        if end < wanted {
            list.py().check_signals()?;
        }
    }
    Ok(())
}

/// As [`extend_from_ints`], for a range of items. A list that became shorter ends earlier.
fn extend_from_range(
    ids: &mut Vec<u32>,
    list: &Bound<'_, PyList>,
    range: Range<usize>,
    tag: Option<usize>,
) {
    // SAFETY: `has_known_layout` checked the layout of `List`, and `position` stays below the list's length. The
    // list cannot change during the loop: the GIL is held, as `list` shows, and converting an exact `int`, which the
    // comparison with `integer_class` checks, runs no Python code. `tag_of_digit` checked the layout of `Digit`, and an
    // `int` with this tag has a digit.
    unsafe {
        let integer_class = std::ptr::addr_of_mut!(ffi::PyLong_Type);
        let items = (*list.as_ptr().cast::<List>()).items;
        for position in range.start..range.end.min(list.len()) {
            let item = *items.add(position);
            if (*item.cast::<Object>()).class != integer_class {
                return;
            }
            let integer = item.cast::<Digit>();
            if tag == Some((*integer).tag) {
                ids.push((*integer).digit);
                continue;
            }
            let Ok(id) = u32::try_from(ffi::PyLong_AsLongLong(item)) else {
                ffi::PyErr_Clear();
                return;
            };
            ids.push(id);
        }
    }
}

//! Reads and writes the items of a Python list directly in its memory, and makes tuples and integers in place.
//!
//! Through the stable ABI, an item costs a call or two: more than finding its id. Known releases of CPython share
//! one layout of lists, tuples and integers, which this file uses. Other releases use the functions of the stable ABI.

#![allow(unsafe_code)]

use crate::objects;
use bpe_tokenizer_core::memory::advise_huge_pages;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyList, PyTuple};
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

/// CPython has one object for each smaller integer, which `objects::integer` returns.
const MIN_DIGIT: usize = 257;
/// The greatest integer of one digit.
const MAX_DIGIT: usize = (1 << 30) - 1;

/// `PyTupleObject` of two items, after the zeros with which `PyGC_Head` says that the garbage collector does not visit
/// the object.
#[repr(C)]
struct Pair {
    collector: [usize; 2],
    object: Object,
    length: isize,
    items: [*mut ffi::PyObject; 2],
}

/// Whether this interpreter's tuples have the layout of [`Pair`].
fn has_known_pairs(py: Python<'_>) -> bool {
    static HAS_KNOWN_PAIRS: PyOnceLock<bool> = PyOnceLock::new();
    *HAS_KNOWN_PAIRS.get_or_init(py, || {
        let is = |name, expected: usize| {
            let size = py.get_type::<PyTuple>().getattr(name);
            size.is_ok_and(|size| size.extract().is_ok_and(|size: usize| size == expected))
        };
        has_known_layout(py)
            && is(
                "__basicsize__",
                offset_of!(Pair, items) - offset_of!(Pair, object),
            )
            && is("__itemsize__", size_of::<*mut ffi::PyObject>())
    })
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
/// Tuples between two checks for signals.
const PAIRS_PER_CHECK: usize = 1 << 16;

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
                    Some(integer) => increment(integer.as_ptr()),
                    None => objects::integer(py, id as usize)?.into_ptr(),
                };
                items.write(integer);
                items = items.add(1);
            }
        }
        Ok(())
    }

    /// Fills the slots from a position on with tuples. The callers fill each slot once, from the first to the last, and
    /// pass the same `last`: the last integer, to which a pair in the list has a reference.
    fn fill_pairs(
        &self,
        position: usize,
        pairs: &[(usize, usize)],
        integers: &NewIntegers<'_, '_>,
        last: &mut (usize, *mut ffi::PyObject),
    ) -> PyResult<()> {
        let py = self.0.py();
        // SAFETY: as in `fill`. `has_known_pairs` checked the layout of `Pair`. Releases with this layout allocate a tuple
        // and what is before it with `PyObject_Malloc`, and free them so. Each pair owns a reference to each of its items;
        // the references of a pair without memory are given back.
        unsafe {
            let list = self.0.as_ptr().cast::<List>();
            debug_assert!(position + pairs.len() <= (*list).length as usize);
            let mut items = (*list).items.add(position);
            for &(start, end) in pairs {
                let first = if start == last.0 {
                    increment(last.1)
                } else {
                    integers.get(start)?
                };
                let second = integers.get(end).inspect_err(|_| ffi::Py_DECREF(first))?;
                let pair = ffi::PyObject_Malloc(size_of::<Pair>()).cast::<Pair>();
                if pair.is_null() {
                    ffi::Py_DECREF(first);
                    ffi::Py_DECREF(second);
                    return Err(objects::no_memory(py, "no memory for a tuple"));
                }
                pair.write(Pair {
                    collector: [0; 2],
                    object: Object {
                        references: 1,
                        class: &raw mut ffi::PyTuple_Type,
                    },
                    length: 2,
                    items: [first, second],
                });
                items.write((&raw mut (*pair).object).cast());
                items = items.add(1);
                *last = (end, second);
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

/// A reference to an object, in addition to those that exist.
///
/// # Safety
/// The object lives, has the layout of [`Object`], and the GIL is held.
#[inline(always)]
unsafe fn increment(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise. This is what `Py_INCREF` of the stable ABI of 3.10 does.
    unsafe { (*object.cast::<Object>()).references += 1 };
    object
}

/// Integers that are kept, and others that are made.
struct NewIntegers<'py, 'a> {
    kept: &'a [Py<PyInt>],
    /// The tag of an `int` of one digit, if it may be made in place.
    tag: Option<usize>,
    py: Python<'py>,
}

impl<'py> NewIntegers<'py, '_> {
    /// A reference to an integer.
    #[inline(always)]
    fn get(&self, number: usize) -> PyResult<*mut ffi::PyObject> {
        if let Some(integer) = self.kept.get(number) {
            // SAFETY: the kept integers live, and `py` shows that the GIL is held.
            return Ok(unsafe { increment(integer.as_ptr()) });
        }
        match self.tag {
            Some(tag) if (MIN_DIGIT..=MAX_DIGIT).contains(&number) => {
                self.digit(number as u32, tag)
            }
            _ => Ok(objects::integer(self.py, number)?.into_ptr()),
        }
    }

    fn digit(&self, digit: u32, tag: usize) -> PyResult<*mut ffi::PyObject> {
        // SAFETY: `tag_of_digit` checked the layout of `Digit`. Releases with this layout allocate an `int` with
        // `PyObject_Malloc`, and free it so.
        unsafe {
            let integer = ffi::PyObject_Malloc(size_of::<Digit>()).cast::<Digit>();
            if integer.is_null() {
                return Err(objects::no_memory(self.py, "no memory for an integer"));
            }
            integer.write(Digit {
                object: Object {
                    references: 1,
                    class: &raw mut ffi::PyLong_Type,
                },
                tag,
                digit,
            });
            Ok(integer.cast())
        }
    }
}

/// A list of tuples of two integers. Where a pair begins with the integer that ends the previous one, as adjacent spans
/// do, they share the object. Checks for signals (Ctrl-C) on the way. Integers below `kept.len()` are the kept ones.
pub fn list_of_pairs<'py>(
    py: Python<'py>,
    pairs: &[(usize, usize)],
    kept: &[Py<PyInt>],
) -> PyResult<Bound<'py, PyList>> {
    if !has_known_pairs(py) {
        return objects::pairs(py, pairs);
    }
    let integers = NewIntegers {
        kept,
        tag: tag_of_digit(py),
        py,
    };
    let list = NewList::new(py, pairs.len())?;
    let mut last = (usize::MAX, std::ptr::null_mut());
    for (number, pairs) in pairs.chunks(PAIRS_PER_CHECK).enumerate() {
        if number > 0 {
            py.check_signals()?;
        }
        list.fill_pairs(number * PAIRS_PER_CHECK, pairs, &integers, &mut last)?;
    }
    Ok(list.finish())
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

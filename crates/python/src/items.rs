//! Reads and writes the items of a Python list directly in its memory, and makes tuples and integers in place, where the
//! layout of objects is known.

#![allow(unsafe_code)]

use crate::integers::{add_reference, Integers, SharedIntegers};
use crate::layout::{Digit, Layout, List, Object, Pair, MAX_DIGIT};
use crate::objects;
use bpe_tokenizer_core::memory::advise_huge_pages;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::mem::MaybeUninit;
use std::ops::Range;

/// CPython has one object for each smaller integer, which `objects::integer` returns.
const MIN_DIGIT: usize = 257;

/// Ids between two checks for signals.
const IDS_PER_CHECK: usize = 1 << 18;
/// Tuples between two checks for signals.
const PAIRS_PER_CHECK: usize = 1 << 16;

/// A list of ids. Checks for signals (Ctrl-C) on the way.
pub fn list_of<'py>(
    py: Python<'py>,
    ids: &[u32],
    integers: &Integers,
) -> PyResult<Bound<'py, PyList>> {
    if Layout::of(py).is_none() {
        return objects::list(py, ids.iter().map(|&id| integers.integer(py, id)));
    }
    let list = NewList::new(py, ids.len())?;
    for (number, ids) in ids.chunks(IDS_PER_CHECK).enumerate() {
        if number > 0 {
            py.check_signals()?;
        }
        list.fill(number * IDS_PER_CHECK, ids)?;
    }
    Ok(list.finish())
}

/// As [`list_of`]. Gives back the memory of the ids on the way, so that the list takes its place.
pub fn list_of_all<'py>(
    py: Python<'py>,
    mut ids: Vec<u32>,
    integers: &Integers,
) -> PyResult<Bound<'py, PyList>> {
    if Layout::of(py).is_none() || ids.len() <= 4 * IDS_PER_CHECK {
        return list_of(py, &ids, integers);
    }
    let list = NewList::new(py, ids.len())?;
    while !ids.is_empty() {
        let start = ids.len().saturating_sub(IDS_PER_CHECK);
        list.fill(start, &ids[start..])?;
        ids.truncate(start);
        ids.shrink_to_fit();
        py.check_signals()?;
    }
    Ok(list.finish())
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
    fn fill(&self, position: usize, ids: &[u32]) -> PyResult<()> {
        let py = self.0.py();
        let shared = SharedIntegers::of(py);
        // SAFETY: as in `new`. The slots are inside the list, as its length shows. Each slot gets one new reference. The GIL
        // is held, as `py` shows.
        unsafe {
            let list = self.0.as_ptr().cast::<List>();
            debug_assert!(position + ids.len() <= (*list).length as usize);
            let mut items = (*list).items.add(position);
            for &id in ids {
                let integer = match shared.get(id as usize) {
                    Some(integer) => integer,
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
        integers: &NewIntegers<'_>,
        last: &mut (usize, *mut ffi::PyObject),
    ) -> PyResult<()> {
        let py = self.0.py();
        // SAFETY: as in `fill`. The callers checked the layout. Releases with this layout allocate a tuple and its header
        // with `PyObject_Malloc`, and free them so. Each pair owns a reference to each of its items. Without memory for a
        // pair, its references are released.
        unsafe {
            let list = self.0.as_ptr().cast::<List>();
            debug_assert!(position + pairs.len() <= (*list).length as usize);
            let mut items = (*list).items.add(position);
            for &(start, end) in pairs {
                let first = if start == last.0 {
                    add_reference(last.1)
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

/// Integers that are shared, and others that are made.
struct NewIntegers<'py> {
    shared: SharedIntegers<'py>,
    layout: Layout,
}

impl NewIntegers<'_> {
    /// A reference to an integer.
    #[inline(always)]
    fn get(&self, number: usize) -> PyResult<*mut ffi::PyObject> {
        if let Some(integer) = self.shared.get(number) {
            return Ok(integer);
        }
        if !(MIN_DIGIT..=MAX_DIGIT).contains(&number) {
            return Ok(objects::integer(self.shared.py, number)?.into_ptr());
        }
        // SAFETY: releases with a known layout allocate an `int` with `PyObject_Malloc`, and free it so.
        unsafe {
            let integer = ffi::PyObject_Malloc(size_of::<Digit>()).cast::<Digit>();
            if integer.is_null() {
                return Err(objects::no_memory(
                    self.shared.py,
                    "no memory for an integer",
                ));
            }
            integer.write(self.layout.integer(number as u32));
            Ok(integer.cast())
        }
    }
}

/// A list of tuples of two integers. Where a pair begins with the integer that ends the previous one, as adjacent spans
/// do, they share the object. Checks for signals (Ctrl-C) on the way.
pub fn list_of_pairs<'py>(
    py: Python<'py>,
    pairs: &[(usize, usize)],
) -> PyResult<Bound<'py, PyList>> {
    let Some(layout) = Layout::of(py) else {
        return objects::pairs(py, pairs);
    };
    let integers = NewIntegers {
        shared: SharedIntegers::of(py),
        layout,
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
    let Some(layout) = Layout::of(list.py()) else {
        return Ok(());
    };
    let wanted = list.len();
    while ids.len() < wanted {
        let position = ids.len();
        let end = wanted.min(position + IDS_PER_CHECK);
        extend_from_range(ids, list, position..end, layout);
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
    layout: Layout,
) {
    let shared = SharedIntegers::of(list.py());
    // SAFETY: the layout is known, and `position` stays below the list's length. The list cannot change during the loop:
    // the GIL is held, as `list` shows, and converting an exact `int`, which the comparison with `integer_class` checks,
    // runs no Python code. An `int` with the layout's tag has one digit.
    unsafe {
        let integer_class = std::ptr::addr_of_mut!(ffi::PyLong_Type);
        let items = (*list.as_ptr().cast::<List>()).items;
        for position in range.start..range.end.min(list.len()) {
            let item = *items.add(position);
            if let Some(id) = shared.number_of(item) {
                ids.push(id);
                continue;
            }
            if (*item.cast::<Object>()).class != integer_class {
                return;
            }
            let integer = item.cast::<Digit>();
            if (*integer).tag == layout.tag {
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

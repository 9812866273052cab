//! Ids to and from Python.

use crate::call::{exception, shown, OrRaise as _};
use crate::constructors::load_numpy;
use crate::id_lists::read_ids;
use crate::sequence::items_by;
use bpe_tokenizer_core::model::NONE;
use bpe_tokenizer_core::reserve;
use numpy::{Element, PyArray1, PyArrayMethods, PyUntypedArray};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};
use std::fmt::Display;

/// A sequence of ids: a list, a tuple, a NumPy array, a tensor.
pub struct PyIds(pub Vec<u32>);

impl<'py> FromPyObject<'_, 'py> for PyIds {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(list) = object.cast_exact::<PyList>() {
            return from_list(&list);
        }
        if let Ok(tuple) = object.cast_exact::<PyTuple>() {
            return from_list(&tuple.to_list());
        }
        load_numpy(object.py())?;
        // Exact arrays only: a subclass may interpret its memory differently, as masked arrays do.
        if object.cast_exact::<PyUntypedArray>().is_ok() {
            let ids = from_array::<u32>(object)
                .or_else(|| from_array::<i64>(object))
                .or_else(|| from_array::<i32>(object))
                .or_else(|| from_array::<u16>(object))
                .or_else(|| from_array::<u64>(object));
            if let Some(ids) = ids {
                return ids;
            }
        }
        match object.getattr_opt("tolist")? {
            Some(to_list) => from_iterable(&to_list.call0()?, Vec::new()),
            None => from_iterable(&object, Vec::new()),
        }
    }
}

/// Rows of ids. An error of the package names the row.
pub fn rows(object: &Bound<'_, PyAny>) -> PyResult<Vec<PyIds>> {
    let in_row = |row, error| in_row(object.py(), row, error);
    items_by(object, |row, ids| {
        ids.extract().map_err(|error| in_row(row, error))
    })
}

/// The error of a row, with its number.
fn in_row(py: Python<'_>, row: usize, error: PyErr) -> PyErr {
    let errors = py.import("bpe_tokenizer.errors");
    let base = errors.and_then(|errors| errors.getattr("TokenizerError"));
    if !base.is_ok_and(|base| error.is_instance(py, &base)) {
        return error;
    }
    let message = format!("row {row}: {}", error.value(py));
    match error.get_type(py).call1((message,)) {
        Ok(named) => PyErr::from_value(named),
        Err(_) => error,
    }
}

fn from_list(list: &Bound<'_, PyList>) -> PyResult<PyIds> {
    let mut ids = reserve::with_capacity(list.len()).or_raise(list.py())?;
    read_ids(&mut ids, list);
    if ids.len() == list.len() {
        return Ok(PyIds(ids));
    }
    from_iterable(list, ids)
}

/// Items of an iterable between two checks for signals.
const ITEMS_PER_CHECK: usize = 1 << 14;

/// Appends the ids of an iterable to `ids`, which has those of its first items. Memory grows with the ids: the length that the
/// object returns may be wrong.
fn from_iterable(object: &Bound<'_, PyAny>, mut ids: Vec<u32>) -> PyResult<PyIds> {
    for (position, item) in object.try_iter()?.enumerate().skip(ids.len()) {
        let item = item?;
        if position % ITEMS_PER_CHECK == ITEMS_PER_CHECK - 1 {
            object.py().check_signals()?;
        }
        let id = item
            .extract()
            .map_err(|error| not_an_id(&item, position, error))?;
        reserve::push(&mut ids, id).or_raise(object.py())?;
    }
    Ok(PyIds(ids))
}

/// The ids of a contiguous one-dimensional array of `T`; None for any other array.
fn from_array<T: Element + Copy + Display + TryInto<u32>>(
    object: Borrowed<'_, '_, PyAny>,
) -> Option<PyResult<PyIds>> {
    let array = object.cast::<PyArray1<T>>().ok()?.try_readonly().ok()?;
    let values = array.as_slice().ok()?;
    let mut ids: Vec<u32> = match reserve::with_capacity(values.len()).or_raise(object.py()) {
        Ok(ids) => ids,
        Err(error) => return Some(Err(error)),
    };
    ids.extend(values.iter().map(|&value| value.try_into().unwrap_or(NONE)));
    let is_no_id = |value: &T| TryInto::<u32>::try_into(*value).is_err();
    let wrong = ids
        .contains(&NONE)
        .then(|| values.iter().position(is_no_id));
    Some(match wrong.flatten() {
        Some(position) => {
            let shown = values[position].to_string();
            Err(unknown(object.py(), &shown, position))
        }
        None => Ok(PyIds(ids)),
    })
}

/// The error for an item that is not an id: an unknown id if it is an integer, a wrong type if not, or what its own
/// `__index__` raised.
fn not_an_id(item: &Bound<'_, PyAny>, position: usize, error: PyErr) -> PyErr {
    let py = item.py();
    if item.is_instance_of::<PyInt>() || error.is_instance_of::<PyOverflowError>(py) {
        unknown(py, &shown(item, 80), position)
    } else if error.is_instance_of::<PyTypeError>(py) {
        let shown = shown(item, 80);
        let message = format!("ids must be integers, not {shown} at position {position}");
        exception(py, "ArgumentTypeError", message)
    } else {
        error
    }
}

fn unknown(py: Python<'_>, shown: &str, position: usize) -> PyErr {
    let message = format!("id {shown} at position {position} is not in the vocabulary");
    exception(py, "UnknownIdError", message)
}

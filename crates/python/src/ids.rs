//! Ids to and from Python.

use crate::call::exception;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList};
use std::sync::OnceLock;

/// Fewer ids than this are made into integers anew.
const WORTH_KEEPING: usize = 4 << 10;
/// The most integers that are kept: 8 MiB or so.
const KEPT: usize = 1 << 18;

/// The integers of an encoder's ids, made once and shared by the lists that it returns: making an
/// integer costs more than finding the id does.
#[derive(Default)]
pub struct Integers {
    kept: OnceLock<Box<[Py<PyInt>]>>,
}

impl Integers {
    /// Keeps the integers from now on, if a call returns so many ids that it is worth it.
    pub fn expect(&self, py: Python<'_>, ids: usize, vocab_size: usize) {
        if ids >= WORTH_KEEPING {
            let make = |id| PyInt::new(py, id).unbind();
            self.kept
                .get_or_init(|| (0..vocab_size.min(KEPT)).map(make).collect());
        }
    }

    /// A list of ids.
    pub fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        let Some(kept) = self.kept.get() else {
            return PyList::new(py, ids);
        };
        let integers = ids.iter().map(|&id| match kept.get(id as usize) {
            Some(integer) => integer.bind(py).clone(),
            None => PyInt::new(py, id),
        });
        PyList::new(py, integers)
    }
}

/// A sequence of ids: a list, a tuple, a NumPy array, a tensor.
pub struct PyIds(pub Vec<u32>);

impl<'py> FromPyObject<'_, 'py> for PyIds {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let listed;
        let object = match object.getattr_opt("tolist")? {
            Some(to_list) => {
                listed = to_list.call0()?;
                listed.as_borrowed()
            }
            None => object,
        };
        let mut ids = Vec::with_capacity(object.len().unwrap_or(0));
        for (position, item) in object.try_iter()?.enumerate() {
            let item = item?;
            ids.push(match item.extract() {
                Ok(id) => id,
                Err(_) => return Err(not_an_id(py, &item, position)?),
            });
        }
        Ok(Self(ids))
    }
}

/// An integer that no id can be is an unknown id; anything else is the wrong type.
fn not_an_id(py: Python<'_>, item: &Bound<'_, PyAny>, position: usize) -> PyResult<PyErr> {
    let shown = item.repr()?;
    Ok(if item.is_instance_of::<PyInt>() {
        let message = format!("id {shown} at position {position} is not in the vocabulary");
        exception(py, "UnknownIdError", message)
    } else {
        let message = format!("ids must be integers, not {shown} at position {position}");
        exception(py, "ArgumentTypeError", message)
    })
}

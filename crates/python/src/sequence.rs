//! Collections and strings from Python code. A subclass of `list` may return any number as its length, so only an exact `list`
//! or `tuple` is asked for it.

use crate::call::{exception, shown, OrRaise as _};
use bpe_tokenizer_core::reserve;
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyInt, PyList, PyString, PyTuple};

type BytePairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Items between two checks for signals (Ctrl-C).
const ITEMS_PER_CHECK: usize = 1 << 10;

/// The items of a collection. PyO3's own conversion reserves memory for the length that a subclass returns.
pub fn items<'py, T: FromPyObjectOwned<'py>>(object: &Bound<'py, PyAny>) -> PyResult<Vec<T>> {
    items_by(object, |_, item| item.extract().map_err(Into::into))
}

/// As [`items`], by a function that takes the position of an item and the item.
pub fn items_by<'py, T>(
    object: &Bound<'py, PyAny>,
    extract: impl Fn(usize, Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    check_not_text(object)?;
    let (py, mut items) = (object.py(), Vec::new());
    if object.is_exact_instance_of::<PyList>() || object.is_exact_instance_of::<PyTuple>() {
        reserve::reserve(&mut items, object.len()?).or_raise(py)?;
    }
    for (position, item) in object.try_iter()?.enumerate() {
        if position % ITEMS_PER_CHECK == ITEMS_PER_CHECK - 1 {
            py.check_signals()?;
        }
        let item = extract(position, item?)?;
        reserve::push(&mut items, item).or_raise(py)?;
    }
    Ok(items)
}

fn check_not_text(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        let message = format!("expected a list, not {}", shown(object, 80));
        return Err(exception(object.py(), "ArgumentTypeError", message));
    }
    Ok(())
}

/// The argument `skip_special_tokens`: a `bool`, or the integer 0 or 1.
pub fn skip_special_tokens(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let extracted = object.extract::<bool>().ok();
    let number = || object.cast_exact::<PyInt>().ok()?.extract::<u8>().ok();
    let flag = extracted.or_else(|| number().filter(|&n| n < 2).map(|n| n == 1));
    flag.ok_or_else(|| {
        let shown = shown(object, 80);
        let message = format!("skip_special_tokens must be True or False, not {shown}");
        exception(object.py(), "ArgumentTypeError", message)
    })
}

/// Pairs of tokens, such as merges.
pub fn byte_pairs(object: &Bound<'_, PyAny>) -> PyResult<BytePairs> {
    let pairs = object.try_iter()?.map(|pair| {
        let pair = pair?;
        let (left, right): (PyBackedBytes, PyBackedBytes) = pair.extract().map_err(|_| {
            let message = format!("a merge must be a pair of bytes, not {}", shown(&pair, 80));
            exception(pair.py(), "ArgumentTypeError", message)
        })?;
        Ok((left.to_vec(), right.to_vec()))
    });
    pairs.collect()
}

/// A split pattern.
pub fn pattern(object: &Bound<'_, PyAny>) -> PyResult<String> {
    object.extract().map_err(|error: PyErr| {
        let py = object.py();
        if !error.is_instance_of::<PyUnicodeEncodeError>(py) {
            return error;
        }
        let shown = shown(object, 80);
        let message = format!("the pattern {shown} holds a lone surrogate, which no text can hold");
        exception(py, "PatternError", message)
    })
}

/// Several split patterns.
pub fn patterns(object: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    check_not_text(object)?;
    let patterns = object.try_iter()?;
    patterns.map(|each| pattern(&each?)).collect()
}

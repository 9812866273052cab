//! Functions for the strings and merges of a GGUF file: hundreds of thousands of small values.

use crate::call::OrRaise as _;
use crate::constructors;
use bpe_tokenizer_core::reserve;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList};
use rustc_hash::FxHashMap;

/// Bytes of a string's length.
const LENGTH_BYTES: usize = 8;

#[pyfunction]
pub fn read_strings<'py>(
    py: Python<'py>,
    window: &[u8],
    at: usize,
    count: usize,
) -> PyResult<(Bound<'py, PyList>, usize)> {
    let (mut strings, mut next) = (Vec::new(), at);
    while strings.len() < count {
        let Some((string, after)) = string_at(window, next) else {
            break;
        };
        reserve::push(&mut strings, string).or_raise(py)?;
        next = after;
    }
    let strings = strings.iter().map(|string| constructors::bytes(py, string));
    Ok((constructors::list(py, strings)?, next))
}

/// The string at a position, and the position after it.
fn string_at(window: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (length, rest) = window.get(at..)?.split_first_chunk::<LENGTH_BYTES>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    Some((rest.get(..length)?, at + LENGTH_BYTES + length))
}

/// The bytes of a list, which stay valid without the GIL.
pub fn backed(strings: &Bound<'_, PyList>) -> PyResult<Vec<PyBackedBytes>> {
    strings.iter().map(|string| Ok(string.extract()?)).collect()
}

/// The two sides of a merge. llama.cpp reads up to a zero byte, and takes the first space after the first byte.
pub fn sides(merge: &[u8]) -> Option<(&[u8], &[u8])> {
    let merge = merge.split(|&byte| byte == 0).next()?;
    let space = 1 + merge.get(1..)?.iter().position(|&byte| byte == b' ')?;
    Some((&merge[..space], &merge[space + 1..]))
}

#[pyfunction]
pub fn split_merges<'py>(
    py: Python<'py>,
    merges: &Bound<'py, PyList>,
    of_text: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyList>> {
    let tokens: Vec<(Bound<'_, PyBytes>, Bound<'_, PyBytes>)> = of_text
        .iter()
        .map(|(text, token)| Ok((text.cast_into()?, token.cast_into()?)))
        .collect::<PyResult<_>>()?;
    let tokens: FxHashMap<&[u8], &Bound<'_, PyBytes>> = tokens
        .iter()
        .map(|(text, token)| (text.as_bytes(), token))
        .collect();
    let mut joined = Vec::new();
    let mut pair = |merge: &[u8]| {
        let (left, right) = sides(merge)?;
        joined.clear();
        joined.extend_from_slice(left);
        joined.extend_from_slice(right);
        tokens.get(joined.as_slice())?;
        Some((*tokens.get(left)?, *tokens.get(right)?))
    };
    let merges: Vec<Bound<'_, PyBytes>> = merges
        .iter()
        .map(|merge| Ok(merge.cast_into()?))
        .collect::<PyResult<_>>()?;
    let pairs = merges.iter().map(|merge| match pair(merge.as_bytes()) {
        Some((left, right)) => {
            constructors::tuple(py, left.clone(), right.clone()).map(Bound::into_any)
        }
        None => Ok(py.None().into_bound(py)),
    });
    constructors::list(py, pairs)
}

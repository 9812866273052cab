//! Functions for the strings and merges of a GGUF file: hundreds of thousands of small values.

use crate::call::OrRaise as _;
use crate::constructors;
use bpe_tokenizer_core::reserve;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyList;

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

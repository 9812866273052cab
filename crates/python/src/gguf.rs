//! The strings and merges of a GGUF file: hundreds of thousands of small values.

use crate::call::OrRaise as _;
use crate::constructors;
use bpe_tokenizer_core::{reserve, Result};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyList;

/// Bytes of a string's length.
const LENGTH_BYTES: usize = 8;

/// The strings of an array in a GGUF file, in one block of memory.
#[pyclass(module = "bpe_tokenizer._core")]
#[derive(Default)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    /// The string at an index.
    fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let before = index.checked_sub(1).map(|before| self.ends[before]);
        self.bytes.get(before.unwrap_or_default()..end)
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).filter_map(|index| self.get(index))
    }

    fn push(&mut self, string: &[u8]) -> Result<()> {
        reserve::append(&mut self.bytes, string)?;
        reserve::push(&mut self.ends, self.bytes.len())
    }
}

#[pymethods]
impl Strings {
    #[new]
    fn new(py: Python<'_>, strings: Vec<PyBackedBytes>) -> PyResult<Self> {
        let mut made = Self::default();
        let pushed: Result<()> = strings.iter().try_for_each(|string| made.push(string));
        pushed.or_raise(py)?;
        Ok(made)
    }

    fn read(&mut self, py: Python<'_>, window: &[u8], at: usize, count: usize) -> PyResult<usize> {
        let mut next = at;
        while self.ends.len() < count {
            let Some((string, after)) = string_at(window, next) else {
                break;
            };
            self.push(string).or_raise(py)?;
            next = after;
        }
        Ok(next)
    }

    fn append(&mut self, py: Python<'_>, string: &[u8]) -> PyResult<()> {
        self.push(string).or_raise(py)
    }

    pub fn __len__(&self) -> usize {
        self.ends.len()
    }

    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let strings: Vec<_> = self.iter().collect();
        let strings = strings.iter().map(|string| constructors::bytes(py, string));
        constructors::list(py, strings)
    }
}

/// The string at a position, and the position after it.
fn string_at(window: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (length, rest) = window.get(at..)?.split_first_chunk::<LENGTH_BYTES>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    Some((rest.get(..length)?, at + LENGTH_BYTES + length))
}

/// The two sides of a merge. llama.cpp reads up to a zero byte, and takes the first space after the first byte.
pub fn sides(merge: &[u8]) -> Option<(&[u8], &[u8])> {
    let merge = merge.split(|&byte| byte == 0).next()?;
    let space = 1 + merge.get(1..)?.iter().position(|&byte| byte == b' ')?;
    Some((&merge[..space], &merge[space + 1..]))
}

//! Functions for the rows of text and of JSON Lines.

use crate::buffer_pool::BufferPool;
use crate::call::{exception, run, OrRaise as _};
use crate::constructors;
use bpe_tokenizer_core::reserve::with_capacity;
use bpe_tokenizer_readers::{bad_rows, read_rows as read, RowKind};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

/// The documents' bytes, their offsets with the end of the last, the numbers of their rows, the undecided rows as
/// (number, start, end, documents before), and the number of rows.
type Rows<'py> = (
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Vec<(i64, usize, usize, usize)>,
    i64,
);

#[pyfunction]
#[pyo3(signature = (block, kind, name, *, first=1, after=0, threads=0, pool=None))]
pub fn read_rows<'py>(
    py: Python<'py>,
    block: PyReadonlyArray1<'_, u8>,
    kind: &str,
    name: &[u8],
    first: i64,
    after: i64,
    threads: usize,
    pool: Option<&BufferPool>,
) -> PyResult<Rows<'py>> {
    let block = block.as_slice()?;
    let kind = match (kind, std::str::from_utf8(name)) {
        ("line", _) => RowKind::Line,
        ("json", Ok(field)) => RowKind::Json(field),
        ("separated", _) if !name.is_empty() => RowKind::Separated(name),
        _ => {
            let message = format!(
                "the kind of a row is {kind}, with a name of {} bytes",
                name.len()
            );
            return Err(exception(py, "OptionError", message));
        }
    };
    let pool = pool.map(|pool| &pool.0);
    let fresh = BufferPool::default();
    let mut rows = run(py, block.len(), |interrupt| {
        read(
            block,
            kind,
            first,
            after,
            threads,
            pool.unwrap_or(&fresh.0),
            interrupt,
        )
    })?;
    let mut offsets = with_capacity(rows.ends.len() + 1).or_raise(py)?;
    offsets.push(0);
    offsets.append(&mut rows.ends);
    let undecided = rows.undecided.into_iter();
    let undecided = undecided.map(|row| (row.number, row.range.start, row.range.end, row.before));
    Ok((
        constructors::pooled_array(py, rows.data, pool)?,
        constructors::array(py, offsets)?,
        constructors::array(py, rows.numbers)?,
        undecided.collect(),
        rows.count,
    ))
}

#[pyfunction]
pub fn find_bad_rows<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'_, u8>,
    offsets: PyReadonlyArray1<'_, i64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (data, offsets) = (data.as_slice()?, offsets.as_slice()?);
    let bad = run(py, data.len(), |_| bad_rows(data, offsets))?;
    constructors::array(py, bad)
}

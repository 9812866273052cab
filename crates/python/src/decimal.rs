//! Ids as decimal numbers in text.

use crate::call::run;
use crate::constructors;
use crate::ids::PyIds;
use bpe_tokenizer_core::decimal;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

#[pyfunction]
pub fn write_ids(py: Python<'_>, ids: PyIds) -> PyResult<Bound<'_, PyBytes>> {
    let text = run(py, 4 * ids.0.len(), |interrupt| {
        let mut text = Vec::new();
        decimal::write(&ids.0, &mut text, interrupt)?;
        Ok(text)
    })?;
    constructors::bytes(py, &text)
}

#[pyfunction]
pub fn read_ids<'py>(py: Python<'py>, text: &[u8]) -> PyResult<(Bound<'py, PyArray1<u32>>, usize)> {
    let (ids, end) = run(py, text.len(), |interrupt| {
        let mut ids = Vec::new();
        let end = decimal::read(text, &mut ids, interrupt)?;
        Ok((ids, end))
    })?;
    Ok((constructors::array(py, ids)?, end))
}

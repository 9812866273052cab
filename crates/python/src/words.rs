//! The words of a text, by the boundaries of Unicode.

use crate::call::run;
use crate::constructors;
use numpy::PyArray1;
use pyo3::prelude::*;
use unicode_segmentation::UnicodeSegmentation as _;

type Offsets<'py> = Bound<'py, PyArray1<u32>>;

#[pyfunction]
pub fn words<'py>(py: Python<'py>, text: &str) -> PyResult<(Offsets<'py>, Offsets<'py>)> {
    let (starts, ends): (Vec<u32>, Vec<u32>) = run(py, text.len(), |_| {
        // Offsets of 32 bits: Python passes blocks of a text.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Ok(text
            .unicode_word_indices()
            .map(|(start, word)| (offset(start), offset(start + word.len())))
            .unzip())
    })?;
    Ok((
        constructors::array(py, starts)?,
        constructors::array(py, ends)?,
    ))
}

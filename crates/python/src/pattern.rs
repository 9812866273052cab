//! `SplitPattern`.

use crate::call::{run, OrRaise as _};
use crate::constructors;
use crate::sequence;
use crate::settings::value_of;
use bpe_tokenizer_core::pretokenize::{self, Engines, SplitPattern as Core};
use bpe_tokenizer_core::reserve::push;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

const ENGINES: [(&str, Engines); 3] = [
    ("to_oniguruma", Engines::ToOniguruma),
    ("from_oniguruma", Engines::FromOniguruma),
    ("python", Engines::Python),
];

#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct SplitPattern(Core);

#[pymethods]
impl SplitPattern {
    #[new]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = sequence::pattern)] pattern: String,
    ) -> PyResult<Self> {
        Ok(Self(Core::new(&pattern).or_raise(py)?))
    }

    #[getter]
    fn pattern(&self) -> &str {
        self.0.pattern()
    }

    #[getter]
    fn is_compiled(&self) -> bool {
        self.0.automaton().is_some()
    }

    #[getter]
    fn states(&self) -> usize {
        self.0.automaton().map_or(0, |dfa| dfa.states())
    }

    #[getter]
    fn classes(&self) -> usize {
        self.0.automaton().map_or(0, |dfa| dfa.class_count())
    }

    #[getter]
    fn covers_every_text(&self) -> bool {
        self.0.covers_every_text()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.0.is_same(&other.0)
    }

    fn split<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyList>> {
        let pieces = run(py, text.len(), |_| {
            let (mut pieces, mut outcome) = (Vec::new(), Ok(()));
            self.0.split(text.as_bytes(), |range| {
                outcome = push(&mut pieces, range);
                outcome.is_ok()
            })?;
            outcome.map(|()| pieces)
        })?;
        let pieces = pieces.into_iter();
        constructors::list(
            py,
            pieces.map(|range| PyString::from_bytes(py, text[range].as_bytes())),
        )
    }

    fn to_oniguruma(&self, py: Python<'_>) -> PyResult<String> {
        pretokenize::to_oniguruma(self.0.pattern()).or_raise(py)
    }

    #[staticmethod]
    fn objection(
        py: Python<'_>,
        #[pyo3(from_py_with = sequence::pattern)] pattern: String,
        engines: &str,
    ) -> PyResult<Option<String>> {
        let engines = value_of(py, "engines", engines, &ENGINES)?;
        Ok(pretokenize::objection(&pattern, engines))
    }

    #[staticmethod]
    fn from_oniguruma(
        py: Python<'_>,
        #[pyo3(from_py_with = sequence::pattern)] pattern: String,
    ) -> PyResult<String> {
        pretokenize::from_oniguruma(&pattern).or_raise(py)
    }
}

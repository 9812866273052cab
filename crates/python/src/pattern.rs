//! `SplitPattern`.

use crate::call::{run, to_python};
use crate::objects;
use crate::sequence;
use crate::settings::value_of;
use bpe_tokenizer_core::pretokenize::{self, Engines, SplitPattern as Core};
use bpe_tokenizer_core::reserve::push;
use bpe_tokenizer_core::threads::try_made_once;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::sync::OnceLock;

const ENGINES: [(&str, Engines); 3] = [
    ("to_oniguruma", Engines::ToOniguruma),
    ("from_oniguruma", Engines::FromOniguruma),
    ("python", Engines::Python),
];

#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct SplitPattern {
    core: Core,
    /// The same pattern on the regex engine, compiled on first use.
    oracle: OnceLock<Core>,
}

fn pieces<'py>(py: Python<'py>, pattern: &Core, text: &str) -> PyResult<Bound<'py, PyList>> {
    let pieces = run(py, text.len(), |_| {
        let (mut pieces, mut outcome) = (Vec::new(), Ok(()));
        pattern.split(text.as_bytes(), |range| {
            outcome = push(&mut pieces, range);
            outcome.is_ok()
        })?;
        outcome.map(|()| pieces)
    })?;
    let pieces = pieces.into_iter();
    objects::list(
        py,
        pieces.map(|range| PyString::from_bytes(py, text[range].as_bytes())),
    )
}

#[pymethods]
impl SplitPattern {
    #[new]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = sequence::pattern)] pattern: String,
    ) -> PyResult<Self> {
        let core = Core::new(&pattern).map_err(|error| to_python(py, &error))?;
        Ok(Self {
            core,
            oracle: OnceLock::new(),
        })
    }

    #[getter]
    fn pattern(&self) -> &str {
        self.core.pattern()
    }

    #[getter]
    fn is_compiled(&self) -> bool {
        self.core.automaton().is_some()
    }

    #[getter]
    fn states(&self) -> usize {
        self.core.automaton().map_or(0, |dfa| dfa.states())
    }

    #[getter]
    fn classes(&self) -> usize {
        self.core.automaton().map_or(0, |dfa| dfa.class_count())
    }

    fn is_same(&self, other: &Self) -> bool {
        self.core.is_same(&other.core)
    }

    fn split<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyList>> {
        pieces(py, &self.core, text)
    }

    fn split_with_regex_engine<'py>(
        &self,
        py: Python<'py>,
        text: &str,
    ) -> PyResult<Bound<'py, PyList>> {
        let make = || Core::on_regex_engine(self.core.pattern());
        let oracle = try_made_once(&self.oracle, make).map_err(|error| to_python(py, &error))?;
        pieces(py, oracle, text)
    }

    fn to_oniguruma(&self, py: Python<'_>) -> PyResult<String> {
        pretokenize::to_oniguruma(self.core.pattern()).map_err(|error| to_python(py, &error))
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
        pretokenize::from_oniguruma(&pattern).map_err(|error| to_python(py, &error))
    }
}

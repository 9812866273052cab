//! `SplitPattern`.

use crate::call::{run, to_python};
use crate::sequence;
use crate::settings::value_of;
use bpe_tokenizer_core::pretokenize::{self, Engines, SplitPattern as Core};
use pyo3::prelude::*;
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

fn pieces<'a>(py: Python<'_>, pattern: &Core, text: &'a str) -> PyResult<Vec<&'a str>> {
    run(py, text.len(), |_| {
        let mut pieces = Vec::new();
        pattern.split(text.as_bytes(), |range| {
            pieces.push(&text[range]);
            true
        })?;
        Ok(pieces)
    })
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

    fn split<'a>(&self, py: Python<'_>, text: &'a str) -> PyResult<Vec<&'a str>> {
        pieces(py, &self.core, text)
    }

    fn split_with_regex_engine<'a>(&self, py: Python<'_>, text: &'a str) -> PyResult<Vec<&'a str>> {
        let oracle = match self.oracle.get() {
            Some(oracle) => oracle,
            None => {
                let oracle = Core::on_regex_engine(self.core.pattern());
                let oracle = oracle.map_err(|error| to_python(py, &error))?;
                self.oracle.get_or_init(|| oracle)
            }
        };
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

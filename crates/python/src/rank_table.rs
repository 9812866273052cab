//! `RankTable`: the tokens of a rank file, for Python.

use crate::call::OrRaise as _;
use crate::constructors;
use bpe_tokenizer_core::model::Vocabulary;
use bpe_tokenizer_formats::ranks;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct RankTable {
    pub vocabulary: Arc<Vocabulary>,
}

#[pymethods]
impl RankTable {
    #[staticmethod]
    fn parse(py: Python<'_>, data: &[u8], file: &str) -> PyResult<Self> {
        let vocabulary = py.detach(|| ranks::read(file, data)).or_raise(py)?.into();
        Ok(Self { vocabulary })
    }

    fn __len__(&self) -> usize {
        self.vocabulary.len()
    }

    fn __contains__(&self, token: &[u8]) -> bool {
        self.vocabulary.id(token).is_some()
    }

    fn __getitem__(&self, token: &[u8]) -> PyResult<u32> {
        let rank = self.vocabulary.id(token);
        rank.ok_or_else(|| PyKeyError::new_err(token.to_vec()))
    }

    fn has_rank(&self, rank: u32) -> bool {
        self.vocabulary.token(rank).is_some()
    }

    #[getter]
    fn max_rank(&self) -> Option<u32> {
        self.vocabulary.max_id()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (rank, token) in self.vocabulary.iter() {
            dict.set_item(
                constructors::bytes(py, token)?,
                constructors::integer(py, rank as usize)?,
            )?;
        }
        Ok(dict)
    }
}

//! `TokenTable`: the tokens and merges of a tokenizer.json, for Python.

use crate::objects;
use crate::tokenizer_json::TokenizerJson;
use bpe_tokenizer_core::model::{MergeIds, Vocabulary};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyBytes;
use rustc_hash::FxHashMap;
use std::collections::HashSet;

#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct TokenTable {
    /// The strings of the tokens, as bytes.
    strings: Vocabulary,
    merges: Vec<MergeIds>,
}

impl TokenTable {
    /// The tokens and their ids, in the order of the ids.
    pub fn tokens(&self) -> impl Iterator<Item = (u32, &str)> {
        let tokens = self.strings.iter();
        tokens.map(|(id, token)| (id, std::str::from_utf8(token).unwrap_or_default()))
    }

    /// The merges in order of rank.
    pub fn merges(&self) -> Vec<MergeIds> {
        self.merges.clone()
    }
}

#[pymethods]
impl TokenTable {
    #[staticmethod]
    fn parse<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Option<(Bound<'py, PyBytes>, Self)>> {
        let Some(TokenizerJson {
            rest,
            strings,
            merges,
        }) = py.detach(|| TokenizerJson::parse(data))
        else {
            return Ok(None);
        };
        let rest = objects::bytes(py, rest.as_bytes())?;
        Ok(Some((rest, Self { strings, merges })))
    }

    fn __len__(&self) -> usize {
        self.strings.len()
    }

    fn __contains__(&self, token: &Bound<'_, PyAny>) -> bool {
        let token: Result<&str, _> = token.extract();
        token.is_ok_and(|token| self.get(token).is_some())
    }

    fn get(&self, token: &str) -> Option<u32> {
        self.strings.id(token.as_bytes())
    }

    fn ids(&self, tokens: Vec<PyBackedStr>) -> Vec<Option<u32>> {
        tokens.iter().map(|token| self.get(token)).collect()
    }

    fn merged(&self, tokens: HashSet<String>) -> HashSet<String> {
        let ids: FxHashMap<u32, &String> = tokens
            .iter()
            .filter_map(|token| Some((self.get(token)?, token)))
            .collect();
        let parts = self
            .merges
            .iter()
            .flat_map(|&(l, r, product)| [l, r, product]);
        parts
            .filter_map(|id| ids.get(&id).map(|token| (*token).clone()))
            .collect()
    }
}

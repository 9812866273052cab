//! `TokenTable`: the tokens and merges of a tokenizer.json or a GGUF file, for Python.

use crate::gguf::{backed, split_at_space};
use crate::objects;
use crate::settings::added_token_tuples;
use bpe_tokenizer_core::model::{MergeIds, Vocabulary};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::text::is_printable;
use bpe_tokenizer_formats::huggingface::document::{
    AddedToken as Entry, TokenizerConfig, TokenizerJson,
};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyList};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::HashSet;
use std::sync::Arc;

#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct TokenTable {
    /// The strings of the tokens, as bytes.
    strings: Arc<Vocabulary>,
    merges: Vec<MergeIds>,
    added: Option<Vec<AddedToken>>,
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

fn to_core(tokens: Vec<Entry>) -> Vec<AddedToken> {
    tokens.into_iter().map(AddedToken::from).collect()
}

/// The `added_tokens_decoder` of a tokenizer_config.json.
#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct AddedTokensDecoder {
    /// By ascending id.
    tokens: Vec<AddedToken>,
}

#[pymethods]
impl AddedTokensDecoder {
    #[staticmethod]
    fn parse<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Option<(Bound<'py, PyBytes>, Self)>> {
        let Some(config) = py.detach(|| TokenizerConfig::parse(data)) else {
            return Ok(None);
        };
        let tokens = to_core(config.added);
        Ok(Some((
            objects::bytes(py, config.rest.as_bytes())?,
            Self { tokens },
        )))
    }

    fn equals(&self, table: &TokenTable) -> bool {
        let mut added: Vec<_> = table.added.iter().flatten().collect();
        added.sort_by_key(|token| token.id);
        added.into_iter().eq(&self.tokens)
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
            added,
        }) = py.detach(|| TokenizerJson::parse(data))
        else {
            return Ok(None);
        };
        let (rest, strings) = (objects::bytes(py, rest.as_bytes())?, strings.into());
        let added = added.map(to_core);
        Ok(Some((
            rest,
            Self {
                strings,
                merges,
                added,
            },
        )))
    }

    #[staticmethod]
    fn from_strings(tokens: &Bound<'_, PyList>) -> PyResult<Option<Self>> {
        let tokens = backed(tokens)?;
        let is_usual = |token: &PyBackedBytes| {
            !token.is_empty() && !token.contains(&0) && std::str::from_utf8(token).is_ok()
        };
        if !tokens.iter().all(is_usual) {
            return Ok(None);
        }
        let tokens = (0..).zip(&tokens);
        let strings = Vocabulary::from_sorted(tokens.map(|(id, token)| Ok((id, &token[..]))));
        let strings = strings.ok().filter(|strings| !strings.has_duplicates());
        Ok(strings.map(|strings| Self {
            strings: strings.into(),
            merges: Vec::new(),
            added: None,
        }))
    }

    fn with_merges(
        &self,
        py: Python<'_>,
        merges: &Bound<'_, PyList>,
        excluded: FxHashSet<u32>,
    ) -> PyResult<Option<(Self, Vec<usize>)>> {
        let merges = backed(merges)?;
        Ok(py.detach(|| {
            let mut tokens = self
                .tokens()
                .filter(|(id, _)| excluded.is_empty() || !excluded.contains(id));
            if !tokens.all(|(_, token)| is_printable(token)) {
                return None;
            }
            let (mut ids, mut others, mut joined) = (Vec::new(), Vec::new(), Vec::new());
            let mut seen = FxHashSet::with_capacity_and_hasher(merges.len(), FxBuildHasher);
            let id = |token: &[u8]| {
                let id = self.strings.id(token);
                id.filter(|id| excluded.is_empty() || !excluded.contains(id))
            };
            for (index, merge) in merges.iter().enumerate() {
                let found = split_at_space(merge).and_then(|(left, right)| {
                    joined.clear();
                    joined.extend_from_slice(left);
                    joined.extend_from_slice(right);
                    Some((id(left)?, id(right)?, id(&joined)?))
                });
                match found {
                    None => others.push(index),
                    // Of equal pairs, the first counts.
                    Some(merge) if seen.insert((merge.0, merge.1)) => ids.push(merge),
                    Some(_) => {}
                }
            }
            let table = Self {
                strings: self.strings.clone(),
                merges: ids,
                added: None,
            };
            Some((table, others))
        }))
    }

    fn added_tokens<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let added = self.added.as_ref();
        added.map(|added| added_token_tuples(py, added)).transpose()
    }

    fn starting_with(&self, prefix: &str) -> Vec<&str> {
        let tokens = self.tokens().map(|(_, token)| token);
        tokens.filter(|token| token.starts_with(prefix)).collect()
    }

    fn __len__(&self) -> usize {
        self.strings.len()
    }

    fn __contains__(&self, token: &Bound<'_, PyAny>) -> bool {
        let token: Result<&str, _> = token.extract();
        token.is_ok_and(|token| self.get(token).is_some())
    }

    fn __getitem__(&self, token: &str) -> PyResult<u32> {
        self.get(token)
            .ok_or_else(|| PyKeyError::new_err(token.to_owned()))
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

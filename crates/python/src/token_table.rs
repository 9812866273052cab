//! `TokenTable`: the tokens and merges of a tokenizer.json or a GGUF file, for Python.

use crate::call::{exception, OrRaise as _};
use crate::constructors;
use crate::gguf::{sides, Strings};
use crate::settings::added_token_tuples;
use bpe_tokenizer_core::error::quoted;
use bpe_tokenizer_core::model::{MergeIds, Vocabulary};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::text::is_printable;
use bpe_tokenizer_formats::tokenizer_json;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyList};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct TokenTable {
    /// The strings of the tokens, as bytes.
    strings: Arc<Vocabulary>,
    merges: Vec<MergeIds>,
    added: Vec<AddedToken>,
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

/// The `added_tokens_decoder` of a tokenizer_config.json.
#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct AddedTokensDecoder(tokenizer_json::AddedTokensDecoder);

#[pymethods]
impl AddedTokensDecoder {
    #[staticmethod]
    fn parse<'py>(
        py: Python<'py>,
        data: &[u8],
        file: &str,
    ) -> PyResult<(Bound<'py, PyBytes>, Option<Self>)> {
        let read = py.detach(|| tokenizer_json::read_tokenizer_config(file, data));
        let (rest, decoder) = read.or_raise(py)?;
        Ok((constructors::bytes(py, rest.as_bytes())?, decoder.map(Self)))
    }

    fn equals(&self, table: &TokenTable) -> bool {
        self.0.equals(&table.added)
    }

    fn tokens<'py>(&self, py: Python<'py>, named: HashSet<String>) -> PyResult<Bound<'py, PyList>> {
        added_token_tuples(py, &self.0.tokens(&named))
    }
}

/// The index of a merge, its left and right part, and the first of left, right and both joined that the table lacks.
type OtherMerge<'py> = (
    usize,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

#[pymethods]
impl TokenTable {
    #[staticmethod]
    fn parse<'py>(
        py: Python<'py>,
        data: &[u8],
        file: &str,
    ) -> PyResult<(Bound<'py, PyBytes>, Option<Self>)> {
        let read = py.detach(|| tokenizer_json::read_tokenizer_json(file, data));
        let (rest, tables) = read.or_raise(py)?;
        let table = tables.map(|tables| Self {
            strings: tables.strings.into(),
            merges: tables.merges,
            added: tables.added,
        });
        Ok((constructors::bytes(py, rest.as_bytes())?, table))
    }

    #[staticmethod]
    fn from_strings(py: Python<'_>, tokens: &Strings, name: &str) -> PyResult<Self> {
        let refused = |place: String, what: String| {
            exception(py, "FormatError", format!("{name}{place}: {what}"))
        };
        let mut texts = Vec::new();
        for (id, token) in (0_u32..).zip(tokens.iter()) {
            // llama.cpp reads up to the first zero byte.
            let text = token.split(|&byte| byte == 0).next().unwrap_or_default();
            let text = std::str::from_utf8(text).map_err(|_| {
                let token = quoted(&String::from_utf8_lossy(token));
                refused(format!("[{id}]"), format!("{token} is not UTF-8"))
            })?;
            texts.push((
                id,
                match text {
                    "" => Cow::Owned(format!("[EMPTY_{id}]")),
                    text => Cow::Borrowed(text),
                },
            ));
        }
        let strings = texts.iter().map(|(id, text)| Ok((*id, text.as_bytes())));
        let strings = Vocabulary::from_sorted(strings).or_raise(py)?;
        if strings.has_duplicates() {
            let first = |text: &str| strings.id(text.as_bytes());
            let second = texts.iter().find(|(id, text)| first(text) != Some(*id));
            let what = second.map(|(id, text)| {
                let first = first(text).unwrap_or_default();
                format!("duplicate token {}: ids {first} and {id}", quoted(text))
            });
            return Err(refused(String::new(), what.unwrap_or_default()));
        }
        Ok(Self {
            strings: strings.into(),
            merges: Vec::new(),
            added: Vec::new(),
        })
    }

    fn with_merges<'py>(
        &self,
        py: Python<'py>,
        merges: &Strings,
        excluded: FxHashSet<u32>,
    ) -> PyResult<(Self, Vec<OtherMerge<'py>>)> {
        let (table, others) = py.detach(|| {
            let (mut ids, mut others, mut joined) = (Vec::new(), Vec::new(), Vec::new());
            let mut seen = FxHashSet::with_capacity_and_hasher(merges.__len__(), FxBuildHasher);
            let id = |token: &[u8]| {
                let id = self.strings.id(token);
                id.filter(|id| excluded.is_empty() || !excluded.contains(id))
            };
            for (index, merge) in merges.iter().enumerate() {
                let Some((left, right)) = sides(merge) else {
                    continue;
                };
                joined.clear();
                joined.extend_from_slice(left);
                joined.extend_from_slice(right);
                match (id(left), id(right), id(&joined)) {
                    // Of equal pairs, the first counts.
                    (Some(left), Some(right), Some(product)) => {
                        if seen.insert((left, right)) {
                            ids.push((left, right, product));
                        }
                    }
                    (None, _, _) => others.push((index, left, right, left.to_vec())),
                    (_, None, _) => others.push((index, left, right, right.to_vec())),
                    (_, _, None) => others.push((index, left, right, joined.clone())),
                }
            }
            let table = Self {
                strings: self.strings.clone(),
                merges: ids,
                added: Vec::new(),
            };
            (table, others)
        });
        let others = others.into_iter().map(|(index, left, right, missing)| {
            let bytes = |part: &[u8]| constructors::bytes(py, part);
            Ok((index, bytes(left)?, bytes(right)?, bytes(&missing)?))
        });
        Ok((table, others.collect::<PyResult<_>>()?))
    }

    fn unprintable(&self) -> Vec<u32> {
        let tokens = self.tokens().filter(|(_, text)| !is_printable(text));
        tokens.map(|(id, _)| id).collect()
    }

    fn text(&self, token_id: u32) -> PyResult<&str> {
        let text = self.strings.token(token_id).map(std::str::from_utf8);
        let text = text.ok_or_else(|| PyKeyError::new_err(token_id))?;
        Ok(text.unwrap_or_default())
    }

    fn added_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        added_token_tuples(py, &self.added)
    }

    fn starting_with(&self, prefix: &str) -> Vec<&str> {
        let tokens = self.strings.iter().map(|(_, token)| token);
        let found = tokens.filter(|token| token.starts_with(prefix.as_bytes()));
        found.flat_map(std::str::from_utf8).collect()
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

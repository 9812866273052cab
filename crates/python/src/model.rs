//! `Model`.

use crate::call::{exception, to_python};
use bpe_tokenizer_core::model::{Model as Core, Settings};
use bpe_tokenizer_core::normalize::Normalization;
use bpe_tokenizer_core::printable::{from_printable, to_printable};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::HashMap;

/// content, id, special, single_word, lstrip, rstrip, normalized.
type PyAddedToken = (String, u32, bool, bool, bool, bool, bool);

fn to_added(token: PyAddedToken) -> AddedToken {
    let (content, id, special, single_word, lstrip, rstrip, normalized) = token;
    AddedToken {
        content,
        id,
        special,
        single_word,
        lstrip,
        rstrip,
        normalized,
    }
}

fn from_added(token: &AddedToken) -> PyAddedToken {
    (
        token.content.clone(),
        token.id,
        token.special,
        token.single_word,
        token.lstrip,
        token.rstrip,
        token.normalized,
    )
}

#[pyclass(frozen, module = "bpe_tokenizer._core")]
#[derive(Clone)]
pub struct Model {
    pub core: Core,
}

/// The keyword arguments that both constructors take.
struct Rest {
    split_patterns: Vec<String>,
    normalization: Option<String>,
    added_tokens: Vec<PyAddedToken>,
    ignore_merges: bool,
    add_prefix_space: bool,
}

impl Rest {
    fn build(
        self,
        tokens: Vec<(u32, Vec<u8>)>,
        merges: Option<&[(Vec<u8>, Vec<u8>)]>,
    ) -> Result<Model> {
        let settings = Settings {
            split_patterns: self.split_patterns,
            normalization: parse(self.normalization)?,
            ignore_merges: self.ignore_merges,
            add_prefix_space: self.add_prefix_space,
        };
        let added = self.added_tokens.into_iter().map(to_added).collect();
        let core = Core::new(tokens, merges, settings, added)?;
        Ok(Model { core })
    }
}

pub fn parse(normalization: Option<String>) -> Result<Option<Normalization>> {
    normalization.map(|name| name.parse()).transpose()
}

/// The pairs of a `vocab` argument.
fn vocab_items<K, V>(vocab: &Bound<'_, PyAny>) -> PyResult<Vec<(K, V)>>
where
    for<'a, 'py> K: FromPyObject<'a, 'py, Error = PyErr>,
    for<'a, 'py> V: FromPyObjectOwned<'py, Error = PyErr>,
{
    let items = match vocab.cast::<PyDict>() {
        Ok(dict) => dict.clone(),
        Err(_) => vocab
            .py()
            .get_type::<PyDict>()
            .call1((vocab,))?
            .cast_into::<PyDict>()?,
    };
    items
        .iter()
        .map(|(key, value)| {
            let pair = || Ok((key.extract()?, value.extract()?));
            pair().map_err(|_: PyErr| {
                exception(
                    key.py(),
                    "ArgumentTypeError",
                    format!("vocab holds the wrong types: {key:?}: {value:?}"),
                )
            })
        })
        .collect()
}

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (vocab, merges, *, split_patterns, normalization=None, added_tokens=Vec::new(),
                        ignore_merges=false, add_prefix_space=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        vocab: &Bound<'_, PyAny>,
        merges: Option<Vec<(Vec<u8>, Vec<u8>)>>,
        split_patterns: Vec<String>,
        normalization: Option<String>,
        added_tokens: Vec<PyAddedToken>,
        ignore_merges: bool,
        add_prefix_space: bool,
    ) -> PyResult<Self> {
        let tokens = vocab_items(vocab)?;
        let rest = Rest {
            split_patterns,
            normalization,
            added_tokens,
            ignore_merges,
            add_prefix_space,
        };
        py.detach(|| rest.build(tokens, merges.as_deref()))
            .map_err(|error| to_python(py, &error))
    }

    #[staticmethod]
    #[pyo3(signature = (vocab, merges, *, split_patterns, normalization=None, added_tokens=Vec::new(),
                        ignore_merges=false, add_prefix_space=false))]
    #[allow(clippy::too_many_arguments)]
    fn from_printable(
        py: Python<'_>,
        vocab: &Bound<'_, PyAny>,
        merges: Vec<(String, String)>,
        split_patterns: Vec<String>,
        normalization: Option<String>,
        added_tokens: Vec<PyAddedToken>,
        ignore_merges: bool,
        add_prefix_space: bool,
    ) -> PyResult<Self> {
        let vocab = vocab_items::<String, u32>(vocab)?;
        let rest = Rest {
            split_patterns,
            normalization,
            added_tokens,
            ignore_merges,
            add_prefix_space,
        };
        py.detach(|| {
            let tokens = tokens_of(vocab, &rest.added_tokens)?;
            let merges = merges_of(merges)?;
            rest.build(tokens, Some(&merges))
        })
        .map_err(|error| to_python(py, &error))
    }

    fn with_added_tokens(&self, py: Python<'_>, added_tokens: Vec<PyAddedToken>) -> PyResult<Self> {
        let added = added_tokens.into_iter().map(to_added).collect();
        let core = self
            .core
            .with_added(added)
            .map_err(|error| to_python(py, &error))?;
        Ok(Self { core })
    }

    #[getter]
    fn vocab<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut tokens: Vec<(u32, &[u8])> = self.core.vocabulary().iter().collect();
        let outside = self.core.added().iter();
        let outside = outside.filter(|token| self.core.vocabulary().token(token.id).is_none());
        tokens.extend(outside.map(|token| (token.id, token.content.as_bytes())));
        tokens.sort_unstable_by_key(|(id, _)| *id);
        to_dict(py, tokens.into_iter())
    }

    #[getter]
    fn merges<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let bytes = |id| PyBytes::new(py, self.core.vocabulary().token(id).unwrap_or_default());
        let merges = self.core.merges().iter();
        merges
            .map(|&(left, right, _)| (bytes(left), bytes(right)))
            .collect()
    }

    #[getter]
    fn split_patterns(&self) -> Vec<String> {
        self.core.settings().split_patterns.clone()
    }

    #[getter]
    fn normalization(&self) -> Option<String> {
        self.core
            .settings()
            .normalization
            .map(|form| form.to_string())
    }

    #[getter]
    fn added_tokens(&self) -> Vec<PyAddedToken> {
        self.core.added().iter().map(from_added).collect()
    }

    #[getter]
    fn ignore_merges(&self) -> bool {
        self.core.settings().ignore_merges
    }

    #[getter]
    fn add_prefix_space(&self) -> bool {
        self.core.settings().add_prefix_space
    }

    #[getter]
    fn vocab_size(&self) -> usize {
        self.core.vocabulary().len()
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    #[getter]
    fn added_ids_in_vocab(&self) -> Vec<u32> {
        let ids = self.core.added().iter().map(|token| token.id);
        ids.filter(|&id| self.core.vocabulary().token(id).is_some())
            .collect()
    }

    fn printable_vocab<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let vocab = PyDict::new(py);
        for (id, token) in self.core.vocabulary().iter() {
            let written = match self.core.added_token(id) {
                Some(token) => token.content.clone(),
                None => to_printable(token),
            };
            if let Some(other) = vocab.get_item(&written)? {
                let message = format!(
                    "the ids {other} and {id} are the same token, {written:?}; a file that names tokens by their text cannot hold both"
                );
                return Err(exception(py, "ModelError", message));
            }
            vocab.set_item(written, id)?;
        }
        Ok(vocab)
    }

    fn printable_merges(&self) -> Vec<(String, String)> {
        let written = |id| to_printable(self.core.vocabulary().token(id).unwrap_or_default());
        let merges = self.core.merges().iter();
        merges
            .map(|&(left, right, _)| (written(left), written(right)))
            .collect()
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let keywords = PyDict::new(py);
        keywords.set_item("split_patterns", self.split_patterns())?;
        keywords.set_item("normalization", self.normalization())?;
        keywords.set_item("added_tokens", self.added_tokens())?;
        keywords.set_item("ignore_merges", self.ignore_merges())?;
        keywords.set_item("add_prefix_space", self.add_prefix_space())?;
        let vocab = to_dict(py, self.core.vocabulary().iter())?;
        Ok(((vocab, self.merges(py)), keywords)
            .into_pyobject(py)?
            .into_any())
    }
}

fn to_dict<'py, 'a>(
    py: Python<'py>,
    tokens: impl Iterator<Item = (u32, &'a [u8])>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (id, token) in tokens {
        dict.set_item(id, PyBytes::new(py, token))?;
    }
    Ok(dict)
}

/// The bytes of a file's vocabulary; an added token stands there as its own text.
fn tokens_of(vocab: Vec<(String, u32)>, added: &[PyAddedToken]) -> Result<Vec<(u32, Vec<u8>)>> {
    let added: HashMap<&str, u32> = added
        .iter()
        .map(|token| (token.0.as_str(), token.1))
        .collect();
    let tokens = vocab.into_iter().map(|(token, id)| {
        if added.get(token.as_str()) == Some(&id) {
            return Ok((id, token.into_bytes()));
        }
        Ok((id, bytes_of(&token)?))
    });
    tokens.collect()
}

fn merges_of(merges: Vec<(String, String)>) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let merges = merges
        .iter()
        .map(|(left, right)| Ok((bytes_of(left)?, bytes_of(right)?)));
    merges.collect()
}

fn bytes_of(token: &str) -> Result<Vec<u8>> {
    from_printable(token).ok_or_else(|| {
        Error::Model(format!(
            "the token {token:?} holds a character that stands for no byte; this vocabulary is not byte-level"
        ))
    })
}

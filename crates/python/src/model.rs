//! `Model`.

use crate::call::{exception, run, shown, OrRaise as _};
use crate::constructors;
use crate::rank_table::RankTable;
use crate::sequence::{byte_pairs, items};
use crate::settings::{
    added_token, added_token_tuple, added_token_tuples, decoder_tuple, each, from_keywords,
    name_of, step_tuple,
};
use crate::token_table::TokenTable;
use bpe_tokenizer_core::error::quoted;
use bpe_tokenizer_core::model::{Alphabet, Model as Core, Settings, Unknown, Vocabulary};
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::reserve::append;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::text::{from_printable, to_printable};
use bpe_tokenizer_core::{Error, Result};
use bpe_tokenizer_formats::settings::ModelSettings;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use pyo3::IntoPyObjectExt;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, HashSet};

#[pyclass(frozen, module = "bpe_tokenizer._core")]
#[derive(Clone)]
pub struct Model {
    pub core: Core,
}

/// The keyword arguments that copy a model.
const KEYWORDS: [&str; 11] = [
    "added_tokens",
    "normalizers",
    "pre_tokenizers",
    "alphabet",
    "byte_fallback",
    "unk_id",
    "fuse_unk",
    "keeps_gaps",
    "requires_all_bytes",
    "ignore_merges",
    "decoder",
];

/// Builds a model with these settings.
fn build(
    settings: ModelSettings,
    make: impl FnOnce(Settings, Vec<AddedToken>) -> Result<Core>,
) -> Result<Model> {
    let core = settings.build(make)?;
    Ok(Model { core })
}

/// The items of a `vocab` argument.
fn vocab_items<K, V>(vocab: &Bound<'_, PyAny>) -> PyResult<Vec<(K, V)>>
where
    for<'a, 'py> K: FromPyObject<'a, 'py, Error = PyErr>,
    for<'a, 'py> V: FromPyObjectOwned<'py>,
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
            let pair = || Ok((key.extract()?, value.extract().map_err(Into::into)?));
            pair().map_err(|_: PyErr| {
                exception(
                    key.py(),
                    "ArgumentTypeError",
                    format!(
                        "vocab holds the wrong types: {}: {}",
                        shown(&key, 50),
                        shown(&value, 50)
                    ),
                )
            })
        })
        .collect()
}

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (vocab, merges, **settings))]
    fn new(
        py: Python<'_>,
        vocab: &Bound<'_, PyAny>,
        merges: Option<Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let tokens = vocab_items::<u32, PyBackedBytes>(vocab)?;
        let tokens = tokens.iter().map(|(id, token)| (*id, token.to_vec()));
        let tokens: Vec<_> = tokens.collect();
        let merges = merges.as_ref().map(byte_pairs).transpose()?;
        let settings = from_keywords(settings)?;
        let make = |settings, added| Core::new(tokens, merges.as_deref(), settings, added);
        run(py, usize::MAX, |_| build(settings, make))
    }

    #[staticmethod]
    #[pyo3(signature = (vocab, merges, **settings))]
    fn from_printable(
        py: Python<'_>,
        vocab: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = items)] merges: Vec<(String, String)>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let vocab = vocab_items::<String, u32>(vocab)?;
        let settings = from_keywords(settings)?;
        run(py, usize::MAX, |_| {
            let bytes_of = bytes_of(settings.alphabet);
            let vocab = vocab.iter().map(|(token, id)| (*id, token.as_str()));
            let tokens = tokens_of(vocab, &settings)?;
            let merges = merges
                .iter()
                .map(|(left, right)| Ok((bytes_of(left)?, bytes_of(right)?)));
            let merges = merges.collect::<Result<Vec<_>>>()?;
            build(settings, |settings, added| {
                Core::new(tokens, Some(&merges), settings, added)
            })
        })
    }

    #[staticmethod]
    #[pyo3(signature = (table, excluded, others = BTreeMap::new(), **settings))]
    fn from_table(
        py: Python<'_>,
        table: &TokenTable,
        excluded: HashSet<String>,
        others: BTreeMap<u32, PyBackedBytes>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let settings = from_keywords(settings)?;
        run(py, usize::MAX, |_| {
            let vocab = table
                .tokens()
                .filter(|(_, token)| !excluded.contains(*token));
            let mut tokens = tokens_of(vocab, &settings)?;
            tokens.extend(others.iter().map(|(id, token)| (*id, token.to_vec())));
            let vocabulary = Vocabulary::new(tokens)?;
            build(settings, |settings, added| {
                Core::with_merge_ids(vocabulary, table.merges(), settings, added)
            })
        })
    }

    #[staticmethod]
    #[pyo3(signature = (table, others, **settings))]
    fn from_ranks(
        py: Python<'_>,
        table: &RankTable,
        others: BTreeMap<u32, PyBackedBytes>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let settings = from_keywords(settings)?;
        run(py, usize::MAX, |_| {
            let mut vocabulary = table.vocabulary.clone();
            if !others.is_empty() {
                let others = others.iter().map(|(id, token)| (*id, &token[..]));
                let mut tokens: Vec<_> = vocabulary.iter().chain(others).collect();
                tokens.sort_by_key(|(id, _)| *id);
                vocabulary = Vocabulary::from_sorted(tokens.into_iter().map(Ok))?.into();
            }
            build(settings, |settings, added| {
                Core::from_ranks(vocabulary, settings, added)
            })
        })
    }

    fn with_added_tokens(&self, added_tokens: &Bound<'_, PyAny>) -> PyResult<Self> {
        let core = self.core.with_added(each(added_tokens, added_token)?);
        let core = core.or_raise(added_tokens.py())?;
        Ok(Self { core })
    }

    fn adding_tokens(&self, added_tokens: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut added = each(added_tokens, added_token)?;
        let core = match added.as_mut_slice() {
            [token] => self.core.adding(std::mem::take(token)),
            _ => {
                let ids: HashSet<u32> = added.iter().map(|token| token.id).collect();
                let others = self.core.added().iter();
                added.extend(others.filter(|other| !ids.contains(&other.id)).cloned());
                self.core.with_added(added)
            }
        };
        let core = core.or_raise(added_tokens.py())?;
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

    #[pyo3(signature = (token_id, /))]
    fn token<'py>(&self, py: Python<'py>, token_id: u32) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let token = self.core.token(token_id);
        token
            .map(|token| constructors::bytes(py, token))
            .transpose()
    }

    #[getter]
    fn merges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let token = |id| self.core.vocabulary().token(id).unwrap_or_default();
        let merges = self.core.merges().iter();
        let merges = merges.map(|&(left, right, _)| {
            let [left, right] = [left, right].map(|id| constructors::bytes(py, token(id)));
            constructors::tuple(py, left?, right?)
        });
        constructors::list(py, merges)
    }

    #[getter]
    fn split_patterns(&self) -> Option<Vec<String>> {
        let (patterns, _) = self.core.settings().plain_patterns()?;
        Some(patterns.into_iter().map(str::to_owned).collect())
    }

    #[getter]
    fn normalization(&self) -> Option<String> {
        let form = self.core.settings().plain_normalization()??;
        Some(form.to_string())
    }

    #[getter]
    fn add_prefix_space(&self) -> bool {
        self.core.settings().pre_tokenizers.first() == Some(&PreTokenizer::PrefixSpace)
    }

    #[getter]
    fn is_plain(&self) -> bool {
        let settings = self.core.settings();
        settings.alphabet == Alphabet::Bytes
            && settings.spaces.is_none()
            && self.core.require_bytes().is_ok()
            && settings.plain_patterns().is_some()
            && settings.plain_normalization().is_some()
    }

    #[getter]
    fn normalizers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let steps = self.core.settings().normalizers.iter();
        steps
            .map(|step| step_tuple(py, "NORMALIZERS", step))
            .collect()
    }

    #[getter]
    fn pre_tokenizers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let steps = self.core.settings().pre_tokenizers.iter();
        steps
            .map(|step| step_tuple(py, "PRE_TOKENIZERS", step))
            .collect()
    }

    #[getter]
    fn alphabet(&self) -> String {
        name_of(self.core.settings().alphabet)
    }

    #[getter]
    fn byte_fallback(&self) -> bool {
        self.core.settings().byte_fallback
    }

    #[getter]
    fn unk_id(&self) -> Option<u32> {
        match self.core.settings().unknown {
            Unknown::Token { id, .. } => Some(id),
            _ => None,
        }
    }

    #[getter]
    fn fuse_unk(&self) -> bool {
        matches!(
            self.core.settings().unknown,
            Unknown::Token { fuse: true, .. }
        )
    }

    #[getter]
    fn keeps_gaps(&self) -> bool {
        self.core.settings().unknown == Unknown::Gap
    }

    #[getter]
    fn requires_all_bytes(&self) -> bool {
        self.core.require_bytes().is_ok()
    }

    #[getter]
    fn decoder<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let spaces = self.core.settings().spaces.as_ref();
        spaces.map(|spaces| decoder_tuple(py, spaces)).transpose()
    }

    #[getter]
    fn added_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        added_token_tuples(py, self.core.added())
    }

    fn added_token<'py>(
        &self,
        py: Python<'py>,
        token_id: u32,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let token = self.core.added_token(token_id);
        token.map(|token| added_token_tuple(py, token)).transpose()
    }

    #[pyo3(signature = (content, /))]
    fn added_token_of<'py>(
        &self,
        py: Python<'py>,
        content: &str,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let token = self.core.added().iter().find(|it| it.content == content);
        token.map(|token| added_token_tuple(py, token)).transpose()
    }

    #[getter]
    fn normal_forms(&self) -> BTreeMap<u32, &str> {
        let ids = self.core.added().iter().map(|token| token.id);
        ids.filter_map(|id| Some((id, self.core.normal_form(id)?)))
            .collect()
    }

    #[getter]
    fn ignore_merges(&self) -> bool {
        self.core.settings().ignore_merges
    }

    #[getter]
    fn vocab_size(&self) -> usize {
        self.core.vocabulary().len()
    }

    #[getter]
    fn n_vocab(&self) -> usize {
        self.core.n_vocab()
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
                None => self.written(token),
            };
            let key = PyString::new(py, &written);
            if let Some(other) = vocab.get_item(&key)? {
                let message = format!(
                    "the ids {other} and {id} are the same token, {}; a file that names tokens by their text cannot hold both",
                    quoted(&written)
                );
                return Err(exception(py, "ModelError", message));
            }
            vocab.set_item(key, constructors::integer(py, id as usize)?)?;
        }
        Ok(vocab)
    }

    fn printable_merges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let written = |id| self.written(self.core.vocabulary().token(id).unwrap_or_default());
        let merges = self.core.merges().iter().map(|&(left, right, _)| {
            let [left, right] = [left, right].map(|id| PyString::new(py, &written(id)));
            constructors::tuple(py, left, right)
        });
        constructors::list(py, merges)
    }

    /// All tokens and merges in bytes, from which programs make a hash.
    fn table_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = table_bytes(&self.core).or_raise(py)?;
        constructors::bytes(py, &bytes)
    }

    #[getter]
    fn settings<'py>(model: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let settings = PyDict::new(model.py());
        for name in KEYWORDS {
            settings.set_item(name, model.getattr(name)?)?;
        }
        Ok(settings)
    }

    fn __getnewargs_ex__<'py>(model: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (model.py(), model.get());
        let vocab = to_dict(py, this.core.vocabulary().iter())?;
        ((vocab, this.merges(py)?), Self::settings(model)?).into_bound_py_any(py)
    }
}

/// Each token with its id and length, and the three ids of each merge.
fn table_bytes(model: &Core) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (id, token) in model.vocabulary().iter() {
        append(&mut bytes, &id.to_le_bytes())?;
        append(&mut bytes, &(token.len() as u64).to_le_bytes())?;
        append(&mut bytes, token)?;
    }
    for &(left, right, merged) in model.merges() {
        for id in [left, right, merged] {
            append(&mut bytes, &id.to_le_bytes())?;
        }
    }
    Ok(bytes)
}

fn to_dict<'py, 'a>(
    py: Python<'py>,
    tokens: impl Iterator<Item = (u32, &'a [u8])>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (id, token) in tokens {
        dict.set_item(
            constructors::integer(py, id as usize)?,
            constructors::bytes(py, token)?,
        )?;
    }
    Ok(dict)
}

impl Model {
    /// A token as files write it.
    fn written(&self, token: &[u8]) -> String {
        match self.core.settings().alphabet {
            Alphabet::Bytes => to_printable(token),
            Alphabet::Characters => String::from_utf8_lossy(token).into_owned(),
        }
    }
}

/// The bytes of a file's vocabulary. An added token is written as its text.
fn tokens_of<'a>(
    vocab: impl Iterator<Item = (u32, &'a str)>,
    settings: &ModelSettings,
) -> Result<Vec<(u32, Vec<u8>)>> {
    let bytes_of = bytes_of(settings.alphabet);
    let added = settings.added_tokens.iter();
    let added = added.map(|token| (token.content.as_str(), token.id));
    let added: FxHashMap<_, _> = added.collect();
    let tokens = vocab.map(|(id, token)| match added.get(token) == Some(&id) {
        true => Ok((id, token.as_bytes().to_vec())),
        false => Ok((id, bytes_of(token)?)),
    });
    tokens.collect()
}

/// Converts a token's string to bytes.
fn bytes_of(alphabet: Alphabet) -> impl Fn(&str) -> Result<Vec<u8>> {
    move |token| {
        let bytes = match alphabet {
            Alphabet::Characters => Some(token.as_bytes().to_vec()),
            Alphabet::Bytes => from_printable(token),
        };
        bytes.ok_or_else(|| {
            let token = quoted(token);
            let problem =
                "holds a character that has no byte value; this vocabulary is not byte-level";
            Error::Model(format!("the token {token} {problem}"))
        })
    }
}

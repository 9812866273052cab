//! The keyword arguments of `Model`, and the named tuples of `bpe_tokenizer.model`, to the core's types and back.

use crate::call::{exception, shown, OrRaise as _};
use crate::constructors;
use crate::sequence::{pattern, patterns};
use bpe_tokenizer_core::error::quoted;
use bpe_tokenizer_core::model::{Alphabet, Settings, Spaces, Strip, Unknown};
use bpe_tokenizer_core::normalize::Normalization;
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::pretokenize::{Behavior, Metaspace, PreTokenizer, Prepend, Split};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::Result;
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

const PREPENDS: [(&str, Prepend); 3] = [
    ("always", Prepend::Always),
    ("first", Prepend::First),
    ("never", Prepend::Never),
];
const STRIPS: [(&str, Strip); 4] = [
    ("none", Strip::No),
    ("one", Strip::One),
    ("first", Strip::FirstToken),
    ("joined", Strip::Joined),
];
pub const ALPHABETS: [(&str, Alphabet); 2] = [
    ("bytes", Alphabet::Bytes),
    ("characters", Alphabet::Characters),
];

/// The value of a name. The error lists the known names.
pub fn value_of<T: Copy>(
    py: Python<'_>,
    what: &str,
    name: &str,
    known: &[(&str, T)],
) -> PyResult<T> {
    let found = known.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<String> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
        let message = format!(
            "unknown {what} {}; use one of {}",
            quoted(name),
            names.join(", ")
        );
        exception(py, "OptionError", message)
    })
}

pub fn name_of<T: PartialEq>(value: &T, known: &[(&'static str, T)]) -> &'static str {
    let found = known.iter().find(|(_, known)| known == value);
    found.map_or("", |(name, _)| *name)
}

pub fn parse_form(normalization: Option<String>) -> Result<Option<Normalization>> {
    normalization.map(|name| name.parse()).transpose()
}

/// The arguments of a model other than its vocabulary and merges.
pub struct Options {
    pub settings: Settings,
    pub requires_all_bytes: bool,
    pub added: Vec<AddedToken>,
}

pub fn from_keywords(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let (mut settings, mut added) = (Settings::default(), Vec::new());
    let (mut unk_id, mut fuse_unk, mut keeps_gaps, mut all_bytes) = (None, false, false, true);
    let mut prefix_space = false;
    for (key, value) in keywords.into_iter().flatten() {
        let name: String = key.extract()?;
        match name.as_str() {
            "added_tokens" => added = each(&value, added_token)?,
            "normalization" => {
                let form = parse_form(value.extract()?).or_raise(value.py())?;
                settings.normalizers.extend(form.map(Normalizer::Form));
            }
            "normalizers" => settings.normalizers.extend(each(&value, normalizer)?),
            "split_patterns" => {
                let steps = patterns(&value)?.into_iter().map(PreTokenizer::isolated);
                settings.pre_tokenizers.extend(steps);
            }
            "pre_tokenizers" => settings.pre_tokenizers.extend(each(&value, pre_tokenizer)?),
            "add_prefix_space" => prefix_space = value.extract()?,
            "alphabet" => {
                settings.alphabet = value_of(value.py(), &name, value.extract()?, &ALPHABETS)?;
            }
            "byte_fallback" => settings.byte_fallback = value.extract()?,
            "unk_id" => unk_id = value.extract()?,
            "fuse_unk" => fuse_unk = value.extract()?,
            "keeps_gaps" => keeps_gaps = value.extract()?,
            "requires_all_bytes" => all_bytes = value.extract()?,
            "ignore_merges" => settings.ignore_merges = value.extract()?,
            "decoder" if value.is_none() => settings.spaces = None,
            "decoder" => settings.spaces = Some(spaces(&value)?),
            _ => {
                let message = format!("Model() has no argument {}", quoted(&name));
                return Err(exception(value.py(), "ArgumentTypeError", message));
            }
        }
    }
    if prefix_space {
        settings.pre_tokenizers.insert(0, PreTokenizer::PrefixSpace);
    }
    settings.unknown = match unk_id {
        Some(id) => Unknown::Token { id, fuse: fuse_unk },
        None if keeps_gaps => Unknown::Gap,
        None => Unknown::Dropped,
    };
    Ok(Options {
        requires_all_bytes: all_bytes && settings.alphabet == Alphabet::Bytes,
        settings,
        added,
    })
}

pub fn each<'py, T>(
    steps: &Bound<'py, PyAny>,
    read: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    steps.try_iter()?.map(|step| read(&step?)).collect()
}

fn field<'py, T: FromPyObjectOwned<'py, Error = PyErr>>(
    tuple: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<T> {
    tuple.getattr(name)?.extract()
}

fn choice<T: Copy>(tuple: &Bound<'_, PyAny>, name: &str, known: &[(&str, T)]) -> PyResult<T> {
    value_of(tuple.py(), name, &field::<String>(tuple, name)?, known)
}

fn unknown(step: &Bound<'_, PyAny>) -> PyErr {
    let shown = shown(step, 100);
    let message = format!("unknown step {shown}; use the steps of bpe_tokenizer.model");
    exception(step.py(), "OptionError", message)
}

fn normalizer(step: &Bound<'_, PyAny>) -> PyResult<Normalizer> {
    let kind: String = field(step, "type")?;
    Ok(match kind.as_str() {
        "Lowercase" => Normalizer::Lowercase,
        "StripAccents" => Normalizer::StripAccents,
        "Strip" => Normalizer::Strip {
            left: field(step, "strip_left")?,
            right: field(step, "strip_right")?,
        },
        "Prepend" => Normalizer::Prepend(field(step, "prepend")?),
        "Replace" => Normalizer::Replace {
            pattern: field(step, "pattern")?,
            content: field(step, "content")?,
        },
        form => Normalizer::Form(form.parse().map_err(|_| unknown(step))?),
    })
}

fn pre_tokenizer(step: &Bound<'_, PyAny>) -> PyResult<PreTokenizer> {
    let kind: String = field(step, "type")?;
    Ok(match kind.as_str() {
        "Split" | "SplitBytes" => PreTokenizer::Split(Split {
            pattern: pattern(&step.getattr("pattern")?)?,
            behavior: choice(step, "behavior", &Behavior::NAMES)?,
            invert: field(step, "invert")?,
            bytes: kind == "SplitBytes",
        }),
        "PrefixSpace" => PreTokenizer::PrefixSpace,
        "Metaspace" => PreTokenizer::Metaspace(Metaspace {
            replacement: field(step, "replacement")?,
            prepend: choice(step, "prepend_scheme", &PREPENDS)?,
            split: field(step, "split")?,
        }),
        _ => return Err(unknown(step)),
    })
}

fn spaces(decoder: &Bound<'_, PyAny>) -> PyResult<Spaces> {
    Ok(Spaces {
        space: field(decoder, "space")?,
        byte_fallback: field(decoder, "byte_fallback")?,
        strip: choice(decoder, "strip", &STRIPS)?,
    })
}

pub fn added_token(token: &Bound<'_, PyAny>) -> PyResult<AddedToken> {
    let flag = |name| token.getattr(name)?.extract();
    Ok(AddedToken {
        content: token.getattr("content")?.extract()?,
        id: token.getattr("id")?.extract()?,
        special: flag("special")?,
        single_word: flag("single_word")?,
        lstrip: flag("lstrip")?,
        rstrip: flag("rstrip")?,
        normalized: flag("normalized")?,
    })
}

/// A named tuple of `bpe_tokenizer.model`.
fn named_tuple<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("bpe_tokenizer.model")?;
    module.getattr(class)?.call1(fields)
}

pub fn normalizer_tuple<'py>(py: Python<'py>, step: &Normalizer) -> PyResult<Bound<'py, PyAny>> {
    match step {
        Normalizer::Form(form) => named_tuple(py, "PlainNormalizer", (form.to_string(),)),
        Normalizer::Lowercase => named_tuple(py, "PlainNormalizer", ("Lowercase",)),
        Normalizer::StripAccents => named_tuple(py, "PlainNormalizer", ("StripAccents",)),
        Normalizer::Strip { left, right } => named_tuple(py, "Strip", ("Strip", *left, *right)),
        Normalizer::Prepend(text) => named_tuple(py, "Prepend", ("Prepend", text)),
        Normalizer::Replace { pattern, content } => {
            named_tuple(py, "Replace", ("Replace", pattern, content))
        }
    }
}

pub fn pre_tokenizer_tuple<'py>(
    py: Python<'py>,
    step: &PreTokenizer,
) -> PyResult<Bound<'py, PyAny>> {
    match step {
        PreTokenizer::Split(split) => {
            let kind = if split.bytes { "SplitBytes" } else { "Split" };
            let behavior = name_of(&split.behavior, &Behavior::NAMES);
            named_tuple(py, "Split", (kind, &split.pattern, behavior, split.invert))
        }
        PreTokenizer::PrefixSpace => named_tuple(py, "PrefixSpace", ()),
        PreTokenizer::Metaspace(it) => {
            let scheme = name_of(&it.prepend, &PREPENDS);
            named_tuple(
                py,
                "Metaspace",
                ("Metaspace", it.replacement, scheme, it.split),
            )
        }
    }
}

pub fn decoder_tuple<'py>(py: Python<'py>, spaces: &Spaces) -> PyResult<Bound<'py, PyAny>> {
    let strip = name_of(&spaces.strip, &STRIPS);
    named_tuple(py, "Decoder", (spaces.space, spaces.byte_fallback, strip))
}

fn fields_of(token: &AddedToken) -> (&str, u32, bool, bool, bool, bool, bool) {
    (
        &token.content,
        token.id,
        token.special,
        token.single_word,
        token.lstrip,
        token.rstrip,
        token.normalized,
    )
}

pub fn added_token_tuple<'py>(py: Python<'py>, token: &AddedToken) -> PyResult<Bound<'py, PyAny>> {
    named_tuple(py, "AddedToken", fields_of(token))
}

pub fn added_token_tuples<'py>(
    py: Python<'py>,
    tokens: &[AddedToken],
) -> PyResult<Bound<'py, PyList>> {
    let class = &py.import("bpe_tokenizer.model")?.getattr("AddedToken")?;
    // As the class's `_make`, but without a call of a Python function for each of many tokens.
    let new = py.get_type::<PyTuple>().getattr("__new__")?;
    let tokens = tokens.iter();
    constructors::list(py, tokens.map(|token| new.call1((class, fields_of(token)))))
}

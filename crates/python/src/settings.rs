//! The keyword arguments of `Model` to the core's settings and back.

use crate::call::exception;
use bpe_tokenizer_core::error::{quoted, shorten};
use bpe_tokenizer_core::model::{Alphabet, Model, Settings, Spaces, Strip, Unknown};
use bpe_tokenizer_core::normalize::Normalization;
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::pretokenize::{Behavior, PreTokenizer, Prepend};
use bpe_tokenizer_core::Result;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::IntoPyObjectExt;

const BEHAVIORS: [(&str, Behavior); 5] = [
    ("Isolated", Behavior::Isolated),
    ("Removed", Behavior::Removed),
    ("MergedWithPrevious", Behavior::MergedWithPrevious),
    ("MergedWithNext", Behavior::MergedWithNext),
    ("Contiguous", Behavior::Contiguous),
];
const PREPENDS: [(&str, Prepend); 3] = [
    ("always", Prepend::Always),
    ("first", Prepend::First),
    ("never", Prepend::Never),
];
const STRIPS: [(&str, Strip); 3] = [
    ("none", Strip::No),
    ("one", Strip::One),
    ("first", Strip::FirstToken),
];
const ALPHABETS: [(&str, Alphabet); 2] = [
    ("bytes", Alphabet::Bytes),
    ("characters", Alphabet::Characters),
];

/// The value of a name. The error lists the known names.
fn value_of<T: Copy>(py: Python<'_>, what: &str, name: &str, known: &[(&str, T)]) -> PyResult<T> {
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

fn name_of<T: PartialEq>(value: &T, known: &[(&'static str, T)]) -> &'static str {
    let found = known.iter().find(|(_, known)| known == value);
    found.map_or("", |(name, _)| *name)
}

pub fn parse_form(normalization: Option<String>) -> Result<Option<Normalization>> {
    normalization.map(|name| name.parse()).transpose()
}

/// The settings, and whether the vocabulary must have a token for every byte.
pub fn from_keywords(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<(Settings, bool)> {
    let mut settings = Settings::default();
    let (mut unk_id, mut fuse_unk, mut keeps_gaps, mut all_bytes) = (None, false, false, true);
    let mut prefix_space = false;
    for (key, value) in keywords.into_iter().flatten() {
        let name: String = key.extract()?;
        match name.as_str() {
            "normalization" => {
                let form: Option<String> = value.extract()?;
                let form = parse_form(form)
                    .map_err(|error| exception(value.py(), "OptionError", error.to_string()))?;
                settings.normalizers.extend(form.map(Normalizer::Form));
            }
            "normalizers" => settings.normalizers.extend(each(&value, normalizer)?),
            "split_patterns" => {
                let patterns: Vec<String> = value.extract()?;
                let steps = patterns.into_iter().map(PreTokenizer::isolated);
                settings.pre_tokenizers.extend(steps);
            }
            "pre_tokenizers" => settings.pre_tokenizers.extend(each(&value, pre_tokenizer)?),
            "add_prefix_space" => prefix_space = value.extract()?,
            "alphabet" => {
                let name: String = value.extract()?;
                settings.alphabet = value_of(value.py(), "alphabet", &name, &ALPHABETS)?;
            }
            "byte_fallback" => settings.byte_fallback = value.extract()?,
            "unk_id" => unk_id = value.extract()?,
            "fuse_unk" => fuse_unk = value.extract()?,
            "keeps_gaps" => keeps_gaps = value.extract()?,
            "requires_all_bytes" => all_bytes = value.extract()?,
            "ignore_merges" => settings.ignore_merges = value.extract()?,
            "decoder" => settings.spaces = optional(&value, spaces)?,
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
    Ok((settings, all_bytes))
}

fn each<'py, T>(
    steps: &Bound<'py, PyAny>,
    read: impl Fn(&Bound<'py, PyTuple>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    steps.try_iter()?.map(|step| read(step?.cast()?)).collect()
}

fn optional<'py, T>(
    value: &Bound<'py, PyAny>,
    read: impl Fn(&Bound<'py, PyTuple>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    if value.is_none() {
        return Ok(None);
    }
    read(value.cast()?).map(Some)
}

fn kind(step: &Bound<'_, PyTuple>) -> PyResult<String> {
    step.get_item(0)?.extract()
}

fn unknown(step: &Bound<'_, PyTuple>) -> PyErr {
    let step_shown = shorten(&format!("{step:?}"), 100);
    let message = format!("unknown step {step_shown}; _core.pyi lists the steps of a model");
    exception(step.py(), "OptionError", message)
}

fn normalizer(step: &Bound<'_, PyTuple>) -> PyResult<Normalizer> {
    Ok(match kind(step)?.as_str() {
        "Lowercase" => Normalizer::Lowercase,
        "StripAccents" => Normalizer::StripAccents,
        "Strip" => {
            let (_, left, right): (String, bool, bool) = step.extract()?;
            Normalizer::Strip { left, right }
        }
        "Prepend" => Normalizer::Prepend(step.extract::<(String, String)>()?.1),
        "Replace" => {
            let (_, pattern, content): (String, String, String) = step.extract()?;
            Normalizer::Replace { pattern, content }
        }
        form => Normalizer::Form(form.parse().map_err(|_| unknown(step))?),
    })
}

fn pre_tokenizer(step: &Bound<'_, PyTuple>) -> PyResult<PreTokenizer> {
    let kind = kind(step)?;
    Ok(match kind.as_str() {
        "Split" | "SplitBytes" => {
            let (_, pattern, behavior, invert): (String, String, String, bool) = step.extract()?;
            PreTokenizer::Split {
                pattern,
                behavior: value_of(step.py(), "behavior", &behavior, &BEHAVIORS)?,
                invert,
                bytes: kind == "SplitBytes",
            }
        }
        "PrefixSpace" => PreTokenizer::PrefixSpace,
        "Metaspace" => {
            let (_, replacement, prepend, split): (String, char, String, bool) = step.extract()?;
            PreTokenizer::Metaspace {
                replacement,
                prepend: value_of(step.py(), "prepend scheme", &prepend, &PREPENDS)?,
                split,
            }
        }
        _ => return Err(unknown(step)),
    })
}

fn spaces(decoder: &Bound<'_, PyTuple>) -> PyResult<Spaces> {
    let (space, byte_fallback, strip): (char, bool, String) = decoder.extract()?;
    Ok(Spaces {
        space,
        byte_fallback,
        strip: value_of(decoder.py(), "strip", &strip, &STRIPS)?,
    })
}

/// The value of a setting, in the form of its keyword argument.
pub fn keyword<'py>(py: Python<'py>, core: &Model, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let settings = core.settings();
    match name {
        "normalizers" => tuples(py, &settings.normalizers, normalizer_tuple),
        "pre_tokenizers" => tuples(py, &settings.pre_tokenizers, pre_tokenizer_tuple),
        "alphabet" => name_of(&settings.alphabet, &ALPHABETS).into_bound_py_any(py),
        "byte_fallback" => settings.byte_fallback.into_bound_py_any(py),
        "unk_id" => match settings.unknown {
            Unknown::Token { id, .. } => Some(id),
            _ => None,
        }
        .into_bound_py_any(py),
        "fuse_unk" => {
            matches!(settings.unknown, Unknown::Token { fuse: true, .. }).into_bound_py_any(py)
        }
        "keeps_gaps" => (settings.unknown == Unknown::Gap).into_bound_py_any(py),
        "requires_all_bytes" => core.require_bytes().is_ok().into_bound_py_any(py),
        "ignore_merges" => settings.ignore_merges.into_bound_py_any(py),
        _ => match &settings.spaces {
            Some(spaces) => (
                spaces.space,
                spaces.byte_fallback,
                name_of(&spaces.strip, &STRIPS),
            )
                .into_bound_py_any(py),
            None => Ok(py.None().into_bound(py)),
        },
    }
}

/// The keyword arguments that copy a model's settings.
pub const KEYWORDS: [&str; 10] = [
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

fn tuples<'py, T>(
    py: Python<'py>,
    steps: &[T],
    write: impl Fn(Python<'py>, &T) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let steps = steps.iter().map(|step| write(py, step));
    Ok(PyList::new(py, steps.collect::<PyResult<Vec<_>>>()?)?.into_any())
}

fn normalizer_tuple<'py>(py: Python<'py>, step: &Normalizer) -> PyResult<Bound<'py, PyAny>> {
    match step {
        Normalizer::Form(form) => (form.to_string(),).into_bound_py_any(py),
        Normalizer::Lowercase => ("Lowercase",).into_bound_py_any(py),
        Normalizer::StripAccents => ("StripAccents",).into_bound_py_any(py),
        Normalizer::Strip { left, right } => ("Strip", *left, *right).into_bound_py_any(py),
        Normalizer::Prepend(text) => ("Prepend", text).into_bound_py_any(py),
        Normalizer::Replace { pattern, content } => {
            ("Replace", pattern, content).into_bound_py_any(py)
        }
    }
}

fn pre_tokenizer_tuple<'py>(py: Python<'py>, step: &PreTokenizer) -> PyResult<Bound<'py, PyAny>> {
    match step {
        PreTokenizer::Split {
            pattern,
            behavior,
            invert,
            bytes,
        } => {
            let kind = if *bytes { "SplitBytes" } else { "Split" };
            (kind, pattern, name_of(behavior, &BEHAVIORS), *invert).into_bound_py_any(py)
        }
        PreTokenizer::PrefixSpace => ("PrefixSpace",).into_bound_py_any(py),
        PreTokenizer::Metaspace {
            replacement,
            prepend,
            split,
        } => {
            let replacement = PyString::new(py, replacement.encode_utf8(&mut [0; 4]));
            (
                "Metaspace",
                replacement,
                name_of(prepend, &PREPENDS),
                *split,
            )
                .into_bound_py_any(py)
        }
    }
}

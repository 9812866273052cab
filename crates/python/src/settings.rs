//! The keyword arguments of `Model`, and the named tuples of `bpe_tokenizer.model`, to the core's types and back.

use crate::call::exception;
use crate::constructors;
use crate::sequence::patterns;
use bpe_tokenizer_core::error::quoted;
use bpe_tokenizer_core::model::Spaces;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_formats::settings::ModelSettings;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde::Serialize;

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

/// The keyword arguments of a model other than its vocabulary and merges. Python's `json` writes a named tuple as an array.
pub fn from_keywords(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<ModelSettings> {
    let Some(keywords) = keywords else {
        return Ok(ModelSettings::default());
    };
    let (py, others) = (keywords.py(), keywords.copy()?);
    let mut added_tokens = Vec::new();
    if let Some(tokens) = others.get_item("added_tokens")? {
        // Of which there may be many.
        added_tokens = each(&tokens, added_token)?;
        others.del_item("added_tokens")?;
    }
    if let Some(given) = others.get_item("split_patterns")? {
        others.set_item("split_patterns", patterns(&given)?)?;
    }
    let json = py.import("json")?.call_method1("dumps", (others,));
    let json = json.map_err(|error| {
        let message = format!("the settings of a model: {}", error.value(py));
        exception(py, "ArgumentTypeError", message)
    })?;
    let json = serde_json::from_str(json.extract()?);
    let settings = json.and_then(serde_json::from_value::<ModelSettings>);
    let mut settings = settings.map_err(|error| {
        exception(
            py,
            "OptionError",
            format!("the settings of a model: {error}"),
        )
    })?;
    settings.added_tokens = added_tokens;
    Ok(settings)
}

pub fn each<'py, T>(
    steps: &Bound<'py, PyAny>,
    read: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    steps.try_iter()?.map(|step| read(&step?)).collect()
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

/// A step as its named tuple. `examples` is the mapping of `bpe_tokenizer.model` that has one of each type.
pub fn step_tuple<'py>(
    py: Python<'py>,
    examples: &str,
    step: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = fields(py, step)?;
    let examples = py.import("bpe_tokenizer.model")?.getattr(examples)?;
    let example = examples.get_item(fields.get_item("type")?)?;
    example.get_type().call((), Some(&fields))
}

pub fn decoder_tuple<'py>(py: Python<'py>, spaces: &Spaces) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("bpe_tokenizer.model")?.getattr("Decoder")?;
    class.call((), Some(&fields(py, spaces)?))
}

/// The name of a choice.
pub fn name_of(choice: impl Serialize) -> String {
    let name = serde_json::to_value(choice).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

/// The fields of a value, by name.
fn fields<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyDict>> {
    let json = serde_json::to_string(value)
        .map_err(|error| exception(py, "ModelError", error.to_string()))?;
    let fields = py.import("json")?.call_method1("loads", (json,))?;
    Ok(fields.cast_into()?)
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
    let class = py.import("bpe_tokenizer.model")?.getattr("AddedToken")?;
    class.call1(fields_of(token))
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

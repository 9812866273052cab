//! `bpe_tokenizer.model.AddedToken`, the package's named tuple, to the core's and back.

use bpe_tokenizer_core::special::AddedToken;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyType};

pub struct PyAddedToken(pub AddedToken);

impl<'py> FromPyObject<'_, 'py> for PyAddedToken {
    type Error = PyErr;

    fn extract(token: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let flag = |name| token.getattr(name)?.extract();
        Ok(Self(AddedToken {
            content: token.getattr("content")?.extract()?,
            id: token.getattr("id")?.extract()?,
            special: flag("special")?,
            single_word: flag("single_word")?,
            lstrip: flag("lstrip")?,
            rstrip: flag("rstrip")?,
            normalized: flag("normalized")?,
        }))
    }
}

pub fn to_core(tokens: Vec<PyAddedToken>) -> Vec<AddedToken> {
    tokens.into_iter().map(|token| token.0).collect()
}

pub fn to_list<'py>(py: Python<'py>, tokens: &[AddedToken]) -> PyResult<Bound<'py, PyList>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "bpe_tokenizer.model", "AddedToken")?;
    let list = PyList::empty(py);
    for token in tokens {
        list.append(class.call1((
            &token.content,
            token.id,
            token.special,
            token.single_word,
            token.lstrip,
            token.rstrip,
            token.normalized,
        ))?)?;
    }
    Ok(list)
}

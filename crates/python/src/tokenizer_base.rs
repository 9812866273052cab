//! The base class of `BPETokenizer`: its state, where the direct methods find the encoder without a look-up of attributes.

use crate::encoder::Encoder;
use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

#[pyclass(subclass, module = "bpe_tokenizer._core")]
pub struct TokenizerBase {
    /// A `CompiledModel` or an `UntrainedModel`; None before `__init__`.
    state: Option<Py<PyAny>>,
    /// The encoder of a `CompiledModel`.
    encoder: Option<Py<Encoder>>,
}

impl TokenizerBase {
    /// The `CompiledModel` and its encoder, of a tokenizer that has a vocabulary.
    pub fn compiled<'py>(
        &self,
        py: Python<'py>,
    ) -> Option<(Bound<'py, PyAny>, Bound<'py, Encoder>)> {
        let (state, encoder) = self.state.as_ref().zip(self.encoder.as_ref())?;
        Some((state.bind(py).clone(), encoder.bind(py).clone()))
    }
}

#[pymethods]
impl TokenizerBase {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            state: None,
            encoder: None,
        }
    }

    #[getter(_state)]
    fn state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let state = self.state.as_ref().map(|state| state.clone_ref(py));
        state.ok_or_else(|| PyAttributeError::new_err("_state"))
    }

    #[setter(_state)]
    fn set_state(slf: &Bound<'_, Self>, state: Bound<'_, PyAny>) {
        // An `UntrainedModel` has no encoder: it raises an error.
        let encoder = state.getattr(intern!(state.py(), "encoder")).ok();
        let encoder = encoder.and_then(|it| Some(it.cast_into_exact().ok()?.unbind()));
        let mut base = slf.borrow_mut();
        let old = (base.state.replace(state.unbind()), base.encoder.take());
        base.encoder = encoder;
        // To drop the old ones may run Python, and so other threads, which read the state.
        drop(base);
        drop(old);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.state)?;
        visit.call(&self.encoder)
    }

    fn __clear__(&mut self) {
        (self.state, self.encoder) = (None, None);
    }
}

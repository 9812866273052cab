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
    /// The encoder of a `CompiledModel`, once it is made.
    encoder: Option<Py<Encoder>>,
}

/// The encoder of a `CompiledModel`, which makes it at the first use. An `UntrainedModel` has none: it raises an error.
fn encoder_of(state: &Bound<'_, PyAny>) -> Option<Py<Encoder>> {
    let encoder = state.getattr(intern!(state.py(), "encoder")).ok()?;
    Some(encoder.cast_into_exact().ok()?.unbind())
}

impl TokenizerBase {
    /// The `CompiledModel` and its encoder, of a tokenizer that has a vocabulary.
    pub fn compiled<'py>(
        base: &Bound<'py, Self>,
    ) -> Option<(Bound<'py, PyAny>, Bound<'py, Encoder>)> {
        let py = base.py();
        let state = {
            let base = base.try_borrow().ok()?;
            let state = base.state.as_ref()?.bind(py).clone();
            if let Some(encoder) = &base.encoder {
                return Some((state, encoder.bind(py).clone()));
            }
            state
        };
        // Without a borrow: other threads run, and may set the state.
        let encoder = encoder_of(&state)?;
        if let Ok(mut base) = base.try_borrow_mut() {
            if base.state.as_ref().is_some_and(|now| now.is(&state)) {
                base.encoder = Some(encoder.clone_ref(py));
            }
        }
        Some((state, encoder.into_bound(py)))
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
        let mut base = slf.borrow_mut();
        let old = (base.state.replace(state.unbind()), base.encoder.take());
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

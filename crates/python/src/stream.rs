//! `EncodeStream` and `DecodeStream`.

use crate::call::run;
use crate::constructors;
use crate::encoder::{decode_options, Encoder};
use crate::ids::PyIds;
use crate::sequence;
use crate::text::{PySpecial, PyText};
use bpe_tokenizer_core::decoder::DecodeStream as CoreDecoder;
use bpe_tokenizer_core::encoder::EncodeStream as CoreEncoder;
use bpe_tokenizer_core::reserve;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

#[pyclass(module = "bpe_tokenizer._core")]
pub struct EncodeStream {
    encoder: Py<Encoder>,
    stream: CoreEncoder,
}

#[pymethods]
impl EncodeStream {
    #[new]
    #[pyo3(signature = (encoder, special=PySpecial::none()))]
    fn new(py: Python<'_>, encoder: Py<Encoder>, special: PySpecial) -> PyResult<Self> {
        let stream = run(py, 0, |_| CoreEncoder::new(&encoder.get().core, &special.0))?;
        Ok(Self { encoder, stream })
    }

    #[pyo3(signature = (text, ends=false))]
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        text: PyText,
        ends: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = self.ids(py, &text, ends)?;
        self.encoder.get().list_of(py, ids)
    }

    #[pyo3(signature = (text, ends=false))]
    fn push_numpy<'py>(
        &mut self,
        py: Python<'py>,
        text: PyText,
        ends: bool,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let ids = self.ids(py, &text, ends)?;
        self.encoder.get().array_of(py, ids)
    }
}

impl EncodeStream {
    fn ids(&mut self, py: Python<'_>, text: &PyText, ends: bool) -> PyResult<Vec<u32>> {
        let encoder = self.encoder.get();
        let text = text.expect_str(py)?;
        // The held text may be long.
        let size = if ends { usize::MAX } else { text.len() };
        run(py, size, |interrupt| {
            let mut ids = encoder.room_for_text(text.len(), text.len());
            self.stream
                .push(&encoder.core, text, ends, &mut ids, interrupt)?;
            Ok(ids)
        })
    }
}

/// Memory for a byte of text in Python: in two vectors, in `bytes`, and in a `str` at most four.
const TEXT_PER_BYTE: usize = 7;

#[pyclass(module = "bpe_tokenizer._core")]
pub struct DecodeStream {
    encoder: Py<Encoder>,
    stream: CoreDecoder,
}

#[pymethods]
impl DecodeStream {
    #[new]
    #[pyo3(signature = (encoder, skip_special_tokens=false, replaces_broken=false))]
    fn new(
        encoder: Py<Encoder>,
        #[pyo3(from_py_with = sequence::skip_special_tokens)] skip_special_tokens: bool,
        replaces_broken: bool,
    ) -> Self {
        let stream = CoreDecoder::new(decode_options(skip_special_tokens, replaces_broken));
        Self { encoder, stream }
    }

    fn step<'py>(&mut self, py: Python<'py>, ids: PyIds) -> PyResult<Bound<'py, PyBytes>> {
        let encoder = self.encoder.get();
        let bytes = run(py, ids.0.len(), |_| {
            // A step changes the stream, so first check that there is memory for its text.
            let bytes = encoder.decoder.most_bytes(&ids.0);
            reserve::with_capacity::<u8>(TEXT_PER_BYTE * bytes)?;
            self.stream.step(&encoder.decoder, &ids.0)
        })?;
        constructors::bytes(py, &bytes)
    }

    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let decoder = &self.encoder.get().decoder;
        let bytes = run(py, 0, |_| self.stream.finish(decoder))?;
        constructors::bytes(py, &bytes)
    }
}

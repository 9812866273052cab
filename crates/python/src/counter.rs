//! `PieceCounter`.

use crate::call::{exception, run, run_with_callback, to_python};
use crate::settings::parse_form;
use crate::text::PyText;
use bpe_tokenizer_core::encoder::Text;
use bpe_tokenizer_core::train::counts::{Counted, Counter};
use bpe_tokenizer_core::train::merges::{learn, MergeOptions, TieBreak};
use bpe_tokenizer_core::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct PieceCounter {
    counter: Counter,
    counted: Mutex<Counted>,
}

impl PieceCounter {
    /// A panic while counting leaves counts that are too low but sound.
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&Counted) -> Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| read(&self.counted()))
            .map_err(|error| to_python(py, &error))
    }
}

type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pymethods]
impl PieceCounter {
    #[new]
    #[pyo3(signature = (*, split_patterns, normalization=None, special_tokens=Vec::new(), threads=0))]
    fn new(
        py: Python<'_>,
        split_patterns: Vec<String>,
        normalization: Option<String>,
        special_tokens: Vec<String>,
        threads: usize,
    ) -> PyResult<Self> {
        let counter = parse_form(normalization)
            .and_then(|form| Counter::new(&split_patterns, form, special_tokens, threads))
            .map_err(|error| to_python(py, &error))?;
        Ok(Self {
            counter,
            counted: Mutex::default(),
        })
    }

    fn add_texts(&self, py: Python<'_>, texts: Vec<PyText>) -> PyResult<()> {
        run(py, usize::MAX, |interrupt| {
            let mut counted = self.counted();
            let documents = counted.documents;
            let texts = (documents..)
                .zip(&texts)
                .map(|(document, text)| as_str(text, document))
                .collect::<Result<Vec<&str>>>()?;
            self.counter.add_texts(&texts, &mut counted, interrupt)
        })
    }

    #[pyo3(signature = (path, progress=None))]
    fn add_file(&self, py: Python<'_>, path: String, progress: Option<Py<PyAny>>) -> PyResult<()> {
        run_with_callback(py, progress, |interrupt, call| {
            let file = File::open(&path).map_err(|source| Error::Read {
                path: path.clone(),
                source,
            })?;
            let mut counted = self.counted();
            self.counter
                .add_file(file, &path, &mut counted, interrupt, &mut |bytes| {
                    call(&[bytes])
                })
        })
    }

    #[getter]
    fn documents(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |counted| Ok(counted.documents))
    }

    #[getter]
    fn pieces(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |counted| counted.counts.total())
    }

    #[getter]
    fn distinct(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |counted| Ok(counted.counts.len()))
    }

    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyBytes>, u64)>> {
        let counts = self.with(py, |counted| {
            let counts = counted.counts.iter();
            let mut counts: Vec<_> = counts
                .map(|(piece, count)| (piece.to_vec(), count))
                .collect();
            counts.sort_unstable();
            Ok(counts)
        })?;
        let counts = counts.into_iter();
        Ok(counts
            .map(|(piece, count)| (PyBytes::new(py, &piece), count))
            .collect())
    }

    #[pyo3(signature = (*, vocab_size, min_frequency=2, tie_break="largest", reserved=Vec::new(),
                        max_token_length=None, progress=None))]
    #[allow(clippy::too_many_arguments)]
    fn train<'py>(
        &self,
        py: Python<'py>,
        vocab_size: u32,
        min_frequency: u64,
        tie_break: &str,
        reserved: Vec<u32>,
        max_token_length: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyDict>, Vec<Pair<'py>>)> {
        let tie_break = match tie_break {
            "largest" => TieBreak::Largest,
            "huggingface" => TieBreak::HuggingFace,
            _ => {
                let message =
                    format!("tie_break must be \"largest\" or \"huggingface\", not {tie_break:?}");
                return Err(exception(py, "OptionError", message));
            }
        };
        let options = MergeOptions {
            vocab_size,
            reserved,
            min_frequency,
            tie_break,
            max_token_length,
        };
        let learned = run_with_callback(py, progress, |interrupt, call| {
            let counted = self.counted();
            learn(
                counted.counts.iter(),
                &options,
                interrupt,
                &mut |learned, wanted| {
                    call(&[learned as u64, wanted as u64]);
                },
            )
        })?;
        let vocab = PyDict::new(py);
        for byte in 0..=255u8 {
            vocab.set_item(byte, PyBytes::new(py, &[byte]))?;
        }
        for (id, token) in &learned.tokens {
            vocab.set_item(id, PyBytes::new(py, token))?;
        }
        let bytes = |id: u32| -> PyResult<Bound<'py, PyBytes>> {
            vocab
                .get_item(id)?
                .and_then(|token| token.cast_into().ok())
                .ok_or_else(|| {
                    exception(py, "TokenizerError", format!("id {id} was never learned"))
                })
        };
        let merges = learned.merges.iter();
        let merges = merges.map(|&(left, right, _)| Ok((bytes(left)?, bytes(right)?)));
        let merges = merges.collect::<PyResult<_>>()?;
        Ok((vocab, merges))
    }
}

/// A document's text, or where it is not UTF-8.
fn as_str(text: &PyText, document: u64) -> Result<&str> {
    match text.as_text() {
        Text::Str(text) => Ok(text),
        Text::Bytes(bytes) => std::str::from_utf8(bytes).map_err(|error| Error::NotUtf8 {
            source_name: format!("document {document}"),
            byte: error.valid_up_to() as u64,
        }),
    }
}

//! `Encoder`.

use crate::call::{exception, run, to_python};
use crate::ids::{Integers, PyIds};
use crate::model::Model;
use crate::text::{PySpecial, PyText};
use bpe_tokenizer_core::decoder::{decode, Broken};
use bpe_tokenizer_core::encoder::{Encoder as Core, Special};
use bpe_tokenizer_core::{batch, Interrupt, Result};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use rustc_hash::FxHashSet;
use std::ops::Range;

#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct Encoder {
    pub core: Core,
    integers: Integers,
}

/// Ids, and a span each: from and to, or first and last.
type WithOffsets<'py> = (Bound<'py, PyList>, Vec<(usize, usize)>);
/// The ids of all texts, and where each text begins.
type Ragged<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>);

impl Encoder {
    fn ids(&self, py: Python<'_>, text: &PyText, special: &Special) -> PyResult<Vec<u32>> {
        run(py, text.len(), |interrupt| {
            self.ids_of(text, special, interrupt)
        })
    }

    fn expect(&self, py: Python<'_>, ids: usize) {
        let vocab_size = self.core.model().vocabulary().len();
        self.integers.expect(py, ids, vocab_size);
    }

    pub fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        self.expect(py, ids.len());
        self.integers.list(py, ids)
    }

    fn ids_of(
        &self,
        text: &PyText,
        special: &Special,
        interrupt: &Interrupt<'_>,
    ) -> Result<Vec<u32>> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        self.core
            .encode(text.as_text(), special, &mut ids, interrupt)?;
        Ok(ids)
    }

    fn bytes_of(
        &self,
        ids: &PyIds,
        skip_special_tokens: bool,
        replaces_broken: bool,
    ) -> Result<Vec<u8>> {
        let broken = Broken::replaced_if(replaces_broken);
        let mut bytes = Vec::with_capacity(4 * ids.0.len());
        decode(
            self.core.model(),
            &ids.0,
            skip_special_tokens,
            broken,
            &mut bytes,
        )?;
        Ok(bytes)
    }

    fn batch(
        &self,
        py: Python<'_>,
        texts: &[PyText],
        special: &Special,
        threads: usize,
    ) -> PyResult<Vec<Vec<u32>>> {
        let bytes = texts.iter().map(PyText::len).sum();
        run(py, bytes, |interrupt| {
            batch::map(texts, threads, PyText::len, interrupt, |text| {
                self.ids_of(text, special, interrupt)
            })
        })
    }
}

#[pymethods]
impl Encoder {
    #[new]
    fn new(py: Python<'_>, model: &Model) -> PyResult<Self> {
        let model = model.core.clone();
        let core = py
            .detach(|| Core::new(model))
            .map_err(|error| to_python(py, &error))?;
        Ok(Self {
            core,
            integers: Integers::default(),
        })
    }

    #[getter]
    fn model(&self) -> Model {
        Model {
            core: self.core.model().clone(),
        }
    }

    #[pyo3(signature = (text, special=PySpecial::none()))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: PyText,
        special: PySpecial,
    ) -> PyResult<Bound<'py, PyList>> {
        self.list(py, &self.ids(py, &text, &special.0)?)
    }

    #[pyo3(signature = (text, special=PySpecial::none()))]
    fn encode_numpy<'py>(
        &self,
        py: Python<'py>,
        text: PyText,
        special: PySpecial,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let mut ids = self.ids(py, &text, &special.0)?;
        ids.shrink_to_fit();
        Ok(PyArray1::from_vec(py, ids))
    }

    #[pyo3(signature = (text, special=PySpecial::none(), unit="char", tile=true))]
    fn encode_with_offsets<'py>(
        &self,
        py: Python<'py>,
        text: PyText,
        special: PySpecial,
        unit: &str,
        tile: bool,
    ) -> PyResult<WithOffsets<'py>> {
        let in_characters = match unit {
            "char" => true,
            "byte" => false,
            _ => {
                let message = format!("unit must be \"char\" or \"byte\", not {unit:?}");
                return Err(exception(py, "OptionError", message));
            }
        };
        let (ids, spans) = run(py, text.len(), |interrupt| {
            let (mut ids, mut spans) = (Vec::new(), Vec::new());
            let (mut starts, mut ends) = (text.characters(), text.characters());
            let given = text.as_text();
            self.core
                .encode_with_spans(given, &special.0, interrupt, |id, span| {
                    ids.push(id);
                    spans.push(match (in_characters, tile) {
                        (true, true) => (starts.floor(span.start), ends.floor(span.tiled_end)),
                        (true, false) => (starts.floor(span.start), ends.ceil(span.end)),
                        (false, true) => (span.start, span.tiled_end),
                        (false, false) => (span.start, span.end),
                    });
                    true
                })?;
            Ok((ids, spans))
        })?;
        Ok((self.list(py, &ids)?, spans))
    }

    #[pyo3(signature = (segments, special=PySpecial::none(), markup=FxHashSet::default()))]
    fn encode_segments<'py>(
        &self,
        py: Python<'py>,
        segments: Vec<(PyText, bool)>,
        special: PySpecial,
        markup: FxHashSet<String>,
    ) -> PyResult<WithOffsets<'py>> {
        let (mut text, mut ends) = (String::new(), Vec::new());
        let mut trusted: Vec<Range<usize>> = Vec::new();
        for (segment, is_trusted) in &segments {
            let start = text.len();
            text.push_str(segment.expect_str(py)?);
            ends.push(text.len());
            match trusted.last_mut() {
                _ if !is_trusted => {}
                Some(last) if last.end == start => last.end = text.len(),
                _ => trusted.push(start..text.len()),
            }
        }
        let segment_of = |byte: usize| ends.partition_point(|&end| end <= byte);
        let (ids, covered) = run(py, text.len(), |interrupt| {
            let (mut ids, mut covered) = (Vec::new(), Vec::new());
            self.core.encode_trusted(
                &text,
                &trusted,
                &special.0,
                &markup,
                interrupt,
                |id, bytes| {
                    ids.push(id);
                    let last = bytes.start.max(bytes.end.saturating_sub(1));
                    covered.push((segment_of(bytes.start), segment_of(last)));
                },
            )?;
            Ok((ids, covered))
        })?;
        Ok((self.list(py, &ids)?, covered))
    }

    #[pyo3(signature = (texts, special=PySpecial::none(), threads=0))]
    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<PyText>,
        special: PySpecial,
        threads: usize,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let batch = self.batch(py, &texts, &special.0, threads)?;
        self.expect(py, batch.iter().map(Vec::len).sum());
        batch
            .iter()
            .map(|ids| self.integers.list(py, ids))
            .collect()
    }

    #[pyo3(signature = (texts, special=PySpecial::none(), threads=0))]
    fn encode_ragged<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<PyText>,
        special: PySpecial,
        threads: usize,
    ) -> PyResult<Ragged<'py>> {
        let batch = self.batch(py, &texts, &special.0, threads)?;
        let (ids, offsets) = py.detach(|| {
            let mut offsets = vec![0; batch.len() + 1];
            for (row, ids) in batch.iter().enumerate() {
                offsets[row + 1] = offsets[row] + ids.len() as i64;
            }
            (batch.concat(), offsets)
        });
        Ok((PyArray1::from_vec(py, ids), PyArray1::from_vec(py, offsets)))
    }

    #[pyo3(signature = (text, special=PySpecial::none()))]
    fn count(&self, py: Python<'_>, text: PyText, special: PySpecial) -> PyResult<usize> {
        Ok(self.ids(py, &text, &special.0)?.len())
    }

    #[pyo3(signature = (text, max_tokens, special=PySpecial::none()))]
    fn truncate(
        &self,
        py: Python<'_>,
        text: PyText,
        max_tokens: usize,
        special: PySpecial,
    ) -> PyResult<usize> {
        let string = text.expect_str(py)?;
        let bytes = run(py, text.len(), |interrupt| {
            self.core
                .truncate(string, max_tokens, &special.0, interrupt)
        })?;
        Ok(text.characters().floor(bytes))
    }

    fn find_special(
        &self,
        py: Python<'_>,
        text: PyText,
        special: PySpecial,
    ) -> PyResult<Option<(String, usize)>> {
        let found = run(py, text.len(), |_| {
            self.core.find_special(text.as_text(), &special.0)
        })?;
        Ok(found.map(|(content, byte)| (content, text.characters().floor(byte))))
    }

    #[pyo3(signature = (text, special=PySpecial::none()))]
    fn pieces<'py>(
        &self,
        py: Python<'py>,
        text: PyText,
        special: PySpecial,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let pieces = run(py, text.len(), |_| {
            let mut pieces = Vec::new();
            self.core
                .for_each_piece(text.as_text(), &special.0, |piece| {
                    pieces.push(piece.to_vec());
                })?;
            Ok(pieces)
        })?;
        Ok(pieces.iter().map(|piece| PyBytes::new(py, piece)).collect())
    }

    #[pyo3(signature = (ids, skip_special_tokens=false, replaces_broken=false))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: PyIds,
        skip_special_tokens: bool,
        replaces_broken: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = run(py, ids.0.len(), |_| {
            self.bytes_of(&ids, skip_special_tokens, replaces_broken)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[pyo3(signature = (batch, skip_special_tokens=false, threads=0, replaces_broken=false))]
    fn decode_batch<'py>(
        &self,
        py: Python<'py>,
        batch: Vec<PyIds>,
        skip_special_tokens: bool,
        threads: usize,
        replaces_broken: bool,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let total = batch.iter().map(|ids| ids.0.len()).sum();
        let texts = run(py, total, |interrupt| {
            batch::map(
                &batch,
                threads,
                |ids| 4 * ids.0.len(),
                interrupt,
                |ids| self.bytes_of(ids, skip_special_tokens, replaces_broken),
            )
        })?;
        Ok(texts.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    fn cache_statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = self.core.cache_statistics();
        let dict = PyDict::new(py);
        dict.set_item("hits", statistics.hits)?;
        dict.set_item("misses", statistics.misses)?;
        dict.set_item("size", statistics.size)?;
        Ok(dict)
    }

    fn clear_cache(&self) {
        self.core.clear_cache();
    }

    fn __getnewargs__(&self) -> (Model,) {
        (self.model(),)
    }
}

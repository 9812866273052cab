//! `PieceCounter`.

use crate::call::{exception, run, run_with_calls, to_python};
use crate::model::Model;
use crate::objects;
use crate::reader::Reader;
use crate::sequence::{byte_pairs, items, patterns};
use crate::settings::{added_token, parse_form, value_of};
use crate::text::PyText;
use bpe_tokenizer_core::error::utf8;
use bpe_tokenizer_core::interrupt::Poller;
use bpe_tokenizer_core::model::Settings;
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::reserve::{append, collect, push, with_capacity};
use bpe_tokenizer_core::text::Text;
use bpe_tokenizer_core::threads::lock;
use bpe_tokenizer_core::train::counts::{
    CountCall, Counted, Counter, Dropped, PieceCounts, Position,
};
use bpe_tokenizer_core::train::merges::{
    train_merges, Callbacks, MergeOptions, MergeParts, TieBreak, WarmStart,
};
use bpe_tokenizer_core::{Error, Result};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Pieces as arrays: their concatenated bytes, the offsets of all pieces and of the end, their counts.
type Arrays<'py> = (
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<u64>>,
);

#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct PieceCounter {
    counter: Arc<Counter>,
    /// How a trained model cuts text: as this counter does.
    settings: Settings,
    counted: Mutex<Counted>,
}

impl PieceCounter {
    /// A panic while counting leaves counts that are too low but sound.
    fn counted(&self) -> MutexGuard<'_, Counted> {
        lock(&self.counted)
    }

    /// Counts without the GIL.
    fn count(
        &self,
        py: Python<'_>,
        weight: u64,
        work: impl FnOnce(CountCall<'_>) -> Result<()> + Send,
    ) -> PyResult<()> {
        run(py, usize::MAX, |interrupt| {
            work(CountCall {
                counter: &self.counter,
                counted: &mut self.counted(),
                weight,
                interrupt,
            })
        })
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&mut Counted) -> Result<T> + Send,
    ) -> PyResult<T> {
        run(py, usize::MAX, |_| read(&mut self.counted()))
    }
}

const TIE_BREAKS: [(&str, TieBreak); 2] = [
    ("largest", TieBreak::Largest),
    ("huggingface", TieBreak::HuggingFace),
];

type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pymethods]
impl PieceCounter {
    #[new]
    #[pyo3(signature = (*, split_patterns, normalization=None, special_tokens=Vec::new(), threads=0,
                        max_memory=None))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = patterns)] split_patterns: Vec<String>,
        normalization: Option<String>,
        #[pyo3(from_py_with = items)] special_tokens: Vec<String>,
        threads: usize,
        max_memory: Option<usize>,
    ) -> PyResult<Self> {
        let form = parse_form(normalization).map_err(|error| to_python(py, &error))?;
        let counter = Counter::new(&split_patterns, form, special_tokens, threads, max_memory)
            .map_err(|error| to_python(py, &error))?;
        let patterns = split_patterns.into_iter().map(PreTokenizer::isolated);
        let settings = Settings {
            normalizers: form.into_iter().map(Normalizer::Form).collect(),
            pre_tokenizers: patterns.collect(),
            ..Settings::default()
        };
        Ok(Self {
            counter: Arc::new(counter),
            settings,
            counted: Mutex::default(),
        })
    }

    fn empty(&self) -> Self {
        Self {
            counter: Arc::clone(&self.counter),
            settings: self.settings.clone(),
            counted: Mutex::default(),
        }
    }

    #[pyo3(signature = (texts, weight=1))]
    fn add_texts(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] texts: Vec<PyText>,
        weight: u64,
    ) -> PyResult<()> {
        self.count(py, weight, |mut call| {
            let mut documents = with_capacity(texts.len())?;
            for (document, text) in (call.counted.documents..).zip(&texts) {
                documents.push(as_str(text, document)?);
            }
            call.add_texts(&documents)
        })
    }

    #[pyo3(signature = (data, offsets, weight=1, first=0))]
    fn add_rows(
        &self,
        py: Python<'_>,
        data: PyReadonlyArray1<'_, u8>,
        offsets: PyReadonlyArray1<'_, i64>,
        weight: u64,
        first: u64,
    ) -> PyResult<()> {
        let (data, offsets) = (data.as_slice()?, offsets.as_slice()?);
        self.count(py, weight, |mut call| {
            let mut texts = with_capacity(offsets.len())?;
            for (row, number) in rows(data, offsets).zip(first..) {
                texts.push(utf8(row?, 0, || format!("row {number}"))?);
            }
            call.add_texts(&texts)
        })
    }

    #[pyo3(signature = (paths, position=(0, 0), *, most=u64::MAX, weight=1, progress=None))]
    fn add_files(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] paths: Vec<PathBuf>,
        position: (usize, u64),
        most: u64,
        weight: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(usize, u64)> {
        let (file, byte) = position;
        let from = Position { file, byte };
        run_with_calls(py, |interrupt, calls| {
            let mut call = CountCall {
                counter: &self.counter,
                counted: &mut self.counted(),
                weight,
                interrupt,
            };
            let reached = call.add_files(&paths, from, most, &mut |bytes| {
                calls.call(progress.as_ref(), |py| PyTuple::new(py, [bytes]));
            })?;
            Ok((reached.file, reached.byte))
        })
    }

    #[pyo3(signature = (path, start, end, weight=1))]
    fn add_range(
        &self,
        py: Python<'_>,
        path: PathBuf,
        start: u64,
        end: u64,
        weight: u64,
    ) -> PyResult<()> {
        self.count(py, weight, |mut call| call.add_range(&path, start..end))
    }

    #[pyo3(signature = (reader, name, weight=1, progress=None))]
    fn add_stream(
        &self,
        py: Python<'_>,
        reader: Py<PyAny>,
        name: PathBuf,
        weight: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        run_with_calls(py, |interrupt, calls| {
            let mut call = CountCall {
                counter: &self.counter,
                counted: &mut self.counted(),
                weight,
                interrupt,
            };
            call.add_reader(Reader::new(&reader, calls), &name, &mut |bytes| {
                calls.call(progress.as_ref(), |py| PyTuple::new(py, [bytes]));
            })
        })
    }

    fn add_pieces(
        &self,
        py: Python<'_>,
        data: PyReadonlyArray1<'_, u8>,
        offsets: PyReadonlyArray1<'_, i64>,
        counts: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<()> {
        let (data, offsets) = (data.as_slice()?, offsets.as_slice()?);
        let counts = counts.as_slice()?;
        run(py, usize::MAX, |interrupt| {
            let mut counted = self.counted();
            let mut poller = Poller::new(interrupt);
            for (row, &count) in rows(data, offsets).zip(counts) {
                poller.advance(1)?;
                self.counter.add_piece(row?, count, &mut counted)?;
            }
            Ok(())
        })
    }

    fn add_documents(&self, py: Python<'_>, documents: u64) -> PyResult<()> {
        self.with(py, |counted| {
            counted.documents += documents;
            Ok(())
        })
    }

    #[pyo3(signature = (other, weight=1, *, take=false))]
    fn merge(
        &self,
        py: Python<'_>,
        other: &Bound<'_, Self>,
        weight: u64,
        take: bool,
    ) -> PyResult<()> {
        // `other` may be `self`, and holding two locks could deadlock.
        let added = other.get().with(py, |counted| {
            if take {
                return Ok(std::mem::take(counted));
            }
            let counts = counted.counts()?.copy()?;
            let mut copy = Counted::new(counts, counted.documents, counted.dropped);
            copy.normalized = counted.normalized;
            Ok(copy)
        })?;
        self.with(py, |counted| self.counter.merge(added, weight, counted))
    }

    #[getter]
    fn documents(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |counted| Ok(counted.documents))
    }

    #[getter]
    fn pieces(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |counted| counted.counts()?.total())
    }

    #[getter]
    fn distinct(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |counted| Ok(counted.counts()?.len()))
    }

    #[getter]
    fn dropped(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        self.with(py, |counted| {
            let dropped = counted.dropped;
            Ok((dropped.distinct, dropped.pieces, dropped.max_error))
        })
    }

    #[getter]
    fn normalized(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |counted| Ok(counted.normalized))
    }

    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        let (data, offsets, counts) = self.with(py, |counted| {
            let pieces = counted.counts()?.sorted()?;
            let (mut data, mut offsets) = (Vec::new(), vec![0]);
            for (piece, _) in &pieces {
                append(&mut data, piece)?;
                push(&mut offsets, data.len() as i64)?;
            }
            let counts: Vec<u64> = collect(pieces.into_iter().map(|(_, count)| count))?;
            Ok((data, offsets, counts))
        })?;
        Ok((
            objects::array(py, data)?,
            objects::array(py, offsets)?,
            objects::array(py, counts)?,
        ))
    }

    fn save<'py>(&self, py: Python<'py>, begin: Vec<u8>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = run(py, usize::MAX, |interrupt| {
            self.counted().counts()?.save(&begin, interrupt)
        })?;
        objects::bytes(py, &bytes)
    }

    #[pyo3(signature = (data, begin, documents, dropped, *, normalized=false))]
    fn load(
        &self,
        py: Python<'_>,
        data: &[u8],
        begin: usize,
        documents: u64,
        dropped: (u64, u64, u64),
        normalized: bool,
    ) -> PyResult<()> {
        let (distinct, pieces, max_error) = dropped;
        let dropped = Dropped {
            distinct,
            pieces,
            max_error,
        };
        run(py, usize::MAX, |interrupt| {
            let counts = PieceCounts::load(data, begin, interrupt)?;
            let mut loaded = Counted::new(counts, documents, dropped);
            loaded.normalized = normalized;
            self.counter.merge(loaded, 1, &mut self.counted())
        })
    }

    #[pyo3(signature = (*, vocab_size, min_frequency=2, tie_break="largest", added_tokens=Vec::new(),
                        max_token_length=None, threads=0, progress=None, model=None, learned=Vec::new(),
                        checkpoint=None, checkpoint_seconds=30.0))]
    #[allow(clippy::too_many_arguments)]
    fn train(
        &self,
        py: Python<'_>,
        vocab_size: u32,
        min_frequency: u64,
        tie_break: &str,
        #[pyo3(from_py_with = items)] added_tokens: Vec<Bound<'_, PyAny>>,
        max_token_length: Option<usize>,
        threads: usize,
        progress: Option<Py<PyAny>>,
        model: Option<&Model>,
        #[pyo3(from_py_with = byte_pairs)] learned: Vec<(Vec<u8>, Vec<u8>)>,
        checkpoint: Option<Py<PyAny>>,
        checkpoint_seconds: f64,
    ) -> PyResult<Model> {
        let added = added_tokens.iter().map(added_token);
        let added: Vec<_> = added.collect::<PyResult<_>>()?;
        let options = MergeOptions {
            vocab_size,
            reserved: added.iter().map(|token| token.id).collect(),
            min_frequency,
            tie_break: value_of(py, "tie_break", tie_break, &TIE_BREAKS)?,
            max_token_length,
            threads,
        };
        let checkpoint_interval = parse_seconds(py, checkpoint_seconds)?;
        let warm_start = WarmStart {
            model: model.map(|model| &model.core),
            merges: &learned,
        };
        let core = run_with_calls(py, |interrupt, calls| {
            let mut report = |learned: usize, wanted: usize| {
                calls.call(progress.as_ref(), |py| PyTuple::new(py, [learned, wanted]));
            };
            let mut save = |merges: &[MergeParts<'_>]| {
                calls.call(checkpoint.as_ref(), |py| {
                    (to_pairs(py, merges)?,).into_pyobject(py)
                });
            };
            let mut callbacks = Callbacks {
                progress: &mut report,
                merged: None,
                checkpoint: checkpoint.is_some().then_some(&mut save),
                checkpoint_interval,
            };
            let mut counted = self.counted();
            let pieces = counted.counts()?.iter();
            let learned = train_merges(pieces, &warm_start, &options, interrupt, &mut callbacks)?;
            match warm_start.model {
                Some(model) => learned.extend(model),
                None => learned.into_model(vocab_size, self.settings.clone(), added),
            }
        })?;
        Ok(Model { core })
    }
}

fn parse_seconds(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let message = format!("checkpoint_seconds is {seconds}; it must be 0 or more");
        exception(py, "OptionError", message)
    })
}

fn to_pairs<'py>(py: Python<'py>, merges: &[MergeParts<'_>]) -> PyResult<Vec<Pair<'py>>> {
    let merges = merges.iter();
    merges
        .map(|(left, right)| Ok((objects::bytes(py, left)?, objects::bytes(py, right)?)))
        .collect()
}

/// The text of a document. The error names the document and the byte that is not UTF-8.
fn as_str(text: &PyText, document: u64) -> Result<&str> {
    match text.as_text() {
        Text::Str(text) => Ok(text),
        Text::Bytes(bytes) => utf8(bytes, 0, || format!("document {document}")),
    }
}

/// The rows `data[offsets[i]..offsets[i + 1]]`.
fn rows<'a>(data: &'a [u8], offsets: &'a [i64]) -> impl Iterator<Item = Result<&'a [u8]>> {
    offsets.windows(2).map(|ends| {
        let [start, end] = [ends[0], ends[1]].map(|end| usize::try_from(end).unwrap_or(usize::MAX));
        let wrong = || {
            Error::Option(
                "offsets must ascend and must not exceed the length of the data".to_owned(),
            )
        };
        data.get(start..end).ok_or_else(wrong)
    })
}

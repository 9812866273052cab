//! `PieceCounter`.

use crate::call::{exception, lock_unused, run, run_with_calls, OrRaise as _};
use crate::constructors;
use crate::model::Model;
use crate::reader::Reader;
use crate::rows::rows;
use crate::sequence::{byte_pairs, items, patterns};
use crate::settings::{added_token, value_of};
use crate::text::PyText;
use bpe_tokenizer_core::error::utf8;
use bpe_tokenizer_core::interrupt::Poller;
use bpe_tokenizer_core::model::Settings;
use bpe_tokenizer_core::normalize::Normalization;
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::reserve::{append, push, with_capacity};
use bpe_tokenizer_core::text::Text;
use bpe_tokenizer_core::train::counts::{
    write_counts, CountCall, Counted, Counter, Limits, PieceCounts, PieceStream, Place, Position,
    Run, RunReader, Sample, Slice,
};
use bpe_tokenizer_core::train::merges::{Callbacks, MergeOptions, MergeParts, TieBreak, WarmStart};
use bpe_tokenizer_core::{Interrupt, Result};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
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
    fn counted(&self) -> Result<MutexGuard<'_, Counted>> {
        lock_unused(&self.counted, "these counts")
    }

    /// A call that adds to the counts of this counter, which are locked.
    fn call<'a>(
        &'a self,
        counted: &'a mut Counted,
        weight: u64,
        interrupt: &'a Interrupt<'a>,
    ) -> CountCall<'a> {
        CountCall {
            counter: &self.counter,
            counted,
            weight,
            interrupt,
        }
    }

    /// Counts without the GIL.
    fn count(
        &self,
        py: Python<'_>,
        weight: u64,
        work: impl FnOnce(CountCall<'_>) -> Result<()> + Send,
    ) -> PyResult<()> {
        self.with(py, |counted, interrupt| {
            work(self.call(counted, weight, interrupt))
        })
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&mut Counted, &Interrupt<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        run(py, usize::MAX, |interrupt| {
            read(&mut *self.counted()?, interrupt)
        })
    }
}

/// Reads the pieces of a run in byte order, incrementally.
#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct PieceReader(Mutex<RunReader>);

#[pymethods]
impl PieceReader {
    /// The next pieces, in the form of `PieceCounter.arrays`; none at the end.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        let arrays = run(py, usize::MAX, |interrupt| {
            let mut pieces = lock_unused(&self.0, "these pieces")?;
            read_arrays(&mut *pieces, READ_BYTES, interrupt)
        })?;
        to_arrays(py, arrays)
    }
}

/// Bytes of pieces that a reader returns at once.
const READ_BYTES: usize = 1 << 20;

type Buffers = (Vec<u8>, Vec<i64>, Vec<u64>);

/// Reads pieces until they have about `bytes` bytes.
fn read_arrays(
    pieces: &mut dyn PieceStream,
    bytes: usize,
    interrupt: &Interrupt<'_>,
) -> Result<Buffers> {
    let (mut data, mut offsets, mut counts) = (Vec::new(), vec![0], Vec::new());
    let mut poller = Poller::new(interrupt);
    while data.len() < bytes && pieces.advance()? {
        poller.advance(1)?;
        append(&mut data, pieces.piece())?;
        push(&mut offsets, data.len() as i64)?;
        push(&mut counts, pieces.count())?;
    }
    Ok((data, offsets, counts))
}

fn to_arrays<'py>(py: Python<'py>, (data, offsets, counts): Buffers) -> PyResult<Arrays<'py>> {
    Ok((
        constructors::array(py, data)?,
        constructors::array(py, offsets)?,
        constructors::array(py, counts)?,
    ))
}

const TIE_BREAKS: [(&str, TieBreak); 2] = [
    ("largest", TieBreak::Largest),
    ("huggingface", TieBreak::HuggingFace),
];

#[pymethods]
impl PieceCounter {
    #[new]
    #[pyo3(signature = (*, split_patterns, normalization=None, special_tokens=Vec::new(), threads=0,
                        max_memory=None, spill_directory=None, sample=None))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = patterns)] split_patterns: Vec<String>,
        normalization: Option<String>,
        #[pyo3(from_py_with = items)] special_tokens: Vec<String>,
        threads: usize,
        max_memory: Option<usize>,
        spill_directory: Option<PathBuf>,
        sample: Option<u64>,
    ) -> PyResult<Self> {
        let form = normalization.map(|form| form.parse::<Normalization>());
        let form = form.transpose().or_raise(py)?;
        let limits = Limits {
            max_memory,
            spill_directory,
            sample: sample.map(|below| Sample { below }),
        };
        let counter = Counter::new(&split_patterns, form, special_tokens, threads, limits);
        let counter = counter.or_raise(py)?;
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
            let counted = &call.counted;
            let first = counted.documents + counted.unsampled;
            for (document, text) in (first..).zip(&texts) {
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
            for (row, number) in rows(data, offsets)?.zip(first..) {
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
            let mut counted = self.counted()?;
            let mut call = self.call(&mut counted, weight, interrupt);
            let reached = call.add_files(&paths, from, most, &mut |bytes| {
                calls.call(progress.as_ref(), (bytes,));
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
            let mut counted = self.counted()?;
            let mut call = self.call(&mut counted, weight, interrupt);
            call.add_reader(Reader::new(&reader, calls), &name, &mut |bytes| {
                calls.call(progress.as_ref(), (bytes,));
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
        self.with(py, |counted, interrupt| {
            let mut poller = Poller::new(interrupt);
            for (row, &count) in rows(data, offsets)?.zip(counts) {
                poller.advance(1)?;
                self.counter.add_piece(row?, count, counted, interrupt)?;
            }
            Ok(())
        })
    }

    fn add_documents(&self, py: Python<'_>, documents: u64) -> PyResult<()> {
        self.with(py, |counted, _| {
            counted.documents += documents;
            Ok(())
        })
    }

    fn make_room(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |counted, interrupt| {
            self.counter.make_room(counted, interrupt)
        })
    }

    fn prune(&self, py: Python<'_>, min_count: u64) -> PyResult<()> {
        self.with(py, |counted, interrupt| {
            self.counter.prune(min_count, counted, interrupt)
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
        let mut added = other.get().with(py, |counted, _| {
            if take {
                return Ok(std::mem::take(counted));
            }
            counted.copy()
        })?;
        self.with(py, |counted, interrupt| {
            self.counter.merge(&mut added, weight, counted, interrupt)
        })
    }

    #[getter]
    fn documents(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |counted, _| Ok(counted.documents))
    }

    #[getter]
    fn is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |counted, _| {
            Ok(counted.is_empty() && counted.documents == 0)
        })
    }

    #[getter]
    fn pieces(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |counted, interrupt| {
            self.counter.totals(counted, interrupt)?.pieces()
        })
    }

    #[getter]
    fn distinct(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |counted, interrupt| {
            Ok(self.counter.totals(counted, interrupt)?.distinct)
        })
    }

    #[getter]
    fn normalized(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |counted, _| Ok(counted.normalized))
    }

    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        let arrays = self.with(py, |counted, interrupt| {
            let mut pieces = self.counter.pieces(counted, interrupt)?;
            read_arrays(&mut pieces, usize::MAX, interrupt)
        })?;
        to_arrays(py, arrays)
    }

    fn reader(&self, py: Python<'_>) -> PyResult<Option<PieceReader>> {
        self.with(py, |counted, interrupt| {
            self.counter.settle(counted, interrupt)?;
            if self.counter.spilled_bytes(counted) == 0 {
                return Ok(None);
            }
            let reader = self.counter.run(counted, interrupt)?.reader();
            Ok(Some(PieceReader(Mutex::new(reader))))
        })
    }

    fn save(&self, py: Python<'_>, begin: Vec<u8>, write: Py<PyAny>) -> PyResult<()> {
        run_with_calls(py, |interrupt, calls| {
            let mut counted = self.counted()?;
            let totals = self.counter.totals(&mut counted, interrupt)?;
            let mut pieces = self.counter.pieces(&mut counted, interrupt)?;
            let write = &mut |bytes: &[u8]| {
                calls.value(|py| write.call1(py, (constructors::bytes(py, bytes)?,)));
                interrupt.poll()
            };
            write_counts(&begin, totals.distinct, &mut pieces, interrupt, write)
        })
    }

    #[pyo3(signature = (data, begin, documents, *, normalized=false))]
    fn load(
        &self,
        py: Python<'_>,
        data: &[u8],
        begin: usize,
        documents: u64,
        normalized: bool,
    ) -> PyResult<()> {
        self.with(py, |counted, interrupt| {
            let counts = PieceCounts::load(data, begin, interrupt)?;
            let mut loaded = Counted::new(counts, documents);
            loaded.normalized = normalized;
            self.counter.merge(&mut loaded, 1, counted, interrupt)
        })
    }

    #[pyo3(signature = (path, begin, documents, *, normalized=false))]
    fn open(
        &self,
        py: Python<'_>,
        path: PathBuf,
        begin: u64,
        documents: u64,
        normalized: bool,
    ) -> PyResult<()> {
        self.with(py, |counted, _| {
            *counted = Counted::of_run(Run::of_file(&path, begin)?, documents);
            counted.normalized = normalized;
            Ok(())
        })
    }

    fn open_slice(
        &self,
        py: Python<'_>,
        path: PathBuf,
        start: (u64, Vec<u8>),
        end: Option<u64>,
        low: Vec<u8>,
        high: Option<Vec<u8>>,
    ) -> PyResult<()> {
        let (position, after) = start;
        let slice = Slice {
            start: Place { position, after },
            end,
            low,
            high,
        };
        self.with(py, |counted, _| {
            *counted = Counted::of_run(Run::of_slice(&path, slice)?, 0);
            Ok(())
        })
    }

    fn places<'py>(
        &self,
        py: Python<'py>,
        spacing: u64,
    ) -> PyResult<Vec<(u64, Bound<'py, PyBytes>)>> {
        let places = self.with(py, |counted, interrupt| counted.places(spacing, interrupt))?;
        let places = places.iter();
        places
            .map(|place| Ok((place.position, constructors::bytes(py, &place.after)?)))
            .collect()
    }

    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |counted, interrupt| {
            self.counter.resume(counted, interrupt)
        })
    }

    #[pyo3(signature = (*, vocab_size, min_frequency=2, tie_break="largest", added_tokens=Vec::new(),
                        max_token_length=None, threads=0, progress=None, model=None, learned=Vec::new(),
                        checkpoint=None, checkpoint_seconds=30.0, min_count=0, needs=None))]
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
        min_count: u64,
        needs: Option<Py<PyAny>>,
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
                calls.call(progress.as_ref(), (learned, wanted));
            };
            let mut save = |merges: &[MergeParts<'_>]| {
                let checkpoint = checkpoint.as_ref();
                calls.value(|py| match checkpoint {
                    Some(checkpoint) => checkpoint.call1(py, (to_pairs(py, merges)?,)),
                    None => Ok(py.None()),
                });
            };
            let mut callbacks = Callbacks {
                progress: &mut report,
                merged: None,
                checkpoint: checkpoint.is_some().then_some(&mut save),
                checkpoint_interval,
            };
            let mut counted = self.counted()?;
            let needed = self.counter.needs(&mut counted, min_count, interrupt)?;
            let numbers = (needed.totals.distinct, needed.memory(), needed.limit);
            calls.call(needs.as_ref(), numbers);
            let learned = self.counter.train(
                &mut counted,
                &needed,
                &warm_start,
                &options,
                interrupt,
                &mut callbacks,
            )?;
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

fn to_pairs<'py>(py: Python<'py>, merges: &[MergeParts<'_>]) -> PyResult<Bound<'py, PyList>> {
    let pairs = merges.iter().map(|&(left, right)| {
        let [left, right] = [left, right].map(|token| constructors::bytes(py, token));
        constructors::tuple(py, left?, right?)
    });
    constructors::list(py, pairs)
}

/// The text of a document. The error names the document and the byte that is not UTF-8.
fn as_str(text: &PyText, document: u64) -> Result<&str> {
    match text.as_text() {
        Text::Str(text) => Ok(text),
        Text::Bytes(bytes) => utf8(bytes, 0, || format!("document {document}")),
    }
}

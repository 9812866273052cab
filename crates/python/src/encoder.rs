//! `Encoder`.

use crate::call::{self, OrRaise as _};
use crate::constructors;
use crate::decoded_rows::{decode_rows, Invalid, RowOptions};
use crate::id_lists::{list_of_pairs, SharedIntegers};
use crate::ids::{rows, PyIds};
use crate::model::Model;
use crate::rows::CheckedRows;
use crate::sequence::{self, items};
use crate::settings::value_of;
use crate::text::{to_text, PySpecial, PyText, PyTextSource};
use crate::trace::MergeTrace;
use bpe_tokenizer_core::buffer_pool::BufferPool;
use bpe_tokenizer_core::decoder::{DecodeOptions, Decoder};
use bpe_tokenizer_core::encoder::{
    room_for, BatchOptions, Encoder as Core, Ragged, Segments, Special, TextSource, BYTES_PER_ID,
};
use bpe_tokenizer_core::memory::make_room;
use bpe_tokenizer_core::reserve::{self, append, push};
use bpe_tokenizer_core::Result;
use numpy::{PyArray1, PyArray2, PyArrayMethods as _, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use rustc_hash::FxHashSet;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct Encoder {
    pub core: Core,
    pub decoder: Decoder,
    integers: SharedIntegers,
    /// The memory of large results that no longer exist.
    results: Arc<BufferPool<u32>>,
}

/// Ids, and for each a span (start, end) or the first and last segment.
type WithOffsets<'py> = (Bound<'py, PyList>, Bound<'py, PyList>);
/// Ids, and for each a row (start, end).
type ArraysWithOffsets<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray2<i64>>);
/// The concatenated ids of all texts, and the offsets of all texts and of the end.
type Arrays<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>);
/// The concatenated bytes of all texts, and the offsets of all texts and of the end.
type TextArrays<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>);
/// The ids before and after each document.
pub type PrefixSuffix = (Vec<u32>, Vec<u32>);

/// The memory of fewer ids is kept for the next text: their array is a copy.
const MAX_KEPT_IDS: usize = constructors::MIN_OWNED / size_of::<u32>();

/// One thread encodes a text of at most this number of bytes or characters: to start others takes longer.
const MAX_FOR_ONE_THREAD: usize = 4 << 10;

/// The memory of a result of at least this number of ids is kept for the next results, in all at most this number of bytes.
const MIN_POOLED_IDS: usize = (1 << 20) / size_of::<u32>();
const MAX_POOLED_BYTES: usize = 80 << 20;

/// What `decode_rows` does with bytes that are not UTF-8.
const INVALID: [(&str, Invalid); 3] = [
    ("replace", Invalid::Replace),
    ("ignore", Invalid::Ignore),
    ("keep", Invalid::Keep),
];

thread_local! {
    /// Memory for the ids of the next short text of this thread.
    static KEPT_IDS: Cell<Vec<u32>> = const { Cell::new(Vec::new()) };
}

fn options(special: Special, threads: usize, prefix_suffix_ids: PrefixSuffix) -> BatchOptions {
    let (prefix_ids, suffix_ids) = prefix_suffix_ids;
    BatchOptions {
        special,
        threads,
        prefix_ids,
        suffix_ids,
        ..BatchOptions::default()
    }
}

impl Encoder {
    /// Memory for the ids of texts of `bytes` bytes.
    fn room(&self, bytes: usize) -> Vec<u32> {
        self.results.free_smaller(bytes / BYTES_PER_ID);
        room_for(bytes, &self.results)
    }

    /// The ids of a text, between those that are added before and after it.
    #[inline]
    pub fn ids(
        &self,
        py: Python<'_>,
        text: TextSource<'_>,
        options: &BatchOptions,
    ) -> PyResult<Vec<u32>> {
        if options.threads != 1 && text.len() > MAX_FOR_ONE_THREAD {
            return Ok(self.batch(py, std::iter::once(text), options)?.ids);
        }
        call::run(py, text.len(), |interrupt| {
            let mut ids = self.room_for_text(text.len(), text.estimated_bytes());
            append(&mut ids, &options.prefix_ids)?;
            self.core
                .encode(text, &options.special, &mut ids, interrupt)?;
            append(&mut ids, &options.suffix_ids)?;
            Ok(ids)
        })
    }

    /// The number of ids of a text, with those before and after it.
    pub fn count_ids(
        &self,
        py: Python<'_>,
        text: TextSource<'_>,
        options: &BatchOptions,
    ) -> PyResult<usize> {
        call::run(py, text.len(), |interrupt| {
            if options.threads != 1 && text.len() > MAX_FOR_ONE_THREAD {
                let text = std::iter::once(text);
                return self.core.count_all(text, options, interrupt);
            }
            let count = self.core.count(text, &options.special, interrupt)?;
            Ok(count + options.prefix_ids.len() + options.suffix_ids.len())
        })
    }

    /// Memory for the ids of a text, empty.
    #[inline]
    pub fn room_for_text(&self, length: usize, estimated_bytes: usize) -> Vec<u32> {
        let mut ids = match length <= 4 * MAX_KEPT_IDS {
            true => KEPT_IDS.take(),
            false => self.room(estimated_bytes),
        };
        ids.clear();
        ids
    }

    /// Keeps the memory of ids that are in a list or an array now, for the next result.
    #[inline]
    fn keep(&self, ids: Vec<u32>) {
        if ids.capacity() <= 4 * MAX_KEPT_IDS {
            KEPT_IDS.set(ids);
        } else if ids.capacity() >= MIN_POOLED_IDS {
            self.results.put(ids);
        }
    }

    /// The list of the ids of a text.
    pub fn list_of<'py>(&self, py: Python<'py>, ids: Vec<u32>) -> PyResult<Bound<'py, PyList>> {
        let list = self.list(py, &ids);
        self.keep(ids);
        list
    }

    /// The array of the ids of texts. The memory of a large one is kept when the array no longer exists.
    pub fn array_of<'py>(
        &self,
        py: Python<'py>,
        ids: Vec<u32>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let is_large = ids.len() >= MIN_POOLED_IDS;
        // The others are cut to their length, so that no array keeps much more memory than it has ids.
        if is_large && ids.len() >= ids.capacity() / 2 {
            return constructors::pooled_array(py, ids, Some(&self.results));
        }
        if ids.len() >= MAX_KEPT_IDS {
            return constructors::array(py, ids);
        }
        let array = constructors::array_from(py, &ids)?;
        self.keep(ids);
        Ok(array)
    }

    pub fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        let vocab_size = self.core.model().vocabulary().len();
        self.integers.list(py, ids, vocab_size)
    }

    fn bytes_of(&self, py: Python<'_>, ids: &PyIds, options: DecodeOptions) -> PyResult<Vec<u8>> {
        call::run(py, 4 * ids.0.len(), |interrupt| {
            let mut bytes = Vec::new();
            self.decoder
                .decode(&ids.0, options, &mut bytes, interrupt)?;
            Ok(bytes)
        })
    }

    fn batch<'a>(
        &self,
        py: Python<'_>,
        texts: impl Iterator<Item = TextSource<'a>> + Clone + Send + Sync,
        options: &BatchOptions,
    ) -> PyResult<Ragged> {
        let bytes = texts.clone().map(TextSource::estimated_bytes).sum();
        call::run(py, bytes, |interrupt| {
            self.results.free_smaller(bytes / BYTES_PER_ID);
            self.core
                .encode_pooled(texts, &self.results, options, interrupt)
        })
    }

    /// Calls `take` with each id and its span, in characters or in bytes.
    fn spans(
        &self,
        py: Python<'_>,
        text: &PyText,
        special: &Special,
        (in_characters, tile): (bool, bool),
        mut take: impl FnMut(u32, (usize, usize)) -> Result<()> + Send,
    ) -> PyResult<()> {
        let in_characters = in_characters && !text.has_byte_positions();
        let (given, mut characters) = (text.as_text(), text.characters());
        call::run(py, text.len(), |interrupt| {
            let mut taken = Ok(());
            // The end of the last span, in bytes and in characters.
            let mut last = (0, 0);
            self.core
                .encode_with_spans(given, special, interrupt, |id, span| {
                    let span = match (in_characters, tile) {
                        (true, true) => {
                            let start = match span.start == last.0 {
                                true => last.1,
                                false => characters.floor(span.start),
                            };
                            last = (span.tiled_end, characters.floor(span.tiled_end));
                            (start, last.1)
                        }
                        (true, false) => (characters.floor(span.start), characters.ceil(span.end)),
                        (false, true) => (span.start, span.tiled_end),
                        (false, false) => (span.start, span.end),
                    };
                    // Storing each `Ok` would take most of the time.
                    take(id, span).map_err(|error| taken = Err(error)).is_ok()
                })?;
            taken
        })
    }

    fn arrays<'py>(&self, py: Python<'py>, ragged: Ragged) -> PyResult<Arrays<'py>> {
        let ids = self.array_of(py, ragged.ids)?;
        Ok((ids, constructors::array(py, ragged.offsets)?))
    }
}

/// The text of segments, and the size of each with the mark of trust.
fn joined(py: Python<'_>, segments: &[(PyText, bool)]) -> PyResult<(String, Vec<(usize, bool)>)> {
    let (mut text, mut sizes) = (String::new(), Vec::new());
    for (segment, is_trusted) in segments {
        let segment = segment.expect_str(py)?;
        reserve::append_text(&mut text, segment).or_raise(py)?;
        sizes.push((segment.len(), *is_trusted));
    }
    Ok((text, sizes))
}

#[pymethods]
impl Encoder {
    #[new]
    fn new(py: Python<'_>, model: &Model) -> PyResult<Self> {
        let model = model.core.clone();
        let core = call::run(py, usize::MAX, |_| Core::new(model))?;
        Ok(Self {
            decoder: Decoder::new(core.model().clone()),
            core,
            integers: SharedIntegers::default(),
            results: Arc::new(BufferPool::new(MAX_POOLED_BYTES)),
        })
    }

    #[getter]
    fn model(&self) -> Model {
        Model {
            core: self.core.model().clone(),
        }
    }

    #[pyo3(signature = (text, special=PySpecial::none(), threads=1))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: PyTextSource,
        special: PySpecial,
        threads: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = options(special.0, threads, PrefixSuffix::default());
        let ids = self.ids(py, text.get(), &options)?;
        self.list_of(py, ids)
    }

    #[pyo3(signature = (text, special=PySpecial::none(), threads=1))]
    fn encode_numpy<'py>(
        &self,
        py: Python<'py>,
        text: PyTextSource,
        special: PySpecial,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let options = options(special.0, threads, PrefixSuffix::default());
        let ids = self.ids(py, text.get(), &options)?;
        self.array_of(py, ids)
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
        let in_characters = value_of(py, "unit", unit, &[("char", true), ("byte", false)])?;
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        make_room(&mut ids, text.len() / 3);
        make_room(&mut spans, text.len() / 3);
        self.spans(py, &text, &special.0, (in_characters, tile), |id, span| {
            push(&mut ids, id)?;
            push(&mut spans, span)
        })?;
        // First the pairs: while they are made, the garbage collector would visit the list of ids.
        let pairs = list_of_pairs(py, &spans)?;
        Ok((self.list(py, &ids)?, pairs))
    }

    #[pyo3(signature = (text, special=PySpecial::none(), unit="char", tile=true))]
    fn encode_numpy_with_offsets<'py>(
        &self,
        py: Python<'py>,
        text: PyText,
        special: PySpecial,
        unit: &str,
        tile: bool,
    ) -> PyResult<ArraysWithOffsets<'py>> {
        let in_characters = value_of(py, "unit", unit, &[("char", true), ("byte", false)])?;
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        make_room(&mut ids, text.len() / 3);
        make_room(&mut spans, text.len() / 3 * 2);
        let form = (in_characters, tile);
        self.spans(py, &text, &special.0, form, |id, (start, end)| {
            push(&mut ids, id)?;
            reserve::reserve(&mut spans, 2)?;
            spans.extend([start as i64, end as i64]);
            Ok(())
        })?;
        let spans = constructors::array(py, spans)?.reshape([ids.len(), 2])?;
        Ok((constructors::array(py, ids)?, spans))
    }

    #[pyo3(signature = (segments, special=PySpecial::none(), markup=FxHashSet::default()))]
    fn encode_segments<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = items)] segments: Vec<(PyText, bool)>,
        special: PySpecial,
        mut markup: FxHashSet<String>,
    ) -> PyResult<WithOffsets<'py>> {
        let (text, sizes) = joined(py, &segments)?;
        let (ids, covered) = call::run(py, text.len(), |interrupt| {
            let segments = Segments::new(&text, &sizes)?;
            let core = &self.core;
            let tokens =
                core.encode_segments(&segments, &special.0, &mut markup, false, interrupt)?;
            let ids = reserve::collect(tokens.iter().map(|token| token.id))?;
            let covered = tokens.iter().map(|token| segments.covered(token));
            Ok((ids, reserve::collect(covered)?))
        })?;
        Ok((self.list(py, &ids)?, list_of_pairs(py, &covered)?))
    }

    fn markup_tokens(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] segments: Vec<(PyText, bool)>,
        may_write: &Bound<'_, PyAny>,
    ) -> PyResult<FxHashSet<String>> {
        let (text, sizes) = joined(py, &segments)?;
        let segments = Segments::new(&text, &sizes).or_raise(py)?;
        let may_write = |text: &str| may_write.call1((text,))?.is_truthy();
        self.core.markup_tokens(&segments, may_write)
    }

    #[pyo3(signature = (texts, special=PySpecial::none(), threads=0))]
    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = items)] texts: Vec<PyTextSource>,
        special: PySpecial,
        threads: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = options(special.0, threads, PrefixSuffix::default());
        let texts = texts.iter().map(PyTextSource::get);
        let Ragged { ids, offsets } = self.batch(py, texts, &options)?;
        let rows = offsets.windows(2).map(|row| {
            let ids = &ids[row[0] as usize..row[1] as usize];
            // New lists make the garbage collector visit those that it knows, again and again.
            self.list(py, ids).inspect(constructors::hide)
        });
        let rows = constructors::list(py, rows)?;
        self.keep(ids);
        rows.iter().for_each(|row| constructors::show(&row));
        Ok(rows)
    }

    #[pyo3(signature = (texts, special=PySpecial::none(), threads=0, prefix_suffix_ids=PrefixSuffix::default()))]
    fn encode_ragged<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = items)] texts: Vec<PyTextSource>,
        special: PySpecial,
        threads: usize,
        prefix_suffix_ids: PrefixSuffix,
    ) -> PyResult<Arrays<'py>> {
        let options = options(special.0, threads, prefix_suffix_ids);
        let texts = texts.iter().map(PyTextSource::get);
        let ragged = self.batch(py, texts, &options)?;
        self.arrays(py, ragged)
    }

    #[pyo3(signature = (data, offsets, special=PySpecial::none(), threads=0, prefix_suffix_ids=PrefixSuffix::default()))]
    fn encode_rows<'py>(
        &self,
        py: Python<'py>,
        data: PyReadonlyArray1<'py, u8>,
        offsets: PyReadonlyArray1<'py, i64>,
        special: PySpecial,
        threads: usize,
        prefix_suffix_ids: PrefixSuffix,
    ) -> PyResult<Arrays<'py>> {
        let options = options(special.0, threads, prefix_suffix_ids);
        let (data, offsets) = (data.as_slice()?, offsets.as_slice()?);
        let ragged = call::run(py, data.len() + size_of_val(offsets), |interrupt| {
            let texts = CheckedRows::check(data, offsets, threads, interrupt)?;
            self.core
                .encode_pooled(texts.texts(), &self.results, &options, interrupt)
        })?;
        self.arrays(py, ragged)
    }

    #[pyo3(signature = (paths, separator=None, special=PySpecial::none(), disallowed=PySpecial::none(), threads=0,
                        prefix_suffix_ids=PrefixSuffix::default()))]
    fn encode_files<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = items)] paths: Vec<PathBuf>,
        separator: Option<PyText>,
        special: PySpecial,
        disallowed: PySpecial,
        threads: usize,
        prefix_suffix_ids: PrefixSuffix,
    ) -> PyResult<Arrays<'py>> {
        let options = BatchOptions {
            disallowed: disallowed.0,
            ..options(special.0, threads, prefix_suffix_ids)
        };
        let separator = separator.as_ref().map(|text| text.expect_str(py));
        let separator = separator.transpose()?;
        let ragged = call::run(py, usize::MAX, |interrupt| {
            self.core
                .encode_files(&paths, separator, &self.results, &options, interrupt)
        })?;
        self.arrays(py, ragged)
    }

    #[pyo3(signature = (text, special=PySpecial::none(), threads=1))]
    fn count(
        &self,
        py: Python<'_>,
        text: PyTextSource,
        special: PySpecial,
        threads: usize,
    ) -> PyResult<usize> {
        let options = options(special.0, threads, PrefixSuffix::default());
        self.count_ids(py, text.get(), &options)
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
        let bytes = call::run(py, text.len(), |interrupt| {
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
        let found = call::run(py, text.len(), |interrupt| {
            self.core
                .find_special(text.as_text(), &special.0, interrupt)
        })?;
        Ok(found.map(|(content, byte)| (content, text.characters().floor(byte))))
    }

    #[pyo3(signature = (text, special=PySpecial::none()))]
    fn pieces<'py>(
        &self,
        py: Python<'py>,
        text: PyText,
        special: PySpecial,
    ) -> PyResult<Bound<'py, PyList>> {
        let (bytes, ends) = call::run(py, text.len(), |interrupt| {
            let (mut bytes, mut ends) = (Vec::new(), Vec::new());
            self.core
                .for_each_piece(text.as_text(), &special.0, interrupt, |piece| {
                    append(&mut bytes, piece)?;
                    push(&mut ends, bytes.len())
                })?;
            Ok((bytes, ends))
        })?;
        let mut start = 0;
        let pieces = ends
            .iter()
            .map(|&end| constructors::bytes(py, &bytes[std::mem::replace(&mut start, end)..end]));
        constructors::list(py, pieces)
    }

    fn trace_merges(&self, py: Python<'_>, piece: &[u8]) -> PyResult<MergeTrace> {
        let trace = call::run(py, piece.len(), |interrupt| {
            self.core.merger().trace(piece, interrupt)
        })?;
        Ok(trace.into())
    }

    #[pyo3(signature = (ids, skip_special_tokens=false, replaces_broken=false))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: PyIds,
        #[pyo3(from_py_with = sequence::skip_special_tokens)] skip_special_tokens: bool,
        replaces_broken: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let options = decode_options(skip_special_tokens, replaces_broken);
        let size = 4 * ids.0.len();
        let length = call::run(py, size, |interrupt| {
            self.decoder.length(&ids.0, options, interrupt)
        })?;
        match length {
            Some(length) => constructors::written_bytes(py, length, |bytes| {
                call::run(py, size, |interrupt| {
                    self.decoder.write(&ids.0, options, bytes, interrupt)
                })
            }),
            None => constructors::bytes(py, &self.bytes_of(py, &ids, options)?),
        }
    }

    #[pyo3(signature = (ids, skip_special_tokens=false, errors="replace"))]
    pub fn decode_text<'py>(
        &self,
        py: Python<'py>,
        ids: PyIds,
        #[pyo3(from_py_with = sequence::skip_special_tokens)] skip_special_tokens: bool,
        errors: &str,
    ) -> PyResult<Bound<'py, PyString>> {
        let options = decode_options(skip_special_tokens, errors == "replace");
        let bytes = self.bytes_of(py, &ids, options)?;
        to_text(py, &bytes, errors)
    }

    #[pyo3(signature = (batch, skip_special_tokens=false, errors=None, threads=0, skip_id=None))]
    fn decode_batch<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = rows)] batch: Vec<PyIds>,
        #[pyo3(from_py_with = sequence::skip_special_tokens)] skip_special_tokens: bool,
        errors: Option<&str>,
        threads: usize,
        skip_id: Option<u32>,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = RowOptions {
            decode: decode_options(skip_special_tokens, errors == Some("replace")),
            invalid: Invalid::Keep,
            threads,
            first_row: 0,
        };
        let size = batch.iter().map(|row| 4 * row.0.len()).sum();
        let (text, ends) = call::run(py, size, |interrupt| {
            let (mut ids, mut offsets) = (Vec::new(), vec![0]);
            reserve::reserve(&mut ids, size / 4)?;
            for row in batch {
                ids.extend(row.0.into_iter().filter(|&id| Some(id) != skip_id));
                push(&mut offsets, ids.len() as i64)?;
            }
            decode_rows(&self.decoder, &ids, &offsets, &options, interrupt)
        })?;
        let texts = ends.windows(2).map(|ends| {
            let bytes = &text[ends[0] as usize..ends[1] as usize];
            match errors {
                Some(errors) => Ok(to_text(py, bytes, errors)?.into_any()),
                None => Ok(constructors::bytes(py, bytes)?.into_any()),
            }
        });
        constructors::list(py, texts)
    }

    #[pyo3(signature = (ids, offsets, skip_special_tokens=false, invalid="replace", threads=0, first_row=0))]
    fn decode_rows<'py>(
        &self,
        py: Python<'py>,
        ids: PyReadonlyArray1<'py, u32>,
        offsets: PyReadonlyArray1<'py, i64>,
        #[pyo3(from_py_with = sequence::skip_special_tokens)] skip_special_tokens: bool,
        invalid: &str,
        threads: usize,
        first_row: usize,
    ) -> PyResult<TextArrays<'py>> {
        let options = RowOptions {
            decode: decode_options(skip_special_tokens, invalid == "replace"),
            invalid: value_of(py, "invalid", invalid, &INVALID)?,
            threads,
            first_row,
        };
        let (ids, offsets) = (ids.as_slice()?, offsets.as_slice()?);
        let size = 4 * ids.len() + size_of_val(offsets);
        let (text, ends) = call::run(py, size, |interrupt| {
            decode_rows(&self.decoder, ids, offsets, &options, interrupt)
        })?;
        Ok((
            constructors::array(py, text)?,
            constructors::array(py, ends)?,
        ))
    }

    fn cache_statistics(&self) -> BTreeMap<&str, u64> {
        let found = self.core.caches().statistics();
        [
            ("hits", found.hits),
            ("misses", found.misses),
            ("size", found.size),
        ]
        .into()
    }

    fn clear_cache(&self) {
        self.core.caches().clear();
        self.results.free_smaller(usize::MAX);
    }

    #[getter]
    fn cache_bytes(&self) -> usize {
        self.core.caches().cache_bytes()
    }

    fn limit_cache(&self, max_bytes: usize) {
        self.core.caches().limit(max_bytes);
        self.results.free_smaller(usize::MAX);
    }

    fn __getnewargs__(&self) -> (Model,) {
        (self.model(),)
    }
}

/// The options of a decoder.
pub fn decode_options(skip_special_tokens: bool, replace_invalid: bool) -> DecodeOptions {
    DecodeOptions {
        skip_special_tokens,
        replace_invalid,
    }
}

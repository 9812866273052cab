//! Columns of Arrow, from and to any library, without a Python object a row.

mod columns;
pub mod decode;
pub mod encode;
mod interface;

use crate::call::{self, exception, to_python};
use crate::objects;
use crate::rows::{in_row, Rows};
use crate::sequence::items;
use crate::settings::value_of;
use bpe_tokenizer_core::interrupt::Poller;
use bpe_tokenizer_core::reserve::{append, push};
use bpe_tokenizer_core::{Error, Result};
use columns::{column_type, type_name, IdLists, Texts};
use encode::Part;
use interface::{stream_capsule, Array, Kind, Stream, Type, Written};
use numpy::PyArray1;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

/// The arrays of a column.
#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct ArrowReader {
    given: Arc<Type>,
    source: Mutex<Source>,
    #[pyo3(get)]
    is_chunked: bool,
}

struct Source {
    arrays: Arrays,
    /// The rows of the arrays so far.
    rows: usize,
}

enum Arrays {
    One(Option<Array>),
    Stream(Stream),
}

impl Source {
    fn next(&mut self) -> Result<Option<(Array, usize)>> {
        let array = match &mut self.arrays {
            Arrays::One(array) => array.take(),
            Arrays::Stream(stream) => stream.next()?,
        };
        let Some(array) = array else { return Ok(None) };
        let first = self.rows;
        self.rows = first.saturating_add(array.root()?.length);
        Ok(Some((array, first)))
    }
}

impl ArrowReader {
    fn new(py: Python<'_>, given: Type, arrays: Arrays) -> PyResult<Self> {
        if let Err(error) = column_type(&given) {
            return Err(exception(py, "ArgumentTypeError", error.to_string()));
        }
        Ok(Self {
            given: Arc::new(given),
            is_chunked: matches!(arrays, Arrays::Stream(_)),
            source: Mutex::new(Source { arrays, rows: 0 }),
        })
    }

    fn column(&self) -> &Type {
        column_type(&self.given).unwrap_or(&self.given)
    }
}

#[pymethods]
impl ArrowReader {
    #[staticmethod]
    fn from_array(
        py: Python<'_>,
        schema: &Bound<'_, PyAny>,
        array: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let taken = interface::take_array(schema, array)?;
        let (given, array) = taken.map_err(|error| to_python(py, &error))?;
        Self::new(py, given, Arrays::One(Some(array)))
    }

    #[staticmethod]
    fn from_stream(py: Python<'_>, stream: &Bound<'_, PyAny>) -> PyResult<Self> {
        let taken = Stream::take(stream)?;
        let (given, stream) = call::run(py, usize::MAX, |_| {
            let mut stream = taken?;
            Ok((stream.schema()?, stream))
        })?;
        Self::new(py, given, Arrays::Stream(stream))
    }

    #[getter]
    fn type_name(&self) -> String {
        type_name(self.column())
    }

    #[getter]
    fn holds_texts(&self) -> bool {
        Texts::accepts(self.column())
    }

    #[getter]
    fn holds_ids(&self) -> bool {
        IdLists::accepts(self.column())
    }

    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ArrowPart>> {
        let next = call::run(py, usize::MAX, |_| {
            call::lock_unused(&self.source, "the arrays of this column")?.next()
        })?;
        Ok(next.map(|(array, first)| ArrowPart {
            given: Arc::clone(&self.given),
            array,
            first,
        }))
    }
}

/// An array of a column.
#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct ArrowPart {
    given: Arc<Type>,
    array: Array,
    first: usize,
}

/// The bytes of rows, and the offsets of the rows and of the end.
type Block<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>);

impl ArrowPart {
    pub fn part(&self) -> Part<'_> {
        Part {
            array: &self.array,
            given: &self.given,
            first: self.first,
        }
    }
}

#[pymethods]
impl ArrowPart {
    fn __len__(&self) -> usize {
        self.array.root().map_or(0, |root| root.length)
    }

    fn text_block<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        max_bytes: usize,
    ) -> PyResult<Block<'py>> {
        fn copy(
            rows: &impl Rows,
            start: usize,
            max_bytes: usize,
            first: usize,
            poller: &mut Poller<'_>,
        ) -> Result<(Vec<u8>, Vec<i64>)> {
            let (mut data, mut offsets) = (Vec::new(), vec![0]);
            for row in start..rows.len() {
                let number = first + row;
                let text = rows.row(row).map_err(|error| in_row(number, error))?;
                let text = text.ok_or_else(|| {
                    Error::Column(format!(
                        "row {number} is null: leave such rows out, or make them empty texts"
                    ))
                })?;
                let size = data.len() + text.len() + size_of_val(offsets.as_slice());
                if size > max_bytes && row > start {
                    break;
                }
                append(&mut data, text)?;
                push(&mut offsets, data.len() as i64)?;
                poller.advance(1 + text.len())?;
            }
            Ok((data, offsets))
        }
        let (data, offsets) = call::run(py, usize::MAX, |interrupt| {
            let mut poller = Poller::new(interrupt);
            match Texts::new(&self.array, &self.given)? {
                Texts::Plain(rows) => copy(&rows, start, max_bytes, self.first, &mut poller),
                Texts::Dictionary(rows) => copy(&rows, start, max_bytes, self.first, &mut poller),
            }
        })?;
        Ok((objects::array(py, data)?, objects::array(py, offsets)?))
    }
}

/// An array that other libraries take.
#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct ArrowArray {
    array: Written,
}

impl From<Written> for ArrowArray {
    fn from(array: Written) -> Self {
        Self { array }
    }
}

type Capsules<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

#[pymethods]
impl ArrowArray {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array.kind.to_capsule(py)
    }

    // The protocol permits a producer to ignore the type that a consumer asks for.
    #[pyo3(signature = (requested_schema=None))]
    #[allow(unused_variables)]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Capsules<'py>> {
        Ok((self.array.kind.to_capsule(py)?, self.array.to_capsule(py)?))
    }

    fn __len__(&self) -> usize {
        self.array.length
    }

    #[getter]
    fn null_count(&self) -> usize {
        self.array.nulls
    }
}

/// Arrays of one type in sequence, which other libraries take.
#[pyclass(frozen, module = "bpe_tokenizer._core")]
pub struct ArrowChunkedArray {
    kind: Kind,
    arrays: Vec<Written>,
}

#[pymethods]
impl ArrowChunkedArray {
    #[new]
    fn new(
        py: Python<'_>,
        type_name: &str,
        #[pyo3(from_py_with = items)] arrays: Vec<Bound<'_, ArrowArray>>,
    ) -> PyResult<Self> {
        let kinds = [("list", Kind::Lists), ("string", Kind::Strings)];
        let kind = value_of(py, "type_name", type_name, &kinds)?;
        let arrays: Vec<_> = arrays
            .iter()
            .map(|array| array.get().array.clone())
            .collect();
        if arrays.iter().any(|array| array.kind != kind) {
            let message = "the arrays have several types".to_owned();
            return Err(exception(py, "ArgumentTypeError", message));
        }
        Ok(Self { kind, arrays })
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.kind.to_capsule(py)
    }

    #[pyo3(signature = (requested_schema=None))]
    #[allow(unused_variables)]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        stream_capsule(py, self.kind, self.arrays.clone())
    }

    fn __len__(&self) -> usize {
        self.arrays.iter().map(|array| array.length).sum()
    }

    #[getter]
    fn num_chunks(&self) -> usize {
        self.arrays.len()
    }

    #[getter]
    fn null_count(&self) -> usize {
        self.arrays.iter().map(|array| array.nulls).sum()
    }
}

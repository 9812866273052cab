//! A file object of Python as a reader of the core.

use crate::call::Calls;
use crate::constructors;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::{self, Read};

/// Bytes to ask for in a call.
const MAX_READ: usize = 1 << 20;

/// Reads with the method `read` of a Python object. Its exception ends the reading, and the call raises it.
pub struct Reader<'a> {
    reader: &'a Py<PyAny>,
    calls: &'a Calls<'a>,
}

impl<'a> Reader<'a> {
    pub fn new(reader: &'a Py<PyAny>, calls: &'a Calls<'a>) -> Self {
        Self { reader, calls }
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(MAX_READ);
        let read = self.calls.value(|py| {
            let data = self
                .reader
                .bind(py)
                .call_method1("read", (constructors::integer(py, wanted)?,))?;
            let data = data
                .cast::<PyBytes>()
                .map_err(|_| PyTypeError::new_err("read must return bytes"))?
                .as_bytes();
            let room = buffer.get_mut(..data.len()).ok_or_else(|| {
                PyValueError::new_err("read returned more bytes than it was asked for")
            })?;
            room.copy_from_slice(data);
            Ok(data.len())
        });
        read.ok_or_else(|| io::Error::other("the reader failed"))
    }
}

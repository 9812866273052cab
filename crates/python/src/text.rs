//! Python text to the core's and back. The text of an ASCII `str` is not copied.

use crate::call::{exception, OrRaise as _};
use crate::constructors;
use crate::strings::{source_of, HeldUnits};
use bpe_tokenizer_core::encoder::{Special, TextSource};
use bpe_tokenizer_core::text::Text;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyString};
use rustc_hash::FxHashSet;

/// A `str` or `bytes` argument, held for a call without the GIL.
pub enum PyText {
    /// A `str` that is ASCII.
    Ascii(PyBackedStr),
    /// The UTF-8 of any other `str`: Python would make it more slowly, and keep it. Pairs of surrogates are joined, lone ones
    /// are U+FFFD. The numbers count the characters up to each joined pair, inclusive.
    Utf8(String, Vec<usize>),
    Bytes(PyBackedBytes),
}

impl<'py> FromPyObject<'_, 'py> for PyText {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if let Ok(text) = object.cast::<PyString>() {
            let text = text.to_owned();
            let TextSource::Units(units) = source_of(&text)? else {
                return PyBackedStr::try_from(text).map(Self::Ascii);
            };
            let mut utf8 = String::new();
            units.append_to(&mut utf8).or_raise(py)?;
            return Ok(Self::Utf8(utf8, units.pairs().or_raise(py)?));
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.to_owned().into()));
        }
        if let Ok(bytes) = object.cast::<PyByteArray>() {
            return Ok(Self::Bytes(bytes.to_owned().into()));
        }
        let given = object.get_type().qualname()?;
        let message = format!("text must be str or bytes, not {given}");
        Err(exception(py, "ArgumentTypeError", message))
    }
}

/// A `str` or `bytes` argument of a call that needs no positions in its UTF-8, held without the GIL.
pub enum PyTextSource {
    /// A `str` that is not ASCII.
    Units(HeldUnits),
    Text(PyText),
}

impl<'py> FromPyObject<'_, 'py> for PyTextSource {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            if let Some(units) = HeldUnits::of(&text)? {
                return Ok(Self::Units(units));
            }
        }
        object.extract().map(Self::Text)
    }
}

impl PyTextSource {
    pub fn get(&self) -> TextSource<'_> {
        match self {
            Self::Units(units) => units.get().into(),
            Self::Text(text) => text.as_text().into(),
        }
    }
}

/// The text of bytes. Bytes that are not UTF-8 go to the error handler `errors` of `bytes.decode`.
pub fn to_text<'py>(py: Python<'py>, bytes: &[u8], errors: &str) -> PyResult<Bound<'py, PyString>> {
    PyString::from_bytes(py, bytes).or_else(|error| {
        if error.is_instance_of::<PyMemoryError>(py) {
            return Err(error);
        }
        let text = constructors::bytes(py, bytes)?.call_method1("decode", ("utf-8", errors))?;
        Ok(text.cast_into()?)
    })
}

impl PyText {
    pub fn as_text(&self) -> Text<'_> {
        match self {
            Self::Ascii(text) => Text::Str(text),
            Self::Utf8(text, _) => Text::Str(text),
            Self::Bytes(bytes) => Text::Bytes(bytes),
        }
    }

    pub fn len(&self) -> usize {
        self.as_text().as_bytes().len()
    }

    /// Whether each character of the Python `str`, or of the `bytes`, is a byte here.
    pub fn has_byte_positions(&self) -> bool {
        !matches!(self, Self::Utf8(..))
    }

    /// The text. Fails for `bytes`.
    pub fn expect_str(&self, py: Python<'_>) -> PyResult<&str> {
        match self.as_text() {
            Text::Str(text) => Ok(text),
            Text::Bytes(_) => {
                let message = "text must be str, not bytes".to_owned();
                Err(exception(py, "ArgumentTypeError", message))
            }
        }
    }

    /// Converts byte positions to character positions of the Python `str` (of `bytes`: to bytes). Ascending
    /// positions are fast.
    pub fn characters(&self) -> Characters<'_> {
        let pairs = match self {
            Self::Utf8(_, pairs) => pairs.as_slice(),
            _ => &[],
        };
        Characters {
            text: self.as_text(),
            byte: 0,
            begun: 0,
            pairs,
        }
    }
}

/// Counts characters from one position to the next.
pub struct Characters<'a> {
    text: Text<'a>,
    byte: usize,
    /// Characters that begin before `byte`.
    begun: usize,
    pairs: &'a [usize],
}

impl Characters<'_> {
    /// Characters that end at or before this byte.
    #[inline]
    pub fn floor(&mut self, byte: usize) -> usize {
        let begun = self.begun(byte);
        let text = self.text.as_bytes();
        let inside =
            matches!(self.text, Text::Str(_)) && text.get(byte).is_some_and(|b| b & 0xc0 == 0x80);
        self.given(begun - usize::from(inside))
    }

    /// Characters that begin before this byte.
    pub fn ceil(&mut self, byte: usize) -> usize {
        let begun = self.begun(byte);
        self.given(begun)
    }

    #[inline(always)]
    fn begun(&mut self, byte: usize) -> usize {
        if byte == self.byte {
            return self.begun; // a span that begins where the last one ended
        }
        let between = |from: usize, to: usize| match self.text {
            Text::Str(text) => leads(text.as_bytes(), from, to),
            Text::Bytes(_) => to - from,
        };
        if self.byte <= byte {
            self.begun += between(self.byte, byte);
        } else {
            self.begun -= between(byte, self.byte);
        }
        self.byte = byte;
        self.begun
    }

    /// Characters of the Python `str`, where a joined pair is two characters.
    #[inline]
    fn given(&self, characters: usize) -> usize {
        if self.pairs.is_empty() {
            return characters;
        }
        characters + self.pairs.partition_point(|&pair| pair <= characters)
    }
}

/// The number of characters that begin in a range of a text.
#[inline(always)]
fn leads(text: &[u8], from: usize, to: usize) -> usize {
    let is_lead = |byte: &&u8| **byte & 0xc0 != 0x80;
    match text[from..].first_chunk() {
        // Nearly all tokens have at most sixteen bytes.
        Some(word) if to - from <= 16 => {
            let word = u128::from_le_bytes(*word);
            let leads = (!word >> 7 | word >> 6) & (u128::MAX / 255);
            let after = u128::MAX.checked_shl(8 * (to - from) as u32).unwrap_or(0);
            let leads = leads & !after;
            // The sum of all bytes: not every processor of this architecture counts bits in one instruction.
            let halves = leads as u64 + (leads >> 64) as u64;
            (halves.wrapping_mul(u64::MAX / 255) >> 56) as usize
        }
        _ => text[from..to].iter().filter(is_lead).count(),
    }
}

/// Which special tokens: none (False), all (True), or a collection of their contents.
pub struct PySpecial(pub Special);

impl PySpecial {
    pub const fn none() -> Self {
        Self(Special::None)
    }
}

impl<'py> FromPyObject<'_, 'py> for PySpecial {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(all) = object.cast::<PyBool>() {
            return Ok(Self(if all.is_true() {
                Special::All
            } else {
                Special::None
            }));
        }
        let contents = object
            .try_iter()?
            .map(|content| content?.extract())
            .collect::<PyResult<FxHashSet<String>>>()?;
        Ok(Self(contents.into()))
    }
}

//! Python text to the core's and back. A `str` whose UTF-8 Python has is not copied.

use crate::call::{exception, to_python};
use crate::objects;
use crate::strings::{source_of, HeldUnits};
use bpe_tokenizer_core::encoder::{Special, TextSource};
use bpe_tokenizer_core::reserve;
use bpe_tokenizer_core::text::Text;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyString};
use rustc_hash::FxHashSet;

/// A `str` or `bytes` argument, held for a call without the GIL.
pub enum PyText {
    Str(PyBackedStr),
    /// The UTF-8 of a `str` that is not ASCII: Python would make it more slowly, and keep it.
    Made(String),
    /// A `str` with surrogates of which two are a pair: pairs are joined, lone ones become U+FFFD. The numbers count the
    /// characters of the result up to each joined pair, inclusive.
    Repaired(String, Vec<usize>),
    Bytes(PyBackedBytes),
}

impl<'py> FromPyObject<'_, 'py> for PyText {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            let text = text.to_owned();
            if let TextSource::Units(units) = source_of(&text)? {
                if !units.has_pairs() {
                    let mut utf8 = String::new();
                    let made = units.append_to(&mut utf8);
                    made.map_err(|error| to_python(object.py(), &error))?;
                    return Ok(Self::Made(utf8));
                }
                return repair(&text);
            }
            return PyBackedStr::try_from(text).map(Self::Str);
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.to_owned().into()));
        }
        if let Ok(bytes) = object.cast::<PyByteArray>() {
            return Ok(Self::Bytes(bytes.to_owned().into()));
        }
        let given = object.get_type().qualname()?;
        let message = format!("text must be str or bytes, not {given}");
        Err(exception(object.py(), "ArgumentTypeError", message))
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
        let text = objects::bytes(py, bytes)?.call_method1("decode", ("utf-8", errors))?;
        Ok(text.cast_into()?)
    })
}

fn repair(text: &Bound<'_, PyString>) -> PyResult<PyText> {
    let encoded = text.call_method1("encode", ("utf-32-le", "surrogatepass"))?;
    let encoded: PyBackedBytes = encoded.extract()?;
    let mut units = encoded
        .as_chunks::<4>()
        .0
        .iter()
        .map(|unit| u32::from_le_bytes(*unit))
        .peekable();
    let failed = |error| to_python(text.py(), &error);
    let (mut repaired, mut pairs, mut length) = (String::new(), Vec::new(), 0);
    reserve::reserve_text(&mut repaired, encoded.len()).map_err(failed)?;
    while let Some(unit) = units.next() {
        let mut code_point = unit;
        length += 1;
        if (0xd800..0xdc00).contains(&unit) {
            if let Some(low) = units.next_if(|low| (0xdc00..0xe000).contains(low)) {
                code_point = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                reserve::push(&mut pairs, length).map_err(failed)?;
            }
        }
        repaired.push(char::from_u32(code_point).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    Ok(PyText::Repaired(repaired, pairs))
}

impl PyText {
    pub fn as_text(&self) -> Text<'_> {
        match self {
            Self::Str(text) => Text::Str(text),
            Self::Made(text) | Self::Repaired(text, _) => Text::Str(text),
            Self::Bytes(bytes) => Text::Bytes(bytes),
        }
    }

    pub fn len(&self) -> usize {
        self.as_text().as_bytes().len()
    }

    /// Whether each character of the Python `str`, or of the `bytes`, is a byte here.
    pub fn has_byte_positions(&self) -> bool {
        match self {
            Self::Str(text) => text.is_ascii(),
            Self::Made(_) | Self::Repaired(..) => false,
            Self::Bytes(_) => true,
        }
    }

    /// The text, if it is a `str`.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            Self::Made(text) | Self::Repaired(text, _) => Some(text),
            Self::Bytes(_) => None,
        }
    }

    /// The text. Fails for `bytes`.
    pub fn expect_str(&self, py: Python<'_>) -> PyResult<&str> {
        self.as_str().ok_or_else(|| {
            let message = "text must be str, not bytes".to_owned();
            exception(py, "ArgumentTypeError", message)
        })
    }

    /// Converts byte positions to character positions of the Python `str` (of `bytes`: to bytes). Ascending
    /// positions are fast.
    pub fn characters(&self) -> Characters<'_> {
        let pairs = match self {
            Self::Repaired(_, pairs) => pairs.as_slice(),
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

    #[inline]
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
    fn given(&self, characters: usize) -> usize {
        characters + self.pairs.partition_point(|&pair| pair <= characters)
    }
}

/// The number of characters that begin in a range of a text.
fn leads(text: &[u8], from: usize, to: usize) -> usize {
    let is_lead = |byte: &&u8| **byte & 0xc0 != 0x80;
    match text[from..].first_chunk() {
        // Most tokens have at most eight bytes, which one word holds.
        Some(word) if to - from <= 8 => {
            let word = u64::from_le_bytes(*word);
            let leads = (!word >> 7 | word >> 6) & 0x0101_0101_0101_0101;
            let after = u64::MAX.checked_shl(8 * (to - from) as u32).unwrap_or(0);
            (leads & !after).count_ones() as usize
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

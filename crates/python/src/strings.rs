//! The text of a `str` without a copy.
//!
//! Python makes the UTF-8 of a `str` that is not ASCII with the GIL, and keeps it as long as the `str`. Most programs encode
//! a text once, and do not need it again. So the core makes the UTF-8, from the code units.
//!
//! `unsafe`: the memory of a `str` is borrowed. Python never changes a `str` to which somebody has a reference; each result
//! borrows one or holds one.

#![allow(unsafe_code)]

use bpe_tokenizer_core::code_units::CodeUnits;
use bpe_tokenizer_core::encoder::TextSource;
use bpe_tokenizer_core::text::Text;
use pyo3::prelude::*;
use pyo3::types::string::PyStringData;
use pyo3::types::PyString;

/// The text of a `str`: its ASCII, or its code units.
#[inline(always)]
pub fn source_of<'a>(text: &'a Bound<'_, PyString>) -> PyResult<TextSource<'a>> {
    // SAFETY: as the module's comment says.
    Ok(match unsafe { text.data() }? {
        PyStringData::Ucs1(units) if units.is_ascii() => {
            // SAFETY: ASCII is UTF-8.
            Text::Str(unsafe { std::str::from_utf8_unchecked(units) }).into()
        }
        PyStringData::Ucs1(units) => CodeUnits::Latin1(units).into(),
        PyStringData::Ucs2(units) => CodeUnits::Ucs2(units).into(),
        PyStringData::Ucs4(units) => CodeUnits::Ucs4(units).into(),
    })
}

/// The code units of a `str`, held for a call without the GIL.
pub struct HeldUnits {
    /// They are in its memory.
    _text: Py<PyString>,
    units: CodeUnits<'static>,
}

impl HeldUnits {
    /// The units of a `str` that is not ASCII.
    pub fn of(text: &Bound<'_, PyString>) -> PyResult<Option<Self>> {
        let TextSource::Units(units) = source_of(text)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            // SAFETY: the units live as long as the `str`, which is held, and nobody gets them for longer.
            units: unsafe { std::mem::transmute::<CodeUnits<'_>, CodeUnits<'static>>(units) },
            _text: text.clone().unbind(),
        }))
    }

    pub fn get(&self) -> CodeUnits<'_> {
        self.units
    }
}

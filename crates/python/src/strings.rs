//! The text of a `str`, read directly in its memory, where the layout of objects is known.
//!
//! Python makes the UTF-8 of a `str` that is not ASCII with the GIL, and keeps it as long as the `str`. Most programs encode
//! a text once, and do not need it again. So the core makes the UTF-8, from the code units.
//!
//! `unsafe`: memory is read through addresses that the layout says. Python changes a `str` in place only if it has one
//! reference. Here the caller has one, and each result borrows that or holds another.

#![allow(unsafe_code)]

use crate::layout::{Layout, Str};
use bpe_tokenizer_core::code_units::CodeUnits;
use bpe_tokenizer_core::encoder::TextSource;
use bpe_tokenizer_core::text::Text;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::slice::from_raw_parts;

/// The units follow the object.
const IS_COMPACT: u32 = 1 << 5;
const IS_ASCII: u32 = 1 << 6;

/// The text of a `str`, without a copy: its UTF-8, if Python has it, or its code units. None for a `str` whose layout is not
/// known.
#[inline]
pub fn source_of<'a>(text: &'a Bound<'_, PyString>) -> Option<TextSource<'a>> {
    let layout = Layout::of(text.py())?;
    let start = text.as_ptr().cast::<u8>();
    // SAFETY: as the module's comment says. A unit is aligned to its size, as the object is to eight bytes. Strings of
    // subclasses are not compact.
    unsafe {
        let Str { length, state, .. } = *start.cast::<Str>();
        let length = length as usize;
        if state & IS_COMPACT == 0 {
            return None;
        }
        if state & IS_ASCII != 0 {
            return Some(utf8(start.add(layout.ascii), length));
        }
        let [utf8_length, utf8_start] = *start.add(layout.ascii).cast::<[usize; 2]>();
        if utf8_start != 0 {
            return Some(utf8(utf8_start as *const u8, utf8_length));
        }
        let at = start.add(layout.units);
        let units = match state >> 2 & 7 {
            1 => CodeUnits::Latin1(from_raw_parts(at, length)),
            2 => CodeUnits::Ucs2(from_raw_parts(at.cast(), length)),
            4 => CodeUnits::Ucs4(from_raw_parts(at.cast(), length)),
            _ => return None,
        };
        Some(units.into())
    }
}

/// # Safety
///
/// There are so many bytes of UTF-8 at this address.
unsafe fn utf8<'a>(start: *const u8, length: usize) -> TextSource<'a> {
    // SAFETY: the caller's promise.
    let text = unsafe { std::str::from_utf8_unchecked(from_raw_parts(start, length)) };
    Text::Str(text).into()
}

/// The code units of a `str`, held for a call without the GIL.
pub struct HeldUnits {
    /// They are in its memory.
    _text: Py<PyString>,
    units: CodeUnits<'static>,
}

impl HeldUnits {
    /// The units of a `str` whose UTF-8 Python does not have.
    pub fn of(text: &Bound<'_, PyString>) -> Option<Self> {
        match source_of(text)? {
            TextSource::Text(_) => None,
            TextSource::Units(units) => Some(Self {
                // SAFETY: the units live as long as the `str`, which is held, and nobody gets them for longer.
                units: unsafe { std::mem::transmute::<CodeUnits<'_>, CodeUnits<'static>>(units) },
                _text: text.clone().unbind(),
            }),
        }
    }

    pub fn get(&self) -> CodeUnits<'_> {
        self.units
    }
}

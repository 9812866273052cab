//! The texts that an encoder takes: UTF-8, or code units.

use crate::code_units::CodeUnits;
use crate::text::Text;
use std::ops::Range;

/// A text as a caller has it.
#[derive(Clone, Copy, Debug)]
pub enum TextSource<'a> {
    /// What is encoded.
    Text(Text<'a>),
    /// Text whose UTF-8 is made when it is encoded.
    Units(CodeUnits<'a>),
}

impl<'a> From<Text<'a>> for TextSource<'a> {
    fn from(text: Text<'a>) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<CodeUnits<'a>> for TextSource<'a> {
    fn from(units: CodeUnits<'a>) -> Self {
        Self::Units(units)
    }
}

impl TextSource<'_> {
    /// The number of bytes or of code units.
    pub fn len(self) -> usize {
        match self {
            Self::Text(text) => text.as_bytes().len(),
            Self::Units(units) => units.len(),
        }
    }

    /// Whether the text is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The bytes of the text; of code units, about how many their UTF-8 has.
    pub fn estimated_bytes(self) -> usize {
        match self {
            Self::Text(text) => text.as_bytes().len(),
            Self::Units(units) => units.estimated_bytes(),
        }
    }

    /// The text in a range of bytes or code units, which must begin and end between characters.
    pub fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::Text(text) => Self::Text(text.slice(range)),
            Self::Units(units) => Self::Units(units.slice(range)),
        }
    }
}

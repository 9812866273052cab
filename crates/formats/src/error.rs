//! The error of this crate: which file, where in it, what is wrong, and what to do.

use bpe_tokenizer_core::error::shorten;
use bpe_tokenizer_core::Error;
use std::fmt;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, FormatError>;

/// Longest path of a field in a message, in characters.
const MAX_PATH: usize = 100;
/// Longest message without the file, in characters.
const MAX_PROBLEM: usize = 280;

/// Where in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The whole file.
    File,
    /// A field, such as `model.merges[3]`.
    Field(String),
    /// A line, from 1.
    Line(usize),
    /// An offset in bytes.
    Byte(u64),
}

/// A file that is broken, or that a model cannot represent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// The name of the file; empty if the caller has no name.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// What is wrong there.
    pub what: String,
    /// What to do; empty if `what` says it.
    pub way_out: &'static str,
}

impl FormatError {
    /// An error about a place of a file.
    pub fn new(file: &str, place: Place, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            place,
            what: what.into(),
            way_out: "",
        }
    }

    /// This error, with what to do.
    pub fn with_way_out(self, way_out: &'static str) -> Self {
        Self { way_out, ..self }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}: ", self.file)?;
        }
        match &self.place {
            Place::File => {}
            Place::Field(path) if path.is_empty() => {}
            Place::Field(path) => write!(f, "{}: ", shorten(path, MAX_PATH))?,
            Place::Line(line) => write!(f, "line {line}: ")?,
            Place::Byte(byte) => write!(f, "byte {byte}: ")?,
        }
        let separator = if self.way_out.is_empty() { "" } else { "; " };
        f.write_str(&shorten(&self.what, MAX_PROBLEM))?;
        write!(f, "{separator}{}", self.way_out)
    }
}

impl std::error::Error for FormatError {}

/// An error of the core about a model, whose file the caller does not name.
impl From<Error> for FormatError {
    fn from(error: Error) -> Self {
        Self::new("", Place::File, error.to_string())
    }
}

/// For callers of the core and of this crate.
impl From<FormatError> for Error {
    fn from(error: FormatError) -> Self {
        Self::Model(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_file_the_place_and_the_way_out() {
        let field = Place::Field("model.merges[3]".to_owned());
        let error = FormatError::new("tokenizer.json", field, "is missing");
        let shown = error.with_way_out("add it").to_string();
        assert_eq!(shown, "tokenizer.json: model.merges[3]: is missing; add it");
        let error = |place| FormatError::new("", place, "ends").to_string();
        assert_eq!(error(Place::Line(2)), "line 2: ends");
        assert_eq!(error(Place::Byte(7)), "byte 7: ends");
        assert_eq!(error(Place::File), "ends");
    }
}

//! The error of this crate: which file, where in it, what is wrong.

use bpe_tokenizer_core::error::shorten;
use bpe_tokenizer_core::Error;
use std::fmt;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, FormatError>;

/// Longest message without the file, in characters.
const MAX_PROBLEM: usize = 280;

/// A broken file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// The name of the file; empty if the caller has no name.
    pub file: String,
    /// The line, from 1; None for the whole file, and if `what` begins with a field.
    pub line: Option<usize>,
    /// What is wrong there.
    pub what: String,
}

impl FormatError {
    /// An error about a file.
    pub fn new(file: &str, what: String) -> Self {
        let file = file.to_owned();
        let line = None;
        Self { file, line, what }
    }

    /// This error, about a line.
    pub fn at_line(self, line: usize) -> Self {
        let line = Some(line);
        Self { line, ..self }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}: ", self.file)?;
        }
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&shorten(&self.what, MAX_PROBLEM))
    }
}

impl std::error::Error for FormatError {}

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
    fn a_message_names_the_file_and_the_line() {
        let error = |file| FormatError::new(file, "ends".to_owned());
        assert_eq!(error("my.tiktoken").to_string(), "my.tiktoken: ends");
        assert_eq!(
            error("my.tiktoken").at_line(2).to_string(),
            "my.tiktoken: line 2: ends"
        );
        assert_eq!(error("").at_line(2).to_string(), "line 2: ends");
    }
}

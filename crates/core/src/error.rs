//! The errors of this crate. A message says what is wrong, where, and what to do, in at most 300 characters.

use crate::text::from_utf8;
use std::io;
use std::path::Path;

/// The result of this crate's fallible functions.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A split pattern is not a valid regular expression.
    #[error("split pattern, character {position}: {message}")]
    Pattern {
        /// Index of the character at which the pattern becomes invalid.
        position: usize,
        /// What is wrong there.
        message: String,
    },
    /// The regex engine exceeded its backtracking limit on a text.
    #[error("the regex engine gave up at byte {byte} of the text: {}; use a split pattern that backtracks less", shorten(.message, MAX_NAME))]
    PatternGaveUp {
        /// Byte of the text.
        byte: usize,
        /// The engine's message.
        message: String,
    },
    /// The vocabulary, the merges or an added token break a rule.
    #[error("{0}")]
    Model(String),
    /// An option has an unusable value.
    #[error("{0}")]
    Option(String),
    /// An id outside the vocabulary.
    #[error("id {id} at position {position} is not in the vocabulary")]
    UnknownId {
        /// The id.
        id: u32,
        /// Its index among the ids to decode.
        position: usize,
    },
    /// An id outside the vocabulary, in one of several rows.
    #[error("row {row}: id {id} at position {position} is not in the vocabulary")]
    UnknownRowId {
        /// The row.
        row: usize,
        /// The id.
        id: u32,
        /// Its index among the ids of the row.
        position: usize,
    },
    /// Text that is not UTF-8.
    #[error("{}: byte {byte} is not valid UTF-8; convert the text to UTF-8 first", shorten(.source_name, MAX_NAME))]
    NotUtf8 {
        /// The file or document.
        source_name: String,
        /// Offset of the first byte that is not UTF-8.
        byte: u64,
    },
    /// A file that cannot be read.
    #[error("{}: {source}", shorten(.path, MAX_NAME))]
    Read {
        /// The file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// A text contains a disallowed special token.
    #[error("{} holds the disallowed special token '{1}' at byte {byte}. Pass allowed_special={{'{1}'}} to encode it as that token, or disallowed_special=() to encode it as text", shorten(.source_name, MAX_NAME), shorten(.token, MAX_TOKEN))]
    Disallowed {
        /// The file.
        source_name: String,
        /// The token's text.
        token: String,
        /// Offset of its first byte.
        byte: u64,
    },
    /// Saved piece counts that are broken.
    #[error("{}byte {byte}: {message}", prefix(.source_name))]
    Saved {
        /// The file; empty for bytes in memory.
        source_name: String,
        /// Offset of the first broken byte.
        byte: u64,
        /// What is wrong there.
        message: String,
    },
    /// Counts that exceed the memory limit cannot be written to the disk, or read back.
    #[error("{}: counts beyond max_memory cannot be kept there: {source}; free some space, or give another spill_directory", shorten(.directory, MAX_NAME))]
    Spill {
        /// The directory.
        directory: String,
        /// The system's error.
        source: io::Error,
    },
    /// A count exceeds 64 bits.
    #[error("the corpus is too large: a count exceeds 64 bits")]
    CountOverflow,
    /// No memory for what the call needs. `bytes` is the size of the buffer that could not grow; 0 if it is unknown.
    #[error("out of memory{}; pass less at a time, use fewer threads, or free memory", needed(*.bytes))]
    OutOfMemory {
        /// Its size.
        bytes: usize,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// A file that the system cannot read.
    pub fn unreadable(path: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::OutOfMemory {
            return Self::OutOfMemory { bytes: 0 };
        }
        let path = path.display().to_string();
        Self::Read { path, source }
    }

    /// Saved counts that are broken at a byte.
    pub fn saved(source_name: &str, byte: u64, message: &str) -> Self {
        Self::Saved {
            source_name: source_name.to_owned(),
            byte,
            message: message.to_owned(),
        }
    }

    /// A file that another process changed while this one read it.
    pub fn changed(path: &Path) -> Self {
        let source = io::Error::other("changed while it was being read; try again");
        Self::unreadable(path, source)
    }
}

/// A file name before a message.
fn prefix(source_name: &str) -> String {
    match source_name {
        "" => String::new(),
        name => format!("{}: ", shorten(name, MAX_NAME)),
    }
}

fn needed(bytes: usize) -> String {
    match bytes {
        0 => String::new(),
        bytes => format!(": no room for a buffer of {bytes} bytes"),
    }
}

/// The bytes as text. The error names their source and the first byte that is not UTF-8, counted from `start`.
pub fn utf8(bytes: &[u8], start: u64, source_name: impl FnOnce() -> String) -> Result<&str> {
    from_utf8(bytes).map_err(|error| Error::NotUtf8 {
        source_name: source_name(),
        byte: start + error.valid_up_to() as u64,
    })
}

/// Longest file name in a message, in characters.
const MAX_NAME: usize = 80;
/// Longest token in a message.
const MAX_TOKEN: usize = 20;

/// A token for a message: quoted, control characters escaped, a long one shortened.
pub fn quoted(token: &str) -> String {
    shorten(&format!("{token:?}"), MAX_TOKEN + 2)
}

/// A value for a message: of a long one, the beginning and the end.
pub fn shorten(value: &str, max: usize) -> String {
    let length = value.chars().count();
    if length <= max {
        return value.to_owned();
    }
    let start: String = value.chars().take(max / 2).collect();
    let end: String = value.chars().skip(length - max / 2).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_short_and_keep_both_ends_of_a_value() {
        let long = "<".to_owned() + &"é".repeat(1000) + ">";
        let error = Error::Disallowed {
            source_name: long.clone(),
            token: long.clone(),
            byte: u64::MAX,
        };
        let message = error.to_string();
        assert!(message.chars().count() <= 300, "{message}");
        assert!(message.starts_with('<') && message.contains("é>' at byte"));
        assert_eq!(quoted("a\n"), "\"a\\n\"");
        assert_eq!(quoted(&long).chars().count(), MAX_TOKEN + 3);
    }
}

//! Everything that can go wrong, each with where it happened and what to do.

/// The result of this crate's fallible functions.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A split pattern is not a valid regular expression.
    #[error("split pattern, character {position}: {message}")]
    Pattern {
        /// Index of the character at which the pattern stops making sense.
        position: usize,
        /// What is wrong there.
        message: String,
    },
    /// The regex engine gave up on a text (its backtracking limit).
    #[error("the regex engine gave up at byte {byte} of a text: {message}; a simpler split pattern would not backtrack so far")]
    PatternGaveUp {
        /// Byte of the text.
        byte: usize,
        /// The engine's words.
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
    /// Text that is not UTF-8.
    #[error("{source_name}: byte {byte} is not valid UTF-8; convert the text to UTF-8 first")]
    NotUtf8 {
        /// The file or document.
        source_name: String,
        /// Offset of the first byte that is not UTF-8.
        byte: u64,
    },
    /// A file that cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A special token stands in a text that must not hold it.
    #[error("{source_name} holds the disallowed special token '{token}' at byte {byte}. To encode it as that token, pass allowed_special={{'{token}'}}; to encode it as plain text, leave it out of disallowed_special (() disallows none)")]
    Disallowed {
        /// The file.
        source_name: String,
        /// The token's text.
        token: String,
        /// Offset of its first byte.
        byte: u64,
    },
    /// Saved piece counts that are broken.
    #[error("byte {byte}: {message}")]
    Saved {
        /// Where they are wrong.
        byte: u64,
        /// What is wrong there.
        message: String,
    },
    /// A count left the range of 64 bits.
    #[error("the corpus is too large: a count exceeds 64 bits")]
    CountOverflow,
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

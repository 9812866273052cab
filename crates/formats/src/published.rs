//! What the package knows about published tokenizers, as data.

use crate::error::{FormatError, Place, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// `tests/support/published_encodings.py` writes it, and a test compares it with the package.
const PUBLISHED: &str = include_str!("published.json");

/// What the package knows about published tokenizers.
#[derive(Deserialize)]
pub struct Published {
    /// Encodings of tiktoken by name.
    pub encodings: BTreeMap<String, Encoding>,
    /// GPT-2's split pattern.
    pub gpt2: String,
    /// Split patterns that match every text.
    pub covering: Vec<String>,
    /// The characters of Hugging Face's step `Punctuation`, inside a class.
    pub punctuation: String,
}

/// An encoding that tiktoken publishes.
#[derive(Deserialize)]
pub struct Encoding {
    /// The split pattern.
    pub pattern: String,
    /// The special tokens by text.
    pub special_tokens: BTreeMap<String, u32>,
}

/// Reads the data.
pub fn published() -> Result<Published> {
    serde_json::from_str(PUBLISHED)
        .map_err(|error| FormatError::new("published.json", Place::File, error.to_string()))
}

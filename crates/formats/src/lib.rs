//! The formats of tokenizer files: the bytes of files become models, or errors that name the place in the file.
//!
//! No directories, no network, no Python: the binding and the page's core call the same readers.

pub mod error;
pub mod huggingface;
pub mod json;
pub mod published;

pub use error::{FormatError, Place, Result};

//! Fast readers for the large tables in tokenizer files. The package's readers in Python, which call them, read the rest.
//!
//! No directories, no network, no Python.

pub mod error;
pub mod huggingface;

pub use error::{FormatError, Place, Result};

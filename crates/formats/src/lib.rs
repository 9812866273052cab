//! Readers of the large tables in tokenizer files, for the readers in Python and for the page's core. Their errors name the
//! place in the file.
//!
//! No directories, no network, no Python.

pub mod error;
pub mod ranks;
pub mod settings;
pub mod tokenizer_json;

pub use error::{FormatError, Result};

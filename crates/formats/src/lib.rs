//! Readers of what is large in tokenizer files, and the settings of a model as JSON, for the readers in Python and for the
//! page's core.
//!
//! - [`tokenizer_json`]: the tokens, merges and added tokens of a `tokenizer.json`. The rest of the file is returned as JSON.
//! - [`ranks`]: the tokens of a rank file of tiktoken.
//! - [`settings`]: all settings of a model, from the JSON that Python and packed models write.
//!
//! An error names the file and the place in it. No directories, no network, no Python.
//!
#![doc = include_str!("../README.md")]

pub mod error;
pub mod ranks;
pub mod settings;
pub mod tokenizer_json;

pub use error::{FormatError, Result};

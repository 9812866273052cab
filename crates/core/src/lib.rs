//! Byte-level BPE: split patterns, encoding, decoding, training.
//!
//! ```text
//! text   -> added tokens -> normalise -> pieces -> cache | merge -> ids
//! corpus -> added tokens -> normalise -> pieces -> counts -> merges
//! ```
//!
//! Both sides share one pre-tokeniser, so they cannot disagree. Nothing here knows Python, prints, or
//! keeps global state, but the function that tells whether memory is low.
//!
#![doc = include_str!("../README.md")]

pub mod alignment;
pub mod buffer_pool;
pub mod cache;
pub mod code_units;
pub mod decimal;
pub mod decoder;
pub mod encoder;
pub mod error;
pub mod files;
pub mod interrupt;
pub mod memory;
pub mod merge;
pub mod model;
mod normal_forms;
pub mod normalize;
mod normalize_run;
pub mod normalizers;
mod pair_table;
mod pipes;
pub mod pretokenize;
pub mod processor;
pub mod reserve;
pub mod roles;
pub mod special;
pub mod text;
pub mod threads;
pub mod train;

pub use encoder::Encoder;
pub use error::{Error, Result};
pub use interrupt::Interrupt;
pub use model::Model;

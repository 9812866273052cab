//! Hugging Face's tokenizer.json: the tables of its tokens, merges and added tokens. Python reads the rest.

pub mod document;
pub mod tables;

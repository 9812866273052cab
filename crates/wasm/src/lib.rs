//! The core for WebAssembly.
//!
//! One instance of the module holds at most one tokenizer, so an instance that is dropped frees all its memory.
//! `page/core.js` is the other side of the boundary: it writes arguments into the input buffers, calls
//! a function of `boundary`, and reads an `Answer`.

mod answer;
mod boundary;
mod packed;
mod ranks;
mod segments;
mod tokenizer;
mod training;
mod utf16;

pub use answer::Answer;
pub use tokenizer::Tokenizer;

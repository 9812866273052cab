//! The rows of text and of JSON Lines, from blocks of bytes.
//!
//! A row that is unusual in any way is left undecided: bytes that are not UTF-8, JSON that is not valid or that Python
//! might read otherwise. The caller, Python, then decides it, and words the error.

mod json;
mod rows;
mod utf8;

pub use json::text_of_field;
pub use rows::{read_rows, RowKind, Rows, Undecided};
pub use utf8::bad_rows;

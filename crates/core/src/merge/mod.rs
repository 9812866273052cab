//! Piece to ids: the merges, and the cache in front of them.

pub mod cache;
mod long;
mod queue;
mod short;
mod table;

pub use long::merge_long;
pub use short::{merge_short, SHORT};
pub use table::PairTable;

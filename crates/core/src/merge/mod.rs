//! Piece to ids: the merges.
//!
//! [`Merger`] is the entry. It picks the fastest of three exact routines by the length of the piece.

mod char_split_points;
mod long;
mod merger;
mod metaspace_split_points;
mod queue;
mod reachability;
mod short;
mod symbols;
mod trace;
mod window;

pub use crate::pair_table::PairTable;
pub use char_split_points::CharSplitPoints;
pub use long::merge_symbols;
pub use merger::Merger;
pub use metaspace_split_points::MetaspaceSplitPoints;
pub use symbols::Symbols;
pub use trace::{MergeStep, MergeTrace};

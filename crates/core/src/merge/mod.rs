//! Piece to ids: the merges, and the cache in front of them.

pub mod cache;
mod crossings;
mod joins;
pub mod keys;
mod long;
pub mod memory;
mod packed;
mod pool;
mod queue;
mod reached;
mod short;
mod symbols;
mod table;
mod trace;
mod window;

pub use crossings::Crossings;
pub use joins::Joins;
pub use long::{merge_and_tell, merge_long};
pub(crate) use memory::prefetch;
pub use packed::{emit, emit_characters};
pub use pool::{CacheStatistics, Pool, Workspace};
pub use reached::unreached;
pub use short::{merge_short, SHORT};
pub use symbols::Symbols;
pub use table::PairTable;
pub use trace::{trace_merges, MergeStep, MergeTrace};

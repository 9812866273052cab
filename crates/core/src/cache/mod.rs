//! The cache: piece to ids, without merging. The hit rate on English is 99 %, so what counts is the cost of
//! a hit: one cache line, and no branch that depends on the piece.

#[allow(clippy::module_inception)]
mod cache;
mod emit;
mod keys;
mod misses;
mod packed;
mod pool;

pub use cache::Cache;
pub use emit::{count, emit, emit_chars, emit_parts};
pub use keys::{bucket_of, has_key, key, key_of, take_batch, Key, KeyBatch, KeySpace, KEY_BYTES};
pub use misses::{Miss, Misses};
pub use packed::PACKED_IDS;
pub use pool::{CacheStatistics, Workspace, WorkspacePool};

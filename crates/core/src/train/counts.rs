//! Counts the distinct pieces of a corpus, in parallel and without holding the corpus in memory.

mod counter;
mod files;
mod reader;
mod saved;
mod shard;
mod splitter;
mod table;
mod window;
mod worker;

pub use counter::{Counted, Counter};
pub use files::Position;
pub use shard::Dropped;
pub use table::PieceCounts;

#[cfg(test)]
mod samples;

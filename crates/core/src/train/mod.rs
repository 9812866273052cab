//! Training: counting the pieces of a corpus, then learning merges from the counts.

pub mod counts;
pub mod merges;

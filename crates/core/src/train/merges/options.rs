//! What a training run gets: options, a warm start, callbacks.

use crate::model::Model;
use std::time::Duration;

/// Which of several equally frequent pairs is merged first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The pair with the lexicographically greatest (left bytes, right bytes).
    Largest,
    /// The pair with the smallest (left, right) in the order of Hugging Face's ids: bytes by GPT-2's
    /// printable characters, then the other tokens of an extended vocabulary by id, then learned tokens
    /// by age.
    HuggingFace,
}

/// The options of a training run.
#[derive(Clone, Debug)]
pub struct MergeOptions {
    /// Learned tokens get the ids from 256, or from the largest id of an extended vocabulary plus 1, up
    /// to `vocab_size` - 1.
    pub vocab_size: u32,
    /// Ids that no learned token gets.
    pub reserved: Vec<u32>,
    /// Smallest count of a pair that is merged.
    pub min_frequency: u64,
    /// Which of several equally frequent pairs is merged first.
    pub tie_break: TieBreak,
    /// Longest learned token, in bytes.
    pub max_token_length: Option<usize>,
    /// Threads that prepare the pieces; 0: one per processor. The result does not depend on it.
    pub threads: usize,
}

impl MergeOptions {
    /// The defaults, with one thread: what a caller does not set is said here alone.
    pub fn new(vocab_size: u32) -> Self {
        Self {
            vocab_size,
            reserved: Vec::new(),
            min_frequency: 2,
            tie_break: TieBreak::Largest,
            max_token_length: None,
            threads: 1,
        }
    }
}

/// What training continues from. The default is the 256 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct WarmStart<'a> {
    /// A vocabulary to extend: each piece starts as the tokens that encoding makes of it.
    pub model: Option<&'a Model>,
    /// Merges that an interrupted run with the same pieces, model and options learned, oldest first. The
    /// result is that of the uninterrupted run.
    pub merges: &'a [(Vec<u8>, Vec<u8>)],
}

/// The two parts of a merge, as bytes.
pub type MergeParts<'a> = (&'a [u8], &'a [u8]);

/// Saves new merges.
pub type Checkpoint<'a> = &'a mut dyn FnMut(&[MergeParts<'_>]);

/// Functions that a training run calls.
pub struct Callbacks<'a> {
    /// Gets the numbers of learned and of wanted tokens, every 100 tokens and at the end.
    pub progress: &'a mut dyn FnMut(usize, usize),
    /// Gets the count of each pair that is merged.
    pub merged: Option<&'a mut dyn FnMut(u64)>,
    /// Gets the merges learned since its last call, oldest first.
    pub checkpoint: Option<Checkpoint<'a>>,
    /// Least time between two checkpoints.
    pub checkpoint_interval: Duration,
}

impl<'a> Callbacks<'a> {
    /// Progress only.
    pub fn progress(progress: &'a mut dyn FnMut(usize, usize)) -> Self {
        Self {
            progress,
            merged: None,
            checkpoint: None,
            checkpoint_interval: Duration::MAX,
        }
    }
}

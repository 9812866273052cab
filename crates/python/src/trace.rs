//! `MergeTrace` and `MergeStep`.

use bpe_tokenizer_core::merge;
use pyo3::prelude::*;

#[pyclass(frozen, eq, get_all, module = "bpe_tokenizer._core")]
#[derive(Clone, PartialEq)]
pub struct MergeStep {
    rank: usize,
    left: usize,
    right: usize,
    left_id: u32,
    right_id: u32,
    token_id: u32,
}

#[pyclass(frozen, eq, get_all, module = "bpe_tokenizer._core")]
#[derive(PartialEq)]
pub struct MergeTrace {
    symbols: Vec<Option<u32>>,
    steps: Vec<MergeStep>,
    ids: Vec<u32>,
    is_whole: bool,
}

impl From<merge::MergeTrace> for MergeTrace {
    fn from(trace: merge::MergeTrace) -> Self {
        let steps = trace.steps.iter().map(|step| MergeStep {
            rank: step.rank,
            left: step.left,
            right: step.right,
            left_id: step.left_id,
            right_id: step.right_id,
            token_id: step.token_id,
        });
        Self {
            steps: steps.collect(),
            symbols: trace.symbols,
            ids: trace.ids,
            is_whole: trace.is_whole,
        }
    }
}

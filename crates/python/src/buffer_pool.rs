//! `BufferPool`.

use bpe_tokenizer_core::buffer_pool::BufferPool as Core;
use pyo3::prelude::*;
use std::sync::Arc;

/// The memory of arrays that no longer exist, for the next ones.
#[pyclass(frozen, module = "bpe_tokenizer._core")]
#[derive(Default)]
pub struct BufferPool {
    pub bytes: Arc<Core<u8>>,
    pub ids: Arc<Core<u32>>,
}

#[pymethods]
impl BufferPool {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

//! `BufferPool`.

use bpe_tokenizer_core::buffer_pool::BufferPool as Core;
use pyo3::prelude::*;
use std::sync::Arc;

/// The memory of arrays that no longer exist, for the next ones.
#[pyclass(frozen, module = "bpe_tokenizer._core")]
#[derive(Default)]
pub struct BufferPool(pub Arc<Core<u8>>);

#[pymethods]
impl BufferPool {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

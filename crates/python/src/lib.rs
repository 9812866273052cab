//! The Python binding: convert, release the GIL, call the core, convert. Nothing else.

#![allow(missing_docs)] // what Python sees is documented in `_core.pyi`
#![allow(clippy::too_many_arguments)] // those of Python are named

mod buffer_pool;
mod call;
mod constructors;
mod counter;
mod decimal;
mod decoded_rows;
mod encoder;
mod gguf;
mod id_lists;
mod ids;
mod model;
mod pattern;
mod rank_table;
mod reader;
mod readers;
mod rows;
mod sequence;
mod settings;
mod stream;
mod strings;
mod text;
mod token_table;
mod tokenizer;
mod trace;
mod words;

use bpe_tokenizer_core::processor::Processor;
use bpe_tokenizer_core::text as printable;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use std::collections::BTreeMap;

#[pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    /// Makes a class that PyO3 would make on first use. PyO3 leaves the GIL to other threads meanwhile, and a child that is forked
    /// then waits for ever (so nothing uses `intern!`).
    #[pymodule_init]
    fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.py().get_type::<crate::constructors::Owner>();
        Ok(())
    }

    #[pymodule_export]
    use super::{
        buffer_pool::BufferPool,
        counter::{PieceCounter, PieceReader},
        decimal::{read_ids, write_ids},
        encoder::Encoder,
        find_roles, from_printable,
        gguf::Strings,
        give_back_large_blocks, instruction_set,
        model::Model,
        pattern::SplitPattern,
        rank_table::RankTable,
        readers::{find_bad_rows, read_rows},
        stream::{DecodeStream, EncodeStream},
        to_printable,
        token_table::{AddedTokensDecoder, TokenTable},
        tokenizer::Tokenizer,
        trace::{MergeStep, MergeTrace},
        words::words,
    };

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

#[pyfunction]
fn give_back_large_blocks() {
    bpe_tokenizer_core::memory::give_back_large_blocks();
}

#[pyfunction]
fn instruction_set() -> String {
    format!("{:?}", Processor::best().instructions()).to_lowercase()
}

#[pyfunction]
fn find_roles(contents: Vec<PyBackedStr>) -> BTreeMap<String, String> {
    bpe_tokenizer_core::roles::find_roles(contents.iter().map(|content| &**content))
}

#[pyfunction]
fn to_printable(token: &[u8]) -> String {
    printable::to_printable(token)
}

#[pyfunction]
fn from_printable(token: &str) -> Option<std::borrow::Cow<'_, [u8]>> {
    printable::from_printable(token).map(std::borrow::Cow::Owned)
}

//! Text to pieces: split patterns, and the other steps of a pre-tokeniser.
//!
//! A pattern becomes a DFA over classes of code points where that is exact, and runs on a regex engine
//! where it is not. From the DFAs of several patterns in sequence, transducers find the pieces of a block
//! of text with vector instructions.

mod blocks;
mod classes;
mod dfa;
mod dialect;
mod lexer;
mod nfa;
mod pattern;
mod portability;
mod pre_tokenizers;
mod simd;
mod split_pattern;
mod steps;
mod transducer;

pub use blocks::Block;
pub use dialect::{from_oniguruma, to_oniguruma};
pub use lexer::is_look_around;
pub use portability::{objection, Engines};
pub use pre_tokenizers::PreTokenizers;
pub use split_pattern::SplitPattern;
pub use steps::{Behavior, Metaspace, Piece, PreTokenizer, Prepend, Split};

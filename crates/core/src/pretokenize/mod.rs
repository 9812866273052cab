//! Text to pieces: the split patterns, and the other steps of a pre-tokeniser.
//!
//! A pattern is compiled to an automaton over code point classes where that is exact, and runs on
//! the regex engine otherwise. Pieces cover the text: what a pattern leaves unmatched between two
//! matches is a piece too. Text may be any bytes; a byte that is not UTF-8 counts as one U+FFFD.

mod blocks;
mod classes;
mod dfa;
mod dialect;
mod fallback;
mod open;
mod pattern;
mod scan;
mod steps;
mod transducer;
mod vector;

pub use blocks::Block;
pub use dialect::{from_oniguruma, to_oniguruma};
pub use open::OpenPieces;
pub use scan::{code_point, floor_char_boundary, last_character};
pub use steps::{Behavior, Piece, PreTokenizer, PreTokenizers, Prepend};
pub use vector::Processor;

use crate::error::Result;
use dfa::Dfa;
use fallback::Fallback;
use std::ops::Range;

enum Engine {
    Automaton(Box<Dfa>),
    Regex(Fallback),
}

/// One compiled split pattern.
pub struct SplitPattern {
    pattern: String,
    engine: Engine,
}

impl SplitPattern {
    /// Compiles a pattern; an error if it is not a regular expression.
    pub fn new(pattern: &str) -> Result<Self> {
        let dfa = pattern::parse(pattern)
            .ok()
            .and_then(|tree| Dfa::new(&tree));
        let engine = match dfa {
            Some(dfa) => Engine::Automaton(Box::new(dfa)),
            None => Engine::Regex(Fallback::new(pattern)?),
        };
        Ok(Self {
            pattern: pattern.to_owned(),
            engine,
        })
    }

    /// The same on the regex engine, whatever the pattern: the oracle of the automaton.
    pub fn on_regex_engine(pattern: &str) -> Result<Self> {
        Ok(Self {
            pattern: pattern.to_owned(),
            engine: Engine::Regex(Fallback::new(pattern)?),
        })
    }

    /// The pattern's text.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The automaton, unless the pattern runs on the regex engine.
    pub fn automaton(&self) -> Option<&Dfa> {
        match &self.engine {
            Engine::Automaton(dfa) => Some(dfa),
            Engine::Regex(_) => None,
        }
    }

    /// Calls `piece` with each piece of the text until it returns false.
    #[inline(always)]
    pub fn split(&self, text: &[u8], mut piece: impl FnMut(Range<usize>) -> bool) -> Result<()> {
        self.matches(text, |range, _| piece(range))
    }

    /// Calls `piece` with each piece of the text, and whether it is a match or stands between matches,
    /// until it returns false.
    #[inline(always)]
    pub fn matches(
        &self,
        text: &[u8],
        piece: impl FnMut(Range<usize>, bool) -> bool,
    ) -> Result<()> {
        match &self.engine {
            Engine::Automaton(dfa) => {
                dfa.matches(text, piece);
                Ok(())
            }
            Engine::Regex(fallback) => fallback.matches(text, piece),
        }
    }
}

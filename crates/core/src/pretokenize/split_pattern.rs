//! A compiled split pattern: a DFA where that is exact, else the regex engine.

use super::dfa::Dfa;
use super::fallback::Fallback;
use super::pattern;
use crate::error::Result;
use std::ops::Range;

enum Engine {
    Automaton(Box<Dfa>),
    Regex(Fallback),
}

/// A compiled split pattern.
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

    /// Compiles a pattern for the regex engine: the oracle of the automaton.
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

    /// The automaton; `None` if the pattern runs on the regex engine.
    pub fn automaton(&self) -> Option<&Dfa> {
        match &self.engine {
            Engine::Automaton(dfa) => Some(dfa),
            Engine::Regex(_) => None,
        }
    }

    /// Calls `piece` with each piece of the text until it returns false.
    ///
    /// The pieces cover the text: a gap between two matches is a piece too.
    #[inline(always)]
    pub fn split(&self, text: &[u8], mut piece: impl FnMut(Range<usize>) -> bool) -> Result<()> {
        self.matches(text, |range, _| piece(range))
    }

    /// Calls `piece` with each piece of the text, and with whether it is a match, until it returns false.
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

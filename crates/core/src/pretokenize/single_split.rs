//! Splits a text that arrives in parts, for a pre-tokeniser that is one split pattern: the fast form of
//! [`IncrementalSplitter`](super::IncrementalSplitter).
//!
//! Up to its last safe cut, the text so far can be split as a whole. After that, one piece at a time is certain.

use super::dfa::{Dfa, Progress};
use super::incremental::MIN_WAIT;
use super::pre_tokenizers::PreTokenizers;
use super::steps::{Behavior, Step};
use crate::error::Result;
use crate::reserve::append_text;
use crate::text::floor_char_boundary;
use std::ops::Range;

/// The state of a text that arrives in parts.
#[derive(Default)]
pub struct SingleSplit {
    /// The text after the last piece that is certain.
    rest: String,
    /// The length that the rest must reach before it is searched for pieces again, unless it can be cut. Without it, a long
    /// piece that arrives in small parts would cost quadratic time.
    wanted: usize,
}

/// A part of a text that no continuation changes.
pub enum CertainPart<'a> {
    /// Text between two ends of pieces.
    Whole(&'a [u8]),
    /// One piece: a range of a text.
    Piece(&'a [u8], Range<usize>),
}

impl SingleSplit {
    /// The beginning of a text; `None` if the pre-tokeniser is something else.
    pub fn new(pre_tokenizers: &PreTokenizers) -> Option<Self> {
        automaton(pre_tokenizers).map(|_| Self::default())
    }

    /// Adds the next part of the text, and calls `emit` with what is certain until it returns false. If the text `ends`, all
    /// of it is certain, and another one begins.
    ///
    /// `pre_tokenizers` are those of [`SingleSplit::new`].
    pub fn push(
        &mut self,
        pre_tokenizers: &PreTokenizers,
        text: &str,
        ends: bool,
        mut emit: impl FnMut(CertainPart<'_>) -> bool,
    ) -> Result<()> {
        let Some(automaton) = automaton(pre_tokenizers) else {
            return Ok(()); // not constructed then
        };
        let before = self.rest.len();
        let last = floor_char_boundary(&self.rest, before.saturating_sub(1));
        if before > 0 {
            append_text(&mut self.rest, text)?;
        }
        let all = if before > 0 { &self.rest } else { text };
        let cut = match ends {
            true => all.len(),
            false => automaton.last_safe_cut(all, last, |_, _| true).unwrap_or(0),
        };
        if cut > 0 && !emit(CertainPart::Whole(&all.as_bytes()[..cut])) {
            return Ok(());
        }
        let mut done = cut;
        let tail = &all.as_bytes()[cut..];
        if cut > 0 || tail.len() >= self.wanted {
            let mut progress = Progress::default();
            let piece = |range, _| emit(CertainPart::Piece(tail, range));
            let (end, _) = automaton.stable_matches(tail, &mut progress, piece);
            done += end;
            self.wanted = match all.len() - done {
                ..MIN_WAIT => 0,
                left => 2 * left,
            };
        }
        if before > 0 {
            self.rest.drain(..done);
        } else {
            append_text(&mut self.rest, &text[done..])?;
        }
        Ok(())
    }
}

/// The automaton of the only step, if each of its matches and gaps is a piece.
fn automaton(pre_tokenizers: &PreTokenizers) -> Option<&Dfa> {
    match pre_tokenizers.steps.as_slice() {
        [Step::Split(split)] if split.behavior == Behavior::Isolated && !split.bytes => {
            split.pattern.automaton()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::OffsetMap;
    use crate::pretokenize::{Metaspace, PreTokenizer, Prepend, Split};
    use proptest::prelude::*;

    const WORDS: &str = r"'s| ?\p{L}+| ?\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

    fn pieces_of(pre_tokenizers: &PreTokenizers, text: &[u8]) -> Vec<String> {
        let mut pieces = Vec::new();
        let add = |piece: crate::pretokenize::Piece<'_>| {
            pieces.push(String::from_utf8_lossy(&piece.text[piece.range]).into_owned());
            true
        };
        pre_tokenizers
            .split(text, &OffsetMap::original(0), false, add)
            .unwrap();
        pieces
    }

    /// The pieces of each part of a text, and of its end.
    fn in_parts(pattern: &str, parts: &[&str]) -> Vec<Vec<String>> {
        let pre_tokenizers = PreTokenizers::of_patterns(&[pattern.to_owned()]).unwrap();
        let mut split = SingleSplit::new(&pre_tokenizers).unwrap();
        let mut push = |text: &str, ends: bool| {
            let mut pieces = Vec::new();
            let emit = |part: CertainPart<'_>| {
                match part {
                    CertainPart::Whole(text) => pieces.extend(pieces_of(&pre_tokenizers, text)),
                    CertainPart::Piece(text, range) => {
                        pieces.push(String::from_utf8_lossy(&text[range]).into_owned());
                    }
                }
                true
            };
            split.push(&pre_tokenizers, text, ends, emit).unwrap();
            pieces
        };
        let mut found: Vec<_> = parts.iter().map(|part| push(part, false)).collect();
        found.push(push("", true));
        found
    }

    #[test]
    fn a_piece_comes_as_soon_as_no_continuation_changes_it() {
        let parts = ["It", "'s", " an", " x1", "23", "4  ", "", "b"];
        let expected = [
            vec![],
            vec!["It"],
            vec!["'s"],
            vec![" an", " x"],
            vec![],
            vec!["123", "4"],
            vec![],
            vec![" "],
            vec![" b"],
        ];
        assert_eq!(in_parts(WORDS, &parts), expected);
    }

    #[test]
    fn only_one_split_pattern_is_split_so() {
        let is_single = |steps: &[PreTokenizer]| {
            SingleSplit::new(&PreTokenizers::new(steps).unwrap()).is_some()
        };
        let split = |pattern: &str, behavior, bytes| {
            PreTokenizer::Split(Split {
                pattern: pattern.to_owned(),
                behavior,
                invert: false,
                bytes,
            })
        };
        let words = || PreTokenizer::isolated(WORDS);
        assert!(is_single(&[words()]));
        let metaspace = PreTokenizer::Metaspace(Metaspace {
            replacement: '▁',
            prepend: Prepend::Always,
            split: true,
        });
        for others in [
            vec![],
            vec![words(), words()],
            vec![PreTokenizer::PrefixSpace, words()],
            vec![metaspace],
            vec![split("-", Behavior::Removed, false)],
            vec![split("-", Behavior::Isolated, true)],
            vec![split(r"(?<=a)b", Behavior::Isolated, false)],
        ] {
            assert!(!is_single(&others), "{others:?}");
        }
    }

    #[test]
    fn a_long_piece_comes_in_small_parts() {
        let parts = vec!["語"; 20_000];
        let found = in_parts(WORDS, &parts);
        assert_eq!(found.concat(), ["語".repeat(20_000)]);
    }

    proptest! {
        #[test]
        fn the_pieces_of_parts_are_those_of_the_text(
            parts in prop::collection::vec("[a'sé語 \n1.-]{0,5}|[a-z ]{0,80}| {0,70}", 0..20),
        ) {
            for pattern in [WORDS, "-|x+", r"\p{L}+|-"] {
                let pre_tokenizers = PreTokenizers::of_patterns(&[pattern.to_owned()]).unwrap();
                let expected = pieces_of(&pre_tokenizers, parts.concat().as_bytes());
                let parts: Vec<_> = parts.iter().map(String::as_str).collect();
                prop_assert_eq!(in_parts(pattern, &parts).concat(), expected);
            }
        }
    }
}

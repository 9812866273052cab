//! A pre-tokeniser as steps, one after the other, each applied to the pieces that the one before left.
//!
//! The steps and their details are those of Hugging Face `tokenizers` (its `pre_tokenizers` module and
//! `NormalizedString::split`).

use super::blocks::{Block, Machines};
use super::dfa::Dfa;
use super::vector::Processor;
use super::{code_point, SplitPattern};
use crate::alignment::{Alignment, Place, Rewriting};
use crate::error::Result;
use crate::normalizers::prepend;
use crate::printable::char_of_byte;
use std::ops::Range;

/// What happens to the matches of a pattern, which stand between the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// They are pieces.
    Isolated,
    /// They are dropped.
    Removed,
    /// They belong to what comes before.
    MergedWithPrevious,
    /// They belong to what comes after.
    MergedWithNext,
    /// Neighbouring ones are one piece.
    Contiguous,
}

/// Before which pieces `Metaspace` puts its character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prepend {
    /// Before every one.
    Always,
    /// Before the one that the text as given begins with.
    First,
    /// Before none.
    Never,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreTokenizer {
    /// Cuts at the matches of a pattern.
    Split {
        /// A regular expression.
        pattern: String,
        /// What happens to its matches.
        behavior: Behavior,
        /// What stands between the matches counts as the matches.
        invert: bool,
        /// The pattern sees each byte as the printable character that stands for it.
        bytes: bool,
    },
    /// Puts a space before each piece that begins with none.
    PrefixSpace,
    /// Writes spaces as another character, and may cut before each.
    Metaspace {
        /// The character.
        replacement: char,
        /// Where it is put before pieces that begin with none.
        prepend: Prepend,
        /// Cut before each.
        split: bool,
    },
}

impl PreTokenizer {
    /// A step that makes the matches of a pattern pieces.
    pub fn isolated(pattern: impl Into<String>) -> Self {
        Self::Split {
            pattern: pattern.into(),
            behavior: Behavior::Isolated,
            invert: false,
            bytes: false,
        }
    }

    /// The pattern, if it is such a step.
    pub fn isolated_pattern(&self) -> Option<&str> {
        match self {
            Self::Split {
                pattern,
                behavior: Behavior::Isolated,
                bytes: false,
                ..
            } => Some(pattern),
            _ => None,
        }
    }
}

pub(super) enum Step {
    Split {
        pattern: Box<SplitPattern>,
        behavior: Behavior,
        invert: bool,
        bytes: bool,
    },
    PrefixSpace,
    Metaspace {
        replacement: String,
        prepend: Prepend,
        split: bool,
    },
}

impl Step {
    /// The automaton of a step that only cuts, at the ends of the matches of a pattern that has one.
    pub fn automaton(&self) -> Option<&Dfa> {
        match self {
            Step::Split {
                pattern,
                behavior: Behavior::Isolated,
                bytes: false,
                ..
            } => pattern.automaton(),
            _ => None,
        }
    }

    /// Whether it asks where a piece stood in the text as given.
    pub fn asks_for_place(&self) -> bool {
        matches!(
            self,
            Step::Metaspace {
                prepend: Prepend::First,
                ..
            }
        )
    }
}

/// A piece of a text.
pub struct Piece<'a> {
    /// The text, which steps may have rewritten.
    pub text: &'a [u8],
    /// The piece's bytes in it.
    pub range: Range<usize>,
    /// Where the text stands in the text as given.
    pub place: &'a Place<'a>,
}

/// The steps, ready to run.
pub struct PreTokenizers {
    pub(super) steps: Vec<Step>,
    machines: Option<Machines>,
}

impl PreTokenizers {
    /// Compiles the patterns; without a step, a text is a piece.
    pub fn new(steps: &[PreTokenizer]) -> Result<Self> {
        Self::on(Processor::best(), steps)
    }

    /// The same for the instructions of a processor.
    pub fn on(processor: Processor, steps: &[PreTokenizer]) -> Result<Self> {
        let compile = |step: &PreTokenizer| {
            Ok(match step {
                PreTokenizer::Split {
                    pattern,
                    behavior,
                    invert,
                    bytes,
                } => Step::Split {
                    pattern: Box::new(SplitPattern::new(pattern)?),
                    behavior: *behavior,
                    invert: *invert,
                    bytes: *bytes,
                },
                PreTokenizer::PrefixSpace => Step::PrefixSpace,
                PreTokenizer::Metaspace {
                    replacement,
                    prepend,
                    split,
                } => Step::Metaspace {
                    replacement: replacement.to_string(),
                    prepend: *prepend,
                    split: *split,
                },
            })
        };
        let steps: Vec<Step> = steps.iter().map(compile).collect::<Result<_>>()?;
        let machines = Machines::new(&steps, processor);
        Ok(Self { steps, machines })
    }

    /// Compiles split patterns, whose matches are isolated.
    pub fn of_patterns(patterns: &[String]) -> Result<Self> {
        let steps: Vec<_> = patterns.iter().map(PreTokenizer::isolated).collect();
        Self::new(&steps)
    }

    /// The pattern whose pieces are all there is to it, if it is that simple.
    fn only_pattern(&self) -> Option<&SplitPattern> {
        match self.steps.as_slice() {
            [Step::Split {
                pattern,
                behavior: Behavior::Isolated,
                bytes: false,
                ..
            }] => Some(pattern),
            _ => None,
        }
    }

    /// Whether [`PreTokenizers::next_block`] can be asked.
    pub fn has_blocks(&self) -> bool {
        self.machines.is_some()
    }

    /// Finds the pieces of a block of the text that begins at `from`, where a piece does; returns where
    /// the block ends. They are those that [`PreTokenizers::split`] finds one by one.
    #[inline]
    pub fn next_block(
        &self,
        text: &[u8],
        is_utf8: bool,
        from: usize,
        block: &mut Block,
    ) -> Result<usize> {
        match &self.machines {
            Some(machines) => machines.next(&self.steps, text, is_utf8, from, block),
            None => Ok(text.len()),
        }
    }

    /// Whether a step asks where a piece stood in the text as given.
    pub fn asks_for_places(&self) -> bool {
        self.steps.iter().any(Step::asks_for_place)
    }

    /// Calls `piece` with each piece of the text until it returns false. Places are right in texts that
    /// steps rewrote only if `aligned` asks for them.
    #[inline(always)]
    pub fn split(
        &self,
        text: &[u8],
        place: &Place<'_>,
        aligned: bool,
        mut piece: impl FnMut(Piece<'_>) -> bool,
    ) -> Result<()> {
        if let Some(pattern) = self.only_pattern() {
            return pattern.split(text, |range| piece(Piece { text, range, place }));
        }
        let whole = Piece {
            text,
            range: 0..text.len(),
            place,
        };
        run(&self.steps, whole, aligned, &mut piece).map(|_| ())
    }

    /// The last position in `text[from..]` that always ends a piece (see `Dfa::is_safe_cut`).
    pub fn last_safe_cut(
        &self,
        text: &str,
        from: usize,
        allowed: impl Fn(char, char) -> bool,
    ) -> Option<usize> {
        let first = self.steps.first()?;
        first.automaton()?.last_safe_cut(text, from, allowed)
    }

    /// Whether [`PreTokenizers::last_safe_cut`] finds any.
    pub fn may_be_cut(&self) -> bool {
        let first = self.steps.first();
        first.is_some_and(|step| step.automaton().is_some())
    }
}

/// Applies the steps to a piece; returns false if `piece` did.
pub(super) fn run(
    steps: &[Step],
    whole: Piece<'_>,
    aligned: bool,
    piece: &mut dyn FnMut(Piece<'_>) -> bool,
) -> Result<bool> {
    if whole.range.is_empty() {
        return Ok(true);
    }
    let Some((step, rest)) = steps.split_first() else {
        return Ok(piece(whole));
    };
    let Piece { text, range, place } = whole;
    match step {
        Step::Split {
            pattern,
            behavior,
            invert,
            bytes,
        } => {
            let mut outcome = Ok(true);
            let mut next = |part: Range<usize>| {
                let range = range.start + part.start..range.start + part.end;
                outcome = run(rest, Piece { text, range, place }, aligned, piece);
                matches!(outcome, Ok(true))
            };
            let mut folded = Folded::new(*behavior, *invert);
            let mut matched = |part, is_match| folded.add(part, is_match, &mut next);
            if *bytes {
                matches_in_bytes(pattern, &text[range.clone()], &mut matched)?;
            } else {
                pattern.matches(&text[range.clone()], matched)?;
            }
            folded.finish(&mut next);
            outcome
        }
        Step::PrefixSpace => match text[range.start] {
            b' ' => run(rest, Piece { text, range, place }, aligned, piece),
            _ => rewritten(
                prepend(&text[range.clone()], " ", aligned),
                Piece { text, range, place },
                |whole| run(rest, whole, aligned, piece),
            ),
        },
        Step::Metaspace {
            replacement,
            prepend: wanted,
            split,
        } => {
            let spaced = replace_spaces(&text[range.clone()], replacement, aligned);
            let mut next = |whole: Piece<'_>| {
                if *split {
                    split_before(replacement, rest, whole, aligned, piece)
                } else {
                    run(rest, whole, aligned, piece)
                }
            };
            rewritten(spaced, Piece { text, range, place }, |whole| {
                let text = &whole.text[whole.range.clone()];
                let wanted = match wanted {
                    Prepend::Always => true,
                    Prepend::First => whole.place.start(whole.range.start) == 0,
                    Prepend::Never => false,
                };
                if wanted && !text.starts_with(replacement.as_bytes()) {
                    rewritten(prepend(text, replacement, aligned), whole, &mut next)
                } else {
                    next(whole)
                }
            })
        }
    }
}

/// Goes on with what a piece was rewritten to, or with the piece itself.
fn rewritten(
    changed: Option<(Vec<u8>, Alignment)>,
    whole: Piece<'_>,
    next: impl FnOnce(Piece<'_>) -> Result<bool>,
) -> Result<bool> {
    let Some((text, alignment)) = changed else {
        return next(whole);
    };
    next(Piece {
        text: &text,
        range: 0..text.len(),
        place: &Place {
            outer: Some(whole.place),
            base: whole.range.start,
            alignment: &alignment,
            offset: 0,
        },
    })
}

fn replace_spaces(text: &[u8], replacement: &str, aligned: bool) -> Option<(Vec<u8>, Alignment)> {
    let mut rewriting: Option<Rewriting<'_>> = None;
    for at in memchr::memchr_iter(b' ', text) {
        rewriting
            .get_or_insert_with(|| Rewriting::new(text, aligned))
            .replace(at..at + 1, replacement.as_bytes());
    }
    rewriting.map(Rewriting::finish)
}

/// Cuts a piece before each occurrence of a character.
fn split_before(
    character: &str,
    rest: &[Step],
    whole: Piece<'_>,
    aligned: bool,
    piece: &mut dyn FnMut(Piece<'_>) -> bool,
) -> Result<bool> {
    let Piece { text, range, place } = whole;
    let mut start = range.start;
    let found = memchr::memmem::find_iter(&text[range.clone()], character);
    let ends = found.map(|at| range.start + at).chain([range.end]);
    for end in ends.filter(|&end| end > range.start) {
        let part = Piece {
            text,
            range: start..end,
            place,
        };
        if !run(rest, part, aligned, piece)? {
            return Ok(false);
        }
        start = end;
    }
    Ok(true)
}

/// The matches of a pattern in the printable characters of bytes, in places of the bytes.
fn matches_in_bytes(
    pattern: &SplitPattern,
    text: &[u8],
    piece: &mut dyn FnMut(Range<usize>, bool) -> bool,
) -> Result<()> {
    if text.iter().all(u8::is_ascii_graphic) {
        return pattern.matches(text, piece); // these stand for themselves
    }
    let printable: String = text.iter().map(|&byte| char_of_byte(byte)).collect();
    let (mut at, mut index) = (0, 0);
    pattern.matches(printable.as_bytes(), |range, is_match| {
        let start = index;
        while at < range.end {
            at += code_point(printable.as_bytes(), at).1;
            index += 1;
        }
        piece(start..index, is_match)
    })
}

/// Makes pieces of the matches of a pattern and of what is between them.
pub(super) struct Folded {
    behavior: Behavior,
    invert: bool,
    /// A piece that what follows may become a part of, and whether it ended with a match.
    pub held: Option<(Range<usize>, bool)>,
}

impl Folded {
    pub fn new(behavior: Behavior, invert: bool) -> Self {
        Self {
            behavior,
            invert,
            held: None,
        }
    }

    /// Returns false if `piece` did.
    pub fn add(
        &mut self,
        range: Range<usize>,
        is_match: bool,
        piece: &mut impl FnMut(Range<usize>) -> bool,
    ) -> bool {
        let is_match = is_match != self.invert;
        match self.behavior {
            Behavior::Isolated => return piece(range),
            Behavior::Removed => return is_match || piece(range),
            _ => {}
        }
        if let Some((held, ended_with_match)) = &mut self.held {
            let joins = match self.behavior {
                Behavior::Contiguous => is_match == *ended_with_match,
                Behavior::MergedWithPrevious => is_match && !*ended_with_match,
                _ => *ended_with_match && !is_match,
            };
            if joins {
                held.end = range.end;
                *ended_with_match = is_match;
                return true;
            }
        }
        let held = self.held.replace((range, is_match));
        let go_on = held.is_none_or(|(range, _)| piece(range));
        if !go_on {
            self.held = None;
        }
        go_on
    }

    pub fn finish(self, piece: &mut impl FnMut(Range<usize>) -> bool) {
        if let Some((range, _)) = self.held {
            piece(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(steps: &[PreTokenizer], text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        PreTokenizers::new(steps)
            .unwrap()
            .split(text.as_bytes(), &Place::given(0), true, |piece| {
                pieces.push(String::from_utf8_lossy(&piece.text[piece.range]).into_owned());
                true
            })
            .unwrap();
        pieces
    }

    fn with(behavior: Behavior, invert: bool) -> [PreTokenizer; 1] {
        [PreTokenizer::Split {
            pattern: "-".to_owned(),
            behavior,
            invert,
            bytes: false,
        }]
    }

    #[test]
    fn each_behavior_is_that_of_the_library() {
        let text = "the-final--countdown-";
        for (behavior, pieces) in [
            (Behavior::Isolated, "the|-|final|-|-|countdown|-"),
            (Behavior::Removed, "the|final|countdown"),
            (Behavior::MergedWithPrevious, "the-|final-|-|countdown-"),
            (Behavior::MergedWithNext, "the|-final|-|-countdown|-"),
            (Behavior::Contiguous, "the|-|final|--|countdown|-"),
        ] {
            assert_eq!(split(&with(behavior, false), text).join("|"), pieces);
        }
        assert_eq!(
            split(&with(Behavior::Removed, true), text).join("|"),
            "-|-|-|-"
        );
        assert_eq!(
            split(&with(Behavior::MergedWithPrevious, true), text).join("|"),
            "the|-final|-|-countdown|-"
        );
    }

    #[test]
    fn metaspace_prepends_where_it_is_told() {
        let metaspace = |prepend, split| PreTokenizer::Metaspace {
            replacement: '▁',
            prepend,
            split,
        };
        let on_dashes = PreTokenizer::isolated("-");
        for (prepend, split_too, pieces) in [
            (Prepend::Always, true, "▁a|▁b|▁-|▁c|▁▁d"),
            (Prepend::First, true, "▁a|▁b|-|c|▁|▁d"),
            (Prepend::Never, false, "a▁b|-|c▁▁d"),
        ] {
            let steps = [on_dashes.clone(), metaspace(prepend, split_too)];
            let expected = pieces.replace("▁▁d", if split_too { "▁|▁d" } else { "▁▁d" });
            assert_eq!(split(&steps, "a b-c  d").join("|"), expected);
        }
        assert_eq!(split(&[metaspace(Prepend::Always, true)], " a"), ["▁a"]);
    }

    #[test]
    fn a_pattern_may_look_at_printable_characters() {
        let steps = [PreTokenizer::Split {
            pattern: r"\p{N}+".to_owned(),
            behavior: Behavior::Isolated,
            invert: false,
            bytes: true,
        }];
        // ² is C2 B2, written Â², and its second half is a number.
        let mut ranges = Vec::new();
        PreTokenizers::new(&steps)
            .unwrap()
            .split("a 12²".as_bytes(), &Place::given(0), false, |piece| {
                ranges.push(piece.range);
                true
            })
            .unwrap();
        assert_eq!(ranges, [0..2, 2..4, 4..5, 5..6]);
    }
}

//! The steps of a pre-tokeniser in sequence: each step splits or rewrites the pieces of the previous one.
//!
//! The steps and their details are those of Hugging Face `tokenizers` (its `pre_tokenizers` module and
//! `NormalizedString::split`).

use super::dfa::Dfa;
use super::split_pattern::SplitPattern;
use crate::alignment::{prepend, OffsetMap, Rewriting, Rewritten};
use crate::error::Result;
use crate::reserve::reserve_text;
use crate::text::{char_of_byte, code_point};
use std::ops::Range;

/// What a split does with the matches of its pattern (`SplitDelimiterBehavior`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Behavior {
    /// Each match is a piece.
    Isolated,
    /// Matches are dropped.
    Removed,
    /// A match is part of the piece before it.
    MergedWithPrevious,
    /// A match is part of the piece after it.
    MergedWithNext,
    /// Adjacent matches are one piece.
    Contiguous,
}

/// The pieces to which `Metaspace` prepends its character (`PrependScheme`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Prepend {
    /// Every piece.
    Always,
    /// The piece at the beginning of the original text.
    First,
    /// No piece.
    Never,
}

/// A step: as a model describes it, or with its pattern `P` compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "type"))]
pub enum PreTokenizer<P = String> {
    /// Splits at the matches of a pattern.
    Split(Split<P>),
    /// The same, by a pattern that reads the printable character of each byte.
    SplitBytes(Split<P>),
    /// Prepends a space to each piece that does not begin with one.
    PrefixSpace,
    /// Replaces spaces by another character, and may split before each.
    Metaspace(Metaspace),
}

/// A split at the matches of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Split<P = String> {
    /// A regular expression.
    pub pattern: P,
    /// What happens to its matches.
    pub behavior: Behavior,
    /// Swaps the matches and the gaps between them.
    pub invert: bool,
}

/// A replacement of spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Metaspace {
    /// The character that replaces them.
    pub replacement: char,
    /// The pieces that get one prepended if they do not begin with it.
    #[cfg_attr(feature = "serde", serde(rename = "prepend_scheme"))]
    pub prepend: Prepend,
    /// Split before each occurrence.
    pub split: bool,
}

/// A compiled step.
pub type Step = PreTokenizer<Box<SplitPattern>>;

impl PreTokenizer {
    /// A split whose matches are pieces.
    pub fn isolated(pattern: impl Into<String>) -> Self {
        Self::Split(Split {
            pattern: pattern.into(),
            behavior: Behavior::Isolated,
            invert: false,
        })
    }

    /// Compiles the pattern.
    pub fn compile(&self) -> Result<Step> {
        Ok(match self {
            Self::Split(split) => Step::Split(split.compile()?),
            Self::SplitBytes(split) => Step::SplitBytes(split.compile()?),
            Self::PrefixSpace => Step::PrefixSpace,
            Self::Metaspace(metaspace) => Step::Metaspace(*metaspace),
        })
    }
}

impl Split {
    fn compile(&self) -> Result<Split<Box<SplitPattern>>> {
        Ok(Split {
            pattern: Box::new(SplitPattern::new(&self.pattern)?),
            behavior: self.behavior,
            invert: self.invert,
        })
    }
}

impl<P> PreTokenizer<P> {
    /// The pattern of a split whose matches are pieces.
    pub fn isolated_pattern(&self) -> Option<&P> {
        match self {
            Self::Split(split) if split.behavior == Behavior::Isolated => Some(&split.pattern),
            _ => None,
        }
    }

    /// Whether the step depends on a piece's position in the original text.
    pub fn needs_offsets(&self) -> bool {
        matches!(self, Self::Metaspace(metaspace) if metaspace.prepend == Prepend::First)
    }
}

impl Step {
    /// The automaton of a split whose matches are pieces.
    pub fn automaton(&self) -> Option<&Dfa> {
        self.isolated_pattern()?.automaton()
    }
}

/// Whether a piece of the last step ends between two code points, whatever precedes and follows. The two sides of the text
/// then have the pieces of the whole.
///
/// A step that does not end a piece there must have no match that reads the first code point: the second one then begins
/// as a text does.
pub fn is_safe_cut(steps: &[Step], before: u32, after: u32) -> bool {
    for step in steps {
        let Some(dfa) = step.automaton() else {
            return false;
        };
        let before = dfa.classes.of(before);
        if dfa.is_safe_cut(before, dfa.classes.of(after)) {
            return true;
        }
        if !dfa.is_in_no_match(before) {
            return false;
        }
    }
    false
}

/// A piece of a text.
pub struct Piece<'a> {
    /// The text, which steps may have rewritten.
    pub text: &'a [u8],
    /// The piece's bytes in it.
    pub range: Range<usize>,
    /// Maps offsets in the text to the original text.
    pub offsets: &'a OffsetMap<'a>,
}

impl<'a> Piece<'a> {
    /// A piece of the original text.
    pub fn new(text: &'a [u8], range: Range<usize>) -> Self {
        const OFFSETS: &OffsetMap<'static> = &OffsetMap::original(0);
        Piece {
            text,
            range,
            offsets: OFFSETS,
        }
    }

    /// Another piece of the same text.
    pub fn with_range(&self, range: Range<usize>) -> Piece<'a> {
        Piece { range, ..*self }
    }

    fn bytes(&self) -> &'a [u8] {
        &self.text[self.range.clone()]
    }
}

/// Applies the steps to a piece; returns false if `piece` did. Offsets in rewritten texts are right only if
/// `aligned` is set.
pub fn run(
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
    match step {
        Step::Split(split) | Step::SplitBytes(split) => {
            let mut outcome = Ok(true);
            let mut next = |found: Range<usize>| {
                let found = whole.range.start + found.start..whole.range.start + found.end;
                outcome = run(rest, whole.with_range(found), aligned, piece);
                matches!(outcome, Ok(true))
            };
            let mut joiner = MatchJoiner::new(split.behavior, split.invert);
            let mut matched = |found, is_match| joiner.add(found, is_match, &mut next);
            if matches!(step, Step::SplitBytes(_)) {
                matches_in_bytes(&split.pattern, whole.bytes(), &mut matched)?;
            } else {
                split.pattern.matches(whole.bytes(), matched)?;
            }
            joiner.finish(&mut next);
            outcome
        }
        Step::PrefixSpace if whole.bytes()[0] == b' ' => run(rest, whole, aligned, piece),
        Step::PrefixSpace => rewritten(prepend(whole.bytes(), " ", aligned)?, whole, |whole| {
            run(rest, whole, aligned, piece)
        }),
        Step::Metaspace(metaspace) => {
            let mut bytes = [0; 4];
            let replacement: &str = metaspace.replacement.encode_utf8(&mut bytes);
            let spaced = replace_spaces(whole.bytes(), replacement, aligned)?;
            let mut next = |whole: Piece<'_>| {
                if metaspace.split {
                    split_before(replacement, rest, whole, aligned, piece)
                } else {
                    run(rest, whole, aligned, piece)
                }
            };
            rewritten(spaced, whole, |whole| {
                let text = whole.bytes();
                let prepends = match metaspace.prepend {
                    Prepend::Always => true,
                    Prepend::First => whole.offsets.start(whole.range.start) == 0,
                    Prepend::Never => false,
                };
                if prepends && !text.starts_with(replacement.as_bytes()) {
                    rewritten(prepend(text, replacement, aligned)?, whole, &mut next)
                } else {
                    next(whole)
                }
            })
        }
    }
}

/// Continues with the rewritten piece, or with the piece itself if nothing changed.
fn rewritten(
    changed: Option<Rewritten>,
    whole: Piece<'_>,
    next: impl FnOnce(Piece<'_>) -> Result<bool>,
) -> Result<bool> {
    let Some((text, alignment)) = changed else {
        return next(whole);
    };
    next(Piece {
        text: &text,
        range: 0..text.len(),
        offsets: &OffsetMap {
            outer: Some(whole.offsets),
            base: whole.range.start,
            alignment: &alignment,
            offset: 0,
        },
    })
}

fn replace_spaces(text: &[u8], replacement: &str, aligned: bool) -> Result<Option<Rewritten>> {
    let mut rewriting = Rewriting::new(text, aligned);
    for at in memchr::memchr_iter(b' ', text) {
        rewriting.replace(at..at + 1, replacement.as_bytes());
    }
    rewriting.finish()
}

/// Splits a piece before each occurrence of a character.
fn split_before(
    character: &str,
    rest: &[Step],
    whole: Piece<'_>,
    aligned: bool,
    piece: &mut dyn FnMut(Piece<'_>) -> bool,
) -> Result<bool> {
    let (first, mut start) = (whole.range.start, whole.range.start);
    let found = memchr::memmem::find_iter(whole.bytes(), character);
    let ends = found.map(|at| first + at).chain([whole.range.end]);
    for end in ends {
        if !run(rest, whole.with_range(start..end), aligned, piece)? {
            return Ok(false);
        }
        start = end;
    }
    Ok(true)
}

/// Matches a pattern against the printable characters of bytes; the ranges are those of the bytes.
fn matches_in_bytes(
    pattern: &SplitPattern,
    text: &[u8],
    piece: &mut dyn FnMut(Range<usize>, bool) -> bool,
) -> Result<()> {
    if text.iter().all(u8::is_ascii_graphic) {
        return pattern.matches(text, piece); // each of these bytes is its own printable character
    }
    let mut printable = String::new();
    reserve_text(&mut printable, 2 * text.len())?; // two bytes at most
    printable.extend(text.iter().map(|&byte| char_of_byte(byte)));
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

/// Joins the matches of a pattern and the gaps between them to pieces, as a [`Behavior`] asks for.
pub struct MatchJoiner {
    /// What happens to the matches.
    pub behavior: Behavior,
    /// Whether matches and gaps are swapped.
    pub invert: bool,
    /// A piece that the next match or gap may extend, and whether it ends with a match.
    pub held: Option<(Range<usize>, bool)>,
}

impl MatchJoiner {
    /// Starts before the first match.
    pub fn new(behavior: Behavior, invert: bool) -> Self {
        Self {
            behavior,
            invert,
            held: None,
        }
    }

    /// Adds a match or a gap. Returns false if `piece` did.
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
        let continues = held.is_none_or(|(range, _)| piece(range));
        if !continues {
            self.held = None;
        }
        continues
    }

    /// Emits the last piece. Returns false if `piece` did.
    pub fn finish(self, piece: &mut impl FnMut(Range<usize>) -> bool) -> bool {
        self.held.is_none_or(|(range, _)| piece(range))
    }
}

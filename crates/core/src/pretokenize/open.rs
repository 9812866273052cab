//! Pieces of a text that comes some at a time: those that stay what they are whatever follows.
//!
//! Each step hands on what it knows: whole pieces, and of a piece that may go on the part in which no match
//! begins, so that the next step can cut in it already.

use super::steps::{run, Folded, Step};
use super::{Behavior, Piece, PreTokenizers, Prepend, SplitPattern};
use crate::alignment::Place;
use crate::error::Result;
use crate::merge::Joins;
use std::borrow::Cow;
use std::ops::Range;

/// What is left of a text that is shorter than this is always looked at again.
const SHORT: usize = 64;

/// A stretch of normalised text between added tokens that comes some at a time.
pub struct OpenPieces {
    /// Whether some of the stretch came already.
    begun: bool,
    /// Before each step that cuts, and before merging.
    stages: Vec<Stage>,
}

/// What comes to a step, or to merging, of one piece of the step before.
#[derive(Default)]
struct Stage {
    /// What was not handed on yet.
    text: Vec<u8>,
    /// Whether what was handed on last goes on in `text`.
    goes_on: bool,
    /// Not looked at before the text is so long: else every few characters of a long piece would cost as
    /// much as all of it.
    wanted: usize,
}

/// Where pieces go.
struct Sink<'a> {
    joins: Option<&'a Joins>,
    piece: &'a mut dyn FnMut(&[u8], Range<usize>) -> bool,
}

impl Sink<'_> {
    fn piece(&mut self, text: &[u8], range: Range<usize>) -> bool {
        match self.joins {
            None => (self.piece)(text, range),
            Some(joins) => joins.cut(text, range, |range| (self.piece)(text, range)),
        }
    }
}

impl PreTokenizers {
    /// Begins a text that comes some at a time; none if a step asks for what is not known then.
    pub fn open(&self) -> Option<OpenPieces> {
        let cutting = self.cutting();
        let stages = cutting.iter().map(|_| Stage::default());
        (!cutting.iter().any(Step::asks_for_place)).then(|| OpenPieces {
            begun: false,
            stages: stages.chain([Stage::default()]).collect(),
        })
    }

    /// The steps without the one that rewrites the stretch's beginning, if it is the first.
    fn cutting(&self) -> &[Step] {
        match self.steps.as_slice() {
            [Step::PrefixSpace | Step::Metaspace { .. }, rest @ ..] => rest,
            steps => steps,
        }
    }

    /// Takes what came next of a stretch, and calls `piece` with the pieces that are certain until it
    /// returns false; with all of them if the stretch `ends`, and then begins another. `is_first` tells
    /// whether the stretch begins the text as given.
    pub fn split_next(
        &self,
        open: &mut OpenPieces,
        text: &str,
        is_first: bool,
        ends: bool,
        joins: Option<&Joins>,
        piece: &mut dyn FnMut(&[u8], Range<usize>) -> bool,
    ) -> Result<()> {
        let begins = !open.begun;
        open.begun = !ends && (open.begun || !text.is_empty());
        let text = self.rewrite(text, begins, is_first);
        let (text, stages, steps) = (text.as_bytes(), &mut open.stages, self.cutting());
        let mut sink = Sink { joins, piece };
        let mut start = 0;
        if let Some(Step::Metaspace {
            replacement,
            split: true,
            ..
        }) = self.steps.first()
        {
            for at in memchr::memmem::find_iter(text, replacement) {
                if at > 0 || !begins {
                    if !advance(steps, stages, text, start..at, true, &mut sink)? {
                        return Ok(());
                    }
                    start = at;
                }
            }
        }
        advance(steps, stages, text, start..text.len(), ends, &mut sink).map(|_| ())
    }

    /// What the first step makes of a part of a stretch, if it is one that rewrites.
    fn rewrite<'a>(&self, text: &'a str, begins: bool, is_first: bool) -> Cow<'a, str> {
        let (text, before) = match self.steps.first() {
            Some(Step::PrefixSpace) => (Cow::Borrowed(text), " "),
            Some(Step::Metaspace {
                replacement,
                prepend,
                ..
            }) => {
                let prepended = match prepend {
                    Prepend::Always => true,
                    Prepend::First => is_first,
                    Prepend::Never => false,
                };
                let before = if prepended { replacement } else { "" };
                (Cow::Owned(text.replace(' ', replacement)), before)
            }
            _ => return Cow::Borrowed(text),
        };
        if begins && !text.is_empty() && !text.starts_with(before) {
            return Cow::Owned(format!("{before}{text}"));
        }
        text
    }
}

/// Hands a part of a piece to the first of the steps, and on from there; `ends` tells whether it is the
/// last. Returns false if a piece was not wanted.
fn advance(
    steps: &[Step],
    stages: &mut [Stage],
    text: &[u8],
    part: Range<usize>,
    ends: bool,
    sink: &mut Sink<'_>,
) -> Result<bool> {
    let Some((stage, stages)) = stages.split_first_mut() else {
        return Ok(true);
    };
    let is_whole = ends && stage.text.is_empty() && !stage.goes_on;
    if is_whole && part.is_empty() {
        return Ok(true);
    }
    let Some((step, rest)) = steps.split_first() else {
        if is_whole {
            return Ok(sink.piece(text, part));
        }
        stage.text.extend_from_slice(&text[part]);
        return Ok(stage.merge(ends, sink));
    };
    if is_whole {
        return cut(steps, text, part, sink);
    }
    stage.text.extend_from_slice(&text[part]);
    match step {
        Step::Split {
            pattern,
            behavior,
            invert,
            bytes: false,
        } if pattern.automaton().is_some() => {
            if !ends && stage.text.len() < stage.wanted {
                return Ok(true);
            }
            let mut split = Split {
                rest,
                stages,
                sink,
                goes_on: stage.goes_on,
            };
            let done = split.advance(pattern, *behavior, *invert, &stage.text, ends)?;
            stage.goes_on = split.goes_on && !ends;
            stage.take(done);
            Ok(done.is_some())
        }
        _ if ends => {
            let held = std::mem::take(&mut stage.text);
            cut(steps, &held, 0..held.len(), sink)
        }
        _ => Ok(true), // the step has to see all of the piece
    }
}

impl Stage {
    /// Drops what was handed on.
    fn take(&mut self, done: Option<usize>) {
        self.text.drain(..done.unwrap_or(0));
        let left = self.text.len();
        self.wanted = if left < SHORT { 0 } else { 2 * left };
    }

    /// Merges what came of a piece, as far as that is certain.
    fn merge(&mut self, ends: bool, sink: &mut Sink<'_>) -> bool {
        let whole = 0..self.text.len();
        if ends {
            // Without text, all of the piece was merged before.
            self.goes_on = false;
            let text = std::mem::take(&mut self.text);
            return text.is_empty() || sink.piece(&text, whole);
        }
        let Some(joins) = sink.joins else {
            return true;
        };
        let start = joins.cut_open(&self.text, whole, |part| (sink.piece)(&self.text, part));
        self.text.drain(..start.unwrap_or(0));
        start.is_some()
    }
}

/// A split that hands on to the steps after it.
struct Split<'a, 'b> {
    rest: &'a [Step],
    stages: &'a mut [Stage],
    sink: &'a mut Sink<'b>,
    /// Whether the piece that was handed on last goes on.
    goes_on: bool,
}

impl Split<'_, '_> {
    /// Hands on the pieces of a text; returns how far it did, or none if one was not wanted.
    fn advance(
        &mut self,
        pattern: &SplitPattern,
        behavior: Behavior,
        invert: bool,
        text: &[u8],
        ends: bool,
    ) -> Result<Option<usize>> {
        let Some(automaton) = pattern.automaton() else {
            return Ok(Some(0));
        };
        let mut outcome = Ok(true);
        let mut folded = Folded::new(behavior, invert);
        let mut matched = |part: Range<usize>, is_match: bool| {
            if is_match && self.goes_on && behavior == Behavior::Isolated {
                outcome = self.hand_on(text, part.start..part.start, true);
                if !matches!(outcome, Ok(true)) {
                    return false;
                }
            }
            let mut next = |part| {
                outcome = self.hand_on(text, part, true);
                matches!(outcome, Ok(true))
            };
            folded.add(part, is_match, &mut next)
        };
        if ends {
            automaton.matches(text, &mut matched);
            if outcome? {
                let mut outcome = Ok(true);
                folded.finish(&mut |part| {
                    outcome = self.hand_on(text, part, true);
                    true
                });
                outcome?;
            }
            if self.goes_on {
                self.hand_on(text, text.len()..text.len(), true)?;
            }
            return Ok(Some(text.len()));
        }
        let (done, unmatched) = automaton.certain_matches(text, &mut matched);
        if !outcome? {
            return Ok(None);
        }
        if let Some((held, _)) = folded.held {
            return Ok(Some(held.start));
        }
        // Where no match begins is a part of one piece, which only a match ends.
        let known = match behavior {
            Behavior::Isolated => true,
            Behavior::MergedWithPrevious => !invert,
            _ => false,
        };
        if !known || done == unmatched {
            return Ok(Some(done));
        }
        let wanted = self.hand_on(text, done..unmatched, false)?;
        Ok(wanted.then_some(unmatched))
    }

    fn hand_on(&mut self, text: &[u8], part: Range<usize>, ends: bool) -> Result<bool> {
        self.goes_on = !ends;
        advance(self.rest, self.stages, text, part, ends, self.sink)
    }
}

/// Applies steps to a whole piece; false if one of theirs was not wanted.
fn cut(steps: &[Step], text: &[u8], range: Range<usize>, sink: &mut Sink<'_>) -> Result<bool> {
    let place = &Place::given(0); // nobody asks
    run(
        steps,
        Piece { text, range, place },
        false,
        &mut |Piece { text, range, .. }| sink.piece(text, range),
    )
}

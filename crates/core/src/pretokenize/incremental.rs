//! Splits a text that arrives in parts: emits each piece as soon as no continuation can change it.
//!
//! Each step passes on what is certain: whole pieces, and of an unfinished piece the part in which no match
//! begins, so that the next step can already split it.

use super::dfa::{Dfa, Progress};
use super::pre_tokenizers::PreTokenizers;
use super::steps::{run, Behavior, MatchJoiner, Piece, Prepend, Step};
use crate::error::Result;
use crate::reserve::append;
use std::borrow::Cow;
use std::ops::Range;

/// A pending text shorter than this is split again after each part.
const MIN_WAIT: usize = 64;

/// Cuts pieces where both sides have the tokens of the whole.
pub trait PieceCutter {
    /// Calls `piece` with each part of a piece until it returns false, except the last part, which the
    /// text after the range may extend. No part ends before `from`. Returns the start of the last part;
    /// `None` if `piece` returned false.
    fn cut_open(
        &self,
        text: &[u8],
        range: Range<usize>,
        from: usize,
        piece: &mut dyn FnMut(Range<usize>) -> bool,
    ) -> Option<usize>;

    /// Calls `piece` with each part of a piece until it returns false. Returns its last result.
    fn cut(
        &self,
        text: &[u8],
        range: Range<usize>,
        piece: &mut dyn FnMut(Range<usize>) -> bool,
    ) -> bool {
        let Range { start, end } = range;
        let last = self.cut_open(text, range, start, piece);
        last.is_some_and(|start| piece(start..end))
    }
}

/// Splits a stretch of normalised text between added tokens that arrives in parts.
pub struct IncrementalSplitter {
    /// Whether a part of the stretch has arrived.
    begun: bool,
    /// The input of each step that splits, and the pieces of the last one.
    stages: Vec<Stage>,
}

/// The input of a step, or the last step's output, of one piece of the previous step.
#[derive(Default)]
struct Stage {
    /// The text that was not passed on yet.
    text: Vec<u8>,
    /// Whether `text` continues a piece whose first part was passed on.
    continues: bool,
    /// The length that `text` must reach before it is split again. Without it, a long piece that arrives
    /// in small parts would cost quadratic time.
    wanted: usize,
    /// The length of the beginning of `text` in which no part of the last step's piece ends.
    uncut: usize,
}

/// The receiver of the pieces.
struct Sink<'a> {
    cutter: Option<&'a dyn PieceCutter>,
    piece: &'a mut dyn FnMut(&[u8], Range<usize>) -> bool,
    /// The error that stopped the splitting.
    outcome: Result<()>,
}

impl Sink<'_> {
    fn piece(&mut self, text: &[u8], range: Range<usize>) -> bool {
        match self.cutter {
            None => (self.piece)(text, range),
            Some(cutter) => cutter.cut(text, range, &mut |part| (self.piece)(text, part)),
        }
    }
}

impl IncrementalSplitter {
    /// Starts a stretch; `None` if a step needs positions in the original text.
    pub fn new(pre_tokenizers: &PreTokenizers) -> Option<Self> {
        let steps = splitting_steps(pre_tokenizers);
        (!steps.iter().any(Step::needs_offsets)).then(|| Self {
            begun: false,
            stages: (0..=steps.len()).map(|_| Stage::default()).collect(),
        })
    }

    /// Adds the next part of the stretch, and calls `piece` with the pieces that are certain until it
    /// returns false. If the stretch `ends`, calls it with all remaining pieces and starts another stretch.
    ///
    /// `pre_tokenizers` are those of [`IncrementalSplitter::new`]. `is_first` tells whether the stretch is
    /// at the beginning of the original text.
    pub fn push(
        &mut self,
        pre_tokenizers: &PreTokenizers,
        text: &str,
        is_first: bool,
        ends: bool,
        cutter: Option<&dyn PieceCutter>,
        piece: &mut dyn FnMut(&[u8], Range<usize>) -> bool,
    ) -> Result<()> {
        let begins = !self.begun;
        self.begun = !ends && (self.begun || !text.is_empty());
        let text = rewrite(pre_tokenizers.steps.first(), text, begins, is_first);
        let (text, stages) = (text.as_bytes(), &mut self.stages);
        let steps = splitting_steps(pre_tokenizers);
        let mut sink = Sink {
            cutter,
            piece,
            outcome: Ok(()),
        };
        let mut start = 0;
        let separator = match pre_tokenizers.steps.first() {
            Some(Step::Metaspace(first)) if first.split => Some(first.replacement.to_string()),
            _ => None,
        };
        let separators = separator
            .iter()
            .flat_map(|it| memchr::memmem::find_iter(text, it));
        for at in separators.filter(|&at| at > 0 || !begins) {
            if !advance(steps, stages, text, start..at, true, &mut sink) {
                return sink.outcome;
            }
            start = at;
        }
        advance(steps, stages, text, start..text.len(), ends, &mut sink);
        sink.outcome
    }
}

/// The steps without a first one that rewrites the beginning of the stretch.
fn splitting_steps(pre_tokenizers: &PreTokenizers) -> &[Step] {
    match pre_tokenizers.steps.as_slice() {
        [Step::PrefixSpace | Step::Metaspace(_), rest @ ..] => rest,
        steps => steps,
    }
}

/// Applies the first step, if it rewrites, to a part of a stretch.
fn rewrite<'a>(first: Option<&Step>, text: &'a str, begins: bool, is_first: bool) -> Cow<'a, str> {
    let (text, prefix) = match first {
        Some(Step::PrefixSpace) => (Cow::Borrowed(text), " ".to_owned()),
        Some(Step::Metaspace(metaspace)) => {
            let prepends = match metaspace.prepend {
                Prepend::Always => true,
                Prepend::First => is_first,
                Prepend::Never => false,
            };
            let replacement = metaspace.replacement.to_string();
            let replaced = Cow::Owned(text.replace(' ', &replacement));
            (replaced, if prepends { replacement } else { String::new() })
        }
        _ => return Cow::Borrowed(text),
    };
    if begins && !text.is_empty() && !text.starts_with(&prefix) {
        return Cow::Owned(format!("{prefix}{text}"));
    }
    text
}

/// Passes a part of a piece to the first of the steps; `ends` tells whether it is the last part. Returns
/// false if the sink did.
fn advance(
    steps: &[Step],
    stages: &mut [Stage],
    text: &[u8],
    part: Range<usize>,
    ends: bool,
    sink: &mut Sink<'_>,
) -> bool {
    let Some((stage, stages)) = stages.split_first_mut() else {
        return true;
    };
    let is_whole = ends && stage.text.is_empty() && !stage.continues;
    if is_whole {
        return part.is_empty() || split_whole(steps, text, part, sink);
    }
    if let Err(error) = append(&mut stage.text, &text[part]) {
        sink.outcome = Err(error);
        return false;
    }
    let Some((step, rest)) = steps.split_first() else {
        return stage.emit(ends, sink);
    };
    let automaton = match step {
        Step::Split(split) if !split.bytes => split
            .pattern
            .automaton()
            .map(|automaton| (automaton, MatchJoiner::new(split.behavior, split.invert))),
        _ => None,
    };
    let Some((automaton, joiner)) = automaton else {
        if !ends {
            return true; // the step needs the whole piece
        }
        let held = std::mem::take(&mut stage.text);
        return split_whole(steps, &held, 0..held.len(), sink);
    };
    if !ends && stage.text.len() < stage.wanted {
        return true;
    }
    let mut splitting = Splitting {
        rest,
        stages,
        sink,
        continues: stage.continues,
    };
    let done = splitting.advance(automaton, joiner, &stage.text, ends);
    stage.continues = splitting.continues && !ends;
    stage.drop_done(done);
    done.is_some()
}

impl Stage {
    /// Drops the text that was passed on.
    fn drop_done(&mut self, done: Option<usize>) {
        self.text.drain(..done.unwrap_or(0));
        let left = self.text.len();
        self.wanted = if left < MIN_WAIT { 0 } else { 2 * left };
    }

    /// Emits the parts of a piece that are certain.
    fn emit(&mut self, ends: bool, sink: &mut Sink<'_>) -> bool {
        let whole = 0..self.text.len();
        if ends {
            (self.continues, self.uncut) = (false, 0);
            let text = std::mem::take(&mut self.text);
            return text.is_empty() || sink.piece(&text, whole);
        }
        let Some(cutter) = sink.cutter else {
            return true;
        };
        let text = &self.text;
        let mut emit = |part| (sink.piece)(text, part);
        let start = cutter.cut_open(text, whole, self.uncut, &mut emit);
        self.text.drain(..start.unwrap_or(0));
        self.uncut = self.text.len();
        start.is_some()
    }
}

/// A split that passes its pieces on to the next steps.
struct Splitting<'a, 'b> {
    rest: &'a [Step],
    stages: &'a mut [Stage],
    sink: &'a mut Sink<'b>,
    /// Whether the last part that was passed on is an unfinished piece.
    continues: bool,
}

impl Splitting<'_, '_> {
    /// Passes on the pieces of a text. Returns the end of the last one; `None` if the sink returned false.
    fn advance(
        &mut self,
        automaton: &Dfa,
        mut joiner: MatchJoiner,
        text: &[u8],
        ends: bool,
    ) -> Option<usize> {
        let mut continues = true;
        let matched = |part: Range<usize>, is_match: bool| {
            let ends_piece = is_match && self.continues && joiner.behavior == Behavior::Isolated;
            continues = (!ends_piece || self.pass_on(text, part.start..part.start, true))
                && joiner.add(part, is_match, &mut |part| self.pass_on(text, part, true));
            continues
        };
        if ends {
            automaton.matches(text, matched);
            let continues = continues
                && joiner.finish(&mut |part| self.pass_on(text, part, true))
                && (!self.continues || self.pass_on(text, text.len()..text.len(), true));
            return continues.then_some(text.len());
        }
        let (done, unmatched) = automaton.stable_matches(text, &mut Progress::default(), matched);
        if !continues {
            return None;
        }
        if let Some((held, _)) = joiner.held {
            return Some(held.start);
        }
        // Text in which no match begins belongs to one piece, which only a match ends.
        let is_one_piece = match joiner.behavior {
            Behavior::Isolated => true,
            Behavior::MergedWithPrevious => !joiner.invert,
            _ => false,
        };
        if !is_one_piece || done == unmatched {
            return Some(done);
        }
        let continues = self.pass_on(text, done..unmatched, false);
        continues.then_some(unmatched)
    }

    fn pass_on(&mut self, text: &[u8], part: Range<usize>, ends: bool) -> bool {
        self.continues = !ends;
        advance(self.rest, self.stages, text, part, ends, self.sink)
    }
}

/// Applies the steps to a whole piece; returns false if the sink did, or at an error.
fn split_whole(steps: &[Step], text: &[u8], range: Range<usize>, sink: &mut Sink<'_>) -> bool {
    // No step needs offsets.
    let outcome = run(steps, Piece::new(text, range), false, &mut |piece| {
        sink.piece(piece.text, piece.range)
    });
    outcome.unwrap_or_else(|error| {
        sink.outcome = Err(error);
        false
    })
}

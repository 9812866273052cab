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
pub(super) const MIN_WAIT: usize = 64;

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
        for at in separators {
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
    stage.continues = splitting.continues;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::OffsetMap;
    use crate::pretokenize::{Metaspace, PreTokenizer, Split};

    const WORDS: &str = r"'s| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

    /// Cuts before each full stop.
    struct BeforeStops;

    impl PieceCutter for BeforeStops {
        fn cut_open(
            &self,
            text: &[u8],
            range: Range<usize>,
            from: usize,
            piece: &mut dyn FnMut(Range<usize>) -> bool,
        ) -> Option<usize> {
            assert!((range.start..=range.end).contains(&from));
            let mut start = range.start;
            let positions = from.max(start + 1)..range.end;
            for at in positions.filter(|&at| text[at] == b'.') {
                if !piece(start..at) {
                    return None;
                }
                start = at;
            }
            Some(start)
        }
    }

    fn splits(pattern: &str, behavior: Behavior, invert: bool) -> PreTokenizer {
        PreTokenizer::Split(Split {
            pattern: pattern.to_owned(),
            behavior,
            invert,
            bytes: false,
        })
    }

    fn metaspace(prepend: Prepend, split: bool) -> PreTokenizer {
        PreTokenizer::Metaspace(Metaspace {
            replacement: '▁',
            prepend,
            split,
        })
    }

    /// Pipelines whose steps pass on whole pieces, parts of pieces, or nothing before the end.
    fn pipelines() -> Vec<Vec<PreTokenizer>> {
        let mut pipelines = vec![
            vec![],
            vec![PreTokenizer::isolated(WORDS)],
            vec![PreTokenizer::isolated(r"\d"), PreTokenizer::isolated(WORDS)],
            vec![PreTokenizer::isolated("--"), PreTokenizer::isolated("-|x")],
            vec![PreTokenizer::PrefixSpace, PreTokenizer::isolated(WORDS)],
            vec![
                PreTokenizer::isolated("-"),
                PreTokenizer::PrefixSpace,
                PreTokenizer::isolated("x"),
            ],
            vec![
                PreTokenizer::isolated(r"(?<=a)b"),
                PreTokenizer::isolated("x"),
            ],
            vec![PreTokenizer::Split(Split {
                pattern: r"\p{N}+|Ġ".to_owned(),
                behavior: Behavior::Isolated,
                invert: false,
                bytes: true,
            })],
            vec![
                metaspace(Prepend::Always, true),
                PreTokenizer::isolated("-"),
            ],
            vec![
                metaspace(Prepend::Always, false),
                PreTokenizer::isolated("-"),
            ],
            vec![metaspace(Prepend::Never, true)],
            vec![
                metaspace(Prepend::Never, false),
                PreTokenizer::isolated("-"),
            ],
        ];
        for behavior in [
            Behavior::Isolated,
            Behavior::Removed,
            Behavior::MergedWithPrevious,
            Behavior::MergedWithNext,
            Behavior::Contiguous,
        ] {
            for invert in [false, true] {
                pipelines.push(vec![splits("-", behavior, invert)]);
                pipelines.push(vec![
                    splits("-|b+", behavior, invert),
                    PreTokenizer::isolated(r"x|\s+"),
                ]);
                pipelines.push(vec![
                    PreTokenizer::isolated(r"[^-]+|-"),
                    splits(r"\s+|x", behavior, invert),
                ]);
            }
        }
        pipelines
    }

    fn whole(pre_tokenizers: &PreTokenizers, text: &str, is_cut: bool) -> Vec<String> {
        let mut pieces = Vec::new();
        let show = |piece: &[u8]| String::from_utf8_lossy(piece).into_owned();
        let outcome =
            pre_tokenizers.split(text.as_bytes(), &OffsetMap::original(0), false, |piece| {
                if is_cut {
                    BeforeStops.cut(piece.text, piece.range, &mut |part| {
                        pieces.push(show(&piece.text[part]));
                        true
                    })
                } else {
                    pieces.push(show(&piece.text[piece.range]));
                    true
                }
            });
        outcome.unwrap();
        pieces
    }

    /// The first `most` pieces of a text in parts of some characters.
    fn in_parts(
        pre_tokenizers: &PreTokenizers,
        splitter: &mut IncrementalSplitter,
        text: &str,
        chars: usize,
        cutter: Option<&dyn PieceCutter>,
        most: usize,
    ) -> Vec<String> {
        let mut pieces = Vec::new();
        let all: Vec<char> = text.chars().collect();
        let parts: Vec<String> = all
            .chunks(chars)
            .map(|part| part.iter().collect())
            .collect();
        for at in 0..=parts.len() {
            let (part, ends) = (parts.get(at).map_or("", String::as_str), at == parts.len());
            let mut add = |text: &[u8], range: Range<usize>| {
                assert!(pieces.len() < most, "a piece after the last wanted one");
                pieces.push(String::from_utf8_lossy(&text[range]).into_owned());
                pieces.len() < most
            };
            splitter
                .push(pre_tokenizers, part, true, ends, cutter, &mut add)
                .unwrap();
            if pieces.len() == most {
                break;
            }
        }
        pieces
    }

    const TEXTS: [&str; 8] = [
        "",
        "a",
        "-- a.b--x -abbb b-1.5x--",
        "It's 12  naïve 日本 -x--b.\n\n  a.b.c .. x1-",
        "--------bbbb----",
        " ▁a b▁ c  d",
        "xx ab.ab -  \n -",
        "A text of more than sixty-four bytes without any hyphen or x.y in its middle part-a part x that ends.",
    ];

    #[test]
    fn parts_of_a_text_have_the_pieces_of_the_whole() {
        for steps in pipelines() {
            let pre_tokenizers = PreTokenizers::new(&steps).unwrap();
            for (text, is_cut) in TEXTS.iter().flat_map(|text| [(text, false), (text, true)]) {
                let cutter: Option<&dyn PieceCutter> =
                    if is_cut { Some(&BeforeStops) } else { None };
                let expected = whole(&pre_tokenizers, text, is_cut);
                let mut splitter = IncrementalSplitter::new(&pre_tokenizers).unwrap();
                for chars in [1, 2, 3, 7, 200] {
                    let found = in_parts(
                        &pre_tokenizers,
                        &mut splitter,
                        text,
                        chars,
                        cutter,
                        usize::MAX,
                    );
                    assert_eq!(found, expected, "{steps:?}, {chars} characters");
                }
                for most in 1..expected.len() {
                    for chars in [1, 7, 200] {
                        let mut splitter = IncrementalSplitter::new(&pre_tokenizers).unwrap();
                        let found =
                            in_parts(&pre_tokenizers, &mut splitter, text, chars, cutter, most);
                        assert_eq!(found, expected[..most], "{steps:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_piece_comes_as_soon_as_no_continuation_changes_it() {
        for (steps, cutter, parts) in [
            (
                vec![PreTokenizer::isolated(WORDS)],
                None,
                vec![
                    ("It", ""),
                    ("'s", "It"),
                    (" an", "'s"),
                    (" x1", " an| x"),
                    ("", "1"),
                ],
            ),
            (
                vec![PreTokenizer::isolated("-"), PreTokenizer::isolated(WORDS)],
                None,
                vec![
                    ("one two", "one"),
                    (" b-", " two"),
                    ("a", " b|-"),
                    ("", "a"),
                ],
            ),
            (
                vec![metaspace(Prepend::Always, true)],
                None,
                vec![("one two", "▁one"), ("s three", "▁twos"), ("", "▁three")],
            ),
            (
                vec![
                    splits("-", Behavior::MergedWithPrevious, false),
                    PreTokenizer::isolated("x"),
                ],
                None,
                vec![("axb", "a|x"), ("x-c-d", "b|x|-"), ("", "c-|d")],
            ),
            (
                vec![],
                Some(&BeforeStops as &dyn PieceCutter),
                vec![("a.b.c", "a|.b"), ("d", ""), (".", ".cd"), ("", ".")],
            ),
        ] {
            let pre_tokenizers = PreTokenizers::new(&steps).unwrap();
            let mut splitter = IncrementalSplitter::new(&pre_tokenizers).unwrap();
            let count = parts.len();
            for (at, (part, expected)) in parts.into_iter().enumerate() {
                let mut pieces = Vec::new();
                let mut add = |text: &[u8], range: Range<usize>| {
                    pieces.push(String::from_utf8_lossy(&text[range]).into_owned());
                    true
                };
                splitter
                    .push(
                        &pre_tokenizers,
                        part,
                        true,
                        at + 1 == count,
                        cutter,
                        &mut add,
                    )
                    .unwrap();
                assert_eq!(pieces.join("|"), expected, "{steps:?}, {part:?}");
            }
        }
    }

    #[test]
    fn only_the_first_stretch_of_a_text_begins_with_a_prepended_space() {
        let pre_tokenizers = PreTokenizers::new(&[metaspace(Prepend::First, true)]).unwrap();
        assert!(IncrementalSplitter::new(&pre_tokenizers).is_some());
        for (is_first, expected) in [(true, "▁a|▁b"), (false, "a|▁b")] {
            let mut splitter = IncrementalSplitter::new(&pre_tokenizers).unwrap();
            let mut pieces = Vec::new();
            for (part, ends) in [("", false), ("a", false), (" b", true)] {
                let mut add = |text: &[u8], range: Range<usize>| {
                    pieces.push(String::from_utf8_lossy(&text[range]).into_owned());
                    true
                };
                splitter
                    .push(&pre_tokenizers, part, is_first, ends, None, &mut add)
                    .unwrap();
            }
            assert_eq!(pieces.join("|"), expected);
        }
        let steps = [PreTokenizer::isolated("-"), metaspace(Prepend::First, true)];
        let pre_tokenizers = PreTokenizers::new(&steps).unwrap();
        assert!(IncrementalSplitter::new(&pre_tokenizers).is_none());
    }
}

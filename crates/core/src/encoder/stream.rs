//! Encodes text incrementally: exactly the ids of the whole text, each as soon as no continuation changes it.

use super::added_tokens::{Matchers, Search, Special};
use super::cuts::Cuts;
use super::piece_encoder::PieceEncoder;
use super::splitter::{Splitter, TextSegment};
use super::{Encoder, Segment};
use crate::alignment::OffsetMap;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::normalizers::IncrementalNormalizer;
use crate::pretokenize::{CertainPart, IncrementalSplitter, PieceCutter, SingleSplit};
use crate::reserve::{append_text, push};
use crate::special::{LeftContext, Matcher, StableMatches};
use crate::text::{floor_char_boundary, Text};
use std::sync::Arc;

/// The state of a text that arrives incrementally, in each stage of an encoder.
///
/// It holds back what a continuation can change: the beginning of an added token, a character that may compose
/// with the next one, a piece that may continue. If a stage needs all text between two added tokens (a pattern
/// that only the regex engine runs), it holds back all of that.
pub struct EncodeStream {
    matchers: Arc<Matchers>,
    original: TokenSearch,
    stages: Stages,
    /// Whether the text is empty so far.
    is_first: bool,
}

/// The stages after the search for added tokens in the original text.
enum Stages {
    Incremental(Box<IncrementalStages>),
    /// The text since the last added token, for a stage that needs all of it.
    Buffered(String),
}

struct IncrementalStages {
    normalizer: IncrementalNormalizer,
    normalized: TokenSearch,
    splitting: Splitting,
}

/// The stage that splits.
enum Splitting {
    Single(SingleSplit),
    Steps(IncrementalSplitter),
}

impl EncodeStream {
    /// A stream at the beginning of a text. Later calls must use the same encoder.
    pub fn new(encoder: &Encoder, special: &Special) -> Result<Self> {
        Ok(Self {
            matchers: encoder.matchers(special)?.into_owned(),
            original: TokenSearch::default(),
            stages: Stages::new(encoder),
            is_first: true,
        })
    }

    /// Takes the next part of the text. Appends the ids that are final. If the text `ends`, these are all
    /// remaining ids, and the stream is then at the beginning of the next text.
    pub fn push(
        &mut self,
        encoder: &Encoder,
        text: &str,
        ends: bool,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let mut rest = text;
        while rest.len() >= MIN_WINDOW_BYTES {
            let window = &rest[..floor_char_boundary(rest, rest.len().min(WINDOW_BYTES))];
            let done = self.push_window(encoder, window, ids, interrupt)?;
            rest = &rest[done..];
        }
        if !ends && rest.is_empty() {
            return Ok(());
        }
        self.push_block(encoder, rest, ends, ids, interrupt)
    }

    /// Pushes the beginning of a text that does not end there, and returns its length. Between two cuts a text is
    /// encoded like a whole one, if that is faster than to follow it through the stages.
    fn push_window(
        &mut self,
        encoder: &Encoder,
        window: &str,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<usize> {
        let middle = match &self.stages {
            Stages::Incremental(stages) if !stages.find_cuts() => {
                Cuts::new(encoder, &self.matchers, None).and_then(|cuts| cuts.middle(window))
            }
            _ => None,
        };
        let Some(middle) = middle else {
            let last = for_each_block(window, |block| {
                interrupt.poll()?;
                self.push_block(encoder, block, false, ids, interrupt)
            })?;
            self.push_block(encoder, last, false, ids, interrupt)?;
            return Ok(window.len());
        };
        self.push_block(encoder, &window[..middle.start], true, ids, interrupt)?;
        self.is_first = false;
        let (text, search) = (
            Text::Str(&window[middle.clone()]),
            Search::new(&self.matchers, false, interrupt),
        );
        encoder.with_piece_encoder(interrupt, |pieces| {
            encoder.for_each_segment(text, search, &mut |segment| {
                pieces.encode(segment, usize::MAX, ids)
            })
        })?;
        Ok(middle.end)
    }

    fn push_block(
        &mut self,
        encoder: &Encoder,
        text: &str,
        ends: bool,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let Self {
            matchers,
            original,
            stages,
            is_first,
        } = self;
        encoder.with_piece_encoder(interrupt, |pieces| {
            let mut call = Call {
                encoder,
                matchers,
                pieces,
                ids,
                is_first,
                interrupt,
            };
            original.advance(&matchers.original, text, ends, &mut |event| match event {
                Event::Text(text) => stages.advance(&mut call, text, false),
                Event::End(token) => {
                    stages.advance(&mut call, "", true)?;
                    call.push_token(token)
                }
            })
        })?;
        *is_first |= ends;
        Ok(())
    }
}

/// What every stage needs during one call.
struct Call<'a, 'b> {
    encoder: &'a Encoder,
    matchers: &'a Matchers,
    pieces: &'a mut PieceEncoder<'b>,
    ids: &'a mut Vec<u32>,
    /// That of the stream.
    is_first: &'a mut bool,
    interrupt: &'a Interrupt<'a>,
}

impl Call<'_, '_> {
    fn push_token(&mut self, token: Option<u32>) -> Result<()> {
        let Some(id) = token else { return Ok(()) };
        push(self.ids, id)?;
        *self.is_first = false;
        Ok(())
    }
}

/// Calls `work` with each block of a text but the last, which it returns. The stages copy what they get, so blocks bound
/// their memory.
fn for_each_block(mut text: &str, mut work: impl FnMut(&str) -> Result<()>) -> Result<&str> {
    while text.len() > BLOCK_BYTES {
        let (block, rest) = text.split_at(floor_char_boundary(text, BLOCK_BYTES));
        work(block)?;
        text = rest;
    }
    Ok(text)
}

impl Stages {
    fn new(encoder: &Encoder) -> Self {
        let pre_tokenizers = &encoder.splitter.pre_tokenizers;
        let needs_offsets = pre_tokenizers.needs_offsets() && !encoder.normalizers.is_empty();
        let normalizer = IncrementalNormalizer::new(&encoder.normalizers);
        match (normalizer, Splitting::new(&encoder.splitter)) {
            (Some(normalizer), Some(splitting)) if !needs_offsets => {
                Self::Incremental(Box::new(IncrementalStages {
                    normalizer,
                    normalized: TokenSearch::default(),
                    splitting,
                }))
            }
            _ => Self::Buffered(String::new()),
        }
    }

    fn advance(&mut self, call: &mut Call<'_, '_>, text: &str, ends: bool) -> Result<()> {
        match self {
            Self::Incremental(stages) => stages.advance(call, text, ends),
            Self::Buffered(buffer) => {
                append_text(buffer, text)?;
                if !ends || buffer.is_empty() {
                    return Ok(());
                }
                let buffer = std::mem::take(buffer);
                let base = usize::from(!std::mem::take(call.is_first));
                let (text, search) = (
                    Text::Str(&buffer),
                    Search::new(call.matchers, false, call.interrupt),
                );
                let encode =
                    &mut |segment: Segment<'_>| call.pieces.encode(segment, usize::MAX, call.ids);
                call.encoder.normalize(text, base, search, encode)?;
                Ok(())
            }
        }
    }
}

impl IncrementalStages {
    /// Whether the stages find cuts themselves, and encode what is between two like a whole text.
    fn find_cuts(&self) -> bool {
        matches!(self.splitting, Splitting::Single(_))
    }

    fn advance(&mut self, call: &mut Call<'_, '_>, text: &str, ends: bool) -> Result<()> {
        let Self {
            normalizer,
            normalized,
            splitting,
        } = self;
        let normalizers = &call.encoder.normalizers;
        let text = normalizer.push(normalizers, text, ends, call.interrupt)?;
        let matcher = &call.matchers.normalized;
        normalized.advance(matcher, &text, ends, &mut |event| match event {
            Event::Text(text) => {
                let last = for_each_block(text, |block| splitting.push(call, block, false))?;
                splitting.push(call, last, false)
            }
            Event::End(token) => {
                splitting.push(call, "", true)?;
                call.push_token(token)
            }
        })
    }
}

impl Splitting {
    fn new(splitter: &Splitter) -> Option<Self> {
        let pre_tokenizers = &splitter.pre_tokenizers;
        let single = SingleSplit::new(pre_tokenizers).filter(|_| splitter.split_points.is_none());
        match single {
            Some(single) => Some(Self::Single(single)),
            None => IncrementalSplitter::new(pre_tokenizers).map(Self::Steps),
        }
    }

    fn push(&mut self, call: &mut Call<'_, '_>, text: &str, ends: bool) -> Result<()> {
        let Splitter {
            pre_tokenizers,
            split_points,
        } = &call.encoder.splitter;
        match self {
            Self::Single(split) => {
                let (pieces, ids) = (&mut *call.pieces, &mut *call.ids);
                let mut outcome = Ok(());
                split.push(pre_tokenizers, text, ends, |part| match part {
                    CertainPart::Whole(text) => {
                        let segment = Segment::Text(TextSegment {
                            text,
                            is_utf8: true,
                            offsets: OffsetMap::original(0),
                        });
                        outcome = pieces.encode(segment, usize::MAX, ids).map(|_| ());
                        outcome.is_ok()
                    }
                    CertainPart::Piece(text, range) => pieces.encode_piece(text, range, ids),
                })?;
                outcome?;
            }
            Self::Steps(splitter) => {
                let points = split_points.as_ref();
                let points = points.map(|points| points as &dyn PieceCutter);
                let (pieces, ids) = (&mut *call.pieces, &mut *call.ids);
                let encode = &mut |text: &[u8], range| pieces.encode_piece(text, range, ids);
                splitter.push(pre_tokenizers, text, *call.is_first, ends, points, encode)?;
            }
        }
        *call.is_first &= text.is_empty();
        call.pieces.take_failure()
    }
}

/// A part of a text is searched for cuts from this many bytes on.
const MIN_WINDOW_BYTES: usize = 1 << 9;
/// Bytes in which two cuts are searched for.
const WINDOW_BYTES: usize = 1 << 20;
/// Bytes of a block.
const BLOCK_BYTES: usize = 64 << 10;
/// A pending text shorter than this, in bytes, is searched again after each part.
const MIN_WAIT: usize = 64;

/// Searches text for added tokens as it arrives.
#[derive(Default)]
struct TokenSearch {
    pending: String,
    context: LeftContext,
    /// The length that `pending` must reach before it is searched again. Without it, white space that may be
    /// part of a token would cost quadratic time if it arrives in small parts.
    wanted: usize,
}

/// A result of the search.
enum Event<'a> {
    /// Text without added tokens. More of the same stretch may follow.
    Text(&'a str),
    /// The end of the stretch: at an added token, or at the end of the text.
    End(Option<u32>),
}

impl TokenSearch {
    /// Calls `handle` with each event that no continuation changes.
    fn advance(
        &mut self,
        matcher: &Matcher,
        text: &str,
        ends: bool,
        handle: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<()> {
        if matcher.is_empty() {
            if !text.is_empty() {
                handle(Event::Text(text))?;
            }
            return if ends {
                handle(Event::End(None))
            } else {
                Ok(())
            };
        }
        append_text(&mut self.pending, text)?;
        if ends || self.pending.len() >= self.wanted {
            self.search(matcher, ends, handle)?;
        }
        if ends {
            *self = Self::default();
            handle(Event::End(None))?;
        }
        Ok(())
    }

    fn search(
        &mut self,
        matcher: &Matcher,
        ends: bool,
        handle: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<()> {
        let text = self.pending.as_str();
        let StableMatches { found, end, resume } = if ends {
            let found = matcher.find_after(text.as_bytes(), self.context);
            let (end, resume) = (text.len(), text.len());
            StableMatches {
                found: found.collect(),
                end,
                resume,
            }
        } else {
            matcher.find_stable(text, self.context)
        };
        let mut done = self.context.taken;
        for found in found {
            if done < found.range.start {
                handle(Event::Text(&text[done..found.range.start]))?;
            }
            handle(Event::End(Some(found.id)))?;
            done = found.range.end;
        }
        if done < end {
            handle(Event::Text(&text[done..end]))?;
        }
        self.context = LeftContext {
            character: text[..resume]
                .chars()
                .next_back()
                .or(self.context.character),
            taken: end - resume,
        };
        self.pending.drain(..resume);
        self.wanted = match self.pending.len() {
            ..MIN_WAIT => 0,
            left => left + left / 4,
        };
        Ok(())
    }
}

//! Text to ids: the order of the stages.
//!
//! ```text
//! original text -> added tokens -> normalise -> added tokens -> split -> cache | merge -> ids
//! ```

mod added_tokens;
mod batch;
mod cached_encoder;
mod cuts;
mod files;
mod piece_encoder;
mod segments;
mod spans;
mod splitter;
mod stream;
mod text_source;

pub use added_tokens::Special;
pub use batch::{room_for, BatchOptions, Ragged, BYTES_PER_ID};
pub use segments::Segments;
pub use spans::{FoundToken, Origin, Span};
pub use stream::EncodeStream;
pub use text_source::TextSource;

use added_tokens::{AddedTokens, Matchers, Search};
use splitter::{Splitter, TextSegment};

use crate::alignment::{Alignment, OffsetMap};
use crate::cache::WorkspacePool;
use crate::error::Result;
use crate::interrupt::{Interrupt, Poller};
use crate::merge::Merger;
use crate::model::Model;
use crate::normalizers::Normalizers;
use crate::special::{AddedToken, AddedTokenMatch, Permits};
use crate::text::Text;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Longer texts in code units are encoded part by part. (One that is not much longer is one part.)
const MAX_WHOLE_UNITS: usize = 32 << 10;

/// A model compiled for encoding. Threads may share it.
pub struct Encoder {
    model: Model,
    added_tokens: AddedTokens,
    normalizers: Normalizers,
    splitter: Splitter,
    merger: Merger,
    workspaces: WorkspacePool,
    /// Built by the first call that needs spans.
    widths: OnceLock<Vec<u8>>,
}

/// A text is a sequence of segments.
enum Segment<'a> {
    /// An added token, with its ranges in the original text.
    Added {
        found: AddedTokenMatch,
        /// The end of its range, rounded down inside a run that normalisation changed.
        tiled_end: usize,
    },
    Text(TextSegment<'a>),
}

/// Receives segments until it returns false.
type SegmentSink<'a> = dyn FnMut(Segment<'_>) -> Result<bool> + 'a;

impl Encoder {
    /// Compiles the split patterns and builds the tables.
    pub fn new(model: Model) -> Result<Self> {
        let normalizers = Normalizers::new(&model.settings().normalizers)?;
        Ok(Self {
            added_tokens: AddedTokens::new(&model)?,
            splitter: Splitter::new(&model)?,
            merger: Merger::new(&model),
            workspaces: WorkspacePool::default(),
            widths: OnceLock::new(),
            normalizers,
            model,
        })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The merger of single pieces.
    pub fn merger(&self) -> &Merger {
        &self.merger
    }

    /// Appends the ids of a text.
    pub fn encode<'t>(
        &self,
        text: impl Into<TextSource<'t>>,
        special: &Special,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        match text.into() {
            TextSource::Units(units) if units.len() > MAX_WHOLE_UNITS => {
                self.encode_units(units, special, ids, interrupt)
            }
            text => self.encode_up_to(text, special, usize::MAX, ids, interrupt),
        }
    }

    /// Appends the ids of a text. Stops after the piece that brings them to `limit` or more.
    pub fn encode_up_to(
        &self,
        text: TextSource<'_>,
        special: &Special,
        limit: usize,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let matchers = self.matchers(special)?;
        let search = Search::new(&matchers, false, interrupt);
        self.with_piece_encoder(interrupt, |pieces| {
            pieces.with_text(text, |pieces, text| {
                self.for_each_segment(text, search, &mut |segment| {
                    pieces.encode(segment, limit, ids)
                })
            })
        })
    }

    /// The number of ids of a text. Takes less time and memory than the ids.
    pub fn count<'t>(
        &self,
        text: impl Into<TextSource<'t>>,
        special: &Special,
        interrupt: &Interrupt<'_>,
    ) -> Result<usize> {
        let text = match text.into() {
            TextSource::Units(units) if units.len() > MAX_WHOLE_UNITS => {
                return self.count_units(units, special, interrupt);
            }
            text => text,
        };
        let (matchers, mut count) = (self.matchers(special)?, 0);
        let search = Search::new(&matchers, false, interrupt);
        self.with_piece_encoder(interrupt, |pieces| {
            pieces.with_text(text, |pieces, text| {
                self.for_each_segment(text, search, &mut |segment| {
                    count += pieces.count(segment)?;
                    Ok(true)
                })
            })
        })?;
        Ok(count)
    }

    /// Calls `piece` with the bytes of each piece. An added token is a piece.
    pub fn for_each_piece(
        &self,
        text: Text<'_>,
        special: &Special,
        interrupt: &Interrupt<'_>,
        mut piece: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut poller = Poller::new(interrupt);
        let matchers = self.matchers(special)?;
        self.for_each_segment(
            text,
            Search::new(&matchers, true, interrupt), // for the ranges of added tokens
            &mut |segment| {
                match segment {
                    Segment::Added { found, .. } => piece(&text.as_bytes()[found.range])?,
                    Segment::Text(segment) => {
                        let mut outcome = Ok(());
                        self.splitter.split(&segment, false, |found| {
                            outcome = poller
                                .advance(1)
                                .and_then(|()| piece(&found.text[found.range]));
                            outcome.is_ok()
                        })?;
                        outcome?;
                    }
                }
                Ok(true)
            },
        )
    }

    /// The first special token that encoding would recognise: its content and first byte.
    pub fn find_special(
        &self,
        text: Text<'_>,
        special: &Special,
        interrupt: &Interrupt<'_>,
    ) -> Result<Option<(String, usize)>> {
        let mut first = None;
        let matchers = self.matchers(special)?;
        self.for_each_segment(
            text,
            Search::new(&matchers, true, interrupt),
            &mut |segment| {
                if let Segment::Added { found, .. } = segment {
                    let token = self.model.added_token(found.id);
                    let token = token.filter(|token| token.special);
                    first = token.map(|token| (token.content.clone(), found.range.start));
                }
                Ok(first.is_none())
            },
        )?;
        Ok(first)
    }

    /// The caches of the threads.
    pub fn caches(&self) -> &WorkspacePool {
        &self.workspaces
    }

    fn matchers(&self, special: &Special) -> Result<Cow<'_, Arc<Matchers>>> {
        self.added_tokens.matchers(&self.model, special)
    }

    /// Calls `sink` with each segment. Stage 1: finds added tokens in the original text.
    fn for_each_segment(
        &self,
        text: Text<'_>,
        search: Search<'_>,
        sink: &mut SegmentSink<'_>,
    ) -> Result<()> {
        let bytes = text.as_bytes();
        if search.matchers.are_empty() && self.normalizers.is_empty() {
            if !bytes.is_empty() {
                sink(Segment::Text(TextSegment {
                    text: bytes,
                    is_utf8: matches!(text, Text::Str(_)),
                    offsets: OffsetMap::original(0),
                }))?;
            }
            return Ok(());
        }
        let mut done = 0;
        let mut found = |found: AddedTokenMatch| {
            let range = found.range.clone();
            let between = text.slice(done..range.start);
            let go_on = self.normalize(between, done, search, sink)?
                && sink(Segment::Added {
                    found,
                    tiled_end: range.end,
                })?;
            done = range.end;
            Ok(go_on)
        };
        let original = &search.matchers.original;
        if !original.find(bytes, search.permits, &mut found)? {
            return Ok(());
        }
        let last = text.slice(done..bytes.len());
        self.normalize(last, done, search, sink)?;
        Ok(())
    }

    /// Stage 2: normalises the text between two added tokens, which begins at `base` of the original text,
    /// and finds the added tokens in the normalised text. Returns false if `sink` did.
    fn normalize(
        &self,
        original: Text<'_>,
        base: usize,
        search: Search<'_>,
        sink: &mut SegmentSink<'_>,
    ) -> Result<bool> {
        if original.as_bytes().is_empty() {
            return Ok(true);
        }
        let aligned = search.aligned || self.splitter.pre_tokenizers.needs_offsets();
        let (normalized, alignments) =
            self.normalizers
                .apply(original, aligned, search.interrupt)?;
        with_offsets(base, &alignments, &mut |offsets| {
            let text = |range: Range<usize>, sink: &mut SegmentSink<'_>| {
                if range.is_empty() {
                    return Ok(true);
                }
                let offset = offsets.offset + range.start;
                sink(Segment::Text(TextSegment {
                    text: &normalized[range],
                    is_utf8: matches!(original, Text::Str(_)),
                    offsets: OffsetMap { offset, ..*offsets },
                }))
            };
            let original_range =
                |range: Range<usize>| offsets.start(range.start)..offsets.end(range.end);
            let permits = search.permits.map(|permits| {
                move |token: &AddedToken, range| permits(token, original_range(range))
            });
            let mut done = 0;
            let mut found = |AddedTokenMatch { id, range, content }: AddedTokenMatch| {
                let token = AddedTokenMatch {
                    id,
                    range: original_range(range.clone()),
                    content: original_range(content),
                };
                let added = Segment::Added {
                    found: token,
                    tiled_end: offsets.start(range.end),
                };
                let go_on = text(done..range.start, sink)? && sink(added)?;
                done = range.end;
                Ok(go_on)
            };
            let permits = permits.as_ref().map(|permits| permits as Permits<'_>);
            let matcher = &search.matchers.normalized;
            if !matcher.find(&normalized, permits, &mut found)? {
                return Ok(false);
            }
            text(done..normalized.len(), sink)
        })
    }
}

/// Calls `inner` with the offset map of a text that rewritings made of the original text at `base`, the last
/// rewriting first.
fn with_offsets(
    base: usize,
    alignments: &[Alignment],
    inner: &mut dyn FnMut(&OffsetMap<'_>) -> Result<bool>,
) -> Result<bool> {
    let Some((last, earlier)) = alignments.split_first() else {
        return inner(&OffsetMap::original(base));
    };
    with_offsets(base, earlier, &mut |outer| {
        inner(&OffsetMap {
            outer: Some(outer),
            base: 0,
            alignment: last,
            offset: 0,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::model::{Settings, Unknown};
    use crate::normalizers::Normalizer;
    use crate::pretokenize::PreTokenizer;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_cache_holds_pieces_without_ids() {
        for unknown in [Unknown::Dropped, Unknown::Gap] {
            let settings = Settings {
                pre_tokenizers: vec![PreTokenizer::isolated("x+|y+")],
                unknown,
                ..Settings::default()
            };
            let tokens = vec![(7, b"x".to_vec())];
            let model = Model::new(tokens, Some(&[]), settings, Vec::new()).unwrap();
            let encoder = Encoder::new(model).unwrap();
            for _ in 0..2 {
                let mut ids = Vec::new();
                let text = Text::Str("xyyxy");
                encoder
                    .encode(text, &Special::None, &mut ids, &Interrupt::never())
                    .unwrap();
                assert_eq!(ids, [7, 7]); // the second time from the cache
            }
        }
    }

    #[test]
    fn characters_around_a_left_out_one_merge() {
        use crate::model::{Alphabet, Spaces, Strip};
        let settings = Settings {
            alphabet: Alphabet::Characters,
            unknown: Unknown::Dropped,
            spaces: Some(Spaces {
                space: '▁',
                byte_fallback: false,
                strip: Strip::One,
            }),
            ..Settings::default()
        };
        let tokens = [(0, "▁"), (1, "▁▁")].map(|(id, token)| (id, token.into()));
        let merges = [("▁".into(), "▁".into())];
        let model = Model::new(tokens.into(), Some(&merges), settings, Vec::new()).unwrap();
        let encoder = Encoder::new(model).unwrap();
        let mut ids = Vec::new();
        let text = Text::Str("▁〇▁"); // `tokenizers` gives the same
        encoder
            .encode(text, &Special::None, &mut ids, &Interrupt::never())
            .unwrap();
        assert_eq!(ids, [1]);
    }

    /// An encoder whose tokens are the bytes. The matches of the pattern are pieces.
    fn encoder_of_bytes(pattern: &str) -> Encoder {
        let settings = Settings {
            pre_tokenizers: vec![PreTokenizer::isolated(pattern)],
            ..Settings::default()
        };
        let tokens = (0..=255).map(|byte: u8| (u32::from(byte), vec![byte]));
        let model = Model::new(tokens.collect(), Some(&[]), settings, Vec::new()).unwrap();
        Encoder::new(model).unwrap()
    }

    #[test]
    fn the_tokens_of_an_endless_piece_poll() {
        let encoder = encoder_of_bytes("x+");
        let (text, tokens) = ("x".repeat(300_000), AtomicUsize::new(0));
        let poll = || tokens.load(Ordering::Relaxed) > 0;
        let interrupt = Interrupt::new(&poll);
        let mut count = |_, _| {
            tokens.fetch_add(1, Ordering::Relaxed);
            true
        };
        let text = Text::Str(&text);
        let result = encoder.encode_with_spans(text, &Special::None, &interrupt, &mut count);
        assert!(matches!(result, Err(Error::Interrupted)));
        assert!(tokens.into_inner() < 100_000);
    }

    #[test]
    fn a_long_part_of_a_stream_polls() {
        let encoder = encoder_of_bytes("x+|y+");
        for text in ["xxxxxxxyyyyyyy".repeat(100_000), "x".repeat(1_000_000)] {
            let mut stream = EncodeStream::new(&encoder, &Special::None).unwrap();
            let mut ids = Vec::new();
            let pushed = stream.push(&encoder, &text, false, &mut ids, &Interrupt::new(&|| true));
            assert!(matches!(pushed, Err(Error::Interrupted)));
            assert!(ids.len() < 100_000);
        }
    }

    #[test]
    fn recognising_special_tokens_changes_only_texts_that_hold_them() {
        let settings = Settings {
            pre_tokenizers: vec![PreTokenizer::isolated("x+|y+")],
            ..Settings::default()
        };
        let tokens = (0..=255).map(|byte: u8| (u32::from(byte), vec![byte]));
        let tokens = tokens.chain([(256, b"<s>".to_vec())]).collect();
        let added = vec![AddedToken::special("<s>", 256)];
        let model = Model::new(tokens, Some(&[]), settings, added).unwrap();
        let encoder = Encoder::new(model).unwrap();
        let spans = |text: &str, special: &Special| {
            let (mut spans, mut ids) = (Vec::new(), Vec::new());
            let never = Interrupt::never();
            let mut token = |id, span| {
                spans.push((id, span));
                true
            };
            let text = Text::Str(text);
            encoder
                .encode_with_spans(text, special, &never, &mut token)
                .unwrap();
            encoder.encode(text, special, &mut ids, &never).unwrap();
            assert!(spans.iter().map(|(id, _)| id).eq(&ids));
            spans
        };
        for text in ["", "x", "xxyé<s", "yy <x>"] {
            assert_eq!(spans(text, &Special::None), spans(text, &Special::All));
        }
        assert_eq!(spans("<s>", &Special::None).len(), 3);
        assert_eq!(spans("<s>", &Special::All).len(), 1);
    }

    #[test]
    fn spans_of_added_tokens_tile_a_rewritten_text() {
        let settings = Settings {
            normalizers: vec![Normalizer::Replace {
                pattern: "a".to_owned(),
                content: "b ".to_owned(),
            }],
            ..Settings::default()
        };
        let tokens = (0..=255).map(|byte: u8| (u32::from(byte), vec![byte]));
        let added = AddedToken {
            lstrip: true,
            normalized: true,
            ..AddedToken::special("b", 98)
        };
        let model = Model::new(tokens.collect(), Some(&[]), settings, vec![added]).unwrap();
        let (mut ids, mut done) = (Vec::new(), 0);
        let token = |id, span: Span| {
            ids.push(id);
            assert!(done <= span.start, "{span:?} after {done}");
            done = span.tiled_end;
            true
        };
        let (text, never) = (Text::Str("aa"), Interrupt::never());
        let encoder = Encoder::new(model).unwrap();
        encoder
            .encode_with_spans(text, &Special::All, &never, token)
            .unwrap();
        assert_eq!((ids, done), (vec![98, 98, 32], 2)); // the text is `b b `; each `b ` is an `a`
    }
}

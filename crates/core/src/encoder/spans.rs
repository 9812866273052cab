//! Ids with their spans in the original text.

use super::piece_encoder::PieceEncoder;
use super::{Encoder, Search, Segment, Special, TextSegment};
use crate::error::Result;
use crate::interrupt::{Interrupt, POLL_INTERVAL};
use crate::model::NONE;
use crate::reserve::{filled, push};
use crate::special::{AddedToken, AddedTokenMatch};
use crate::text::{floor_char_boundary, Text};
use crate::threads::try_made_once;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// For fewer ids, a block has too many pieces that are encoded in vain.
const MIN_BY_BLOCK: usize = 1 << 12;

/// The bytes of a token in the original text. Inside a run that normalisation changed, positions round to
/// an end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte, rounded down.
    pub start: usize,
    /// The end, rounded down, so that spans tile the text.
    pub tiled_end: usize,
    /// The end, rounded up.
    pub end: usize,
}

/// The parts of a text that a template wrote. Special tokens, and the added tokens whose contents are `markup`, match
/// only inside one of them.
#[derive(Clone, Copy)]
pub(super) struct Trusted<'a> {
    /// Ascending ranges of bytes, which do not touch.
    pub ranges: &'a [Range<usize>],
    /// Contents of added tokens.
    pub markup: &'a FxHashSet<String>,
}

/// What a token is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is an added token that was found in the text.
    Added,
    /// It is the first token of a piece, which begins at this byte of the original text.
    PieceStart(usize),
    /// It is a later token of a piece.
    PieceRest,
}

/// A token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundToken {
    /// Its id.
    pub id: u32,
    /// Its bytes.
    pub span: Span,
    /// Its bytes without the white space that an added token includes.
    pub content: Range<usize>,
    /// What it is part of.
    pub origin: Origin,
}

impl Encoder {
    /// Calls `token` with each id and its span until it returns false.
    pub fn encode_with_spans(
        &self,
        text: Text<'_>,
        special: &Special,
        interrupt: &Interrupt<'_>,
        token: impl FnMut(u32, Span) -> bool,
    ) -> Result<()> {
        self.encode_with_first_spans(text, special, usize::MAX, interrupt, token)
    }

    /// As [`Encoder::encode_with_spans`], for a caller that stops after about `wanted` ids.
    fn encode_with_first_spans(
        &self,
        text: Text<'_>,
        special: &Special,
        wanted: usize,
        interrupt: &Interrupt<'_>,
        mut token: impl FnMut(u32, Span) -> bool,
    ) -> Result<()> {
        let matchers = self.matchers(special)?;
        let search = Search::new(&matchers, true, interrupt);
        self.for_each_token(text, search, wanted, |it| token(it.id, it.span))
    }

    /// Calls `token` with each token and the piece that it is part of. Takes longer than
    /// [`Encoder::encode_with_spans`].
    pub fn encode_with_pieces(
        &self,
        text: &str,
        special: &Special,
        interrupt: &Interrupt<'_>,
        mut token: impl FnMut(FoundToken) -> Result<()>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        // The tokens of a block do not tell their pieces.
        self.for_each_permitted_token(text, None, special, 0, interrupt, &mut |it| {
            outcome = token(it);
            outcome.is_ok()
        })?;
        outcome
    }

    /// Calls `token` with each token until it returns false. Without `trusted`, the whole text is trusted.
    pub(super) fn for_each_permitted_token(
        &self,
        text: &str,
        trusted: Option<Trusted<'_>>,
        special: &Special,
        wanted: usize,
        interrupt: &Interrupt<'_>,
        token: &mut dyn FnMut(FoundToken) -> bool,
    ) -> Result<()> {
        let matchers = self.matchers(special)?;
        let search = Search::new(&matchers, true, interrupt);
        let Some(Trusted { ranges, markup }) = trusted else {
            return self.for_each_token(Text::Str(text), search, wanted, token);
        };
        let markup = self
            .model
            .added()
            .iter()
            .filter(|token| markup.contains(&token.content));
        let markup: FxHashSet<u32> = markup.map(|token| token.id).collect();
        let permits = |token: &AddedToken, range: Range<usize>| {
            // The matcher has the token's normal form for its content.
            if !token.special && !markup.contains(&token.id) {
                return true;
            }
            let index = ranges.partition_point(|trusted| trusted.start <= range.start);
            index > 0 && range.end <= ranges[index - 1].end
        };
        let search = Search {
            permits: Some(&permits),
            ..search
        };
        self.for_each_token(Text::Str(text), search, wanted, token)
    }

    /// Calls `token` with each token until it returns false. With less than [`MIN_BY_BLOCK`] wanted tokens, the origins
    /// are exact; else a token of a text may have another origin than its own.
    fn for_each_token(
        &self,
        text: Text<'_>,
        search: Search<'_>,
        wanted: usize,
        mut token: impl FnMut(FoundToken) -> bool,
    ) -> Result<()> {
        let by_block = wanted >= MIN_BY_BLOCK && self.merger.widths_follow_from_ids();
        let (mut tokens, mut ids) = (Vec::new(), Vec::new());
        self.with_piece_encoder(search.interrupt, |pieces| {
            self.for_each_segment(text, search, &mut |segment| match segment {
                Segment::Added { found, tiled_end } => {
                    let AddedTokenMatch { id, range, content } = found;
                    let span = Span {
                        start: range.start,
                        tiled_end,
                        end: range.end,
                    };
                    Ok(token(FoundToken {
                        id,
                        span,
                        content,
                        origin: Origin::Added,
                    }))
                }
                Segment::Text(segment) if by_block && self.splitter.has_blocks(&segment) => {
                    self.for_each_token_by_block(pieces, &segment, &mut ids, &mut token)
                }
                Segment::Text(segment) => {
                    let (mut go_on, mut polled) = (true, Ok(()));
                    self.splitter.split(&segment, true, |piece| {
                        tokens.clear();
                        let (mut start, offsets) = (piece.range.start, piece.offsets);
                        let mut origin = Origin::PieceStart(offsets.start(start));
                        let succeeded = pieces.encode_piece_with_widths(piece, &mut tokens);
                        let mut each = |&(id, width): &(u32, usize)| {
                            let end = start + width;
                            let span = Span {
                                start: offsets.start(start),
                                tiled_end: offsets.start(end),
                                end: offsets.end(end),
                            };
                            start = end;
                            if id == NONE {
                                return true;
                            }
                            let content = span.start..span.end;
                            let found = FoundToken {
                                id,
                                span,
                                content,
                                origin,
                            };
                            origin = Origin::PieceRest;
                            token(found)
                        };
                        // A piece may be as long as the text.
                        for tokens in tokens.chunks(POLL_INTERVAL) {
                            if tokens.len() == POLL_INTERVAL {
                                polled = search.interrupt.poll();
                            }
                            go_on = polled.is_ok() && tokens.iter().all(&mut each);
                            if !go_on {
                                break;
                            }
                        }
                        succeeded && go_on
                    })?;
                    polled?;
                    pieces.take_failure()?;
                    Ok(go_on)
                }
            })
        })
    }

    /// `for_each_token` for a segment whose tokens have the widths of their ids: encodes it block by block. `ids` is for
    /// those of a block. Returns false if `token` did.
    fn for_each_token_by_block(
        &self,
        pieces: &mut PieceEncoder<'_>,
        segment: &TextSegment<'_>,
        ids: &mut Vec<u32>,
        mut token: impl FnMut(FoundToken) -> bool,
    ) -> Result<bool> {
        let (offsets, widths) = (segment.offsets, self.widths()?);
        let base = offsets.unchanged_base();
        let (mut block, mut start) = (0, 0);
        while block < segment.text.len() {
            ids.clear();
            block = pieces.encode_next_block(segment, block, ids)?;
            // A block may be as long as the text.
            for ids in ids.chunks(POLL_INTERVAL) {
                if ids.len() == POLL_INTERVAL {
                    pieces.poll()?;
                }
                for &id in ids {
                    let end = start + self.width(widths, id);
                    let span = match base {
                        Some(base) => Span {
                            start: base + start,
                            tiled_end: base + end,
                            end: base + end,
                        },
                        None => Span {
                            start: offsets.start(start),
                            tiled_end: offsets.start(end),
                            end: offsets.end(end),
                        },
                    };
                    start = end;
                    let found = FoundToken {
                        id,
                        span,
                        content: span.start..span.end,
                        origin: Origin::PieceRest,
                    };
                    if !token(found) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// The bytes of each token by id, as far as a byte and the table hold them: 0 for all others.
    fn widths(&self) -> Result<&[u8]> {
        let widths = try_made_once(&self.widths, || {
            let vocabulary = self.model.vocabulary();
            let mut widths = filled(0, 2 * vocabulary.len())?;
            for (id, token) in vocabulary.iter() {
                let width = widths.get_mut(id as usize);
                if let (Some(width), Ok(length)) = (width, token.len().try_into()) {
                    *width = length;
                }
            }
            Ok(widths)
        });
        widths.map(Vec::as_slice)
    }

    #[inline(always)]
    fn width(&self, widths: &[u8], id: u32) -> usize {
        match widths.get(id as usize) {
            Some(&width) if width > 0 => usize::from(width),
            _ => self.merger.width(id),
        }
    }

    /// The length in bytes of a prefix that encodes to at most `max_tokens` ids. It ends at a token and at
    /// a character, as late as possible.
    pub fn truncate(
        &self,
        text: &str,
        max_tokens: usize,
        special: &Special,
        interrupt: &Interrupt<'_>,
    ) -> Result<usize> {
        let mut cuts = vec![0];
        let (mut tokens, mut room) = (0, Ok(()));
        let token = |_, span: Span| {
            tokens += 1;
            if tokens <= max_tokens {
                room = push(&mut cuts, floor_char_boundary(text, span.tiled_end));
            }
            tokens <= max_tokens && room.is_ok()
        };
        self.encode_with_first_spans(Text::Str(text), special, max_tokens, interrupt, token)?;
        room?;
        if tokens <= max_tokens {
            return Ok(text.len());
        }
        cuts.dedup();
        // A prefix may have more ids than the whole text has there: its last piece ends earlier.
        let mut ids = Vec::new();
        while let Some(cut) = cuts.pop() {
            ids.clear();
            let (prefix, limit) = (Text::Str(&text[..cut]), max_tokens.saturating_add(1));
            self.encode_up_to(prefix.into(), special, limit, &mut ids, interrupt)?;
            if ids.len() <= max_tokens {
                return Ok(cut);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, Settings};
    use crate::normalize::Normalization;
    use crate::normalizers::Normalizer;
    use crate::pretokenize::PreTokenizer;
    use proptest::prelude::*;

    fn encoder(normalizers: Vec<Normalizer>) -> Encoder {
        let settings = Settings {
            normalizers,
            pre_tokenizers: vec![PreTokenizer::isolated(
                r" ?\p{L}+|\p{N}|\s+|[^\s\p{L}\p{N}]+",
            )],
            ..Settings::default()
        };
        let mut tokens: Vec<_> = (0..=255)
            .map(|byte: u8| (u32::from(byte), vec![byte]))
            .collect();
        let merges: [(&[u8], &[u8]); 4] =
            [(b"a", b"b"), (b" ", b"ab"), (b"x", b"x"), (b"xx", b"xx")];
        tokens.extend((256..).zip(merges.map(|(left, right)| [left, right].concat())));
        tokens.push((1_000_000, vec![b'y'; 300])); // no byte holds its width, and no table its id
        let merges = merges.map(|(left, right)| (left.to_vec(), right.to_vec()));
        let settings = Settings {
            ignore_merges: true,
            ..settings
        };
        let added = vec![
            AddedToken::special("<s>", 300),
            AddedToken {
                lstrip: true,
                ..AddedToken::special("<m>", 301)
            },
        ];
        Encoder::new(Model::new(tokens, Some(&merges), settings, added).unwrap()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// In texts of less than a block and of several.
        #[test]
        fn blocks_have_the_spans_of_pieces(
            parts in prop::collection::vec(prop::sample::select(vec![
                "ab", " ab", "xxxx", "é", "e\u{301}", "  ", " <m>", "<s>", "中文", "7", "!?", "\n", &"y".repeat(300),
            ].into_iter().map(str::to_owned).collect::<Vec<_>>()), 0..40),
            times in prop::sample::select(vec![1, 2, 90]),
            normalizes: bool,
        ) {
            let normalizers = if normalizes { vec![Normalizer::Form(Normalization::Nfc)] } else { vec![] };
            let (encoder, text) = (encoder(normalizers), parts.concat().repeat(times));
            let (text, never) = (Text::Str(&text), Interrupt::never());
            for special in [Special::None, Special::All] {
                let spans = |wanted| {
                    let mut spans = Vec::new();
                    encoder
                        .encode_with_first_spans(text, &special, wanted, &never, |id, span| {
                            spans.push((id, span));
                            true
                        })
                        .unwrap();
                    spans
                };
                let by_block = spans(usize::MAX);
                prop_assert_eq!(&by_block, &spans(0));
                let mut ids = Vec::new();
                encoder.encode(text, &special, &mut ids, &never).unwrap();
                prop_assert!(by_block.iter().map(|(id, _)| id).eq(&ids));
                prop_assert_eq!(encoder.count(text, &special, &never).unwrap(), ids.len());
            }
        }
    }

    #[test]
    fn tokens_know_their_pieces() {
        let (encoder, never) = (encoder(Vec::new()), Interrupt::never());
        let mut origins = Vec::new();
        let token = |token: FoundToken| {
            origins.push((token.id, token.content, token.origin));
            Ok(())
        };
        encoder
            .encode_with_pieces("ab xxx  <m>7<s>", &Special::All, &never, token)
            .unwrap();
        use Origin::{Added, PieceRest, PieceStart};
        assert_eq!(
            origins,
            [
                (256, 0..2, PieceStart(0)),
                (32, 2..3, PieceStart(2)),
                (258, 3..5, PieceRest),
                (120, 5..6, PieceRest),
                (301, 8..11, Added), // with the white space before it
                (55, 11..12, PieceStart(11)),
                (300, 12..15, Added),
            ]
        );
    }

    #[test]
    fn a_caller_stops_inside_a_block() {
        let (encoder, text) = (encoder(Vec::new()), "ab ".repeat(10_000));
        let mut count = 0;
        let token = |_, _| {
            count += 1;
            count < 5000
        };
        let never = Interrupt::never();
        encoder
            .encode_with_spans(Text::Str(&text), &Special::None, &never, token)
            .unwrap();
        assert_eq!(count, 5000);
    }
}

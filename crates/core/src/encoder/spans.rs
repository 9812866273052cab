//! Ids with their spans in the original text.

use super::{Encoder, Search, Segment, Special};
use crate::error::Result;
use crate::interrupt::{Interrupt, POLL_INTERVAL};
use crate::model::NONE;
use crate::reserve::push;
use crate::special::{AddedToken, AddedTokenMatch};
use crate::text::{floor_char_boundary, Text};
use rustc_hash::FxHashSet;
use std::ops::Range;

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

impl Encoder {
    /// Calls `token` with each id and its span until it returns false.
    pub fn encode_with_spans(
        &self,
        text: Text<'_>,
        special: &Special,
        interrupt: &Interrupt<'_>,
        mut token: impl FnMut(u32, Span) -> bool,
    ) -> Result<()> {
        let matchers = self.matchers(special)?;
        let search = Search::new(&matchers, true, interrupt);
        self.for_each_token(text, search, |id, span, _| token(id, span))
    }

    /// Encodes a text of which only some ranges are trusted. Special tokens, and the added tokens whose
    /// contents are `markup`, match only inside one trusted range.
    ///
    /// Calls `token` with each id and its bytes; those of an added token are those of its content.
    pub fn encode_trusted(
        &self,
        text: &str,
        trusted: &[Range<usize>],
        special: &Special,
        markup: &FxHashSet<String>,
        interrupt: &Interrupt<'_>,
        mut token: impl FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut outcome = Ok(());
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
            let index = trusted.partition_point(|trusted| trusted.start <= range.start);
            index > 0 && range.end <= trusted[index - 1].end
        };
        let matchers = self.matchers(special)?;
        let search = Search {
            permits: Some(&permits),
            ..Search::new(&matchers, true, interrupt)
        };
        self.for_each_token(Text::Str(text), search, |id, _, covered| {
            outcome = token(id, covered);
            outcome.is_ok()
        })?;
        outcome
    }

    /// Calls `token` with each id, its span, and its bytes without the white space that an added token
    /// takes along, until it returns false.
    fn for_each_token(
        &self,
        text: Text<'_>,
        search: Search<'_>,
        mut token: impl FnMut(u32, Span, Range<usize>) -> bool,
    ) -> Result<()> {
        let mut tokens = Vec::new();
        self.with_piece_encoder(search.interrupt, |pieces| {
            self.for_each_segment(text, search, &mut |segment| match segment {
                Segment::Added { found, tiled_end } => {
                    let AddedTokenMatch { id, range, content } = found;
                    let span = Span {
                        start: range.start,
                        tiled_end,
                        end: range.end,
                    };
                    Ok(token(id, span, content))
                }
                Segment::Text(segment) => {
                    let (mut go_on, mut polled) = (true, Ok(()));
                    self.splitter.split(&segment, true, |piece| {
                        tokens.clear();
                        let (mut start, offsets) = (piece.range.start, piece.offsets);
                        let succeeded = pieces.encode_piece_with_widths(piece, &mut tokens);
                        let mut each = |&(id, width): &(u32, usize)| {
                            let end = start + width;
                            let span = Span {
                                start: offsets.start(start),
                                tiled_end: offsets.start(end),
                                end: offsets.end(end),
                            };
                            start = end;
                            id == NONE || token(id, span, span.start..span.end)
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
        self.encode_with_spans(Text::Str(text), special, interrupt, |_, span| {
            tokens += 1;
            if tokens <= max_tokens {
                room = push(&mut cuts, floor_char_boundary(text, span.tiled_end));
            }
            tokens <= max_tokens && room.is_ok()
        })?;
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
            self.encode_up_to(prefix, special, limit, &mut ids, interrupt)?;
            if ids.len() <= max_tokens {
                return Ok(cut);
            }
        }
        Ok(0)
    }
}

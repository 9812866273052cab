//! Encodes text incrementally: exactly the ids of the whole text.

use super::added_tokens::{Matchers, Search, Special};
use super::cuts::Cuts;
use super::Encoder;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::reserve::append_text;
use crate::text::{floor_char_boundary, Text};
use std::sync::Arc;

/// The most bytes of a part that are taken at once.
const WINDOW_BYTES: usize = 256 << 10;
/// Held text shorter than this, in bytes, is searched for a cut after each part.
const MIN_WAIT: usize = 64;

/// A text that arrives incrementally.
///
/// The text up to its last cut is encoded, and the rest is held. A model without cuts (its pattern needs the regex
/// engine, its normalisation replaces text, or it has no pattern) holds the whole text.
pub struct EncodeStream {
    matchers: Arc<Matchers>,
    /// The text after the last cut.
    held: String,
    /// The length that the held text must reach before it is searched for a cut. Without it, a long text without a cut
    /// that arrives in small parts would cost quadratic time.
    wanted: usize,
}

impl EncodeStream {
    /// A stream at the beginning of a text. Later calls must use the same encoder.
    pub fn new(encoder: &Encoder, special: &Special) -> Result<Self> {
        Ok(Self {
            matchers: encoder.matchers(special)?.into_owned(),
            held: String::new(),
            wanted: 0,
        })
    }

    /// Takes the next part of the text. Appends the ids up to the last cut. If the text `ends`, these are all
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
        while rest.len() > WINDOW_BYTES {
            let (window, after) = rest.split_at(floor_char_boundary(rest, WINDOW_BYTES));
            append_text(&mut self.held, window)?;
            rest = after;
            interrupt.poll()?;
            self.encode_to_cut(encoder, ids, interrupt)?;
        }
        append_text(&mut self.held, rest)?;
        if !ends {
            return self.encode_to_cut(encoder, ids, interrupt);
        }
        self.encode(encoder, self.held.len(), ids, interrupt)?;
        (self.held, self.wanted) = (String::new(), 0);
        Ok(())
    }

    /// Encodes the held text up to its last cut.
    fn encode_to_cut(
        &mut self,
        encoder: &Encoder,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        if self.held.len() < self.wanted {
            return Ok(());
        }
        let cuts = Cuts::new(encoder, &self.matchers, None);
        if let Some(cut) = cuts.and_then(|cuts| cuts.last_of_beginning(&self.held)) {
            self.encode(encoder, cut, ids, interrupt)?;
            self.held.drain(..cut);
        }
        self.wanted = match self.held.len() {
            ..MIN_WAIT => 0,
            left => 2 * left,
        };
        Ok(())
    }

    /// Appends the ids of the held text up to a cut or its end.
    fn encode(
        &self,
        encoder: &Encoder,
        end: usize,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let text = Text::Str(&self.held[..end]);
        let search = Search::new(&self.matchers, false, interrupt);
        encoder.with_piece_encoder(interrupt, |pieces| {
            encoder.for_each_segment(text, search, &mut |segment| {
                pieces.encode(segment, usize::MAX, ids)
            })
        })
    }
}

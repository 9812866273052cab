//! Segments of a chat to ids, so that contents never become control tokens.
//!
//! The rules are those of `python/bpe_tokenizer/chat/control_tokens.py`. The control tokens of a conversation are the
//! special tokens, and the plain added tokens that are markup.

use crate::answer::Answer;
use crate::tokenizer::{text, Tokenizer};
use bpe_tokenizer_core::encoder::{FoundToken, Origin, Special, Trusted};
use bpe_tokenizer_core::model::NONE;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::{Error, Interrupt, Result};
use rustc_hash::FxHashSet;
use serde::Deserialize;
use std::ops::Range;

/// The segments of a text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segments {
    /// The size of each in bytes, and whether it is trusted: written by the template.
    segments: Vec<(usize, bool)>,
    /// Added tokens that the template writes for other conversations.
    markup: Vec<String>,
}

/// Where the segments of a text are.
struct Layout {
    /// The end of each segment.
    ends: Vec<usize>,
    trusted: Vec<bool>,
    /// Ranges of trusted segments that follow each other.
    ranges: Vec<Range<usize>>,
}

impl Layout {
    fn new(segments: &[(usize, bool)], text: &str) -> Result<Self> {
        let (mut ends, mut end) = (Vec::new(), 0_usize);
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for &(size, is_trusted) in segments {
            let start = end;
            end = start.saturating_add(size);
            if !text.is_char_boundary(end) {
                return Err(Error::Option(
                    "a segment ends inside a character".to_owned(),
                ));
            }
            ends.push(end);
            match ranges.last_mut() {
                _ if !is_trusted => {}
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        if end != text.len() {
            return Err(Error::Option(
                "the segments are not the whole text".to_owned(),
            ));
        }
        Ok(Self {
            ends,
            trusted: segments.iter().map(|&(_, is_trusted)| is_trusted).collect(),
            ranges,
        })
    }

    /// The segment that holds a byte.
    fn segment_of(&self, byte: usize) -> usize {
        let last = self.ends.len().saturating_sub(1);
        self.ends.partition_point(|&end| end <= byte).min(last)
    }

    /// The first segment of a token.
    fn first(&self, token: &FoundToken) -> usize {
        self.segment_of(token.content.start)
    }

    /// Whether all segments of a token are trusted.
    fn is_trusted(&self, token: &FoundToken) -> bool {
        let last = token.content.end.saturating_sub(1);
        let last = self.segment_of(token.content.start.max(last));
        self.trusted[self.first(token)..=last].iter().all(|&it| it)
    }
}

impl Tokenizer {
    /// The tokens of segments, whose texts are concatenated, and the segment of each token.
    pub fn encode_segments(
        &mut self,
        segments: &Segments,
        bytes: &[u8],
        answer: &mut Answer,
    ) -> Result<()> {
        let text = text(bytes)?;
        let layout = Layout::new(&segments.segments, text)?;
        let mut markup: FxHashSet<String> = segments.markup.iter().cloned().collect();
        let model = self.encoder.model();
        let plain = || model.added().iter().filter(|token| is_plain(token));
        for token in plain() {
            let form = model.normal_form(token.id);
            let mut forms = [Some(token.content.as_str()), form].into_iter().flatten();
            let is_written = |form: &str| {
                layout
                    .ranges
                    .iter()
                    .any(|it| text[it.clone()].contains(form))
            };
            if forms.any(is_written) {
                markup.insert(token.content.clone());
            }
        }
        markup.retain(|content| plain().any(|token| token.content == *content));
        let mut tokens = Vec::new();
        // Normalisation can make a token of markup that does not show its text: then it is one, and all is encoded again.
        loop {
            tokens.clear();
            let trusted = Trusted {
                ranges: &layout.ranges,
                markup: &markup,
            };
            let never = Interrupt::never();
            self.encoder.encode_with_pieces(
                text,
                Some(trusted),
                &Special::All,
                &never,
                |token| {
                    tokens.push(token);
                    Ok(())
                },
            )?;
            let before = markup.len();
            for token in tokens.iter().filter(|token| layout.is_trusted(token)) {
                if let Some(added) = model.added_token(token.id).filter(|added| is_plain(added)) {
                    markup.insert(added.content.clone());
                }
            }
            if markup.len() == before {
                break;
            }
        }
        let is_control = |id: u32| {
            let added = model.added_token(id);
            added.is_some_and(|added| added.special || markup.contains(&added.content))
        };
        self.found.clear();
        let mut places: Vec<u32> = Vec::new();
        for token in &tokens {
            let in_vocabulary = model.vocabulary().token(token.id).is_some();
            let parts = if in_vocabulary && is_control(token.id) && !layout.is_trusted(token) {
                self.merged_parts(token, is_control)?
            } else {
                vec![token.clone()]
            };
            for part in parts {
                self.found.push(model, text, &part)?;
                places.push(layout.first(token) as u32);
            }
        }
        self.found.locate(text, text.encode_utf16().count());
        self.found.answer(answer);
        answer.own_words(places);
        Ok(())
    }

    /// The tokens that merging a control token's bytes gives without control tokens. Merges make such a token of contents
    /// only if the vocabulary holds it.
    fn merged_parts(
        &self,
        token: &FoundToken,
        is_control: impl Fn(u32) -> bool,
    ) -> Result<Vec<FoundToken>> {
        let model = self.encoder.model();
        let bytes = model.token(token.id).unwrap_or_default();
        let trace = self.encoder.merger().trace(bytes, &Interrupt::never())?;
        let mut parts: Vec<u32> = trace.symbols.iter().map(|it| it.unwrap_or(NONE)).collect();
        let steps = trace.steps.iter();
        for step in steps.take_while(|step| !is_control(step.token_id)) {
            parts[step.left] = step.token_id;
            parts[step.right] = NONE;
        }
        parts.retain(|&part| part != NONE);
        if parts.is_empty() {
            return Ok(vec![token.clone()]);
        }
        // Where the text has the token's own bytes, each part has its place among them.
        let has_places = token.span.end - token.span.start == bytes.len();
        let mut start = token.span.start;
        let parts = parts.into_iter().enumerate().map(|(index, id)| {
            let mut part = FoundToken {
                id,
                ..token.clone()
            };
            if has_places {
                let width = model.token(id).map_or(0, <[u8]>::len);
                (part.span.start, part.span.end) = (start, start + width);
                start += width;
            }
            if index > 0 {
                part.origin = Origin::PieceRest;
            }
            part
        });
        Ok(parts.collect())
    }
}

/// Whether a token is neither special nor white space: a word that a template may use as markup.
fn is_plain(token: &AddedToken) -> bool {
    // Python's `isspace` includes four control characters.
    let is_space = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
    !token.special && !token.content.chars().all(is_space)
}
